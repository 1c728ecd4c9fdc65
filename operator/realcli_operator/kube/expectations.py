"""What we have written but not yet seen back, so that an event in between does not cause the same write again."""

from __future__ import annotations

import hashlib
import json
from typing import Final

from realcli_operator.kube.clock import Clock, SystemClock
from realcli_operator.kube.views import Json

EXPIRES_AFTER: Final = 30.0
"""Seconds; a write whose echo never comes must not be skipped for ever."""


def digest(value: Json) -> str:
    """Digest of a JSON value, independent of key order."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class Expectations:
    """For each uid the last status we sent and the names of children we created. Lost on restart, which is safe."""

    def __init__(self, clock: Clock | None = None, expires_after: float = EXPIRES_AFTER) -> None:
        self._clock: Clock = clock or SystemClock()
        self._expires_after = expires_after
        self._status: dict[str, tuple[str, float]] = {}
        self._created: dict[str, dict[str, float]] = {}

    def expect_status(self, uid: str, status: Json) -> None:
        """``status`` was applied to the object ``uid``."""
        self._status[uid] = (digest(status), self._clock.monotonic())

    def status_pending(self, uid: str, status: Json) -> bool:
        """Whether exactly this status was applied a moment ago, so that applying it again is useless."""
        entry = self._status.get(uid)
        return entry is not None and self._fresh(entry[1]) and entry[0] == digest(status)

    def expect_created(self, uid: str, name: str) -> None:
        """Child ``name`` of object ``uid`` was created and may not be in the store yet."""
        self._created.setdefault(uid, {})[name] = self._clock.monotonic()

    def creation_pending(self, uid: str, name: str) -> bool:
        """Whether the child was created a moment ago."""
        since = self._created.get(uid, {}).get(name)
        return since is not None and self._fresh(since)

    def observed(self, uid: str, name: str) -> None:
        """The child is in the store (or was deleted): nothing is pending any more."""
        names = self._created.get(uid)
        if names is not None:
            names.pop(name, None)
            if not names:
                del self._created[uid]

    def forget(self, uid: str) -> None:
        """The object is gone, or a write to it failed."""
        self._status.pop(uid, None)
        self._created.pop(uid, None)

    def expire(self) -> None:
        """Drop what is too old; called now and then so that nothing leaks."""
        self._status = {uid: entry for uid, entry in self._status.items() if self._fresh(entry[1])}
        kept = {u: {n: t for n, t in names.items() if self._fresh(t)} for u, names in self._created.items()}
        self._created = {uid: names for uid, names in kept.items() if names}

    def __len__(self) -> int:
        return len(self._status) + sum(len(names) for names in self._created.values())

    def _fresh(self, since: float) -> bool:
        return self._clock.monotonic() - since < self._expires_after
