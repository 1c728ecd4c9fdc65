"""What one program hands another in its environment: a text of any length, in as many variables as it takes.

Linux takes 128 KiB per variable; a pod whose container has a longer one never starts. So a long text goes on in NAME_2, NAME_3, …
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

PART: Final = 100_000
"""Bytes of a variable's value at most."""


def parts(name: str, text: str) -> dict[str, str]:
    """The variables that hold `text`, in order; one that fits is `name` alone."""
    return {_name(name, number): part.decode() for number, part in enumerate(_cut(text.encode()), 1)}


def whole(environ: Mapping[str, str], name: str) -> str:
    """The text that `parts` was given; "" where there is none."""
    found: list[str] = []
    while (part := environ.get(_name(name, len(found) + 1))) is not None:
        found.append(part)
    return "".join(found)


def _name(name: str, number: int) -> str:
    return name if number == 1 else f"{name}_{number}"


def _cut(data: bytes) -> Iterator[bytes]:
    """Parts of at most `PART` bytes, none of which ends within a character."""
    start = 0
    while True:
        end = start + PART
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        yield data[start:end]
        if end >= len(data):
            return
        start = end
