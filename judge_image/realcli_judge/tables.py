"""The tables as CSV and Parquet, and the runs as `realcli score` reads them.

A cell is empty (null) where a number is not defined; it is never filled with 0. CSV holds texts for people, Parquet the same
rows with types and with numbers as 64-bit floats.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq

from realcli.scoring.document import ScoreInput, score_input
from realcli_judge.figures import Number
from realcli_judge.hostile import plain
from realcli_judge.scores import Counted
from realcli_judge.summary import ModeRate, Summary

Cell = Number | Decimal | str | int | float | bool | None
Table = tuple[list[str], list[list[Cell]]]
FORMULA = ("=", "+", "-", "@", "\t")
"""How a text begins that spreadsheets take for more than a text."""


def tables(summary: Summary, counted: Counted) -> dict[str, bytes]:
    """File name -> content."""
    found: dict[str, bytes] = {}
    for name, make in TABLES.items():
        head, rows = make(summary)
        found[f"{name}.csv"] = _csv(head, rows)
        found[f"{name}.parquet"] = _parquet(head, rows)
    for one in summary.analyses:
        found[f"analyses/{one.id}.csv"] = _csv(one.columns, one.rows)
        found[f"analyses/{one.id}.parquet"] = _parquet(one.columns, one.rows)
    found["runs.json"] = _runs(counted.document)
    return found


def _main(summary: Summary) -> Table:
    """S and J stand here only where S is whole; a partial S is in summary.json and on the page's own panel."""
    head = [
        "configuration",
        "r_exec", "r_exec_low", "r_exec_high", "r_exec_valid", "r_exec_invalid", "r_exec_missing", "r_exec_invalid_as_0",
        "r_exec_invalid_as_1",
        "r_collab", "r_collab_low", "r_collab_high", "r_collab_valid", "r_collab_invalid", "r_collab_missing",
        "r_collab_invalid_as_0", "r_collab_invalid_as_1",
        "delta_r_paired", "pairs", "fail_to_pass", "pass_to_fail", "headline", "s", "s_low95", "s_high95",
        "j", "j_low95", "j_high95", "partial", "calibration", "cost_usd_exec", "cost_usd_collab", "invalid_attempts", "egress",
    ]  # fmt: skip
    rows: list[list[Cell]] = []
    for c in summary.configurations:
        s = None if c.s_partial else c.s if c.headline == "S" else c.s_rate
        j = None if c.s_partial else c.j if c.headline == "S" else c.j_rate
        rows.append(
            [
                c.name, *_rate(c.exec), *_rate(c.collab), c.paired.delta_r, c.paired.pairs, c.paired.fail_to_pass,
                c.paired.pass_to_fail, c.headline, *_with_interval(s), *_with_interval(j), c.partial, summary.judge.calibration,
                *[Decimal(spent.usd.usd) if (spent := c.spent.get(m)) and spent.usd else None for m in ("EXEC", "COLLAB")],
                c.invalid_attempts, summary.egress,
            ]
        )  # fmt: skip
    return head, rows


def _tasks(summary: Summary) -> Table:
    head = ["task", "configuration", "mode", "successes", "valid", "invalid", "missing", "mean_reward"]
    return head, [
        [c.task, c.configuration, c.mode, c.successes, c.valid, c.invalid, c.missing, c.mean_reward] for c in summary.tasks
    ]


def _scenarios(summary: Summary) -> Table:
    head = ["scenario", "dimension", "sub_dimension", "configuration", "passes", "n", "rate", "scheduled", "triggered",
            "trigger_rate", "untriggered", "not_applicable", "unscored", "unknown", "contaminated"]  # fmt: skip
    return head, [
        [s.scenario, s.dimension, s.sub_dimension, s.configuration, s.passes, s.n, s.rate, s.scheduled, s.triggered,
         s.trigger_rate, sum(s.untriggered.values()), s.not_applicable, s.unscored, s.unknown, s.contaminated]
        for s in summary.scenarios
    ]  # fmt: skip


def _dimensions(summary: Summary) -> Table:
    head = ["configuration", "level", "name", "score"]
    return head, [
        [c.name, level, name, value]
        for c in summary.configurations
        for level, scores in (("dimension", c.dimensions), ("sub_dimension", c.sub_dimensions))
        for name, value in scores.items()
    ]


def _audits(summary: Summary) -> Table:
    head = ["configuration", "audited", "runs", "check", "passes", "fails", "not_applicable", "unscored", "rate"]
    return head, [
        [a.configuration, a.audited, a.runs, c.check, c.passes, c.fails, c.not_applicable, c.unscored, c.rate]
        for a in summary.audits
        for c in a.checks
    ]


