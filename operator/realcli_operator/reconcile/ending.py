"""How a sweep is complete, and what its status shows of the scores. Pure.

Complete with reason `Scored` means that every trial of the plan counts. Everything else is `Incomplete` (or `Cancelled`): the
report has the scores, with counts and bounds, and the status shows them only where `spec.allowIncomplete` says so.
"""

from __future__ import annotations

from typing import Any

from realcli.api.plan import Plan as FrozenPlan
from realcli.api.sweep import SweepSpec
from realcli.api.sweepstatus import ScoreRow, SweepCounts, SweepStatus
from realcli_operator.reconcile.conditions import find
from realcli_operator.reconcile.sweepstatus import columns

MAX_SCORES = 50
NO_SCORES: dict[str, Any] = {"scores": [], "r_exec": None, "r_collab": None, "s": None, "j": None}
HINT = "the report has the scores; allowIncomplete: true shows them here"
AGAIN = ", a higher retryInvalid runs again what ended Invalid"


def completion(
    plan: FrozenPlan, spec: SweepSpec, counts: SweepCounts, said: str | None, *, report_is_partial: bool
) -> tuple[str, str]:
    """Reason and text of `Complete`; ``said``: the report Job's own words."""
    lost = []
    if counts.invalid:
        lost.append(f"{counts.invalid} of {plan.size} trials ended Invalid")
    if counts.tasks_withdrawn:
        lost.append(f"{counts.tasks_withdrawn} of {len(plan.tasks)} tasks are withdrawn")
    if not lost and (report_is_partial or counts.groups_judged < plan.groups):
        lost.append("not every trial is in the report")
    if not lost:
        return "Scored", f"{plan.size} trials scored"
    again = "" if plan.judged_only or spec.cancel else AGAIN
    hint = "" if spec.allow_incomplete else f"; {HINT}{again}"
    if spec.cancel:
        judged = f"{counts.groups_judged} of {plan.groups} groups were complete and are in the report"
        return "Cancelled", f"spec.cancel is true; {judged}; missing is not 0{hint}"
    words = f" ({said})" if said else ""
    return "Incomplete", f"{' and '.join(lost)}{words}; missing is not 0{hint}"


def shown_scores(reason: str, spec: SweepSpec, scores: list[ScoreRow]) -> dict[str, Any]:
    """The part of the status that shows scores."""
    if reason != "Scored" and not spec.allow_incomplete:
        return NO_SCORES
    return NO_SCORES | {"scores": scores[:MAX_SCORES]} | columns(scores)


def is_hidden(status: SweepStatus, spec: SweepSpec, generation: int) -> bool:
    """Whether a complete sweep shows its scores and should not, or the other way round: `allowIncomplete` was changed since
    `Complete` was said. A report may have none to show (they fit no message): that is no reason to read it again for ever."""
    complete = find(status.conditions, "Complete")
    if complete is None or complete.reason == "Scored" or status.report_uri is None:
        return False
    if complete.observed_generation == generation:
        return False
    return bool(status.scores) != spec.allow_incomplete
