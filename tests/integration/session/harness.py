"""Runs trials without a cluster by the code behind `realcli trial run`; the host's programs stand in for the task's image.

Needs root. It isolates less than a pod: the network is the host's.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from realcli.api.agents import PROGRAMS
from realcli.benchmark.bundles import File
from realcli.benchmark.suite import Suite, load_suite
from realcli.storage.port import StorageConfig
from realcli_cli.local import pods
from realcli_cli.local.container import ChrootContainer, chroot_container
from realcli_cli.local.images import RootImage
from realcli_cli.local.pods import Ended
from realcli_cli.local.runner import DEFAULT_PATH
from realcli_cli.local.sweep import LocalSweep, Model
from realcli_cli.local.sweep import plan_sweep as plan_local
from tests.support.control_plane import PATIENCE

REPOSITORY = Path(__file__).resolve().parents[3]
KEY = "sk-real-key-0123456789abcdef"
SYSTEM = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "etc"]
MODEL = "claude-sonnet-4-5"


@dataclass
class Pod(pods.Pod):
    """A running pair whose container is a chroot of this machine."""

    @property
    def chroot(self) -> ChrootContainer:
        """The container, which can be looked into."""
        return cast(ChrootContainer, self.container)

    def ended(self, seconds: float | None = 180, look: Any = None) -> Ended:
        """Wait for the session, and for the runner to follow it."""
        return super().ended(seconds and seconds * PATIENCE, look)


@contextlib.contextmanager
def container(image: list[File], toolkit: Path, agent: Path) -> Iterator[ChrootContainer]:
    """A root with the files of the task's image (paths relative to `/`), the host's programs and what a pod has beside."""
    with tempfile.TemporaryDirectory() as own:
        root = Path(own) / "root"
        (root / "app").mkdir(parents=True)
        binds = []
        for name in SYSTEM:
            host = Path("/", name)
            if host.is_symlink():
                (root / name).symlink_to(os.readlink(host))
            elif host.is_dir():
                (root / name).mkdir()
                binds.append((host, name))
        for file in image:
            target = root / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.content)
            target.chmod(file.mode)
        made = chroot_container(RootImage(root, {"PATH": DEFAULT_PATH}, "/app", ""), toolkit, agent, binds=binds)
    try:
        yield made
    finally:
        made.close()


@dataclass
class Sweep(LocalSweep):
    """A planned sweep of a suite, with what its containers are made of."""

    suite: Suite
    toolkit: Path
    agent: Path
    program: str = "claude-code"

    def image(self, task: str) -> list[File]:
        """Files of the image of a task."""
        files = next(t for t in self.suite.tasks if t.name == task).public
        prefix = "environment/"
        return [f._replace(path=f.path.removeprefix(prefix)) for f in files if f.path.startswith(prefix + "app/")]

    @contextlib.contextmanager
    def pod(self, ordinal: int, *arguments: str, runner: bool = True, **environment: str) -> Iterator[Pod]:
        """A session and a runner side by side, both running; ended with the block."""
        task = self.plan.coordinates(ordinal).task
        keys = {PROGRAMS[self.program].api: KEY, "user": KEY}
        with (
            container(self.image(task), self.toolkit, self.agent) as place,
            pods.pod(self, ordinal, list(arguments), place, keys, runner=runner, environment=environment) as running,
        ):
            yield Pod(running.container, running.session, running.folder)

    def work(self, ordinal: int, attempt: int = 1, **environment: str) -> Ended:
        """Run one attempt to its end."""
        with self.pod(ordinal, "work", "--attempt", str(attempt), **environment) as pod:
            return pod.ended()

    def verify(self, ordinal: int, verify: int = 1, attempt: int = 1, anchor: str | None = None, **environment: str) -> Ended:
        """Run one verify to its end."""
        extra = ["--work-seal", anchor] if anchor else []
        numbers = ["--attempt", str(attempt), "--verify", str(verify)]
        with self.pod(ordinal, "verify", *numbers, *extra, **environment) as pod:
            return pod.ended()

    def control(self, ordinal: int, control: int = 1, attempt: int = 1, **environment: str) -> Ended:
        """Run one control to its end."""
        numbers = ["--attempt", str(attempt), "--control", str(control)]
        with self.pod(ordinal, "control", *numbers, **environment) as pod:
            return pod.ended()


def plan_sweep(
    storage: Path | StorageConfig,
    suite: Path,
    provider: str,
    toolkit: Path,
    agent: Path,
    *,
    program: str = "claude-code",
    limits: dict[str, Any] | None = None,
    environment: dict[str, str] | None = None,
    user: Model | None = None,
) -> Sweep:
    """Publish a suite and plan a sweep of all its tasks by the real plan program."""
    loaded = load_suite(suite)
    local = {"REALCLI_STORAGE_PATIENCE": "5"} | (environment or {})
    model = Model(MODEL, provider, KEY)
    made = plan_local(storage, loaded, program, model, limits=limits, environment=local, user=user)
    return Sweep(made.storage, made.lock, made.plan, made.environment, loaded, toolkit, agent, program)


def terminate(process: subprocess.Popen[Any]) -> None:
    """SIGTERM, and wait."""
    process.send_signal(signal.SIGTERM)
    process.wait(30)