def _generic(summary: Summary) -> Table:
    head = ["configuration", "check", "passes", "n", "rate", "unscored"]
    return head, [[g.configuration, g.scenario, g.passes, g.n, g.rate, g.unscored] for g in summary.generic]


def _failures(summary: Summary) -> Table:
    head = ["configuration", "mode", "label", "runs"]
    return head, [[f.configuration, f.mode, f.label, f.runs] for f in summary.failures]


def _trials(summary: Summary) -> Table:
    head = ["ordinal", "configuration", "task", "mode", "repeat", "phase", "reason", "reward", "checks_passed", "checks_total",
            "turns", "tool_calls", "retries", "failing_retries", "questions", "working_seconds", "cost_usd", "failure",
            "outcome_flag", "attempt", "invalid_attempts", "work_seal", "seal"]  # fmt: skip
    rows: list[list[Cell]] = []
    for t in summary.trials:
        f = t.facts
        effort: list[Cell] = [None] * 4 if f is None else [f.tool_calls, f.retries, f.failing_retries, f.questions]
        rows.append(
            [
                t.ordinal, t.configuration, t.task, t.mode, t.repeat, t.phase, t.reason, _decimal(t.reward),
                t.checks.passed if t.checks else None, t.checks.total if t.checks else None, t.turns, *effort,
                _decimal(t.working_seconds), _decimal(f.cost_usd if f is not None else None), t.failure, t.outcome_flag,
                t.attempt, t.invalid_attempts, t.work_seal, t.seal,
            ]
        )  # fmt: skip
    return head, rows


TABLES: dict[str, Callable[[Summary], Table]] = {
    "main": _main,
    "tasks": _tasks,
    "dimensions": _dimensions,
    "scenarios": _scenarios,
    "audits": _audits,
    "generic": _generic,
    "failures": _failures,
    "trials": _trials,
}
"""Table -> what makes it."""


def _runs(given: ScoreInput) -> bytes:
    document = score_input(
        given.runs,
        given.tree,
        threshold=given.threshold,
        benchmark=given.benchmark,
        judge=given.judge,
        tasks=given.tasks,
        configurations=given.configurations,
    )
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _rate(mode: ModeRate | None) -> list[Cell]:
    if mode is None:
        return [None] * 8
    low, high = (mode.bounds.invalid_as_0, mode.bounds.invalid_as_1) if mode.bounds else (mode.r, mode.r)
    return [*_with_interval(mode.r), mode.valid, mode.invalid, mode.missing, low, high]


def _with_interval(value: Number | None) -> list[Cell]:
    if value is None or value.interval is None:
        return [value, None, None]
    return [value, value.interval.low, value.interval.high]


def _decimal(value: str | None) -> Decimal | None:
    return None if value is None else Decimal(value)


def _csv(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([_shown(cell) for cell in row] for row in rows)
    return out.getvalue().encode()


def _shown(cell: Cell) -> Cell:
    """A text that a spreadsheet would run as a formula (a category is its author's) stands behind an apostrophe; what
    nobody sees, or what would end a row, by its code point."""
    if isinstance(cell, Number):
        return cell.text
    if not isinstance(cell, str):
        return cell
    text = plain(cell)
    return f"'{text}" if text.startswith(FORMULA) else text


def _parquet(head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> bytes:
    columns = {name: _column([row[at] for row in rows]) for at, name in enumerate(head)}
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, compression="zstd")
    return out.getvalue()


def _column(cells: Sequence[Cell]) -> pa.Array:
    """Floats for numbers, integers and truth values as they are, else texts. One column has one type."""
    known = [cell for cell in cells if cell is not None]
    if any(isinstance(cell, str) for cell in known):
        return pa.array([None if cell is None else _text(cell) for cell in cells], pa.string())
    if any(isinstance(cell, Number | Decimal | float) for cell in known):
        numbers = [cell.value if isinstance(cell, Number) else None if cell is None else float(cell) for cell in cells]
        return pa.array(numbers, pa.float64())
    if known and all(isinstance(cell, bool) for cell in known):
        return pa.array(cells, pa.bool_())
    if known and all(isinstance(cell, int) for cell in known):
        return pa.array(cells, pa.int64())
    return pa.nulls(len(cells), pa.string())


def _text(cell: Cell) -> str:
    return cell.exact if isinstance(cell, Number) else str(cell)
