"""Uids of objects that were seen deleted."""

from __future__ import annotations

import sys
from collections import deque
from typing import Final

MAX_TOMBSTONES: Final = 50_000
"""The slowest source that may still tell of a deleted object is a LIST of many pages: the API server keeps its continue token for
five minutes. That is 160 deletions a second, five times of what a sweep reaches whose pods run for seconds."""

FOR_GOOD: Final = sys.maxsize
"""The version of an end after which nothing comes: we deleted it."""

_UID_LENGTH: Final = 36


class Tombstones:
    """The last `MAX_TOMBSTONES` uids, each with the resourceVersion of its end. A watch with a selector says DELETED, too, of an
    object that has only lost its label: what is told of it later has a higher version, which nothing has that is deleted.

    A uid that is a UUID is kept as its number: 48 bytes instead of 85."""

    def __init__(self, most: int = MAX_TOMBSTONES) -> None:
        self._most = most
        self._known: dict[int | str, int] = {}
        self._order: deque[int | str] = deque()

    def covers(self, uid: str, version: int) -> bool:
        """Whether an object of that version is known to be gone."""
        return bool(self._known) and version <= self._known.get(_short(uid), -1)

    def __len__(self) -> int:
        return len(self._known)

    def add(self, uid: str, version: int) -> None:
        """It was seen deleted at that version; the oldest is forgotten where there are too many."""
        key = _short(uid)
        before = self._known.get(key)
        self._known[key] = version if before is None else max(version, before)
        if before is None:
            self._order.append(key)
        if len(self._order) > self._most:
            del self._known[self._order.popleft()]


def _short(uid: str) -> int | str:
    """The number of a UUID as the API server writes it; anything else stays what it is."""
    if len(uid) != _UID_LENGTH or uid[8] != "-" or uid[13] != "-" or uid[18] != "-" or uid[23] != "-" or not uid.islower():
        return uid
    try:
        number = bytes.fromhex(uid.replace("-", ""))
    except ValueError:
        return uid
    return int.from_bytes(number) if len(number) == 16 else uid
