"""`realcli score`: scores of a file of runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from realcli.scoring.document import ScoreInput, ScoreInputError
from realcli.scoring.loading import load_score_input
from realcli.scoring.output import score_output
from realcli_cli.main import UserError


def score(
    file: Annotated[Path, typer.Argument(help="Runs with verdicts, JSON or YAML (docs/scores.md); - reads standard input.")],
    intervals: Annotated[bool, typer.Option("--intervals", help="Add 95 % intervals: a resampling of tasks.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resampling.")] = 0,
) -> None:
    """Print R, S, J, their differences and counts of every configuration as JSON, exact."""
    given = read(file)
    printed = score_output(given)
    if intervals:
        from realcli.scoring.intervals import intervals_output

        printed["intervals"] = intervals_output(given, seed=seed)
    typer.echo(json.dumps(printed, indent=2, ensure_ascii=False))


def read(file: Path) -> ScoreInput:
    """The document in a file; UserError names the file, the field and what was expected."""
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}; expected a JSON or YAML file of runs") from error
    try:
        return load_score_input(data, "standard input" if str(file) == "-" else str(file))
    except ScoreInputError as error:
        raise UserError(str(error)) from error
