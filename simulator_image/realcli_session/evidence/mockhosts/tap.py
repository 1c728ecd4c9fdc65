"""What a client of the mock hosts sends, byte for byte, until it was written down: a request that breaks off was made too."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Final, NamedTuple, cast

_LINE: Final = re.compile(rb"([!-~]{1,40}) ([!-~]+)(?: HTTP/[!-~]*)?\r?\n")
_HOST: Final = re.compile(rb"(?im)^host:[ \t]*([!-~]{1,255})")


class Head(NamedTuple):
    """What can be told of a request that nobody parsed. Empty texts: nothing."""

    method: str
    target: str
    host: str
    rest: bytes


class Tap(asyncio.Protocol):
    """Stands before a connection's handler. `claimed`: somebody writes down what came; else `lost` is called with the tap when
    the connection ends and something is left."""

    def __init__(self, inner: asyncio.Protocol, most: int, made: Callable[[Tap], None], lost: Callable[[Tap], None]) -> None:
        self._inner = inner
        self._most = most
        self._made = made
        self._lost = lost
        self._came = bytearray()
        self.transport: asyncio.Transport | None = None
        self.claimed = False
        self.gone = False
        self.deaf = False
        """What still comes is not kept: that there is more has been said already."""
        self.cut = False
        """More came than is kept."""

    @property
    def held(self) -> int:
        """Bytes that nobody has written down yet."""
        return len(self._came)

    def take(self) -> bytes:
        """They are being written down."""
        came, self._came = bytes(self._came), bytearray()
        return came

    def release(self) -> None:
        """Whoever claimed it is done; what came since belongs to nobody."""
        self.claimed = False
        if self.gone:
            self._lost(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self.transport = cast(asyncio.Transport, transport)
        self._made(self)
        self._inner.connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.Protocol."""
        self.gone = True
        self._inner.connection_lost(error)
        if not self.claimed:
            self._lost(self)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        if not self.deaf:
            room = self._most - len(self._came)
            self._came += data[:room]
            self.cut = self.cut or len(data) > room
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """See asyncio.Protocol."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """See asyncio.Protocol."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """See asyncio.Protocol."""
        self._inner.resume_writing()


def head_of(came: bytes) -> Head:
    """As far as the bytes look like a request."""
    line = _LINE.match(came)
    if line is None:
        return Head("", "", "", came)
    head, _, rest = came.partition(b"\r\n\r\n")
    host = _HOST.search(head)
    told = b"" if host is None else host[1].partition(b":")[0].lower().rstrip(b".")
    return Head(line[1].decode(), line[2].decode(), told.decode(), rest)
