"""Status of a BenchmarkSweep: what the operator says of it. No list here grows with the trials."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from realcli.api.base import Digest, Frozen
from realcli.api.forecast import Forecast


class Condition(Frozen):
    """A condition as in KEP-1623."""

    type: Annotated[str, StringConstraints(max_length=316)] = Field(description="Type of the condition.")
    status: Literal["True", "False", "Unknown"] = Field(description="True, False or Unknown.")
    reason: Annotated[str, StringConstraints(pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", max_length=1024)] = Field(
        description="CamelCase reason."
    )
    message: Annotated[str, StringConstraints(max_length=32768)] = Field(default="", description="For people.")
    last_transition_time: str = Field(description="When status last changed.", json_schema_extra={"format": "date-time"})
    observed_generation: int | None = Field(default=None, ge=0, description="Generation the condition is about.")


class ModeCounts(Frozen):
    """Terminal trials of one mode."""

    total: int = Field(default=0, description="Trials.")
    sealed: int = Field(default=0, description="Valid trials.")
    invalid: int = Field(default=0, description="Invalid trials.")


class SweepCounts(Frozen):
    """Counters of trials and groups. Never a list that grows with trials."""

    total: int = Field(default=0, description="Trials of the plan.")
    created: int = Field(default=0, description="Trials that exist.")
    pending: int = Field(default=0, description="Trials not started, queued or between attempts, and those not created yet.")
    working: int = Field(default=0, description="Trials in their work pod.")
    verifying: int = Field(default=0, description="Trials in their verify pod.")
    sealed: int = Field(default=0, description="Valid trials.")
    invalid: int = Field(default=0, description="Invalid trials.")
    withdrawn: int = Field(default=0, description="Trials of withdrawn tasks that never existed.")
    exec: ModeCounts = Field(default=ModeCounts(), description="EXEC.")
    collab: ModeCounts = Field(default=ModeCounts(), description="COLLAB.")
    groups: int = Field(default=0, description="Groups (configuration, task) of the plan.")
    groups_judged: int = Field(default=0, description="Groups judged.")
    groups_incomplete: int = Field(default=0, description="Groups judged although a repeat of theirs ended Invalid.")
    groups_withdrawn: int = Field(default=0, description="Groups of tasks that are withdrawn: left out of every score.")
    tasks_withdrawn: int = Field(default=0, description="Tasks withdrawn: their own tests fail with the reference solution.")


class ControlEnd(Frozen):
    """How a control ended, and where its files lie: `trials/<ordinal>/attempt-<attempt>/control-<number>/` of the sweep."""

    result: Literal["Passed", "Failed"] = Field(description="Passed: the reference solution earns reward 1.")
    ordinal: int = Field(ge=0, le=99999, description="Trial whose pod it was.")
    attempt: int = Field(ge=1, description="Its attempt then.")
    number: int = Field(ge=1, description="Number of the control pod.")
    seal: Digest | None = Field(default=None, description="Digest of its seal.json; absent: it left none.")
    detail: Annotated[str, StringConstraints(max_length=200)] = Field(default="", description="For people: why it failed.")


class ScoreRow(Frozen):
    """Scores of one configuration, as decimal strings; absent where undefined."""

    configuration: str = Field(max_length=253, description="Configuration.")
    r_exec: str | None = Field(default=None, max_length=16, description="R of EXEC.")
    r_collab: str | None = Field(default=None, max_length=16, description="R of COLLAB.")
    s: str | None = Field(default=None, max_length=16, description="S; ~ marks S_rate or a partial S.")
    j: str | None = Field(default=None, max_length=16, description="J.")


class Tokens(Frozen):
    """Tokens as the gateway counted them."""

    input: int = Field(default=0, ge=0, description="Uncached input tokens.")
    cache_read: int = Field(default=0, ge=0, description="Input tokens read from the cache.")
    cache_write: int = Field(default=0, ge=0, description="Input tokens written to the cache.")
    output: int = Field(default=0, ge=0, description="Output tokens.")


class Concurrency(Frozen):
    """How many trials of a configuration or model may have a pod now, where that is less than was asked for."""

    scope: Literal["Configuration", "Model"] = Field(description="What the limit is for.")
    name: str = Field(max_length=253, description="Configuration or model.")
    limit: int = Field(ge=1, description="Trials that may have a pod at the same time.")


class Resolved(Frozen):
    """What holds now of the fields that may change; the lock keeps them as planned."""

    parallelism: int = Field(default=0, ge=0, description="Trials that may have a pod at the same time.")
    concurrency: Annotated[
        list[Concurrency],
        Field(
            default=[],
            max_length=100,
            description="Limits that throttling (429) has lowered; halved when it is seen, restored as trials end without it.",
        ),
    ]
    user_namespaces: bool | None = Field(
        default=None,
        description="Whether work and verify pods have a user namespace (hostUsers: false); decided once, by the plan.",
    )
    image_volumes: bool | None = Field(
        default=None, description="Whether images are mounted as volumes; decided once, by the plan."
    )
    cgroup: Literal["1", "2"] | None = Field(
        default=None, description="Version of the node the sweep was planned on; absent: nothing showed it."
    )
    out_of_memory: Literal["Process", "Container"] | None = Field(
        default=None, description="What a node kills for memory; trials run only where it is the same. Absent: unknown."
    )


class ControlRow(Frozen):
    """The control of a task: its verifier run on the reference solution, because a trial's ended without a verdict."""

    task: Annotated[str, StringConstraints(max_length=253)] = Field(description="Task.")
    image: Annotated[str, StringConstraints(max_length=512)] = Field(description="Image of the task.")
    verifier: Annotated[str, StringConstraints(max_length=512)] = Field(description="Version of its verifier.")
    result: Literal["Running", "Passed", "Failed"] = Field(description="Running, Passed or Failed.")
    trial: Annotated[str, StringConstraints(max_length=253)] = Field(description="Trial whose pod it is.")
    end: ControlEnd | None = Field(default=None, description="How it ended.")


