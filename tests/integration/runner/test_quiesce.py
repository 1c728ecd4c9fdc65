"""After quiesce nothing of the agent runs, whatever it tried. "No write" is shown by content, never by time."""

from __future__ import annotations

import asyncio
import signal

import pytest

from realcli.wire.protocol import ErrorCode
from realcli_session.runner import RunnerError

ENV = {"PATH": "/usr/bin:/bin"}
SECONDS = 60

WRITE = "i=0; while :; do i=$((i+1)); echo $i >> {file}; done"
HABITS = {
    "plain": "{write} &",
    "nohup": "nohup sh -c '{write}' >/dev/null 2>&1 &",
    "setsid": "setsid sh -c '{write}' >/dev/null 2>&1 &",
    "double fork": "(setsid sh -c '(setsid sh -c \"{write}\" &) ; exit 0' &) >/dev/null 2>&1; exit 0",
    "ignores TERM": "setsid sh -c 'trap \"\" TERM HUP INT QUIT; {write}' >/dev/null 2>&1 &",
    "restarts itself": 'setsid sh -c \'trap "setsid sh -c \\"{write}\\" &" TERM; {write}\' >/dev/null 2>&1 &',
    "stopped": "sh -c '{write}' & p=$!; sleep 0.2; kill -STOP $p; exit 0",
}


async def started_writing(running, path) -> None:
    async with asyncio.timeout(SECONDS):
        while not path.exists() or not path.read_bytes():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def nothing_is_written(running, path) -> None:
    """Two looks with work of the same machine in between; a living writer adds thousands of lines in that time."""
    first = path.read_bytes()
    for _ in range(10):
        await running.client.run(["sh", "-c", "head -c 1000000 /dev/zero | wc -c"], env=ENV, cwd="/", seconds=SECONDS)
    assert path.read_bytes() == first


@pytest.mark.parametrize("habit", HABITS.values(), ids=HABITS)
async def test_no_writer_survives(running, habit: str) -> None:
    path = running.host_work / "log"
    script = habit.format(write=WRITE.format(file=running.work / "log"))
    await running.client.spawn(["sh", "-c", script], env=ENV, cwd="/")
    await started_writing(running, path)
    report = await running.client.quiesce(grace=0.3)
    assert report.survivors == ()
    assert report.found
    assert report.proven is running.client.hello.owns_pid_namespace
    assert await running.client.procs() == ()
    await nothing_is_written(running, path)


async def test_the_check_itself_sees_a_living_writer(running) -> None:
    path = running.host_work / "log"
    await running.client.spawn(["sh", "-c", WRITE.format(file=running.work / "log")], env=ENV, cwd="/")
    await started_writing(running, path)
    with pytest.raises(AssertionError):
        await nothing_is_written(running, path)


async def test_a_process_that_cleans_up_gets_the_grace(running) -> None:
    script = f"trap 'sleep 0.3; echo bye > {running.work}/bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done"
    process = await running.client.spawn(["sh", "-c", script], env=ENV, cwd="/")
    assert await process.stdout.read() == b"ready\n"
    report = await running.client.quiesce(grace=SECONDS)
    assert (report.survivors, report.killed) == ((), ())
    assert (running.host_work / "bye").read_text() == "bye\n"
    assert (await process.wait()).code == 7


async def test_who_had_to_be_killed_is_named(running) -> None:
    process = await running.client.spawn(["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"], env=ENV, cwd="/")
    assert await process.stdout.read() == b"ready\n"
    report = await running.client.quiesce(grace=0.2)
    assert process.pid in {proc.pid for proc in report.killed}
    assert (await process.wait()).signal == signal.SIGKILL


async def test_nothing_is_started_meanwhile_and_everything_afterwards(running) -> None:
    process = await running.client.spawn(["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"], env=ENV, cwd="/")
    assert await process.stdout.read() == b"ready\n"
    quiescing = asyncio.ensure_future(running.client.quiesce(grace=SECONDS))
    await asyncio.sleep(0)  # the request is on its way, in order
    with pytest.raises(RunnerError) as caught:
        await running.client.spawn(["true"], env=ENV, cwd="/")
    assert caught.value.code is ErrorCode.QUIESCING
    await process.signal(signal.SIGKILL)
    assert (await quiescing).survivors == ()
    assert (await running.client.run(["true"], env=ENV, cwd="/", seconds=SECONDS)).status.code == 0


async def test_quiesce_of_nothing(running) -> None:
    report = await running.client.quiesce(grace=SECONDS, kill=SECONDS)
    assert (report.found, report.killed, report.survivors) == ((), (), ())


BOMB = """
import os, resource, signal, sys, time
resource.setrlimit(resource.RLIMIT_NPROC, (150, 150))
for signum in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(signum, signal.SIG_IGN)
log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
rounds = 0
while True:
    try:
        if os.fork() == 0:
            os.setsid()
            rounds = 0
    except OSError:
        time.sleep(0.01)
    os.write(log, b"x")
    rounds += 1
    if rounds > 20:
        os._exit(0)
"""


async def test_a_fork_bomb_ends(running) -> None:
    """Bounded to 150 processes of a user of its own; each forks, flees into a session, writes, ends, is replaced."""
    path = running.host_work / "log"
    path.touch()
    path.chmod(0o666)
    command = ["/usr/bin/python3", "-I", "-c", BOMB, str(running.work / "log")]
    await running.client.spawn(command, env=ENV, cwd="/", uid=54321)
    async with asyncio.timeout(SECONDS):
        while len(await running.client.procs()) < 20:
            pass
    report = await running.client.quiesce(grace=0.2)
    assert report.survivors == ()
    assert report.killed
    await nothing_is_written(running, path)
