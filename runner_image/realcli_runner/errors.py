"""Failures of one request, as they go over the wire."""

from __future__ import annotations

import errno
import os
from typing import Any

from realcli.wire.protocol import ErrorCode


class Failure(Exception):
    """A request that cannot be done. `detail` must be plain JSON."""

    def __init__(self, code: ErrorCode, message: str, **detail: Any) -> None:
        super().__init__(message)
        self.code = code
        self.detail = detail


def printable(path: bytes) -> str:
    """A path for messages."""
    return path.decode("utf-8", "backslashreplace")


def failure_of(error: OSError, doing: str) -> Failure:
    """The wire form of a kernel error."""
    code = ErrorCode.NOT_FOUND if error.errno == errno.ENOENT else ErrorCode.IO
    reason = os.strerror(error.errno) if error.errno is not None else str(error)
    return Failure(code, f"{doing}: {reason}", errno=error.errno)
