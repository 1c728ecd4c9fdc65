"""Children of the runner: started as session leaders, read and fed through pipes under credit, reaped as PID 1 has to.

All of this runs in the main loop's thread alone, so a process id in hand is never one that has been reaped and given away.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from realcli.wire.body import Fields
from realcli.wire.frames import ProtocolError, encode
from realcli.wire.protocol import CHUNK, MAX_PROCESSES, ErrorCode, Kind
from realcli.wire.windows import ReceiveWindow, SendWindow
from realcli_runner import procfs
from realcli_runner.errors import Failure
from realcli_runner.loop import READ, WRITE, Loop
from realcli_runner.recorder import Born, Recorder
from realcli_runner.streams import Post, Stream

REAP_AT_ONCE = 512
Congested = Callable[[], bool]


class OutputPipe:
    """A child's stdout or stderr on its way to the session."""

    def __init__(self, number: int, fd: int, loop: Loop, send: Post, congested: Congested, closed: Callable[[int], None]) -> None:
        self._number = number
        self._fd = fd
        self._loop = loop
        self._send = send
        self._congested = congested
        self._closed = closed
        self._window = SendWindow()
        self._discard = False
        self.ended = False
        self.consider()

    def consider(self) -> None:
        """Watch the pipe if there is a use for what it holds."""
        if not self.ended:
            wanted = self._discard or (self._window.credit > 0 and not self._congested())
            self._loop.watch(self._fd, READ if wanted else 0, self._ready)

    def _ready(self, _: int) -> None:
        try:
            data = os.read(self._fd, CHUNK if self._discard else min(CHUNK, self._window.credit))
        except BlockingIOError:
            return
        if not data:
            self.close()
        elif not self._discard:
            self._window.spend(len(data))
            self._send(encode({"t": Kind.DATA, "s": self._number}, data))
            self.consider()

    def close(self) -> None:
        """Everybody on the other side is gone."""
        self.ended = True
        self._loop.watch(self._fd, 0, self._ready)
        os.close(self._fd)
        self._send(encode({"t": Kind.END, "s": self._number}))
        self._closed(self._number)

    def on_data(self, data: bytes) -> None:
        """See Stream."""
        raise ProtocolError(f"data on stream {self._number}, which goes to the session")

    def on_end(self) -> None:
        """See Stream."""
        raise ProtocolError(f"end of stream {self._number}, which goes to the session")

    def on_credit(self, size: int) -> None:
        """See Stream."""
        self._window.grant(size)
        self.consider()

    def on_cancel(self) -> None:
        """See Stream: read on, so that the writer is not stopped, into nothing."""
        self._discard = True
        self.consider()


class InputPipe:
    """A child's stdin, fed by the session."""

    def __init__(self, number: int, fd: int, loop: Loop, send: Post) -> None:
        self._number = number
        self._fd = fd
        self._loop = loop
        self._send = send
        self._window = ReceiveWindow()
        self._queue: deque[memoryview] = deque()
        self._ending = False
        self.closed = False

    def on_data(self, data: bytes) -> None:
        """See Stream."""
        if self._ending:
            raise ProtocolError(f"data after the end of stream {self._number}")
        self._window.received(len(data))
        if not self.closed and data:
            self._queue.append(memoryview(data))
            self._loop.watch(self._fd, WRITE, self._ready)

    def on_end(self) -> None:
        """See Stream."""
        self._ending = True
        if not self._queue:
            self.close()

    def on_credit(self, size: int) -> None:
        """See Stream."""
        raise ProtocolError(f"credit on stream {self._number}, which comes from the session")

    def on_cancel(self) -> None:
        """See Stream."""
        self._queue.clear()
        self.close()

    def _ready(self, _: int) -> None:
        try:
            written = os.write(self._fd, self._queue[0][:CHUNK])
        except BlockingIOError:
            return
        except OSError:  # EPIPE: nobody reads
            self._queue.clear()
            self.close()
            self._send(encode({"t": Kind.CANCEL, "s": self._number}))
            return
        if written == len(self._queue[0]):
            self._queue.popleft()
        else:
            self._queue[0] = self._queue[0][written:]
        grant = self._window.taken(written)
        if grant:
            self._send(encode({"t": Kind.CREDIT, "s": self._number, "n": grant}))
        if not self._queue:
            self._loop.watch(self._fd, 0, self._ready)
            if self._ending:
                self.close()

    def close(self) -> None:
        """Give the child its end of file."""
        if not self.closed:
            self.closed = True
            self._loop.watch(self._fd, 0, self._ready)
            os.close(self._fd)


