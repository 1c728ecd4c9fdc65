"""`realcli judge`: look at, label and measure the judge of collaboration."""

from __future__ import annotations

import typer

from realcli_cli.judge_calibrate import calibrate
from realcli_cli.judge_review import review

app = typer.Typer(no_args_is_help=True, help="The judge of collaboration: review its answers, calibrate it.")


@app.callback()
def _group() -> None:
    """Keep subcommands while there is only one."""


app.command()(calibrate)
app.command()(review)
