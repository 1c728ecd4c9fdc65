"""Rows for the session that nobody waits for: a queue of bounded size that is emptied as the session takes them."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from realcli.wire.frames import ProtocolError, encode
from realcli.wire.protocol import CHUNK, Kind
from realcli.wire.windows import SendWindow

MAX_ROWS: Final = 20_000
MAX_BYTES: Final = 8 << 20
FULL: Final = "more was executed than the session took"


class Feed:
    """A stream of JSON lines (`Stream`). `push` never blocks: what finds no room is counted, and told as a gap when there is.

    `push` may be called from any thread; everything else belongs to the main loop. `post` runs a call there.
    """

    def __init__(
        self,
        number: int,
        send: Callable[[bytes], None],
        post: Callable[[Callable[[], None]], None],
        congested: Callable[[], bool],
    ) -> None:
        self._number = number
        self._send = send
        self._post = post
        self._congested = congested
        self._window = SendWindow()
        self._lock = threading.Lock()
        self._rows: deque[bytes] = deque()
        self._bytes = 0
        self._lost = 0
        self._posted = False
        self._unwanted = False
        self._rest = b""

    def push(self, row: dict[str, Any], *, always: bool = False) -> None:
        """Queue a row. `always`: also where there is no room, for rows that the session has asked for one by one."""
        line = json.dumps(row, separators=(",", ":")).encode("ascii") + b"\n"
        with self._lock:
            if self._unwanted:
                return
            share = 2 if self._lost else 1  # after a loss half of it must be free again: one gap, not many
            if not always and (share * len(self._rows) >= MAX_ROWS or share * self._bytes + len(line) > MAX_BYTES):
                self._lost += row.get("count", 1)
                return
            self._tell_lost()
            self._rows.append(line)
            self._bytes += len(line)
            posted, self._posted = self._posted, True
        if not posted:
            self._post(self.consider)

    def _tell_lost(self) -> None:
        if self._lost:
            row = {"t": time.monotonic_ns(), "k": "gap", "count": self._lost, "why": FULL}
            self._rows.append(json.dumps(row, separators=(",", ":")).encode("ascii") + b"\n")
            self._bytes += len(self._rows[-1])
            self._lost = 0

    def consider(self) -> None:
        """Send what there is credit for."""
        with self._lock:
            self._posted = False
        while self._window.credit and not self._congested():
            if not self._rest:
                self._rest = self._take()
            if not self._rest:
                return
            piece, self._rest = self._rest[: self._window.credit], self._rest[self._window.credit :]
            self._window.spend(len(piece))
            self._send(encode({"t": Kind.DATA, "s": self._number}, piece))

    def _take(self) -> bytes:
        """At most a chunk of whole lines (one line at least)."""
        taken = bytearray()
        with self._lock:
            while self._rows and (not taken or len(taken) + len(self._rows[0]) <= CHUNK):
                line = self._rows.popleft()
                self._bytes -= len(line)
                taken += line
            if not self._rows:
                self._tell_lost()
        return bytes(taken)

    def on_data(self, data: bytes) -> None:
        """See Stream."""
        raise ProtocolError(f"data on stream {self._number}, which goes to the session")

    def on_end(self) -> None:
        """See Stream."""
        raise ProtocolError(f"end of stream {self._number}, which goes to the session")

    def on_credit(self, size: int) -> None:
        """See Stream."""
        self._window.grant(size)
        self.consider()

    def on_cancel(self) -> None:
        """See Stream: nothing is kept for a session that does not want it."""
        with self._lock:
            self._unwanted = True
            self._rows.clear()
            self._bytes = 0
        self._rest = b""
