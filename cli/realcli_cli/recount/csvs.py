"""The CSV tables of a report: every cell is what stands at its place in summary.json, which was counted again."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from realcli_cli.recount.held import told

Json = Any
Rows = list[dict[str, Json]]
SHOWN = 3
"""Cells of one table that are named."""
_SCENARIOS = ("scenario dimension sub_dimension configuration passes n rate scheduled triggered trigger_rate untriggered "
              "not_applicable unscored unknown contaminated")  # fmt: skip
_TRIALS = ("ordinal configuration task mode repeat phase reason reward checks_passed checks_total turns tool_calls retries "
           "failing_retries questions working_seconds cost_usd failure outcome_flag attempt invalid_attempts work_seal "
           "seal")  # fmt: skip
_INSIDE = {
    "checks_passed": ("checks", "passed"), "checks_total": ("checks", "total"), "tool_calls": ("facts", "toolCalls"),
    "retries": ("facts", "retries"), "failing_retries": ("facts", "failingRetries"), "questions": ("facts", "questions"),
    "cost_usd": ("facts", "costUsd"),
}  # fmt: skip
"""Column of the trials -> its place in a trial, where that is another than its name."""


def csvs_of(report: Path, summary: Json) -> Iterator[str]:
    """Lines that name a table or a cell which is another than the summary gives."""
    for name, rows in rows_of(summary).items():
        path = report / "tables" / f"{name}.csv"
        if not path.is_file():
            yield f"tables/{name}.csv does not exist"
            continue
        try:
            found = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
        except (ValueError, csv.Error) as error:
            yield f"tables/{name}.csv: it cannot be read: {error}"
            continue
        if name == "dimensions":  # names of an object have no order
            found[1:], rows = sorted(found[1:]), sorted(rows, key=lambda row: [*row.values()][:3])
        yield from (f"tables/{name}.csv: {line}" for line in _held(found, rows))


def _held(found: Sequence[Sequence[str]], rows: Rows) -> Iterator[str]:
    head = found[0] if found else []
    if rows and list(head) != list(rows[0]):
        yield f"its columns are {', '.join(head)}, expected {', '.join(rows[0])}"
        return
    if len(found) - 1 != len(rows):
        yield f"it has {len(found) - 1} rows, the summary gives {len(rows)}"
        return
    wrong = 0
    for number, (line, row) in enumerate(zip(found[1:], rows, strict=True), 1):
        if len(line) != len(row):
            yield f"row {number} has {len(line)} cells, expected {len(row)}"
            return
        for cell, (column, value) in zip(line, row.items(), strict=True):
            if not _same(cell, value):
                wrong += 1
                if wrong <= SHOWN:
                    yield f"row {number}, {column}: it says {cell or 'nothing'}, the summary {told(value)}"


def _same(cell: str, value: Json) -> bool:
    """An exact number stands there as its text, a decimal in any way of writing it."""
    if isinstance(value, dict):
        value = value["text"]
    text = "" if value is None else str(value)
    if cell in (text, f"'{text}") or not text.isascii() or not text.isprintable():
        return True  # a text with what nobody sees stands there by its code points; it is held where it comes from
    try:
        return Decimal(cell) == Decimal(text)
    except InvalidOperation:
        return False


def rows_of(summary: Json) -> dict[str, Rows]:
    """Name -> rows by column, as the summary has them."""
    return {
        "main": [_main(one, summary) for one in summary["configurations"]],
        "tasks": [_of(one, "task configuration mode successes valid invalid missing mean_reward") for one in summary["tasks"]],
        "dimensions": [
            {"configuration": one["name"], "level": level, "name": name, "score": score}
            for one in summary["configurations"]
            for level, key in (("dimension", "dimensions"), ("sub_dimension", "subDimensions"))
            for name, score in one.get(key, {}).items()
        ],
        "scenarios": [
            _of({**one, "untriggered": sum(one.get("untriggered", {}).values())}, _SCENARIOS) for one in summary["scenarios"]
        ],
        "audits": [
            _of({**check, **{key: one.get(key) for key in ("configuration", "audited", "runs")}},
                "configuration audited runs check passes fails not_applicable unscored rate")
            for one in summary["audits"] for check in one["checks"]
        ],
        "generic": [
            _of({**one, "check": one["scenario"]}, "configuration check passes n rate unscored") for one in summary["generic"]
        ],
        "failures": [_of(one, "configuration mode label runs") for one in summary["failures"]],
        "trials": [
            {column: _at(one, *_INSIDE.get(column, (_camel(column),))) for column in _TRIALS.split()} for one in summary["trials"]
        ],
        **{
            f"analyses/{one['id']}": [dict(zip(one["columns"], row, strict=True)) for row in one["rows"]]
            for one in summary["analyses"]
        },
    }  # fmt: skip


def _main(one: Json, summary: Json) -> dict[str, Json]:
    row = {"configuration": one["name"]}
    for mode in ("exec", "collab"):
        rate = _at(one, mode, "r")
        row |= _with_interval(f"r_{mode}", rate, "")
        row |= {f"r_{mode}_{name}": _at(one, mode, name) for name in ("valid", "invalid", "missing")}
        for read in ("0", "1"):
            bounds = _at(one, mode, "bounds")
            row[f"r_{mode}_invalid_as_{read}"] = rate if bounds is None else bounds[f"invalidAs{read}"]
    row |= {"delta_r_paired": _at(one, "paired", "deltaR"), **_of(one["paired"], "pairs fail_to_pass pass_to_fail")}
    row["headline"] = one["headline"]
    for name in ("s", "j"):
        value = None if one["sPartial"] else one.get(name if one["headline"] == "S" else f"{name}Rate")
        row |= _with_interval(name, value, "95")
    row |= {"partial": one["partial"], "calibration": _at(summary, "judge", "calibration")}
    row |= {f"cost_usd_{mode.lower()}": _at(one, "spent", mode, "usd", "usd") for mode in ("EXEC", "COLLAB")}
    return row | {"invalid_attempts": one["invalidAttempts"], "egress": summary["egress"]}


def _with_interval(name: str, value: Json, more: str) -> dict[str, Json]:
    return {name: value, **{f"{name}_{end}{more}": _at(value, "interval", end) for end in ("low", "high")}}


def _of(one: Mapping[str, Json], columns: str) -> dict[str, Json]:
    return {column: one.get(_camel(column)) for column in columns.split()}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _at(found: Json, *steps: str) -> Json:
    for step in steps:
        found = found.get(step) if isinstance(found, dict) else None
    return found
