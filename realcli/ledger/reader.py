"""Reads attempts out of an object store: which ones lie below a prefix, their files, their events."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from realcli.ledger.events import EVENT, Event
from realcli.storage.paths import join
from realcli.storage.port import NotFound, ObjectStore

_OF_AN_ATTEMPT = re.compile(r"(?:(?P<root>.*)/)?(?:work-seal\.json|spool\.json|ledger/[0-9]{6,}\.jsonl)")


MAX_SEGMENT = 8 << 20
"""Bytes of the longest segment that is read: one is closed at half of it, and an event is an eighth at most."""
MAX_WHOLE = 256 << 20
"""Bytes of any other file that is read as a whole: many times what a session makes of a seal."""


class FileTooLong(ValueError):
    """A file that no session has written so: it is not taken into memory."""


def get_bounded(store: ObjectStore, key: str, limit: int = MAX_WHOLE) -> bytes:
    """One object, if it is no longer than `limit` bytes; FileTooLong, NotFound."""
    size = next((item.size for item in store.list(key) if item.key == key), 0)
    if size > limit:
        raise FileTooLong(f"{key} has {size} bytes, at most {limit} are read as a whole")
    return store.get(key)


class StoreReader:
    """One attempt in a store (`realcli.ledger.verify.Reader`)."""

    def __init__(self, store: ObjectStore, root: str) -> None:
        self._store = store
        self._root = root.strip("/")
        base = self._root + "/" if self._root else ""
        self._sizes = {item.key.removeprefix(base): item.size for item in store.list(base)}
        self._names = list(self._sizes)

    def names(self) -> list[str]:
        """Every file, relative to the attempt."""
        return self._names

    def read(self, name: str) -> bytes | None:
        """Content, None if there is none; FileTooLong."""
        limit = MAX_SEGMENT if name.startswith("ledger/") else MAX_WHOLE
        if (size := self._sizes.get(name, 0)) > limit:
            raise FileTooLong(f"{name} has {size} bytes, at most {limit} are read as a whole")
        try:
            return self._store.get(join(self._root, name))
        except NotFound:
            return None

    def sha256(self, name: str) -> tuple[str, int] | None:
        """(hex digest, size) without holding the object in memory."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "object"
            try:
                self._store.download(join(self._root, name), path)
            except NotFound:
                return None
            with path.open("rb") as source:
                return hashlib.file_digest(source, "sha256").hexdigest(), path.stat().st_size

    def events(self) -> Iterator[Event]:
        """The ledger's events in order; kinds this version does not know are kept. ValueError names a broken line."""
        for name in sorted(name for name in self._names if name.startswith("ledger/")):
            for number, line in enumerate((self.read(name) or b"").splitlines(), start=1):
                try:
                    yield EVENT.validate_json(line)
                except ValueError as error:
                    raise ValueError(f"{name}:{number} is not an event: {error}") from error


def attempts_below(store: ObjectStore, prefix: str) -> list[str]:
    """Roots of all attempts at or below a prefix (folders with segments of a ledger, a seal or a copied spool), sorted."""
    base = prefix.strip("/")
    base = base + "/" if base else ""
    found = (_OF_AN_ATTEMPT.fullmatch(item.key) for item in store.list(base))
    return sorted({match["root"] or "" for match in found if match})
