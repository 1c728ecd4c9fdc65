"""What the statuses of trials tell of recent attempts: when each began and ended, how, and which lanes it belongs to. Pure.

Breaker and concurrency are derived from this alone, so a restart of the operator forgets nothing of them. Times are RFC 3339 in
whole seconds UTC, as the API keeps them: they sort as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from realcli.api.models import Model
from realcli.api.outcomes import BY_REASON, Effect, Phase, is_valid
from realcli.api.plan import Plan as FrozenPlan
from realcli.api.plan import PlanConfiguration
from realcli_operator.kube.views import TrialView

ACTIVE = frozenset({Phase.QUEUED, Phase.WORKING, Phase.VERIFYING})
"""Phases with a pod; a queued one waits for somebody else to admit it."""
NOT_THE_LANE = frozenset({"Cancelled", "VerifierFault"})
"""Ends that say nothing of the lane: asked for, or the task's own (which is withdrawn for it)."""

OF_THE_NODE = frozenset({"NodeLost"})
"""Ends that speak of the node and of nothing that ran there: a young sweep may have all its pods on it."""
NOT_THE_NODE = frozenset(
    {"ProviderUnavailable", "ProviderTooSlow", "StorageUnavailable", "SimulatorFailed", "ConfigurationError", "ModelMismatch"}
)
"""Invalid ends that another node would not have changed."""
HELD_BACK = frozenset({"Suspended", "BreakerOpen"})
"""Reasons of a trial that waits for us and may start once we let it."""


class Scope(StrEnum):
    """What a lane is about."""

    CONFIGURATION = "Configuration"
    MODEL = "Model"
    ENDPOINT = "Endpoint"
    KEY = "Key"
    TASK = "Task"
    NODE = "Node"


class Lane(NamedTuple):
    """All attempts of one configuration, model, endpoint of a model, key, task or node."""

    scope: Scope
    name: str

    def __str__(self) -> str:
        return f"{self.scope.lower()} {self.name}"


Owned = Mapping[str, tuple[Lane, Lane, Lane, Lane]]
"""Configuration → the lanes of all its trials: its own, its model's, its endpoint's, its key's."""
NO_MODEL: Final = Lane(Scope.MODEL, "")
NO_ENDPOINT: Final = Lane(Scope.ENDPOINT, "")
NO_KEY: Final = Lane(Scope.KEY, "")


