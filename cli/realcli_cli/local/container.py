"""The untrusted container of a local run: the runner as PID 1 of a private root, process and mount namespace.

It isolates less than a pod: the network and the kernel's limits are the host's, and nothing bounds memory, processes or disk.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from realcli_cli.local.cache import discard
from realcli_cli.local.images import RootImage
from realcli_cli.local.runner import CAPABILITIES, DEFAULT_PATH, SOCKET_DIR, TOOLKIT, runner_command
from realcli_cli.main import UserError

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_NAMESPACES = ("--mount", "--pid", "--ipc", "--fork", "--kill-child", "--propagation", "private", "--")
_ENTER = Path(__file__).with_name("enter.py")


class Container(Protocol):
    """A task's container. Not running yet; `start` once."""

    @property
    def socket(self) -> Path:
        """Where the session listens, on the host."""

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        """The process whose end is the container's; None before the start."""

    def start(self, setup_seconds: float) -> None:
        """Start the runner."""

    def stop(self, seconds: float = 30) -> int:
        """Wait for the runner, which ends when its session does; kill it after `seconds`. Its exit status."""

    def close(self) -> None:
        """Kill what runs, remove everything."""


@dataclass
class ChrootContainer:
    """See the module. `root` is a copy made for this container."""

    folder: Path
    toolkit: Path
    agent: Path
    environ: Mapping[str, str]
    binds: Sequence[tuple[Path, str]] = ()
    setuid: bool = False  # the task has setuid programs
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def root(self) -> Path:
        """Its root on the host."""
        return self.folder / "root"

    @property
    def socket(self) -> Path:
        """See Container."""
        return self.folder / "s" / "session.sock"

    def path(self, inside: str) -> Path:
        """A path of the container on the host."""
        return self.root / inside.lstrip("/")

    def start(self, setup_seconds: float) -> None:
        """See Container."""
        asked = {
            "root": str(self.root),
            "mounts": [
                *([str(host), inside, True] for host, inside in self.binds),
                [str(self.socket.parent), SOCKET_DIR, False],
                [str(self.toolkit), TOOLKIT, True],
                [str(self.agent), f"{TOOLKIT}/agent", True],
            ],
            "devices": _DEVICES,
            "capabilities": CAPABILITIES,
            "no_new_privs": not self.setuid,
            "command": runner_command(setup_seconds, self.setuid),
        }
        self.process = subprocess.Popen(
            [which("unshare"), *_NAMESPACES, sys.executable, "-I", str(_ENTER), json.dumps(asked)],
            env=dict(self.environ),
            stdin=subprocess.DEVNULL,
            process_group=0,  # it ends when its session has
        )

    def stop(self, seconds: float = 30) -> int:
        """See Container."""
        assert self.process is not None
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._kill()
            raise

    def close(self) -> None:
        """See Container."""
        self._kill()
        discard(self.folder)

    def _kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def chroot_container(
    image: RootImage, toolkit: Path, agent: Path, *, binds: Sequence[tuple[Path, str]] = (), setuid: bool = False
) -> ChrootContainer:
    """A container with a fresh copy of the image's root."""
    folder = Path(tempfile.mkdtemp(prefix="rcli-"))  # short: a socket's path has 107 bytes
    try:
        folder.chmod(0o755)
        root = folder / "root"
        _copy(image.root, root)
        _furnish(root)
        for _, inside in binds:
            (root / inside.lstrip("/")).mkdir(parents=True, exist_ok=True)
        (folder / "s").mkdir()
    except BaseException:
        discard(folder)
        raise
    environ = {"PATH": DEFAULT_PATH, "HOME": "/root"} | image.env
    return ChrootContainer(folder, toolkit, agent, environ, binds, setuid)


def _copy(source: Path, dest: Path) -> None:
    done = subprocess.run(
        ["cp", "-a", "--reflink=auto", "--", str(source), str(dest)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise UserError(f"the root {source} could not be copied to {dest}: {done.stderr.strip()[-500:]}")


def _furnish(root: Path) -> None:
    """What a container runtime puts into every root. A link of the image is replaced: nothing is written through it."""
    for name in ("proc", "dev", "sys", "tmp", "root", "etc"):
        _folder(root / name)
    (root / "tmp").chmod(0o1777)
    for name in ("dev/pts", "dev/shm", "opt", "opt/realcli", "run", "run/realcli"):
        _folder(root / name)
    for name in _DEVICES:
        place = root / "dev" / name
        if os.path.lexists(place):
            place.unlink()
        place.touch()
    for link, target in (
        ("ptmx", "pts/ptmx"),
        ("fd", "/proc/self/fd"),
        ("stdin", "fd/0"),
        ("stdout", "fd/1"),
        ("stderr", "fd/2"),
    ):
        if not os.path.lexists(root / "dev" / link):
            (root / "dev" / link).symlink_to(target)
    for name, text in (("hosts", "127.0.0.1 localhost\n::1 localhost\n"), ("resolv.conf", "")):
        place = root / "etc" / name
        place.unlink(missing_ok=True)
        place.write_text(text)


def _folder(path: Path) -> None:
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        path.unlink()
    path.mkdir(exist_ok=True)


def which(name: str) -> str:
    """The path of a program of this machine, wherever the image's own PATH points."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{DEFAULT_PATH}")
    if found is None:
        raise UserError(f"{name} is not installed; it is needed to run without a cluster (package util-linux or coreutils)")
    return found


def why_no_chroot() -> str | None:
    """None if this process may make such containers; else what is missing."""
    if os.geteuid() != 0:
        return "this user is not root"
    command = [which("unshare"), *_NAMESPACES, which("mount"), "-t", "proc", "proc", "/proc"]
    probe = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if probe.returncode == 0 else f"namespaces cannot be made here: {probe.stderr.strip()}"
