"""The trials of a sweep as rows, with what a step wants to know of all of them kept up to date instead of counted again.

A step of a sweep of 20,000 trials happens every second and sees a few of them changed. So everything that is a sum, or an
order, over all trials is kept here and moved by what changed; only rows that are not terminal are walked through. `Rows` built at
once and `Rows` brought there by any changes are the same (tested so); between two steps nobody changes them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import NamedTuple

from realcli.api.outcomes import Phase
from realcli.api.plan import Plan as FrozenPlan
from realcli_operator.kube.views import TrialView
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

    def __init__(self, trials: Collection[TrialView] = ()) -> None:
        self._kept: dict[int, _Kept] = {}
        self._ordinals: dict[str, tuple[TrialView, int]] = {}
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
        self._plan: FrozenPlan | None = None
        self._finished: Counter[int] = Counter()
        self.sealed: Counter[str] = Counter()
        """By configuration."""
        self.shares: Counter[Decimal] = Counter()
        """Of requests that the provider answered 429: how many last attempts met it."""
        self.spent = NOTHING
        self.update(trials)

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

    def update(self, trials: Collection[TrialView]) -> None:
        """These are the trials now. A view that is the very one that was seen last has not changed. One that cannot be read is an
        error each time, not only the first."""
        known = self._ordinals
        for view in trials:
            before = known.get(view.name)
            if before is None or before[0] is not view:
                kept = _Kept.of(view)
                if before is not None:
                    self._drop(before[1])
                self._put(kept)
                known[view.name] = (view, kept.row.ordinal)
        if len(known) > len(trials):
            alive = {view.name for view in trials}
            for name in [name for name in known if name not in alive]:
                self._drop(known.pop(name)[1])
            for view in trials:  # a twin of what went counts again
                if known[view.name][1] not in self._kept:
                    self._put(_Kept.of(view))

    def finished(self, plan: FrozenPlan) -> Mapping[int, int]:
        """By group of the plan: trials that are terminal and not cancelled."""
        if self._plan is not plan:
            self._plan = plan
            self._finished = Counter(plan.group_of(ordinal) for ordinal, kept in self._kept.items() if _is_finished(kept.row))
        return self._finished

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

    def _put(self, kept: _Kept) -> None:
        row = kept.row
        if row.ordinal in self._kept:  # two Trials of one ordinal: somebody made one by hand; the later seen counts
            self._drop(row.ordinal)
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
        kept = self._kept.pop(ordinal, None)
        if kept is None:
            return
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
        if self._plan is not None and _is_finished(row):
            self._finished[self._plan.group_of(row.ordinal)] += number
        if row.phase is Phase.SEALED:
            self.sealed[row.configuration] += number
        if met is not None:
            self.shares[met] += number
            if not self.shares[met]:
                del self.shares[met]
