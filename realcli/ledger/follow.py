"""Following a live trial: who follows says so in the bucket, and the session uploads more often for as long as somebody does.

A follower creates `<sweep>/following/<ordinal>/attempt-<k>/<anything new>` every `MARK_SECONDS`. It lies beside the trials, so no
seal has to cover it. The session lists the folder every `LOOK_SECONDS`; a name it did not know means that somebody follows
for `HEED_SECONDS` more. Only its own clock counts, and the names' content means nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from realcli.storage.port import ObjectStore

FOLLOWED_SECONDS = 5.0
"""Age of an open segment that goes up while somebody follows."""
MARK_SECONDS = 60.0
LOOK_SECONDS = 30.0
HEED_SECONDS = 150.0


class Follower:
    """Whether somebody follows. Blocks when it asks storage; `StorageError` where that fails."""

    def __init__(
        self, store: ObjectStore, prefix: str, *, look: float = LOOK_SECONDS, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._prefix = prefix.rstrip("/") + "/"
        self._look = look
        self._now = now
        self._next = float("-inf")
        self._known: set[str] = set()
        self._until = float("-inf")

    def followed(self) -> bool:
        """True for `HEED_SECONDS` after a new mark was seen."""
        now = self._now()
        if now >= self._next:
            self._next = now + self._look
            names = {item.key for item in self._store.list(self._prefix)}
            if names - self._known:
                self._until = now + HEED_SECONDS
            self._known = names
        return now < self._until
