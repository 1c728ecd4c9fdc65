"""The exec server: one connection, one main loop that never blocks, everything the session asks for."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from realcli.wire import body
from realcli.wire.body import Fields
from realcli.wire.frames import Frame, FrameDecoder, ProtocolError, encode
from realcli.wire.protocol import MAX_IN_FLIGHT, ErrorCode, Kind, Op
from realcli_runner import facts, procfs
from realcli_runner.errors import Failure
from realcli_runner.feed import Feed
from realcli_runner.jobs import SENDING, TAKING, Jobs, refusal, reply
from realcli_runner.loop import READ, WRITE, Loop
from realcli_runner.processes import Processes, signal_pid
from realcli_runner.quiesce import others
from realcli_runner.recorder import Recorder
from realcli_runner.streams import Inlet, Outlet, Stream
from realcli_runner.walking import Territory

HIGH_WATER = 1 << 20
LOW_WATER = 256 << 10
TREES = 3
"""Times that the process tree is read before a living process is taken for a stranger."""
_TARGETS = ("process", "group", "session")


class Server:
    """Serves one connected socket until it closes."""

    def __init__(self, connection: socket.socket, territory: Territory, *, exec_record: bool = True) -> None:
        self._connection = connection
        self._connection.setblocking(False)
        self._loop = Loop()
        self._decoder = FrameDecoder()
        self._out: deque[memoryview] = deque()
        self._out_size = 0
        self._was_congested = False
        self._streams: dict[int, Stream] = {}
        self._last_stream = 0
        self._last_request = 0
        self._in_flight = 0
        self._quiescing = 0
        self._closing = False
        self._gone = False
        self._them = others()
        self._recorder = Recorder(allowed=exec_record)
        self._feed: Feed | None = None
        self._processes = Processes(self._loop, self._send, self._congested, self._streams, self._recorder)
        self._jobs = Jobs(territory, self._them, self._post_frame)

    def serve(self) -> None:
        """Until the session closes the connection or asks to exit. ProtocolError when it does not speak our language."""
        signal.set_wakeup_fd(self._loop.wake_fd, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # only the wake-up matters
        self._send(encode({"t": Kind.HELLO}, facts.hello()))
        while not self._gone:
            self._loop.turn()
            if self._processes.reap():  # a bounded step: the orphans of a fork bomb may come faster than they go
                self._loop.post(lambda: None)
            if self._closing and not self._out:
                return

    def kill_everything(self, seconds: float = 10.0) -> None:
        """Nothing of what was started here outlives the runner."""
        end = time.monotonic() + seconds
        while not self._them.gone() and time.monotonic() < end:
            self._them.signal(signal.SIGKILL)
            while self._processes.reap():
                pass
            time.sleep(0.005)

    # -- the connection ------------------------------------------------------------------------------------------------

    def _watch_connection(self) -> None:
        self._loop.watch(self._connection.fileno(), READ | (WRITE if self._out else 0), self._on_connection)

    def _on_connection(self, events: int) -> None:
        if events & WRITE:
            self._flush()
        if events & READ and not self._gone:
            try:
                data = self._connection.recv(256 * 1024)
            except BlockingIOError:
                return
            except ConnectionError:
                data = b""
            if not data:
                self._lose()
                return
            for frame in self._decoder.feed(data):
                self._on_frame(frame)

    def _lose(self) -> None:
        self._gone = True
        self._out.clear()
        self._loop.watch(self._connection.fileno(), 0, self._on_connection)

    def _flush(self) -> None:
        try:
            while self._out:
                sent = self._connection.send(self._out[0])
                self._out_size -= sent
                if sent == len(self._out[0]):
                    self._out.popleft()
                else:
                    self._out[0] = self._out[0][sent:]
        except BlockingIOError:
            pass
        except ConnectionError:
            self._lose()
            return
        self._watch_connection()
        if self._was_congested and self._out_size <= LOW_WATER:
            self._was_congested = False
            self._processes.resume()
            if self._feed is not None:
                self._feed.consider()

    def _send(self, frame: bytes) -> None:
        if not self._gone:
            self._out.append(memoryview(frame))
            self._out_size += len(frame)
            self._watch_connection()

    def _post_frame(self, frame: bytes) -> None:
        self._loop.post(partial(self._send, frame))

    def _congested(self) -> bool:
        self._was_congested = self._was_congested or self._out_size >= HIGH_WATER
        return self._was_congested

    # -- frames --------------------------------------------------------------------------------------------------------

    def _on_frame(self, frame: Frame) -> None:
        if frame.kind == Kind.REQUEST:
            self._on_request(frame)
            return
        if frame.kind not in (Kind.DATA, Kind.END, Kind.CREDIT, Kind.CANCEL):
            raise ProtocolError(f"unexpected frame {frame.kind[:40]!r}")
        number = frame.number("s")
        if not 0 < number <= self._last_stream:
            raise ProtocolError(f"{frame.kind} for stream {number}, which was never opened")
        stream = self._streams.get(number)
        if stream is None:
            return  # it ended here while this was under way
        if frame.kind == Kind.DATA:
            stream.on_data(frame.payload)
        elif frame.kind == Kind.END:
            stream.on_end()
        elif frame.kind == Kind.CREDIT:
            stream.on_credit(frame.number("n"))
        else:
            stream.on_cancel()

    def _on_request(self, frame: Frame) -> None:
        number = frame.number("id")
        if number <= self._last_request:
            raise ProtocolError(f"request {number} after request {self._last_request}")
        self._last_request = number
        try:
            op = Op(str(frame.header.get("op")))
        except ValueError:
            raise ProtocolError(f"unknown operation {str(frame.header.get('op'))[:40]!r}") from None
        try:
            fields = Fields(body.load(frame.payload))
            self._open_streams(op, fields)
            if self._in_flight >= MAX_IN_FLIGHT:
                raise Failure(ErrorCode.BUSY, f"{MAX_IN_FLIGHT} requests are unanswered")
            self._dispatch(number, op, fields)
        except body.BadBody as error:
            self._send(refusal(number, Failure(ErrorCode.BAD_REQUEST, f"{op}: {error}")))
        except Failure as failure:
            self._send(refusal(number, failure))

    def _open_streams(self, op: Op, fields: Fields) -> None:
        """Stream numbers rise, so that a late frame for a closed stream is never taken for one of another stream."""
        names: tuple[str, ...] = ("stream",) if op in SENDING | TAKING | {Op.RECORD} else ()
        if op is Op.SPAWN:
            names = ("stdin", "stdout", "stderr")
        elif op is Op.DELTA:
            names = ("stream", "base")
        for name in names:
            number = fields.optional_integer(name, self._last_stream + 1, (1 << 53) - 1)
            if number is not None:
                self._last_stream = number
            elif name != "stdin":
                raise body.BadBody(f"{name}: a stream number is needed")

    def _dispatch(self, number: int, op: Op, fields: Fields) -> None:
        if op in SENDING or op in TAKING:
            self._start_job(number, op, fields)
            return
        answer: dict[str, Any] = {}
        if op is Op.SPAWN:
            if self._quiescing:
                raise Failure(ErrorCode.QUIESCING, "no process is started while everything is being ended")
            answer = {"pid": self._processes.spawn(number, fields)}
        elif op is Op.SIGNAL:
            answer = {"count": self._processes.signal(fields.integer("process"), _signum(fields), _target(fields))}
        elif op is Op.SIGNAL_PID:
            answer = {"count": self._signal_pid(fields)}
        elif op is Op.RECORD:
            answer = self._record(fields)
        elif op is Op.SETTLE:
            if not self._recorder.working:
                raise Failure(ErrorCode.BAD_REQUEST, "no commands are recorded")
            self._recorder.settle(fields.integer("mark"))
        elif op is Op.EXIT:
            self._closing = True
        self._send(reply(number, answer))

    def _start_job(self, number: int, op: Op, fields: Fields) -> None:
        stream_number = fields.integer("stream")
        stream: Outlet | Inlet = (Outlet if op in SENDING else Inlet)(stream_number, self._post_frame)
        self._streams[stream_number] = stream
        numbers = [stream_number]
        base = None
        if op is Op.DELTA:
            numbers.append(fields.integer("base"))
            self._streams[numbers[1]] = base = Inlet(numbers[1], self._post_frame)
        self._in_flight += 1
        self._quiescing += op is Op.QUIESCE
        finished: Callable[[], None] = partial(self._job_done, op, numbers)
        self._jobs.start(number, op, fields, stream, lambda: self._loop.post(finished), base)

    def _job_done(self, op: Op, numbers: list[int]) -> None:
        self._in_flight -= 1
        self._quiescing -= op is Op.QUIESCE
        for number in numbers:
            del self._streams[number]

    def _record(self, fields: Fields) -> dict[str, Any]:
        """Have commands recorded from the next recorded spawn on; the stream stays open as long as the connection."""
        number = fields.integer("stream")
        feed = Feed(number, self._send, self._loop.post, self._congested)
        refused = self._recorder.start(feed)
        if refused is None:
            self._feed = self._streams[number] = feed
        else:
            self._send(encode({"t": Kind.END, "s": number}))
        return {"works": refused is None, "why": refused or ""}

    def _signal_pid(self, fields: Fields) -> int:
        pid = fields.integer("pid", 2)
        start = fields.optional_integer("start")
        if pid == os.getpid():
            raise Failure(ErrorCode.BAD_REQUEST, "the runner does not signal itself")
        proc = procfs.read(pid)
        if proc is None or (start is not None and proc.start != start):
            return 0
        if os.getpid() != 1 and not self._descends(proc):
            if (now := procfs.read(pid)) is None or now.start != proc.start:
                return 0
            raise Failure(ErrorCode.NO_SUCH_PROCESS, f"{pid} is not a descendant of the runner")
        return signal_pid(proc, _signum(fields), _target(fields))

    def _descends(self, proc: procfs.Proc) -> bool:
        """A tree is not read at one moment: who ends then, or gets another parent, may be missing from it once."""
        return any(proc.pid in procfs.tree(os.getpid()) for _ in range(TREES))


def _signum(fields: Fields) -> int:
    return fields.integer("signal", 1, signal.NSIG - 1)


def _target(fields: Fields) -> str:
    target = fields.text("to")
    if target not in _TARGETS:
        raise Failure(ErrorCode.BAD_REQUEST, f"to: expected one of {', '.join(_TARGETS)}")
    return target
