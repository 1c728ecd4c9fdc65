"""Records of judging: what the judge Job writes and aggregation counts from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from realcli.api.base import Digest, Frozen, Hex64
from realcli.api.outcomes import Phase
from realcli.api.sweep import Mode
from realcli.api.sweepstatus import ControlEnd
from realcli.api.trial import Tokens
from realcli.judging.model import Claim, JudgeAnswer, JudgeIdentity
from realcli.ledger.seals import Reward

Verdict = Literal["1", "0", "n/a", "unscored"]
Dimension = Literal["U", "S", "OR", "TC", "SR"]


class HardRecord(Frozen):
    """What a hard-check operator found."""

    op: str
    result: Literal["pass", "fail", "undecided"]
    why: str  # one sentence for people
    events: list[int] = []  # seq of the ledger events it rests on
    snapshot: str | None = None


class CheckRecord(Frozen):
    """One check of one instance."""

    check: str
    verdict: Verdict
    by: Literal["program", "judge", "none"]
    hard: HardRecord | None = None
    reason: str = ""
    answers: list[JudgeAnswer] = []  # one per vote that was accepted
    conflict: bool = False  # the program settled it and the judge said otherwise; the program counts
    trusted: bool = False  # rests on the judge alone: literal evidence, but no record of a program says the same


class InstanceRecord(Frozen):
    """One scenario in one run. Four denominators, never mixed."""

    scenario: str
    probe: str
    dimension: Dimension
    sub_dimension: str
    state: Literal["triggered", "untriggered", "contaminated", "unscored"]
    reason: str | None = None  # why untriggered / contaminated / unscored
    anchor: int | None = None  # seq of the anchor event
    checks: list[CheckRecord] = []


class RepeatJudgement(Frozen):
    """repeat-<r>-<seal8>.json: the COLLAB run of one repeat."""

    schema_: Literal["realcli.dev/judgement/1"] = Field(default="realcli.dev/judgement/1", alias="schema")
    configuration: str
    task: str
    repeat: int
    ordinal: int
    attempt: int
    work_seal: Digest
    judge: Digest
    instances: list[InstanceRecord]
    generic: list[InstanceRecord] = []  # the six generic checks: a panel of their own, never part of S
    claims: list[Claim] = []  # what the judge read out of the final claim, for operators that compare it


class RunFacts(Frozen):
    """Counts of one sealed run, of either mode, read off its ledger. None: not known, never 0."""

    turns: int | None = None
    exchanges: int | None = None
    tool_calls: int | None = None
    commands: int | None = None
    retries: int | None = None  # calls with the normalised command of an earlier failed call, no success in between
    failing_retries: int | None = None
    questions: int | None = None  # yields that ask
    ask_unmatched: int | None = None
    messages: int | None = None  # agent-visible texts
    tokens: Tokens | None = None
    cost_usd: str | None = None
    working_seconds: str | None = None
    checks_passed: int | None = None  # of the verifier's own summary
    checks_total: int | None = None


FailureLabel = Literal[
    "functional-or-boundary",
    "missing-requirement",
    "superseded-or-forgotten-constraint",
    "interface-or-format",
    "environment-or-dependency",
    "not-verified-or-false-completion",
    "wrong-target-or-scope",
    "gave-up-or-budget",
    "unsafe-action",
    "other",
]
"""One primary label per failed run (measuring.md 4.3); the first is the paper's, the rest a choice."""


class Failure(Frozen):
    """The label of one failed run of either mode."""

    ordinal: int
    mode: Mode
    repeat: int
    by: Literal["program", "judge", "none"]
    label: FailureLabel | None = None  # None: unscored
    reason: str = ""
    quote: str | None = None
    exchanges: list[Hex64] = []


class Failures(Frozen):
    """failures-<n>.json: one label per failed valid run of a group."""

    schema_: Literal["realcli.dev/failures/1"] = Field(default="realcli.dev/failures/1", alias="schema")
    judge: Digest
    configuration: str
    task: str
    n: int
    failures: list[Failure]


class JudgeCost(Frozen):
    """What judging a group took."""

    requests: int = 0
    tokens: Tokens | None = None
    cost_usd: str | None = None  # None: no prices
    exhausted: bool = False  # the group's share of the budget is spent: what was left is unscored


class GroupMember(Frozen):
    """One trial of a group as the operator saw it end. What only the operator can decide reaches scoring through this."""

    ordinal: int
    mode: Mode
    repeat: Annotated[int, Field(ge=1)]
    phase: Phase  # Sealed or Invalid
    reason: str
    attempt: int
    invalid_attempts: int = 0
    reward: Reward | None = None
    verify_attempt: int | None = None
    work_seal: Digest | None = None
    seal: Digest | None = None
    control: ControlEnd | None = None  # what decided where the tests ended without a verdict


class WithdrawnTask(Frozen):
    """A task that the operator withdrew from the sweep: its own tests fail with the reference solution."""

    task: str
    reason: Literal["VerifierFault"]
    configurations: list[str] = []  # whose trials met it; the first ten
    more: int = 0  # configurations beside those
    control: ControlEnd | None = None  # which said so


class Withdrawals(Frozen):
    """withdrawn-<digest8>.json: what a report leaves out for all configurations, as the operator told it."""

    schema_: Literal["realcli.dev/withdrawn/1"] = Field(default="realcli.dev/withdrawn/1", alias="schema")
    sweep_uid: str
    lock_digest: Digest
    tasks: Annotated[list[WithdrawnTask], Field(min_length=1)]  # sorted by name


class GroupInput(Frozen):
    """What the operator hands a judge Job (env REALCLI_GROUP, JSON)."""

    configuration: str
    task: str
    n: Annotated[int, Field(ge=1)] = 1
    members: list[GroupMember] = []  # none: a sweep that only judges another's runs again; those are the source's


class Group(Frozen):
    """group-<n>.json: the one list aggregation counts from."""

    schema_: Literal["realcli.dev/group/1"] = Field(default="realcli.dev/group/1", alias="schema")
    sweep_uid: str
    lock_digest: Digest
    judge: Digest
    configuration: str
    task: str
    n: int
    members: list[GroupMember]
    judgements: dict[str, str] = {}  # repeat -> file name of its repeat-<r>-<seal8>.json
    audits: dict[str, str] = {}  # repeat -> file name of its repeat-<r>-<seal8>.audit.json
    failures: str | None = None  # file name of failures-<n>.json
    facts: dict[str, RunFacts] = {}  # ordinal -> counts of a sealed run
    identity: JudgeIdentity | None = None
    cost: JudgeCost | None = None
