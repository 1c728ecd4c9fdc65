"""`realcli export atif|harbor`: sealed trials as files of other tools. Nothing is ever overwritten."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from realcli.export.harbor import SealedRun, counted_of, job_files, outcome_of, trial_files
from realcli.ledger.show import visible
from realcli.scoring.records import GroupMember
from realcli.trajectory import Trajectory
from realcli.trajectory.atif import Sealed, atif_of
from realcli.trajectory.atif_document import AtifDocument
from realcli_cli.fresh import must_be_new, new_folder, write_new
from realcli_cli.main import UserError
from realcli_cli.places import is_address, object_in_cluster, place_of_status, place_of_uri
from realcli_cli.sealed import Attempt, Source, source_of, where_of

app = typer.Typer(no_args_is_help=True, help="Sealed trials in the formats of other tools.")

What = Annotated[
    str, typer.Argument(help="Directory (of `realcli trial run`, or a downloaded sweep), s3:// address, or a Trial's name.")
]
Endpoint = Annotated[str | None, typer.Option(help="S3 endpoint, where it is not AWS.", envvar="AWS_ENDPOINT_URL")]
Namespace = Annotated[str | None, typer.Option("--namespace", "-n", help="Namespace of the Trial.")]


@app.command()
def atif(
    source: What,
    out: Annotated[Path, typer.Option(help="A file (….json) for one attempt, else a directory to make; must not exist.")],
    endpoint: Endpoint = None,
    namespace: Namespace = None,
) -> None:
    """Trajectories in Harbor's interchange format, ATIF: one file for every sealed attempt."""
    must_be_new(out, f"--out {out}")
    found = _source(source, endpoint, namespace)
    if out.suffix == ".json":
        if len(found.sealed) != 1:
            raise UserError(
                f"{found.shown}: {len(found.sealed)} sealed attempts lie here and a file holds one; --out a directory"
            )
        write_new(out, _document(found, found.sealed[0], found.sealed[0].trajectory()).file())
    else:
        names = {f"{_plain(attempt.name)}.json": attempt for attempt in found.sealed}
        if len(names) != len(found.sealed):
            raise UserError(f"{found.shown}: attempts of the same name lie here, of several sweeps; name one sweep")
        with new_folder(out, f"--out {out}") as folder:
            for name, attempt in names.items():
                write_new(folder / name, _document(found, attempt, attempt.trajectory()).file())
    count = len(found.sealed)
    _told("1 trajectory" if count == 1 else f"{count} trajectories", out, [f"{root}: not sealed" for root in found.unsealed])


@app.command()
def harbor(
    source: What,
    out: Annotated[Path, typer.Option(help="The job's directory, to be made; must not exist.")],
    endpoint: Endpoint = None,
    namespace: Namespace = None,
) -> None:
    """One sweep as a job directory of Harbor: of each trial the attempt that counts."""
    must_be_new(out, f"--out {out}")
    found = _source(source, endpoint, namespace)
    sweeps = {attempt.sweep for attempt in found.sealed} | {where.sweep for r in found.unsealed if (where := where_of(r))}
    if len(sweeps) != 1:
        raise UserError(f"{found.shown}: trials of {len(sweeps)} sweeps lie here and a job of Harbor is one; name one of them")
    sweep = sweeps.pop()
    lock = found.lock(found.sealed[0])
    if sweep is None or lock is None:
        raise UserError(
            f"{found.shown}: no sweep.json lies above (…/sweep.json beside …/trials/), and Harbor's files need what it holds: "
            "agents, models, tasks. Give the sweep's folder, or use `realcli export atif`, which needs none"
        )
    whole = f"{sweep}/".startswith(f"{found.place.key}/".lstrip("/"))  # all of the sweep was named
    attempts, left = _counting(found, found.members(sweep), whole)
    if not attempts:
        raise UserError(f"{found.shown}: no trial is sealed in the attempt that counts: {'; '.join(left)}")
    total = len(attempts) + len(left)
    if whole:
        total = max(total, len(lock.tasks) * lock.repeats * len(lock.configurations) * len(lock.modes))
    name, counted = out.resolve().name, []
    with new_folder(out, f"--out {out}") as folder:
        try:
            for attempt in attempts:
                run = _run(found, attempt)
                counted.append(counted_of(lock, run))
                for path, content in trial_files(name, lock, run).items():
                    write_new(folder / run.name / path, content)
            for path, content in job_files(name, lock, counted, total).items():
                write_new(folder / path, content)
        except ValueError as error:
            raise UserError(f"{found.shown}: {error}") from error
    _told(f"{len(attempts)} of {total} trials", out, left)


