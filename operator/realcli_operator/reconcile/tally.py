"""Counting a sweep's trials: the counters of its status, the groups that are complete. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from realcli.api.outcomes import Phase
from realcli.api.plan import Plan as FrozenPlan
from realcli.api.sweep import ModeCounts, SweepCounts
from realcli.scoring.records import GroupInput, GroupMember
from realcli_operator.kube.views import TrialView
from realcli_operator.reconcile.facts import trial_status
from realcli_operator.reconcile.recent import Row
from realcli_operator.reconcile.rows import Rows


def rows_of(trials: Iterable[TrialView]) -> Rows:
    """Trials by ordinal. Unknown phases (a newer operator's) count as pending."""
    return Rows(tuple(trials))


def count(plan: FrozenPlan, rows: Rows, judged: int) -> SweepCounts:
    """The counters. Trials that do not exist yet are pending."""
    per_mode = plan.size // len(plan.modes)

    def of(mode: str) -> ModeCounts:
        total = per_mode if mode in plan.modes else 0
        sealed, invalid = (rows.phases[(mode, phase)] for phase in (Phase.SEALED, Phase.INVALID))
        return ModeCounts(total=total, sealed=sealed, invalid=invalid)

    phases = {phase: sum(rows.phases[(mode, phase)] for mode in plan.modes) for phase in Phase}
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


def complete_groups(plan: FrozenPlan, rows: Rows) -> list[int]:
    """Groups all of whose trials are terminal, sorted. One with a cancelled trial never is: it is not to be judged."""
    members = plan.repeats * len(plan.modes)
    return sorted(group for group, number in rows.finished(plan).items() if number == members)


def group_input(plan: FrozenPlan, rows: Mapping[int, Row], group: int) -> GroupInput:
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
