"""`realcli`, also `kubectl realcli`. Subcommands are found through the entry point group `realcli.commands`."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, entry_points, version
from typing import NoReturn

GROUP = "realcli.commands"


class UserError(Exception):
    """Something the person at the keyboard can mend; printed without a traceback, exit code 2."""


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] == ["--version"]:
        print(f"realcli {version('realcli')}")
        raise SystemExit(0)
    try:
        import typer
    except ModuleNotFoundError as error:
        _fail(f"the command line is not installed ({error.name} is missing): pip install 'realcli[cli]'")
    app = typer.Typer(name="realcli", no_args_is_help=True, add_completion=False)
    app.callback()(_group)
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        _add(app, point)
    from realcli.storage import StorageError

    try:
        app()
    except (UserError, StorageError) as error:
        _fail(str(error))


def _group() -> None:
    """Measure CLI coding agents. `realcli --version` prints the version."""


def _add(app: object, point: EntryPoint) -> None:
    """Add one subcommand; one whose extra is missing says so when it is called, not before."""
    import typer

    assert isinstance(app, typer.Typer)
    try:
        command = point.load()
    except ModuleNotFoundError as error:
        missing = error.name

        @app.command(
            point.name, add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
        )
        def unavailable() -> None:
            """Not installed."""
            raise UserError(f"`realcli {point.name}` needs {missing}, which is not installed: pip install 'realcli[cli]'")

    else:
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=point.name)
        else:  # a function: one command without subcommands
            app.command(point.name)(command)


def _fail(message: str) -> NoReturn:
    print(f"realcli: {message}", file=sys.stderr)
    raise SystemExit(2)
