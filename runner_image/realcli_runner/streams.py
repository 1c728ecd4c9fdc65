"""Byte streams between worker threads and the main loop, with credit (`realcli.wire.windows`).

The main loop owns the socket; workers block here when the other end is slow, and are woken with `Cancelled` when it gives up.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from realcli.wire.frames import ProtocolError, encode
from realcli.wire.protocol import CHUNK, Kind
from realcli.wire.windows import ReceiveWindow, SendWindow

Post = Callable[[bytes], None]


class Cancelled(Exception):
    """The session does not want this stream any more."""


class Stream(Protocol):
    """What the main loop can hand to the owner of a stream."""

    def on_data(self, data: bytes) -> None:
        """Bytes from the session."""

    def on_end(self) -> None:
        """The session's end of the stream."""

    def on_credit(self, size: int) -> None:
        """The session took bytes."""

    def on_cancel(self) -> None:
        """The session wants no more."""


class Outlet:
    """A stream a worker writes into."""

    def __init__(self, number: int, post: Post) -> None:
        self._number = number
        self._post = post
        self._window = SendWindow()
        self._changed = threading.Condition()
        self._cancelled = False
        self._buffer = bytearray()
        self.finished = False

    def write(self, data: bytes) -> None:
        """Send, blocking while there is no credit. Small writes are gathered into one frame."""
        self._buffer += data
        while len(self._buffer) >= CHUNK:
            self._send(CHUNK)

    def finish(self) -> None:
        """Send the rest and the end."""
        while self._buffer:
            self._send(min(CHUNK, len(self._buffer)))
        self.abandon()

    def abandon(self) -> None:
        """Send the end without the rest."""
        self._buffer.clear()
        self.finished = True
        self._post(encode({"t": Kind.END, "s": self._number}))

    def _send(self, size: int) -> None:
        with self._changed:
            while not self._cancelled and self._window.credit == 0:
                self._changed.wait()
            if self._cancelled:
                raise Cancelled
            size = min(size, self._window.credit)
            self._window.spend(size)
        chunk = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._post(encode({"t": Kind.DATA, "s": self._number}, chunk))

    def on_data(self, data: bytes) -> None:
        """See Stream."""
        raise ProtocolError(f"data on stream {self._number}, which goes to the session")

    def on_end(self) -> None:
        """See Stream."""
        raise ProtocolError(f"end of stream {self._number}, which goes to the session")

    def on_credit(self, size: int) -> None:
        """See Stream."""
        with self._changed:
            self._window.grant(size)
            self._changed.notify()

    def on_cancel(self) -> None:
        """See Stream."""
        with self._changed:
            self._cancelled = True
            self._changed.notify()


class Inlet:
    """A stream a worker reads from."""

    def __init__(self, number: int, post: Post) -> None:
        self._number = number
        self._post = post
        self._window = ReceiveWindow()
        self._changed = threading.Condition()
        self._chunks: deque[bytes] = deque()
        self._ended = False
        self._cancelled = False

    def read(self) -> bytes:
        """The next chunk, b"" at the end. Blocks."""
        with self._changed:
            while not self._chunks and not self._ended and not self._cancelled:
                self._changed.wait()
            if self._cancelled:
                raise Cancelled
            if not self._chunks:
                return b""
            chunk = self._chunks.popleft()
            grant = self._window.taken(len(chunk))
        if grant:
            self._post(encode({"t": Kind.CREDIT, "s": self._number, "n": grant}))
        return chunk

    def stop(self) -> None:
        """Tell the session that the rest is not wanted (unless it has all been sent)."""
        with self._changed:
            ended = self._ended
            self._chunks.clear()
        if not ended:
            self._post(encode({"t": Kind.CANCEL, "s": self._number}))

    @property
    def ended(self) -> bool:
        """The session has sent its end."""
        with self._changed:
            return self._ended

    def on_data(self, data: bytes) -> None:
        """See Stream."""
        with self._changed:
            if self._ended:
                raise ProtocolError(f"data after the end of stream {self._number}")
            self._window.received(len(data))
            if data:
                self._chunks.append(data)
                self._changed.notify()

    def on_end(self) -> None:
        """See Stream."""
        with self._changed:
            self._ended = True
            self._changed.notify()

    def on_credit(self, size: int) -> None:
        """See Stream."""
        raise ProtocolError(f"credit on stream {self._number}, which comes from the session")

    def on_cancel(self) -> None:
        """See Stream: the session cannot go on feeding."""
        with self._changed:
            self._cancelled = True
            self._changed.notify()
