"""A conversation as a page shows it: texts fetched from wherever they lie, and shortened where they are long."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from realcli.trajectory import Entry, Section
from realcli_judge.hostile import shorten

SAID = 20_000  # characters shown of what user and agent say
SHOWN = 4_000  # of a call, a result, a note
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


def shown(sections: list[Section], resolve: Callable[..., str]) -> list[ShownSection]:
    """Sections with their texts, shortened where they are long."""
    return [ShownSection(section.number, [_entry(entry, resolve) for entry in section.entries]) for section in sections]


def _entry(entry: Entry, resolve: Callable[..., str]) -> ShownEntry:
    text, _ = shorten(resolve(entry.text), SAID if entry.kind in ("user", "agent") else SHOWN)
    title, _ = shorten(entry.title, 300)
    lines = text.count("\n") + 1
    return ShownEntry(entry.kind, entry.seq, entry.turn, str(entry.seconds), title, text, lines, lines > FOLD_LINES)
