"""Counting a sweep's trials: the counters of its status, the groups that are complete, who waits and who runs. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from realcli.api.outcomes import Phase
from realcli.api.plan import Plan as FrozenPlan
from realcli.api.sweep import ModeCounts, SweepCounts
from realcli.scoring.records import GroupInput, GroupMember
from realcli_operator.kube.views import TrialView
from realcli_operator.reconcile.facts import trial_status

ACTIVE = frozenset({Phase.WORKING, Phase.VERIFYING})
_PHASES = {phase.value: phase for phase in Phase}


@dataclass(frozen=True, slots=True)
class Row:
    """One trial, as far as the sweep cares."""

    view: TrialView
    ordinal: int
    phase: Phase
    reason: str
    retry_after: str | None

    @property
    def name(self) -> str:
        """Its name."""
        return self.view.name


def rows_of(trials: Iterable[TrialView]) -> dict[int, Row]:
    """Trials by ordinal. Unknown phases (a newer operator's) count as pending."""
    rows = {}
    for view in trials:
        status = view.status
        ordinal = int(view.spec["ordinal"])
        phase = _PHASES.get(view.phase, Phase.PENDING)
        rows[ordinal] = Row(view, ordinal, phase, str(status.get("reason", "")), status.get("retryAfter"))
    return rows


def count(plan: FrozenPlan, rows: dict[int, Row], judged: int) -> SweepCounts:
    """The counters. Trials that do not exist yet are pending."""
    phases = Counter(row.phase for row in rows.values())
    by_mode = Counter((plan.modes[row.ordinal % len(plan.modes)], row.phase) for row in rows.values())
    per_mode = plan.size // len(plan.modes)

    def of(mode: str) -> ModeCounts:
        total = per_mode if mode in plan.modes else 0
        sealed, invalid = (by_mode[(mode, phase)] for phase in (Phase.SEALED, Phase.INVALID))  # type: ignore[index]
        return ModeCounts(total=total, sealed=sealed, invalid=invalid)

    settled = phases[Phase.SEALED] + phases[Phase.INVALID]
    running = phases[Phase.WORKING] + phases[Phase.VERIFYING]
    return SweepCounts(
        total=plan.size,
        created=len(rows),
        pending=plan.size - settled - running,
        working=phases[Phase.WORKING],
        verifying=phases[Phase.VERIFYING],
        sealed=phases[Phase.SEALED],
        invalid=phases[Phase.INVALID],
        exec=of("EXEC"),
        collab=of("COLLAB"),
        groups=plan.groups,
        groups_judged=judged,
    )


def complete_groups(plan: FrozenPlan, rows: dict[int, Row]) -> list[int]:
    """Groups all of whose trials are terminal, sorted."""
    members = plan.repeats * len(plan.modes)
    terminal = Counter(plan.group_of(row.ordinal) for row in rows.values() if row.phase.terminal)
    return sorted(group for group, number in terminal.items() if number == members)


def group_input(plan: FrozenPlan, rows: dict[int, Row], group: int) -> GroupInput:
    """What the judge Job of a complete group is told."""
    configuration, task = divmod(group, len(plan.tasks))
    members = []
    for ordinal in plan.ordinals_of_group(group):
        status = trial_status(rows[ordinal].view)
        cell = plan.coordinates(ordinal)
        members.append(
            GroupMember(
                ordinal=ordinal,
                mode=cell.mode,
                repeat=cell.repeat,
                phase=status.phase,
                reason=status.reason or "",
                attempt=status.attempt,
                invalid_attempts=status.invalid_attempts,
                reward=status.reward,
                verify_attempt=status.verify_attempt or None,
                work_seal=status.work_seal_digest,
                seal=status.seal_digest,
            )
        )
    return GroupInput(configuration=plan.configurations[configuration].name, task=plan.tasks[task].name, members=members)


@dataclass(frozen=True, slots=True)
class Admission:
    """Who may start: all grants that hold now, those that are new, and when the next waiting trial is due."""

    grants: frozenset[str]
    new: tuple[str, ...]
    next_due: float | None


def admit(rows: dict[int, Row], granted: frozenset[str], parallelism: int, now: datetime, *, held: bool) -> Admission:
    """Fill the window of ``parallelism`` trials that may have a pod, lowest ordinals first. ``held``: none is new, and
    a grant that was not used yet is taken back."""
    active = 0
    waiting: list[Row] = []
    due: list[float] = []
    for ordinal in sorted(rows):
        row = rows[ordinal]
        if row.phase in ACTIVE:
            active += 1
        elif not row.phase.terminal and not row.view.deleting:
            left = (datetime.fromisoformat(row.retry_after) - now).total_seconds() if row.retry_after else 0.0
            if left > 0:
                due.append(left)
            else:
                waiting.append(row)
    if held:
        return Admission(frozenset(), (), None)
    kept = [row.name for row in waiting if row.name in granted]
    free = max(0, parallelism - active - len(kept))
    fresh = [row.name for row in waiting if row.name not in granted][:free]
    return Admission(frozenset((*kept, *fresh)), tuple(fresh), min(due, default=None))


def missing(plan: FrozenPlan, rows: dict[int, Row], window: int, per_step: int) -> tuple[int, ...]:
    """Ordinals to create now, lowest first: holes that a crash left and the next of the window of ``window`` trials
    that are not terminal."""
    open_now = sum(not row.phase.terminal for row in rows.values())
    wanted = min(per_step, window - open_now)
    found: list[int] = []
    for ordinal in range(plan.size):
        if len(found) >= wanted:
            break
        if ordinal not in rows:
            found.append(ordinal)
    return tuple(found)
