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


class Cause(StrEnum):
    """Who can cause an end. What the agent can cause is valid, always, and never leads to a new attempt."""

    AGENT = "Agent"
    PROVIDER = "Provider"  # of the model, or of the simulated user's
    STORAGE = "Storage"
    CLUSTER = "Cluster"  # nodes, kubelet, scheduler, queue
    CONFIGURATION = "Configuration"  # the sweep, its Secrets and images, or the rules of its namespace
    TASK = "Task"  # its image or its tests
    PERSON = "Person"  # who deletes, suspends or cancels
    OPERATOR = "Operator"  # our own parts: session, runner, operator
    UNKNOWN = "Unknown"


class Outcome(NamedTuple):
    """One row: the reason, its effect, what happened, in a sentence for people, and who causes it as a rule."""

    reason: str
    effect: Effect
    happened: str
    cause: Cause


OUTCOMES: tuple[Outcome, ...] = (
    Outcome("Completed", Effect.VERIFIED, "EXEC: the first yield; COLLAB: the final claim was accepted and closed", Cause.AGENT),
    Outcome("TurnLimit", Effect.VERIFIED, "request n+1 was refused", Cause.AGENT),
    Outcome(
        "Deadline",
        Effect.VERIFIED,
        "working time used up, or the wall limit fired and the provider was not the cause",
        Cause.AGENT,
    ),
    Outcome("Budget", Effect.VERIFIED, "the trial's budget is spent", Cause.AGENT),
    Outcome(
        "AgentCrashed",
        Effect.VERIFIED,
        "the CLI exited or hung, or failed on a provider error that only its request gets",
        Cause.AGENT,
    ),
    Outcome("AgentRefused", Effect.VERIFIED, "ended by a safety refusal of the model", Cause.AGENT),
    Outcome(
        "AgentOutOfMemory",
        Effect.AGENT,
        "the agent's container, or a process that ended the work, was killed for memory",
        Cause.AGENT,
    ),
    Outcome("AgentDiskLimit", Effect.AGENT, "evicted, and the kubelet names this pod's own limit", Cause.AGENT),
    Outcome("AgentPidLimit", Effect.AGENT, "the process limit ended the work", Cause.AGENT),
    Outcome("AgentFloodedOutput", Effect.AGENT, "output beyond the trial's limits", Cause.AGENT),
    Outcome("RunnerLost", Effect.AGENT, "the runner was killed, wedged or broke the protocol", Cause.AGENT),
    Outcome("QuiesceRefused", Effect.AGENT, "something of the agent could not be stopped", Cause.AGENT),
    Outcome("StateTooLarge", Effect.AGENT, "the state is over the limit of bytes, files or time", Cause.AGENT),
    Outcome("AgentBrokeEnvironment", Effect.AGENT, "verify ended before the tests could run; the control passed", Cause.AGENT),
    Outcome("VerifierTimeout", Effect.AGENT, "the tests ran over their limit; the control passed", Cause.AGENT),
    Outcome("NoReward", Effect.AGENT, "the tests left no readable reward; the control passed", Cause.AGENT),
    Outcome("Tampered", Effect.AGENT, "the agent wrote to a protected path of the runner or the tests; reward 0", Cause.AGENT),
    Outcome("ImageUnavailable", Effect.RETRY, "an image could not be pulled", Cause.CONFIGURATION),
    Outcome("SetupTimeout", Effect.RETRY, "not scheduled within limits.pending, or not ready within limits.setup", Cause.CLUSTER),
    Outcome("NodeLost", Effect.RETRY, "the node is gone", Cause.CLUSTER),
    Outcome("NodePressure", Effect.RETRY, "evicted for the node's sake", Cause.CLUSTER),
    Outcome("PodLost", Effect.RETRY, "no pod and no seal after a fresh read", Cause.UNKNOWN),
    Outcome("SessionLost", Effect.RETRY, "the session died", Cause.OPERATOR),
    Outcome("ProviderUnavailable", Effect.RETRY, "the model provider did not answer a plain request", Cause.PROVIDER),
    Outcome("ProviderTooSlow", Effect.RETRY, "the wall limit fired and other trials saw the same waits", Cause.PROVIDER),
    Outcome("StorageUnavailable", Effect.RETRY, "storage did not come back within limits.spoolHold", Cause.STORAGE),
    Outcome("SimulatorFailed", Effect.RETRY, "the simulated user failed and no canonical text could be sent", Cause.PROVIDER),
    Outcome("NetworkNotEnforced", Effect.RETRY, "the network wall could not be proven", Cause.CLUSTER),
    Outcome(
        "ConfigurationError",
        Effect.FINAL,
        "refused by admission, quota, a missing Secret, or an agent the image cannot start",
        Cause.CONFIGURATION,
    ),
    Outcome("ModelMismatch", Effect.FINAL, "the provider answered with a model id that is not accepted", Cause.PROVIDER),
    Outcome("VerifierFault", Effect.FINAL, "verify ends without a verdict; the task is suspect", Cause.TASK),
    Outcome("Cancelled", Effect.FINAL, "spec.cancel", Cause.PERSON),
    Outcome("Preempted", Effect.HELD, "the cluster took the pod back", Cause.CLUSTER),
    Outcome("Drained", Effect.HELD, "the node was drained", Cause.CLUSTER),
    Outcome("Suspended", Effect.HELD, "spec.suspend", Cause.PERSON),
    Outcome("BreakerOpen", Effect.HELD, "admission is stopped by the circuit breaker", Cause.OPERATOR),
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
