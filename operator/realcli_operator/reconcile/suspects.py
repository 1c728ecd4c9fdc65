"""Which trial runs the control of a task, and which tasks are withdrawn from a sweep. Pure.

Rows of controls are made from what the trials say and kept in the sweep's status: a row that got lost is found again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from realcli.api.outcomes import Phase
from realcli.api.plan import Plan as FrozenPlan
from realcli.api.plan import trial_name
from realcli.api.sweepstatus import ControlEnd, ControlRow, Withdrawn
from realcli.scoring.records import WithdrawnTask
from realcli_operator.reconcile.recent import Row
from realcli_operator.reconcile.rows import Rows

MAX_NAMED = 10
FAULT = "VerifierFault"


def controls_of(plan: FrozenPlan, rows: Rows, known: Iterable[ControlRow], sweep: str, free: int) -> list[ControlRow]:
    """The controls, by task: every task whose tests ended a trial without a verdict has one, made or running, at most one.

    ``free``: how many may begin now. A control is given to the awaiting trial with the lowest ordinal; one whose trial does not
    await it any more (it was cancelled, or deleted by hand) is given to another.
    """
    images = {task.name: task.image for task in plan.tasks}
    verifier = plan.platform.images.session[:512]

    def row_of(task: str, trial: str, end: ControlEnd | None) -> ControlRow:
        values = {"task": task, "image": images[task][:512], "verifier": verifier, "trial": trial, "end": end}
        return ControlRow.model_validate({**values, "result": "Running" if end is None else end.result})

    found = {row.task: row for row in known if row.task in images}
    for row in rows.controlled.values():
        end = _end(row.control)
        if end is not None and row.task in images and (row.task not in found or found[row.task].end is None):
            found[row.task] = row_of(row.task, trial_name(sweep, end.ordinal), end)
    waiting: dict[str, list[Row]] = defaultdict(list)
    for row in rows.open.values():
        if row.awaiting and not row.view.deleting:
            waiting[row.task].append(row)
    for task in [task for task, row in found.items() if row.end is None]:
        if found[task].trial not in {row.name for row in waiting[task]}:
            del found[task]
    for task, awaiting in sorted(waiting.items()):
        if task not in found and awaiting and free > 0:
            found[task] = row_of(task, min(awaiting, key=lambda row: row.ordinal).name, None)
            free -= 1
    return [found[task] for task in sorted(found)]


def withdrawn_of(plan: FrozenPlan, rows: Rows, controls: Sequence[ControlRow], known: Iterable[Withdrawn]) -> list[Withdrawn]:
    """Tasks withdrawn, for good: their control failed, and trials of two configurations met it (two trials, if there is one)."""
    tasks = {task.name for task in plan.tasks}
    found = {one.task: one for one in known if one.task in tasks}  # by hand a status may name any
    needed = min(2, len(plan.configurations))
    for task, met in _met(rows, controls).items():
        configurations = sorted({row.configuration for row in met})
        if task not in found and len(configurations) >= needed and len(met) >= 2:
            named = configurations[:MAX_NAMED]
            found[task] = Withdrawn(task=task, reason=FAULT, configurations=named, more=len(configurations) - len(named))
    return [found[task] for task in sorted(found)]


def left_out(controls: Iterable[ControlRow], withdrawn: Iterable[Withdrawn]) -> tuple[WithdrawnTask, ...]:
    """What the report is told."""
    ends = {row.task: row.end for row in controls}
    return tuple(
        WithdrawnTask(
            task=one.task,
            reason=one.reason,
            configurations=one.configurations,
            more=one.more,
            control=ends.get(one.task),
        )
        for one in withdrawn
    )


def told(rows: Rows, controls: Sequence[ControlRow], withdrawn: Sequence[Withdrawn]) -> str:
    """What the condition says of suspect tasks; "" if there is none."""
    gone = {one.task for one in withdrawn}
    ends = {row.task: row.end for row in controls}
    parts = []
    for one in withdrawn:
        more = f" and {one.more} more" if one.more else ""
        parts.append(
            f"{one.task} is withdrawn for all configurations (met by {', '.join(one.configurations)}{more}){_why(ends, one.task)}"
        )
    for task, met in sorted(_met(rows, controls).items()):
        if task not in gone:
            where = ", ".join(sorted({row.configuration for row in met})[:MAX_NAMED]) or "no trial now"
            parts.append(f"{task} is suspect, and not withdrawn as only {where} met it{_why(ends, task)}")
    return "; ".join(parts)


def _met(rows: Rows, controls: Sequence[ControlRow]) -> dict[str, list[Row]]:
    """By task whose control failed: the trials whose tests ended without a verdict."""
    found: dict[str, list[Row]] = {row.task: [] for row in controls if row.result == "Failed"}
    if not found:
        return {}
    for row in rows.open.values():
        if row.awaiting and row.task in found:
            found[row.task].append(row)
    for row in rows.controlled.values():
        if (
            row.phase is Phase.INVALID
            and row.reason == FAULT
            and row.task in found
            and (row.control or {}).get("result") == "Failed"
        ):
            found[row.task].append(row)
    return found


def _why(ends: Mapping[str, ControlEnd | None], task: str) -> str:
    end = ends.get(task)
    return f": {end.detail}" if end is not None and end.detail else ""


def _end(control: Mapping[str, Any] | None) -> ControlEnd | None:
    try:
        return None if control is None else ControlEnd.model_validate(dict(control))
    except ValidationError:  # a newer operator's: its own row says more
        return None
