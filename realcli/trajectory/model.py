"""A trajectory: the events of one ledger with the structure every reader shares: exchanges, windows, order in turns.

Pure. Simulator, hard checks, judge and report read a run through this module only, so that "the first response" means one
thing. Definitions: measuring.md 2.2 and `vocabulary` of the scenario catalogue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeVar

from pydantic import ValidationError

from realcli.ledger.events import (
    BlobRef,
    Data,
    EpisodeEnd,
    EpisodeStart,
    Event,
    FileDelete,
    FileWrite,
    FinalClaim,
    LedgerOpen,
    ModelRequest,
    Plant,
    ProbeDelivered,
    ProbeUntriggered,
    RecordGap,
    Snapshot,
    ToolCall,
    ToolResult,
    UserMessage,
    Yield,
)

D = TypeVar("D", bound=Data)
Record = Literal["command", "file", "net", "ledger"]


class TrajectoryError(ValueError):
    """The events are not those of a ledger: broken order, or data that is not of its kind."""


@dataclass(frozen=True, slots=True)
class Item:
    """One event and its typed data; `data` is None for a kind this version does not know."""

    event: Event
    data: Data | None

    @staticmethod
    def told(event: Event, data: Data) -> Item:
        """An event as a subscriber of the writer is told it: what was written, as a reader will find it, with its long texts.

        The writer cuts and redacts; a trigger that looked at more than the ledger holds would fire where the judge's does not.
        `data` is what was given to the writer: texts that lie in a blob are taken from it.
        """
        typed = event.typed()
        if typed is None:
            return Item(event, None)
        long = {name: getattr(data, name) for name in type(typed).model_fields if isinstance(getattr(typed, name), BlobRef)}
        return Item(event, typed.model_copy(update=long) if long else typed)

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
    """One user message and the agent's response up to its yield. Number 1 is the opener's; 0 is what came before.

    A message into the running response (`how: mid_turn`) belongs to the exchange that runs and starts none; what is said after
    an interrupt starts the next one.
    """

    number: int
    messages: tuple[Item, ...]  # user_message: the first starts it, any other went into the response
    items: tuple[Item, ...]  # all events of the exchange, messages and yield included
    closed_by: Item | None  # the yield; None if the run ended first

    @property
    def complete(self) -> bool:
        """The agent itself handed over: not interrupted, not cut."""
        return self.closed_by is not None and isinstance(self.closed_by.data, Yield) and self.closed_by.data.how == "yielded"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call and what it gave back. Made in the reply to request `call.turn`, its result stands in request `result.turn`."""

    call: Item
    result: Item | None  # None: no later request held one
    parallel: bool  # the same reply made other calls: in which order they ran is not known


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of the ledger, `first` to `last` inclusive (seq). `first` > `last`: empty.

    `items` of a response also hold the changes of files that were told at its hand-over, after `last`.
    """

    first: int
    last: int
    items: tuple[Item, ...]
    complete: bool  # False: a limit or a crash ended the run inside it
    closed_by: Item | None = None  # yield, approval or claim; None: the end of the run

    def of(self, cls: type[D]) -> Iterator[tuple[Event, D]]:
        """Events of one kind inside the window."""
        for item in self.items:
            if isinstance(item.data, cls):
                yield item.event, item.data

    def has_agent_event(self) -> bool:
        """True if the agent did anything in it: a request was accepted, or it spoke, or it handed over.

        A refused request is a window cut before the agent could do anything (turn limit), and so is the failure it ends in.
        """
        return any(_of_the_agent(item) for item in self.items)

    @property
    def cut(self) -> bool:
        """The run ended in it before the agent did anything: it says nothing of the agent."""
        return not self.complete and not self.has_agent_event()

    def gaps(self, *records: Record) -> list[Item]:
        """Where one of these recorders missed something; a gap of the ledger is one of every record."""
        return [i for i in self.items if isinstance(i.data, RecordGap) and i.data.record in (*records, "ledger")]


_OF_THE_AGENT = frozenset(("agent_message", "tool_call", "agent_question", "permission_request"))


def _of_the_agent(item: Item) -> bool:
    """Files and commands are not asked: what was started before may write and run on without it."""
    match item.data:
        case ModelRequest(refused=refused):
            return refused is None
        case Yield(how=how):
            return how != "failed"
        case _:
            return item.event.kind in _OF_THE_AGENT


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

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """Tool calls in order, each with the first result that names it."""
        results: dict[str, Item] = {}
        turns: Counter[int] = Counter()
        for item in self.items:
            if isinstance(item.data, ToolResult):
                results.setdefault(item.data.call_id, item)
            elif isinstance(item.data, ToolCall):
                turns[item.turn] += 1
        return tuple(
            Call(item, results.get(item.data.call_id), turns[item.turn] > 1)
            for item in self.items
            if isinstance(item.data, ToolCall)
        )

    @cached_property
    def idle(self) -> frozenset[int]:
        """Events (seq) while the agent waits: before its first request, and between a hand-over and the next request."""
        waiting, found = True, set()
        for item in self.items:
            if isinstance(item.data, ModelRequest):
                waiting = False
            elif isinstance(item.data, Yield):
                waiting = True
            elif waiting:
                found.add(item.seq)
        return frozenset(found)

    @cached_property
    def first_call(self) -> dict[int, int]:
        """Turn -> seq of the first tool call of its reply."""
        found: dict[int, int] = {}
        for item in self.items:
            if isinstance(item.data, ToolCall):
                found.setdefault(item.turn, item.seq)
        return found

    def response_after(self, anchor: int) -> Window:
        """From the first event after seq `anchor` to the next yield, that one included (anchor rule of probes)."""
        return self.response_from(anchor + 1, self.items[anchor - 1].event.exchange)

    def response_from(self, first: int, since: int) -> Window:
        """From event `first` to the next yield, that one included. A yield of an exchange before `since` closes nothing.

        A program that failed did not hand over: the run ended inside the window. Changes of files that the look at the hand-over
        finds are told after the yield; they belong to the response, so `items` holds them after it.
        """
        for item in self.items[first - 1 :]:
            if isinstance(item.data, Yield) and item.event.exchange >= since:
                closed = item.data.how != "failed"
                items = (*self.items[first - 1 : item.seq], *self._told_at_hand_over(item.seq))
                return Window(first, item.seq, items, closed, item if closed else None)
        return self._until_end(first, complete=False)

    def _told_at_hand_over(self, yielded: int) -> Iterator[Item]:
        for item in self.items[yielded:]:
            if isinstance(item.data, UserMessage | Plant | ModelRequest):
                return
            if isinstance(item.data, FileWrite | FileDelete):
                yield item

    def post(self, anchor: int) -> Window:
        """From the first event after seq `anchor` to the end of the episode."""
        return self._until_end(anchor + 1, complete=self.claimed)

    def run(self) -> Window:
        """The whole run, from the opener."""
        start = next((i.seq for i in self.items if isinstance(i.data, EpisodeStart) or i.event.exchange > 0), len(self.items) + 1)
        return self._until_end(start, complete=self.claimed)

    def _until_end(self, first: int, complete: bool) -> Window:
        ends = [item.seq for item in self.items if isinstance(item.data, EpisodeEnd)]
        last = ends[0] if ends else len(self.items)
        return Window(first, last, self.items[first - 1 : last], complete)
