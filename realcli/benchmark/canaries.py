"""Finding a run's canaries in bytes, in the forms they travel in: raw, base64, hex, URL-encoded, and inside gzip members. Pure.

Deeper disguises (encryption, a language) are not looked for: not finding a canary proves nothing by itself.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import quote

_MEMBER: Final = b"\x1f\x8b\x08"
MAX_UNPACKED: Final = 64 << 20
"""Bytes that one search unpacks at most, all members together."""
MAX_FED: Final = 64 << 20
"""Bytes that one search hands to the unpacker at most: whoever made the data may have filled it with beginnings of members."""
_FIRST: Final = 512
"""Of a member that may be none; what one attempt costs at least."""
_PIECE: Final = 256 << 10
MAX_DEPTH: Final = 4
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/_-]{16,}={0,2}")


def forms(value: bytes) -> frozenset[bytes]:
    """Spellings that name a value as surely as itself; hex and percent signs in lower case, as `canary_hits` compares them."""
    found = {value, value.hex().encode(), quote(value, safe="").encode().lower(), b"".join(b"%%%02x" % byte for byte in value)}
    for before in range(3):  # of the first and the last group of four only some bits are the value's
        code = base64.b64encode(bytes(before) + value)
        inner = code[-(-8 * before // 6) : (before + len(value)) * 8 // 6]
        found |= {inner, inner.translate(bytes.maketrans(b"+/", b"-_"))}
    return frozenset(found)


class Search(NamedTuple):
    """What a search found. Not `whole`: more was packed in the data than one search unpacks."""

    hits: list[str]
    whole: bool


def canary_hits(data: bytes, canaries: Mapping[str, str]) -> list[str]:
    """Names of the canaries that stand in `data`, sorted."""
    return search(data, canaries).hits


def search(data: bytes, canaries: Mapping[str, str]) -> Search:
    """The canaries that stand in `data`. Its cost is bounded by the length of the data, whatever they are."""
    left = {name: forms(value.encode()) for name, value in canaries.items() if value}
    found: set[str] = set()
    budget = _Budget()
    for text in _readings(data, budget, 0):
        lower = text.lower()
        found |= {name for name, spellings in left.items() if any(form in text or form in lower for form in spellings)}
        if len(found) == len(left):
            return Search(sorted(found), True)
    return Search(sorted(found), not budget.spent)


@dataclass(slots=True)
class _Budget:
    """What is left of a search."""

    unpacked: int = MAX_UNPACKED
    fed: int = MAX_FED

    @property
    def spent(self) -> bool:
        return self.unpacked <= 0 or self.fed <= 0


def _readings(data: bytes, budget: _Budget, depth: int) -> Iterator[bytes]:
    """The bytes themselves, then what they hold packed."""
    yield data
    if depth >= MAX_DEPTH:
        return
    for inner in _members(data, budget):
        yield from _readings(inner, budget, depth + 1)
    for packed in _decoded(data):
        for inner in _members(packed, budget):
            yield from _readings(inner, budget, depth + 1)


def _members(data: bytes, budget: _Budget) -> Iterator[bytes]:
    at = data.find(_MEMBER)
    while at >= 0 and not budget.spent:
        inner, used = _unpacked(memoryview(data)[at:], budget)
        if inner:
            yield inner
        at = data.find(_MEMBER, at + max(1, used))


def _unpacked(packed: memoryview, budget: _Budget) -> tuple[bytes, int]:
    """(what a member holds, as far as it is one and there is budget; its length if it is whole, else 0)."""
    unpacker = zlib.decompressobj(wbits=31)
    found = bytearray()
    position, size = 0, _FIRST
    while position < len(packed) and not unpacker.eof and not budget.spent:
        piece = packed[position : position + size]
        budget.fed -= size
        try:
            more = unpacker.decompress(piece, budget.unpacked)
        except zlib.error:
            break
        budget.unpacked -= len(more)
        found += more
        position += len(piece)
        size = min(size * 4, _PIECE)
    return bytes(found), position - len(unpacker.unused_data) if unpacker.eof else 0


def _decoded(data: bytes) -> Iterable[bytes]:
    """Runs of base64 that begin like a gzip member."""
    for run in _BASE64.finditer(data):
        code = run[0].rstrip(b"=").translate(bytes.maketrans(b"-_", b"+/"))
        if code.startswith(b"H4sI"):
            yield base64.b64decode(code[: len(code) // 4 * 4])
