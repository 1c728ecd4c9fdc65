"""The parts of summary.json beside the scores: scenarios, tasks, generic checks, audit, failures, the judge, further readings."""

from __future__ import annotations

from typing import Literal

from realcli.api.base import Digest, Frozen
from realcli.api.sweep import Mode
from realcli.judging.model import JudgeIdentity
from realcli.scoring.records import FailureLabel, JudgeCost
from realcli_judge.figures import Money, Number

NEVER_CALIBRATED = "This judge was not run over the known-answer set."
"""`gate` of a judge without one."""


class SimRate(Frozen):
    """One of the seven checks of the simulated user, over the COLLAB runs of a configuration."""

    check: str
    passes: int
    fails: int
    not_applicable: int
    unscored: int
    rate: Number | None = None  # passes of those that pass or fail


class AuditSummary(Frozen):
    """The simulated user, audited, in one configuration."""

    configuration: str
    audited: int
    runs: int  # valid COLLAB runs
    checks: list[SimRate]
    contaminated: dict[str, int] = {}  # dimension -> instances that leave S
    instances: dict[str, int] = {}  # dimension -> instances that happened
    outcome_flagged: list[int] = []  # ordinals of runs whose R is to be read with and without them
    ask_unmatched: int | None = None  # None: no run is audited
    unscripted_answers: int | None = None


class GenericSummary(Frozen):
    """One generic check in one configuration: a panel of its own, never part of S."""

    configuration: str
    scenario: str
    name: str
    passes: int
    n: int
    rate: Number | None = None
    unscored: int = 0


class LabelCount(Frozen):
    """Failed runs of one mode by their one label."""

    configuration: str
    mode: Mode
    label: FailureLabel | None = None  # None: not labelled
    runs: int


class TaskSummary(Frozen):
    """One task over all configurations."""

    name: str
    category: str | None = None
    information_structure: str | None = None
    r_exec: Number | None = None  # share of all valid runs that succeed
    r_collab: Number | None = None
    pairs: int
    fail_to_pass: int
    pass_to_fail: int
    withdrawn: str | None = None  # why; nothing of it is counted then
    suspect: str | None = None  # why
    suspect_trials: list[int] = []


class JudgeSummary(Frozen):
    """Who judged, and how far to trust it."""

    digest: Digest
    identity: JudgeIdentity
    calibration: Literal["calibrated", "uncalibrated", "not asked for"]
    gate: str  # one sentence: what the last calibration found
    same_family: list[str] = []  # configurations whose model is of the judge's family
    verdicts: int  # checks with a verdict of 1, 0 or n/a
    by_program: int
    by_judge: int
    trusted: int  # of those by the judge: no record of a program says the same
    conflicts: int  # the program overrode the judge
    unscored: int
    cost: JudgeCost
    usd: Money | None = None


class Reference(Frozen):
    """A number of another benchmark (RealCLI's own paper), to read ours beside; never mixed into ours."""

    beside: str  # what of ours it stands beside: "main.j", "dimension.U", "scenario.<id>", …
    text: str
    means: str
    at: str  # section of the paper


class Analysis(Frozen):
    """One further reading of the runs as a table."""

    id: str
    title: str
    means: str  # formula and source
    columns: list[str]
    rows: list[list[Number | bool | int | float | str | None]]


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
    scheduled: int = 0  # instances in valid COLLAB runs
    triggered: int = 0
    trigger_rate: Number | None = None  # of those of which it is known whether they happened
    untriggered: dict[str, int] = {}  # reason -> instances
    not_applicable: int = 0
    unscored: int = 0
    unknown: int = 0  # of the unscored: nobody can tell whether they happened
    contaminated: int = 0
