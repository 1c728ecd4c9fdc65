"""`spec.retryInvalid`: repeats that ended Invalid run again, sealed ones never. Pure.

A trial remembers the round that renewed it, so nothing else has to: it is renewed while it is Invalid and its round is behind the
sweep's. Its attempt number goes on, `retry.infrastructure` counts anew.
"""

from __future__ import annotations

from realcli.api.outcomes import Phase
from realcli.api.sweep import SweepSpec
from realcli.api.trial import TrialStatus
from realcli_operator.reconcile.conditions import without

NOT_RENEWED = frozenset({"Cancelled"})


def round_of(spec: SweepSpec) -> int:
    """Rounds in all: n = 1 + retryInvalid."""
    return 1 + spec.retry_invalid


def is_renewable(spec: SweepSpec, phase: Phase, reason: str, round_: int, *, withdrawn: bool) -> bool:
    """Whether an end is to be followed by another attempt because somebody raised `retryInvalid`.

    A withdrawn task stays withdrawn: what is wrong with its tests no attempt mends.
    """
    return phase is Phase.INVALID and round_ < round_of(spec) and reason not in NOT_RENEWED and not withdrawn and not spec.cancel


def renewed(status: TrialStatus, spec: SweepSpec, generation: int) -> TrialStatus:
    """Between attempts again. What the attempts took stays counted, and the end is still one of the breaker's."""
    text = f"spec.retryInvalid is {spec.retry_invalid}: it runs again, having ended as {status.reason}: {status.message or ''}"
    return status.model_copy(
        update={
            "phase": Phase.PENDING,
            "reason": None,
            "message": text[:2048],
            "observed_generation": generation,
            "conditions": without(status.conditions, "Invalid"),
            "round": round_of(spec),
            "earlier_invalid": status.invalid_attempts,
            "last_invalid_reason": status.reason,
            "last_invalid_at": status.ended_at,
            "last_invalid_began": status.started_at,
            "last_invalid_node": status.node,
            "last_invalid_throttled": status.throttled,
            "ended_at": None,
            "retry_after": None,
            "awaiting": None,
        }
    )
