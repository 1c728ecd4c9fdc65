"""`realcli judge review`: a page without verdicts for people to label, and what their labels say of the judge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from realcli.api.base import sha256_digest
from realcli.api.faults import first_fault
from realcli.api.plan import Lock, plan_of
from realcli.checks.digest import digest8
from realcli.judging.review import PER_DIMENSION, Agreement, Labels, agreements, sample
from realcli.ledger.show import visible
from realcli.storage.opening import open_store
from realcli.storage.paths import SweepPaths, parse_s3_uri
from realcli.storage.port import NotFound, StorageConfig
from realcli_cli.fresh import must_be_new, write_new
from realcli_cli.main import UserError
from realcli_judge.inputs import Inputs, Refused
from realcli_judge.reviewing import evidence_kinds, judged_checks, page, shown


def review(
    sweep: Annotated[str, typer.Argument(help="s3:// address or directory of a judged sweep (the folder with sweep.json).")],
    labels: Annotated[Path | None, typer.Option(help="A saved file of labels: compare it with the judge.")] = None,
    out: Annotated[Path, typer.Option(help="Where the page is written; it must not exist.")] = Path("review.html"),
    per_dimension: Annotated[int, typer.Option(min=1, help="Checks per dimension.")] = PER_DIMENSION,
    seed: Annotated[str, typer.Option(help="Chooses the checks; the same seed gives the same page.")] = "1",
    store: Annotated[bool, typer.Option("--store", help="With --labels: keep them beside the judgements.")] = False,
    endpoint: Annotated[str | None, typer.Option(help="S3 endpoint, where it is not AWS.", envvar="AWS_ENDPOINT_URL")] = None,
) -> None:
    """Write a page of checks without their verdicts, or compare the labels saved on it with what the judge said."""
    if store and labels is None:
        raise UserError("--store keeps the labels of a file: name it with --labels")
    if labels is None:
        must_be_new(out, f"--out {out}")
    try:
        inputs = _inputs(sweep, endpoint)
        found = judged_checks(inputs)
        if labels is None:
            chosen = sample(found, per_dimension, seed)
            write_new(out, page(list(shown(inputs, chosen)), inputs.judge.content_digest(), seed).encode())
            typer.echo(f"{len(chosen)} of {len(found)} judged checks\n{out}")
            return
        given = _read(labels, inputs)
        _print(agreements(given, found, evidence_kinds()))
        if store:
            data = given.canonical()
            key = inputs.paths.labels(digest8(given.judge), digest8(sha256_digest(data)))
            inputs.store.put_once(key, data)
            typer.echo(inputs.config.uri(key))
    except (Refused, ValueError) as error:
        raise UserError(first_fault(error)) from error


def _inputs(sweep: str, endpoint: str | None) -> Inputs:
    """The sweep; what its lock says is believed, as there is no operator to anchor it."""
    config, key = StorageConfig.of_uri(sweep, endpoint)
    path = SweepPaths(key).lock
    try:
        data = open_store(config).get(path)
    except NotFound:
        raise UserError(
            f"{sweep}: no sweep lies here (there is no sweep.json); expected its folder, not that of a report"
        ) from None
    lock = Lock.model_validate_json(data)
    if config.directory is not None:
        config, key = _local(Path(config.directory), lock)
    return Inputs(config, open_store(config), key, lock, plan_of(lock, key, sha256_digest(data)))


def _local(folder: Path, lock: Lock) -> tuple[StorageConfig, str]:
    """(the store, key of the sweep in it) of a sweep's folder: the store is the folder above that holds the benchmark too."""
    _, benchmark = parse_s3_uri(lock.benchmark.source)
    for above in folder.resolve().parents:
        if (above / benchmark).is_dir():
            return StorageConfig(directory=str(above)), folder.resolve().relative_to(above).as_posix()
    raise UserError(
        f"no folder above {folder} holds {benchmark}, the sweep's benchmark; copy the whole store, not the sweep alone"
    )


def _read(path: Path, inputs: Inputs) -> Labels:
    try:
        given = Labels.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; expected the file that the page saved") from error
    except ValidationError as error:
        raise UserError(f"{path} is no file of labels: {first_fault(error)}") from error
    if given.judge != inputs.judge.content_digest():
        raise UserError(f"{path} labels the judge {given.judge}; this sweep's is {inputs.judge.content_digest()}")
    return given


def _print(found: list[Agreement]) -> None:
    table = Table("checks", "labelled", "kappa", "agree", "false failures", "misses", "differ in applicability")
    for one in found:
        counts = one.confusion
        rates = [None if rate is None else 1 - rate for rate in (counts.sensitivity, counts.specificity)]
        numbers = [counts.kappa, counts.observed, *rates]
        shown_numbers = ["-" if number is None else f"{float(number):.3f}" for number in numbers]
        table.add_row(Text(visible(one.group)), str(one.labelled), *shown_numbers, str(one.applicability))
    Console().print(table)
