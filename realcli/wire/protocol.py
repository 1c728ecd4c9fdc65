"""The vocabulary of the wire: version, limits, message kinds, operations and error codes.

Both ends import it; it is data and nothing else. How messages follow each other is in docs/design/010-wire.md.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

VERSION: Final = 2
DEFAULT_SOCKET: Final = "/run/realcli/session.sock"

WINDOW: Final = 256 * 1024
"""Bytes a sender may have under way on one stream before the receiver grants more."""
CHUNK: Final = 64 * 1024
"""Largest payload of a data frame; small enough that streams take turns."""
MAX_IN_FLIGHT: Final = 64
"""Requests that may be unanswered at once."""
MAX_PROCESSES: Final = 256
"""Processes that may be open (running, or with unfinished streams) at once."""


class Kind(StrEnum):
    """What a frame is (header field `t`)."""

    HELLO = "hello"
    REQUEST = "req"
    REPLY = "ok"
    ERROR = "err"
    DATA = "data"
    END = "end"
    CREDIT = "credit"
    CANCEL = "cancel"
    EXITED = "exited"


class Op(StrEnum):
    """What a request asks for (header field `op`)."""

    PING = "ping"
    SPAWN = "spawn"
    SIGNAL = "signal"
    SIGNAL_PID = "signal_pid"
    PROCS = "procs"
    QUIESCE = "quiesce"
    PUT_FILE = "put_file"
    GET_FILE = "get_file"
    SCAN = "scan"
    SNAPSHOT = "snapshot"
    MANIFEST = "manifest"
    DELTA = "delta"
    UNPACK = "unpack"
    RECORD = "record"
    SETTLE = "settle"
    EXIT = "exit"


class ErrorCode(StrEnum):
    """Why a request failed: a closed set, so that the session can decide by it."""

    BAD_REQUEST = "bad_request"
    BUSY = "busy"
    QUIESCING = "quiescing"
    SPAWN_FAILED = "spawn_failed"
    NO_SUCH_PROCESS = "no_such_process"
    PATH_REFUSED = "path_refused"
    NOT_FOUND = "not_found"
    NOT_REGULAR = "not_regular"
    FILE_TOO_LARGE = "file_too_large"
    STATE_TOO_LARGE = "state_too_large"
    BAD_ARCHIVE = "bad_archive"
    CANCELLED = "cancelled"
    IO = "io"
    INTERNAL = "internal"
