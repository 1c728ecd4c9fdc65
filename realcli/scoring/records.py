"""Records of judging: what the judge Job writes and aggregation counts from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from realcli.api.base import Digest, Frozen
from realcli.api.outcomes import Phase
from realcli.api.sweep import Mode
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


class GroupInput(Frozen):
    """What the operator hands a judge Job (env REALCLI_GROUP, JSON)."""

    configuration: str
    task: str
    n: Annotated[int, Field(ge=1)] = 1
    members: Annotated[list[GroupMember], Field(min_length=1)]


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
