"""A conversation as a page shows it: texts fetched from wherever they lie, and shortened where they are long.

A report has a page for every trial, up to 20,000, and an agent decides how much there is to show. So a page has room for so many
characters, all pages together for `REPORT`: where a run has more, tools' texts are shortened first, then what was said. Nothing
is left out unsaid, and the ledger has the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from realcli.trajectory import Entry, Section

LIMITS = ((20_000, 4_000), (20_000, 2_000), (20_000, 1_000), (10_000, 500), (5_000, 250), (2_000, 120), (700, 60))
"""Characters shown of a text: of what user and agent say, and of a call, a result, a note; the first that fit the page."""
PAGE = 1_000_000
"""Characters a page has room for."""
REPORT = 2_000_000_000
"""Characters for all pages of a report together."""
LEAST = 50_000
"""Characters a page has room for in the largest report."""
TITLE = 300
FOLD_LINES = 14


class ShownEntry(NamedTuple):
    """An entry with its text resolved and shortened."""

    kind: str
    seq: int
    turn: int
    seconds: str
    title: str
    text: str
    lines: int
    folded: bool


class ShownSection(NamedTuple):
    """An exchange."""

    number: int
    entries: list[ShownEntry]


class Shown(NamedTuple):
    """A conversation. `fitted`: its texts are shorter than the usual limits, so that the page holds it."""

    sections: list[ShownSection]
    fitted: bool = False


class _Text(NamedTuple):
    """A text, or its two ends: never more than any limit shows, since an output may be as long as a file."""

    head: str
    tail: str
    length: int

    @classmethod
    def of(cls, text: str, limit: int) -> _Text:
        return cls(text, "", len(text)) if len(text) <= limit else cls(text[:limit], text[-limit:], len(text))

    def cut(self, limit: int) -> str:
        """The text, or its beginning and end with what is left out between."""
        if self.length <= limit:
            return self.head
        head, tail = limit * 2 // 3, limit // 3
        return f"{self.head[:head]}\n[… {self.length - head - tail} characters left out …]\n{(self.tail or self.head)[-tail:]}"


def room_for(trials: int) -> int:
    """Characters a page has room for in a report of so many trials."""
    return max(LEAST, min(PAGE, REPORT // max(trials, 1)))


def shown(sections: list[Section], resolve: Callable[..., str], room: int = PAGE) -> Shown:
    """Sections with their texts, shortened where they are long, and further where all of them together exceed `room`."""
    read = [(s.number, [(e, _Text.of(resolve(e.text), _limit(e, LIMITS[0]))) for e in s.entries]) for s in sections]
    flat = [pair for _, pairs in read for pair in pairs]
    limits = next((pair for pair in LIMITS if _size(flat, pair) <= room), LIMITS[-1])
    cut = [ShownSection(number, [_entry(e, text.cut(_limit(e, limits))) for e, text in pairs]) for number, pairs in read]
    return Shown(cut, limits != LIMITS[0])


def _limit(entry: Entry, limits: tuple[int, int]) -> int:
    return limits[0] if entry.kind in ("user", "agent") else limits[1]


def _size(texts: Iterable[tuple[Entry, _Text]], limits: tuple[int, int]) -> int:
    return sum(min(text.length, _limit(entry, limits)) for entry, text in texts)


def _entry(entry: Entry, text: str) -> ShownEntry:
    title = _Text.of(entry.title, TITLE).cut(TITLE)
    lines = text.count("\n") + 1
    return ShownEntry(entry.kind, entry.seq, entry.turn, str(entry.seconds), title, text, lines, lines > FOLD_LINES)
