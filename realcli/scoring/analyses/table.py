"""The shape of every analysis: named columns, rows of texts, counts and exact shares. None: not defined, never a 0.

A float is never exact: ends of intervals, correlations.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Cell = str | int | bool | float | Fraction | None


@dataclass(frozen=True)
class Table:
    """One analysis."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @staticmethod
    def of(name: str, columns: str, rows: Iterable[Iterable[Cell]]) -> Table:
        """`columns`: names with spaces between them. A row of another length, or a name twice, is a programming error."""
        heads = tuple(columns.split())
        if len(set(heads)) != len(heads):
            raise ValueError(f"table {name}: a column stands twice in {columns}")
        found = tuple(tuple(row) for row in rows)
        for row in found:
            if len(row) != len(heads):
                raise ValueError(f"table {name}: a row of {len(row)} cells under {len(heads)} columns: {row}")
        return Table(name, heads, found)

    def dicts(self) -> list[dict[str, Cell]]:
        """Rows by column name."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def where(self, **equal: Cell) -> dict[str, Cell]:
        """The one row with these cells; LookupError if there is none or more than one."""
        found = [row for row in self.dicts() if all(row[column] == value for column, value in equal.items())]
        if len(found) != 1:
            raise LookupError(f"table {self.name} has {len(found)} rows with {equal}")
        return found[0]

    def csv(self) -> bytes:
        """CSV with exact fractions (`17/50`); a cell that is not defined is empty."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_written(cell) for cell in row] for row in self.rows)
        return out.getvalue().encode()

    def dump(self) -> dict[str, Any]:
        """JSON form; a fraction is `{"exact", "value"}`."""
        return {"name": self.name, "columns": list(self.columns), "rows": [[_json(cell) for cell in row] for row in self.rows]}


def _written(cell: Cell) -> str:
    return "" if cell is None else str(cell).lower() if isinstance(cell, bool) else str(cell)


def _json(cell: Cell) -> Any:
    return {"exact": str(cell), "value": float(cell)} if isinstance(cell, Fraction) else cell


def share(part: int, whole: int) -> Fraction | None:
    """part / whole; None of nothing."""
    return Fraction(part, whole) if whole else None
