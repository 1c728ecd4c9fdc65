"""A session process beside a container: what a work pod or a verify pod is on a cluster."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from realcli.api.termination import Termination, parse_termination
from realcli_cli.local.children import ours
from realcli_cli.local.container import Container
from realcli_cli.main import UserError

if TYPE_CHECKING:
    from realcli_cli.local.sweep import LocalSweep

LOOK = 0.05
END_SECONDS = 30.0  # for the runner to follow its session


@dataclass
class Ended:
    """How a session process ended."""

    code: int
    termination: Termination | None
    stderr: str


@dataclass
class Pod:
    """A running pair."""

    container: Container
    session: subprocess.Popen[str]
    folder: Path

    def ended(self, seconds: float | None = None, look: Callable[[], None] | None = None) -> Ended:
        """Wait for the session, and for the runner to follow it. `look` is called while it waits."""
        end = None if seconds is None else time.monotonic() + seconds
        while self.session.poll() is None:
            if end is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired(self.session.args, seconds or 0.0)
            if look is not None:
                look()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.session.wait(LOOK if look is None else 0.3)
        if look is not None:
            look()
        said = ""
        if self.container.process is not None:
            try:
                self.container.stop(END_SECONDS)
            except subprocess.TimeoutExpired:  # it is killed; what the session has sealed counts all the same
                said = f"the runner did not follow its session within {END_SECONDS:g} s and was killed\n"
        log = self.folder / "termination"
        message = parse_termination(log.read_text()) if log.exists() else None
        return Ended(self.session.returncode, message, self.stderr + said)

    @property
    def stderr(self) -> str:
        """What the session has said so far."""
        return (self.folder / "stderr").read_text(encoding="utf-8", errors="replace")

    def until(self, there: Callable[[], object], seconds: float = 60) -> None:
        """Wait for something to be seen from outside. AssertionError with what the session said."""
        end = time.monotonic() + seconds
        while not there():
            if self.session.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"it did not come; the session said:\n{self.stderr}")
            time.sleep(LOOK)  # files and processes of others have no other way to tell


@contextlib.contextmanager
def pod(
    sweep: LocalSweep,
    ordinal: int,
    arguments: list[str],
    container: Container,
    keys: Mapping[str, str],
    *,
    runner: bool = True,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Pod]:
    """A session and a runner side by side, both running; ended with the block, the container removed.

    `arguments`: the command and its numbers; `keys`: content of /keys by file name.
    """
    with contextlib.ExitStack() as stack:
        stack.callback(container.close)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="realcli-session-")))
        for name in ("keys", "spool"):
            (folder / name).mkdir(mode=0o700)
        for name, key in keys.items():
            (folder / "keys" / name).write_text(key + "\n")
        variables = dict(sweep.environment) | {
            "REALCLI_KEYS": str(folder / "keys"),
            "REALCLI_SPOOL": str(folder / "spool"),
            "REALCLI_TERMINATION_LOG": str(folder / "termination"),
        }
        if not runner:
            variables["REALCLI_RELEASE_SECONDS"] = "0"
        common = ["--root", sweep.plan.root, "--lock-digest", sweep.plan.lock_digest, "--ordinal", str(ordinal)]
        command = [arguments[0], *common, *arguments[1:], "--socket", str(container.socket)]
        errors = stack.enter_context((folder / "stderr").open("w"))
        session = start_session(command, variables | dict(environment or {}), stderr=errors)
        stack.callback(_end, session)
        if runner:
            container.start(_setup_seconds(sweep))
        yield Pod(container, session, folder)


def _setup_seconds(sweep: LocalSweep) -> float:
    from realcli.api.base import seconds

    return float(seconds(sweep.lock.spec.limits.setup))


def _end(session: subprocess.Popen[str]) -> None:
    """SIGTERM lets it seal what it has; SIGKILL if it does not."""
    if session.poll() is None:
        session.send_signal(signal.SIGTERM)
        try:
            session.wait(10)
        except subprocess.TimeoutExpired:
            session.kill()
    session.communicate()


def start_session(arguments: list[str], environment: Mapping[str, str], *, stderr: int | IO[str]) -> subprocess.Popen[str]:
    """`python -m realcli_session …` with nothing of this process's environment."""
    try:
        import realcli_session  # noqa: F401
    except ModuleNotFoundError as error:
        raise UserError(f"the session is not installed ({error.name} is missing): pip install 'realcli[session]'") from error
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG", "PYTHONWARNINGS") if name in os.environ}
    return subprocess.Popen(
        [sys.executable, "-m", "realcli_session", *arguments],
        env=kept | dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if arguments[0] == "plan" else subprocess.DEVNULL,
        stderr=stderr,
        text=True,
        cwd="/",
        **ours(signal.SIGTERM),
    )
