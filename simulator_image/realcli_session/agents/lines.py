"""Lines out of a program's output, whatever it prints: any chunking, any bytes, bounded memory."""

from __future__ import annotations

from dataclasses import dataclass

MAX_LINE = 16 << 20


@dataclass(frozen=True, slots=True)
class Oversize:
    """A line that was longer than the bound; only its length was kept."""

    size: int


class LineSplitter:
    """`feed` bytes, get complete lines without their newline; `close` gives an unfinished last one."""

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._max = max_line
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes | Oversize]:
        """Lines that end in this chunk."""
        lines: list[bytes | Oversize] = []
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            self._add(piece)
            lines.append(self._take())
        self._add(rest)
        return lines

    def close(self) -> list[bytes | Oversize]:
        """What was left without a newline."""
        return [self._take()] if self._size else []

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._max:
            self._parts.clear()
        elif piece:
            self._parts.append(piece)

    def _take(self) -> bytes | Oversize:
        line = Oversize(self._size) if self._size > self._max else b"".join(self._parts)
        self._parts, self._size = [], 0
        return line


class Tail:
    """The last bytes of a stream."""

    def __init__(self, limit: int = 64 << 10) -> None:
        self._limit = limit
        self._data = b""

    def add(self, chunk: bytes) -> None:
        """Append; older bytes fall out."""
        self._data = (self._data + chunk)[-self._limit :]

    def text(self) -> str:
        """As text; undecodable bytes become replacement characters."""
        return self._data.decode("utf-8", "replace")
