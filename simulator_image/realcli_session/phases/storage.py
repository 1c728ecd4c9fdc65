"""Storage that is away: what the ledger tells of it, and how long a finished session waits."""

from __future__ import annotations

import asyncio
import contextlib

from realcli.api.base import seconds
from realcli.ledger.events import StorageWait
from realcli.ledger.reserve import SpoolError
from realcli.ledger.spool import SPOOL_FILE, Spool
from realcli.ledger.uploader import Outage
from realcli_session.phases.attempt import Attempt, utc_now
from realcli_session.termination import shorten

RUN = "run.json"


def tell_outages(attempt: Attempt) -> None:
    """From now on an outage and its end are events."""

    attempt.uploader.on_outage = lambda outage: _note(attempt, outage)


class Hold:
    """The end of work: a spool that can be copied out, and `spool.json` in it for as long as storage is away.

    Waits `limits.spoolHold` in all, from the moment it is made.
    """

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._file = attempt.settings.spool / SPOOL_FILE
        self.limit = attempt.trial.lock.spec.limits.spool_hold
        self._end = asyncio.get_running_loop().time() + seconds(self.limit)
        self._since = utc_now()
        attempt.uploader.on_outage = self._tell
        (attempt.settings.spool / RUN).write_bytes(attempt.run.canonical())
        if attempt.uploader.blocked:  # since the work
            self._begin(attempt.uploader.message)

    @property
    def left(self) -> float:
        """Seconds."""
        return max(0.0, self._end - asyncio.get_running_loop().time())

    def end(self) -> None:
        """Nothing waits any more, or nothing waits for it."""
        self._file.unlink(missing_ok=True)

    def _begin(self, message: str) -> None:
        attempt = self._attempt
        spool = Spool(
            trial=attempt.trial.identity,
            place=attempt.uploader.place,
            since=self._since,
            message=attempt.redactor.text(shorten(message)),
            stored=attempt.uploader.objects,
            files={RUN: RUN} | {name: path.relative_to(attempt.settings.spool).as_posix() for name, path in attempt.files},
        )
        part = self._file.with_suffix(".part")
        part.write_bytes(spool.canonical())
        part.replace(self._file)

    def _tell(self, outage: Outage) -> None:
        _note(self._attempt, outage)
        if outage.state == "blocked":
            self._since = utc_now()
            self._begin(outage.message)
        else:
            self.end()


def _note(attempt: Attempt, outage: Outage) -> None:
    if attempt.writer.closed:
        return
    with contextlib.suppress(SpoolError):  # of which the writer tells; what is there has to be stored all the same
        attempt.writer.emit("session", _event(outage))


def _event(outage: Outage) -> StorageWait:
    return StorageWait(state=outage.state, seconds=outage.seconds, spooled_bytes=outage.waiting, message=shorten(outage.message))