@dataclass
class Child:
    """One started process, known by the number of the request that started it."""

    number: int
    pid: int
    outputs: dict[int, OutputPipe]
    input: InputPipe | None
    exited: bool = False

    @property
    def finished(self) -> bool:
        """Nothing will come of it any more."""
        return self.exited and all(pipe.ended for pipe in self.outputs.values())


class Processes:
    """All of them."""

    def __init__(self, loop: Loop, send: Post, congested: Congested, streams: dict[int, Stream], recorder: Recorder) -> None:
        self._recorder = recorder
        self._loop = loop
        self._send = send
        self._congested = congested
        self._streams = streams
        self._children: dict[int, Child] = {}
        self._by_pid: dict[int, Child] = {}
        self._pids: dict[int, int] = {}

    def spawn(self, number: int, fields: Fields) -> int:
        """Start a program; returns its pid. Its streams are open from here on."""
        if len(self._children) >= MAX_PROCESSES:
            raise Failure(ErrorCode.BUSY, f"{MAX_PROCESSES} processes are open")
        argv = fields.raws("argv")
        if not argv:
            raise Failure(ErrorCode.BAD_REQUEST, "argv: must not be empty")
        uid = fields.optional_integer("uid", 0, (1 << 32) - 2)
        gid = fields.optional_integer("gid", 0, (1 << 32) - 2)
        environ, cwd = fields.pairs("env"), fields.raw("cwd")
        recorded = fields.flag("recorded")
        wants_input = fields.optional_integer("stdin", 1)
        numbers = (fields.integer("stdout", 1), fields.integer("stderr", 1))
        ends: list[int] = []
        try:
            for _ in range(3):
                ends.extend(os.pipe2(os.O_CLOEXEC))
            stdin_read, stdin_write, stdout_read, stdout_write, stderr_read, stderr_write = ends
            start = partial(_start, argv, environ, cwd, (stdin_read, stdout_write, stderr_write), uid, gid)
            started = self._recorder.spawn(start, argv, cwd) if recorded and self._recorder.working else start()
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            for fd in ends:
                os.close(fd)
            code = error.errno if isinstance(error, OSError) else None
            name = argv[0].decode("utf-8", "backslashreplace")
            raise Failure(ErrorCode.SPAWN_FAILED, f"{name[:1000]}: {error}", errno=code) from None
        started.returncode = 0  # this module reaps; Popen must not
        for fd in (stdin_read, stdout_write, stderr_write):
            os.close(fd)
        for fd in (stdin_write, stdout_read, stderr_read):
            os.set_blocking(fd, False)
        stdin = None
        if wants_input is None:
            os.close(stdin_write)
        else:
            stdin = InputPipe(wants_input, stdin_write, self._loop, self._send)
            self._streams[wants_input] = stdin
        child = Child(number, started.pid, {}, stdin)
        for stream, fd in zip(numbers, (stdout_read, stderr_read), strict=True):
            pipe = OutputPipe(stream, fd, self._loop, self._send, self._congested, lambda s: self._output_closed(child, s))
            child.outputs[stream] = pipe
            self._streams[stream] = pipe
        self._children[number] = child
        self._by_pid[child.pid] = child
        self._pids[number] = child.pid
        return child.pid

    def _output_closed(self, child: Child, stream: int) -> None:
        del self._streams[stream]
        self._forget_if_finished(child)

    def _forget_if_finished(self, child: Child) -> None:
        if child.finished:
            del self._children[child.number]
            if child.input is not None:
                child.input.close()

    def resume(self) -> None:
        """The way to the session is free again."""
        for child in self._children.values():
            for pipe in child.outputs.values():
                pipe.consider()

    def reap(self) -> bool:
        """Collect ended children, orphans that came to us included. True when there may be more."""
        for _ in range(REAP_AT_ONCE):
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return False
            child = self._by_pid.pop(pid, None)
            if child is None:
                continue
            child.exited = True
            code = os.waitstatus_to_exitcode(status)
            header = {
                "t": Kind.EXITED,
                "id": child.number,
                "code": code if code >= 0 else None,
                "signal": -code if code < 0 else None,
            }
            self._send(encode(header))
            self._forget_if_finished(child)
        return True

    def signal(self, number: int, signum: int, to: str) -> int:
        """Signal a started process, its group or its session; how many were there (1 for a group that exists)."""
        pid = self._pids.get(number)
        if pid is None:
            raise Failure(ErrorCode.NO_SUCH_PROCESS, f"request {number} did not start a process")
        if pid not in self._by_pid and (to == "process" or procfs.read(pid) is not None):
            # Reaped. The kernel gives its number away only when its group and session are empty, so whoever has it is a stranger.
            return 0
        if to == "process":
            return _kill(pid, signum)
        return _kill(-pid, signum) if to == "group" else signal_session(pid, signum)