class Withdrawn(Frozen):
    """A task that is left out of the sweep for all configurations."""

    task: Annotated[str, StringConstraints(max_length=253)] = Field(description="Task.")
    reason: Literal["VerifierFault"] = Field(description="VerifierFault: its own tests fail with the reference solution.")
    configurations: Annotated[list[Annotated[str, StringConstraints(max_length=253)]], Field(max_length=10)] = Field(
        description="Configurations whose trials met it, sorted; the first ten."
    )
    more: int = Field(default=0, ge=0, description="Configurations beside those.")


class Rerun(Frozen):
    """A Job that is replaced because its result was lost, and which run the next of its name is."""

    job: Annotated[str, StringConstraints(max_length=63)] = Field(description="Name of the Job.")
    run: int = Field(ge=2, description="Run that its next one is.")


class SweepStatus(Frozen):
    """Observed state of a sweep. A condition of type Complete, Failed … is the truth, `state` its summary."""

    state: Literal["Planning", "Running", "Suspended", "Degraded", "Complete", "Incomplete", "Failed"] | None = Field(
        default=None, description="Summary of the conditions."
    )
    observed_generation: int | None = Field(default=None, ge=0, description="Generation this status is about.")
    conditions: Annotated[
        list[Condition],
        Field(
            default=[],
            max_length=16,
            description="Planned, Ready, Degraded, Suspended, BudgetExhausted, TasksSuspect, Complete …",
        ),
    ]
    resolved: Resolved | None = Field(default=None, description="What holds now of the fields that may change.")
    forecast: Forecast | None = Field(default=None, description="What the sweep takes at most, and what it is likely to take.")
    counts: SweepCounts = Field(default=SweepCounts(), description="Counters.")
    trials: str | None = Field(default=None, max_length=32, description="terminal/total, for the column.")
    cost: str | None = Field(
        default=None, max_length=32, description="Column: US dollars of the trials so far; ≥ where attempts are uncounted."
    )
    cost_usd: str | None = Field(
        default=None,
        alias="costUSD",
        max_length=32,
        description="US dollars of the trials so far, every attempt, without the judge; absent where a model has no price.",
    )
    tokens: Tokens | None = Field(default=None, description="Tokens of the trials so far, every attempt.")
    uncounted_attempts: int = Field(
        default=0, ge=0, description="Ended attempts that left no count of tokens or cost (their session was lost)."
    )
    egress: Literal["Unenforced"] | None = Field(default=None, description="Unenforced: no network wall around the agent.")
    plan_digest: Digest | None = Field(default=None, description="Digest of the frozen plan.")
    lock_digest: Digest | None = Field(default=None, description="Digest of sweep.json in storage.")
    storage_uri: str | None = Field(default=None, alias="storageURI", max_length=1024, description="Where the sweep's files lie.")
    report_uri: str | None = Field(default=None, alias="reportURI", max_length=1024, description="Where the report lies.")
    report_digest: Digest | None = Field(
        default=None, description="Digest of the report's summary.json, which names all its files."
    )
    round: int = Field(default=1, ge=1, description="1 + retryInvalid, as far as it is obeyed.")
    controls: Annotated[
        list[ControlRow],
        Field(default=[], max_length=1000, description="Controls of tasks whose tests ended without a verdict, sorted by task."),
    ]
    withdrawn: Annotated[
        list[Withdrawn],
        Field(default=[], max_length=1000, description="Tasks withdrawn from the sweep for all configurations, sorted."),
    ]
    reruns: Annotated[
        list[Rerun],
        Field(default=[], max_length=100, description="Jobs on their way to be replaced; said here before the old one goes."),
    ]
    scores: Annotated[list[ScoreRow], Field(default=[], max_length=50, description="Scores, up to 50 configurations.")]
    r_exec: str | None = Field(default=None, max_length=16, description="Column: R of EXEC where there is one configuration.")
    r_collab: str | None = Field(default=None, max_length=16, description="Column: R of COLLAB.")
    s: str | None = Field(default=None, max_length=16, description="Column: S.")
    j: str | None = Field(default=None, max_length=16, description="Column: J.")
