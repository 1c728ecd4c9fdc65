"""One connection to a runner: frames in and out, requests and their answers, and the one way it can end.

The reading task never waits for a consumer: what comes is bounded by credit. Everything that waits is woken by `_lose`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

from realcli.wire import body
from realcli.wire.body import BadBody, Fields
from realcli.wire.frames import Frame, FrameDecoder, ProtocolError, encode
from realcli.wire.protocol import ErrorCode, Kind, Op
from realcli_session.runner.errors import RunnerError, RunnerLost, error_for
from realcli_session.runner.port import ExitStatus
from realcli_session.runner.streams import InStream, OutStream, Signalled

T = TypeVar("T")
Late = Callable[[], None]


class Connection:
    """Frames over one connected stream. `start` once, `close` once."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        answer_seconds: float,
        ping_seconds: float,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self.answer_seconds = answer_seconds
        self._ping_seconds = ping_seconds
        self._decoder = FrameDecoder()
        self._early: list[Frame] = []
        self._streams: dict[int, InStream | OutStream] = {}
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._late: dict[int, Late] = {}
        self._bound: dict[int, InStream | OutStream] = {}
        self._exits: dict[int, Callable[[ExitStatus], None]] = {}
        self._last_stream = 0
        self._last_request = 0
        self._lost: str | None = None
        self.signal = Signalled()
        self._tasks: list[asyncio.Task[None]] = []

    # -- life ----------------------------------------------------------------------------------------------------------

    async def hello(self) -> dict[str, Any]:
        """The first frame's body. Raises RunnerLost when it is something else or does not come."""
        try:
            async with asyncio.timeout(self.answer_seconds):
                while not self._early:
                    await self._read_some(self._early.append)
        except TimeoutError:
            self._lose(f"no hello within {self.answer_seconds:g} s")
        except (ProtocolError, OSError) as error:
            self._lose(str(error))
        self.check()
        first = self._early.pop(0)
        if first.kind != Kind.HELLO:
            self._lose(f"expected hello, found {first.kind[:40]!r}")
            self.check()
        try:
            return body.load(first.payload)
        except BadBody as error:
            self._lose(f"hello: {error}")
            raise RunnerLost(f"hello: {error}") from None

    def start(self) -> None:
        """Begin to read and to ping."""
        self._tasks = [asyncio.create_task(self._read_all()), asyncio.create_task(self._ping())]

    def lost(self) -> RunnerLost | None:
        """A fresh exception if the runner is gone."""
        return None if self._lost is None else RunnerLost(self._lost)

    def check(self) -> None:
        """Raise if the runner is gone."""
        if lost := self.lost():
            raise lost

    async def wait_lost(self) -> RunnerLost:
        """Until it is gone."""
        while (lost := self.lost()) is None:
            await self.signal.wait()
        return lost

    async def close(self, reason: str) -> None:
        """Drop the connection; whatever waits gets RunnerLost(reason)."""
        self._lose(reason)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def _lose(self, reason: str) -> None:
        if self._lost is not None:
            return
        self._lost = reason
        self._writer.transport.abort()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(RunnerLost(reason))
        self._answers.clear()
        self._late.clear()
        self._bound.clear()
        for stream in self._streams.values():
            stream.signal.changed()
        self._streams.clear()
        self._exits.clear()
        self.signal.changed()

    async def _read_some(self, take: Callable[[Frame], None]) -> None:
        data = await self._reader.read(256 * 1024)
        if not data:
            cut = self._decoder.buffered
            self._lose(f"end of stream within a frame ({cut} bytes of it came)" if cut else "end of stream")
            self.check()
        for frame in self._decoder.feed(data):
            take(frame)

    async def _read_all(self) -> None:
        try:
            for frame in self._early:
                self._on_frame(frame)
            while self._lost is None:
                await self._read_some(self._on_frame)
        except RunnerLost:
            return
        except (ProtocolError, BadBody) as error:
            self._lose(f"broken protocol: {error}")
        except OSError as error:
            self._lose(f"connection failed: {error}")

    async def _ping(self) -> None:
        with contextlib.suppress(RunnerLost):
            while True:
                await asyncio.sleep(self._ping_seconds)
                await self.ask(Op.PING, {})

    # -- requests ------------------------------------------------------------------------------------------------------

    async def within(self, seconds: float, work: Awaitable[T], what: str) -> T:
        """Await something the runner owes; its silence is its end."""
        scope = asyncio.timeout(seconds)
        try:
            async with scope:
                return await work
        except TimeoutError:
            if not scope.expired():
                raise
            reason = f"no answer to {what} within {seconds:g} s"
            self._lose(reason)
            raise RunnerLost(self._lost or reason) from None

    @contextlib.contextmanager
    def believing(self) -> Iterator[None]:
        """Around the reading of what came: nonsense in it is the end of the connection."""
        try:
            yield
        except (ProtocolError, BadBody) as error:
            self._lose(f"broken protocol: {error}")
            raise RunnerLost(self._lost or str(error)) from None

    def request(
        self, op: Op, content: dict[str, Any], stream: InStream | OutStream | None = None
    ) -> tuple[int, asyncio.Future[dict[str, Any]]]:
        """Send; returns the request's number and its answer to come. ValueError when it does not fit in a frame.

        A `stream` given here ends with the answer at the latest.
        """
        self.check()
        frame_body = body.dump(content)
        self._last_request += 1
        number = self._last_request
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        if stream is not None:
            self._bound[number] = stream
        self._writer.write(encode({"t": Kind.REQUEST, "id": number, "op": op}, frame_body))
        return number, answer

    async def answer(
        self, number: int, answer: asyncio.Future[dict[str, Any]], op: Op, *, extra: float = 0.0, late: Late | None = None
    ) -> Fields:
        """The answer, or the error it holds. `late` runs if it succeeds after the caller was cancelled."""
        try:
            return Fields(await self.within(self.answer_seconds + extra, answer, op))
        except asyncio.CancelledError:
            if late is not None:
                if answer.done() and not answer.cancelled():
                    if answer.exception() is None:
                        late()
                else:
                    self._late[number] = late
            raise
        finally:
            self._answers.pop(number, None)

    async def ask(self, op: Op, content: dict[str, Any], *, extra: float = 0.0) -> Fields:
        """Request and answer in one."""
        number, answer = self.request(op, content)
        return await self.answer(number, answer, op, extra=extra)

    def on_exit(self, number: int, call: Callable[[ExitStatus], None]) -> None:
        """Whom to tell when the process that request started ends."""
        self._exits[number] = call

    # -- streams -------------------------------------------------------------------------------------------------------

    def open_in(self) -> InStream:
        """A new stream from the runner; its number goes into the next request."""
        self._last_stream += 1
        stream = InStream(self._last_stream, grant=self._grant, cancel=self._cancel, lost=self.lost)
        self._streams[stream.number] = stream
        return stream

    def open_out(self) -> OutStream:
        """A new stream to the runner; its number goes into the next request."""
        self._last_stream += 1
        stream = OutStream(self._last_stream, send=self._data, end=self._finish, lost=self.lost)
        self._streams[stream.number] = stream
        return stream

    def forget(self, *streams: InStream | OutStream | None) -> None:
        """These were never opened at the other end."""
        for stream in streams:
            if stream is not None:
                self._streams.pop(stream.number, None)

    async def flush(self) -> None:
        """Wait while the socket is full."""
        with contextlib.suppress(OSError):
            await self._writer.drain()
        self.check()

    def _write(self, header: dict[str, Any], payload: bytes = b"") -> None:
        if self._lost is None:
            self._writer.write(encode(header, payload))

    def _grant(self, number: int, size: int) -> None:
        self._write({"t": Kind.CREDIT, "s": number, "n": size})

    def _cancel(self, number: int) -> None:
        self._write({"t": Kind.CANCEL, "s": number})

    def _data(self, number: int, data: bytes) -> None:
        self._write({"t": Kind.DATA, "s": number}, data)

    def _finish(self, number: int) -> None:
        self._write({"t": Kind.END, "s": number})
        self._streams.pop(number, None)

    # -- what comes ----------------------------------------------------------------------------------------------------

    def _on_frame(self, frame: Frame) -> None:
        if frame.kind in (Kind.REPLY, Kind.ERROR):
            self._on_answer(frame)
        elif frame.kind in (Kind.DATA, Kind.END, Kind.CREDIT, Kind.CANCEL):
            self._on_stream(frame)
        elif frame.kind == Kind.EXITED:
            self._on_exited(frame)
        else:
            raise ProtocolError(f"unexpected frame {frame.kind[:40]!r}")

    def _on_answer(self, frame: Frame) -> None:
        number = frame.number("id")
        if not 0 < number <= self._last_request:
            raise ProtocolError(f"answer to request {number}, which was never made")
        content = body.load(frame.payload)
        error = _error(content) if frame.kind == Kind.ERROR else None  # all that can be wrong with it is found before this
        answer = self._answers.pop(number, None)
        late = self._late.pop(number, None)
        stream = self._bound.pop(number, None)
        if stream is not None and self._streams.pop(stream.number, None) is not None:
            stream.on_answer()
        if error is not None:
            self._exits.pop(number, None)
            if answer is not None and not answer.done():
                answer.set_exception(error)
        elif answer is not None and not answer.done():
            answer.set_result(content)
        elif late is not None:
            late()

    def _on_stream(self, frame: Frame) -> None:
        number = frame.number("s")
        if not 0 < number <= self._last_stream:
            raise ProtocolError(f"{frame.kind} for stream {number}, which was never opened")
        stream = self._streams.get(number)
        if stream is None:
            return  # ended here while this was under way
        if isinstance(stream, InStream):
            if frame.kind == Kind.DATA:
                stream.on_data(frame.payload)
            elif frame.kind == Kind.END:
                del self._streams[number]
                stream.on_end()
            else:
                raise ProtocolError(f"{frame.kind} for stream {number}, which comes from the runner")
        elif frame.kind == Kind.CREDIT:
            stream.on_credit(frame.number("n"))
        elif frame.kind == Kind.CANCEL:
            stream.on_cancel()
        else:
            raise ProtocolError(f"{frame.kind} for stream {number}, which goes to the runner")

    def _on_exited(self, frame: Frame) -> None:
        number = frame.number("id")
        code, signum = frame.header.get("code"), frame.header.get("signal")
        if (code is None) == (signum is None) or not all(value is None or type(value) is int for value in (code, signum)):
            raise ProtocolError("exited frame: expected either code or signal")
        call = self._exits.pop(number, None)
        if call is None:
            raise ProtocolError(f"exit of process {number}, which does not run")
        call(ExitStatus(code, signum))


def _error(content: dict[str, Any]) -> RunnerError:
    fields = Fields(content)
    try:
        code = ErrorCode(fields.text("code"))
    except ValueError:
        raise ProtocolError(f"unknown error code {str(content.get('code'))[:40]!r}") from None
    detail = content.get("detail")
    return error_for(code, fields.text("message"), detail if isinstance(detail, dict) else {})
