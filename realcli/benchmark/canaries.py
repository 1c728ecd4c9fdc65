"""Finding a run's canaries in bytes, in the forms they travel in: raw, base64, hex, URL-encoded, and inside gzip members. Pure.

Deeper disguises (encryption, a language) are not looked for: not finding a canary proves nothing by itself.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import quote

_MEMBER: Final = b"\x1f\x8b\x08"
MAX_UNPACKED: Final = 64 << 20
"""Bytes that one search unpacks at most, all members together."""
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


def canary_hits(data: bytes, canaries: Mapping[str, str]) -> list[str]:
    """Names of the canaries that stand in `data`, sorted."""
    left = {name: forms(value.encode()) for name, value in canaries.items() if value}
    found: set[str] = set()
    for text in _readings(data, [MAX_UNPACKED], 0):
        lower = text.lower()
        found |= {name for name, spellings in left.items() if any(form in text or form in lower for form in spellings)}
        if len(found) == len(left):
            break
    return sorted(found)


def _readings(data: bytes, budget: list[int], depth: int) -> Iterator[bytes]:
    """The bytes themselves, then what they hold packed."""
    yield data
    if depth >= MAX_DEPTH:
        return
    for inner in _members(data, budget):
        yield from _readings(inner, budget, depth + 1)
    for packed in _decoded(data):
        for inner in _members(packed, budget):
            yield from _readings(inner, budget, depth + 1)


def _members(data: bytes, budget: list[int]) -> Iterator[bytes]:
    at = data.find(_MEMBER)
    while at >= 0 and budget[0] > 0:
        unpacker = zlib.decompressobj(wbits=31)
        try:
            inner = unpacker.decompress(data[at:], budget[0])
        except zlib.error:
            inner = b""
        if inner:
            budget[0] -= len(inner)
            yield inner
        at = data.find(_MEMBER, at + 1)


def _decoded(data: bytes) -> Iterable[bytes]:
    """Runs of base64 that begin like a gzip member."""
    for run in _BASE64.finditer(data):
        code = run[0].rstrip(b"=").translate(bytes.maketrans(b"-_", b"+/"))
        if code.startswith(b"H4sI"):
            yield base64.b64decode(code[: len(code) // 4 * 4])
