"""The trials of a sweep as rows, with what a step wants to know of all of them kept up to date instead of counted again.

A step of a sweep of 20,000 trials happens every second and sees a few of them changed. So everything that is a sum, or an
order, over all trials is kept here and moved by what changed; only rows that are not terminal are walked through. `Rows` built at
once and `Rows` brought there by any changes are the same (tested so); between two steps nobody changes them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from typing import NamedTuple

from realcli.api.outcomes import Phase
from realcli.api.plan import Plan as FrozenPlan
from realcli_operator.kube.views import TrialView
from realcli_operator.reconcile.order import order_of
from realcli_operator.reconcile.recent import End, Row, last_end, time_of
from realcli_operator.reconcile.spending import NOTHING, Spent, spent_by

_PHASES = {phase.value: phase for phase in Phase}
_When = tuple[str, int]
"""Time and ordinal: the order of ends."""


def row_of(view: TrialView) -> Row:
    """One trial. An unknown phase (a newer operator's) counts as pending."""
    status = view.status
    phase = _PHASES.get(view.phase, Phase.PENDING)
    return Row(view, int(view.spec["ordinal"]), phase, str(status.get("reason", "")), time_of(status.get("retryAfter")))


class _Kept(NamedTuple):
    """A row and what it adds to the sums."""

    row: Row
    end: End | None
    spent: Spent

    @staticmethod
    def of(view: TrialView) -> _Kept:
        """Of one trial. Whatever cannot be read of it is an error here, before anything is moved."""
        row = row_of(view)
        return _Kept(row, last_end(row), spent_by(row))


def _is_finished(row: Row) -> bool:
    return row.phase.terminal and row.reason != "Cancelled"


class Rows(Mapping[int, Row]):
    """Rows by ordinal."""

    def __init__(self, trials: Iterable[TrialView] = ()) -> None:
        self._kept: dict[int, _Kept] = {}
        self._ordinals: dict[str, int] = {}
        """By name."""
        self._twins: dict[int, dict[str, _Kept]] = {}
        """Ordinals with several trials: all of them, the one that counts last."""
        self._open: dict[int, Row] = {}
        self.invalid: dict[int, Row] = {}
        """Those that ended Invalid."""
        self.controlled: dict[int, Row] = {}
        """Those that know of a control."""
        self.renewed: dict[int, Row] = {}
        """Those that `retryInvalid` has renewed."""
        self._ends: list[_When] = []
        self._throttled: defaultdict[str, list[_When]] = defaultdict(list)
        self.phases: Counter[tuple[str, Phase]] = Counter()
        """By mode and phase."""
        self.tasks: Counter[str] = Counter()
        """By task."""
        self._plan: FrozenPlan | None = None
        """That the groups are of."""
        self._members = 0
        self._finished: Counter[int] = Counter()
        self._complete: set[int] = set()
        self._absent: tuple[FrozenPlan, dict[int, None]] | None = None
        self.sealed: Counter[str] = Counter()
        """By configuration."""
        self.shares: Counter[Decimal] = Counter()
        """Of requests that the provider answered 429: how many last attempts met it."""
        self.failing = 0
        """Trials whose last end was the infrastructure's."""
        self.spent = NOTHING
        self.move(trials)

    def __getitem__(self, ordinal: int) -> Row:
        return self._kept[ordinal].row

    def __iter__(self) -> Iterator[int]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, ordinal: object) -> bool:
        return ordinal in self._kept

    @property
    def open(self) -> Mapping[int, Row]:
        """Those that are not terminal."""
        return self._open

    def move(self, put: Iterable[TrialView], gone: Iterable[str] = ()) -> None:
        """``put``: trials that are new or have changed, in the order of their last change; ``gone``: names of those that are no
        more. What cannot be read is an error before anything is moved. To hear of the same change again changes nothing."""
        new = [_Kept.of(view) for view in put]
        left = [self._leave(name) for name in gone]
        for kept in new:
            left.append(self._leave(kept.row.name))
            self._enter(kept)
        if any(ordinal is not None and ordinal not in self._kept for ordinal in left):
            self._absent = None  # one is to be made again: where in the order, is found when somebody asks

    def absent(self, plan: FrozenPlan) -> Iterable[int]:
        """Ordinals of the plan that have no trial, in the order of admission."""
        if self._absent is None or self._absent[0] is not plan:
            self._absent = plan, {ordinal: None for ordinal in order_of(plan).ordinals if ordinal not in self._kept}
        return self._absent[1]

    def finished(self, plan: FrozenPlan) -> Mapping[int, int]:
        """By group of the plan: trials that are terminal and not cancelled."""
        if self._plan is not plan:
            self._plan = plan
            self._finished = Counter(plan.group_of(ordinal) for ordinal, kept in self._kept.items() if _is_finished(kept.row))
            self._members = plan.repeats * len(plan.modes)
            self._complete = {group for group, number in self._finished.items() if number == self._members}
        return self._finished

    def complete(self, plan: FrozenPlan) -> AbstractSet[int]:
        """Groups of the plan all of whose trials are finished."""
        self.finished(plan)
        return self._complete

    def newest_ends(self, number: int) -> list[End]:
        """The last end of those trials that have one, newest first, at most ``number``."""
        return [self._end(ordinal) for _, ordinal in reversed(self._ends[-number:])]

    def throttle_ends(self, number: int) -> list[End]:
        """Ends that tell whether the provider throttled them, newest first: at least the newest ``number`` of each configuration
        and of each model."""
        newest = sorted((when for ends in self._throttled.values() for when in ends[-number:]), reverse=True)
        return [self._end(ordinal) for _, ordinal in newest]

    def _end(self, ordinal: int) -> End:
        end = self._kept[ordinal].end
        assert end is not None  # what stands in an order of ends has one
        return end

    def _enter(self, kept: _Kept) -> None:
        """A trial whose name is not here. Of two Trials of one ordinal (somebody made one by hand) the later counts."""
        row = kept.row
        known = self._kept.get(row.ordinal)
        if known is not None:
            self._twins.setdefault(row.ordinal, {known.row.name: known})[row.name] = kept
            self._drop(row.ordinal)
        self._ordinals[row.name] = row.ordinal
        self._put(kept)

    def _leave(self, name: str) -> int | None:
        """Take a trial out; its ordinal, None if it was not here. A twin of it counts again."""
        ordinal = self._ordinals.pop(name, None)
        if ordinal is None:
            return None
        counts = self._kept[ordinal].row.name == name
        if counts:
            self._drop(ordinal)
        twins = self._twins.get(ordinal)
        if twins is not None:
            del twins[name]
            *_, last = twins.values()
            if counts:
                self._put(last)
            if len(twins) == 1:
                del self._twins[ordinal]
        return ordinal

    def _put(self, kept: _Kept) -> None:
        row = kept.row
        if self._absent is not None:
            self._absent[1].pop(row.ordinal, None)
        self._kept[row.ordinal] = kept
        for belongs, where in self._sets(row):
            if belongs:
                where[row.ordinal] = row
        if kept.end is not None:
            when = (kept.end.time, row.ordinal)
            insort(self._ends, when)
            if kept.end.throttled is not None:
                insort(self._throttled[row.configuration], when)
        self._count(kept, 1)
        self.spent = self.spent.plus(kept.spent)

    def _drop(self, ordinal: int) -> None:
        kept = self._kept.pop(ordinal)
        row = kept.row
        for _, where in self._sets(row):
            where.pop(ordinal, None)
        if kept.end is not None:
            when = (kept.end.time, ordinal)
            del self._ends[bisect_left(self._ends, when)]
            if kept.end.throttled is not None:
                ends = self._throttled[row.configuration]
                del ends[bisect_left(ends, when)]
        self._count(kept, -1)
        self.spent = self.spent.minus(kept.spent)

    def _sets(self, row: Row) -> tuple[tuple[bool, dict[int, Row]], ...]:
        return (
            (not row.phase.terminal, self._open),
            (row.phase is Phase.INVALID, self.invalid),
            (row.control is not None, self.controlled),
            (row.round > 1, self.renewed),
        )

    def _count(self, kept: _Kept, number: int) -> None:
        row, met = kept.row, None if kept.end is None else kept.end.throttled
        self.phases[(row.mode, row.phase)] += number
        self.tasks[row.task] += number
        if self._plan is not None and _is_finished(row):
            group = self._plan.group_of(row.ordinal)
            self._finished[group] += number
            whole = self._finished[group] == self._members
            (self._complete.add if whole else self._complete.discard)(group)
        if row.phase is Phase.SEALED:
            self.sealed[row.configuration] += number
        if kept.end is not None and kept.end.failing:
            self.failing += number
        if met is not None:
            self.shares[met] += number
            if not self.shares[met]:
                del self.shares[met]
