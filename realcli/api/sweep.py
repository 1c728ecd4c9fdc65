"""BenchmarkSweep: what a person asks for. The CRD YAML is generated from these models (`realcli.api.crd`)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from realcli.api.agents import Agent, Permissions
from realcli.api.base import Digest, Duration, Frozen
from realcli.api.judge import Judge
from realcli.api.models import Endpoint, Endpoints, InsecureHttp, InstrumentModel, Model, SecretNameRef, Usd
from realcli.api.pods import Pods
from realcli.api.source import From
from realcli.api.sweepstatus import SweepStatus

__all__ = ["Agent", "BenchmarkSweep", "Endpoint", "Endpoints", "InsecureHttp", "Model", "Permissions", "SweepSpec", "SweepStatus"]

Mode = Literal["EXEC", "COLLAB"]
MODES: tuple[Mode, ...] = ("COLLAB", "EXEC")  # sorted, as the ordinal needs them
MUTABLE = ("suspend", "cancel", "retryInvalid", "parallelism", "budget", "allowIncomplete", "confirm", "ttlAfterFinished")
MUTABLE_OF_MODELS = ("maxConcurrentTrials",)
IMMUTABLE = (
    f"spec is immutable except {', '.join((*MUTABLE, *(f'models[].{name}' for name in MUTABLE_OF_MODELS)))}; make a new sweep"
)


class UserMode(StrEnum):
    """Who words the simulated user's messages."""

    CANONICAL = "Canonical"
    MODEL = "Model"


class Credentials(Frozen):
    """S3 credentials: a Secret with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, optionally AWS_SESSION_TOKEN and ca.crt."""

    secret_ref: SecretNameRef = Field(description="Secret in the sweep's namespace.")


TaskNames = Annotated[list[Annotated[str, StringConstraints(min_length=1, max_length=63)]], Field(max_length=1000)]


class TaskSelection(Frozen):
    """Which tasks of the benchmark run: those of the categories and those included, all without either; less those excluded."""

    categories: TaskNames = Field(default=[], description="Categories of which all tasks run.")
    include: TaskNames = Field(default=[], description="Tasks that run.")
    exclude: TaskNames = Field(default=[], description="Tasks that do not run, whatever else is said.")


class Sample(Frozen):
    """A cheap look with the same code."""

    tasks: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        default=None, description="Run only this many of the tasks, evenly over the categories; absent: all."
    )


class Benchmark(Frozen):
    """The published benchmark."""

    source: Annotated[str, StringConstraints(pattern=r"^s3://[^/]+/.+[^/]$", max_length=512)] | None = Field(
        default=None,
        description="s3://bucket/path of a published benchmark version (index.json and bundles/). With from: absent, the "
        "source's; to verify again it may name a newer version, in which verifiers are mended.",
    )
    digest: Digest | None = Field(default=None, description="Digest of index.json; refuse anything else.")
    tasks: TaskSelection = Field(default=TaskSelection(), description="Which of its tasks run; default: all.")


class ModeLimits(Frozen):
    """Limits of one mode."""

    deadline: Duration = Field(description="Working time of the agent.")


class TrialBudget(Frozen):
    """What one trial may cost."""

    usd: Usd = Field(description="US dollars by the model's prices; the trial ends as Budget when they are spent.")


class Limits(Frozen):
    """Limits of a trial. Agent time limits come from here only."""

    turns: int = Field(default=600, ge=1, le=100000, description="Generation requests; request n+1 is refused.")
    exec: ModeLimits = Field(default=ModeLimits(deadline="6h"), description="Limits of EXEC.")
    collab: ModeLimits = Field(default=ModeLimits(deadline="10h"), description="Limits of COLLAB.")
    wall_factor: Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]?(\.[0-9]{1,3})?$", max_length=6)] = Field(
        default="1.5", description="Wall limit = wallFactor x deadline."
    )
    pending: Duration = Field(default="1h", description="A pod must be scheduled within this time.")
    setup: Duration = Field(default="15m", description="The agent must have started within this time of scheduling.")
    verify: Duration = Field(default="30m", description="Upper bound of a task's tests; the task's own limit if smaller.")
    spool_hold: Duration = Field(
        default="24h", description="Time a finished session waits for storage to come back before its trial is invalid."
    )
    trial_budget: TrialBudget | None = Field(default=None, description="Budget of one trial; needs prices of every model.")


class SimulatedUser(Frozen):
    """The simulated user of COLLAB."""

    mode: UserMode = Field(
        default=UserMode.CANONICAL,
        description="Canonical: the script's texts verbatim, no model. Model: a model words what the script decides.",
    )
    model: InstrumentModel | None = Field(default=None, description="The model that words; required with mode Model.")


class Retry(Frozen):
    """New attempts after invalid ones."""

    infrastructure: int = Field(default=3, ge=0, le=10, description="New attempts after ends the agent cannot cause.")
    backoff: Duration = Field(default="30s", description="Wait before a new attempt; doubled each time, at most 10m.")


