"""Running one operator over a small run: snapshots in memory, a context with what a task says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from realcli.checks import Context, SnapshotUnreadable, run_hard
from realcli.ledger.events import ZERO_HASH, Command, CommandEnd, FileWrite, Snapshot
from realcli.scoring.records import HardRecord
from realcli.trajectory import Trajectory
from realcli.trajectory.anchors import Anchor, WindowName, window


@dataclass
class Files:
    """Snapshots by seq: path -> content; None: damaged."""

    states: Mapping[int, Mapping[str, bytes] | None] = field(default_factory=dict)

    def read(self, seq: int, path: str) -> bytes | None:
        return self._state(seq).get(path)

    def paths(self, seq: int) -> list[str]:
        return list(self._state(seq))

    def _state(self, seq: int) -> Mapping[str, bytes]:
        state = self.states[seq]
        if state is None:
            raise SnapshotUnreadable("the archive is damaged")
        return state


def snapshot(name: Any, probe: str | None = None, **more: Any) -> Snapshot:
    return Snapshot(name=name, probe=probe, sha256=ZERO_HASH, size=1, **more)


def ran(*argv: str, id: int = 1, record: Any = "exec", cwd: str = "/app", **more: Any) -> Command:
    return Command(id=id, argv=list(argv), record=record, cwd=cwd, **more)


def typed(script: str, id: int = 1) -> Command:
    return Command(id=id, argv=[script], record="tool_text")


def ended(id: int = 1, code: int | None = 0, signal: int | None = None) -> CommandEnd:
    return CommandEnd(id=id, code=code, signal=signal)


def wrote(path: str, after: int = 1, before: int | None = 2, created: bool = False) -> FileWrite:
    return FileWrite(path=path, after_turn=after, before_turn=before, created=created)


def decided(
    hard: Mapping[str, Any],
    run: Trajectory,
    states: Mapping[int, Mapping[str, bytes] | None] | None = None,
    *,
    name: WindowName = "run",
    anchor: Anchor | None = None,
    decides: str = "both",
    bindings: Mapping[str, Any] | None = None,
    **of_task: Any,
) -> HardRecord:
    """The record of a hard check; by default over the whole run."""
    where = anchor or Anchor("whole_run", 1)
    view = window(run, where, name, "act")
    context = Context(run, where.seq, view, Files(states or {}), decides, instance="p", **of_task)
    return run_hard(hard, bindings or {}, context)
