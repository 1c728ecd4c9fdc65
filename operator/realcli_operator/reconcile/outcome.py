"""The parts of a trial's status: its end, what a pod and a termination message add to it. Pure."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from pydantic import ValidationError

from realcli.api.outcomes import BY_REASON, Phase, is_valid
from realcli.api.termination import Result, Termination, parse_termination
from realcli.api.trial import TrialStatus
from realcli.storage.paths import SweepPaths
from realcli_operator.kube.views import PodView
from realcli_operator.reconcile.conditions import rfc3339, with_condition
from realcli_operator.reconcile.endfacts import AGENT_SIDE, Trouble, has_started, session_message
from realcli_operator.reconcile.endrows import KILLED, SEEN_AS
from realcli_operator.reconcile.facts import TrialFacts
from realcli_operator.reconcile.names import work_pod
from realcli_operator.reconcile.spending import earlier_of

MAX_MESSAGE: Final = 2048
MAX_REWARD: Final = 32
MAX_SHARE: Final = 8


def refused(status: TrialStatus, message: str, now: datetime, generation: int, *, final: bool) -> TrialStatus:
    """The status of a trial whose pod the API server (or a foreign object of that name) does not allow.

    ``final`` ends the trial; else it waits for whoever removes the cause.
    """
    if not final:
        conditions = with_condition(status.conditions, "Running", "False", "ConfigurationError", message, now, generation)
        return status.model_copy(update={"conditions": conditions, "message": message[:MAX_MESSAGE]})
    return ended(status, Phase.INVALID, "ConfigurationError", message, now, generation)


def began(facts: TrialFacts, attempt: int, now: datetime) -> TrialStatus:
    """The first status of an attempt: what the last one left is gone but for the counts."""
    generation = facts.trial.generation
    root = SweepPaths(facts.plan.root).attempt(facts.spec.ordinal, attempt)
    return TrialStatus(
        phase=Phase.WORKING,
        observed_generation=generation,
        conditions=with_condition((), "Running", "True", "Working", "", now, generation),
        attempt=attempt,
        invalid_attempts=facts.status.invalid_attempts,
        last_invalid_reason=facts.status.last_invalid_reason,
        last_invalid_at=facts.status.last_invalid_at,
        last_invalid_began=facts.status.last_invalid_began,
        last_invalid_node=facts.status.last_invalid_node,
        last_invalid_throttled=facts.status.last_invalid_throttled,
        round=facts.status.round,
        earlier_invalid=facts.status.earlier_invalid,
        earlier=earlier_of(facts.status),
        pod=work_pod(facts.trial.name, attempt),
        ledger_uri=f"s3://{facts.sweep.storage.bucket}/{root.ledger}",
        egress=facts.plan.egress,
    )


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
    started = next((c.started_at for c in pod.containers if c.name in AGENT_SIDE and has_started(c)), pod.start_time)
    return status.model_copy(
        update={"node": pod.node or status.node, "started_at": rfc3339(started) if started else status.started_at}
    )


def work_ended(status: TrialStatus, reason: str, message: str | None) -> TrialStatus:
    """How the work pod ended, kept until the verifier has spoken."""
    return status.model_copy(update={"work_end": reason, "message": (message or "")[:MAX_MESSAGE] or None})


def troubled(status: TrialStatus, trouble: Trouble, now: datetime, generation: int) -> TrialStatus:
    """A pod that waits for something; the transition time of ``Running`` says since when, `reason` what it will be in the end."""
    conditions = with_condition(status.conditions, "Running", "False", trouble.waiting, trouble.message, now, generation)
    return status.model_copy(
        update={"conditions": conditions, "reason": trouble.outcome, "message": trouble.message[:MAX_MESSAGE]}
    )


def verdict_of(status: TrialStatus, message: Termination) -> TrialStatus | str:
    """The status with the verdict's facts, `work_end` and `reason` included; or why the verdict cannot be one."""
    known = status.work_seal_digest
    if message.reason not in BY_REASON or not is_valid(message.reason) or not _is_reward(message.reward):
        return f"the verdict is not one of the table: reason {message.reason}, reward {message.reward}"
    if known is not None and message.work_seal not in (None, known):
        return f"verified work seal {message.work_seal}, but {known} is anchored"
    seen = status.work_end if status.work_end is not None and is_valid(status.work_end) else None
    update = {
        "reason": seen if seen in KILLED and message.reason in SEEN_AS else message.reason,
        "work_end": seen or message.work_end or message.reason,
        "work_seal_digest": known or message.work_seal,
        "seal_digest": message.seal,
        "reward": message.reward,
        "checks": message.checks,
        **({"ledger_uri": f"{message.uri}/ledger"} if message.uri is not None else {}),  # another sweep's run
    }
    return carried(status, message).model_copy(update=update)


def _is_reward(text: str | None) -> bool:
    """A finite decimal that the status can hold: what is none is never counted."""
    try:
        return text is not None and len(text) <= MAX_REWARD and Decimal(text).is_finite()
    except InvalidOperation:
        return False


def carried(status: TrialStatus, message: Termination) -> TrialStatus:
    """Counts of a termination message; what it does not say stays. What a status cannot hold (a limit of a hundred letters) is
    unknown: the API server would refuse all of the status with it, and the trial would never end."""
    update = {
        "turns": message.turns,
        "tokens": message.tokens,
        "cost_usd": message.cost_usd,
        "working_seconds": message.working_seconds,
        "throttled": share(message.throttled),
        "limit": message.limit,
        "node": message.node,
    }
    return status.model_copy(update={key: value for key, value in update.items() if value is not None and _fits(key, value)})


def _fits(field: str, value: Any) -> bool:
    try:
        TrialStatus.model_validate({field: value})
    except ValidationError:
        return False
    return True


def share(text: str | None) -> str | None:
    """A share of 0 to 1 that the status can hold; what is none is unknown."""
    try:
        known = text is not None and len(text) <= MAX_SHARE and 0 <= Decimal(text) <= 1
    except InvalidOperation:
        known = False
    return text if known else None


def ended_well(pod: PodView) -> bool:
    """Whether nobody will want this pod's logs."""
    message = parse_termination(session_message(pod))
    return message is not None and message.result in (Result.WORK_SEALED, Result.VERDICT)
