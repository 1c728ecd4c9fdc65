"""Parts of a sweep's status: its summary, what keeps it from going on, what a Job said. Pure."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final, Literal, TypedDict

from realcli.api.base import seconds
from realcli.api.outcomes import BY_REASON, Effect
from realcli.api.plan import Plan as FrozenPlan
from realcli.api.sweep import SweepSpec
from realcli.api.sweepstatus import ScoreRow, SweepStatus
from realcli.api.termination import Termination
from realcli_operator.reconcile.conditions import find, is_true, with_condition, without
from realcli_operator.reconcile.facts import SweepFacts
from realcli_operator.reconcile.plans import Note, SweepPlan

_WORD: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]{0,1000}[A-Za-z0-9_])?")
"""What the reason of a condition may be."""
State = Literal["Planning", "Running", "Suspended", "Degraded", "Complete", "Incomplete", "Failed"]


def state_of(status: SweepStatus, spec: SweepSpec) -> State:
    """The summary of the conditions."""
    conditions = status.conditions
    complete = find(conditions, "Complete")
    if complete is not None and complete.status == "True":
        return "Complete" if complete.reason == "Scored" else "Incomplete"
    if is_true(conditions, "Failed"):
        return "Failed"
    asked = find(conditions, "Confirmed")
    unconfirmed = asked is not None and asked.status == "False" and not spec.cancel
    if (spec.suspend and not spec.cancel) or unconfirmed or is_true(conditions, "BudgetExhausted"):
        return "Suspended"
    if is_true(conditions, "Degraded"):
        return "Degraded"
    return "Running" if is_true(conditions, "Planned") else "Planning"


class OfCluster(TypedDict):
    """What the plan decided once about the cluster."""

    user_namespaces: bool
    image_volumes: bool
    cgroup: Literal["1", "2"] | None
    out_of_memory: Literal["Process", "Container"] | None


def of_cluster(plan: FrozenPlan) -> OfCluster:
    """Fields of `status.resolved`: every pod of the sweep is built for this, whatever the cluster has become."""
    cgroup = plan.cgroup
    return OfCluster(
        user_namespaces=plan.platform.user_namespaces,
        image_volumes=plan.platform.image_volumes,
        cgroup=None if cgroup is None else cgroup.version,
        out_of_memory=None if cgroup is None else cgroup.kills,
    )


STARTING = frozenset(
    {"Unschedulable", "PodNotCreated", "PodNotStarted", "ImageUnavailable", "ConfigurationError", "StillDeleting"}
)
"""Reasons of `Ready` that are over once the pod of a Job runs. What a Job said of storage or a provider stands until one says
better."""


def newly_unready(before: SweepStatus, after: SweepStatus) -> tuple[Note, ...]:
    """A warning where something begins to keep a sweep from going on: once for each reason, not once for each try."""
    old, new = find(before.conditions, "Ready"), find(after.conditions, "Ready")
    if new is None or new.status != "False" or (old is not None and (old.status, old.reason) == (new.status, new.reason)):
        return ()
    return (Note("Warning", new.reason, new.message),)


def blocked(facts: SweepFacts, status: SweepStatus, reason: str, message: str, now: datetime) -> SweepStatus:
    """``status``, of a sweep that the API server refused an object, or that met a foreign or earlier one of its name."""
    conditions = find(facts.status.conditions, "Ready"), *without(status.conditions, "Ready")
    known = [condition for condition in conditions if condition is not None]
    generation = facts.sweep.generation
    return status.model_copy(update={"conditions": with_condition(known, "Ready", "False", reason, message, now, generation)})


def only_counts(new: SweepStatus, old: SweepStatus) -> bool:
    """Whether nothing but counters changed: they may wait."""
    counters = ("counts", "forecast", "trials", "resolved", "cost", "cost_usd", "tokens", "uncounted_attempts")
    return new.model_copy(update={name: getattr(old, name) for name in counters}) == old


def said(message: Termination) -> tuple[str, str]:
    """Reason and text of a refusal. A reason that no condition can have stands in the text alone."""
    reason = message.reason or "Refused"
    text = message.message or reason
    return (reason, text) if _WORD.fullmatch(reason) else ("Refused", f"{reason}: {text}")


def passes(reason: str) -> bool:
    """Whether waiting may help."""
    row = BY_REASON.get(reason)
    return row is not None and row.effect is Effect.RETRY


def columns(scores: list[ScoreRow]) -> dict[str, str | None]:
    """Scores for `kubectl get sweeps`, where there is one configuration."""
    if len(scores) != 1:
        return {}
    row = scores[0]
    return {"r_exec": row.r_exec, "r_collab": row.r_collab, "s": row.s, "j": row.j}


def finished(facts: SweepFacts, now: datetime) -> SweepPlan:
    """What is left to do for a sweep that is over: to go, if it is asked to, `ttlAfterFinished` after its end."""
    conditions = facts.status.conditions
    over = find(conditions, "Complete") or find(conditions, "Failed")
    if facts.spec.ttl_after_finished is None or over is None:
        return SweepPlan()
    age = (now - datetime.fromisoformat(over.last_transition_time)).total_seconds()
    left = seconds(facts.spec.ttl_after_finished) - age
    return SweepPlan(requeue_after=left) if left > 0 else SweepPlan(delete_sweep=True)
