"""summary.json: every number of a report, exact. An absent number is not defined; it is never a 0.

The pages show nothing that does not stand here: every number of theirs carries its place in this file (a JSON pointer).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from realcli.api.base import Digest, Frozen
from realcli.api.plan import BenchmarkLock, ConfigurationLock, Deviation, SourceLock, SweepIdentity
from realcli.api.source import Step
from realcli.api.sweep import Mode
from realcli.api.sweepstatus import ControlEnd, ScoreRow
from realcli.api.trial import Checks, Tokens
from realcli.scoring.records import FailureLabel, RunFacts, WithdrawnTask
from realcli_judge.beside import (
    Analysis,
    AuditSummary,
    GenericSummary,
    JudgeSummary,
    LabelCount,
    Reference,
    ScenarioSummary,
    TaskSummary,
)
from realcli_judge.figures import Money, Number


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


class Spent(Frozen):
    """What runs took. Sums are over the runs that say so; `of` counts all that ran to a seal."""

    usd: Money | None = None  # None: no run knows its price
    usd_per_run: Money | None = None  # over the priced runs
    priced: int  # runs whose price is known
    of: int
    turns: int | None = None  # None, here and below: no run tells
    tool_calls: int | None = None
    input_tokens: int | None = None  # cached ones too
    output_tokens: int | None = None
    hours: Number | None = None  # working time


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


class SetUp(Frozen):
    """The team's own set-up of an agent: what it found beside the program's defaults."""

    digest: Digest
    files: int
    mcp_servers: list[str] = []
    tool_images: list[str] = []  # "<image> at <path>"
    in_reach: list[str] = []  # "<secret>/<key>" of secrets the agent can read


class ConfigurationSummary(Frozen):
    """The scores of a configuration."""

    name: str
    agent: str
    program: str
    agent_version: str
    permissions: str
    model: str
    model_id: str
    effort: str | None = None
    setup: SetUp | None = None  # None: the program as it comes
    key: Digest
    exec: ModeRate | None = None
    collab: ModeRate | None = None
    s: Number | None = None
    s_rate: Number | None = None
    s_low: Number | None = None
    s_high: Number | None = None
    headline: Literal["S", "S_rate"]
    partial: bool  # as `realcli score` says: a mean leaves a repeat out, or a sub-dimension had no instance
    s_partial: bool  # S alone: of a repeat it is missing, or it does not rest on the whole tree
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
    common_s_rate: Number | None = None  # S_rate on instances triggered in every configuration
    common_instances: int | None = None
    observed: int = 0  # scenarios with an instance that counts
    s_rate_uncleaned: Number | None = None  # contaminated instances left in; absent where there are none
    r_collab_unflagged: Number | None = None  # without runs whose outcome the user may have changed; absent where there are none
    invalid_attempts: int
    tokens: Tokens
    spent: dict[Mode, Spent] = {}
    row: ScoreRow


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
    phase: str  # Sealed, Invalid, Missing (its group is not judged) or Withdrawn (its task is left out)
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
    facts: RunFacts | None = None
    failure: FailureLabel | None = None
    outcome_flag: str | None = None  # the simulated user may have changed the outcome
    control: ControlEnd | None = None  # what decided where the tests ended without a verdict
    trouble: str | None = None  # the evidence is not what was anchored


class Counts(Frozen):
    """Trials and groups."""

    trials: int
    valid: int
    invalid: int
    missing: int
    groups: int
    groups_judged: int
    groups_incomplete: int = 0  # judged, with a trial that has no outcome
    groups_withdrawn: int = 0
    tasks_withdrawn: int = 0
    withdrawn: int = 0  # trials of withdrawn tasks: in none of the counts above but the first


class Flag(Frozen):
    """Something a reader has to know before using a number."""

    code: str
    text: str


class OutcomeLegend(Frozen):
    """A reason that may end a trial."""

    reason: str
    effect: str
    happened: str
    here: int = 0  # trials of this sweep


class Reading(Frozen):
    """The two questions, answered in a sentence each."""

    rq1: str
    rq2: str


class Origin(Frozen):
    """Whose runs these are: no agent ran for this sweep."""

    sweep: SweepIdentity
    lock_digest: Digest
    benchmark: BenchmarkLock  # that it ran
    phases: list[Step]  # what was done again


class Summary(Frozen):
    """summary.json."""

    schema_: Literal["realcli.dev/summary/2"] = Field(default="realcli.dev/summary/2", alias="schema")
    sweep: SweepIdentity
    state: Literal["Complete", "Incomplete"]
    created_at: str  # of the sweep's lock; a report has no time of its own, so that equal inputs give equal bytes
    lock_digest: Digest
    input_digest: Digest
    files: Digest | None = None  # of SHA256SUMS, which names every other file of the report
    judge: JudgeSummary
    benchmark: BenchmarkLock
    source: Origin | None = None  # None: its own agents ran
    repeats: int
    catalogue_scenarios: int  # all there are
    egress: Literal["Unenforced"]
    operator_version: str
    deviations: list[Deviation] = []
    reading: Reading
    flags: list[Flag]
    counts: Counts
    configurations: list[ConfigurationSummary]
    scenarios: list[ScenarioSummary]
    trigger_flags: list[str] = []  # scenarios whose trigger rates differ by more than 10 points
    generic: list[GenericSummary] = []
    audits: list[AuditSummary] = []
    failures: list[LabelCount] = []
    analyses: list[Analysis] = []
    withdrawn: list[WithdrawnTask] = []  # left out of every number, for all configurations
    task_list: list[TaskSummary]
    tasks: list[TaskCell]
    trials: list[TrialSummary]
    outcomes: list[OutcomeLegend]
    reference: list[Reference] = []


def origin(source: SourceLock | None) -> Origin | None:
    """What the lock says of where the runs come from."""
    return None if source is None else Origin(
        sweep=source.sweep, lock_digest=source.lock_digest, benchmark=source.benchmark, phases=source.phases
    )  # fmt: skip


def set_up(configuration: ConfigurationLock) -> SetUp | None:
    """What the lock says of an agent's set-up; None: it has none."""
    own = configuration.setup
    return None if own is None else SetUp(
        digest=own.digest,
        files=own.files,
        mcp_servers=[server.name for server in own.mcp_servers],
        tool_images=[f"{image.image} at {image.mount_path}" for image in own.tool_images],
        in_reach=own.in_reach,
    )  # fmt: skip
