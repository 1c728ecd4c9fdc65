"""Real runners: as an ordinary process, as PID 1 of a private pid namespace with a pod's capabilities, and as PID 1 in an
empty root. The last two need root.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from realcli_session.runner import RunnerClient, listen

ROOT = Path(__file__).resolve().parents[3]
CAPABILITIES = ["chown", "dac_override", "fowner", "fsetid", "kill", "setuid", "setgid", "sys_chroot", "net_bind_service"]
TOOLKIT = "/opt/realcli"
TOOLKIT_PYTHON = [
    f"{TOOLKIT}/bin/clean",
    f"{TOOLKIT}/lib/ld-linux-x86-64.so.2", "--argv0", f"{TOOLKIT}/bin/python3", "--library-path", f"{TOOLKIT}/lib",
    f"{TOOLKIT}/bin/python3.real", "-I",
]  # fmt: skip
_AS_IN_A_POD = (
    'root=$1; shift; mount -t proc proc "$root/proc" && '
    'if test -f "$root/hosts"; then echo kubelet >"$root/hosts.own" && mount --bind "$root/hosts.own" "$root/hosts"; fi && '
    'exec /usr/bin/setpriv --no-new-privs --inh-caps=-all --bounding-set="-all,{caps}" {chroot} "$@"'
)


@dataclass
class Running:
    """A runner, its client, and the directory that is `/` for it."""

    client: RunnerClient
    process: subprocess.Popen[bytes]
    root: Path
    work: Path
    """A directory of this test as the runner names it."""
    python: list[str] = field(default_factory=lambda: [sys.executable, "-I"])

    @property
    def host_work(self) -> Path:
        return self.root / str(self.work).lstrip("/")

    async def ended(self) -> int:
        return await asyncio.to_thread(self.process.wait, 30)


Start = Callable[..., Awaitable[Running]]


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runner as the image holds it: `start.py` beside the two packages and nothing else."""
    folder = tmp_path_factory.mktemp("bundle")
    copy_bundle(folder)
    return folder


def copy_bundle(folder: Path) -> None:
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copy(ROOT / "runner_image" / "start.py", folder)
    shutil.copytree(ROOT / "runner_image" / "realcli_runner", folder / "realcli_runner", ignore=ignore)
    (folder / "realcli").mkdir()
    shutil.copy(ROOT / "realcli" / "__init__.py", folder / "realcli")
    shutil.copytree(ROOT / "realcli" / "wire", folder / "realcli" / "wire", ignore=ignore)


@pytest.fixture(scope="session")
def empty_root() -> Iterator[Path]:
    """A root with the toolkit at its place, mount points, and nothing else: no shell, no libc, no /tmp, no /etc."""
    root = Path(tempfile.mkdtemp(prefix="rcli-root-"))
    toolkit = root / TOOLKIT.lstrip("/")
    toolkit.parent.mkdir()
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    script = ROOT / "runner_image" / "build-toolkit.sh"
    subprocess.run(["bash", str(script), str(toolkit)], check=True, env={"PATH": path}, stdout=subprocess.DEVNULL)
    (toolkit / "runner").mkdir()
    copy_bundle(toolkit / "runner")
    (root / "proc").mkdir()
    (root / "run" / "realcli").mkdir(parents=True)
    yield root
    shutil.rmtree(root)


@pytest.fixture
async def start(bundle: Path, request: pytest.FixtureRequest) -> AsyncIterator[Start]:
    """Start a runner: `await start("plain" | "pod" | "empty")`. Everything is gone after the test."""
    cleanup = contextlib.AsyncExitStack()

    async def begin(
        place: str, *, env: dict[str, str] | None = None, answer_seconds: float = 60.0, nofile: int | None = None
    ) -> Running:
        if place == "empty":
            root: Path = request.getfixturevalue("empty_root")
            sockets, work = root / "run" / "realcli", Path("/work")
            host_work = root / "work"
            command = [*TOOLKIT_PYTHON, f"{TOOLKIT}/runner/start.py", "--socket", "/run/realcli/session.sock"]
        else:
            root = Path("/")
            sockets = Path(tempfile.mkdtemp(prefix="rcli-"))
            cleanup.callback(shutil.rmtree, sockets)
            work = host_work = Path(tempfile.mkdtemp(prefix="rcli-work-"))
            command = [sys.executable, "-I", str(bundle / "start.py"), "--socket", str(sockets / "session.sock")]
        if place != "empty":
            host_work.chmod(0o755)
            cleanup.callback(shutil.rmtree, host_work, ignore_errors=True)
        environ = env if env is not None else {"PATH": os.environ["PATH"], "HOME": "/root"}
        process = subprocess.Popen(  # noqa: ASYNC220 (starting is quick, and the end is waited for in a thread)
            [
                *([] if nofile is None else ["prlimit", f"--nofile={nofile}"]),
                *wrapped(place, root),
                *command,
                "--setup-seconds",
                "60",
            ],
            env=environ,
            stdin=subprocess.DEVNULL,
        )
        cleanup.callback(_end, process)
        listener = listen(str(sockets / "session.sock"))
        cleanup.callback(listener.close)
        client = await listener.accept(60, answer_seconds=answer_seconds)
        cleanup.push_async_callback(client.close)
        python = TOOLKIT_PYTHON if place == "empty" else [sys.executable, "-I"]
        return Running(client, process, root, work, python)

    try:
        yield begin
    finally:
        await cleanup.aclose()


def wrapped(place: str, root: Path) -> list[str]:
    if place == "plain":
        return []
    chroot = "" if place == "pod" else f"/usr/sbin/chroot {root}"
    script = _AS_IN_A_POD.format(caps=",".join(f"+{name}" for name in CAPABILITIES), chroot=chroot)
    prefix = "" if place == "pod" else str(root)
    return ["unshare", "--pid", "--mount", "--fork", "--kill-child", "--", "sh", "-c", script, "sh", prefix]


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(20)  # the client has closed: it ends by itself
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


@pytest.fixture(params=["plain", "pod"])
async def running(request: pytest.FixtureRequest, start: Start) -> Running:
    """A runner as an ordinary process and as PID 1."""
    return await start(request.param)


@pytest.fixture
async def pod(start: Start) -> Running:
    """A runner as in a pod, seeing this machine's files."""
    return await start("pod")
