"""Trial: one repeat of (configuration, task, mode). Created by the operator, read by people."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from realcli.api.base import Digest, DnsLabel, Frozen
from realcli.api.models import Usd
from realcli.api.outcomes import Phase
from realcli.api.sweep import Mode, ObjectMeta
from realcli.api.sweepstatus import Condition, ControlEnd
from realcli.api.sweepstatus import Tokens as Tokens

Name = Annotated[str, StringConstraints(min_length=1, max_length=253)]


class TrialSpec(Frozen):
    """Which cell of the frozen plan this trial is. Immutable."""

    sweep: DnsLabel = Field(description="Name of the sweep.")
    plan_digest: Digest = Field(description="Digest of the frozen plan the ordinal refers to.")
    ordinal: int = Field(ge=0, le=99999, description="Index in the product (task, repeat, configuration, mode), each sorted.")
    configuration: Name = Field(description="<agent>.<model>.")
    task: Name = Field(description="Task of the benchmark.")
    mode: Mode = Field(description="EXEC or COLLAB.")
    repeat: int = Field(ge=1, le=100, description="Repeat, from 1.")


class Checks(Frozen):
    """What the verifier's own summary says."""

    passed: int = Field(ge=0, description="Checks passed.")
    total: int = Field(ge=0, description="Checks run.")


class Earlier(Frozen):
    """What the attempts before this one took."""

    cost_usd: Usd = Field(default="0", alias="costUSD", description="US dollars of those whose cost is known.")
    tokens: Tokens = Field(default=Tokens(), description="Tokens of those whose tokens are known.")
    uncounted: int = Field(default=0, ge=0, description="Attempts that left no count of tokens or cost.")


class Awaiting(Frozen):
    """The tests ended without a verdict: the control of the task decides what that counts as."""

    reason: Literal["VerifierTimeout", "NoReward", "AgentBrokeEnvironment", "VerifierFault"] = Field(
        description="The outcome if the control passes. VerifierFault: what the agent cannot have caused."
    )
    detail: str = Field(default="", max_length=1024, description="What the last verify pod said.")


class TrialStatus(Frozen):
    """Observed state of a trial. `phase` summarises; `reason` is the outcome, `workEnd` how the work pod ended."""

    phase: Phase = Field(default=Phase.PENDING, description="Pending, Queued, Working, Verifying, Sealed or Invalid.")
    reason: str | None = Field(default=None, max_length=64, description="The outcome, or why it waits.")
    message: str | None = Field(default=None, max_length=2048, description="For people: what happened and what to look at.")
    observed_generation: int | None = Field(default=None, ge=0, description="Generation this status is about.")
    conditions: Annotated[
        list[Condition], Field(default=[], max_length=16, description="Running, StorageBlocked, Sealed, Invalid.")
    ]
    work_end: str | None = Field(default=None, max_length=64, description="How the work pod of this attempt ended.")
    attempt: int = Field(default=0, ge=0, description="Attempt this status is about, from 1; 0 before the first.")
    invalid_attempts: int = Field(default=0, ge=0, description="Attempts that ended invalid.")
    last_invalid_reason: str | None = Field(default=None, max_length=64, description="Why the last invalid attempt ended.")
    last_invalid_at: str | None = Field(
        default=None, description="When the last invalid attempt ended.", json_schema_extra={"format": "date-time"}
    )
    last_invalid_began: str | None = Field(
        default=None, description="When it began; absent: it never ran.", json_schema_extra={"format": "date-time"}
    )
    last_invalid_node: str | None = Field(default=None, max_length=253, description="Its node.")
    last_invalid_throttled: str | None = Field(
        default=None, max_length=8, description="Share of its requests that were answered 429, a decimal; absent: unknown."
    )
    verify_attempt: int = Field(default=0, ge=0, description="Verify pod of this attempt, from 1; 0 before the first.")
    verify_faults: int = Field(default=0, ge=0, description="Verify pods of this attempt that ended without a verdict.")
    verify_nodes: Annotated[
        list[Name],
        Field(
            default=[], max_length=10, description="Nodes where verify or control pods of this attempt failed: others are tried."
        ),
    ]
    awaiting: Awaiting | None = Field(default=None, description="Waits for the control of its task.")
    control_attempt: int = Field(default=0, ge=0, description="Control pod of this attempt, from 1; 0: none was asked of it.")
    control_faults: int = Field(default=0, ge=0, description="Control pods of this attempt that said nothing.")
    control: ControlEnd | None = Field(
        default=None, description="The control that decided, or that this trial ran: of another trial where that asked first."
    )
    round: int = Field(default=1, ge=1, description="1 + the retryInvalid that renewed it last.")
    earlier_invalid: int = Field(
        default=0, ge=0, description="Of invalidAttempts: those before its renewal, which retry.infrastructure counts no more."
    )
    retry_after: str | None = Field(
        default=None, description="No new pod before this time.", json_schema_extra={"format": "date-time"}
    )
    pod: str | None = Field(default=None, max_length=253, description="The current or last pod.")
    node: str | None = Field(default=None, max_length=253, description="Its node.")
    started_at: str | None = Field(default=None, description="Start of the work pod.", json_schema_extra={"format": "date-time"})
    ended_at: str | None = Field(default=None, description="End of the trial.", json_schema_extra={"format": "date-time"})
    reward: str | None = Field(
        default=None, max_length=32, description="Reward of the verifier, a decimal; absent while unknown."
    )
    checks: Checks | None = Field(default=None, description="The verifier's own summary.")
    turns: int | None = Field(default=None, ge=0, description="Generation requests accepted.")
    tokens: Tokens | None = Field(default=None, description="Tokens by the gateway's count.")
    cost_usd: str | None = Field(
        default=None, alias="costUSD", max_length=32, description="Cost by the sweep's prices; absent where it is unknown."
    )
    earlier: Earlier | None = Field(default=None, description="What the attempts before this one took.")
    working_seconds: str | None = Field(default=None, max_length=32, description="Working time of the agent in seconds.")
    throttled: str | None = Field(
        default=None, max_length=8, description="Share of the requests to the provider that were answered 429, a decimal."
    )
    limit: str | None = Field(default=None, max_length=64, description="Limit that fired: turns, deadline, wall, budget, output.")
    ledger_uri: str | None = Field(
        default=None, alias="ledgerURI", max_length=1024, description="Where the ledger of this attempt lies."
    )
    work_seal_digest: Digest | None = Field(default=None, description="Digest of work-seal.json (the anchor).")
    seal_digest: Digest | None = Field(default=None, description="Digest of the verify seal (the anchor).")
    verifier_trust: Literal["artifacts", "system"] | None = Field(default=None, description="What verify believes of the state.")
    egress: Literal["Unenforced"] | None = Field(default=None, description="Unenforced: no network wall around the agent.")


class Trial(Frozen):
    """A trial."""

    api_version: Literal["realcli.dev/v1alpha1"] = "realcli.dev/v1alpha1"
    kind: Literal["Trial"] = "Trial"
    metadata: ObjectMeta
    spec: TrialSpec
    status: TrialStatus | None = None
