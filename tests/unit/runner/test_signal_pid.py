"""A process that ends, or gets another parent, while the process tree is read is no stranger."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest

from realcli.wire.body import Fields
from realcli_runner import procfs, server
from realcli_runner.errors import Failure

CHILD = procfs.Proc(pid=77, ppid=5, pgid=77, sid=77, uid=0, state="S", start=1234, argv=(b"sleep", b"9"))
BODY = {"pid": 77, "signal": int(signal.SIGKILL), "to": "process", "start": 1234}


class Table:
    """What is read of process 77: the process at each look, and whether each tree has it."""

    def __init__(self, looks: list[procfs.Proc | None], trees: list[bool]) -> None:
        self._looks, self._trees = iter(looks), iter(trees)
        self.signalled: list[procfs.Proc] = []

    def read(self, _: int) -> procfs.Proc | None:
        return next(self._looks)

    def tree(self, _: int) -> dict[int, procfs.Proc]:
        return {77: CHILD} if next(self._trees) else {}

    def signal(self, proc: procfs.Proc, _signum: int, _target: str) -> int:
        self.signalled.append(proc)
        return 1


def ask(monkeypatch: pytest.MonkeyPatch, table: Table) -> int:
    monkeypatch.setattr(procfs, "read", table.read)
    monkeypatch.setattr(procfs, "tree", table.tree)
    monkeypatch.setattr(server, "signal_pid", table.signal)
    return server.Server._signal_pid(object.__new__(server.Server), Fields(BODY))


@pytest.mark.parametrize(
    ("looks", "trees", "count"),
    [
        ([CHILD], [True], 1),
        ([CHILD], [False, False, True], 1),
        ([CHILD, None], [False] * server.TREES, 0),
        ([CHILD, replace(CHILD, start=9999)], [False] * server.TREES, 0),
    ],
    ids=["there", "had another parent for a moment", "ended meanwhile", "its number is another's"],
)
def test_signalled_or_gone(
    monkeypatch: pytest.MonkeyPatch, looks: list[procfs.Proc | None], trees: list[bool], count: int
) -> None:
    table = Table(looks, trees)
    assert ask(monkeypatch, table) == count
    assert table.signalled == [CHILD] * count


def test_a_stranger_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table([CHILD, CHILD], [False] * server.TREES)
    with pytest.raises(Failure, match="77 is not a descendant"):
        ask(monkeypatch, table)
    assert table.signalled == []
