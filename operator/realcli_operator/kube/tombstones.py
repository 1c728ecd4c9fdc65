"""Uids of objects that were seen deleted."""

from __future__ import annotations

from collections import deque
from typing import Final

MAX_TOMBSTONES: Final = 50_000
"""The slowest source that may still tell of a deleted object is a LIST of many pages: the API server keeps its continue token for
five minutes. That is 160 deletions a second, five times of what a sweep reaches whose pods run for seconds."""

_UID_LENGTH: Final = 36


class Tombstones:
    """The last `MAX_TOMBSTONES` uids. One that is a UUID is kept as its number: 48 bytes instead of 85, and a set with the order
    beside it takes half of what an ordered dict does."""

    def __init__(self, most: int = MAX_TOMBSTONES) -> None:
        self._most = most
        self._known: set[int | str] = set()
        self._order: deque[int | str] = deque()

    def __contains__(self, uid: str) -> bool:
        return bool(self._known) and _short(uid) in self._known

    def __len__(self) -> int:
        return len(self._known)

    def add(self, uid: str) -> None:
        """It was seen deleted; the oldest is forgotten where there are too many. To hear it again makes it no newer: an object is
        deleted once."""
        key = _short(uid)
        if key in self._known:
            return
        self._known.add(key)
        self._order.append(key)
        if len(self._order) > self._most:
            self._known.discard(self._order.popleft())


def _short(uid: str) -> int | str:
    """The number of a UUID as the API server writes it; anything else stays what it is."""
    if len(uid) != _UID_LENGTH or uid[8] != "-" or uid[13] != "-" or uid[18] != "-" or uid[23] != "-" or not uid.islower():
        return uid
    try:
        number = bytes.fromhex(uid.replace("-", ""))
    except ValueError:
        return uid
    return int.from_bytes(number) if len(number) == 16 else uid
