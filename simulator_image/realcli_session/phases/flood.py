"""Output beyond the trial's limits: an agent may fill its own ledger, but not storage, the judge's patience or the spool."""

from __future__ import annotations

from realcli.ledger.events import Data, Event
from realcli_session.phases.attempt import Attempt, Happening
from realcli_session.phases.limits import LEDGER_BLOBS, LEDGER_BYTES, LEDGER_EVENTS, LEDGER_WAITING
from realcli_session.phases.table import Cause, Stage


def watch_output(attempt: Attempt) -> None:
    """From now on a ledger that grows beyond a limit ends the work, once, and so does a disk that takes no more of it."""

    def look(event: Event, _: Data) -> None:
        if attempt.excess is None and (excess := _excess_of(attempt)) is not None:
            attempt.excess = excess
            attempt.happened(Cause.FLOODED, f"{excess[1]}, {excess[0]} are allowed")

    def full(told: str) -> None:
        if attempt.progress.stage is not Stage.SEAL:  # which looks for itself, and goes on
            attempt.happened(*spool_full(attempt, told))

    attempt.writer.subscribe(look)
    attempt.writer.on_full = full


def spool_full(attempt: Attempt, told: str) -> Happening:
    """Whose doing it is that the session's disk is full: within its limits of output an agent cannot bring it about."""
    kept = f"{attempt.uploader.waiting} bytes of the ledger and {attempt.kept} of snapshots and state lie there"
    return (Cause.SPOOL_FULL if attempt.excess is None else Cause.SPOOL_FLOODED), f"{told}; {kept}"


def _excess_of(attempt: Attempt) -> tuple[str, str] | None:
    """(allowed, measured) of the limit that the ledger is beyond, None where it is beyond none."""
    for unit, allowed, measured in (
        ("bytes", LEDGER_BYTES, attempt.writer.written),
        ("events", LEDGER_EVENTS, attempt.writer.events),
        ("blobs", LEDGER_BLOBS, attempt.writer.blobs),
        ("bytes that wait for storage", LEDGER_WAITING, attempt.uploader.waiting),
    ):
        if measured > allowed:
            return f"{allowed} {unit}", f"{measured} {unit}"
    return None
