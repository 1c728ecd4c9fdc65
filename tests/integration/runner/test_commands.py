"""The record of executed commands, with the real kernel: what is in it, what is not, and that nobody waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import struct
import sys
import uuid
from collections.abc import AsyncIterator, Callable

import pytest

from realcli_session.runner import RunnerPort, SpawnFailed
from realcli_session.runner.port import CommandEndRow, CommandRow, GapRow, Recorded, Recording

ENV = {"PATH": "/nowhere:/usr/bin:/bin", "HOME": "/root"}


class Rows:
    """Reads rows, beside the test."""

    def __init__(self, recording: Recording) -> None:
        self._rows: AsyncIterator[Recorded] = recording.rows
        self.seen: list[Recorded] = []

    async def until(self, enough: Callable[[list[Recorded]], object]) -> list[Recorded]:
        async with asyncio.timeout(30):
            while not enough(self.seen):
                self.seen.append(await anext(self._rows))
        return self.seen

    async def ended(self, number: int) -> CommandEndRow:
        def find(rows: list[Recorded]) -> CommandEndRow | None:
            return next((row for row in rows if isinstance(row, CommandEndRow) and row.id == number), None)

        await self.until(find)
        found = find(self.seen)
        assert found is not None
        return found

    @property
    def commands(self) -> list[CommandRow]:
        return [row for row in self.seen if isinstance(row, CommandRow)]

    @property
    def deeds(self) -> list[str]:
        """Names of what was executed by what the session started."""
        return [row.argv[0] for row in self.commands if not row.root]


async def recording(client: RunnerPort) -> Rows:
    made = await client.record()
    assert made.works, made.why
    return Rows(made)


async def sh(client: RunnerPort, script: str, **facts: int) -> int | None:
    done = await client.run(["sh", "-c", script], env=ENV, cwd="/tmp", seconds=30, recorded=True, **facts)
    return done.status.code


def named(rows: Rows, name: str) -> CommandRow:
    return next(row for row in rows.commands if row.argv[0] == name)


async def test_descendants_are_recorded_with_directory_and_end(running) -> None:
    rows = await recording(running.client)
    assert await sh(running.client, "cd /usr; (setsid env A=1 true x y); sh -c 'exit 3'; cd /; /bin/false") == 1
    await rows.until(lambda seen: sum(isinstance(row, CommandEndRow) for row in seen) >= 5)
    root = named(rows, "sh")
    assert root.argv[2].startswith("cd /usr")
    assert root.cwd == "/tmp"
    assert root.parent is None
    assert (await rows.ended(root.id)).code == 1
    true = named(rows, "true")
    assert (true.argv, true.cwd, true.path) == (("true", "x", "y"), "/usr", "/usr/bin/true")
    assert [named(rows, name).pid for name in ("setsid", "env", "true")] == [true.pid] * 3, "one process, three programs"
    assert [(await rows.ended(named(rows, name).id)).code for name in ("setsid", "env", "true")] == [0, 0, 0]
    inner = next(row for row in rows.commands if row.argv[-1] == "exit 3")
    assert inner.parent == root.id
    assert (await rows.ended(inner.id)).code == 3
    assert (await rows.ended(named(rows, "/bin/false").id)).code == 1
    assert not [row for row in rows.seen if isinstance(row, GapRow)]


async def test_attempts_that_cannot_succeed_are_no_commands(running) -> None:
    rows = await recording(running.client)
    assert await sh(running.client, "no-such-program; /etc/passwd; /tmp; ls -d /tmp >/dev/null; :") == 0
    await rows.until(lambda _: [row for row in rows.commands if row.argv[0] == "ls"])
    assert {row.argv[0] for row in rows.commands} == {"sh", "ls"}


async def test_a_killed_command_has_its_signal(running) -> None:
    rows = await recording(running.client)
    await sh(running.client, "sh -c 'kill -9 $$'; :")
    await rows.until(lambda _: len(rows.commands) == 2)
    end = await rows.ended(rows.commands[1].id)
    assert (end.code, end.signal) == (None, signal.SIGKILL)


async def test_what_the_session_does_itself_is_not_recorded(running) -> None:
    rows = await recording(running.client)
    await running.client.run(["sh", "-c", "/bin/true"], env=ENV, cwd="/", seconds=30)
    with pytest.raises(SpawnFailed, match="no-such-program"):
        await running.client.spawn(["no-such-program"], env=ENV, cwd="/")
    await sh(running.client, "/bin/echo >/dev/null; :")
    await rows.until(lambda _: rows.deeds)
    assert rows.deeds == ["/bin/echo"]
    assert [(row.argv[0], row.root) for row in rows.commands] == [("no-such-program", True), ("sh", True), ("/bin/echo", False)]


async def test_everything_executed_has_come_when_the_record_has_settled(running) -> None:
    made = await running.client.record()
    seen: list[Recorded] = []

    async def read() -> None:
        async for row in made.rows:
            seen.append(row)

    reader = asyncio.create_task(read())
    for count in (1, 2, 3):
        await sh(running.client, "/bin/true; setsid /bin/sh -c 'exit 9'; exit 1")
        await running.client.settle_record()
        ends = [(row.code, row.signal) for row in seen if isinstance(row, CommandEndRow)]
        assert sorted(ends) == sorted([(0, None), (9, None), (9, None), (1, None)] * count)
    reader.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await reader


async def test_other_users_are_seen_too(pod) -> None:
    rows = await recording(pod.client)
    assert await sh(pod.client, "cd /var; /bin/ls -d . >/dev/null; true", uid=65534, gid=65534) == 0
    await rows.until(lambda _: [row for row in rows.commands if row.argv[0] == "/bin/ls"])
    assert named(rows, "/bin/ls").cwd == "/var"


async def test_a_process_that_changes_its_user_is_seen_by_what_it_became(pod) -> None:
    rows = await recording(pod.client)
    held = f"/tmp/held-{uuid.uuid4().hex}"  # it lives until it was seen, however busy the machine is
    running = asyncio.create_task(sh(pod.client, f"mkfifo -m 666 {held}; setpriv --reuid=65534 --clear-groups cat {held}; true"))
    await rows.until(lambda _: [row for row in rows.commands if row.argv[0] == "cat"])
    await sh(pod.client, f"echo > {held}; rm {held}")
    assert await running == 0
    cat = named(rows, "cat")
    assert (cat.argv, cat.cwd, cat.path) == (("cat", held), "/tmp", "/usr/bin/cat")
    assert (await rows.ended(cat.id)).code == 0


async def test_long_and_odd_arguments(running) -> None:
    rows = await recording(running.client)
    await sh(running.client, "/bin/true \"$(printf '\\377')\" '' a; /bin/true $(seq 20000)")
    await rows.until(lambda _: len([row for row in rows.commands if row.argv[0] == "/bin/true"]) == 2)
    odd, long = [row for row in rows.commands if row.argv[0] == "/bin/true"]
    assert odd.argv == ("/bin/true", "\\xff", "", "a")
    assert not odd.cut
    assert long.cut
    assert 1000 < len(long.argv) <= 4096


async def test_a_thread_that_executes(running) -> None:
    """The call comes from a thread whose number is not the process's."""
    code = "import threading,os; threading.Thread(target=lambda: os.execv('/bin/sh', ['sh', '-c', 'exit 5'])).start()"
    rows = await recording(running.client)
    done = await running.client.run([sys.executable, "-I", "-c", code], env=ENV, cwd="/", seconds=30, recorded=True)
    assert done.status.code == 5
    await rows.until(lambda _: [row for row in rows.commands if row.argv[0] == "sh"])
    shell = named(rows, "sh")
    assert shell.pid == rows.commands[0].pid
    assert (await rows.ended(shell.id)).code == 5


