"""`realcli`, also `kubectl realcli`. Subcommands are found through the entry point group `realcli.commands`."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points, version
from typing import NoReturn

GROUP = "realcli.commands"
MAX_NAME = 200  # characters of a file name in an error


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
    from realcli_cli.lazy import commands

    found = commands({point.name: point for point in entry_points(group=GROUP)})
    app = typer.Typer(name="realcli", cls=found, no_args_is_help=True, add_completion=False)
    app.callback()(_group)
    try:
        app()
    except UserError as error:
        _fail(str(error))
    except Exception as error:
        from realcli.storage.port import StorageError  # only now: the list of commands needs none of it

        if isinstance(error, StorageError):
            _fail(str(error))
        if isinstance(error, OSError) and error.filename is not None:  # a name nobody looked at before: too long, no right …
            _fail(f"{_short(str(error.filename))}: {error.strerror}")
        raise


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}…"


def _group() -> None:
    """Measure CLI coding agents. `realcli --version` prints the version."""


def _fail(message: str) -> NoReturn:
    """A message may quote a name out of a file or a store: what a terminal would obey, or hide, is shown instead."""
    from realcli.ledger.show import visible  # only now, as above

    print("\n".join(visible(line) for line in f"realcli: {message}".split("\n")), file=sys.stderr)
    raise SystemExit(2)
