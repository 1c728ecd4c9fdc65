"""Connections under a bound: an agent may open any number, and each costs the session a descriptor and buffers."""

from __future__ import annotations

import asyncio
from typing import cast

from aiohttp import web

MAX_CONNECTIONS = 512  # at the same time; programs use a handful, fifty sub-agents fifty


class _Closed(asyncio.Protocol):
    """For a connection over the bound."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Hang up."""
        cast(asyncio.Transport, transport).abort()


async def listen(server: web.Server, host: str, port: int) -> asyncio.Server:
    """Serve on an address. Raises OSError if it is taken."""

    def accept() -> asyncio.BaseProtocol:
        return server() if len(server.connections) < MAX_CONNECTIONS else _Closed()

    return await asyncio.get_running_loop().create_server(accept, host, port)
