"""`realcli benchmark publish`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from realcli.benchmark.problems import BenchmarkError
from realcli.benchmark.publish import publish as publish_suite
from realcli.benchmark.suite import load_suite
from realcli.storage import StorageConfig
from realcli.storage.opening import open_store
from realcli_cli.main import UserError

app = typer.Typer(no_args_is_help=True, help="Benchmarks: check and publish suites of tasks.")


@app.callback()
def _group() -> None:
    """Keep `publish` a subcommand while it is the only one."""


@app.command()
def publish(
    directory: Annotated[Path, typer.Argument(help="Suite: benchmark.toml and tasks/.")],
    destination: Annotated[
        str, typer.Argument(help="s3://bucket/path (or a directory); name/version is appended unless it ends so.")
    ],
    endpoint: Annotated[str | None, typer.Option(help="S3 endpoint, where it is not AWS.", envvar="AWS_ENDPOINT_URL")] = None,
) -> None:
    """Check a suite and publish it as an immutable version. Again with the same files: nothing happens."""
    if not directory.is_dir():
        raise UserError(f"{directory} is not a directory; expected a suite (benchmark.toml and tasks/)")
    try:
        config, prefix = StorageConfig.of_uri(destination, endpoint)
        suite = load_suite(directory)
        done = publish_suite(suite, open_store(config), prefix)
    except BenchmarkError as error:
        raise UserError(str(error)) from error
    except ValueError as error:
        raise UserError(f"{destination}: {error}") from error
    state = "published" if done.created else "already published, unchanged"
    typer.echo(f"{suite.config.name} {suite.config.version}: {len(done.index.tasks)} tasks, {state}")
    typer.echo(f"source: {config.uri(done.key)}\ndigest: {done.digest}")
