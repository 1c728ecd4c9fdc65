"""Runs trials without a cluster: the real session and the real runner as processes, the runner as PID 1 of a chroot with
private mount and pid namespaces in which the host's programs are mounted read-only. Needs root. It isolates less than a pod:
the network is the host's.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from realcli.api.plan import Lock, Plan, plan_in_log
from realcli.api.termination import Termination, parse_termination
from realcli.benchmark.bundles import File
from realcli.benchmark.publish import publish
from realcli.benchmark.suite import load_suite
from realcli.ledger.events import EVENT, Event
from realcli.ledger.seals import VerifySeal, WorkSeal
from realcli.storage.local import LocalStore
from realcli.storage.paths import AttemptPaths, SweepPaths

REPOSITORY = Path(__file__).resolve().parents[3]
KEY = "sk-real-key-0123456789abcdef"
CAPABILITIES = ["chown", "dac_override", "fowner", "fsetid", "kill", "setuid", "setgid", "sys_chroot", "net_bind_service"]
SYSTEM = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "etc"]
TOOLKIT_PYTHON = [
    "/opt/realcli/lib/ld-linux-x86-64.so.2", "--argv0", "/opt/realcli/bin/python3", "--library-path", "/opt/realcli/lib",
    "/opt/realcli/bin/python3.real", "-I", "/opt/realcli/runner/start.py",
]  # fmt: skip
_ENTER = """
set -e
root=$1 toolkit=$2 agent=$3; shift 3
cd "$root"
for d in usr bin sbin lib lib32 lib64 etc; do
    if test -d "$d" && ! test -L "$d"; then mount --bind "/$d" "$d" && mount -o remount,ro,bind "$d"; fi
done
for f in null zero random urandom; do mount --bind "/dev/$f" "dev/$f"; done
mount --bind "$toolkit" opt/realcli && mount -o remount,ro,bind opt/realcli
mount --bind "$agent" opt/realcli/agent
mount -t proc proc proc
exec setpriv --no-new-privs --inh-caps=-all --bounding-set="-all,{caps}" chroot "$root" "$@"
"""


def build_toolkit(dest: Path) -> Path:
    """The toolkit image's content: Python with its own loader, and the runner."""
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    script = REPOSITORY / "runner_image" / "build-toolkit.sh"
    subprocess.run(["bash", str(script), str(dest)], check=True, env={"PATH": path}, stdout=subprocess.DEVNULL)
    ignore = shutil.ignore_patterns("__pycache__")
    runner = dest / "runner"
    (runner / "realcli").mkdir(parents=True)
    (dest / "agent").mkdir()
    shutil.copy(REPOSITORY / "runner_image" / "start.py", runner)
    shutil.copytree(REPOSITORY / "runner_image" / "realcli_runner", runner / "realcli_runner", ignore=ignore)
    shutil.copy(REPOSITORY / "realcli" / "__init__.py", runner / "realcli")
    shutil.copytree(REPOSITORY / "realcli" / "wire", runner / "realcli" / "wire", ignore=ignore)
    return dest


