"""Request bodies under a bound of memory: an agent may open any number of connections and send any number of bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

READ_SECONDS = 120.0


class BodyTooLarge(Exception):
    """Longer than the cap."""


class BodyBudget:
    """Bytes of request bodies held at once. Who does not fit waits; one body always fits."""

    def __init__(self, total: int) -> None:
        self._free = total
        self._total = total
        self._freed = asyncio.Event()

    @asynccontextmanager
    async def hold(self, size: int) -> AsyncIterator[None]:
        """Hold `size` bytes (at most all there are)."""
        size = min(size, self._total)
        while self._free < size:
            self._freed.clear()
            await self._freed.wait()
        self._free -= size
        try:
            yield
        finally:
            self._free += size
            self._freed.set()


def claimed_size(request: web.Request, cap: int) -> int:
    """Bytes to hold for a body: its Content-Length, or the cap where it has none. Raises BodyTooLarge."""
    length = request.content_length
    if length is not None and length > cap:
        raise BodyTooLarge
    return cap if length is None else length


async def read_body(request: web.Request, cap: int) -> bytes:
    """The whole body. Raises BodyTooLarge, TimeoutError (a sender that dawdles)."""
    parts: list[bytes] = []
    size = 0
    async with asyncio.timeout(READ_SECONDS):
        async for chunk in request.content.iter_chunked(1 << 16):
            size += len(chunk)
            if size > cap:
                raise BodyTooLarge
            parts.append(chunk)
    return b"".join(parts)
