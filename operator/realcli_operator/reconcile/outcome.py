"""The parts of a trial's status: its end, what a pod and a termination message add to it. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from realcli.api.outcomes import BY_REASON, Phase, is_valid
from realcli.api.termination import Result, Termination, parse_termination
from realcli.api.trial import TrialStatus
from realcli_operator.kube.views import PodView
from realcli_operator.reconcile.conditions import rfc3339, with_condition
from realcli_operator.reconcile.podends import AGENT_SIDE, session_message

MAX_MESSAGE: Final = 2048


def refused(status: TrialStatus, message: str, now: datetime, generation: int, *, verifying: bool) -> TrialStatus:
    """The status of a trial whose pod the API server (or a foreign object of that name) does not allow.

    It ends the trial, but for a verify pod: the work is sealed, and whoever removes the cause gets its verdict.
    """
    if verifying:
        conditions = with_condition(status.conditions, "Running", "False", "ConfigurationError", message, now, generation)
        return status.model_copy(update={"conditions": conditions, "message": message[:MAX_MESSAGE]})
    return ended(status, Phase.INVALID, "ConfigurationError", message, now, generation)


def ended(status: TrialStatus, phase: Phase, reason: str, message: str, now: datetime, generation: int) -> TrialStatus:
    """The end of a trial: Sealed keeps its reward, Invalid never has one."""
    conditions = with_condition(status.conditions, "Running", "False", reason, "", now, generation)
    conditions = with_condition(conditions, phase.value, "True", reason, message, now, generation)
    return status.model_copy(
        update={
            "phase": phase,
            "reason": reason,
            "message": message[:MAX_MESSAGE] or None,
            "conditions": conditions,
            "retry_after": None,
            "ended_at": rfc3339(now),
            "observed_generation": generation,
            **({"reward": None} if phase is Phase.INVALID else {}),
        }
    )


def placed(status: TrialStatus, pod: PodView) -> TrialStatus:
    """Where and since when it ran; written with the next status, not for its own sake."""
    started = next((c.started_at for c in pod.containers if c.name in AGENT_SIDE and c.started_at), pod.start_time)
    return status.model_copy(
        update={"node": pod.node or status.node, "started_at": rfc3339(started) if started else status.started_at}
    )


def work_message(pod: PodView) -> Termination | None:
    """The work session's message if it is one: its result and reason agree with the table."""
    message = parse_termination(session_message(pod))
    if message is None or message.phase != "Work" or message.reason not in BY_REASON:
        return None
    sealed, invalid = message.result is Result.WORK_SEALED, message.result is Result.WORK_INVALID
    valid = is_valid(message.reason)
    return message if (sealed and valid and message.seal is not None) or (invalid and not valid) else None


def carried(status: TrialStatus, message: Termination) -> TrialStatus:
    """Counts of a termination message; what it does not say stays."""
    update = {
        "turns": message.turns,
        "tokens": message.tokens,
        "working_seconds": message.working_seconds,
        "limit": message.limit,
        "node": message.node,
    }
    return status.model_copy(update={key: value for key, value in update.items() if value is not None})


def ended_well(pod: PodView) -> bool:
    """Whether nobody will want this pod's logs."""
    message = parse_termination(session_message(pod))
    return message is not None and message.result in (Result.WORK_SEALED, Result.VERDICT)
