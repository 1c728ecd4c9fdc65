"""Connections under a bound: an agent may open any number and send anything on them, and nothing of that may fill our memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ssl import SSLContext
from typing import cast

from aiohttp import web

Around = Callable[[asyncio.Protocol], asyncio.Protocol]
MAX_CONNECTIONS = 128  # at the same time; programs use a handful, fifty sub-agents fifty
HELD_BYTES = 1 << 16
"""Of what comes after a request's body while that request is answered. A program that waits for answers sends none of it."""


class _Closed(asyncio.Protocol):
    """For a connection over the bound."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Hang up."""
        cast(asyncio.Transport, transport).abort()


class _Guard(asyncio.Protocol):
    """Stands before aiohttp's handler. It would read and keep further requests (headers of 1 MB each) while one is answered."""

    def __init__(self, door: Door, inner: asyncio.Protocol) -> None:
        self._door = door
        self._inner = inner
        self._transport: asyncio.Transport | None = None
        self._request: web.BaseRequest | None = None
        self._held = bytearray()
        self._paused = False  # by us; the handler pauses by itself while a body waits to be read

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Both are told."""
        self._transport = cast(asyncio.Transport, transport)
        self._door.guards[transport] = self
        self._inner.connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        """What was held is gone with it."""
        if self._transport is not None:
            self._door.guards.pop(self._transport, None)
        self._held.clear()
        self._inner.connection_lost(error)

    def data_received(self, data: bytes) -> None:
        """Held once the body of the request that is answered is complete."""
        if self._request is None or not self._request.content.is_eof():
            self._inner.data_received(data)
            return
        self._held += data
        if len(self._held) > HELD_BYTES and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def eof_received(self) -> bool | None:
        """The agent hung up."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """The agent reads slowly."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """It has read."""
        self._inner.resume_writing()

    def begin(self, request: web.BaseRequest) -> None:
        """A request of this connection is being answered."""
        self._request = request

    def end(self) -> None:
        """It was; what came meanwhile is read now."""
        self._request = None
        held, self._held = bytes(self._held), bytearray()
        if self._transport is None or self._transport.is_closing():
            return
        if held:
            self._inner.data_received(held)
        if self._paused:
            self._paused = False
            self._transport.resume_reading()


class Door:
    """Listens, and knows the connections."""

    def __init__(self) -> None:
        self.guards: dict[asyncio.BaseTransport, _Guard] = {}

    async def listen(
        self, server: web.Server, host: str, port: int, tls: SSLContext | None = None, *, around: Around | None = None
    ) -> asyncio.Server:
        """Serve on an address. `around` may put something before what guards a connection. Raises OSError if it is taken."""

        def accept() -> asyncio.Protocol:
            if len(self.guards) >= MAX_CONNECTIONS:
                return _Closed()
            guard = _Guard(self, server())
            return guard if around is None else around(guard)

        return await asyncio.get_running_loop().create_server(accept, host, port, ssl=tls)

    @contextmanager
    def answering(self, request: web.BaseRequest) -> Iterator[None]:
        """While the block runs, its connection is read no further than this request."""
        guard = None if request.transport is None else self.guards.get(request.transport)
        if guard is None:
            yield
            return
        guard.begin(request)
        try:
            yield
        finally:
            guard.end()
