"""The order of quiesce over a made-up process table, and its honesty."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from realcli_runner import quiesce as module
from realcli_runner.procfs import Proc
from realcli_runner.quiesce import quiesce

REACTIONS: dict[str, Callable[[int], bool]] = {
    "polite": lambda signum: signum in (signal.SIGTERM, signal.SIGKILL),
    "stubborn": lambda signum: signum == signal.SIGKILL,
    "stuck": lambda signum: False,
}


class Table:
    """Processes that react as told; a bomb forks once for each signal until it has forked `forks` times."""

    def __init__(self, *kinds: str, forks: int = 0, proves: bool = True) -> None:
        self.kinds = dict(enumerate(kinds, start=2))
        self.forks = forks
        self.proves = proves
        self.sent: list[int] = []

    def list(self) -> list[Proc]:
        return [Proc(pid, 1, pid, pid, 0, "S", pid, (kind.encode(),)) for pid, kind in sorted(self.kinds.items())]

    def signal(self, signum: int) -> None:
        self.sent.append(signum)
        self.kinds = {pid: kind for pid, kind in self.kinds.items() if not REACTIONS[kind](signum)}
        if signum == signal.SIGKILL and self.forks:
            self.forks -= 1
            self.kinds[1000 + self.forks] = "stubborn"

    def gone(self) -> bool:
        return not self.kinds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))


def test_nothing_there_sends_nothing() -> None:
    table = Table()
    outcome = quiesce(table, 10, 10)
    assert (outcome.found, outcome.killed, outcome.survivors, outcome.proven, table.sent) == ([], [], [], True, [])


def test_the_polite_are_not_killed() -> None:
    table = Table("polite", "polite")
    outcome = quiesce(table, 10, 10)
    assert (len(outcome.found), outcome.killed, outcome.proven) == (2, [], True)
    assert table.sent == [signal.SIGTERM, signal.SIGCONT]


def test_the_stubborn_are_named_and_killed() -> None:
    table = Table("polite", "stubborn")
    outcome = quiesce(table, 10, 10)
    assert [proc.argv for proc in outcome.killed] == [(b"stubborn",)]
    assert (outcome.survivors, outcome.proven, table.sent[-1]) == ([], True, signal.SIGKILL)


def test_killing_goes_on_while_new_ones_appear() -> None:
    table = Table("stubborn", forks=20)
    assert quiesce(table, 0, 10).proven
    assert table.sent.count(signal.SIGKILL) == 21


def test_what_cannot_be_killed_is_a_survivor() -> None:
    outcome = quiesce(Table("polite", "stuck"), 1, 1)
    assert ([proc.argv for proc in outcome.survivors], outcome.proven) == ([(b"stuck",)], False)


def test_only_the_kernel_proves() -> None:
    outcome = quiesce(Table("polite", proves=False), 1, 1)
    assert (outcome.survivors, outcome.proven) == ([], False)
