"""A trajectory: the events of one ledger with the structure every reader shares: exchanges, windows, order in turns.

Pure. Simulator, hard checks, judge and report read a run through this module only, so that "the first response" means one
thing. Definitions: measuring.md 2.2 and `vocabulary` of the scenario catalogue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from pydantic import ValidationError

from realcli.ledger.events import (
    Data,
    EpisodeEnd,
    Event,
    FinalClaim,
    LedgerOpen,
    ModelRequest,
    ProbeDelivered,
    ProbeUntriggered,
    Snapshot,
    UserMessage,
    Yield,
)

D = TypeVar("D", bound=Data)


class TrajectoryError(ValueError):
    """The events are not those of a ledger: broken order, or data that is not of its kind."""


@dataclass(frozen=True, slots=True)
class Item:
    """One event and its typed data; `data` is None for a kind this version does not know."""

    event: Event
    data: Data | None

    @property
    def seq(self) -> int:
        """Sequence number in the ledger, from 1."""
        return self.event.seq

    @property
    def turn(self) -> int:
        """Highest accepted request when it happened."""
        return self.event.turn


@dataclass(frozen=True, slots=True)
class Exchange:
    """One user message and the agent's response up to its yield. Number 1 is the opener's; 0 is what came before."""

    number: int
    messages: tuple[Item, ...]  # user_message
    items: tuple[Item, ...]  # all events of the exchange, messages and yield included
    closed_by: Item | None  # the yield; None if the run ended first


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of the ledger, `first` to `last` inclusive (seq). `first` > `last`: empty."""

    first: int
    last: int
    items: tuple[Item, ...]
    complete: bool  # False: the run ended inside it

    def of(self, cls: type[D]) -> Iterator[tuple[Event, D]]:
        """Events of one kind inside the window."""
        for item in self.items:
            if isinstance(item.data, cls):
                yield item.event, item.data

    def has_agent_event(self) -> bool:
        """True if the agent did anything in it: a request was accepted, or it spoke, or it handed over.

        A refused request is a window cut before the agent could do anything (turn limit).
        """
        return any(
            item.data.refused is None if isinstance(item.data, ModelRequest)
            else item.event.actor == "agent" or item.event.kind in _OF_THE_AGENT
            for item in self.items
        )  # fmt: skip


_OF_THE_AGENT = frozenset(("agent_message", "tool_call", "agent_question", "yield", "permission_request"))


@dataclass(frozen=True)
class Trajectory:
    """The events of one run, in order."""

    items: tuple[Item, ...]

    @staticmethod
    def from_events(events: Iterable[Event]) -> Trajectory:
        """From the events of a whole ledger. Unknown kinds are kept without typed data.

        Raises `TrajectoryError` naming the event where numbers do not follow on each other or data does not fit its kind.
        """
        items: list[Item] = []
        for event in events:
            if event.seq != len(items) + 1:
                raise TrajectoryError(f"event {len(items) + 1} is missing: found seq {event.seq} ({event.kind}) in its place")
            try:
                items.append(Item(event, event.typed()))
            except ValidationError as error:
                raise TrajectoryError(f"event {event.seq} ({event.kind}) does not hold what its kind needs: {error}") from error
        return Trajectory(tuple(items))

    def of(self, cls: type[D]) -> Iterator[tuple[Event, D]]:
        """All events of one kind, in order."""
        for item in self.items:
            if isinstance(item.data, cls):
                yield item.event, item.data

    @cached_property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Exchanges in order, the preparation (number 0) left out."""
        numbers = sorted({item.event.exchange for item in self.items} - {0})
        found = []
        for number in numbers:
            items = tuple(item for item in self.items if item.event.exchange == number)
            yields = [item for item in items if isinstance(item.data, Yield)]
            messages = tuple(item for item in items if isinstance(item.data, UserMessage))
            found.append(Exchange(number, messages, items, yields[-1] if yields else None))
        return tuple(found)

    @property
    def opened(self) -> LedgerOpen | None:
        """Which attempt the ledger says it is of."""
        return next((data for _, data in self.of(LedgerOpen)), None)

    @property
    def end(self) -> EpisodeEnd | None:
        """How the work ended; None for a ledger that was cut."""
        return next((data for _, data in self.of(EpisodeEnd)), None)

    @property
    def claimed(self) -> bool:
        """True if the agent came to its final claim: nothing cut the run."""
        return any(True for _ in self.of(FinalClaim))

    def deliveries(self, probe: str) -> list[tuple[Event, ProbeDelivered]]:
        """Deliveries of a probe; a sound ledger has at most one."""
        return [(event, data) for event, data in self.of(ProbeDelivered) if data.probe == probe]

    def untriggered(self, probe: str) -> tuple[Event, ProbeUntriggered] | None:
        """The session's last word that a probe does not count, and why."""
        found = [(event, data) for event, data in self.of(ProbeUntriggered) if data.probe == probe]
        return found[-1] if found else None

    def snapshot(self, name: str, probe: str | None = None) -> tuple[Event, Snapshot] | None:
        """The last snapshot of that name (of that probe, if given)."""
        found = [(e, d) for e, d in self.of(Snapshot) if d.name == name and (probe is None or d.probe == probe)]
        return found[-1] if found else None

    def response_after(self, anchor: int) -> Window:
        """From the first event after seq `anchor` to the next yield, that one included (anchor rule of probes)."""
        items: list[Item] = []
        for item in self.items[anchor:]:
            items.append(item)
            if isinstance(item.data, Yield):
                return Window(anchor + 1, item.seq, tuple(items), complete=True)
        return Window(anchor + 1, len(self.items), tuple(items), complete=False)

    def post(self, anchor: int) -> Window:
        """From the first event after seq `anchor` to the end of the ledger."""
        return Window(anchor + 1, len(self.items), self.items[anchor:], complete=self.end is not None)

    def run(self) -> Window:
        """The whole run."""
        return self.post(0)
