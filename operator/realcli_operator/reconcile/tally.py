"""Counting a sweep's trials: the counters of its status, the groups that are complete. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from realcli.api.outcomes import Phase
from realcli.api.plan import Plan as FrozenPlan
from realcli.api.sweepstatus import ModeCounts, SweepCounts
from realcli.scoring.records import GroupInput, GroupMember
from realcli_operator.reconcile.facts import trial_status
from realcli_operator.reconcile.origin import source_counts
from realcli_operator.reconcile.recent import Row
from realcli_operator.reconcile.rows import Rows


def count(plan: FrozenPlan, rows: Rows, judged: Collection[int], withdrawn: Collection[str] = ()) -> SweepCounts:
    """The counters; ``judged`` by number of the group, ``withdrawn`` by name of the task. Trials that do not exist yet are
    pending, but for those of withdrawn tasks, which never will."""
    per_mode = plan.size // len(plan.modes)

    def of(mode: str) -> ModeCounts:
        total = per_mode if mode in plan.modes else 0
        sealed, invalid = (rows.phases[(mode, phase)] for phase in (Phase.SEALED, Phase.INVALID))
        return ModeCounts(total=total, sealed=sealed, invalid=invalid)

    phases = {phase: sum(rows.phases[(mode, phase)] for mode in plan.modes) for phase in Phase}
    settled = phases[Phase.SEALED] + phases[Phase.INVALID]
    running = phases[Phase.WORKING] + phases[Phase.VERIFYING]
    never = 0
    if withdrawn:
        there = sum(rows.tasks[task] for task in withdrawn)
        never = len(withdrawn) * (plan.size // len(plan.tasks)) - there
    incomplete = {plan.group_of(ordinal) for ordinal in rows.invalid}.intersection(judged)
    counts = SweepCounts(
        total=plan.size,
        created=len(rows),
        pending=plan.size - settled - running - never,
        working=phases[Phase.WORKING],
        verifying=phases[Phase.VERIFYING],
        sealed=phases[Phase.SEALED],
        invalid=phases[Phase.INVALID],
        withdrawn=never,
        exec=of("EXEC"),
        collab=of("COLLAB"),
        groups=plan.groups,
        groups_judged=len(judged),
        groups_incomplete=len(incomplete),
        groups_withdrawn=len(withdrawn) * len(plan.configurations),
        tasks_withdrawn=len(withdrawn),
    )
    return source_counts(plan, counts, judged) if plan.judged_only else counts


def complete_groups(plan: FrozenPlan, rows: Rows, withdrawn: Collection[str] = (), again: Collection[int] = ()) -> list[int]:
    """Groups all of whose trials are terminal, sorted, but for those of withdrawn tasks and those with a trial that runs
    ``again``. One with a cancelled trial never is: it is not to be judged."""
    if plan.judged_only:  # they ended in another sweep
        return list(range(plan.groups))
    groups = rows.complete(plan)
    if withdrawn or again:
        left_out = {index for index, task in enumerate(plan.tasks) if task.name in withdrawn}
        open_ = {plan.group_of(ordinal) for ordinal in again}
        groups = {group for group in groups if group % len(plan.tasks) not in left_out and group not in open_}
    return sorted(groups)


def rounds_of(plan: FrozenPlan, rows: Rows) -> dict[int, int]:
    """n of the groups that hold a renewed trial; that of all others is 1."""
    found: dict[int, int] = {}
    for ordinal, row in rows.renewed.items():
        group = plan.group_of(ordinal)
        found[group] = max(found.get(group, 1), row.round)
    return found


def group_input(plan: FrozenPlan, rows: Mapping[int, Row], group: int, n: int = 1) -> GroupInput:
    """What the judge Job of a complete group is told; the ``n``-th of the group."""
    configuration, task = divmod(group, len(plan.tasks))
    members = []
    for ordinal in () if plan.judged_only else plan.ordinals_of_group(group):  # else the source's, which the Job reads
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
                verify_attempt=status.verify_attempt if status.seal_digest is not None else None,
                work_seal=status.work_seal_digest,
                seal=status.seal_digest,
                control=status.control,
            )
        )
    return GroupInput(configuration=plan.configurations[configuration].name, task=plan.tasks[task].name, n=n, members=members)
