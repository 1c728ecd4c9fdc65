"""Follows the ledger of a live trial: segments as they come, to the seal."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from pydantic import ValidationError

from realcli.api.faults import first_fault
from realcli.ledger.events import EVENT, Event
from realcli.ledger.follow import MARK_SECONDS
from realcli.ledger.reader import MAX_SEGMENT, MAX_WHOLE, FileTooLong, get_bounded
from realcli.ledger.seals import WorkSeal
from realcli.storage.paths import AttemptPaths, join
from realcli.storage.port import NotFound, ObjectStore, StorageError, StorageUnavailable
from realcli_cli.main import UserError

POLL_SECONDS = 2.0
ASK_SECONDS = 15.0

Over = Callable[[], str | None]
"""Why no seal will come any more; None while one may."""


class Tail:
    """One attempt. `follow()` returns how it ended, for people."""

    def __init__(
        self,
        store: ObjectStore,
        root: str,
        show: Callable[[Event], None],
        tell: Callable[[str], None],
        over: Over = lambda: None,
        *,
        poll: float = POLL_SECONDS,
    ) -> None:
        self._store = store
        self._paths = AttemptPaths(root)
        self._show = show
        self._tell = tell
        self._over = over
        self._poll = poll
        self._next = 1
        self._marked = float("-inf")
        self._asked = time.monotonic()
        self._away = False

    def follow(self) -> str:
        """Print what is there and what comes, until the seal is there or `over` says why there will be none."""
        while True:
            try:
                seal = self._seal()  # before the segments: what it counts is there then
                self._segments()
            except StorageUnavailable as error:
                if not self._away:
                    self._tell(f"storage does not answer, trying on: {error}")
                self._away = True
                time.sleep(self._poll)
                continue
            self._away = False
            if seal is not None:
                if self._next <= seal.ledger.segments:
                    raise UserError(
                        f"{self._paths.root} is sealed, but {self._paths.segment(self._next)} is not there; verify it"
                    )
                return f"sealed: {seal.reason}, {seal.ledger.events} events, {seal.turns} turns"
            now = time.monotonic()
            if now - self._asked >= ASK_SECONDS:
                self._asked = now
                why = self._over()
                if why is not None:
                    return why
            self._mark(now)
            time.sleep(self._poll)

    def _seal(self) -> WorkSeal | None:
        try:
            return WorkSeal.model_validate_json(self._whole(self._paths.work_seal, MAX_WHOLE))
        except NotFound:
            return None
        except ValidationError as error:
            raise UserError(
                f"{self._paths.work_seal} is not a work seal; `realcli ledger verify` says more ({first_fault(error)})"
            ) from error

    def _segments(self) -> None:
        while True:
            key = self._paths.segment(self._next)
            try:
                data = self._whole(key, MAX_SEGMENT)
            except NotFound:
                return
            self._next += 1
            *lines, rest = data.split(b"\n")
            for number, line in enumerate([*lines, rest] if rest else lines, start=1):
                try:
                    event = EVENT.validate_json(line)
                except ValidationError as error:
                    raise UserError(f"{key}:{number} is not an event; `realcli ledger verify` names every damage") from error
                self._show(event)

    def _whole(self, key: str, limit: int) -> bytes:
        try:
            return get_bounded(self._store, key, limit)
        except FileTooLong as error:
            raise UserError(f"{error}; no session has written it, `realcli ledger verify` names every damage") from error

    def _mark(self, now: float) -> None:
        """Ask the session to upload more often (realcli.ledger.follow)."""
        if now - self._marked < MARK_SECONDS or "trials/" not in self._paths.root:
            return
        first, self._marked = self._marked == float("-inf"), now
        try:
            self._store.put_once(join(self._paths.following, secrets.token_hex(8)), b"")
        except StorageError as error:
            if first:
                self._marked = float("inf")  # once is enough
                self._tell(f"the session is not asked to hurry, its lines come every 30 s: {error}")
