"""Is what was said licensed at that moment, and is it what was due? docs/script.md sections 4 and 5, one message at a time. Pure.

A message answers, or brings the due item, or both. Answers rest on the `ask` event, and on the agent's words: a topic of what is
answered has to stand in them. Everything else in a message has to be the due item.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from realcli.audit.replay import HandOver, Replay, Said
from realcli.audit.stand import Due, Stand
from realcli.benchmark.play import Play
from realcli.benchmark.script import PROBE
from realcli.benchmark.words import tokens

DISPLACED = 2  # answers in a row that may put a due probe off
IDLE = 3  # questions that are answered although nothing is left


@dataclass(frozen=True, slots=True)
class Breach:
    """Something said that was not licensed, or due and not said. `source`: what it is about."""

    kind: Literal["unlicensed", "put_off", "held_back", "forced"]
    source: str
    why: str


@dataclass(frozen=True, slots=True)
class Licensed:
    """A message and what is wrong with its order."""

    said: Said
    breaches: tuple[Breach, ...]


def licences(run: Replay) -> list[Licensed]:
    """Every message of a run, in order."""
    return list(_Order(run).check())


class _Order:
    """Walks through the messages with the two counters the rules need."""

    def __init__(self, run: Replay) -> None:
        self.run = run
        self.displaced = self.idle = 0

    def check(self) -> Iterator[Licensed]:
        for number, said in enumerate(self.run.said):
            if number == 0:
                yield Licensed(said, tuple(self._opener(said)))
            elif said.data.how == "mid_turn":
                yield Licensed(said, tuple(_interjected(said)))
            else:
                yield Licensed(said, tuple(self._answer(said)))

    def _opener(self, said: Said) -> Iterator[Breach]:
        probes = self.run.play.of_delivery("opener")[:1]
        expected = ["opener", *(PROBE + name for name in probes)]
        carried = {f"slice:{name}" for probe in probes if (name := self.run.play.probes[probe].probe.slice)}
        for source in said.data.source_ids:
            if source not in expected and source not in carried:
                yield Breach("unlicensed", source, "is no part of the opening message")
        for source in expected:
            if source not in said.data.source_ids:
                yield Breach("held_back" if source == "opener" else "put_off", source, "belongs to the opening message")

    def _answer(self, said: Said) -> Iterator[Breach]:
        sources, over = list(said.data.source_ids), said.answers
        if over is None:
            for source in sources:
                yield Breach("unlicensed", source, "was said while nothing had been handed over")
            self._counts(said, item=bool(said.probes), due=None, news=True)
            return
        if over.how == "interrupted" and over.stop is not None:
            yield from self._interrupt(said, over.stop)
            return
        answers, why = _answers(said, over)
        due, probe = said.stand.due(), _asked_probe(said, over)
        item, forced = self._item(said, over, due, answers, probe)
        rest = [source for source in sources if source not in answers]
        for source in rest:
            if source not in item:
                yield Breach("unlicensed", source, why.get(source) or _why_not(source, said.stand, due))
        if forced is not None:
            yield forced
        if over.asks and self.idle < IDLE:
            for one in self.run.given_up:
                if over.seq < one.seq < said.seq and one.data.reason != "probe_undelivered":
                    yield Breach("forced", PROBE + one.data.probe, "was given up in place of an answer")
        if due is not None or self.idle < IDLE:
            yield from _unanswered(said, over, answers, probe)
        news = _news(said, over, answers)
        said_item = any(source in item for source in rest) or bool(said.probes)
        if due is not None and said_item and len(rest) < len(sources):
            yield from self._too_soon(said, due, probe, rest, news=news)
        yield from self._missing(said, over, due, probe, said_item=said_item, news=news)
        self._counts(said, item=said_item, due=due, news=news)

    def _interrupt(self, said: Said, probe: str) -> Iterator[Breach]:
        allowed = _sources_of(said.stand, probe)
        for source in said.data.source_ids:
            if source not in allowed:
                yield Breach("unlicensed", source, f"the message after an interrupt says the probe {probe!r} alone")
        if probe not in said.probes:
            yield Breach("put_off", PROBE + probe, "the response was stopped for it, and it was not said")
        else:
            yield from _untimely(said.stand, probe)
        self._counts(said, item=True, due=None, news=True)

    def _item(
        self, said: Said, over: HandOver, due: Due | None, answers: frozenset[str], probe: str | None
    ) -> tuple[frozenset[str], Breach | None]:
        """Sources that may stand for the item of this message."""
        stand = said.stand
        if probe is not None and probe in said.probes:
            return _sources_of(stand, probe), None
        if due is not None:
            return frozenset(due.sources) | (_sources_of(stand, due.names[0]) if due.kind != "slices" else frozenset()), None
        fallback = stand.fallback()
        asks = over.asks and self.idle < IDLE
        if fallback is not None:
            early = fallback in said.probes and asks
            why = "came in place of an answer, before it was all that was left"
            return _sources_of(stand, fallback), Breach("forced", PROBE + fallback, why) if early else None
        if not stand.waiting and not asks:
            return frozenset(source for name in stand.closures for source in _closure(stand.play, name)), None
        return frozenset(), None

    def _too_soon(self, said: Said, due: Due, probe: str | None, rest: list[str], *, news: bool) -> Iterator[Breach]:
        """The due item came with answers that should have come alone."""
        if due.kind == "probe" and due.names[0] in said.probes and due.names[0] != probe and self.displaced < DISPLACED:
            yield Breach("forced", PROBE + due.names[0], "came with answers that put it off")
        elif due.kind == "slices" and news:
            for name in due.names:
                if f"slice:{name}" in rest:
                    yield Breach("unlicensed", f"slice:{name}", "came with answers that say something new, which come alone")

    def _missing(
        self, said: Said, over: HandOver, due: Due | None, probe: str | None, *, said_item: bool, news: bool
    ) -> Iterator[Breach]:
        """The due item was not said although nothing excuses it."""
        if said_item or (due is None and (not over.asks or self.idle < IDLE)):
            return
        if due is None:
            left = said.stand.fallback() or next(iter([*said.stand.waiting, *said.stand.closures]), None)
            if left is not None and not news:
                yield Breach("put_off", PROBE + left, f"more than {IDLE} answers in a row that say nothing new came before it")
            return
        if due.kind == "part":
            yield Breach("put_off", PROBE + due.names[0], "its next part belongs into this message")
        elif due.kind == "probe" and (self.displaced >= DISPLACED or not (over.asks or _told(said))):
            yield Breach("put_off", PROBE + due.names[0], f"it was due, and put off by more than {DISPLACED} answers, or by none")
        elif due.kind == "slices" and not news:
            for name in due.names:
                yield Breach("held_back", f"slice:{name}", "it was due in this message")

    def _counts(self, said: Said, *, item: bool, due: Due | None, news: bool) -> None:
        if item:
            self.displaced = self.idle = 0
        elif due is not None and due.kind == "probe":
            self.displaced, self.idle = self.displaced + 1, 0
        else:
            self.idle = 0 if news else self.idle + 1


def _interjected(said: Said) -> Iterator[Breach]:
    """A message into the running response: one interrupting probe whose time has come."""
    stand = said.stand
    name = said.probes[0] if said.probes else None
    allowed = _sources_of(stand, name) if name is not None else frozenset()
    for source in said.data.source_ids:
        if source not in allowed:
            yield Breach("unlicensed", source, "nothing but a probe goes into a running response")
    if name is not None:
        yield from _untimely(stand, name)


def _untimely(stand: Stand, name: str) -> Iterator[Breach]:
    """Why a probe could not interrupt the running response."""
    source = PROBE + name
    if name not in stand.waiting or stand.play.probes[name].delivery != "mid_turn":
        yield Breach("unlicensed", source, "is not to come, or is no interrupt")
    elif not stand.holds(source):
        yield Breach("unlicensed", source, "its trigger had not fired")
    elif stand.probed or stand.parts is not None:
        yield Breach("unlicensed", source, "less than one response lies between it and another probe")


def _answers(said: Said, over: HandOver) -> tuple[frozenset[str], dict[str, str]]:
    """Sources that answer the hand-over, and why a source that looks like an answer is none."""
    stand = over.before or said.stand
    play = stand.play
    matched = over.ask.matched if over.ask is not None else []
    found: dict[str, None] = {}
    why: dict[str, str] = {}
    for source in matched:
        kind, _, name = source.partition(":")
        if not _heard(source, over, play):
            why[source] = "the agent's words hold none of its topics"
            continue
        match kind:
            case "slice" if name in play.slices:
                found |= dict.fromkeys(_slice_answer(stand, name))
            case "action" if name in play.actions:
                waits = any(play.probes[probe].probe.approves == name for probe in stand.waiting)
                found["later" if waits else source] = None
            case "answer":
                found[source] = None
    for probe in stand.closures:
        closure = play.probes[probe].probe.closure
        if closure is not None and closure.told is not None and _topics_in(closure.told.topics, over):
            found |= dict.fromkeys(_closure(play, probe))
    if over.asks:
        found["neutral"] = None
    if over.ask is not None:
        found["refusal"] = None
    return frozenset(found), why


def _unanswered(said: Said, over: HandOver, answers: frozenset[str], probe: str | None) -> Iterator[Breach]:
    """What was asked for, and understood, and is not answered."""
    matched = over.ask.matched if over.ask is not None else []
    stand = over.before or said.stand
    for source in matched:
        kind, _, name = source.partition(":")
        given = set(_slice_answer(stand, name)) if kind == "slice" and name in stand.play.slices else {source, "later"}
        granted = probe is not None and probe in said.probes and kind == "action"
        if not granted and given & answers and given.isdisjoint(said.data.source_ids):
            yield Breach("held_back", source, "was asked for and not answered")


def _slice_answer(stand: Stand, name: str) -> tuple[str, ...]:
    closing = stand.closing(name)
    if closing is not None:
        return _closure(stand.play, closing)
    if name not in stand.released and stand.promised(name):
        return ("later",)
    return (f"slice:{name}",)


def _asked_probe(said: Said, over: HandOver) -> str | None:
    """A probe that grants the action asked for and may come now."""
    stand = over.before or said.stand
    if over.ask is None or stand.parts is not None:
        return None
    order = stand.play.script.order
    for source in over.ask.matched:
        name = source.removeprefix("action:")
        for probe in stand.waiting:
            grants = stand.play.probes[probe].probe.approves == name and PROBE + probe in order
            if source.startswith("action:") and grants and stand.spaced(PROBE + probe):
                return probe
    return None


def _heard(source: str, over: HandOver, play: Play) -> bool:
    kind, _, name = source.partition(":")
    topics: list[str] = []
    if kind == "slice" and name in play.slices:
        topics = list(play.slices[name].on_ask)
    elif kind == "action" and name in play.actions:
        topics = list(play.actions[name].topics)
    elif kind == "answer":
        topics = [topic for answer in play.script.answers if answer.id == name for topic in answer.topics]
    return _topics_in(topics, over)


def _topics_in(topics: list[str], over: HandOver) -> bool:
    """All words of a topic stand in what the agent said; True where that cannot be had."""
    if over.heard is None:
        return True
    words = frozenset(tokens(over.heard))
    return any(all(not words.isdisjoint(_forms(token)) for token in tokens(topic)) for topic in topics)


def _forms(token: str) -> set[str]:
    return {token, token + "s", token + "es", token[:-1] if token.endswith("s") and len(token) > 3 else token}


def _told(said: Said) -> bool:
    return any(source.startswith("closure:") for source in said.data.source_ids)


def _news(said: Said, over: HandOver, answers: frozenset[str]) -> bool:
    """An answer says something that was not said before."""
    before = said.stand.said
    for source in said.data.source_ids:
        if source not in answers:
            continue
        kind, _, name = source.partition(":")
        if (
            kind == "closure"
            or (kind == "slice" and name not in said.stand.released)
            or (kind == "answer" and source not in before)
        ):
            return True
        if kind == "action" and f"{source} {(over.before or said.stand).granted(name)}" not in before:
            return True
    return False


def _sources_of(stand: Stand, probe: str) -> frozenset[str]:
    """What a message that says a probe, or a part of it, may name."""
    slice_ = stand.play.probes[probe].probe.slice
    first = stand.parts is None or stand.parts[0] != probe
    return frozenset((PROBE + probe, *((f"slice:{slice_}",) if slice_ and first else ())))


def _closure(play: Play, probe: str) -> tuple[str, ...]:
    closure = play.probes[probe].probe.closure
    return (f"closure:{probe}", *((f"slice:{closure.slice}",) if closure is not None and closure.slice else ()))


def _why_not(source: str, stand: Stand, due: Due | None) -> str:
    """Why a source is not licensed now."""
    kind, _, name = source.partition(":")
    expected = "nothing is due" if due is None else f"due is {', '.join(due.sources)}"
    if kind == "probe" and name in stand.play.probes:
        if name in stand.delivered:
            return "it was delivered before"
        if name in stand.given_up:
            return "it had been given up"
        if stand.far(source):
            return "its distance is not kept"
        if not stand.holds(source):
            return "its trigger had not fired"
    if kind == "slice" and name in stand.play.slices:
        if stand.promised(name):
            return f"it comes with the probe {stand.play.bound[name]!r}"
        return f"it was not asked for, and {expected}"
    if source == "opener":
        return "the opener was said before"
    return f"the agent asked for nothing that it answers, and {expected}"
