"""`realcli task check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.play import ready
from realcli.benchmark.problems import BenchmarkError, Problem
from realcli.benchmark.suite import check_task
from realcli.ledger.show import visible
from realcli_cli.main import UserError
from realcli_session.user.imagined import check_delivery, play_all

app = typer.Typer(no_args_is_help=True, help="Tasks: check one before it is published.")


@app.callback()
def _group() -> None:
    """Keep `check` a subcommand while it is the only one."""


@app.command()
def check(directory: Annotated[Path, typer.Argument(help="Folder of one task: task.toml, interaction/ …")]) -> None:
    """Check a task without running it, and play its script to three imagined agents.

    Prints every problem with file, field and remedy (exit status 1), and for each imagined agent the messages in order and the
    distances between probes.
    """
    if not (directory / "task.toml").is_file():
        raise UserError(f"{directory} holds no task.toml; expected the folder of one task, such as suite/tasks/<name>")
    catalogue = load_catalogue()
    task, problems = check_task(directory.resolve(), catalogue)
    if task is not None:
        try:
            played = play_all(ready(task.script, catalogue))
        except BenchmarkError as error:
            problems += [problem for problem in error.problems if problem not in problems]
        else:
            for one in played:
                typer.echo(f"\n{one.agent}")
                for line in one.lines:
                    typer.echo(visible(line))  # it names what the author of the task named
            problems += check_delivery(played)
    _tell(visible(directory.resolve().name), problems)


def _tell(name: str, problems: list[Problem]) -> None:
    for problem in problems:
        typer.echo(str(problem), err=True)
    if problems:
        typer.echo(f"\n{name}: {len(problems)} problem{'s' if len(problems) > 1 else ''}", err=True)
        raise typer.Exit(1)
    typer.echo(f"\n{name}: no problem found")