@dataclass(frozen=True, slots=True)
class Row:
    """One trial, as far as the sweep cares. What each step asks of every open one is read once, when it changes."""

    view: TrialView
    ordinal: int
    phase: Phase
    reason: str
    retry_after: str | None
    name: str = field(init=False, repr=False, compare=False)
    configuration: str = field(init=False, repr=False, compare=False)
    task: str = field(init=False, repr=False, compare=False)
    awaiting: bool = field(init=False, repr=False, compare=False)
    """Whether its tests ended without a verdict and the control of its task decides."""
    sealed_work: bool = field(init=False, repr=False, compare=False)
    """Whether its agent is done, with a seal, and its verifier is not."""

    def __post_init__(self) -> None:
        status, verifying = self.view.status, self.phase is Phase.VERIFYING
        end = BY_REASON.get(str(status.get("workEnd"))) if verifying else None
        read = {
            "name": self.view.name,
            "configuration": str(self.view.spec["configuration"]),
            "task": str(self.view.spec["task"]),
            "awaiting": verifying and status.get("awaiting") is not None,
            "sealed_work": end is not None and is_valid(end.reason),
        }
        for name, value in read.items():
            object.__setattr__(self, name, value)

    @property
    def mode(self) -> str:
        """EXEC or COLLAB."""
        return str(self.view.spec["mode"])

    @property
    def attempt(self) -> int:
        """The attempt its status is about; 0 before the first."""
        return _number(self.view.status.get("attempt"))

    @property
    def invalid_attempts(self) -> int:
        """Attempts that ended invalid."""
        return _number(self.view.status.get("invalidAttempts"))

    @property
    def round(self) -> int:
        """1, or n if the n-th renewal of its group renewed it."""
        return _number(self.view.status.get("round")) or 1

    @property
    def runs_control(self) -> bool:
        """Whether it has made a pod of the control it was given, and does not wait to make the next."""
        return bool(_number(self.view.status.get("controlAttempt"))) and self.retry_after is None

    @property
    def control(self) -> Mapping[str, Any] | None:
        """The control that decided, or that it ran."""
        control = self.view.status.get("control")
        return control if isinstance(control, Mapping) else None

    @property
    def node(self) -> str | None:
        """The node of its newest attempt, once that is known."""
        node = self.view.status.get("node")
        return node if isinstance(node, str) else None

    @property
    def throttled(self) -> Decimal | None:
        """Share of the requests of the attempt of its status that were answered 429; None: unknown."""
        return share_of(self.view.status.get("throttled"))

    @property
    def running(self) -> Mapping[str, Any]:
        """Its condition `Running`, {} without one."""
        conditions = self.view.status.get("conditions") or ()
        return next((c for c in conditions if c.get("type") == "Running"), {})

    @property
    def refused(self) -> str | None:
        """Why the API server does not take its pod for now, as `outcome.refused` has noted it; None: nothing is noted."""
        running = self.running
        told = running.get("message")
        noted = running.get("reason") == "ConfigurationError" and told and self.view.status.get("message") == told
        return str(told) if noted and self.phase is Phase.PENDING and self.retry_after is None else None

    @property
    def begun(self) -> str | None:
        """When the attempt of its status began, as far as it is known."""
        started = time_of(self.view.status.get("startedAt"))
        if started is not None:
            return started
        return self.changed if self.running.get("status") == "True" else None

    @property
    def changed(self) -> str | None:
        """When the condition `Running` last changed."""
        return time_of(self.running.get("lastTransitionTime"))

    @property
    def ended(self) -> str | None:
        """When the trial (or, between attempts, its last attempt) ended."""
        return time_of(self.view.status.get("endedAt")) if self.phase.terminal else self.changed

    @property
    def spans(self) -> Iterator[tuple[str, str | None]]:
        """Beginning and end (None: it goes on) of the attempt of its status and of the last that ended invalid."""
        status = self.view.status
        if (begun := self.begun) is not None:
            ended = self.ended
            if ended is not None or self.phase in ACTIVE:
                yield begun, None if self.phase in ACTIVE else ended
        began, at = time_of(status.get("lastInvalidBegan")), time_of(status.get("lastInvalidAt"))
        if began is not None and at is not None:
            yield began, at


class End(NamedTuple):
    """How an attempt of a trial ended; the last that did, also where the trial has begun another since."""

    time: str
    row: Row
    reason: str
    valid: bool
    failing: bool
    """By the infrastructure: what the agent cannot cause, and neither we nor the cluster asked for."""
    began: str | None
    node: str | None
    throttled: Decimal | None
    """Share of its requests that the provider answered 429; None: unknown."""

    def lanes(self, owned: Owned) -> tuple[Lane, ...]:
        """Those it speaks of."""
        node = (_lane(Scope.NODE, self.node),) if self.node else ()
        if self.reason in OF_THE_NODE:
            return node
        return (*lanes_of_configuration(self.row.configuration, owned), _lane(Scope.TASK, self.row.task), *node)


def lanes_of(row: Row, owned: Owned) -> tuple[Lane, ...]:
    """The lanes of a trial and its newest attempt."""
    lanes = (*lanes_of_configuration(row.configuration, owned), _lane(Scope.TASK, row.task))
    node = row.node
    return (*lanes, _lane(Scope.NODE, node)) if node else lanes


def admission_lanes(row: Row, owned: Owned) -> tuple[Lane, Lane]:
    """The lanes whose concurrency is limited."""
    configuration, model, *_ = lanes_of_configuration(row.configuration, owned)
    return configuration, model


def lanes_of_configuration(configuration: str, owned: Owned) -> tuple[Lane, Lane, Lane, Lane]:
    """Its own, and those it shares; of one that the plan does not know its own alone."""
    return owned.get(configuration) or (_lane(Scope.CONFIGURATION, configuration), NO_MODEL, NO_ENDPOINT, NO_KEY)


