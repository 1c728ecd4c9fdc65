"""A pod that a scheduling gate holds (Kueue): queued, which is neither an attempt that runs nor one that is late. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from realcli.api.outcomes import Phase
from realcli.api.trial import TrialStatus
from realcli_operator.kube.views import PodView
from realcli_operator.reconcile.conditions import find, with_condition

QUEUED: Final = "Queued"


def queued(status: TrialStatus, pod: PodView, now: datetime, generation: int) -> TrialStatus:
    """The status while the gates hold; a verify pod's trial stays Verifying."""
    text = f"pod {pod.name} is held by {', '.join(pod.scheduling_gates)}"
    conditions = with_condition(status.conditions, "Running", "False", QUEUED, text, now, generation)
    phase = Phase.QUEUED if status.phase is Phase.WORKING else status.phase
    return status.model_copy(update={"phase": phase, "conditions": conditions, "message": text})


def admitted(status: TrialStatus, now: datetime, generation: int) -> TrialStatus:
    """The gates are gone; the time of the condition says since when."""
    running = find(status.conditions, "Running")
    phase = Phase.WORKING if status.phase is Phase.QUEUED else status.phase
    if running is None or running.reason != QUEUED:
        return status if phase is status.phase else status.model_copy(update={"phase": phase})
    conditions = with_condition(status.conditions, "Running", "True", phase.value, "", now, generation)
    return status.model_copy(update={"phase": phase, "conditions": conditions, "message": None})


def ungated_since(status: TrialStatus, created: datetime) -> datetime:
    """Since when the scheduler may place the pod: its creation, or later the end of its gates."""
    running = find(status.conditions, "Running")
    if running is None or running.status != "True":
        return created
    return max(created, datetime.fromisoformat(running.last_transition_time))
