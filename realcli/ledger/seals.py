"""Seals and verdict: written once, last, and covering every object beside them. The seal in S3 is the truth.

Digest of a seal = sha256 of the file's bytes (canonical JSON). `checksum` inside covers every other field, so a cut file is
recognised without an anchor.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from realcli.api.base import Digest, Frozen, Hex64, canonical_json, sha256_digest
from realcli.api.sweep import Mode
from realcli.api.trial import Checks, Tokens

Reward = Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?$", max_length=64)]
"""A decimal not below 0, as the verifier's reader writes it: finite, no exponent."""


class SealedObject(Frozen):
    """One object below the attempt (or verify) root."""

    path: str  # relative to the root the seal lies in
    sha256: Hex64
    size: int


class TrialIdentity(Frozen):
    """Which attempt."""

    sweep_uid: str
    sweep: str
    namespace: str
    ordinal: int
    attempt: int
    configuration: str
    task: str
    mode: Mode
    repeat: int
    lock_digest: Digest


class Sealed(Frozen):
    """What every seal has."""

    objects: list[SealedObject]
    checksum: str | None = None

    def seal(self) -> bytes:
        """The file's bytes: canonical JSON with its checksum."""
        body = self.model_copy(update={"checksum": None}).dump()
        return canonical_json({**body, "checksum": sha256_digest(canonical_json(body))})

    def intact(self) -> bool:
        """True if the checksum is that of the content."""
        body = self.model_copy(update={"checksum": None}).dump()
        return self.checksum == sha256_digest(canonical_json(body))


class LedgerSummary(Frozen):
    """The chain's end."""

    segments: int
    events: int
    last_hash: Hex64


class WorkSeal(Sealed):
    """work-seal.json."""

    schema_: Literal["realcli.dev/work-seal/1"] = Field(default="realcli.dev/work-seal/1", alias="schema")
    trial: TrialIdentity
    reason: str  # how work ended
    valid: bool
    state: Digest | None = None  # sha256 of state.tar.zst; None: it did not survive
    run: Digest  # of run.json
    ledger: LedgerSummary
    turns: int
    tokens: Tokens
    cost_usd: str | None = None
    working_seconds: str
    limit: str | None = None
    egress: Literal["Unenforced"] = "Unenforced"
    started_at: str
    ended_at: str


class RunJson(Frozen):
    """run.json: what is random per run; private to session and verifier."""

    schema_: Literal["realcli.dev/run/1"] = Field(default="realcli.dev/run/1", alias="schema")
    instance_id: str  # e.g. "rc-7f3a…": stands in the task's data and has to appear in the artefact
    nonce: Hex64
    seed: int


class Verdict(Frozen):
    """verdict.json: what the tests said, before it is sealed."""

    schema_: Literal["realcli.dev/verdict/1"] = Field(default="realcli.dev/verdict/1", alias="schema")
    reward: Reward  # as read by Harbor's rules
    rewards: dict[str, Reward] = {}  # further named rewards of reward.json
    checks: Checks | None = None
    exit_code: int | None = None  # of test.sh; ignored for the reward
    seconds: str
    replaced: list[str] = []  # trust system: interpreters, loaders, libraries and start-up files that the agent changed


class VerifySeal(Sealed):
    """verify-<j>/seal.json."""

    schema_: Literal["realcli.dev/verify-seal/1"] = Field(default="realcli.dev/verify-seal/1", alias="schema")
    trial: TrialIdentity
    verify: int
    work_seal: Digest
    work_reason: str
    reason: str  # the outcome: a valid reason of the table
    reward: Reward
    checks: Checks | None = None
    verifier_version: str
    trust: Literal["artifacts", "system"] = "artifacts"
    image: str


ControlReason = Literal[
    "RewardBelowOne", "VerifierTimeout", "NoReward", "TestsNotStarted", "SolutionTimeout", "SolutionNotStarted", "ImageRefused"
]
"""Why a control failed."""


class ControlVerdict(Frozen):
    """control-<c>/verdict.json: what the tests said of the reference solution."""

    schema_: Literal["realcli.dev/control/1"] = Field(default="realcli.dev/control/1", alias="schema")
    passed: bool  # the reward is 1
    reason: ControlReason | None = None  # None: it passed
    detail: str = ""
    reward: Reward | None = None  # None: the tests left none
    rewards: dict[str, Reward] = {}
    checks: Checks | None = None
    exit_code: int | None = None  # of test.sh
    solution_exit_code: int | None = None  # of solve.sh; it decides nothing
    solution_seconds: str | None = None
    seconds: str | None = None


class ControlSeal(Sealed):
    """control-<c>/seal.json."""

    schema_: Literal["realcli.dev/control-seal/1"] = Field(default="realcli.dev/control-seal/1", alias="schema")
    trial: TrialIdentity  # whose tests ended without a verdict first
    control: int
    run: Digest  # of its own run.json
    passed: bool
    reason: ControlReason | None = None
    detail: str = ""
    reward: Reward | None = None
    verifier_version: str
    trust: Literal["artifacts", "system"] = "artifacts"
    image: str
