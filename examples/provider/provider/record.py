"""What came in: an append-only log in memory, for tests that ask what really reached the provider."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from typing import Any

KEEP = 50  # requests kept with their bodies
_TEXT = 2_000  # characters kept of a text


class Record:
    """Counts of everything, the last requests in full."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._keys: Counter[str] = Counter()
        self._last: deque[dict[str, Any]] = deque(maxlen=KEEP)

    def add(self, path: str, status: int, key: str | None, body: object = None) -> None:
        """One request, with the status of its answer."""
        digest = hashlib.sha256(key.encode()).hexdigest() if key is not None else "none"
        self._counts[f"{path} {status}"] += 1
        self._keys[digest] += 1
        self._last.append({"n": self._counts.total(), "path": path, "status": status, "key": digest, "body": trimmed(body)})

    def show(self) -> dict[str, Any]:
        """As GET /requests answers: total, count by "path status", by sha256 of the key, last requests oldest first."""
        return {"total": self._counts.total(), "counts": self._counts, "keys": self._keys, "last": list(self._last)}


def trimmed(value: object) -> object:
    """A body with its long texts cut and its tools named only."""
    if isinstance(value, str):
        return value if len(value) <= _TEXT else value[:_TEXT] + f"… {len(value) - _TEXT} more"
    if isinstance(value, list):
        return [trimmed(item) for item in value]
    if isinstance(value, dict):
        named = {"tools": [tool.get("name") for tool in value["tools"]]} if isinstance(value.get("tools"), list) else {}
        return {key: trimmed(item) for key, item in {**value, **named}.items()}
    return value
