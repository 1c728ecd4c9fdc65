"""Server-sent events from bytes in any chunking (WHATWG HTML, 9.2.6). Reads along; the bytes are passed on untouched."""

from __future__ import annotations

from typing import NamedTuple

MAX_EVENT = 32 << 20


class SseEvent(NamedTuple):
    """One dispatched event."""

    event: str
    data: str


class SseTooLong(ValueError):
    """An event is longer than the bound; nothing of it is kept."""


class SseParser:
    """`feed` any bytes, get the events that became complete."""

    def __init__(self, max_event: int = MAX_EVENT) -> None:
        self._max = max_event
        self._line: list[bytes] = []
        self._held = 0  # bytes of the unfinished event
        self._event = ""
        self._data: list[str] = []
        self._skip_lf = False
        self._first = True

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Events that end in this chunk. Raises SseTooLong; the parser is of no use afterwards."""
        done: list[SseEvent] = []
        if not chunk:
            return done
        if self._skip_lf:
            chunk = chunk.removeprefix(b"\n")
        for piece in chunk.splitlines(keepends=True):
            self._held += len(piece)
            if self._held > self._max:
                raise SseTooLong(f"an event of the provider is longer than {self._max} bytes")
            body = piece.rstrip(b"\r\n")
            self._line.append(body)
            if len(body) == len(piece):
                continue  # the line goes on in the next chunk
            line, self._line = b"".join(self._line), []
            event = self._take(line)
            if event is not None:
                done.append(event)
        self._skip_lf = chunk.endswith(b"\r")
        return done

    def _take(self, line: bytes) -> SseEvent | None:
        if self._first:
            line, self._first = line.removeprefix(b"\xef\xbb\xbf"), False
        if not line:
            event = SseEvent(self._event or "message", "\n".join(self._data)) if self._data else None
            self._event, self._data, self._held = "", [], 0
            return event
        name, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        if name == b"event":
            self._event = text
        elif name == b"data":
            self._data.append(text)
        return None