@lru_cache(maxsize=8192)
def _lane(scope: Scope, name: str) -> Lane:
    return Lane(scope, name)


def owned_lanes(plan: FrozenPlan, models: Iterable[Model] = ()) -> Owned:
    """Configuration → itself, its model, the endpoint it asks that model at (each API of a model has an address and a key), and
    that key, which several ``models`` may have between them."""
    known = {model.name: model for model in models}
    return {
        one.name: (
            _lane(Scope.CONFIGURATION, one.name),
            _lane(Scope.MODEL, one.model),
            _lane(Scope.ENDPOINT, f"{one.model}/{one.api}"),
            _lane(Scope.KEY, _key(known.get(one.model), one)),
        )
        for one in plan.configurations
    }


def _key(model: Model | None, one: PlanConfiguration) -> str:
    """The key by its Secret, and the host that it is for; where the sweep names none, nobody else has it."""
    endpoint = None if model is None else model.endpoints.of(one.api)
    if endpoint is None:
        return f"{one.model}/{one.api}"
    reference = endpoint.api_key.secret_ref
    return f"{reference.name}/{reference.key} at {urlsplit(endpoint.url).netloc}"


def ends_of(rows: Iterable[Row]) -> list[End]:
    """The last end of every trial that has one, newest first."""
    found = [end for row in rows if (end := last_end(row)) is not None]
    return sorted(found, key=lambda end: (end.time, end.row.ordinal), reverse=True)


def last_end(row: Row) -> End | None:
    """How its last attempt that ended did, None before the first."""
    status = row.view.status
    known = time_of(status.get("lastInvalidAt"))
    if row.phase.terminal and status.get("workEnd") is not None and status.get("pod") is None:
        return None  # `spec.from`: it ended where it ran, and no pod of it was here
    if row.phase.terminal:
        return _of(row, row.ended, row.reason, row.begun, row.node, row.throttled)
    if known is not None:
        began, met = time_of(status.get("lastInvalidBegan")), share_of(status.get("lastInvalidThrottled"))
        return _of(row, known, str(status.get("lastInvalidReason")), began, status.get("lastInvalidNode"), met)
    if row.phase not in ACTIVE and row.attempt and row.running.get("status") == "False":  # by an operator that kept no time
        return _of(row, row.ended, str(row.running.get("reason")), row.begun, row.node, row.throttled)
    return None


def _of(row: Row, time: str | None, reason: str, began: str | None, node: Any, throttled: Decimal | None) -> End | None:
    known = BY_REASON.get(reason)
    if time is None or known is None or known.effect is Effect.HELD or reason in NOT_THE_LANE:
        return None
    valid = is_valid(reason)
    return End(time, row, reason, valid, not valid, began, str(node) if node else None, throttled)


def share_of(value: Any) -> Decimal | None:
    """A share of requests; None where it is none."""
    try:
        share = Decimal(str(value))
    except InvalidOperation:
        return None
    return share if share.is_finite() else None


def _number(value: Any) -> int:
    """A status that a newer operator wrote, or that is broken, stops its own trial and not the sweep."""
    return value if isinstance(value, int) else 0


def time_of(value: Any) -> str | None:
    """The value if it is a time of ours. The API server also takes the year 0, which is none that can be counted with."""
    if not isinstance(value, str) or len(value) != len("2026-12-01T12:00:00Z") or not value.endswith("Z"):
        return None
    return None if value.startswith("0000") else value


def left_until(time: str | None, now: datetime, most: float) -> float:
    """Seconds until ``time``, at most 0 when it is due. One that is more than ``most`` away (and the second by which times are
    rounded up) was written by a clock that has been set back since: it is due."""
    left = (parsed(time) - now).total_seconds() if time is not None else 0.0
    return left if left <= most + 1.0 else 0.0


def parsed(time: str) -> datetime:
    """The time as one with a zone."""
    return datetime.fromisoformat(time)
