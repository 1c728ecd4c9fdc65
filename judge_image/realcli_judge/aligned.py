"""The same task by several configurations, aligned: a row for each slice and probe of the script, in the order it came. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from realcli.ledger.events import UserMessage
from realcli.trajectory import Trajectory
from realcli_judge.hostile import shorten
from realcli_judge.sheets import InstanceSheet
from realcli_judge.shown import ShownEntry, ShownSection

SAID = 700  # characters of a text in a cell; the trial's page has the whole
TEXTS = 12  # texts in a cell: a page holds the runs of every configuration


class Piece(NamedTuple):
    """From one message of the user to the next."""

    sources: tuple[str, ...]
    entries: list[ShownEntry]
    calls: int
    seq: int
    more: int = 0  # texts that are left out


class Column(NamedTuple):
    """One run."""

    configuration: str
    ordinal: int
    outcome: str
    success: bool | None
    pieces: list[Piece]
    instances: list[InstanceSheet]


class Cell(NamedTuple):
    """What a run did after a source; `within`: it came together with another source, in whose row it stands."""

    piece: Piece | None
    within: str | None
    instances: list[InstanceSheet]


class Row(NamedTuple):
    """A source of the script: opener, `slice:<id>`, `probe:<id>`, a bounded reply, …; empty: what no message delivered."""

    source: str
    cells: list[Cell]


def pieces(trajectory: Trajectory, sections: Sequence[ShownSection]) -> list[Piece]:
    """The run cut at the user's messages. What stands before the first is preparation and left out."""
    starts = {item.seq: tuple(data.source_ids) for item, data in trajectory.of(UserMessage) if data.delivered}
    found: list[Piece] = []
    for entry in (entry for section in sections for entry in section.entries):
        if entry.seq in starts:
            found.append(Piece(starts[entry.seq], [], 0, entry.seq))
        if not found:
            continue
        last = found[-1]
        if entry.kind == "call":
            found[-1] = last._replace(calls=last.calls + 1)
        elif entry.kind in ("user", "agent", "mark", "trouble"):
            if len(last.entries) < TEXTS:
                last.entries.append(entry._replace(text=shorten(entry.text, SAID)[0]))
            else:
                found[-1] = last._replace(more=last.more + 1)
    return found


def align(columns: Sequence[Column]) -> list[Row]:
    """Rows in the order in which most runs saw them: by mean position, then by name."""
    places: dict[str, list[int]] = {}
    for column in columns:
        for position, source in enumerate(_sources(column)):
            places.setdefault(source, []).append(position)
    order = sorted(places, key=lambda source: (sum(places[source]) / len(places[source]), source))
    rows = [Row(source, [_cell(column, source) for column in columns]) for source in order]
    rest = [[sheet for sheet in column.instances if f"probe:{sheet.record.probe}" not in places] for column in columns]
    return [*rows, Row("", [Cell(None, None, own) for own in rest])] if any(rest) else rows


def _sources(column: Column) -> list[str]:
    return list(dict.fromkeys(source for piece in column.pieces for source in piece.sources))


def _cell(column: Column, source: str) -> Cell:
    own = _of_probe(column.instances, source)
    for piece in column.pieces:
        if source in piece.sources:
            first = piece.sources[0]
            return Cell(piece, None, own) if first == source else Cell(None, first, own)
    return Cell(None, None, own)


def _of_probe(instances: Iterable[InstanceSheet], source: str) -> list[InstanceSheet]:
    kind, _, name = source.partition(":")
    return [sheet for sheet in instances if kind == "probe" and sheet.record.probe == name]
