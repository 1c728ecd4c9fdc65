"""`realcli ledger verify|cat`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from realcli.ledger.reader import StoreReader, attempts_below
from realcli.ledger.show import describe
from realcli.ledger.verify import verify_attempt
from realcli_cli.main import UserError
from realcli_cli.places import Place, is_address, object_in_cluster, place_of_uri

app = typer.Typer(no_args_is_help=True, help="Check and read the ledgers of trials.")

What = Annotated[str, typer.Argument(help="Trial, directory, or s3:// address of an attempt or of anything above attempts.")]
Endpoint = Annotated[str | None, typer.Option(help="S3 endpoint, where it is not AWS.", envvar="AWS_ENDPOINT_URL")]
Namespace = Annotated[str | None, typer.Option("--namespace", "-n", help="Namespace of the Trial.")]


@app.command()
def verify(
    what: What,
    anchor: Annotated[str | None, typer.Option(help="Digest the work seal must have (Trial.status.workSealDigest).")] = None,
    endpoint: Endpoint = None,
    namespace: Namespace = None,
) -> None:
    """Check seals, chains and objects. Exit code 1 if anything is wrong."""
    console = Console(highlight=False, soft_wrap=True)
    place = _place(what, endpoint, namespace)
    roots = attempts_below(place.store, place.key)
    if not roots:
        raise UserError(
            f"{place.shown}: no ledger lies here; expected an attempt (…/trials/<ordinal>/attempt-<k>) or a folder above some"
        )
    anchor = anchor or place.anchor
    if anchor and len(roots) > 1:
        raise UserError(f"--anchor is about one attempt, but {len(roots)} lie below {place.shown}; name one")
    wrong = 0
    for root in roots:
        report = verify_attempt(StoreReader(place.store, root), root, anchor)
        wrong += not report.ok
        trial = (
            f"{report.identity.sweep}-{report.identity.ordinal:05d} attempt {report.identity.attempt}"
            if report.identity
            else root
        )
        state = "[green]ok[/]" if report.ok else "[red]WRONG[/]"
        console.print(f"{state} {escape(trial)}: {report.events} events, {report.objects} objects, seal {report.seal}")
        for finding in report.findings:
            console.print(f"   {escape(str(finding))}", markup=True)
    console.print(f"{len(roots) - wrong} of {len(roots)} attempts verify" + (" against the anchor" if anchor else ""))
    raise typer.Exit(1 if wrong else 0)


@app.command()
def cat(what: What, endpoint: Endpoint = None, namespace: Namespace = None) -> None:
    """Print a ledger readably, one line an event."""
    console = Console(highlight=False, soft_wrap=True)
    place = _place(what, endpoint, namespace)
    roots = attempts_below(place.store, place.key)
    if not roots:
        raise UserError(f"{place.shown}: no ledger lies here")
    for root in roots:
        if len(roots) > 1:
            console.print(f"[bold]{escape(root)}[/]")
        try:
            for event in StoreReader(place.store, root).events():
                console.print(escape(describe(event)))
        except ValueError as error:
            raise UserError(f"{place.shown}: {error}; `realcli ledger verify` names every damage") from error


def _place(what: str, endpoint: str | None, namespace: str | None) -> Place:
    if is_address(what):
        return place_of_uri(what, endpoint)
    status = object_in_cluster("trials", what, namespace).get("status") or {}
    uri = status.get("ledgerURI")
    if not uri:
        raise UserError(f"trial {what} has no ledger yet (phase {status.get('phase', 'Pending')})")
    return place_of_uri(uri, endpoint)._replace(anchor=status.get("workSealDigest"))
