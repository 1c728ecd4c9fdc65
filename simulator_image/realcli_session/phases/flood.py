"""Output beyond the trial's limits: an agent may fill its own ledger, but not storage, and not the judge's patience."""

from __future__ import annotations

from realcli.ledger.events import Data, Event
from realcli.ledger.writer import LedgerWriter
from realcli_session.phases.attempt import Attempt
from realcli_session.phases.limits import LEDGER_BLOBS, LEDGER_BYTES, LEDGER_EVENTS
from realcli_session.phases.table import Cause


def watch_output(attempt: Attempt) -> None:
    """From now on a ledger that grows beyond a limit ends the work, once."""
    told = False

    def look(event: Event, _: Data) -> None:
        nonlocal told
        if not told and (excess := excess_of(attempt.writer)) is not None:
            told = True
            attempt.happened(Cause.FLOODED, f"{excess[1]}, {excess[0]} are allowed")

    attempt.writer.subscribe(look)


def excess_of(writer: LedgerWriter) -> tuple[str, str] | None:
    """(allowed, measured) of the limit that the ledger is beyond, None where it is beyond none."""
    for unit, allowed, measured in (
        ("bytes", LEDGER_BYTES, writer.written),
        ("events", LEDGER_EVENTS, writer.events),
        ("blobs", LEDGER_BLOBS, writer.blobs),
    ):
        if measured > allowed:
            return f"{allowed} {unit}", f"{measured} {unit}"
    return None
