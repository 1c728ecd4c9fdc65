"""Condition `StorageBlocked`: a work session that is not ready is done and waits for storage (realcli.ledger.spool)."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from realcli.api.sweep import Limits
from realcli.api.trial import TrialStatus
from realcli_operator.kube.views import ContainerState, PodView
from realcli_operator.reconcile.conditions import is_true, with_condition
from realcli_operator.reconcile.endfacts import AGENT_SIDE, SESSION
from realcli_operator.reconcile.plans import Note
from realcli_operator.reconcile.policy import Policy

STORAGE_BLOCKED: Final = "StorageBlocked"


class Seen(NamedTuple):
    """The status with the condition as it is now, when to look again (None: when the pod changes), and what is new for people."""

    status: TrialStatus
    again: float | None = None
    events: tuple[Note, ...] = ()


def storage_seen(status: TrialStatus, pod: PodView, limits: Limits, now: datetime, generation: int, policy: Policy) -> Seen:
    """What the readiness of the session says of storage. A container that has just started, or that the kubelet has not asked
    yet, is not ready either: it counts only after `Policy.readiness_grace`. Before it waits the session lets the agent's
    container end; while that runs it counts after `Policy.busy_grace`."""
    session = pod.container(SESSION)
    if pod.finished or session is None or session.state is not ContainerState.RUNNING or session.ready:
        return Seen(storage_back(status, now, generation))
    condition = pod.condition("ContainersReady")
    known = (session.started_at, condition.last_transition_time if condition is not None else None)
    since = max((time for time in known if time is not None), default=now)
    over = any((c := pod.container(name)) is not None and c.state is ContainerState.TERMINATED for name in AGENT_SIDE)
    left = (policy.readiness_grace if over else policy.busy_grace) - (now - since).total_seconds()
    if left > 0:
        return Seen(status, left)
    text = (
        f"the session in pod {pod.name} has finished its work and waits for storage, up to limits.spoolHold "
        f"({limits.spool_hold}); "
        f"`realcli ledger recover {pod.trial or pod.name} -n {pod.namespace}` copies what waits"
    )
    conditions = with_condition(status.conditions, STORAGE_BLOCKED, "True", "StorageUnavailable", text, now, generation)
    events = () if is_true(status.conditions, STORAGE_BLOCKED) else (Note("Warning", STORAGE_BLOCKED, text),)
    return Seen(status.model_copy(update={"conditions": conditions}), None, events)


def storage_back(status: TrialStatus, now: datetime, generation: int) -> TrialStatus:
    """No session of this trial waits (any more). Nothing is said of storage where none ever has."""
    if not is_true(status.conditions, STORAGE_BLOCKED):
        return status
    conditions = with_condition(status.conditions, STORAGE_BLOCKED, "False", "NotWaiting", "", now, generation)
    return status.model_copy(update={"conditions": conditions})
