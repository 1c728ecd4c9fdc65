"""The runner in a root that holds the toolkit and nothing else, as PID 1, with a pod's capabilities."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

from realcli.wire import archive
from realcli.wire.archive import Member
from realcli_session.runner.port import ExitStatus

SECONDS = 60


def listing(root: Path) -> dict[bytes, tuple[int, int, int]]:
    """Everything below a root but its /proc: mode, size, mtime."""
    found = {}
    for folder, folders, files in os.walk(os.fsencode(root)):
        if folder == os.fsencode(root / "proc"):
            folders.clear()
            continue
        for name in [*folders, *files]:
            facts = os.lstat(os.path.join(folder, name))
            found[os.path.join(folder, name)] = (facts.st_mode, facts.st_size, facts.st_mtime_ns)
    return found


async def test_everything_works_and_nothing_is_written(start, empty_root: Path) -> None:
    before = listing(empty_root)
    running = await start("empty", env={"LD_LIBRARY_PATH": "/usr/lib", "PYTHONPATH": "/nowhere"})
    hello = running.client.hello
    assert (hello.pid, hello.libc, hello.home, hello.cwd) == (1, "none", "/", "/")
    assert hello.environ["PYTHONPATH"] == "/nowhere"

    script = "import sys; data = sys.stdin.buffer.read(); sys.stdout.buffer.write(data[::-1]); sys.exit(7)"
    done = await running.client.run([*running.python, "-c", script], env={}, cwd="/", input=b"abc", seconds=SECONDS)
    assert (done.status, done.stdout, done.stderr) == (ExitStatus(7, None), b"cba", b"")

    await running.client.spawn([*running.python, "-c", "import time; time.sleep(1000)"], env={}, cwd="/")
    assert len(await running.client.procs()) == 1
    report = await running.client.quiesce(grace=0.1)
    assert (report.survivors, report.proven) == ((), True)

    scan = await running.client.scan(["/**"], budget=SECONDS)
    assert [entry.path for entry in scan.entries] == ["/opt", "/run"]
    scan = await running.client.scan(["/opt/realcli/runner/*.py", "/run/*"], budget=SECONDS)
    assert [entry.path for entry in scan.entries] == ["/opt/realcli/runner/start.py"]
    assert scan.entries[0].sha256 == hashlib.sha256((empty_root / "opt/realcli/runner/start.py").read_bytes()).hexdigest()
    await running.client.close()
    assert await running.ended() == 0
    after = listing(empty_root)
    socket_folder = os.fsencode(empty_root / "run" / "realcli")  # where the session itself made and removed its socket
    assert {path for path in before if before[path] != after.get(path)} <= {socket_folder}
    assert after.keys() == before.keys()


async def test_a_state_is_restored_where_there_is_nothing(start, empty_root: Path) -> None:
    async def state() -> AsyncIterator[bytes]:
        yield archive.header(Member(b"app/out/result", "file", size=2, mode=0o600)) + b"42" + archive.padding(2) + archive.END

    running = await start("empty")
    try:
        await running.client.restore(state(), max_bytes=100)
        assert await running.client.get_file("/app/out/result") == b"42"
        assert (empty_root / "app/out/result").read_text() == "42"
    finally:
        await running.client.restore(end(), clear=["/app"], max_bytes=0)
    assert not (empty_root / "app").exists()


async def end() -> AsyncIterator[bytes]:
    yield archive.END


async def test_what_the_image_sets_for_its_loader_reaches_its_programs_alone(start) -> None:
    given = {"LD_PRELOAD": "/broken.so", "GLIBC_TUNABLES": "glibc.malloc.check=0", "LD_LIBRARY_PATH": "/broken", "PATH": "/bin"}
    running = await start("empty", env=given)
    own = dict(entry.split("=", 1) for entry in (await running.client.get_file("/proc/1/environ")).decode().split("\0") if entry)
    assert own["!D_PRELOAD"] == "/broken.so"
    assert not [name for name in own if name.startswith(("LD_", "GLIBC_"))]
    environ = dict(running.client.hello.environ)
    assert {name: environ[name] for name in given} == given
