"""`realcli ledger verify|cat`."""

from __future__ import annotations

import re
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from realcli.ledger.reader import StoreReader, attempts_below
from realcli.ledger.show import describe, visible
from realcli.ledger.verify import verify_attempt
from realcli_cli.main import UserError
from realcli_cli.places import Place, is_address, object_in_cluster, place_of_uri

app = typer.Typer(no_args_is_help=True, help="Check and read the ledgers of trials.")

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
What = Annotated[str, typer.Argument(help="Trial, directory, or s3:// address of an attempt or of anything above attempts.")]
Endpoint = Annotated[str | None, typer.Option(help="S3 endpoint, where it is not AWS.", envvar="AWS_ENDPOINT_URL")]
Namespace = Annotated[str | None, typer.Option("--namespace", "-n", help="Namespace of the Trial.")]


@app.command()
def verify(
    what: What,
    anchor: Annotated[str | None, typer.Option(help="Digest the work seal must have (Trial.status.workSealDigest).")] = None,
    verdict_anchor: Annotated[str | None, typer.Option(help="Digest a verify seal must have (Trial.status.sealDigest).")] = None,
    endpoint: Endpoint = None,
    namespace: Namespace = None,
) -> None:
    """Check seals, chains and objects; of a Trial also against the digests in its status. Exit code 1 if anything is wrong."""
    console = _console()
    place = _place(what, endpoint, namespace)
    roots = attempts_below(place.store, place.key)
    if not roots:
        raise UserError(
            f"{place.shown}: no ledger lies here; expected an attempt (…/trials/<ordinal>/attempt-<k>) or a folder above some"
        )
    for given in (anchor, verdict_anchor):
        if given is not None and not DIGEST.fullmatch(given):
            raise UserError(f"{given!r} is not a digest; expected sha256: and 64 hex digits, as Trial.status has them")
    anchor, verdict_anchor = anchor or place.anchor, verdict_anchor or place.verdict_anchor
    anchors = [name for name, digest in (("work", anchor), ("verdict", verdict_anchor)) if digest]
    if anchors and len(roots) > 1:
        raise UserError(f"--anchor is about one attempt, but {len(roots)} lie below {place.shown}; name one")
    wrong = 0
    for root in roots:
        report = verify_attempt(StoreReader(place.store, root), root, anchor, verdict_anchor)
        wrong += not report.ok
        trial = (
            f"{report.identity.sweep}-{report.identity.ordinal:05d} attempt {report.identity.attempt}"
            if report.identity
            else root
        )
        state = Text("ok", "green") if report.ok else Text("WRONG", "red")
        told = f" {visible(trial)}: {report.events} events, {report.objects} objects, seal {report.seal}"
        console.print(state + Text(told))
        for finding in report.findings:
            console.print(Text(f"   {visible(str(finding))}"))
    against = f" against the {' and '.join(anchors)} anchor" if anchors else ""
    console.print(Text(f"{len(roots) - wrong} of {len(roots)} attempts verify{against}"))
    raise typer.Exit(1 if wrong else 0)


@app.command()
def cat(what: What, endpoint: Endpoint = None, namespace: Namespace = None) -> None:
    """Print a ledger readably, one line an event."""
    console = _console()
    place = _place(what, endpoint, namespace)
    roots = attempts_below(place.store, place.key)
    if not roots:
        raise UserError(f"{place.shown}: no ledger lies here")
    for root in roots:
        if len(roots) > 1:
            console.print(Text(visible(root), "bold"))
        try:
            for event in StoreReader(place.store, root).events():
                console.print(Text(describe(event)))
        except ValueError as error:
            raise UserError(f"{place.shown}: {error}; `realcli ledger verify` names every damage") from error


def _console() -> Console:
    """Text of an agent goes through it: nothing in it is markup, an emoji code or a highlight."""
    return Console(highlight=False, soft_wrap=True, markup=False, emoji=False)


def _place(what: str, endpoint: str | None, namespace: str | None) -> Place:
    if is_address(what):
        return place_of_uri(what, endpoint)
    status = object_in_cluster("trials", what, namespace).get("status") or {}
    uri = status.get("ledgerURI")
    if not uri:
        raise UserError(f"trial {what} has no ledger yet (phase {status.get('phase', 'Pending')})")
    return place_of_uri(uri, endpoint)._replace(anchor=status.get("workSealDigest"), verdict_anchor=status.get("sealDigest"))
