"""Slim, frozen projections of API objects: only what a decision needs, ~0.5-1 KB instead of 8-15 KB each.

Field names follow the API (snake case). Times are aware datetimes in UTC, None when the API has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from realcli_operator.kube.names import LABEL_SWEEP, LABEL_TRIAL, Kind

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Condition:
    """One entry of ``status.conditions``."""

    type: str
    status: str
    reason: str
    message: str
    last_transition_time: datetime | None


class ContainerState(StrEnum):
    """Which of the three states of a container status is set."""

    WAITING = "waiting"
    RUNNING = "running"
    TERMINATED = "terminated"


@dataclass(frozen=True, slots=True)
class ContainerView:
    """One container status. ``reason`` and ``message`` belong to the state: waiting reason (``ImagePullBackOff``),
    termination reason (``OOMKilled``) and termination message. ``exit_code`` is None unless terminated."""

    name: str
    state: ContainerState
    reason: str
    message: str
    exit_code: int | None
    signal: int | None
    started_at: datetime | None
    finished_at: datetime | None
    ready: bool
    restart_count: int
    image_id: str


@dataclass(frozen=True, slots=True)
class ObjectView:
    """What every kind has. ``labels`` holds the managed-by label and those under ``realcli.dev/`` that a Trial's
    spec does not say."""

    namespace: str
    name: str
    uid: str
    resource_version: int
    generation: int
    labels: Mapping[str, str]
    owner_uid: str | None
    """uid of the controlling owner reference."""
    owner_name: str | None
    spec_digest: str | None
    """Annotation ``realcli.dev/spec-digest``: compared with uid after a 409."""
    creation_timestamp: datetime | None
    deletion_timestamp: datetime | None

    @property
    def deleting(self) -> bool:
        """Whether deletion has been asked for."""
        return self.deletion_timestamp is not None

    @property
    def sweep(self) -> str | None:
        """Name of the sweep by label."""
        return self.labels.get(LABEL_SWEEP)

    @property
    def trial(self) -> str | None:
        """Name of the trial by label."""
        return self.labels.get(LABEL_TRIAL)


@dataclass(frozen=True, slots=True)
class PodView(ObjectView):
    """A pod of a trial, or of a plan, judge or report Job."""

    phase: str
    reason: str
    message: str
    node: str | None
    start_time: datetime | None
    conditions: tuple[Condition, ...]
    containers: tuple[ContainerView, ...]
    init_containers: tuple[ContainerView, ...]
    scheduling_gates: tuple[str, ...]
    """Names of gates that still hold the pod (Kueue): queued, not pending."""

    @property
    def finished(self) -> bool:
        """Terminal: no container of it will run again."""
        return self.phase in {"Succeeded", "Failed"}

    def container(self, name: str) -> ContainerView | None:
        """Status of a (non-init) container, None before the kubelet reports it."""
        return next((c for c in self.containers if c.name == name), None)

    def condition(self, kind: str) -> Condition | None:
        """The condition of that type."""
        return next((c for c in self.conditions if c.type == kind), None)


@dataclass(frozen=True, slots=True)
class JobView(ObjectView):
    """A plan, judge or report Job."""

    active: int
    succeeded: int
    failed: int
    start_time: datetime | None
    completion_time: datetime | None
    conditions: tuple[Condition, ...]

    def condition(self, kind: str) -> Condition | None:
        """The condition of that type."""
        return next((c for c in self.conditions if c.type == kind), None)

    @property
    def complete(self) -> bool:
        """Condition Complete is True."""
        found = self.condition("Complete")
        return found is not None and found.status == "True"

    @property
    def is_failed(self) -> bool:
        """Condition Failed is True."""
        found = self.condition("Failed")
        return found is not None and found.status == "True"


@dataclass(frozen=True, slots=True)
class TrialView(ObjectView):
    """A Trial: spec and status verbatim (treat as read-only), {} when the object has none."""

    spec: Json
    status: Json

    @property
    def sweep(self) -> str | None:
        """Name of its sweep: its spec says it, which nobody can change, and a label may be taken away."""
        name = self.spec.get("sweep")
        return name if isinstance(name, str) else self.labels.get(LABEL_SWEEP)

    @property
    def phase(self) -> str:
        """``status.phase``, "" before the first status."""
        phase = self.status.get("phase", "")
        return phase if isinstance(phase, str) else ""


@dataclass(frozen=True, slots=True)
class SweepView(ObjectView):
    """A BenchmarkSweep: spec and status verbatim (treat as read-only), {} when the object has none."""

    spec: Json
    status: Json


@dataclass(frozen=True, slots=True)
class ConfigMapView(ObjectView):
    """A ConfigMap read back (the frozen plan); not watched and never in the store."""

    data: Mapping[str, str]
    binary_data: Mapping[str, str]
    immutable: bool


View = PodView | JobView | TrialView | SweepView

KIND_OF_VIEW: Mapping[type[View], Kind] = {
    PodView: Kind.POD,
    JobView: Kind.JOB,
    TrialView: Kind.TRIAL,
    SweepView: Kind.SWEEP,
}
