"""Everything the simulated user knows, as a value, and the questions the rules ask of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from realcli.benchmark.play import Play, PlayedProbe
from realcli.benchmark.script import BATCH, PROBE
from realcli.trajectory.model import Item
from realcli.trajectory.triggers import TriggerState
from realcli_session.user.events import Piece, Release, Verdict
from realcli_session.user.reading import Reading

Watched = dict[str, tuple[TriggerState, ...]]


@dataclass(frozen=True, slots=True)
class Draft:
    """What a message carries before its due item: answers, in the order of the questions."""

    pieces: tuple[Piece, ...] = ()
    releases: tuple[tuple[str, Release], ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    probe: str | None = None  # asked for: its text is the answer
    news: bool = False  # says something that was not said before
    closures: tuple[str, ...] = ()
    bare: bool = False  # a question that names nothing: the next due item is its answer, without one a fixed sentence

    @property
    def empty(self) -> bool:
        """Nothing was asked, or only what the next due item answers."""
        return not self.pieces and self.probe is None


@dataclass(frozen=True, slots=True)
class Handover:
    """A hand-over between `Yielded` and its answer."""

    reading: Reading
    draft: Draft


@dataclass(frozen=True, slots=True)
class Planting:
    """A probe whose plant is being put in place, and what its message holds before it."""

    probe: str
    before: Draft
    question: Draft | None = None
    """The hand-over it answers asks: what it gets where the plant fails and nothing is left."""


@dataclass(frozen=True)
class State:
    """The run so far. Never changed: `dataclasses.replace` makes the next one."""

    play: Play
    mid_turn: bool
    """The adapter can put a message into a running response."""
    watched: Watched = field(repr=False)
    pending: tuple[str, ...] = ()
    """Batches and at_yield probes to come, in order."""
    armed: tuple[str, ...] = ()
    """Mid-turn probes to come."""
    plain: tuple[str, ...] = ()
    """Slices of probes that were given up, to be said plainly."""
    released: frozenset[str] = frozenset()
    said: frozenset[str] = frozenset()
    """Sources of answers and closures that were said."""
    closures: tuple[str, ...] = ()
    """Delivered probes whose closure is still to be said."""
    parts: tuple[str, int] | None = None
    """A probe of several parts and the index of the next."""
    messages: int = 0
    exchange: int = 0
    working: bool = False
    probed: bool = False
    """The running response got a probe, or a part of one."""
    held: frozenset[str] = frozenset()
    """Mid-turn probes that fired and were kept back by the distance to another."""
    stopping: str | None = None
    handover: Handover | None = None
    planting: Planting | None = None
    displaced: int = 0
    idle: int = 0
    last_probe: str | None = None
    heard: tuple[int, tuple[str, ...]] = (-1, ())
    """Turn and texts of the last visible message of the running response."""
    triggered: frozenset[str] = frozenset()
    ended: bool = False

    # ------------------------------------------------------------------------------------------------------- what is open
    @property
    def slices_pending(self) -> int:
        """Mandatory slices not released yet."""
        return sum(1 for part in self.play.script.slices if part.mandatory and part.id not in self.released)

    @property
    def probes_pending(self) -> int:
        """Probes neither delivered in full nor given up."""
        open_ = [item for item in self.pending if item.startswith(PROBE)]
        return len(open_) + len(self.armed) + (self.parts is not None)

    @property
    def claims_early(self) -> bool:
        """A claim now would be an interim one."""
        return bool(self.slices_pending or self.probes_pending or self.closures or self.pending)

    def probe(self, name: str) -> PlayedProbe:
        """A probe of the script."""
        return self.play.probes[name]

    @property
    def waiting(self) -> list[str]:
        """Probes that were not delivered and not given up, in the order of the script."""
        return [name for name in self.play.probes if PROBE + name in self.pending or name in self.armed]

    # ------------------------------------------------------------------------------------------------------- what is due
    def holds(self, name: str) -> bool:
        """Everything watched under that name holds at this moment."""
        return all(one.holds for one in self.watched.get(name, ()))

    def happened(self, name: str) -> bool:
        """Everything watched under that name has held at some time."""
        return all(one.fired is not None for one in self.watched.get(name, ()))

    def spaced(self, name: str) -> bool:
        """Distance and slice conditions hold, whatever else has happened."""
        return all(one.conditions_hold for one in self.watched.get(name, ()))

    def rest(self, batch: str) -> list[str]:
        """Slices of a batch that are not out yet."""
        return [name for name in self.play.script.batches[batch] if name not in self.released]

    def volunteered(self) -> list[str]:
        """Slices that an event of the work calls for, not bound to a probe that is still to come."""
        return [
            part.id
            for part in self.play.script.slices
            if part.on_event is not None
            and part.id not in self.released
            and self.happened(f"slice:{part.id}")
            and not self.promised(part.id)
            and self.closing(part.id) is None
        ]

    def promised(self, name: str) -> bool:
        """The slice is released with a probe, or after one, that is not delivered in full."""
        probe = self.play.bound.get(name)
        return probe is not None and (probe in self.waiting or (self.parts is not None and self.parts[0] == probe))

    def closing(self, name: str) -> str | None:
        """The delivered probe whose closure releases the slice and was not said yet."""
        probe = self.play.bound.get(name)
        return probe if probe in self.closures and name not in self.released else None

    def due(self) -> str | None:
        """The next due item: `part:`, `plain:`, `event:`, or a batch or probe of the order."""
        if self.parts is not None:
            return f"part:{self.parts[0]}"
        if self.plain:
            return "plain:"
        if self.volunteered():
            return "event:"
        return next((item for item in self.pending if self._due(item)), None)

    def _due(self, item: str) -> bool:
        if item.startswith(BATCH):
            return bool(self.rest(item.removeprefix(BATCH)))
        return self.holds(item)

    def distant(self, name: str) -> bool:
        """A distance is what keeps the probe back: it is unmet, and all else holds or need not."""
        watched = self.watched.get(name, ())
        near = all(one.distances_hold for one in watched)
        return not near and (self.probe(name.removeprefix(PROBE)).fallback or all(one.holds_but_for_distance for one in watched))

    def fallback(self) -> str | None:
        """The first probe that may answer a completion claim although its trigger has not fired."""
        names = [item for item in self.pending if item.startswith(PROBE)]
        return next((n for n in names if self.probe(n.removeprefix(PROBE)).fallback and self.spaced(n)), None)

    # ---------------------------------------------------------------------------------------------------------- next state
    def observing(self, item: Item) -> State:
        """After one more event of the ledger."""
        kind = item.event.kind
        moved = [name for name, kinds in self.play.heeds.items() if kind in kinds]
        if not moved:
            return self
        seen = {name: tuple(one.observe(item) for one in self.watched[name]) for name in moved}
        return replace(self, watched=self.watched | seen)

    def without(self, item: str) -> State:
        """An item of the order is out."""
        return replace(self, pending=tuple(one for one in self.pending if one != item))

    def releasing(self, names: Iterator[str] | list[str]) -> State:
        """Slices are out; a batch that has none left is out with them."""
        released = self.released | set(names)
        left = tuple(
            item
            for item in self.pending
            if not item.startswith(BATCH) or any(n not in released for n in self.play.script.batches[item.removeprefix(BATCH)])
        )
        return replace(self, released=released, pending=left, plain=tuple(n for n in self.plain if n not in released))


def fresh(play: Play, mid_turn: bool) -> State:
    """The state before the opener."""
    in_time = play.of_delivery("at_yield")
    return State(
        play=play,
        mid_turn=mid_turn,
        watched={name: tuple(TriggerState.start(when) for when in conditions) for name, conditions in play.conditions.items()},
        pending=tuple(item for item in play.script.order if item.startswith(BATCH) or item.removeprefix(PROBE) in in_time),
        armed=tuple(play.of_delivery("mid_turn")),
    )
