"""Runs a task's tests in the verifier container, bounded in time and in what they print."""

from __future__ import annotations

import asyncio
import contextlib
import io
import signal
import stat
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from realcli.benchmark.bundles import read_tree
from realcli.wire.archive import END, Member, header, padding
from realcli_session.phases.quiesce import not_wedged
from realcli_session.runner.errors import FileMissing, FileTooLarge, NotRegular, PathRefused
from realcli_session.runner.port import RemoteStream, RunnerPort
from realcli_session.verify.reward import MAX_REWARD_BYTES, REWARD_JSON, REWARD_TXT, Unreadable

LOGS = "/logs/verifier"
CTRF_BYTES = 4 << 20
LOG_HEAD = 512 << 10
LOG_TAIL = 512 << 10
LINGER = 1.0


@dataclass(frozen=True, slots=True)
class Ran:
    """How test.sh ended. `timed_out`: it was killed at its limit."""

    exit_code: int | None
    timed_out: bool
    seconds: float
    log: bytes


def tests_archive(private: Path, run: bytes) -> bytes:
    """A tar with `/tests` (root's alone: the agent's programs must not read the answers) and an empty `/logs/verifier`."""
    files = [(f.path, 0o500 if f.mode & stat.S_IXUSR else 0o400, f.content) for f in read_tree(private, ["tests"])]
    files.append(("tests/run.json", 0o400, run))
    folders = sorted({str(parent) for path, _, _ in files for parent in Path(path).parents if str(parent) != "."})
    out = io.BytesIO()
    for folder in [*folders, "logs", LOGS.lstrip("/")]:
        out.write(header(Member(folder.encode(), "dir", mode=0o500 if folder.startswith("tests") else 0o755)))
    for path, mode, content in sorted(files):
        out.write(header(Member(path.encode(), "file", size=len(content), mode=mode)) + content + padding(len(content)))
    return out.getvalue() + END


async def put_tests(runner: RunnerPort, private: Path, run: bytes) -> None:
    """Replace `/tests` and `/logs/verifier` by the task's own and an empty one."""
    tar = tests_archive(private, run)

    async def source() -> AsyncIterator[bytes]:
        yield tar

    await runner.restore(source(), clear=["/tests", LOGS], max_bytes=len(tar))


async def run_tests(runner: RunnerPort, workdir: str, limit: float) -> Ran:
    """`bash /tests/test.sh` as root. At the limit its session is killed. Raises SpawnFailed and RunnerLost."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    env = dict(runner.hello.environ)
    process = await runner.spawn(["bash", "/tests/test.sh"], env=env, cwd=workdir, uid=0, gid=0)
    log = _Log()
    readers = [asyncio.create_task(_read(stream, log)) for stream in (process.stdout, process.stderr)]
    timed_out = False
    try:
        async with asyncio.timeout(limit):
            await process.wait()
    except TimeoutError:
        timed_out = True
        async with not_wedged(0.0, "kill the tests"):
            await process.signal(signal.SIGKILL, to="session")
            await process.wait()
    seconds = loop.time() - started
    _, waiting = await asyncio.wait(readers, timeout=LINGER)  # background processes may hold the streams for ever
    for reader in waiting:
        reader.cancel()
    for ended in await asyncio.gather(*readers, return_exceptions=True):
        if isinstance(ended, Exception):
            raise ended
    status = process.exit
    return Ran(status.code if status else None, timed_out, seconds, log.content())


async def read_rewards(runner: RunnerPort) -> dict[str, bytes | Unreadable]:
    """reward.json and reward.txt as they lie there, opened without following links."""
    files: dict[str, bytes | Unreadable] = {}
    for name in (REWARD_JSON, REWARD_TXT):
        with contextlib.suppress(FileMissing):
            try:
                files[name] = await runner.get_file(f"{LOGS}/{name}", limit=MAX_REWARD_BYTES)
            except (NotRegular, PathRefused, FileTooLarge) as error:
                files[name] = Unreadable(str(error))
    return files


async def read_ctrf(runner: RunnerPort) -> bytes | None:
    """The tests' own report, where there is one that can be read."""
    try:
        return await runner.get_file(f"{LOGS}/ctrf.json", limit=CTRF_BYTES)
    except (FileMissing, NotRegular, PathRefused, FileTooLarge):
        return None


class _Log:
    """The first and the last part of what was printed, both streams in the order they were read."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._dropped = 0

    def add(self, data: bytes) -> None:
        room = LOG_HEAD - len(self._head)
        self._head += data[:room]
        rest = data[room:]
        if rest:
            self._tail.append(rest)
            self._tail_size += len(rest)
        while self._tail_size > LOG_TAIL and len(self._tail) > 1:
            oldest = self._tail.popleft()
            self._tail_size -= len(oldest)
            self._dropped += len(oldest)

    def content(self) -> bytes:
        gap = f"\n[... {self._dropped} bytes left out ...]\n".encode() if self._dropped else b""
        return bytes(self._head) + gap + b"".join(self._tail)


async def _read(stream: RemoteStream, log: _Log) -> None:
    async for chunk in stream:
        log.add(chunk)
