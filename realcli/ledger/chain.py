"""Names what was done to the lines of a ledger. Pure; shares nothing with the writer.

A segment whose bytes have the sealed digest is sound, and everything else is judged between the sound ones. Every line
says its own number and the hash of the line before it, so a line is vouched for by the line after it (the last one by the
seal). Between two sound segments `explain` compares the lines that stand there with the numbers that have to.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
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
    starts = [gap.first for _, gap in gaps]
    there = [{line.seq for line in lines} for lines, _ in gaps]
    found = []
    for lines, gap in gaps:
        for line in lines:
            if line.seq is None or gap.first <= line.seq <= gap.last or not line.whole:
                continue
            home = bisect_right(starts, line.seq) - 1
            if home >= 0 and line.seq <= gaps[home][1].last and line.seq not in there[home]:
                found.append(line)
    return found


def explain(lines: Sequence[Line], gap: Gap, elsewhere: Sequence[Line] = ()) -> Iterator[Finding]:
    """What is wrong with the lines that stand in a gap. Nothing, if they are a sound chain from end to end.

    `elsewhere`: lines of any gap that stand in another one, told already. Takes time and memory by the lines that are there,
    whatever numbers a forged seal or line may name.
    """
    strayed = {line.where for line in elsewhere}
    lines = [line for line in lines if line.where not in strayed]
    events = [line for line in lines if line.seq is not None and line.whole and gap.first <= line.seq <= gap.last]
    kept = _one_each(events, gap)
    own = {line.where for line in kept.values()}
    moved = _moved([line for line in lines if line.where in own])
    stray = {line.where for line in moved}
    steady = [(place, line) for place, line in enumerate(lines) if line.where in own and line.where not in stray]
    holes = _holes(sorted({*kept, *(line.seq for line in elsewhere if line.seq is not None)}), gap)
    for line in moved:
        yield Finding(Kind.REORDERED, line.where, f"event {line.seq} does not stand where it was written")
    for place, line in enumerate(lines):
        if line.where in own or not line.whole:
            continue  # what has no end is told below, with what is gone
        number = _stands_for(place, steady, holes)
        if number is not None:
            yield Finding(Kind.CHANGED, line.where, f"the line is not event {number}, which was written there")
        else:
            what = "the line is no event" if line.seq is None else f"a line that calls itself event {line.seq}"
            yield Finding(Kind.ADDED, line.where, f"{what}: nothing was written between the lines around it")
    torn = [line for line in lines if not line.whole]
    for line in torn:
        yield Finding(Kind.TRUNCATED, line.where.rpartition(":")[0], "its last line has no end")
    if not torn:
        yield from _gone(holes, [line for _, line in steady], gap)
    yield from _changed(kept, gap)


@dataclass(slots=True)
class Hole:
    """Numbers from `first` to `last` that no line has."""

    first: int
    last: int


def _holes(numbers: Sequence[int], gap: Gap) -> list[Hole]:
    """Between the numbers that are there (sorted), inside the gap."""
    inside = [number for number in numbers if gap.first <= number <= gap.last]
    edges = [gap.first - 1, *inside, gap.last + 1]
    return [Hole(low + 1, high - 1) for low, high in pairwise(edges) if high - low > 1]


def _stands_for(place: int, steady: Sequence[tuple[int, Line]], holes: list[Hole]) -> int | None:
    """The number whose line the one at `place` stands in for: one that is absent exactly there. It is taken from its hole."""
    at = bisect_left(steady, place, key=lambda item: item[0])
    low = steady[at - 1][1].seq if at else None
    high = steady[at][1].seq if at < len(steady) else None
    index = bisect_left(holes, low + 1, key=lambda hole: hole.first) if low is not None else 0
    for hole in holes[index : index + 1]:
        if hole.first <= hole.last and (high is None or hole.first < high):
            hole.first += 1
            return hole.first - 1
    return None


def _gone(holes: Sequence[Hole], stands: Sequence[Line], gap: Gap) -> Iterator[Finding]:
    for hole in holes:
        if hole.first > hole.last:
            continue
        told = f"event {hole.first}" if hole.first == hole.last else f"events {hole.first} to {hole.last}"
        if gap.ends and hole.last == gap.last:
            yield Finding(Kind.TRUNCATED, "ledger", f"it ends before {told}: {gap.last} were sealed")
            continue
        at = bisect_left(stands, hole.first, key=lambda line: line.seq or 0)
        near = stands[at] if at < len(stands) else stands[-1] if stands else None
        yield Finding(Kind.MISSING, near.where if near is not None else "ledger", f"{told} should stand here")


def _one_each(events: Sequence[Line], gap: Gap) -> dict[int, Line]:
    """The line of each number. Of several the one that others vouch for stays, of these the one in its place."""
    vouched = {line.prev for line in events} | {gap.after}
    ranks: dict[int, list[tuple[bool, bool, int]]] = {}
    for place, line in enumerate(events):
        assert line.seq is not None
        before = events[place - 1].seq if place else gap.first - 1
        ranks.setdefault(line.seq, []).append((line.hash in vouched, before == line.seq - 1, -place))
    return {number: events[-max(found)[2]] for number, found in ranks.items()}


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


def _changed(kept: Mapping[int, Line], gap: Gap) -> Iterator[Finding]:
    """Lines whose hash is not the one that the line after them has, told from the sound end backwards: where the line after is
    itself not what was written, what it says of the one before proves nothing."""
    suspects: dict[int, Line] = {}
    for number in sorted(kept, reverse=True):
        line, after = kept[number], kept.get(number + 1)
        wanted = gap.after if number == gap.last else after.prev if after is not None else None
        if wanted is not None and line.hash != wanted and number + 1 not in suspects:
            suspects[number] = line
    first = kept.get(gap.first)
    if first is not None and gap.before is not None and first.prev != gap.before and gap.first not in suspects:
        suspects[gap.first] = first
    for number, line in sorted(suspects.items()):
        yield Finding(Kind.CHANGED, line.where, f"event {number} is not what was written: its neighbour has another hash of it")
