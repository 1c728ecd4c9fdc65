"""The session's side of the wire.

`listen(path)` opens the socket, `await listener.accept(seconds)` gives the one `RunnerClient`, which is a `RunnerPort`.
"""

from realcli_session.runner.client import RunnerClient
from realcli_session.runner.errors import (
    ArchiveInvalid,
    FileMissing,
    FileTooLarge,
    NotRegular,
    PathRefused,
    RunnerError,
    RunnerLost,
    SpawnFailed,
    StateTooLarge,
)
from realcli_session.runner.listener import Listener, listen
from realcli_session.runner.port import RemoteProcess, RunnerPort

__all__ = [
    "ArchiveInvalid",
    "FileMissing",
    "FileTooLarge",
    "Listener",
    "NotRegular",
    "PathRefused",
    "RemoteProcess",
    "RunnerClient",
    "RunnerError",
    "RunnerLost",
    "RunnerPort",
    "SpawnFailed",
    "StateTooLarge",
    "listen",
]
