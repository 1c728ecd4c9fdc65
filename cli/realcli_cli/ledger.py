"""`realcli ledger verify|cat|tail|recover`."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from rich.text import Text

from realcli.ledger.base import BlobRef
from realcli.ledger.reader import FileTooLong, StoreReader, attempts_below
from realcli.ledger.show import visible
from realcli.ledger.verify import Report, verify_attempt
from realcli.storage.local import LocalStore
from realcli.storage.port import ObjectStore
from realcli_cli.ledger_recover import recover as copy_spool
from realcli_cli.ledger_show import Printer
from realcli_cli.ledger_tail import Tail
from realcli_cli.main import UserError
from realcli_cli.places import Place, is_address, nothing_at, object_in_cluster, place_of_status, place_of_uri

app = typer.Typer(no_args_is_help=True, help="Check and read the ledgers of trials.")

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
ADDRESSES = "Trial, directory, or s3:// address of an attempt or of anything above attempts."
What = Annotated[str, typer.Argument(help=ADDRESSES)]
Endpoint = Annotated[str | None, typer.Option(help="S3 endpoint, where it is not AWS.", envvar="AWS_ENDPOINT_URL")]
Full = Annotated[bool, typer.Option("--full", help="Whole texts, long ones too.")]
Everything = Annotated[bool, typer.Option("--all", help="One line for every event instead of the conversation.")]
Namespace = Annotated[str | None, typer.Option("--namespace", "-n", help="Namespace of the Trial.")]


@app.command()
def verify(
    what: Annotated[list[str], typer.Argument(help=f"{ADDRESSES} Several are checked one after the other.")],
    anchor: Annotated[str | None, typer.Option(help="Digest the work seal must have (Trial.status.workSealDigest).")] = None,
    verdict_anchor: Annotated[str | None, typer.Option(help="Digest a verify seal must have (Trial.status.sealDigest).")] = None,
    endpoint: Endpoint = None,
    namespace: Namespace = None,
) -> None:
    """Check seals, chains and objects; of a Trial also against the digests in its status. Exit code 1 if anything is wrong."""
    console = _console()
    for given in (anchor, verdict_anchor):
        if given is not None and not DIGEST.fullmatch(given):
            raise UserError(f"{given!r} is not a digest; expected sha256: and 64 hex digits, as Trial.status has them")
        if given is not None and len(what) > 1:
            raise UserError(f"--anchor is about one attempt, but {len(what)} places were given; name one")
    attempts = [attempt for one in what for attempt in _attempts(_place(one, endpoint, namespace), anchor, verdict_anchor)]
    wrong = 0
    for attempt in attempts:
        try:
            report = verify_attempt(StoreReader(attempt.store, attempt.root), attempt.root, *attempt.anchors)
        except FileTooLong as error:
            wrong += 1
            console.print(Text("WRONG", "red") + Text(f" {visible(attempt.root or '.')}: {visible(str(error))}"))
            continue
        wrong += not report.ok
        _print_report(console, report)
    named = [name for at, name in enumerate(("work", "verdict")) if all(attempt.anchors[at] for attempt in attempts)]
    against = f" against the {' and '.join(named)} anchor" if named else ""
    console.print(Text(f"{len(attempts) - wrong} of {len(attempts)} attempts verify{against}"))
    raise typer.Exit(1 if wrong else 0)


class _Attempt(NamedTuple):
    """One to verify, with the digests it must have: (work seal, verify seal)."""

    store: ObjectStore
    root: str
    anchors: tuple[str | None, str | None]


def _attempts(place: Place, anchor: str | None, verdict_anchor: str | None) -> list[_Attempt]:
    roots = attempts_below(place.store, place.key)
    if not roots:
        raise UserError(f"{nothing_at(place)}; expected an attempt (…/trials/<ordinal>/attempt-<k>) or a folder above some")
    anchors = anchor or place.anchor, verdict_anchor or place.verdict_anchor
    if any(anchors) and len(roots) > 1:
        raise UserError(f"--anchor is about one attempt, but {len(roots)} lie below {place.shown}; name one")
    return [_Attempt(place.store, root, anchors) for root in roots]


@app.command()
def cat(
    what: What, full: Full = False, everything: Everything = False, endpoint: Endpoint = None, namespace: Namespace = None
) -> None:
    """Print a ledger readably."""
    console = _console()
    place = _place(what, endpoint, namespace)
    roots = attempts_below(place.store, place.key)
    if not roots:
        raise UserError(nothing_at(place))
    for root in roots:
        if len(roots) > 1:
            console.print(Text(visible(root), "bold"))
        reader = StoreReader(place.store, root)
        show = Printer(partial(_say, console), partial(_blob, reader), full=full, everything=everything)
        try:
            for event in reader.events():
                show(event)
        except ValueError as error:
            raise UserError(f"{place.shown}: {error}; `realcli ledger verify` names every damage") from error


@app.command()
def tail(
    what: What, full: Full = False, everything: Everything = False, endpoint: Endpoint = None, namespace: Namespace = None
) -> None:
    """Follow the ledger of one live trial until it is sealed."""
    console = _console()
    place = _place(what, endpoint, namespace)
    roots = attempts_below(place.store, place.key)
    by_name = not is_address(what)
    if len(roots) > 1:
        raise UserError(f"{place.shown}: {len(roots)} attempts lie below; name one")
    if not roots and not by_name:
        raise UserError(f"{place.shown}: no ledger lies here (yet)")
    root = roots[0] if roots else place.key.removesuffix("/ledger")
    show = Printer(
        partial(_say, console),
        lambda ref: StoreReader(place.store, root).read(f"blobs/{ref.blob}"),
        full=full,
        everything=everything,
    )
    over = partial(_over, what, namespace, root) if by_name else lambda: None
    try:
        told = Tail(place.store, root, show, partial(typer.echo, err=True), over).follow()
    except FileTooLong as error:
        raise UserError(f"{place.shown}: {error}; `realcli ledger verify` names every damage") from error
    console.print(Text(visible(told)))


@app.command()
def recover(
    trial: Annotated[str, typer.Argument(help="Trial whose condition StorageBlocked is true.")],
    to: Annotated[Path | None, typer.Option(help="Directory to make; TRIAL-spool here by default.")] = None,
    namespace: Namespace = None,
) -> None:
    """Copy the spool out of a session that waits for storage, and verify the copy. Needs the right to exec into the pod."""
    console = _console()
    target = to or Path(f"{trial}-spool")
    status = object_in_cluster("trials", trial, namespace).get("status") or {}
    count = copy_spool(trial, status, namespace, target)
    report = verify_attempt(StoreReader(LocalStore(target), ""))
    console.print(Text(f"{count} files in {target}"))
    _print_report(console, report)
    raise typer.Exit(0 if report.ok else 1)


def _over(trial: str, namespace: str | None, root: str) -> str | None:
    """Why the attempt at `root` will have no seal: the trial has gone on without one."""
    status = object_in_cluster("trials", trial, namespace).get("status") or {}
    phase, uri = status.get("phase", "Pending"), str(status.get("ledgerURI") or "")
    if uri and not uri.removesuffix("/ledger").endswith(root):
        return (
            f"this attempt ended without a seal ({status.get('lastInvalidReason', 'unknown')}); the trial's ledger is {uri} now"
        )
    return f"the trial ended without a seal here: {phase}, {status.get('reason')}" if phase in ("Sealed", "Invalid") else None


def _say(console: Console, line: str) -> None:
    console.print(Text(line))


def _blob(reader: StoreReader, ref: BlobRef) -> bytes | None:
    return reader.read(f"blobs/{ref.blob}")


def _print_report(console: Console, report: Report) -> None:
    trial = report.root or "."
    if report.identity:
        trial = f"{report.identity.sweep}-{report.identity.ordinal:05d} attempt {report.identity.attempt}"
    state = Text("ok", "green") if report.ok else Text("WRONG", "red")
    if report.ok and report.recovered:
        state = Text("unsealed", "yellow")
    told = f" {visible(trial)}: {report.events} events, {report.objects} objects, seal {report.seal}"
    if report.recovered:
        told = f" {visible(trial)}: {report.events} events, {report.objects} files of a spool, sound; nothing seals them"
    console.print(state + Text(told))
    for finding in report.findings:
        console.print(Text(f"   {visible(str(finding))}"))


def _console() -> Console:
    """Text of an agent goes through it: nothing in it is markup, an emoji code or a highlight."""
    return Console(highlight=False, soft_wrap=True, markup=False, emoji=False)


def _place(what: str, endpoint: str | None, namespace: str | None) -> Place:
    if is_address(what):
        return place_of_uri(what, endpoint)
    status = object_in_cluster("trials", what, namespace).get("status") or {}
    return place_of_status(what, status, endpoint)
