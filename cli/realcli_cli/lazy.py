"""The group of all commands: each is loaded when it is called, none to list them. Loading all takes a second of CPU."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

HELP = {
    "benchmark": "Benchmarks: check and publish suites of tasks.",
    "compare": "Compare two results of one benchmark, task by task: B - A, 95 % intervals, the smallest drop that would have "
    "shown.",
    "export": "Sealed trials in the formats of other tools.",
    "judge": "The judge of collaboration: review its answers, calibrate it.",
    "ledger": "Check and read the ledgers of trials.",
    "report": "Reports of finished sweeps.",
    "score": "Print R, S, J, their differences and counts of every configuration as JSON, exact.",
    "task": "Tasks: check one before it is published.",
    "trial": "Run a trial without a cluster.",
    "verify-report": "Count every number of a report again from sealed ledgers, judgements and audits. Exit code 1 if any "
    "differs.",
}
"""What the list of commands says of ours; a test holds each to its command. Those of others are loaded for it."""


def commands(points: Mapping[str, EntryPoint]) -> type[TyperGroup]:
    """A group of these entry points, by name."""

    class Commands(TyperGroup):
        """Loads a command when it is asked for."""

        loaded: ClassVar[dict[str, Any]] = {}
        listing = False

        def list_commands(self, ctx: Any) -> list[str]:
            """Sorted by name."""
            return sorted(points)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            """The command, or in a list what is said of it."""
            if cmd_name not in points:
                self.commands.update((name, _listed(name)) for name in points)  # what a name that is mistyped is compared with
                return None
            if self.listing and cmd_name in HELP:
                return _listed(cmd_name)
            if cmd_name not in self.loaded:
                self.loaded[cmd_name] = load(points[cmd_name])
            return self.loaded[cmd_name]

        def format_help(self, ctx: Any, formatter: Any) -> None:
            """The list of commands."""
            self.listing = True
            try:
                super().format_help(ctx, formatter)
            finally:
                self.listing = False

    return Commands


def _listed(name: str) -> TyperCommand:
    return TyperCommand(name, help=HELP.get(name))


def load(point: EntryPoint) -> Any:
    """The command of an entry point; one whose extra is missing says so when it is called."""
    app = typer.Typer(add_completion=False)
    app.callback()(_nothing)  # makes it a group, whatever it holds
    try:
        command = point.load()
    except ModuleNotFoundError as error:
        _unavailable(app, point, error.name)
    else:
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=point.name)
        else:  # a function: one command without subcommands
            app.command(point.name)(command)
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    return group.commands[point.name]


def _unavailable(app: typer.Typer, point: EntryPoint, missing: str | None) -> None:
    from realcli_cli.main import UserError

    @app.command(point.name, add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
    def unavailable() -> None:
        """Not installed."""
        raise UserError(f"`realcli {point.name}` needs {missing}, which is not installed: pip install 'realcli[cli]'")


def _nothing() -> None:
    """A group's own part: nothing."""
