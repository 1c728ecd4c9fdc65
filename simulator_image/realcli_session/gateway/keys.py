"""The real key never reaches the agent: a provider may quote it in an error, or echo the request's headers."""

from __future__ import annotations

REDACTED = b"[redacted]"


class KeyFilter:
    """Takes the key out of bytes. A stream passes untouched and undelayed unless a chunk ends like a beginning of the key."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()
        self._held = b""

    def whole(self, data: bytes) -> bytes:
        """Of bytes that are all there."""
        return data.replace(self._key, REDACTED)

    def text(self, text: str) -> str:
        """Of a text."""
        return text.replace(self._key.decode(), REDACTED.decode())

    def feed(self, chunk: bytes) -> bytes:
        """What of a stream may go on now."""
        data = self.whole(self._held + chunk)
        keep = self._tail(data)
        self._held = data[len(data) - keep :]
        return data[: len(data) - keep]

    def flush(self) -> bytes:
        """What was held back, once the stream has ended."""
        held, self._held = self._held, b""
        return held

    def _tail(self, data: bytes) -> int:
        """Length of the longest end of `data` that the key begins with."""
        for size in range(min(len(self._key) - 1, len(data)), 0, -1):
            if data.endswith(self._key[:size]):
                return size
        return 0