def _source(what: str, endpoint: str | None, namespace: str | None) -> Source:
    if is_address(what):
        return source_of(place_of_uri(what, endpoint), what, endpoint)
    place = place_of_status(what, object_in_cluster("trials", what, namespace).get("status") or {}, endpoint)
    return source_of(place, place.shown, endpoint)


def _counting(found: Source, members: Mapping[int, GroupMember], whole: bool) -> tuple[list[Attempt], list[str]]:
    """Of each trial the attempt that counts: the one its group was judged by, else the latest. Then trials without, and why."""
    sealed = {(attempt.seal.trial.ordinal, attempt.seal.trial.attempt): attempt for attempt in found.sealed}
    running = {(where.ordinal, where.attempt) for root in found.unsealed if (where := where_of(root))}
    latest: dict[int, int] = {}
    for ordinal, attempt in sorted([*sealed, *running]):
        latest[ordinal] = attempt
    latest |= {ordinal: member.attempt for ordinal, member in members.items() if whole or ordinal in latest}
    attempts, left = [], []
    for ordinal, attempt in sorted(latest.items()):
        if (ordinal, attempt) in sealed:
            attempts.append(sealed[ordinal, attempt])
        else:
            ended = f"; it ended as {members[ordinal].phase}/{members[ordinal].reason}" if ordinal in members else ""
            left.append(f"trial {ordinal:05d}: attempt {attempt} is not sealed{ended}")
    return attempts, left


def _run(found: Source, attempt: Attempt) -> SealedRun:
    member = found.member(attempt)
    counting = attempt.verify(member.seal if member is not None else None)
    folder, verify = counting if counting is not None else (None, None)
    trajectory = attempt.trajectory()
    return SealedRun(
        seal=attempt.seal,
        digest=attempt.digest,
        uri=attempt.uri,
        trajectory=trajectory,
        document=_document(found, attempt, trajectory),
        verify=verify,
        verdict=attempt.verdict(folder) if folder is not None else None,
        ctrf=attempt.reader.read(f"{folder}/ctrf.json") if folder is not None else None,
        logs=attempt.reader.read(f"{folder}/logs.txt") if folder is not None else None,
        member=member,
    )


def _document(found: Source, attempt: Attempt, trajectory: Trajectory) -> AtifDocument:
    member, lock = found.member(attempt), found.lock(attempt)
    counting = attempt.verify(member.seal if member is not None else None)
    outcome = outcome_of(attempt.seal, counting[1] if counting is not None else None, member)
    names = {one.name: one for one in lock.configurations} if lock is not None else {}
    configuration = names.get(attempt.seal.trial.configuration)
    about = Sealed(
        work_seal=attempt.digest,
        reason=outcome.reason,
        valid=outcome.valid,
        reward=outcome.reward,
        model_id=configuration.model_id if configuration is not None else None,
        effort=configuration.effort if configuration is not None else None,
    )
    try:
        return atif_of(trajectory, attempt, about)
    except ValueError as error:
        raise UserError(f"{attempt.root or found.shown}: {error}") from error


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".")


def _told(what: str, out: Path, left: list[str]) -> None:
    for line in left:
        typer.echo(visible(f"left out: {line}"), err=True)
    typer.echo(f"{what} in {out}")
