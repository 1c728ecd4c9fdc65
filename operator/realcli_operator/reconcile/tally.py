"""Counting a sweep's trials: the counters of its status, the groups that are complete. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from realcli.api.outcomes import Phase
from realcli.api.plan import Plan as FrozenPlan
from realcli.api.sweep import ModeCounts, SweepCounts
from realcli.scoring.records import GroupInput, GroupMember
from realcli_operator.kube.views import TrialView
from realcli_operator.reconcile.facts import trial_status
from realcli_operator.reconcile.recent import Row, time_of

_PHASES = {phase.value: phase for phase in Phase}


def rows_of(trials: Iterable[TrialView]) -> dict[int, Row]:
    """Trials by ordinal. Unknown phases (a newer operator's) count as pending."""
    rows = {}
    for view in trials:
        status = view.status
        ordinal = int(view.spec["ordinal"])
        phase = _PHASES.get(view.phase, Phase.PENDING)
        rows[ordinal] = Row(view, ordinal, phase, str(status.get("reason", "")), time_of(status.get("retryAfter")))
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
    """Groups all of whose trials are terminal, sorted. One with a cancelled trial never is: it is not to be judged."""
    members = plan.repeats * len(plan.modes)
    terminal = Counter(plan.group_of(row.ordinal) for row in rows.values() if row.phase.terminal and row.reason != "Cancelled")
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