async def python(rows: Rows, client: RunnerPort, code: str, name: str, **facts: int) -> CommandRow:
    """Run it; the command of this name that came of it."""
    done = await client.run([sys.executable, "-I", "-c", code], env=ENV, cwd="/", seconds=60, recorded=True, **facts)
    assert done.status.code == 0, done.stderr
    await rows.until(lambda _: [row for row in rows.commands if row.argv[0] == name])
    return named(rows, name)


@pytest.mark.parametrize("folder", ["/proc/self/fd", "/proc/thread-self/fd", "/dev/fd", "/tmp/../proc/self/fd", "proc/self/fd"])
async def test_a_file_that_only_the_process_itself_has(running, folder: str) -> None:
    """As fexecve does it without execveat, with a file that has no name."""
    rows = await recording(running.client)
    code = f"""
import os
fd = os.memfd_create("x", 0)
os.write(fd, open("/bin/true", "rb").read())
os.dup2(fd, 210)
os.execve("{folder}/210", ["memory"], {{}})
"""
    assert (await python(rows, running.client, code, "memory")).argv == ("memory",)


async def test_a_link_leads_to_the_root_of_the_process(pod) -> None:
    """A program of a chroot, behind a link that leads nowhere in our own root."""
    rows = await recording(pod.client)
    program = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, 0x400078, 64, 0, 0, 64, 56, 1, 0, 0, 0) + struct.pack(
        "<IIQQQQQQ", 1, 5, 0, 0x400000, 0x400000, 132, 132, 4096
    )
    program += bytes.fromhex("31ff b8e7000000 0f05 9090".replace(" ", ""))  # exit_group(0)
    folder = pod.work / "root"
    await pod.client.put_file(str(folder / "program-of-the-chroot"), program, mode=0o755)
    code = f"""
import os
os.symlink("/program-of-the-chroot", {str(folder / "link")!r})
os.chroot({str(folder)!r})
os.chdir("/")
os.execv("link", ["linked"])
"""
    row = await python(rows, pod.client, code, "linked")
    assert (await rows.ended(row.id)).code == 0


