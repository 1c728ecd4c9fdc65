"""Triggers: when a scenario happens. One evaluator for the session, event by event, and for the judge, over a whole ledger.

    state = TriggerState.start(parse_when(template.trigger.when, bindings), blobs)
    for item in items:
        state = state.observe(item)
    state.fired        # seq of the deciding event, None

The judge folds the same function over the sealed events, so both see the same trigger at the same event. A state is a value;
`fired` never changes once it is set. Nothing before `episode_start` counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import Discriminator, Field, JsonValue, Tag, TypeAdapter, ValidationError, model_validator

from realcli.api.base import Frozen
from realcli.ledger.events import EpisodeStart, SliceReleased, UserMessage, Yield
from realcli.trajectory.bindings import BindingError, substitute, whole_name
from realcli.trajectory.matching import EventPattern, Where, matches
from realcli.trajectory.model import Item
from realcli.trajectory.patterns import Blobs, NoBlobs


class TriggerError(ValueError):
    """A `when` that cannot be used as written; the message names the place in it."""


class Nth(Frozen):
    """The nth event that matches."""

    event: str
    nth: Annotated[int, Field(ge=1)]
    where: Where | None = None

    @model_validator(mode="after")
    def _defined(self) -> Nth:
        EventPattern(event=self.event, where=self.where)
        return self

    @property
    def pattern(self) -> EventPattern:
        """What is counted."""
        return EventPattern.model_construct(event=self.event, where=self.where)


class Count(Frozen):
    """At least so many matching events."""

    count: EventPattern
    at_least: Annotated[int, Field(ge=1)]

    @property
    def pattern(self) -> EventPattern:
        """What is counted."""
        return self.count


class ExchangeAtLeast(Frozen):
    """The exchange about to start has at least this number: true from the yield that ends the one before."""

    exchange_at_least: Annotated[int, Field(ge=2)]


class ExchangesSince(Frozen):
    """So many complete responses since the message that released the slice."""

    exchanges_since: str  # slice
    at_least: Annotated[int, Field(ge=1)]


class SlicePending(Frozen):
    """The slice is not released yet. The one atom that can become false again."""

    slice_pending: str


class AllOf(Frozen):
    """Conjunction."""

    all: Annotated[tuple[When, ...], Field(min_length=2)]


class AnyOf(Frozen):
    """Disjunction."""

    any: Annotated[tuple[When, ...], Field(min_length=2)]


_FORMS = {
    "event": Nth, "count": Count, "exchange_at_least": ExchangeAtLeast, "exchanges_since": ExchangesSince,
    "slice_pending": SlicePending, "all": AllOf, "any": AnyOf,
}  # fmt: skip


def _form(value: Any) -> str | None:
    """The form of a `when`: the one key that no other form has."""
    if isinstance(value, dict):
        found = [name for name in _FORMS if name in value]
        return found[0] if len(found) == 1 else None
    return next((name for name, cls in _FORMS.items() if isinstance(value, cls)), None)


When = Annotated[
    Annotated[Nth, Tag("event")]
    | Annotated[Count, Tag("count")]
    | Annotated[ExchangeAtLeast, Tag("exchange_at_least")]
    | Annotated[ExchangesSince, Tag("exchanges_since")]
    | Annotated[SlicePending, Tag("slice_pending")]
    | Annotated[AllOf, Tag("all")]
    | Annotated[AnyOf, Tag("any")],
    Discriminator(
        _form,
        custom_error_type="trigger_form",
        custom_error_message=f"expected exactly one of {', '.join(_FORMS)}",
    ),
]
Atom = Nth | Count | ExchangeAtLeast | ExchangesSince | SlicePending
AllOf.model_rebuild()
AnyOf.model_rebuild()
WHEN: TypeAdapter[When] = TypeAdapter(When)


def parse_when(when: Mapping[str, JsonValue], bindings: Mapping[str, JsonValue]) -> When:
    """A `when` of the catalogue with its names bound. `TriggerError` names the place and what is wrong with it.

    A `where.marker` that is a name ending in `_RE` is an expression, any other marker is a line.
    """
    try:
        bound = substitute(_markers(dict(when)), bindings)
    except BindingError as error:
        raise TriggerError(str(error)) from error
    try:
        parsed = WHEN.validate_python(bound)
    except ValidationError as error:
        found = error.errors()  # a list of which no part is usable is also too short: said only if it is the fault
        told = [fault for fault in found if fault["type"] != "too_short"] or found
        faults = [f"{_place(fault['loc'])}: {fault['msg'].removeprefix('Value error, ')}" for fault in told]
        raise TriggerError("; ".join(faults)) from error
    if _holds(parsed, iter(_truths(_fresh(parsed)))):
        raise TriggerError(f"{dict(when)!r} is true before anything happened: name an event, a count or a distance it waits for")
    return parsed


def markers_as_written(where: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """`marker` becomes `marker_re` where an expression is bound to it, by its name."""
    name = whole_name(where.get("marker"))
    if name is not None and name.endswith("_RE"):
        return {("marker_re" if key == "marker" else key): value for key, value in where.items()}
    return where


def _markers(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return markers_as_written({key: _markers(item) for key, item in value.items()})
    return [_markers(item) for item in value] if isinstance(value, list) else value


def _place(loc: tuple[int | str, ...]) -> str:
    parts = []
    for at, step in enumerate(loc):
        if isinstance(step, str) and step in _FORMS and (at == 0 or isinstance(loc[at - 1], int)):
            continue  # the tag pydantic adds for the form
        parts.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return "when" + "".join(parts)


def atoms(when: When) -> Iterator[Atom]:
    """The atoms of an expression, left to right."""
    match when:
        case AllOf(all=parts) | AnyOf(any=parts):
            for part in parts:
                yield from atoms(part)
        case _:
            yield when


@dataclass(frozen=True, slots=True)
class _Progress:
    """How far one atom is: events counted, or responses since the release; `on` for what is simply true or not."""

    atom: Atom
    count: int = 0
    on: bool = False

    @property
    def holds(self) -> bool:
        match self.atom:
            case Nth(nth=least) | Count(at_least=least) | ExchangesSince(at_least=least):
                return self.count >= least
            case _:
                return self.on


@dataclass(frozen=True, slots=True)
class TriggerState:
    """A trigger and what it has seen so far."""

    when: When
    blobs: Blobs = field(repr=False, compare=False)
    progress: tuple[_Progress, ...] = ()
    started: bool = False
    mid_turn: bool = False  # the last message went into a running response, which is then no response *since* it
    fired: int | None = None  # seq of the event that made it true
    doubtful: int | None = None  # seq of the first event of which nobody can tell whether it counts

    @staticmethod
    def start(when: When, blobs: Blobs | None = None) -> TriggerState:
        """Before the first event. `blobs` reads texts that do not stand in their lines."""
        return TriggerState(when, blobs or NoBlobs(), _fresh(when))

    def observe(self, item: Item) -> TriggerState:
        """After one more event."""
        if not self.started:
            if not isinstance(item.data, EpisodeStart):
                return self
            return replace(self, started=True)._look(item)
        return self._look(item)

    def _look(self, item: Item) -> TriggerState:
        doubtful = self.doubtful
        progress = []
        for one in self.progress:
            moved, known = self._move(one, item)
            progress.append(moved)
            if not known and doubtful is None:
                doubtful = item.seq
        said = item.data if isinstance(item.data, UserMessage) and item.data.delivered else None
        mid_turn = self.mid_turn if said is None else said.how == "mid_turn"
        state = replace(self, progress=tuple(progress), mid_turn=mid_turn, doubtful=doubtful)
        if self.fired is None and state.holds:
            state = replace(state, fired=item.seq)
        return state

    def _move(self, one: _Progress, item: Item) -> tuple[_Progress, bool]:
        match one.atom, item.data:
            case (Nth() | Count()) as atom, _:
                if one.holds:
                    return one, True
                found = matches(atom.pattern, item, self.blobs)
                return (replace(one, count=one.count + 1) if found else one), found is not None
            case ExchangeAtLeast(exchange_at_least=least), Yield() if item.event.exchange + 1 >= least:
                return replace(one, on=True), True
            case SlicePending(slice_pending=name), SliceReleased(slice=found_name) if found_name == name:
                return replace(one, on=False), True
            case ExchangesSince(exchanges_since=name), SliceReleased(slice=found_name) if found_name == name:
                return (one if one.on else replace(one, on=True, count=-1 if self.mid_turn else 0)), True
            case ExchangesSince(), Yield(how="yielded") if one.on:  # an interrupted response is not complete
                return replace(one, count=one.count + 1), True
            case _:
                return one, True

    @property
    def holds(self) -> bool:
        """True at this moment; `slice_pending` can end it, `fired` stays."""
        return _holds(self.when, iter(_truths(self.progress)))

    @property
    def conditions_hold(self) -> bool:
        """Distance and slice conditions alone, whatever has happened: what a fallback still has to keep.

        False means `distance` where a completion claim is all that is left to answer.
        """
        return self._with(ExchangesSince, SlicePending)

    @property
    def distances_hold(self) -> bool:
        """Distances alone, whatever else."""
        return self._with(ExchangesSince)

    @property
    def holds_but_for_distance(self) -> bool:
        """All but the distances holds."""
        return self._with(Nth, Count, ExchangeAtLeast, SlicePending)

    def _with(self, *kinds: type[Atom]) -> bool:
        """What the expression is if all atoms but these are met."""
        return _holds(self.when, iter([one.holds or not isinstance(one.atom, kinds) for one in self.progress]))

    @property
    def slices(self) -> frozenset[str]:
        """Slices the conditions are about."""
        named = [a.exchanges_since if isinstance(a, ExchangesSince) else a.slice_pending for a in atoms(self.when)
                 if isinstance(a, ExchangesSince | SlicePending)]  # fmt: skip
        return frozenset(named)


def fired_at(when: When, items: Iterable[Item], blobs: Blobs | None = None) -> TriggerState:
    """The state after all of `items`: what the judge asks of a sealed ledger."""
    state = TriggerState.start(when, blobs)
    for item in items:
        state = state.observe(item)
    return state


def _fresh(when: When) -> tuple[_Progress, ...]:
    return tuple(_Progress(atom, on=isinstance(atom, SlicePending)) for atom in atoms(when))


def _truths(progress: Iterable[_Progress]) -> list[bool]:
    return [one.holds for one in progress]


def _holds(when: When, truths: Iterator[bool]) -> bool:
    """The value of the expression; every atom takes its own truth, so all parts are looked at."""
    match when:
        case AllOf(all=parts):
            return all([_holds(part, truths) for part in parts])
        case AnyOf(any=parts):
            return any([_holds(part, truths) for part in parts])
        case _:
            return next(truths)
