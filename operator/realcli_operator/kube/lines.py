"""Lines out of chunks, without a limit on the length of a line and without searching a byte twice."""

from __future__ import annotations


class LineBuffer:
    """Bytes in, complete lines (without the newline) out; empty lines are dropped."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that ``chunk`` completes."""
        first, *rest = chunk.split(b"\n")
        if not rest:
            self._parts.append(first)
            return []
        self._parts.append(first)
        complete = [b"".join(self._parts), *rest[:-1]]
        self._parts = [rest[-1]]
        return [line for line in complete if line]