class _Announced(subprocess.Popen[bytes]):
    """Says its number as soon as it has one: it waits for the program to be executed then."""

    def __init__(self, born: Born, argv: list[bytes], **facts: Any) -> None:
        self._born = born
        super().__init__(argv, **facts)

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == "pid" and isinstance(value, int):
            self._born(value)


def _start(
    argv: list[bytes],
    environ: dict[bytes, bytes],
    cwd: bytes,
    streams: tuple[int, int, int],
    uid: int | None,
    gid: int | None,
    born: Born = lambda _: None,
) -> subprocess.Popen[bytes]:
    return _Announced(
        born,
        argv,
        env=environ,
        cwd=cwd,
        stdin=streams[0],
        stdout=streams[1],
        stderr=streams[2],
        start_new_session=True,
        user=uid,
        group=gid if gid is not None else uid,
        extra_groups=[] if uid is not None else None,
    )


def _kill(pid: int, signum: int) -> int:
    try:
        os.kill(pid, signum)
    except ProcessLookupError:
        return 0
    except OSError as error:
        raise Failure(ErrorCode.IO, f"signal {signum} to {pid}: {error.strerror}", errno=error.errno) from None
    return 1


def signal_session(sid: int, signum: int) -> int:
    """Signal every process of a session, whatever group it is in."""
    return sum(_kill(proc.pid, signum) for proc in procfs.table() if proc.sid == sid and proc.pid != os.getpid())


def signal_pid(proc: procfs.Proc, signum: int, to: str) -> int:
    """Signal a process of the table, its group or its session."""
    if to == "process":
        return _signal_exactly(proc, signum)
    own = (os.getpid(), os.getpgid(0), os.getsid(0))
    if to == "group":
        if proc.pgid in own or proc.pgid <= 1:
            raise Failure(ErrorCode.BAD_REQUEST, f"process {proc.pid} is in the runner's own group")
        return _kill(-proc.pgid, signum)
    if proc.sid in own or proc.sid <= 1:
        raise Failure(ErrorCode.BAD_REQUEST, f"process {proc.pid} is in the runner's own session")
    return signal_session(proc.sid, signum)


def _signal_exactly(proc: procfs.Proc, signum: int) -> int:
    """By pidfd, checked after opening: never another process that got the number meanwhile."""
    try:
        fd = os.pidfd_open(proc.pid)
    except ProcessLookupError:
        return 0
    try:
        now = procfs.read(proc.pid)
        if now is None or now.start != proc.start:
            return 0
        signal.pidfd_send_signal(fd, signum)
    except ProcessLookupError:
        return 0
    except OSError as error:
        raise Failure(ErrorCode.IO, f"signal {signum} to {proc.pid}: {error.strerror}", errno=error.errno) from None
    finally:
        os.close(fd)
    return 1
