"""`realcli score`: scores of a file of runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from realcli.ledger.show import printable_json, visible
from realcli.scoring.aggregate import ConfigurationScores, configuration_scores
from realcli.scoring.document import ScoreInput, ScoreInputError
from realcli.scoring.loading import load_score_input
from realcli.scoring.output import score_output
from realcli.scoring.scorerow import decimal, mark, signed
from realcli_cli.main import UserError


class Form(StrEnum):
    """How scores are printed."""

    JSON = "json"
    TEXT = "text"


def score(
    file: Annotated[Path, typer.Argument(help="Runs with verdicts, JSON or YAML (docs/scores.md); - reads standard input.")],
    intervals: Annotated[bool, typer.Option("--intervals", help="Add 95 % intervals: a resampling of tasks.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resampling.")] = 0,
    form: Annotated[Form, typer.Option("--format", "--output", "-o", help="json: everything, exact. text: a table.")] = Form.JSON,
) -> None:
    """Print R, S, J, their differences and counts of every configuration as JSON, exact."""
    given = read(file)
    drawn: dict[str, Any] | None = None
    if intervals:
        from realcli.scoring.intervals import intervals_output

        drawn = intervals_output(given, seed=seed)
    if form is Form.TEXT:
        typer.echo("\n".join(_text(given, drawn)))
        return
    printed = score_output(given)
    whole = printed if drawn is None else {**printed, "intervals": drawn}
    typer.echo(printable_json(json.dumps(whole, indent=2, ensure_ascii=False)))


def read(file: Path) -> ScoreInput:
    """The document in a file; UserError names the file, the field and what was expected."""
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        expected = "expected a JSON or YAML file of runs (in a report: tables/runs.json)"
        raise UserError(f"{file}: {error.strerror}; {expected}") from error
    try:
        return load_score_input(data, "standard input" if str(file) == "-" else str(file))
    except ScoreInputError as error:
        raise UserError(str(error)) from error


# -- the table ------------------------------------------------------------------------------------------------------------

HEAD = ("R_exec", "R_collab", "dR", "S", "S_low", "S_high", "J", "dJ", "valid", "invalid")


def _text(given: ScoreInput, drawn: dict[str, Any] | None) -> Iterator[str]:
    found = [configuration_scores(name, given.of(name), given.tree, given.threshold) for name in given.names]
    if not found:
        yield "no runs"
        return
    wide = max(len("configuration"), *(len(visible(one.configuration)) for one in found))
    yield f"{'configuration':{wide}}" + "".join(f"{name:>10}" for name in HEAD)
    for one in found:
        yield f"{visible(one.configuration):{wide}}" + "".join(f"{cell:>10}" for cell in _cells(one))
        if drawn is not None:
            yield from _limits(one, drawn["configurations"][one.configuration]["scores"])
    if any(mark(one) for one in found):
        yield "~ S is S_rate, as there are few tasks per scenario, or rests on less than the whole tree; J and dJ are of it"
    if any("-" in _cells(one) for one in found):
        yield "- not defined: no run, or its bounds are too far apart"


def _cells(one: ConfigurationScores) -> list[str]:
    j = one.headline_j
    delta = None if j is None or one.r_exec is None else j - one.r_exec
    return [
        _number(one.r_exec), _number(one.r_collab), _difference(one.delta_r),
        _number(one.headline) + (mark(one) if one.headline is not None else ""), _number(one.s_low), _number(one.s_high),
        _number(j), _difference(delta), str(sum(one.valid.values())), str(sum(one.invalid.values())),
    ]  # fmt: skip


def _limits(one: ConfigurationScores, scores: dict[str, Any]) -> Iterator[str]:
    """The interval of each number of the row, of the same S."""
    for name in ("R_exec", "R_collab", "dR", "S", "J", "dJ"):
        measure = name if one.headline_s or name not in ("S", "J", "dJ") else f"{name}_rate"
        ends = scores.get(measure)
        if ends is not None:
            yield f"  {name:10}95 % {ends['low']:.3f} to {ends['high']:.3f}"


def _number(value: Fraction | None) -> str:
    return "-" if value is None else decimal(value)


def _difference(value: Fraction | None) -> str:
    return "-" if value is None else signed(value)
