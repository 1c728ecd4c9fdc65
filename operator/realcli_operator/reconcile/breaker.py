"""The circuit breaker: a lane whose recent ends share one infrastructure reason admits but a probe every few minutes. Pure.

Derived from the trials' statuses at every step. An end counts for the lane that it speaks of: that a configuration is broken is
seen on several tasks, that a task is broken on several configurations, that a key is bad on several models; what an open
configuration, endpoint or key explains is not held against a task or node.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from realcli.api.outcomes import BY_REASON, Cause, Phase
from realcli.api.plan import Plan as FrozenPlan
from realcli_operator.reconcile.policy import Policy
from realcli_operator.reconcile.recent import End, Lane, Owned, Row, Scope, lanes_of, owned_lanes, parsed


@dataclass(frozen=True, slots=True)
class Open:
    """An open lane."""

    lane: Lane
    reason: str
    failing: int
    """Ends of that reason …"""
    ends: int
    """… of these recent ones."""
    last: End
    probe_at: datetime
    """When the next probe is due."""

    def describe(self, interval: float) -> str:
        """For people: where, why, what is done about it."""
        said = self.last.row.view.status.get("message") or ""
        quoted = f" ({str(said)[:200]})" if said else ""
        done = f"none starts there but one every {interval:.0f} s"
        if self.lane.scope is Scope.NODE:
            done = "pods go elsewhere where they can"
        return (
            f"{self.lane}: {self.failing} of the last {self.ends} attempts ended {self.reason}, "
            f"the last of them that of trial {self.last.row.name}{quoted}; {done}"
        )


@dataclass(frozen=True, slots=True)
class Breaker:
    """What is open, by lane; which configurations have been seen working; seconds until time alone may change this."""

    open: Mapping[Lane, Open]
    proven: frozenset[str]
    again: float | None = None

    @property
    def nodes(self) -> frozenset[str]:
        """Nodes that new pods should not go to."""
        return frozenset(lane.name for lane in self.open if lane.scope is Scope.NODE)


def breaker_of(
    plan: FrozenPlan,
    rows: Iterable[Row],
    ends: Sequence[End],
    now: datetime,
    policy: Policy,
    proven: Iterable[str] = (),
    owned: Owned | None = None,
) -> Breaker:
    """The breaker over all lanes; ``ends`` newest first. ``rows`` may leave out those that are terminal, if ``proven`` names the
    configurations that have sealed one. ``owned``: the lanes, where the plan alone does not say whose key is whose."""
    proven = frozenset(proven)
    if all(one.name in proven for one in plan.configurations) and not any(end.failing for end in ends):
        return Breaker({}, proven)  # nothing is to be found out: most steps of most sweeps
    return _Lanes(plan, rows, ends, now, policy, proven, owned).breaker()


class _Lanes:
    def __init__(
        self,
        plan: FrozenPlan,
        rows: Iterable[Row],
        ends: Sequence[End],
        now: datetime,
        policy: Policy,
        proven: Iterable[str],
        owned: Owned | None,
    ) -> None:
        self.now = now
        self.policy = policy
        self.owned = owned_lanes(plan) if owned is None else owned
        self.configurations_of = Counter(endpoint for _, _, endpoint, _ in self.owned.values())
        self.tasks = min(2, len(plan.tasks))
        self.configurations = min(2, len(plan.configurations))
        self.ends = ends[: policy.recent_ends]
        self.times: list[float] = []
        self.proven: set[str] = set(proven)
        self.healthy: list[Row] = [end.row for end in self.ends if end.valid]
        self.active: list[Row] = []
        for row in rows:
            if row.phase is Phase.SEALED or row.sealed_work:
                self.proven.add(row.configuration)
            if row.sealed_work:
                self.healthy.append(row)
            if row.phase is Phase.WORKING:
                self.active.append(row)

    def breaker(self) -> Breaker:
        found: dict[Lane, Open] = {}
        self._judge((Scope.CONFIGURATION, Scope.ENDPOINT, Scope.KEY), found)
        self._judge((Scope.TASK, Scope.NODE), found)
        self._prove()
        return Breaker(found, frozenset(self.proven), min(self.times, default=None))

    def _judge(self, scopes: tuple[Scope, ...], found: dict[Lane, Open]) -> None:
        explained = frozenset(found)

        def lanes(end: End) -> list[Lane]:
            return [lane for lane in end.lanes(self.owned) if lane.scope in scopes]

        failing = [end for end in self.ends if end.failing and explained.isdisjoint(end.lanes(self.owned))]
        counts = Counter(lane for end in failing for lane in lanes(end))
        suspects = {lane for lane, number in counts.items() if number >= self.policy.breaker_ends}
        if not suspects:
            return
        self._of_suspects(suspects)
        windows: dict[Lane, list[End]] = defaultdict(list)
        known = {end.row.ordinal for end in failing}
        for end in self.ends:
            for lane in lanes(end) if end.valid or end.row.ordinal in known else ():
                if lane in suspects and len(windows[lane]) < self.policy.breaker_window:
                    windows[lane].append(end)
        for lane in sorted(suspects):
            opened = self._opened(lane, windows[lane])
            if opened is not None:
                found[lane] = opened

    def _of_suspects(self, suspects: set[Lane]) -> None:
        """Who works in the suspected lanes, and when the newest attempt began that went well there."""
        self.well: dict[Lane, str] = {}
        self.working: dict[Lane, list[Row]] = defaultdict(list)
        for row in self.healthy:
            for lane in suspects.intersection(lanes_of(row, self.owned)):
                self.well[lane] = max(row.begun or "", self.well.get(lane, ""))
        for row in self.active:
            for lane in suspects.intersection(lanes_of(row, self.owned)):
                self.working[lane].append(row)

    def _opened(self, lane: Lane, window: Sequence[End]) -> Open | None:
        since = self.well.get(lane, "")
        window = [end for end in window if not end.failing or end.time > since]
        reasons = Counter(end.reason for end in window if end.failing)
        if not reasons:
            return None
        (reason, number) = max(reasons.items(), key=lambda item: (item[1], item[0]))
        same = [end for end in window if end.reason == reason]
        if number < self.policy.breaker_ends or 2 * number <= len(window) or not self._speaks_of(lane, same):
            return None
        last = same[0]
        if self._outlived(lane, same):
            return None
        starts = (begun for row in self.working[lane] if (begun := row.begun) is not None)
        probe_at = parsed(max((last.time, *starts))) + timedelta(seconds=self.policy.probe_interval)
        self._later((probe_at - self.now).total_seconds())
        return Open(lane, reason, number, len(window), last, probe_at)

    def _speaks_of(self, lane: Lane, ends: Sequence[End]) -> bool:
        """Whether the ends speak of this lane and not of one that crosses it."""
        tasks = len({end.row.task for end in ends})
        configurations = len({end.row.configuration for end in ends})
        provider = all(BY_REASON[end.reason].cause is Cause.PROVIDER for end in ends)  # a node's trouble is no endpoint's
        match lane.scope:
            case Scope.CONFIGURATION:
                return tasks >= self.tasks
            case Scope.ENDPOINT:
                return provider and self.configurations_of[lane] > 1 and configurations > 1 and tasks >= self.tasks
            case Scope.KEY:  # of one model its endpoint speaks; all may be of one task, as the first of a sweep are
                return (
                    provider and len({self.owned[name][1] for end in ends if (name := end.row.configuration) in self.owned}) > 1
                )
            case Scope.TASK:
                return configurations >= self.configurations
            case Scope.NODE:
                return configurations >= self.configurations and tasks >= self.tasks
            case Scope.MODEL:  # its endpoints speak for themselves: another key may be good
                return False

    def _outlived(self, lane: Lane, failing: Sequence[End]) -> bool:
        """Whether an attempt that began after the last failure works for twice as long as any that failed."""
        spans = [_span(end) for end in failing]
        if None in spans:
            return False
        needed = max(self.policy.proving, 2 * max(span for span in spans if span is not None))
        for row in self.working[lane]:
            begun = row.begun
            if begun is None or begun <= failing[0].time or row.running.get("status") != "True":
                continue
            left = needed - (self.now - parsed(begun)).total_seconds()
            if left <= 0:
                return True
            self._later(left)
        return False

    def _prove(self) -> None:
        """A configuration with an attempt that works for some minutes is taken to work."""
        for row in self.active:
            begun = row.begun
            if row.configuration in self.proven or begun is None or row.running.get("status") != "True":
                continue
            left = self.policy.proving - (self.now - parsed(begun)).total_seconds()
            if left <= 0:
                self.proven.add(row.configuration)
            self._later(left)

    def _later(self, seconds: float) -> None:
        if seconds > 0:
            self.times.append(seconds)


def _span(end: End) -> float | None:
    """Seconds that the attempt took: 0 for one that was refused, None where it is unknown (it waited for a node)."""
    if end.began is None:
        return None if end.reason == "SetupTimeout" else 0.0
    return max(0.0, (parsed(end.time) - parsed(end.began)).total_seconds())
