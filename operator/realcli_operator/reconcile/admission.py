"""Who may start: the window of a sweep, its lanes' concurrency, the breaker and its probes, the order. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Final

from realcli.api.plan import Plan as FrozenPlan
from realcli_operator.reconcile.breaker import Breaker
from realcli_operator.reconcile.order import order_of
from realcli_operator.reconcile.policy import Policy
from realcli_operator.reconcile.recent import (
    ACTIVE,
    Lane,
    Owned,
    Row,
    Scope,
    lanes_of,
    lanes_of_configuration,
    left_until,
    owned_lanes,
)
from realcli_operator.reconcile.rows import Rows

_ASKED: Final = frozenset({Scope.ENDPOINT, Scope.KEY})
_STARTS_SMALL: Final = _ASKED | {Scope.CONFIGURATION}
"""A few of a configuration are tried first, and a few of all that share its key: a bad one costs no more."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may run: in all, and in a lane. ``held``: nothing new."""

    parallelism: int
    caps: Mapping[Lane, int] = field(default_factory=dict)
    breaker: Breaker = field(default_factory=lambda: Breaker({}, frozenset()))
    held: bool = False
    holders: frozenset[str] = frozenset()
    """Trials that run the control of their task; those that await somebody else's have no pod and take no place."""
    withdrawn: frozenset[str] = frozenset()
    """Tasks of which nothing starts."""
    owned: Owned | None = None
    """The lanes of each configuration; None: as far as the plan says."""


@dataclass(frozen=True, slots=True)
class Admission:
    """Who may start: all grants that hold now, those that are new, who is kept back by the breaker, which lanes take no more,
    and when the next waiting trial is due."""

    grants: frozenset[str] = frozenset()
    new: tuple[str, ...] = ()
    broken: frozenset[str] = frozenset()
    full: frozenset[Lane] = frozenset()
    next_due: float | None = None


def admit(plan: FrozenPlan, rows: Rows, granted: frozenset[str], bounds: Bounds, now: datetime, policy: Policy) -> Admission:
    """Fill the window in the order of admission. An unused grant holds its place; when nothing may start it is taken back."""
    return _Gate(plan, rows, granted, bounds, now, policy).admit()


class _Gate:
    def __init__(
        self,
        plan: FrozenPlan,
        rows: Rows,
        granted: frozenset[str],
        bounds: Bounds,
        now: datetime,
        policy: Policy,
    ) -> None:
        self.bounds = bounds
        self.policy = policy
        self.now = now
        self.owned = owned_lanes(plan) if bounds.owned is None else bounds.owned
        self.proven = {lane for name in bounds.breaker.proven if name in self.owned for lane in self.owned[name]}
        self.small = _STARTS_SMALL if plan.source is None else _STARTS_SMALL - _ASKED  # no agent asks a model then
        self.active = 0
        self.in_lane: Counter[Lane] = Counter()
        self.probing: set[Lane] = set()
        self.full: set[Lane] = set()
        rank = order_of(plan).rank
        due: list[float] = []
        waiting: list[Row] = []
        configurations, tasks = Counter[str](), Counter[str]()
        for row in rows.open.values():
            if row.phase in ACTIVE:
                if not row.awaiting or row.name in bounds.holders:
                    configurations[row.configuration] += 1
                    tasks[row.task] += 1
            elif not row.view.deleting and row.task not in bounds.withdrawn:
                left = left_until(row.retry_after, now, policy.max_backoff)
                if left > 0:
                    due.append(left)
                else:
                    waiting.append(row)
        self._begin_with(configurations, tasks)
        waiting.sort(key=lambda row: rank.get(row.ordinal, row.ordinal))
        self.kept = [row for row in waiting if row.name in granted]
        self.fresh = [row for row in waiting if row.name not in granted]
        self.due = min(due, default=None)

    def admit(self) -> Admission:
        broken = {row.name for row in (*self.kept, *self.fresh) if self._open(row)}
        if self.bounds.held:
            return Admission(broken=frozenset(broken))
        grants = {row.name for row in self.kept if self._let_in(row, due=True)}
        new = [row.name for row in self.fresh if not self._open(row) and self._let_in(row, due=False)]
        # A probe costs the trial an attempt if it fails: the one that has lost fewest goes first.
        for row in sorted((row for row in self.fresh if self._open(row)), key=lambda row: row.invalid_attempts):
            if self._let_in(row, due=False):
                new.append(row.name)
        grants.update(new)
        full = frozenset({*self.full, *self.bounds.breaker.open})
        return Admission(frozenset(grants), tuple(new), frozenset(broken - grants), full, self.due)

    def _open(self, row: Row) -> tuple[Lane, ...]:
        open_ = self.bounds.breaker.open
        return tuple(lane for lane in self._lanes(row) if lane in open_) if open_ else ()

    def _lanes(self, row: Row) -> Iterator[Lane]:
        return (lane for lane in lanes_of(row, self.owned) if lane.scope is not Scope.NODE)  # its next node is not known

    def _let_in(self, row: Row, *, due: bool) -> bool:
        """Whether there is a place in every lane; takes it. ``due``: a probe may go now, whatever the time."""
        if self.active >= self.bounds.parallelism:
            return False
        open_ = self._open(row)
        if any(lane in self.probing or not (due or self.bounds.breaker.open[lane].probe_at <= self.now) for lane in open_):
            return False
        full = [lane for lane in self._lanes(row) if self.in_lane[lane] >= self._cap(lane)]
        if full:
            self.full.update(full)
            return False
        self._enter(row)
        self.probing.update(open_)
        return True

    def _begin_with(self, configurations: Counter[str], tasks: Counter[str]) -> None:
        """Those that have a pod, by configuration and by task."""
        self.active = configurations.total()
        for name, number in configurations.items():
            for lane in lanes_of_configuration(name, self.owned):
                self.in_lane[lane] += number
        for name, number in tasks.items():
            self.in_lane[Lane(Scope.TASK, name)] += number

    def _enter(self, row: Row) -> None:
        self.active += 1
        self.in_lane.update(self._lanes(row))

    def _cap(self, lane: Lane) -> int:
        cap = self.bounds.caps.get(lane, self.bounds.parallelism)
        if lane.scope in self.small and lane not in self.proven:
            return min(cap, self.policy.unproven)
        return cap


def missing(
    plan: FrozenPlan, rows: Rows, window: int, per_step: int, full: frozenset[Lane] = frozenset(), owned: Owned | None = None
) -> tuple[int, ...]:
    """Ordinals to create now, in the order of admission: holes that a crash left and the next of the window of ``window`` trials
    that are not terminal. What waits in a lane that takes no more neither fills the window nor gets company."""
    lanes = owned_lanes(plan) if owned is None else owned

    def stuck(row: Row) -> bool:
        return row.awaiting or (row.phase not in ACTIVE and bool(full) and not full.isdisjoint(lanes_of(row, lanes)))

    open_now = sum(not stuck(row) for row in rows.open.values())
    wanted = min(per_step, window - open_now)
    if wanted <= 0:
        return ()
    kept_back = {index for index, one in enumerate(plan.configurations) if not full.isdisjoint(lanes[one.name])}
    if len(kept_back) == len(plan.configurations):
        return ()
    tasks = {index for index, task in enumerate(plan.tasks) if Lane(Scope.TASK, task.name) in full}

    def free(ordinal: int) -> bool:
        configuration, task = divmod(plan.group_of(ordinal), len(plan.tasks))
        return configuration not in kept_back and task not in tasks

    absent = rows.absent(plan)
    return tuple(islice(filter(free, absent) if kept_back or tasks else absent, wanted))
