"""Ends everything but the runner, and proves it.

As PID 1 the kernel does both: `kill(-1, …)` reaches every process of the pid namespace at once, whatever session it fled
to, and `kill(-1, 0)` answers ESRCH when there is none, zombies included. Elsewhere (local runs) only descendants may be
touched; they cannot escape because the runner adopts orphans, but the proof is only as good as /proc.
Reaping is done by the main loop meanwhile.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from realcli_runner import procfs
from realcli_runner.procfs import Proc


class Others(Protocol):
    """All processes the runner is responsible for."""

    proves: bool

    def list(self) -> list[Proc]:
        """Them, as far as /proc shows them."""

    def signal(self, signum: int) -> None:
        """Send to each of them."""

    def gone(self) -> bool:
        """Whether there is none, not even a zombie."""


class PidNamespace:
    """For PID 1: everything in the pid namespace."""

    proves = True

    def list(self) -> list[Proc]:
        """See Others."""
        own = os.getpid()
        return [proc for proc in procfs.table() if proc.pid != own]

    def signal(self, signum: int) -> None:
        """See Others."""
        try:
            os.kill(-1, signum)
        except ProcessLookupError:
            return
        except PermissionError:  # setuid programs under an unprivileged runner: `gone` will tell
            return

    def gone(self) -> bool:
        """See Others."""
        try:
            os.kill(-1, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False


class Descendants:
    """For any other process: its descendants.

    There is no signal to all of them at once, and ended processes make room for new ones: so they are stopped, round after
    round, until none is left to fork, and killed then.
    """

    proves = False
    _STOPPED = frozenset("TtZXx")
    _ROUNDS = 200

    def list(self) -> list[Proc]:
        """See Others."""
        found = (procfs.read(pid) for pid in sorted(procfs.tree(os.getpid())))
        return [proc for proc in found if proc is not None]

    def signal(self, signum: int) -> None:
        """See Others."""
        if signum == signal.SIGKILL:
            for _ in range(self._ROUNDS):
                moving = [pid for pid, state in procfs.tree(os.getpid()).items() if state not in self._STOPPED]
                if not moving:
                    break
                self._send(moving, signal.SIGSTOP)
        self._send(procfs.tree(os.getpid()), signum)

    @staticmethod
    def _send(pids: Iterable[int], signum: int) -> None:
        for pid in pids:
            try:
                os.kill(pid, signum)
            except (ProcessLookupError, PermissionError):
                continue

    def gone(self) -> bool:
        """See Others."""
        return not procfs.tree(os.getpid())


def others() -> Others:
    """The mode that fits this process."""
    return PidNamespace() if os.getpid() == 1 else Descendants()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was there, what outlived the grace, and what outlived SIGKILL (nothing, unless the kernel holds it)."""

    found: list[Proc]
    killed: list[Proc]
    survivors: list[Proc]
    proven: bool


def quiesce(them: Others, grace: float, kill: float, after_wait: Callable[[], None] = lambda: None) -> Outcome:
    """SIGTERM, at most `grace` seconds, then SIGKILL for at most `kill` seconds. `after_wait` runs after each short pause."""
    found = them.list()
    killed: list[Proc] = []
    if not them.gone():
        them.signal(signal.SIGTERM)
        them.signal(signal.SIGCONT)
        if not _gone_within(them, grace, after_wait):
            killed = them.list()
            end = time.monotonic() + kill
            while not them.gone():
                them.signal(signal.SIGKILL)
                if _gone_within(them, 0.05, after_wait) or time.monotonic() >= end:
                    break
    survivors = [] if them.gone() else them.list()
    return Outcome(found, killed, survivors, them.proves and not survivors and them.gone())


def _gone_within(them: Others, seconds: float, after_wait: Callable[[], None]) -> bool:
    end = time.monotonic() + seconds
    pause = 0.002
    while not them.gone():
        if time.monotonic() >= end:
            return False
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
        after_wait()
    return True