class SweepBudget(Frozen):
    """What the trials of a sweep may cost. Once it is spent nothing new starts; what runs finishes."""

    usd: Usd | None = Field(default=None, description="US dollars by the models' prices; needs prices of every model.")
    tokens: Annotated[int, Field(ge=1, le=10**15)] | None = Field(default=None, description="Tokens of every kind together.")


_NAME = r"[A-Za-z0-9_-][A-Za-z0-9._-]*"  # of a folder; none that begins with a dot, so that no key is "../x"


class Storage(Frozen):
    """Where everything goes: an S3-compatible bucket."""

    bucket: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", max_length=63)] = Field(
        description="Bucket."
    )
    prefix: Annotated[str, StringConstraints(pattern=rf"^/?({_NAME}(/{_NAME})*/?)?$", max_length=256)] = Field(
        default="", description="Prefix inside the bucket: names joined by single slashes, none of which begins with a dot."
    )
    endpoint: Annotated[str, StringConstraints(pattern=r"^https?://[^\s]+$", max_length=512)] | None = Field(
        default=None, description="S3 endpoint; default: AWS."
    )
    region: Annotated[str, StringConstraints(min_length=1, max_length=64)] = Field(default="us-east-1", description="Region.")
    credentials: Credentials = Field(
        description="Credentials for the bucket, mounted into trusted containers alone: a Secret with the keys "
        "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and optionally AWS_SESSION_TOKEN and ca.crt."
    )


class SweepSpec(Frozen):
    """Specification of a sweep: benchmark x agents x models x modes x repeats."""

    benchmark: Benchmark = Field(default=Benchmark(), description="The published benchmark.")
    agents: Annotated[list[Agent], Field(default=[], max_length=50, description="Agents; each runs with every model.")]
    models: Annotated[list[Model], Field(default=[], max_length=50, description="Models; each runs with every agent.")]
    modes: Annotated[
        list[Mode],
        Field(
            default=["EXEC", "COLLAB"],
            min_length=1,
            max_length=2,
            description="EXEC: whole task at once. COLLAB: with the simulated user.",
        ),
    ]
    repeats: int = Field(default=3, ge=1, le=100, description="Repeats of every (configuration, task, mode).")
    sample: Sample = Field(default=Sample(), description="A cheap look: a few of the tasks.")
    from_: From | None = Field(
        default=None,
        alias="from",
        description="Verify or judge again what another sweep has sealed; agents, models, modes and repeats are that sweep's.",
    )
    limits: Limits = Field(default=Limits(), description="Limits of a trial.")
    simulated_user: SimulatedUser = Field(default=SimulatedUser(), description="The simulated user of COLLAB.")
    judge: Judge = Field(default=Judge(), description="Who judges the collaboration.")
    parallelism: int = Field(default=10, ge=1, le=5000, description="Trials that may have a pod at the same time. Mutable.")
    budget: SweepBudget | None = Field(
        default=None, description="What the trials may cost, without the judge; once spent nothing new starts. Mutable."
    )
    retry: Retry = Field(default=Retry(), description="New attempts after invalid ones.")
    suspend: bool = Field(default=False, description="True: no new pods; running trials finish. Mutable.")
    cancel: bool = Field(
        default=False,
        description="True ends the sweep for good: running pods are ended, groups that are complete are judged and reported.",
    )
    retry_invalid: int = Field(
        default=0,
        ge=0,
        le=1000,
        description="Raise it to run the repeats that ended Invalid again: their attempt number goes on, retry.infrastructure "
        "counts anew, what is sealed stays. It never goes back. Mutable.",
    )
    allow_incomplete: bool = Field(
        default=False,
        description="True: scores stand in the status also where trials ended Invalid, tasks were withdrawn or groups not "
        "judged. The report is written either way, with counts and bounds. Mutable.",
    )
    queue_name: Annotated[str, StringConstraints(pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$", max_length=63)] = Field(
        default="", description="Kueue LocalQueue that admits the pods of trials; empty: none."
    )
    pods: Pods = Field(default=Pods(), description="How pods are placed and marked.")
    confirm: Digest | None = Field(
        default=None,
        description="Digest of the plan that may start, where the operator asks because of its forecast (condition Confirmed). "
        "Mutable.",
    )
    ttl_after_finished: Duration | None = Field(
        default=None,
        description="Delete the sweep and its Trials this long after it has finished; storage stays. Absent: never. Mutable.",
    )
    storage: Storage = Field(description="Where everything goes.")


class ObjectMeta(Frozen):
    """The part of metadata the project reads."""

    model_config = Frozen.model_config | {"extra": "ignore"}
    name: str
    namespace: str = "default"
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[dict[str, Any]] = []


class BenchmarkSweep(Frozen):
    """A sweep."""

    api_version: Literal["realcli.dev/v1alpha1"] = "realcli.dev/v1alpha1"
    kind: Literal["BenchmarkSweep"] = "BenchmarkSweep"
    metadata: ObjectMeta
    spec: SweepSpec
    status: SweepStatus | None = None
