"""Processes: what goes in, what comes out, how they end, and that nothing is left behind."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from realcli.wire.protocol import ErrorCode
from realcli_session.runner import RemoteProcess, RunnerError, RunnerLost, SpawnFailed
from realcli_session.runner.port import ExitStatus

ENV = {"PATH": "/usr/bin:/bin"}
SECONDS = 60


async def collect(stream) -> bytes:
    return b"".join([chunk async for chunk in stream])


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """For what another process does: the time is a way out, not a claim."""
    async with asyncio.timeout(SECONDS):
        while not await condition():  # noqa: ASYNC110 (the other process has no other way to tell)
            await asyncio.sleep(0.01)


async def shell(running, script: str, **more) -> RemoteProcess:
    return await running.client.spawn(["sh", "-c", script], env=ENV, cwd="/", **more)


async def test_output_exit_environment_and_directory(running) -> None:
    done = await running.client.run(
        ["sh", "-c", 'pwd; env; echo "$0|$1" >&2; exit 3', "zero", b"\xff\xfe"],
        env=ENV | {"A": "1", "RAW": "\udcff"},
        cwd="/usr/bin",
        seconds=SECONDS,
    )
    assert done.status == ExitStatus(3, None)
    lines = done.stdout.splitlines()
    assert lines[0] == b"/usr/bin"
    assert {b"A=1", b"RAW=\xff", b"PATH=/usr/bin:/bin"} <= set(lines)
    assert not any(line.startswith((b"HOME=", b"REALCLI")) for line in lines)
    assert done.stderr == b"zero|\xff\xfe\n"


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGSEGV, signal.SIGUSR1])
async def test_death_by_signal_is_told_apart(running, signum: int) -> None:
    done = await running.client.run(["sh", "-c", f"kill -{int(signum)} $$"], env=ENV, cwd="/", seconds=SECONDS)
    assert done.status == ExitStatus(None, signum)


async def test_a_child_starts_with_default_signals_and_no_descriptors_of_ours(running) -> None:
    script = (
        "import os,signal; print(sorted(int(f) for f in os.listdir('/proc/self/fd'))[:4],"
        " [s for s in (signal.SIGPIPE, signal.SIGTERM, signal.SIGCHLD) if signal.getsignal(s) is not signal.SIG_DFL],"
        " signal.pthread_sigmask(signal.SIG_BLOCK, []), os.getsid(0) == os.getpid() == os.getpgid(0))"
    )
    # SIGPIPE is ignored by Python itself, so it is read from the kernel
    done = await running.client.run(
        [sys.executable, "-I", "-c", script + "; print(open('/proc/self/status').read())"], env=ENV, cwd="/", seconds=SECONDS
    )
    first, *status = done.stdout.decode().splitlines()
    assert first == f"[0, 1, 2, 3] [{signal.SIGPIPE!r}] set() True"  # 3 is the listing itself
    ignored = next(int(line.split()[1], 16) for line in status if line.startswith("SigIgn:"))
    # signals 32 and 33 belong to libc, which lets nobody reset them; GNU make leaves them ignored in all it starts
    ours = (1 << 31) - 1
    assert ignored & ours & ~(1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)) == 0


async def test_stdin_goes_through_and_ends(running) -> None:
    data = os.urandom(3_000_000)
    done = await running.client.run(["cat"], env=ENV, cwd="/", input=data, seconds=SECONDS, output_limit=len(data))
    assert done.stdout == data
    assert not done.truncated


async def test_without_stdin_there_is_end_of_file(running) -> None:
    process = await running.client.spawn(["cat"], env=ENV, cwd="/")
    assert process.stdin is None
    assert await process.wait() == ExitStatus(0, None)


async def test_stdin_of_a_process_that_closed_it(running) -> None:
    process = await shell(running, "exec 0<&-; echo closed; sleep 100", stdin=True)
    assert await process.stdout.read() == b"closed\n"
    async with asyncio.timeout(SECONDS):
        while not process.stdin.broken:
            process.stdin.write(bytes(100_000))
            await process.stdin.drain()
    await process.stdin.close()
    assert process.exit is None
    await process.signal(signal.SIGKILL)
    assert await process.wait() == ExitStatus(None, signal.SIGKILL)


@pytest.mark.parametrize(
    ("argv", "cwd", "code"),
    [
        (["/does/not/exist"], "/", errno.ENOENT),
        (["does-not-exist"], "/", errno.ENOENT),
        (["/etc/passwd"], "/", errno.EACCES),
        (["true"], "/does/not/exist", errno.ENOENT),
        (["true"], "/etc/passwd", errno.ENOTDIR),
    ],
)
async def test_what_cannot_be_started(running, argv: list[str], cwd: str, code: int) -> None:
    with pytest.raises(SpawnFailed) as caught:
        await running.client.spawn(argv, env=ENV, cwd=cwd)
    assert caught.value.errno == code
    assert (await running.client.run(["true"], env=ENV, cwd="/", seconds=SECONDS)).status.code == 0


@pytest.mark.parametrize(("argv", "env"), [([], ENV), (["a\0b"], ENV), (["true"], {"A=B": "1"}), (["true"], {"A": "\0"})])
async def test_what_the_kernel_cannot_take_is_a_bad_request(running, argv: list[str], env: dict[str, str]) -> None:
    with pytest.raises(RunnerError) as caught:
        await running.client.spawn(argv, env=env, cwd="/")
    assert caught.value.code is ErrorCode.BAD_REQUEST


async def test_another_user_has_no_groups(pod) -> None:
    done = await pod.client.run(["sh", "-c", "id -u; id -g; id -G"], env=ENV, cwd="/", uid=4321, seconds=SECONDS)
    assert done.stdout.split() == [b"4321"] * 3
    done = await pod.client.run(["sh", "-c", "id -u; id -G"], env=ENV, cwd="/", uid=4321, gid=99, seconds=SECONDS)
    assert done.stdout.split() == [b"4321", b"99"]


async def test_the_end_of_the_leader_is_told_while_its_streams_are_held(running) -> None:
    process = await shell(running, "sleep 1000 & echo started")
    assert await process.stdout.read() == b"started\n"
    assert await process.wait() == ExitStatus(0, None)
    closed = asyncio.ensure_future(process.streams_closed())
    assert await running.client.procs()  # the sleeper
    assert not closed.done()
    assert await process.signal(signal.SIGKILL, to="process") == 0
    assert await process.signal(signal.SIGKILL, to="group") == 1
    await closed
    assert await process.stdout.read() == b""


async def test_a_group_outlives_its_leader_and_its_streams(running) -> None:
    process = await shell(running, "sleep 1000 >/dev/null 2>&1 & exit 0")
    await process.wait()
    await process.streams_closed()
    assert [proc.argv for proc in await running.client.procs()] == [("sleep", "1000")]
    assert await process.signal(signal.SIGKILL) == 1
    await until(lambda: _none_left(running))
    assert await process.signal(signal.SIGKILL) == 0
    assert await process.signal(signal.SIGKILL, to="session") == 0


async def _none_left(running) -> bool:
    return not await running.client.procs()


async def test_a_session_holds_more_than_a_group(running) -> None:
    script = "set -m; sleep 1000 & echo ready; wait"  # a job-control shell gives its background job a group of its own
    process = await running.client.spawn(["bash", "-c", script], env=ENV, cwd="/")
    assert await process.stdout.read() == b"ready\n"
    groups = {proc.pgid for proc in await running.client.procs() if proc.sid == process.pid}
    assert len(groups) == 2
    assert await process.signal(signal.SIGKILL, to="session") == 2
    await process.wait()
    await until(lambda: _none_left(running))


async def test_the_table_and_signals_to_any_process(running) -> None:
    process = await shell(running, "sleep 777 & echo $!; wait")
    pid = int(await process.stdout.read())

    async def started() -> bool:
        return any(proc.argv == ("sleep", "777") for proc in await running.client.procs())

    await until(started)
    row = next(proc for proc in await running.client.procs() if proc.pid == pid)
    assert (row.argv, row.ppid, row.pgid, row.sid, row.uid) == (
        ("sleep", "777"),
        process.pid,
        process.pid,
        process.pid,
        os.getuid(),
    )
    assert await running.client.signal_pid(pid, signal.SIGKILL, start_ticks=row.start_ticks + 1) == 0
    assert await running.client.signal_pid(pid, signal.SIGKILL, start_ticks=row.start_ticks) == 1
    await process.wait()
    assert await running.client.signal_pid(pid, signal.SIGKILL) == 0


async def test_the_runner_and_strangers_are_not_signalled(start) -> None:
    plain = await start("plain")
    for pid in (plain.client.hello.pid, os.getpid()):
        with pytest.raises(RunnerError):
            await plain.client.signal_pid(pid, signal.SIGKILL)
    pod = await start("pod")
    with pytest.raises(RunnerError):
        await pod.client.signal_pid(1, signal.SIGKILL)


async def test_orphans_are_reaped(running) -> None:
    script = "for i in 1 2 3 4 5 6 7 8 9 10; do (setsid sh -c 'exit 0' &) ; done"
    await running.client.run(["sh", "-c", script], env=ENV, cwd="/", seconds=SECONDS)
    await until(lambda: _none_left(running))


async def test_many_at_once(running) -> None:
    async def one(number: int) -> None:
        done = await running.client.run(
            ["sh", "-c", f"cat; exit {number}"], env=ENV, cwd="/", input=b"%d" % number, seconds=SECONDS
        )
        assert (done.stdout, done.status.code) == (b"%d" % number, number)

    await asyncio.gather(*(one(number) for number in range(50)))


async def test_time_out_and_output_limit_of_run(running) -> None:
    with pytest.raises(TimeoutError):
        await running.client.run(["sh", "-c", "sleep 1000 & sleep 1000"], env=ENV, cwd="/", seconds=0.2)
    await until(lambda: _none_left(running))
    done = await running.client.run(["head", "-c", "100000", "/dev/zero"], env=ENV, cwd="/", seconds=SECONDS, output_limit=10)
    assert (done.stdout, done.truncated) == (bytes(10), True)


async def test_a_cancelled_spawn_leaves_no_process(running) -> None:
    for _ in range(20):
        spawning = asyncio.ensure_future(shell(running, "sleep 1000"))
        await asyncio.sleep(0)
        spawning.cancel()
        with pytest.raises(asyncio.CancelledError):
            await spawning
    await until(lambda: _none_left(running))


async def test_unread_output_stops_its_process_and_nothing_else(running) -> None:
    process = await shell(running, "yes")
    assert (await running.client.run(["echo", "x"], env=ENV, cwd="/", seconds=SECONDS)).stdout == b"x\n"
    assert (await process.stdout.read()).startswith(b"y\n")
    process.stdout.discard()
    assert await process.signal(signal.SIGKILL) == 1
    assert await process.wait() == ExitStatus(None, signal.SIGKILL)
    await process.streams_closed()


async def test_a_gigabyte_grows_nobody(pod, tmp_path: Path) -> None:
    """Read slowly, discarded, and not read at all: the runner's peak memory stays; the reader's too (its own process)."""
    size = 1 << 30

    def peak() -> int:
        """KiB; the runner is the child of `unshare`."""
        status = Path(f"/proc/{child_of(pod.process.pid)}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))

    await pod.client.run(["true"], env=ENV, cwd="/", seconds=SECONDS)
    before = peak()
    unread = await pod.client.spawn(["head", "-c", str(size), "/dev/zero"], env=ENV, cwd="/")
    dropped = await pod.client.spawn(["head", "-c", str(size), "/dev/zero"], env=ENV, cwd="/")
    dropped.stdout.discard()
    assert await dropped.wait() == ExitStatus(0, None)
    counted = await pod.client.spawn(["head", "-c", str(size), "/dev/zero"], env=ENV, cwd="/")
    total = 0
    async for chunk in counted.stdout:
        total += len(chunk)
        assert len(chunk) <= 64 * 1024
        assert sum(len(item) for item in counted.stdout._chunks) <= 256 * 1024
    assert total == size
    assert unread.exit is None
    assert peak() - before < 16 * 1024
    await unread.signal(signal.SIGKILL)


def child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def host_pids(token: str) -> list[str]:
    """Processes of this machine with the token in their arguments."""
    found = subprocess.run(["pgrep", "-f", token], capture_output=True, text=True, check=False).stdout.split()
    return found


@pytest.mark.parametrize("place", ["plain", "pod"])
@pytest.mark.parametrize("how", ["close", "drop", "garbage"])
async def test_nothing_outlives_the_connection(start, place: str, how: str) -> None:
    running = await start(place)
    token = f"token-{uuid.uuid4().hex}"
    script = f"trap '' TERM HUP; while :; do sleep 1; done # {token}"
    process = await running.client.spawn(
        ["sh", "-c", f'setsid sh -c "$1" >/dev/null 2>&1 & echo up; {script}', "sh", script], env=ENV, cwd="/"
    )
    assert await process.stdout.read() == b"up\n"
    assert len(host_pids(token)) >= 1
    if how == "close":
        await running.client.close()
    elif how == "drop":
        running.client._connection._writer.transport.abort()
    else:
        running.client._connection._writer.write(b"nonsense" * 10)
    assert await running.ended() == (3 if how == "garbage" else 0)
    assert host_pids(token) == []
    with pytest.raises(RunnerLost):
        await process.wait()
    with pytest.raises(RunnerLost):
        await process.stdout.read()


async def test_the_end_of_the_runner_is_runner_lost(start) -> None:
    running = await start("plain")
    process = await shell(running, "sleep 5", stdin=True)
    waits = [
        asyncio.ensure_future(w)
        for w in (process.wait(), process.stdout.read(), process.streams_closed(), running.client.wait_lost())
    ]
    running.process.kill()
    results = await asyncio.gather(*waits, return_exceptions=True)
    assert [type(result) for result in results] == [RunnerLost] * 4
    with pytest.raises(RunnerLost, match="end of stream"):
        await process.signal(signal.SIGKILL)
    process.stdin.write(b"x")
    with pytest.raises(RunnerLost):
        await process.stdin.drain()


async def test_a_frozen_runner_is_runner_lost(start) -> None:
    running = await start("plain", answer_seconds=0.5)
    running.process.send_signal(signal.SIGSTOP)
    with pytest.raises(RunnerLost, match="no answer to procs within"):
        await running.client.procs()
    running.process.send_signal(signal.SIGCONT)