ORPHANS = 300
DOUBLE_FORKS = f"""
import os
for number in range({ORPHANS}):
    if os.fork() == 0:
        me = os.getpid()
        if os.fork() == 0:
            while os.getppid() == me:
                pass
            os.execv("/bin/true", ["orphan"])
        os._exit(0)
    os.wait()
"""


async def test_orphans_execute_while_the_session_starts_a_program(running) -> None:
    """They are the runner's children too: none of them is taken for the program."""
    rows = await recording(running.client)
    making = asyncio.create_task(python(rows, running.client, DOUBLE_FORKS, "orphan"))
    started = 0
    while not making.done():
        await sh(running.client, f": number {started}")
        started += 1
    await making
    await sh(running.client, "/bin/true last")
    await rows.until(lambda _: [row for row in rows.commands if row.argv == ("/bin/true", "last")])
    assert rows.deeds.count("orphan") == ORPHANS
    assert [row.root for row in rows.commands if row.argv[0] == "sh"] == [True] * (started + 1)


async def test_a_process_that_hides_and_shows_nothing_is_a_gap(pod) -> None:
    rows = await recording(pod.client)
    code = """
import os, time
os.setresuid(65534, 65534, 65534)
try:
    os.execv("/nowhere", ["x"])
except OSError:
    time.sleep(3)
"""
    await pod.client.run([sys.executable, "-I", "-c", code], env=ENV, cwd="/", seconds=30, recorded=True)
    await rows.until(lambda seen: [row for row in seen if isinstance(row, GapRow)])


async def test_nobody_waits_for_a_session_that_does_not_read(running) -> None:
    """More than stream, queue and window hold: programs go on, the rest is counted."""
    rows = await recording(running.client)
    many = 120
    big = "x" * 100_000
    done = await running.client.run(
        ["sh", "-c", f"i=0; while [ $i -lt {many} ]; do /bin/true \"$1\" \"$1\"; i=$((i+1)); done", "sh", big],
        env=ENV, cwd="/", seconds=60, recorded=True,
    )  # fmt: skip
    assert done.status.code == 0
    for _ in range(3):
        await sh(running.client, f"i=0; while [ $i -lt {many} ]; do /bin/true {'y' * 40000}; i=$((i+1)); done")
    await sh(running.client, "/bin/true last")
    await rows.until(lambda seen: [row for row in seen if isinstance(row, GapRow)])
    gap = next(row for row in rows.seen if isinstance(row, GapRow))
    assert gap.count > 1
    assert "took" in gap.why


async def test_quiesce_ends_programs_that_execute_without_pause(pod) -> None:
    await recording(pod.client)
    await pod.client.spawn(["sh", "-c", "while :; do /bin/true & /bin/true; done"], env=ENV, cwd="/")
    await pod.client.spawn(["setsid", "sh", "-c", "trap '' TERM; while :; do /bin/true; done"], env=ENV, cwd="/")
    report = await pod.client.quiesce(grace=0.3, kill=20)
    assert report.proven
    assert not report.survivors
    assert await sh(pod.client, "true") == 0


async def test_more_processes_than_descriptors_do_not_use_up_the_runners(start) -> None:
    """It may have 256 descriptors: 400 programs at once, and it still starts others and answers."""
    running = await start("plain", nofile=256)
    rows = await recording(running.client)
    await sh(running.client, "i=0; while [ $i -lt 400 ]; do sleep 100 & i=$((i+1)); done")
    await rows.until(lambda _: rows.deeds.count("sleep") == 400)
    assert await sh(running.client, "exit 6") == 6
    assert await running.client.get_file("/proc/1/comm")


async def test_a_second_record_is_refused(running) -> None:
    await recording(running.client)
    again = await running.client.record()
    assert not again.works
    assert "already" in again.why