@dataclass
class Container:
    """A task's container: its root directory on the host, and how the runner is started in it."""

    root: Path
    toolkit: Path
    agent: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        """As the session sees it."""
        return self.root / "run/realcli/session.sock"

    def put(self, file: File) -> None:
        """A file of the image."""
        target = self.root / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(file.mode)

    def path(self, inside: str) -> Path:
        """A path of the container on the host."""
        return self.root / inside.lstrip("/")

    def start(self, setup_seconds: float = 60) -> None:
        """Start the runner as PID 1."""
        script = _ENTER.format(caps=",".join(f"+{name}" for name in CAPABILITIES))
        namespaces = ["unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "--propagation", "private", "--"]
        enter = ["sh", "-c", script, "sh", str(self.root), str(self.toolkit), str(self.agent)]
        runner = [*TOOLKIT_PYTHON, "--socket", "/run/realcli/session.sock", "--setup-seconds", str(setup_seconds)]
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
        self.process = subprocess.Popen([*namespaces, *enter, *runner], env=environment, stdin=subprocess.DEVNULL)

    def stop(self) -> int:
        """The runner ends when its session does; its exit status."""
        assert self.process is not None
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


@contextlib.contextmanager
def container(image: list[File], toolkit: Path, agent: Path) -> Iterator[Container]:
    """A root with the files of the task's image (paths relative to `/`) and everything a pod has beside."""
    root = Path(tempfile.mkdtemp(prefix="rcli-"))  # short: a socket's path has 107 bytes
    made = Container(root, toolkit, agent)
    try:
        root.chmod(0o755)
        for name in ["tmp", "proc", "dev", "root", "run/realcli", "opt/realcli", "app"]:
            (root / name).mkdir(parents=True)
        (root / "tmp").chmod(0o1777)
        for name in SYSTEM:
            host = Path("/", name)
            if host.is_symlink():
                (root / name).symlink_to(os.readlink(host))
            elif host.is_dir():
                (root / name).mkdir()
        for name in ["null", "zero", "random", "urandom"]:
            (root / "dev" / name).touch()
        for file in image:
            made.put(file)
        yield made
    finally:
        if made.process is not None and made.process.poll() is None:
            made.process.kill()
            made.process.wait()
        shutil.rmtree(root)


@dataclass
class Ended:
    """How a session process ended."""

    code: int
    termination: Termination | None
    stdout: str
    stderr: str


@dataclass
class Sweep:
    """A planned sweep in a local directory."""

    store_dir: Path
    image: Callable[[str], list[File]]
    """Files of the image of a task."""
    toolkit: Path
    agent: Path
    lock: Lock
    plan: Plan
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def store(self) -> LocalStore:
        """Where everything lies."""
        return LocalStore(self.store_dir)

    def ordinal(self, task: str, mode: str, repeat: int = 1) -> int:
        """The trial of a cell."""
        cells = (self.plan.coordinates(n) for n in range(self.plan.size))
        return next(c.ordinal for c in cells if (c.task, c.mode, c.repeat) == (task, mode, repeat))

    def attempt(self, ordinal: int, attempt: int = 1) -> AttemptPaths:
        """Its keys."""
        return SweepPaths(self.plan.root).attempt(ordinal, attempt)

    def events(self, ordinal: int, attempt: int = 1) -> list[Event]:
        """The ledger in storage."""
        store = self.store
        keys = [info.key for info in store.list(self.attempt(ordinal, attempt).ledger + "/")]
        return [EVENT.validate_json(line) for key in sorted(keys) for line in store.get(key).splitlines()]

    def work_seal(self, ordinal: int, attempt: int = 1) -> WorkSeal:
        """Parsed."""
        return WorkSeal.model_validate_json(self.store.get(self.attempt(ordinal, attempt).work_seal))

    def verify_seal(self, ordinal: int, verify: int = 1, attempt: int = 1) -> VerifySeal:
        """Parsed."""
        return VerifySeal.model_validate_json(self.store.get(self.attempt(ordinal, attempt).verify(verify).seal))

    @contextlib.contextmanager
    def pod(self, ordinal: int, *arguments: str, runner: bool = True, **environment: str) -> Iterator[Pod]:
        """A session and a runner side by side, both running; ended with the block."""
        task = self.plan.coordinates(ordinal).task
        with container(self.image(task), self.toolkit, self.agent) as place, tempfile.TemporaryDirectory() as own:
            folder = Path(own)
            (folder / "keys").mkdir()
            (folder / "spool").mkdir()
            (folder / "keys" / "anthropic").write_text(KEY + "\n")
            variables = self.environment | {
                "REALCLI_KEYS": str(folder / "keys"),
                "REALCLI_SPOOL": str(folder / "spool"),
                "REALCLI_TERMINATION_LOG": str(folder / "termination"),
            }
            common = ["--root", self.plan.root, "--lock-digest", self.plan.lock_digest, "--ordinal", str(ordinal)]
            if not runner:
                variables["REALCLI_RELEASE_SECONDS"] = "0"
            command = [arguments[0], *common, *arguments[1:], "--socket", str(place.socket)]
            session = start_session(command, variables | environment)
            try:
                if runner:
                    place.start()
                yield Pod(place, session, folder)
            finally:
                if session.poll() is None:
                    session.kill()
                session.communicate()

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


@dataclass
class Pod:
    """A running pair."""

    container: Container
    session: subprocess.Popen[str]
    folder: Path

    def ended(self, seconds: float = 180) -> Ended:
        """Wait for the session, and for the runner to follow it."""
        out, err = self.session.communicate(timeout=seconds)
        log = self.folder / "termination"
        text = log.read_text() if log.exists() else None
        if self.container.process is not None:
            self.container.stop()
        return Ended(self.session.returncode, parse_termination(text), out, err)

    def until(self, there: Callable[[], bool], seconds: float = 60) -> None:
        """Wait for something to be seen from outside."""
        end = time.monotonic() + seconds
        while not there():
            if self.session.poll() is not None or time.monotonic() > end:
                self.session.kill()
                raise AssertionError(f"it did not come; the session said:\n{self.session.communicate()[1]}")
            time.sleep(0.05)  # files and processes of others have no other way to tell


def start_session(arguments: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    """`python -m realcli_session …` with nothing of this process's environment."""
    return subprocess.Popen(
        [sys.executable, "-m", "realcli_session", *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONWARNINGS": "default"} | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
    )


def plan_sweep(
    store_dir: Path,
    suite: Path,
    provider: str,
    toolkit: Path,
    agent: Path,
    *,
    limits: dict[str, Any] | None = None,
    uid: str = "0",
) -> Sweep:
    """Publish a suite and plan a sweep of all its tasks by the real plan program."""
    loaded = load_suite(suite)
    published = publish(loaded, LocalStore(store_dir), "benchmarks")
    secret = {"secretRef": {"name": "provider", "key": "api-key"}}
    spec = {
        "benchmark": {"source": f"s3://local/{published.key}", "digest": published.digest},
        "agents": [{"name": "claude-code"}],
        "models": [
            {"name": "sonnet", "model": "claude-sonnet-4-5", "endpoints": {"anthropic": {"url": provider, "apiKey": secret}}}
        ],
        "repeats": 1,
        "limits": limits or {},
        "storage": {"bucket": "local", "credentials": {"secretRef": {"name": "s3"}}},
    }
    platform = {
        "operatorVersion": "0", "userNamespaces": False, "imageVolumes": False,
        "images": {"session": "s", "judge": "j", "toolkit": "t", "agents": {"claude-code/2.1.140": "a"}},
    }  # fmt: skip
    request = {"sweep": {"namespace": "local", "name": "local", "uid": "00000000"}, "spec": spec, "platform": platform}
    environment = {
        "REALCLI_STORAGE": json.dumps({"directory": str(store_dir)}),
        "REALCLI_ALLOW_LOOPBACK": "1",
        "REALCLI_GATEWAY_PORT": "0",
        "REALCLI_SEGMENT_SECONDS": "1",
        "REALCLI_STORAGE_PATIENCE": "5",
        "REALCLI_NODE": "local",
    }
    with tempfile.TemporaryDirectory() as own:
        log = Path(own) / "termination"
        variables = environment | {"REALCLI_SWEEP": json.dumps(request), "REALCLI_TERMINATION_LOG": str(log)}
        session = start_session(["plan"], variables)
        out, err = session.communicate(timeout=60)
        message = parse_termination(log.read_text())
    assert session.returncode == 0, err
    assert message is not None
    assert message.seal is not None, message.message
    plan = plan_in_log(out, message.seal)
    lock = Lock.model_validate_json(LocalStore(store_dir).get(SweepPaths(plan.root).lock))

    def image(task: str) -> list[File]:
        files = next(t for t in loaded.tasks if t.name == task).public
        prefix = "environment/"
        return [f._replace(path=f.path.removeprefix(prefix)) for f in files if f.path.startswith(prefix + "app/")]

    return Sweep(store_dir, image, toolkit, agent, lock, plan, environment)


def terminate(process: subprocess.Popen[Any]) -> None:
    """SIGTERM, and wait."""
    process.send_signal(signal.SIGTERM)
    process.wait(30)
