"""What a decision may ask for. Executed in this order: deletions of Jobs, creations, one status write, deletions of pods."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from realcli.api.base import Digest
from realcli.api.plan import Plan as FrozenPlan
from realcli.api.source import SourceRef
from realcli.api.sweepstatus import SweepStatus
from realcli.api.trial import TrialStatus
from realcli.scoring.records import GroupInput, WithdrawnTask


@dataclass(frozen=True, slots=True)
class Note:
    """An event for people. Failures and milestones only."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Removal:
    """A pod or Job to delete, by uid so that its successor of the same name is safe."""

    name: str
    uid: str
    grace_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class PodIntent:
    """The next pod of a trial: work (``verify`` and ``control`` 0), verify of the attempt's seal (digest if the operator knows
    it), or the control of its task. ``avoid``: nodes on which the one before it ended badly."""

    attempt: int
    verify: int = 0
    work_seal: Digest | None = None
    control: int = 0
    avoid: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """One step of a trial. ``status`` None: as it is."""

    create: PodIntent | None = None
    delete: tuple[Removal, ...] = ()
    status: TrialStatus | None = None
    requeue_after: float | None = None
    events: tuple[Note, ...] = ()


class Task(StrEnum):
    """What a Job of a sweep is for."""

    PLAN = "plan"
    JUDGE = "judge"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class JobIntent:
    """A Job to create. ``attempt`` counts runs after a lost result, ``n`` renewals of the group (or of any, for the report)."""

    task: Task
    attempt: int = 1
    group: int = 0
    input: GroupInput | None = None
    source: SourceRef | None = None
    """Of a plan Job with `spec.from`."""
    n: int = 1
    withdrawn: tuple[WithdrawnTask, ...] = ()
    """For the report: tasks that are left out."""


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """One step of a sweep. ``grants``: trials that may start their pod; ``broken``: trials that the breaker keeps from it;
    ``avoid``: nodes that pods should not go to; ``wake``: trials to look at now."""

    delete_jobs: tuple[Removal, ...] = ()
    create_jobs: tuple[JobIntent, ...] = ()
    store_plan: FrozenPlan | None = None
    create_trials: tuple[int, ...] = ()
    grants: frozenset[str] = frozenset()
    broken: frozenset[str] = frozenset()
    avoid: frozenset[str] = frozenset()
    wake: tuple[str, ...] = ()
    delete_sweep: bool = False
    """The sweep has been over for long enough; its Trials, pods and Jobs go with it."""
    status: SweepStatus | None = None
    requeue_after: float | None = None
    events: tuple[Note, ...] = ()


def earliest(*delays: float | None) -> float | None:
    """The smallest delay there is, never negative."""
    known = [max(0.0, delay) for delay in delays if delay is not None]
    return min(known) if known else None
