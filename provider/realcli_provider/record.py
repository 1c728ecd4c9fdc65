"""What came in: an append-only log in memory, for tests and people who ask what really reached the provider."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, deque
from collections.abc import Mapping
from typing import Any

KEEP = 50  # requests kept with their bodies
KEEP_FULL = 64 << 20  # bytes of bodies kept whole where GET /control/requests is served
_TEXT = 2_000  # characters kept of a text
_SECRET = ("x-api-key", "authorization")


class Record:
    """Counts of everything, the last requests in full."""

    def __init__(self, full: bool = False) -> None:
        self._counts: Counter[str] = Counter()
        self._keys: Counter[str] = Counter()
        self._last: deque[dict[str, Any]] = deque(maxlen=KEEP)
        self._full: deque[tuple[int, dict[str, Any]]] | None = deque() if full else None
        self._size = 0

    def add(self, path: str, status: int, key: str | None, body: object, headers: Mapping[str, str], rule: str | None) -> None:
        """One request, with the status of its answer (0: none) and the part of the script that gave it."""
        digest = hashlib.sha256(key.encode()).hexdigest() if key is not None else "none"
        self._counts[f"{path} {status}"] += 1
        self._keys[digest] += 1
        entry = {"n": self._counts.total(), "path": path, "status": status, "key": digest, "rule": rule}
        self._last.append({**entry, "body": trimmed(body)})
        if self._full is not None:
            shown = {name.lower(): "…" if name.lower() in _SECRET else value for name, value in headers.items()}
            size = len(json.dumps(body))
            self._full.append((size, {**entry, "headers": shown, "body": body}))
            self._size += size
            while self._size > KEEP_FULL and len(self._full) > 1:
                self._size -= self._full.popleft()[0]

    def show(self) -> dict[str, Any]:
        """As GET /requests answers: total, count by "path status", by sha256 of the key, last requests oldest first."""
        return {"total": self._counts.total(), "counts": self._counts, "keys": self._keys, "last": list(self._last)}

    def show_full(self) -> list[dict[str, Any]]:
        """As GET /control/requests answers: every request with its headers (keys blanked) and its whole body."""
        return [entry for _, entry in self._full or ()]


def trimmed(value: object) -> object:
    """A body with its long texts cut and its tools named only."""
    if isinstance(value, str):
        return value if len(value) <= _TEXT else value[:_TEXT] + f"… {len(value) - _TEXT} more"
    if isinstance(value, list):
        return [trimmed(item) for item in value]
    if isinstance(value, dict):
        named = {"tools": [_name(tool) for tool in value["tools"]]} if isinstance(value.get("tools"), list) else {}
        return {key: trimmed(item) for key, item in {**value, **named}.items()}
    return value


def _name(tool: object) -> object:
    if not isinstance(tool, dict):
        return tool
    inner = tool.get("function")
    return tool.get("name") or (inner.get("name") if isinstance(inner, dict) else None) or tool.get("type")
