"""The session's ends of byte streams: bounded by credit, woken by the end, by a cancel, or by the loss of the runner."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from realcli.wire.frames import ProtocolError
from realcli.wire.protocol import CHUNK
from realcli.wire.windows import ReceiveWindow, SendWindow
from realcli_session.runner.errors import RunnerLost

Failed = Callable[[], RunnerLost | None]


class Signalled:
    """A condition without a lock, for one event loop: `changed` wakes everybody who waits."""

    def __init__(self) -> None:
        self._waiters: set[asyncio.Future[None]] = set()

    def changed(self) -> None:
        """Wake all."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self) -> None:
        """Until the next change."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)


class InStream:
    """A stream from the runner."""

    def __init__(self, number: int, *, grant: Callable[[int, int], None], cancel: Callable[[int], None], lost: Failed) -> None:
        self.number = number
        self._grant = grant
        self._cancel = cancel
        self._lost = lost
        self._window = ReceiveWindow()
        self._chunks: deque[bytes] = deque()
        self._discard = False
        self.ended = False
        self.signal = Signalled()

    async def read(self) -> bytes:
        """Next chunk, b"" at the end. What came before a loss is still given."""
        while not self._chunks:
            if self.ended or self._discard:
                return b""
            if lost := self._lost():
                raise lost
            await self.signal.wait()
        chunk = self._chunks.popleft()
        if (credit := self._window.taken(len(chunk))) and not self.ended:
            self._grant(self.number, credit)
        return chunk

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Chunks until the end."""
        while chunk := await self.read():
            yield chunk

    def discard(self) -> None:
        """See RemoteStream."""
        if not self._discard:
            self._discard = True
            self._chunks.clear()
            self.signal.changed()
            if not self.ended:
                self._cancel(self.number)

    def on_data(self, data: bytes) -> None:
        """Bytes came."""
        self._window.received(len(data))
        if data and not self._discard:
            self._chunks.append(data)
            self.signal.changed()

    def on_end(self) -> None:
        """The end came."""
        self.ended = True
        self.signal.changed()

    def on_answer(self) -> None:
        """The request this stream belongs to was refused before the stream was opened there."""
        self.on_end()


class OutStream:
    """A stream to the runner. `write` queues; credit and the socket decide when it goes."""

    def __init__(self, number: int, *, send: Callable[[int, bytes], None], end: Callable[[int], None], lost: Failed) -> None:
        self.number = number
        self._send = send
        self._end = end
        self._lost = lost
        self._window = SendWindow()
        self._queue: deque[memoryview] = deque()
        self._ending = False
        self._ended = False
        self.broken = False
        self.signal = Signalled()

    def write(self, data: bytes) -> None:
        """See RemoteStdin."""
        if self._ending:
            raise ValueError("write after close")
        if data and not self.broken:
            self._queue.append(memoryview(bytes(data)))
            self._pump()

    async def drain(self) -> None:
        """See RemoteStdin."""
        while self._queue and not self.broken:
            if lost := self._lost():
                raise lost
            await self.signal.wait()
        if lost := self._lost():
            raise lost

    async def close(self) -> None:
        """See RemoteStdin."""
        self._ending = True
        self._pump()
        await self.drain()

    def abandon(self) -> None:
        """Stop here: what is queued will not be sent. Idempotent."""
        self._queue.clear()
        self._ending = True
        self._pump()
        self.signal.changed()

    def _pump(self) -> None:
        if self._lost() is not None:
            return
        while self._queue and self._window.credit:
            piece = self._queue[0][: min(CHUNK, self._window.credit)]
            self._window.spend(len(piece))
            self._send(self.number, bytes(piece))
            if len(piece) == len(self._queue[0]):
                self._queue.popleft()
            else:
                self._queue[0] = self._queue[0][len(piece) :]
        if not self._queue:
            self.signal.changed()
            if self._ending and not self._ended:
                self._ended = True
                self._end(self.number)

    def on_credit(self, size: int) -> None:
        """The runner took bytes."""
        self._window.grant(size)
        self._pump()
        self.signal.changed()

    def on_cancel(self) -> None:
        """Nobody reads at the other end."""
        if self.broken:
            raise ProtocolError(f"stream {self.number} cancelled twice")
        self.broken = True
        self.abandon()

    def on_answer(self) -> None:
        """The request this stream belongs to was answered before all was sent."""
        self.broken = True
        self._ended = True
        self._queue.clear()
        self.signal.changed()
