"""`RunnerPort` over a connection."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from typing import Any

from realcli.wire.body import Fields, wire_bytes
from realcli.wire.frames import ProtocolError
from realcli.wire.protocol import VERSION, Op
from realcli_session.runner import rows
from realcli_session.runner.connection import Connection
from realcli_session.runner.errors import RunnerError, RunnerLost
from realcli_session.runner.port import (
    ByteSink,
    Completed,
    Hello,
    Path,
    ProcInfo,
    QuiesceReport,
    Recorded,
    Recording,
    RestoreReport,
    ScanResult,
    SignalTarget,
    SnapshotReport,
)
from realcli_session.runner.process import Process
from realcli_session.runner.streams import InStream, OutStream
from realcli_session.runner.transfers import Bounded, Kept, Whole, failed, give, receive, send

LINGER = 1.0
"""Seconds `run` waits for output that background processes still may send."""
CLOSE_SECONDS = 15.0
_ARCHIVE_SLACK = 64 << 20
MANIFEST_BYTES = 2 << 30
DELTA_SILENCE = 900.0
"""Seconds a delta may find nothing that changed."""


class RunnerClient:
    """See RunnerPort. Made by `Listener.accept`."""

    def __init__(self, connection: Connection, hello: Hello) -> None:
        self._connection = connection
        self._hello = hello
        self._mark = self._settled = 0

    @classmethod
    async def connect(cls, connection: Connection, peer_uid: int) -> RunnerClient:
        """Read the hello and begin. Raises RunnerLost or BadBody."""
        hello = rows.hello(Fields(await connection.hello()), peer_uid)
        if hello.version != VERSION:
            raise RunnerLost(f"the runner speaks version {hello.version}, this session {VERSION}")
        connection.start()
        return cls(connection, hello)

    @property
    def hello(self) -> Hello:
        """See RunnerPort."""
        return self._hello

    @property
    def lost(self) -> RunnerLost | None:
        """See RunnerPort."""
        return self._connection.lost()

    async def wait_lost(self) -> RunnerLost:
        """See RunnerPort."""
        return await self._connection.wait_lost()

    # -- processes -----------------------------------------------------------------------------------------------------

    async def spawn(
        self,
        argv: Sequence[Path],
        *,
        env: Mapping[str, str],
        cwd: Path,
        uid: int | None = None,
        gid: int | None = None,
        stdin: bool = False,
        recorded: bool = True,
    ) -> Process:
        """See RunnerPort."""
        connection = self._connection
        connection.check()
        feed = connection.open_out() if stdin else None
        process = Process(connection, feed, connection.open_in(), connection.open_in())
        content = {
            "argv": [_raw(argument) for argument in argv],
            "env": [[_raw(name), _raw(value)] for name, value in env.items()],
            "cwd": _raw(cwd),
            "uid": uid,
            "gid": gid,
            "recorded": recorded,
            "stdin": feed.number if feed is not None else None,
            "stdout": process.stdout.number,
            "stderr": process.stderr.number,
        }
        try:
            process.number, answer = connection.request(Op.SPAWN, content)
        except ValueError:
            connection.forget(feed, process.stdout, process.stderr)
            raise
        connection.on_exit(process.number, process.on_exit)
        try:
            fields = await connection.answer(process.number, answer, Op.SPAWN, late=process.abandon)
        except RunnerError:
            connection.forget(feed, process.stdout, process.stderr)
            raise
        with connection.believing():
            process.pid = fields.integer("pid", 1)
        return process

    async def run(
        self,
        argv: Sequence[Path],
        *,
        env: Mapping[str, str],
        cwd: Path,
        uid: int | None = None,
        gid: int | None = None,
        input: bytes = b"",
        seconds: float,
        output_limit: int = 1 << 20,
        recorded: bool = False,
    ) -> Completed:
        """See RunnerPort."""
        process = await self.spawn(argv, env=env, cwd=cwd, uid=uid, gid=gid, stdin=True, recorded=recorded)
        stdout, stderr = Kept(output_limit), Kept(output_limit)
        readers = [
            asyncio.create_task(stdout.take(process.stdout)),
            asyncio.create_task(stderr.take(process.stderr)),
            asyncio.create_task(_input(process.stdin, input)),
        ]
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                status = await process.wait()
            await asyncio.wait(readers[:2], timeout=LINGER)
        except TimeoutError:
            if limit.expired():
                await process.signal(signal.SIGKILL, to="session")
                await process.wait()
            raise
        finally:
            for reader in readers:
                reader.cancel()
            outcomes = await asyncio.gather(*readers, return_exceptions=True)
            if process.exit is None:
                process.abandon()
            process.stdout.discard()
            process.stderr.discard()
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        return Completed(status, bytes(stdout.data), bytes(stderr.data), stdout.cut or stderr.cut)

    async def signal_pid(self, pid: int, signum: int, *, to: SignalTarget = "process", start_ticks: int | None = None) -> int:
        """See RunnerPort."""
        content = {"pid": pid, "signal": int(signum), "to": to, "start": start_ticks}
        fields = await self._connection.ask(Op.SIGNAL_PID, content)
        with self._connection.believing():
            return fields.integer("count")

    async def procs(self) -> tuple[ProcInfo, ...]:
        """See RunnerPort."""
        found = rows.Lines(100_000)
        await receive(self._connection, Op.PROCS, {}, found)
        with self._connection.believing():
            return tuple(rows.proc(row) for row in found.rows)

    async def quiesce(self, *, grace: float = 10.0, kill: float = 30.0) -> QuiesceReport:
        """See RunnerPort."""
        found = rows.Lines(3000)
        fields = await receive(self._connection, Op.QUIESCE, {"grace": grace, "kill": kill}, found, extra=grace + kill)
        with self._connection.believing():
            return rows.quiesce(fields, found.rows)

    async def record(self) -> Recording:
        """See RunnerPort."""
        connection = self._connection
        connection.check()
        stream = connection.open_in()
        number, answer = connection.request(Op.RECORD, {"stream": stream.number})  # the stream outlives the answer
        try:
            fields = await connection.answer(number, answer, Op.RECORD)
        except RunnerError:
            connection.forget(stream)
            raise
        with connection.believing():
            works, why = fields.flag("works"), fields.text("why")
        return Recording(works, why, self._commands(stream))

    async def _commands(self, stream: InStream) -> AsyncIterator[Recorded]:
        rest = b""
        while chunk := await stream.read():
            with self._connection.believing():
                *lines, rest = (rest + chunk).split(b"\n")
                if len(rest) > rows.MAX_LINE:
                    raise ProtocolError("a recorded command is too long")
                found = [rows.recorded(line) for line in lines]
            for row in found:
                if isinstance(row, int):
                    self._settled = max(self._settled, row)
                    self._connection.signal.changed()
                else:
                    yield row

    async def settle_record(self) -> None:
        """See RunnerPort."""
        self._mark += 1
        mark = self._mark
        await self._connection.ask(Op.SETTLE, {"mark": mark})
        while self._settled < mark:
            self._connection.check()
            await self._connection.signal.wait()

    # -- files ---------------------------------------------------------------------------------------------------------

    async def put_file(
        self,
        path: Path,
        data: bytes,
        *,
        mode: int | None = None,
        uid: int | None = None,
        gid: int | None = None,
        parents: bool = True,
    ) -> None:
        """See RunnerPort."""
        content = {"path": _raw(path), "mode": mode, "uid": uid, "gid": gid, "parents": parents}
        await send(self._connection, Op.PUT_FILE, content, _once(data))

    async def put_tree(
        self, dest: Path, source: AsyncIterable[bytes], *, max_bytes: int = 1 << 30, max_entries: int = 100_000
    ) -> RestoreReport:
        """See RunnerPort."""
        return await self._unpack(source, dest, (), max_bytes, max_entries, False)

    async def restore(
        self,
        source: AsyncIterable[bytes],
        *,
        root: Path = "/",
        clear: Sequence[Path] = (),
        max_bytes: int,
        max_entries: int = 1_000_000,
        delta: bool = False,
    ) -> RestoreReport:
        """See RunnerPort."""
        return await self._unpack(source, root, clear, max_bytes, max_entries, delta)

    async def _unpack(
        self, source: AsyncIterable[bytes], root: Path, clear: Sequence[Path], max_bytes: int, max_entries: int, delta: bool
    ) -> RestoreReport:
        content = {
            "root": _raw(root),
            "clear": [_raw(path) for path in clear],
            "max_bytes": max_bytes,
            "max_entries": max_entries,
            "delta": delta,
        }
        fields = await send(self._connection, Op.UNPACK, content, source)
        with self._connection.believing():
            return rows.restored(fields)

    async def get_file(self, path: Path, *, limit: int = 1 << 20) -> bytes:
        """See RunnerPort."""
        kept = Whole(limit)
        await receive(self._connection, Op.GET_FILE, {"path": _raw(path), "limit": limit}, kept)
        return bytes(kept.data)

    async def scan(
        self,
        globs: Sequence[Path],
        *,
        max_files: int = 10_000,
        max_bytes: int = 64 << 20,
        hash_limit: int = 1 << 20,
        budget: float = 0.5,
    ) -> ScanResult:
        """See RunnerPort."""
        content = {
            "globs": [_raw(glob) for glob in globs],
            "max_files": max_files,
            "max_bytes": max_bytes,
            "hash_limit": hash_limit,
            "budget": budget,
        }
        found = rows.Lines(max_files)
        fields = await receive(self._connection, Op.SCAN, content, found, extra=budget)
        with self._connection.believing():
            return rows.scan(fields, found.rows)

    async def snapshot(
        self,
        paths: Sequence[Path],
        to: ByteSink,
        *,
        max_bytes: int,
        max_entries: int = 1_000_000,
        exclude: Sequence[Path] = (),
    ) -> SnapshotReport:
        """See RunnerPort."""
        content = {
            "paths": [_raw(path) for path in paths],
            "exclude": [_raw(path) for path in exclude],
            "max_bytes": max_bytes,
            "max_entries": max_entries,
        }
        sink = Bounded(to, max_bytes + 2048 * max_entries + _ARCHIVE_SLACK)
        fields = await receive(self._connection, Op.SNAPSHOT, content, sink)
        with self._connection.believing():
            return rows.snapshot(fields)

    async def manifest(self, to: ByteSink) -> int:
        """See RunnerPort."""
        fields = await receive(self._connection, Op.MANIFEST, {}, Bounded(to, MANIFEST_BYTES))
        with self._connection.believing():
            return fields.integer("entries")

    async def delta(
        self,
        base: AsyncIterable[bytes],
        to: ByteSink,
        *,
        max_bytes: int,
        max_entries: int = 1_000_000,
        exclude: Sequence[Path] = (),
    ) -> SnapshotReport:
        """See RunnerPort."""
        connection = self._connection
        connection.check()
        stream, feed = connection.open_in(), connection.open_out()
        content = {
            "stream": stream.number,
            "base": feed.number,
            "max_bytes": max_bytes,
            "max_entries": max_entries,
            "exclude": [_raw(path) for path in exclude],
        }
        number, answer = connection.request(Op.DELTA, content, stream)
        sink = Bounded(to, max_bytes + 2048 * max_entries + _ARCHIVE_SLACK)
        feeding = asyncio.create_task(give(feed, base))
        feeding.add_done_callback(lambda task: stream.discard() if failed(task) else None)
        try:
            while chunk := await connection.within(DELTA_SILENCE, stream.read(), Op.DELTA):
                with connection.believing():
                    await sink.write(chunk)
            if failed(feeding):
                feeding.result()
            fields = await connection.answer(number, answer, Op.DELTA)
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
            if not answer.done():
                answer.cancel()
            stream.discard()
            feed.abandon()
        with connection.believing():
            return rows.snapshot(fields)

    async def close(self) -> None:
        """See RunnerPort."""
        if self._connection.lost() is None:
            try:
                await self._connection.ask(Op.EXIT, {})
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._connection.wait_lost()
            except (RunnerLost, TimeoutError):
                pass  # it is gone, or will find the socket closed
        await self._connection.close("closed")


async def _input(stdin: OutStream | None, data: bytes) -> None:
    assert stdin is not None
    stdin.write(data)
    await stdin.close()


async def _once(data: bytes) -> Any:
    if data:
        yield data


def _raw(value: Path) -> Any:
    return wire_bytes(value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape"))
