"""Requests with a stream of bytes beside them, and where the bytes go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable
from typing import Any

from realcli.wire.body import Fields
from realcli.wire.frames import ProtocolError
from realcli.wire.protocol import Op
from realcli_session.runner.connection import Connection
from realcli_session.runner.port import ByteSink
from realcli_session.runner.streams import InStream, OutStream


async def receive(connection: Connection, op: Op, content: dict[str, Any], sink: ByteSink, *, extra: float = 0.0) -> Fields:
    """Request, pass the stream on, answer. The runner's silence counts, the sink's slowness does not."""
    connection.check()
    stream = connection.open_in()
    try:
        number, answer = connection.request(op, content | {"stream": stream.number}, stream)
    except ValueError:
        connection.forget(stream)
        raise
    try:
        while chunk := await connection.within(connection.answer_seconds + extra, stream.read(), op):
            with connection.believing():
                await sink.write(chunk)
        return await connection.answer(number, answer, op)
    finally:
        if not answer.done():
            answer.cancel()
        stream.discard()


async def send(connection: Connection, op: Op, content: dict[str, Any], source: AsyncIterable[bytes]) -> Fields:
    """Request, feed the stream until the end of the source or until the runner wants no more, answer."""
    connection.check()
    stream = connection.open_out()
    try:
        number, answer = connection.request(op, content | {"stream": stream.number}, stream)
    except ValueError:
        connection.forget(stream)
        raise
    try:
        async for chunk in source:
            stream.write(chunk)
            await connection.within(connection.answer_seconds, stream.drain(), op)
            await connection.flush()
            if stream.broken:
                break
        await connection.within(connection.answer_seconds, stream.close(), op)
        return await connection.answer(number, answer, op)
    finally:
        stream.abandon()


async def give(stream: OutStream, source: AsyncIterable[bytes]) -> None:
    """Feed the stream until the end of the source or until the runner wants no more."""
    async for chunk in source:
        stream.write(chunk)
        await stream.drain()
        if stream.broken:
            return
    await stream.close()


def failed(task: asyncio.Task[None]) -> bool:
    """Whether it ended with an error."""
    return task.done() and not task.cancelled() and task.exception() is not None


class Kept:
    """The first bytes of a stream; the rest is thrown away."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.data = bytearray()
        self.cut = False

    async def take(self, stream: InStream) -> None:
        """Read it to its end."""
        async for chunk in stream:
            room = self._limit - len(self.data)
            self.data += chunk[:room]
            self.cut = self.cut or len(chunk) > room


class Whole:
    """All bytes of a stream that must not be longer than asked."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.data = bytearray()

    async def write(self, data: bytes) -> None:
        """See ByteSink. ProtocolError: more came than was asked for."""
        self.data += data
        if len(self.data) > self._limit:
            raise ProtocolError(f"more than the {self._limit} bytes asked for came")


class Bounded:
    """A sink that a lying runner cannot fill for ever."""

    def __init__(self, to: ByteSink, limit: int) -> None:
        self._to = to
        self._left = limit

    async def write(self, data: bytes) -> None:
        """See ByteSink. ProtocolError: longer than the limit."""
        self._left -= len(data)
        if self._left < 0:
            raise ProtocolError("the archive is longer than its limits allow")
        await self._to.write(data)
