"""`realcli report download`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

from realcli.storage.port import check_key
from realcli_cli.fresh import new_folder
from realcli_cli.main import UserError
from realcli_cli.places import is_address, object_in_cluster, place_of_uri

DOWNLOADS = 8
"""Files at the same time."""

app = typer.Typer(no_args_is_help=True, help="Reports of finished sweeps.")


@app.callback()
def _group() -> None:
    """Keep `download` a subcommand while it is the only one."""


@app.command()
def download(
    sweep: Annotated[str, typer.Argument(help="Sweep, or s3:// address of a report.")],
    directory: Annotated[Path, typer.Argument(help="Where to put it; it must not exist.")] = Path("report"),
    endpoint: Annotated[str | None, typer.Option(help="S3 endpoint, where it is not AWS.", envvar="AWS_ENDPOINT_URL")] = None,
    namespace: Annotated[str | None, typer.Option("--namespace", "-n", help="Namespace of the sweep.")] = None,
) -> None:
    """Copy a report (index.html, summary.json, tables/, trials/) into a directory."""
    uri = sweep if is_address(sweep) else _report_of(sweep, namespace)
    place = place_of_uri(uri, endpoint)
    base = place.key.strip("/")
    base = base + "/" if base else ""
    keys = [item.key for item in place.store.list(base)]
    if base + "index.html" not in keys:
        raise UserError(f"{uri}: no report lies here (there is no index.html); expected an address such as …/reports/<digest>")
    if base + "summary.json" not in keys:
        raise UserError(f"{uri}: the report is not whole (summary.json is written last): its Job is not done, or will run again")
    names = [_inside(key.removeprefix(base), directory) for key in keys]
    with new_folder(directory, str(directory)) as folder:  # beside pages of another report nobody could tell them apart
        targets = [folder / name for name in names]
        for target in targets:
            target.parent.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(DOWNLOADS) as pool:  # a report is hundreds of small files, each a round trip
            for _ in pool.map(place.store.download, keys, targets):
                pass
    typer.echo(f"{len(keys)} files from {uri}\n{directory / 'index.html'}")


def _inside(name: str, directory: Path) -> str:
    """The name of a file of the report; UserError for one that would leave the directory."""
    try:
        return check_key(name)
    except ValueError as error:
        raise UserError(f"a file of the report would be written outside {directory}: {error}") from error


def _report_of(sweep: str, namespace: str | None) -> str:
    status = object_in_cluster("benchmarksweeps", sweep, namespace).get("status") or {}
    uri = status.get("reportURI")
    if not uri:
        raise UserError(f"sweep {sweep} has no report yet (state {status.get('state', 'unknown')})")
    return str(uri)
