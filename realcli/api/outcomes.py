"""The one table of phases, outcomes and reasons: what may end a trial, and what it counts as.

Conditions, docs, metrics and the report's legend are generated from `OUTCOMES`; every program uses these names and no others.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Phase(StrEnum):
    """`Trial.status.phase`."""

    PENDING = "Pending"
    QUEUED = "Queued"
    WORKING = "Working"
    VERIFYING = "Verifying"
    SEALED = "Sealed"
    INVALID = "Invalid"

    @property
    def terminal(self) -> bool:
        """Sealed and Invalid are for ever."""
        return self in (Phase.SEALED, Phase.INVALID)


class Effect(StrEnum):
    """What a reason does to the trial."""

    VERIFIED = "Verified"  # valid; the verifier judges the state
    AGENT = "Agent"  # valid; caused by the agent: verified if the state survived, else reward 0
    RETRY = "Retry"  # invalid; a new attempt while retry.infrastructure allows
    FINAL = "Final"  # invalid; no new attempt
    HELD = "Held"  # Pending or Queued; not an attempt


class Outcome(NamedTuple):
    """One row: the reason, its effect and what happened, in a sentence for people."""

    reason: str
    effect: Effect
    happened: str


OUTCOMES: tuple[Outcome, ...] = (
    Outcome("Completed", Effect.VERIFIED, "EXEC: the first yield; COLLAB: the final claim was accepted and closed"),
    Outcome("TurnLimit", Effect.VERIFIED, "request n+1 was refused"),
    Outcome("Deadline", Effect.VERIFIED, "working time used up, or the wall limit fired and the provider was not the cause"),
    Outcome("Budget", Effect.VERIFIED, "the trial's budget is spent"),
    Outcome(
        "AgentCrashed",
        Effect.VERIFIED,
        "the CLI exited or hung, or failed on a provider error that only its request gets",
    ),
    Outcome("AgentRefused", Effect.VERIFIED, "ended by a safety refusal of the model"),
    Outcome(
        "AgentOutOfMemory",
        Effect.AGENT,
        "the agent's container, or a process that ended the work, was killed for memory",
    ),
    Outcome("AgentDiskLimit", Effect.AGENT, "evicted, and the kubelet names this pod's own limit"),
    Outcome("AgentPidLimit", Effect.AGENT, "the process limit ended the work"),
    Outcome("AgentFloodedOutput", Effect.AGENT, "output beyond the trial's limits"),
    Outcome("RunnerLost", Effect.AGENT, "the runner was killed, wedged or broke the protocol"),
    Outcome("QuiesceRefused", Effect.AGENT, "something of the agent could not be stopped"),
    Outcome("StateTooLarge", Effect.AGENT, "the state is over the limit of bytes, files or time"),
    Outcome("AgentBrokeEnvironment", Effect.AGENT, "verify ended before the tests could run; the control passed"),
    Outcome("VerifierTimeout", Effect.AGENT, "the tests ran over their limit; the control passed"),
    Outcome("NoReward", Effect.AGENT, "the tests left no readable reward; the control passed"),
    Outcome("Tampered", Effect.AGENT, "the agent wrote to a protected path of the runner or the tests; reward 0"),
    Outcome("ImageUnavailable", Effect.RETRY, "an image could not be pulled"),
    Outcome("SetupTimeout", Effect.RETRY, "not scheduled within limits.pending, or not ready within limits.setup"),
    Outcome("NodeLost", Effect.RETRY, "the node is gone"),
    Outcome("NodePressure", Effect.RETRY, "evicted for the node's sake"),
    Outcome("PodLost", Effect.RETRY, "no pod and no seal after a fresh read"),
    Outcome("SessionLost", Effect.RETRY, "the session died"),
    Outcome("ProviderUnavailable", Effect.RETRY, "the model provider did not answer a plain request"),
    Outcome("ProviderTooSlow", Effect.RETRY, "the wall limit fired and other trials saw the same waits"),
    Outcome("StorageUnavailable", Effect.RETRY, "storage did not come back within limits.spoolHold"),
    Outcome("SimulatorFailed", Effect.RETRY, "the simulated user failed and no canonical text could be sent"),
    Outcome("NetworkNotEnforced", Effect.RETRY, "the network wall could not be proven"),
    Outcome(
        "ConfigurationError",
        Effect.FINAL,
        "refused by admission, quota, a missing Secret, or an agent the image cannot start",
    ),
    Outcome("ModelMismatch", Effect.FINAL, "the provider answered with a model id that is not accepted"),
    Outcome("VerifierFault", Effect.FINAL, "verify ends without a verdict; the task is suspect"),
    Outcome("Cancelled", Effect.FINAL, "spec.cancel"),
    Outcome("Preempted", Effect.HELD, "the cluster took the pod back"),
    Outcome("Drained", Effect.HELD, "the node was drained"),
    Outcome("Suspended", Effect.HELD, "spec.suspend"),
    Outcome("BreakerOpen", Effect.HELD, "admission is stopped by the circuit breaker"),
)
BY_REASON: dict[str, Outcome] = {row.reason: row for row in OUTCOMES}


def effect_of(reason: str) -> Effect:
    """The effect of a reason; ValueError for a word that is not in the table."""
    row = BY_REASON.get(reason)
    if row is None:
        raise ValueError(f"unknown reason {reason!r}; expected one of {', '.join(BY_REASON)}")
    return row.effect


def is_valid(reason: str) -> bool:
    """True if a trial that ended for this reason counts (phase Sealed)."""
    return effect_of(reason) in (Effect.VERIFIED, Effect.AGENT)
