"""The Parquet tables of a report: every cell is what stands at its place in summary.json, as a type of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from realcli_cli.recount.csvs import SHOWN, Rows, rows_of
from realcli_cli.recount.held import told

Json = Any
UNREAD = "tables/*.parquet were held against SHA256SUMS alone: their reader is not installed (pip install 'realcli[judge]')"


def readable() -> bool:
    """Whether a reader is installed. The command line does without: it is as large as all the rest."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True


def parquets_of(report: Path, summary: Json) -> Iterator[str]:
    """Lines that name a table or a cell which is another than the summary gives."""
    import pyarrow
    import pyarrow.parquet as pq

    for name, rows in rows_of(summary).items():
        path = report / "tables" / f"{name}.parquet"
        if not path.is_file():
            yield f"tables/{name}.parquet does not exist"
            continue
        try:
            found = pq.read_table(path)
            columns, cells = found.column_names, found.to_pylist()
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            yield f"tables/{name}.parquet: it cannot be read: {' '.join(str(error).split())[:200]}"
            continue
        if name == "dimensions":  # names of an object have no order
            cells, rows = sorted(cells, key=_named), sorted(rows, key=_named)
        yield from (f"tables/{name}.parquet: {line}" for line in _held(columns, cells, rows))


def _named(row: Mapping[str, Json]) -> list[str]:
    return [str(row.get(column)) for column in ("configuration", "level", "name")]


def _held(columns: Sequence[str], found: Sequence[Mapping[str, Json]], rows: Rows) -> Iterator[str]:
    if rows and list(columns) != list(rows[0]):
        yield f"its columns are {', '.join(columns)}, expected {', '.join(rows[0])}"
        return
    if len(found) != len(rows):
        yield f"it has {len(found)} rows, the summary gives {len(rows)}"
        return
    wrong = 0
    for number, (line, row) in enumerate(zip(found, rows, strict=True), 1):
        for column, value in row.items():
            if not _same(line[column], value):
                wrong += 1
                if wrong <= SHOWN:
                    yield f"row {number}, {column}: it says {told(line[column])}, the summary {told(value)}"


def _same(cell: Json, value: Json) -> bool:
    """An exact number is its nearest float, or its fraction in a column of texts; money is a float too."""
    if cell is None or value is None:
        return cell is value
    if isinstance(value, dict):
        return bool(cell == (value["exact"] if isinstance(cell, str) else value["value"]))
    if isinstance(cell, bool) or isinstance(value, bool):
        return cell is value or cell == str(value)
    if isinstance(cell, str) or not isinstance(value, str):
        return str(cell) == str(value) or cell == value
    try:
        return bool(float(value) == cell)
    except ValueError:
        return False
