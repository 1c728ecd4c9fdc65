"""summary.json: every number of a report, exact. An absent number is not defined; it is never a 0."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from pydantic import Field

from realcli.api.base import Digest, Frozen
from realcli.api.plan import BenchmarkLock, Deviation, SweepIdentity
from realcli.api.sweep import Mode, ScoreRow
from realcli.api.trial import Checks, Tokens
from realcli.scoring.records import InstanceRecord
from realcli.scoring.scorerow import decimal, signed


class Number(Frozen):
    """A fraction, exactly and for people."""

    exact: str  # "17/50"
    value: float
    text: str  # "0.340"

    def signed(self) -> str:
        """As a difference is written: "+0.340"; what reads as zero has no sign."""
        return signed(Fraction(self.exact))


class Bounds(Frozen):
    """R with every invalid run read as a failure, and as a success."""

    invalid_as_0: Number
    invalid_as_1: Number


class ModeRate(Frozen):
    """R of one mode: the mean over repeats of the share of valid runs with reward 1."""

    r: Number | None = None
    valid: int  # runs it rests on
    invalid: int  # runs without an outcome: left out
    missing: int  # runs of groups that are not judged
    bounds: Bounds | None = None


class Paired(Frozen):
    """COLLAB against EXEC of the same (task, repeat), both valid."""

    pairs: int
    fail_to_pass: int
    pass_to_fail: int
    delta_r: Number | None = None


class Instances(Frozen):
    """Scenario instances of the valid COLLAB runs: each in exactly one."""

    triggered: int
    untriggered: int
    not_applicable: int
    unscored: int
    contaminated: int


class RepeatSummary(Frozen):
    """One repeat before the mean."""

    repeat: int
    r_exec: Number | None = None
    r_collab: Number | None = None
    s: Number | None = None
    s_rate: Number | None = None
    s_low: Number | None = None
    s_high: Number | None = None
    j: Number | None = None
    j_rate: Number | None = None


class ConfigurationSummary(Frozen):
    """The scores of a configuration."""

    name: str
    agent: str
    program: str
    agent_version: str
    permissions: str
    model: str
    model_id: str
    key: Digest
    exec: ModeRate | None = None
    collab: ModeRate | None = None
    s: Number | None = None
    s_rate: Number | None = None
    s_low: Number | None = None
    s_high: Number | None = None
    headline: Literal["S", "S_rate"]
    partial: bool
    j: Number | None = None
    j_rate: Number | None = None  # R_collab x S_rate: shown where S_rate is the headline
    delta_r: Number | None = None  # difference of the means; the paired one stands in `paired`
    delta_j: Number | None = None
    delta_j_task: Number | None = None
    delta_j_collaboration: Number | None = None
    paired: Paired
    instances: Instances
    dimensions: dict[str, Number] = {}
    sub_dimensions: dict[str, Number] = {}
    per_repeat: list[RepeatSummary] = []
    invalid_attempts: int
    tokens: Tokens
    row: ScoreRow


class ScenarioSummary(Frozen):
    """Strict pass rate of a scenario in a configuration, all repeats together."""

    configuration: str
    scenario: str
    name: str
    dimension: str
    sub_dimension: str
    passes: int
    n: int  # instances with a verdict
    rate: Number | None = None
    untriggered: dict[str, int] = {}  # reason -> instances
    not_applicable: int = 0
    unscored: int = 0
    contaminated: int = 0


class TaskCell(Frozen):
    """One task in one mode of one configuration."""

    configuration: str
    task: str
    mode: Mode
    successes: int
    valid: int
    invalid: int
    missing: int
    rewards: dict[str, str] = {}  # repeat -> reward of a valid run
    mean_reward: Number | None = None


class TrialSummary(Frozen):
    """One trial."""

    ordinal: int
    name: str
    configuration: str
    task: str
    mode: Mode
    repeat: int
    phase: str  # Sealed, Invalid, or Missing: its group is not judged
    reason: str | None = None
    success: bool | None = None  # absent: it has no outcome
    reward: str | None = None
    checks: Checks | None = None
    turns: int | None = None
    tokens: Tokens | None = None
    working_seconds: str | None = None
    limit: str | None = None
    attempt: int | None = None
    invalid_attempts: int | None = None
    work_seal: Digest | None = None
    seal: Digest | None = None
    ledger: str | None = None  # where the attempt lies
    instances: list[InstanceRecord] = []
    trouble: str | None = None  # the evidence is not what was anchored


class Counts(Frozen):
    """Trials and groups."""

    trials: int
    valid: int
    invalid: int
    missing: int
    groups: int
    groups_judged: int


class Flag(Frozen):
    """Something a reader has to know before using a number."""

    code: str
    text: str


class OutcomeLegend(Frozen):
    """A reason that may end a trial."""

    reason: str
    effect: str
    happened: str


class Reading(Frozen):
    """The two questions, answered in a sentence each."""

    rq1: str
    rq2: str


class Summary(Frozen):
    """summary.json."""

    schema_: Literal["realcli.dev/summary/1"] = Field(default="realcli.dev/summary/1", alias="schema")
    sweep: SweepIdentity
    state: Literal["Complete", "Incomplete"]
    created_at: str  # of the sweep's lock; a report has no time of its own, so that equal inputs give equal bytes
    lock_digest: Digest
    input_digest: Digest
    judge: Digest
    benchmark: BenchmarkLock
    egress: Literal["Unenforced"]
    operator_version: str
    deviations: list[Deviation] = []
    reading: Reading
    flags: list[Flag]
    counts: Counts
    configurations: list[ConfigurationSummary]
    scenarios: list[ScenarioSummary]
    tasks: list[TaskCell]
    trials: list[TrialSummary]
    outcomes: list[OutcomeLegend]


def number(value: Fraction | None) -> Number | None:
    """A fraction as it is written; None stays absent."""
    return None if value is None else Number(exact=str(value), value=float(value), text=decimal(value))
