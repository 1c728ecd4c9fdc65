"""Names what was done to the lines of a ledger. Pure; shares nothing with the writer.

A segment whose bytes have the sealed digest is sound, and everything else is judged between the sound ones. Every line
says its own number and the hash of the line before it, so a line is vouched for by the line after it (the last one by the
seal). Between two sound segments `explain` compares the lines that stand there with the numbers that have to.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from realcli.ledger.findings import Finding, Kind

START = "0" * 64


class Line(NamedTuple):
    """A line as it stands there; `seq` None: it is no event."""

    where: str
    seq: int | None
    prev: str
    hash: str
    whole: bool = True  # it has its newline


class Gap(NamedTuple):
    """A stretch between two sound places: which numbers have to stand there, and what the hashes at its two ends are."""

    first: int
    last: int
    before: str | None  # hash of event first-1; None where it is not known
    after: str | None  # hash that event `last` has to have; None where it is not known
    ends: bool  # nothing comes after it


def lines_of(segment: str, data: bytes) -> list[Line]:
    """The lines of a segment, whatever they are."""
    *whole, rest = data.split(b"\n")
    found = [_line(f"{segment}:{number}", line) for number, line in enumerate(whole, start=1)]
    if rest:
        found.append(_line(f"{segment}:{len(whole) + 1}", rest)._replace(whole=False))
    return found


def _line(where: str, line: bytes) -> Line:
    digest = hashlib.sha256(line).hexdigest()
    try:
        event = json.loads(line)
        seq, prev = event["seq"], event["prev"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return Line(where, None, "", digest)
    return Line(where, seq, prev, digest) if type(seq) is int and isinstance(prev, str) else Line(where, None, "", digest)


def unchained(lines: Sequence[Line], first: int, before: str | None) -> Line | None:
    """The first line that does not follow from the one before it; None for a sound chain from number `first` on."""
    for line in lines:
        if line.seq != first or (before is not None and line.prev != before) or not line.whole:
            return line
        first, before = first + 1, line.hash
    return None


def astray(gaps: Sequence[tuple[Sequence[Line], Gap]]) -> list[Line]:
    """Lines that stand in another gap than the one their event is missing from."""
    found = []
    for lines, gap in gaps:
        for line in lines:
            if line.seq is None or gap.first <= line.seq <= gap.last or not line.whole:
                continue
            home = next((other for other in gaps if other[1].first <= line.seq <= other[1].last), None)
            if home is not None and all(other.seq != line.seq for other in home[0]):
                found.append(line)
    return found


def explain(lines: Sequence[Line], gap: Gap, elsewhere: Sequence[Line] = ()) -> Iterator[Finding]:
    """What is wrong with the lines that stand in a gap. Nothing, if they are a sound chain from end to end.

    `elsewhere`: lines of any gap that stand in another one, told already.
    """
    lines = [line for line in lines if line not in elsewhere]
    strayed = {line.seq for line in elsewhere}
    events = [line for line in lines if line.seq is not None and line.whole and gap.first <= line.seq <= gap.last]
    kept, doubles = _one_each(events, gap)
    places = {line.where: place for place, line in enumerate(lines)}
    moved = _moved(sorted(kept.values(), key=lambda line: places[line.where]))
    extra = [line for line in lines if line not in events] + doubles
    absent = [number for number in range(gap.first, gap.last + 1) if number not in kept and number not in strayed]
    runs = list(_runs(absent))
    for line in moved:
        yield Finding(Kind.REORDERED, line.where, f"event {line.seq} does not stand where it was written")
    steady = [line for line in lines if line.seq is not None and kept.get(line.seq) is line and line not in moved]
    stands = sorted(steady, key=lambda line: places[line.where])
    for line in sorted(extra, key=lambda line: places[line.where]):
        number = _instead_of(line, stands, places, runs)
        if not line.whole:
            continue  # told below, with what is gone
        if number is None:
            what = "the line is no event" if line.seq is None else f"a line that calls itself event {line.seq}"
            yield Finding(Kind.ADDED, line.where, f"{what}: nothing was written between the lines around it")
        else:
            runs = [part for run in runs for part in _without(run, number)]
            yield Finding(Kind.CHANGED, line.where, f"the line is not event {number}, which was written there")
    torn = [line for line in lines if not line.whole]
    for line in torn:
        yield Finding(Kind.TRUNCATED, line.where.rpartition(":")[0], "its last line has no end")
    for low, high in runs:
        told = f"event {low}" if low == high else f"events {low} to {high}"
        if gap.ends and high == gap.last and not torn:
            yield Finding(Kind.TRUNCATED, "ledger", f"it ends before {told}: {gap.last} were sealed")
        elif not torn:
            following = next((line.where for line in stands if line.seq is not None and line.seq > high), None)
            before = next((line.where for line in reversed(stands) if line.seq is not None and line.seq < low), None)
            yield Finding(Kind.MISSING, following or before or "ledger", f"{told} should stand here")
    yield from _changed(kept, gap)


def _one_each(events: Sequence[Line], gap: Gap) -> tuple[dict[int, Line], list[Line]]:
    """The line of each number, and the lines beside it: the one that others vouch for stays, of these the one in its place."""
    vouched = {line.prev for line in events} | {gap.after}
    ranks: dict[int, list[tuple[bool, bool, int]]] = {}
    for place, line in enumerate(events):
        assert line.seq is not None
        before = events[place - 1].seq if place else gap.first - 1
        ranks.setdefault(line.seq, []).append((line.hash in vouched, before == line.seq - 1, -place))
    best = {number: -max(found)[2] for number, found in ranks.items()}
    kept = {number: events[place] for number, place in best.items()}
    return kept, [line for place, line in enumerate(events) if place not in best.values()]


def _moved(lines: Sequence[Line]) -> list[Line]:
    """The fewest lines that have to be put elsewhere to be in order: all but a longest rising sequence of numbers."""
    tails: list[int] = []
    ends: list[int] = []
    back: list[int | None] = []
    for place, line in enumerate(lines):
        assert line.seq is not None
        at = bisect_left(tails, line.seq)
        back.append(ends[at - 1] if at else None)
        tails[at : at + 1] = [line.seq]
        ends[at : at + 1] = [place]
    rising = set()
    place_: int | None = ends[-1] if ends else None
    while place_ is not None:
        rising.add(place_)
        place_ = back[place_]
    return [line for place, line in enumerate(lines) if place not in rising]


def _instead_of(line: Line, stands: Sequence[Line], places: Mapping[str, int], runs: Sequence[tuple[int, int]]) -> int | None:
    """The number whose line this one stands in for: one that is absent exactly there."""
    place = places[line.where]
    low = max((s.seq for s in stands if s.seq is not None and places[s.where] < place), default=None)
    high = min((s.seq for s in stands if s.seq is not None and places[s.where] > place), default=None)
    for first, last in runs:
        if (low is None or first > low) and (high is None or last < high):
            return first
    return None


def _without(run: tuple[int, int], number: int) -> Iterator[tuple[int, int]]:
    low, high = run
    if not low <= number <= high:
        yield run
        return
    if low < number:
        yield low, number - 1
    if number < high:
        yield number + 1, high


def _runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    low = high = None
    for number in numbers:
        if high is not None and number == high + 1:
            high = number
            continue
        if low is not None and high is not None:
            yield low, high
        low = high = number
    if low is not None and high is not None:
        yield low, high


def _changed(kept: Mapping[int, Line], gap: Gap) -> Iterator[Finding]:
    """Lines whose hash is not the one that the line after them has, told from the sound end backwards: where the line after is
    itself not what was written, what it says of the one before proves nothing."""
    suspects: dict[int, Line] = {}
    for number in range(gap.last, gap.first - 1, -1):
        line, after = kept.get(number), kept.get(number + 1)
        wanted = gap.after if number == gap.last else after.prev if after is not None else None
        if line is not None and wanted is not None and line.hash != wanted and number + 1 not in suspects:
            suspects[number] = line
    first = kept.get(gap.first)
    if first is not None and gap.before is not None and first.prev != gap.before and gap.first not in suspects:
        suspects[gap.first] = first
    for number, line in sorted(suspects.items()):
        yield Finding(Kind.CHANGED, line.where, f"event {number} is not what was written: its neighbour has another hash of it")
