"""What a decision is made from. Parsed once, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import is_
from typing import Any

from pydantic import ValidationError

from realcli.api.plan import Plan as FrozenPlan
from realcli.api.sweep import SweepSpec
from realcli.api.sweepstatus import ControlRow, SweepStatus
from realcli.api.trial import TrialSpec, TrialStatus
from realcli_operator.kube.names import LABEL_ATTEMPT
from realcli_operator.kube.views import JobView, PodView, SweepView, TrialView
from realcli_operator.reconcile.rows import Rows


class UnreadableObject(ValueError):
    """An object of ours does not fit its model; names object and field."""


@dataclass(frozen=True, slots=True)
class TrialFacts:
    """A trial, its pods (only those it owns) and the sweep it belongs to."""

    trial: TrialView
    spec: TrialSpec
    status: TrialStatus
    pods: tuple[PodView, ...]
    sweep: SweepSpec
    plan: FrozenPlan
    granted: bool = False
    """Whether it may start a pod now (`SweepPlan.grants`)."""
    held: str | None = None
    """Why it may not, for its status: BreakerOpen, or None."""
    absent: frozenset[str] = frozenset()
    """Pod names that a fresh read proved absent."""
    control: ControlRow | None = None
    """The control of its task, if the sweep has given it to somebody."""
    withdrawn: bool = False
    """Whether its task is."""

    def pod(self, name: str) -> PodView | None:
        """Its pod of that name."""
        return next((pod for pod in self.pods if pod.name == name), None)


@dataclass(frozen=True, slots=True)
class JobFacts:
    """A Job of the sweep and the pods it owns."""

    job: JobView
    pods: tuple[PodView, ...] = ()
    read: list[Any] = field(default_factory=list, compare=False, repr=False)
    """What `job_state` has read of a Job that is done: it says no more, and a sweep keeps thousands of them."""

    def of(self, job: JobView, pods: tuple[PodView, ...]) -> JobFacts:
        """The facts of the same Job now: these, if nothing has changed."""
        same = self.job is job and len(self.pods) == len(pods) and all(map(is_, self.pods, pods))
        return self if same else JobFacts(job, pods)

    @property
    def attempt(self) -> int:
        """Which run this is, from 1."""
        return int(self.job.labels.get(LABEL_ATTEMPT, "1"))


@dataclass(slots=True)
class Judged:
    """Which groups were judged by a Job of the first round that has not changed since: what a step has read of the Jobs and the
    next need not read again. There are thousands in the end."""

    groups: set[int] = field(default_factory=set)
    jobs: dict[str, int] = field(default_factory=dict)
    """Job → group."""

    def note(self, group: int, job: str) -> None:
        """The Job says so."""
        self.groups.add(group)
        self.jobs[job] = group

    def forget(self, job: str) -> None:
        """The Job has changed: it is to be read again."""
        group = self.jobs.pop(job, None)
        if group is not None:
            self.groups.discard(group)


@dataclass(frozen=True, slots=True)
class PlanLog:
    """What the plan Job's log held: the plan, or why there is none."""

    plan: FrozenPlan | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class SweepFacts:
    """A sweep, its Jobs by name, its trials (only what it owns). Jobs and rows are kept, and move between two steps."""

    sweep: SweepView
    spec: SweepSpec
    status: SweepStatus
    plan: FrozenPlan | None = None
    plan_log: PlanLog | None = None
    jobs: Mapping[str, JobFacts] = field(default_factory=dict)
    judged: Judged = field(default_factory=Judged, compare=False, repr=False)
    rows: Rows = field(default_factory=Rows)
    """The trials."""
    granted: frozenset[str] = frozenset()
    source: SweepView | None = None
    """The sweep that `spec.from` names, if it is there."""
    last_write: datetime | None = None
    """When the operator last wrote this sweep's status."""


def trial_spec(view: TrialView) -> TrialSpec:
    """The spec; `UnreadableObject`."""
    try:
        return TrialSpec.model_validate(dict(view.spec))
    except ValidationError as error:
        raise UnreadableObject(_explain("Trial", view.namespace, view.name, "spec", error)) from error


def trial_status(view: TrialView) -> TrialStatus:
    """The status; fields of a newer operator are left out, they come back with its next write."""
    try:
        return TrialStatus.model_validate(dict(view.status), extra="ignore")
    except ValidationError as error:
        raise UnreadableObject(_explain("Trial", view.namespace, view.name, "status", error)) from error


def sweep_spec(view: SweepView) -> SweepSpec:
    """The spec; `UnreadableObject`."""
    try:
        return SweepSpec.model_validate(dict(view.spec))
    except ValidationError as error:
        raise UnreadableObject(_explain("BenchmarkSweep", view.namespace, view.name, "spec", error)) from error


def sweep_status(view: SweepView) -> SweepStatus:
    """The status; fields of a newer operator are left out."""
    try:
        return SweepStatus.model_validate(dict(view.status), extra="ignore")
    except ValidationError as error:
        raise UnreadableObject(_explain("BenchmarkSweep", view.namespace, view.name, "status", error)) from error


def _explain(kind: str, namespace: str, name: str, where: str, error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    path = ".".join((where, *(str(part) for part in first["loc"])))
    return f"{kind} {namespace}/{name}: {path}: {first['msg']} (found {first['input']!r:.200})"
