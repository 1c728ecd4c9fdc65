"""How many trials of a model or configuration may have a pod: what was asked for, less where the provider throttles. Pure.

Additive increase, multiplicative decrease over the ends of trials, in the order of time. The signal is `Trial.status.throttled`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from realcli.api.plan import Plan as FrozenPlan
from realcli.api.sweep import SweepSpec
from realcli.api.sweepstatus import Concurrency
from realcli_operator.reconcile.policy import Policy
from realcli_operator.reconcile.recent import End, Lane, Row, Scope, admission_lanes, owned_lanes
from realcli_operator.reconcile.rows import Rows


def asked_caps(plan: FrozenPlan, spec: SweepSpec) -> dict[Lane, int]:
    """`models[].maxConcurrentTrials`, where given."""
    used = {configuration.model for configuration in plan.configurations}
    return {
        Lane(Scope.MODEL, model.name): model.max_concurrent_trials
        for model in spec.models
        if model.max_concurrent_trials is not None and model.name in used
    }


def window_of(spec: SweepSpec, policy: Policy) -> int:
    """Ends of a lane that its limit is derived from: those of all that ran when it was cut, and as many as give back what the
    cut took. With fewer the cut would be forgotten at once, and what it ended would cut again."""
    return max(policy.throttle_window, (policy.restore_after + 1) * spec.parallelism)


def throttle_ends(rows: Rows, spec: SweepSpec, policy: Policy) -> list[End]:
    """Ends that tell of throttling, newest first; [] where the provider throttles nobody: a step walks through none then."""
    share = Decimal(policy.throttled_share)
    return rows.throttle_ends(window_of(spec, policy)) if any(met > share for met in rows.shares) else []


def throttled_caps(
    plan: FrozenPlan, rows: Mapping[int, Row], ends: Sequence[End], spec: SweepSpec, policy: Policy
) -> dict[Lane, int]:
    """Limits below what was asked for; ``ends`` newest first.

    An attempt that met 429 in more than `Policy.throttled_share` of its requests halves the number that was in flight when it
    ended. One that began before the last cut says nothing new: it measured the time before. `Policy.restore_after` ends without
    throttling give one place back.
    """
    share = Decimal(policy.throttled_share)
    if not any((end.throttled or 0) > share for end in ends):
        return {}
    owned = owned_lanes(plan)
    window = window_of(spec, policy)
    recent: dict[Lane, list[End]] = defaultdict(list)
    for end in ends:
        if end.throttled is None:
            continue
        for lane in admission_lanes(end.row, owned):
            if len(recent[lane]) < window:
                recent[lane].append(end)
    hot = {lane for lane, found in recent.items() if any((end.throttled or 0) > share for end in found)}
    if not hot:
        return {}
    of_lane: dict[Lane, list[Row]] = defaultdict(list)
    for row in rows.values():
        for lane in admission_lanes(row, owned):
            if lane in hot:
                of_lane[lane].append(row)
    asked = asked_caps(plan, spec)
    found = {lane: _replay(recent[lane][::-1], of_lane[lane], share, policy) for lane in hot}
    return {lane: cap for lane, cap in found.items() if cap is not None and cap < asked.get(lane, spec.parallelism)}


def _replay(ends: Sequence[End], rows: Sequence[Row], share: Decimal, policy: Policy) -> int | None:
    """The limit after ``ends``, oldest first; None: none."""
    limit: int | None = None
    cut, clean = "", 0
    flights = _Flights(rows)
    for end in ends:
        begun = end.began
        if (end.throttled or 0) > share:
            if begun is not None and begun >= cut:
                flight = flights.at(end.time)
                limit = max(1, min(flight, limit or flight) // 2)
                cut, clean = end.time, 0
        elif limit is not None:
            clean += 1
            if clean == policy.restore_after:
                limit, clean = limit + 1, 0
    return limit


class _Flights:
    """How many trials had an attempt in flight at a time. Sorted once: each of thousands of ends may ask."""

    def __init__(self, rows: Sequence[Row]) -> None:
        spans = [span for row in rows for span in _apart(row)]
        self._begins = sorted(begun for begun, _ in spans)
        self._ends = sorted(end for _, end in spans if end is not None)

    def at(self, time: str) -> int:
        """Those that had begun and not ended; at least the one that ended then."""
        return max(1, bisect_right(self._begins, time) - bisect_left(self._ends, time))


def _apart(row: Row) -> Iterator[tuple[str, str | None]]:
    """The spans of a trial, those that meet as one: a trial is in flight once."""
    open_: tuple[str, str | None] | None = None
    for begun, end in sorted(row.spans, key=lambda span: span[0]):
        if end is not None and end < begun:  # by two clocks
            continue
        if open_ is None:
            open_ = begun, end
        elif open_[1] is not None and open_[1] < begun:
            yield open_
            open_ = begun, end
        else:
            open_ = open_[0], None if open_[1] is None or end is None else max(open_[1], end)
    if open_ is not None:
        yield open_


def shown(caps: Mapping[Lane, int]) -> list[Concurrency]:
    """For the status: the first hundred, by scope and name."""
    rows = (Concurrency(scope=lane.scope.value, name=lane.name, limit=cap) for lane, cap in caps.items())
    return sorted(rows, key=lambda row: (row.scope, row.name))[:100]
