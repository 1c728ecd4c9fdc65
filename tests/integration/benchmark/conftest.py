"""Runs a task for real without a cluster: its image's files, run/ files and tests in a chroot of its own on the host's programs.

The programs of the host (/usr, /bin, …) are mounted read-only; /app, /tests, /logs, /tmp are the task's own; there is no network.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from realcli.api.base import canonical_json, sha256_digest
from realcli.benchmark.bundles import File, read_tree
from realcli.benchmark.run_files import render_run
from realcli.benchmark.suite import Suite, Task, load_suite
from realcli.ledger.seals import RunJson

ROOT = Path(__file__).resolve().parents[3]
STARTER = ROOT / "benchmark/starter"
SYSTEM = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "etc"]
ENTER = """
set -e
cd "$0"
for d in usr bin sbin lib lib32 lib64 etc; do
    if test -d "$d" && ! test -L "$d"; then mount --bind "/$d" "$d" && mount -o remount,ro,bind "$d"; fi
done
mount -t proc proc proc
for f in null zero urandom; do mount --bind "/dev/$f" "dev/$f"; done
exec chroot . /bin/bash -c 'cd "$0" && exec "$@"' "$@"
"""


@dataclass
class Verdict:
    """What verify read."""

    reward: float
    failed: list[str]  # names of failed checks
    passed: list[str]
    output: str


class TaskRoot:
    """The root of a task's container."""

    def __init__(self, root: Path, task: Task, run: RunJson) -> None:
        self.root, self.task, self.run_json = root, task, run
        for name in ["app", "tests", "logs/verifier", "tmp", "proc", "dev", "root"]:
            (root / name).mkdir(parents=True)
        (root / "tmp").chmod(0o1777)
        for name in SYSTEM:
            host = Path("/", name)
            if host.is_symlink():
                (root / name).symlink_to(os.readlink(host))
            elif host.is_dir():
                (root / name).mkdir()
        for name in ["null", "zero", "urandom"]:
            (root / "dev" / name).touch()
        files = {file.path: file for file in task.public}
        assert b"COPY app/ /app/" in files["environment/Dockerfile"].content
        for file in task.public:
            if file.path.startswith("environment/app/"):
                self.put(file.path.removeprefix("environment"), file.mode, file.content)
        for placed in render_run(STARTER / "tasks" / task.name, run):
            self.put(*placed)

    def put(self, path: str, mode: int, content: bytes) -> None:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod(mode)

    def put_tree(self, part: str, files: list[File]) -> None:
        for file in files:
            if file.path.startswith(part + "/"):
                self.put("/" + file.path, file.mode, file.content)

    def execute(self, *argv: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """Run a program in the root, in the task's workdir."""
        isolate = ["unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child", "--propagation", "private"]
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
        return subprocess.run(
            [*isolate, "/bin/bash", "-c", ENTER, str(self.root), self.task.config.environment.workdir, *argv],
            env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, errors="replace",
        )  # fmt: skip

    def state(self) -> list[File]:
        """The declared artifacts, as the work pod would store them."""
        paths = [path.lstrip("/") for path in self.task.config.artifact_paths()]
        return read_tree(self.root, paths)

    def read(self, path: str) -> bytes:
        return (self.root / path.lstrip("/")).read_bytes()

    def edit(self, change: Callable[[bytes], bytes], path: str) -> None:
        target = self.root / path.lstrip("/")
        target.write_bytes(change(target.read_bytes()))

    def solve(self) -> None:
        """Run the reference solution, as Harbor does: at /solution."""
        self.put_tree("solution", self.task.private)
        done = self.execute("/bin/bash", "/solution/solve.sh")
        assert done.returncode == 0, done.stdout + done.stderr
        shutil.rmtree(self.root / "solution")


@pytest.fixture(scope="session")
def suite() -> Suite:
    return load_suite(STARTER)


@pytest.fixture(scope="session")
def a_run() -> Callable[[str], RunJson]:
    """A run.json derived from a word: two words, two instances."""

    def make(word: str) -> RunJson:
        nonce = sha256_digest(word.encode()).removeprefix("sha256:")
        return RunJson(instance_id=f"rc-{nonce[:16]}", nonce=nonce, seed=int(nonce[:8], 16))

    return make


@pytest.fixture(scope="session")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Task, RunJson], TaskRoot]]:
    """Makes roots; skips where the kernel does not let us."""
    if os.geteuid() != 0:
        pytest.skip("needs root: tasks run in a chroot with mounts of their own")
    made: list[Path] = []

    def make(task: Task, run: RunJson) -> TaskRoot:
        made.append(tmp_path_factory.mktemp("root"))
        made[-1].chmod(0o755)  # as in an image: tests run the program as an ordinary user
        return TaskRoot(made[-1], task, run)

    yield make
    for root in made:
        shutil.rmtree(root)


@pytest.fixture(scope="session")
def solved(suite: Suite, roots: Callable[[Task, RunJson], TaskRoot], a_run: Callable[[str], RunJson]) -> dict[str, TaskRoot]:
    """By task: the root in which the reference solution has run, for run "one". Not to be changed."""
    made = {task.name: roots(task, a_run("one")) for task in suite.tasks}
    for root in made.values():
        root.solve()
    return made


@pytest.fixture(scope="session")
def restored(roots: Callable[[Task, RunJson], TaskRoot]) -> Callable[[Task, RunJson, list[File]], TaskRoot]:
    """The verifier's root: pristine image, run/ files, the state, tests, run.json."""

    def restore(task: Task, run: RunJson, state: list[File]) -> TaskRoot:
        root = roots(task, run)
        for file in state:
            root.put("/" + file.path, file.mode, file.content)
        root.put_tree("tests", task.private)
        root.put("/tests/run.json", 0o600, canonical_json(run.dump()))
        return root

    return restore


@pytest.fixture(scope="session")
def verify(restored: Callable[[Task, RunJson, list[File]], TaskRoot]) -> Callable[[Task, RunJson, list[File]], Verdict]:
    """Verify as the contract says; the reward by Harbor's rules."""

    def run_tests(task: Task, run: RunJson, state: list[File]) -> Verdict:
        root = restored(task, run, state)
        done = root.execute("/bin/bash", "/tests/test.sh", timeout=task.config.verifier.timeout_sec)
        logs = root.root / "logs/verifier"
        reward = json.loads((logs / "reward.json").read_text())["reward"]
        assert float((logs / "reward.txt").read_text()) == reward
        tests = json.loads((logs / "ctrf.json").read_text())["results"]["tests"]
        names = {status: [t["name"] for t in tests if t["status"] == status] for status in ("passed", "failed")}
        return Verdict(reward, names["failed"], names["passed"], done.stdout + done.stderr)

    return run_tests
