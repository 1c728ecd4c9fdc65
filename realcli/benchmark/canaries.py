"""Finding a run's canaries in bytes, in the forms they travel in. Pure.

Raw, UTF-16, base64 (each of its alignments, both alphabets), base32, hex, URL-encoded; any of them broken into lines or groups,
base64 of base64, and inside gzip members. Deeper disguises (encryption, a language) are not looked for: not finding one proves
nothing by itself.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote

import re2

_MEMBER: Final = b"\x1f\x8b\x08"
MAX_UNPACKED: Final = 64 << 20
"""Bytes that one search unpacks at most, all members together."""
MAX_FED: Final = 64 << 20
"""Bytes that one search hands to the unpacker at most: whoever made the data may have filled it with beginnings of members."""
_FIRST: Final = 512
"""Of a member that may be none; what one attempt costs at least."""
_PIECE: Final = 256 << 10
MAX_DEPTH: Final = 4
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/_-]{24,}={0,2}")
_FOLDED: Final = re.compile(rb"([0-9a-f]{2})+|[^%]*(%[0-9a-f]{2}[^%]*)+")
"""Hex and percent signs are written in capitals too."""
_BREAKS: Final = b"\r\n"
_BLANKS: Final = b" \t\r\n:"
"""What tools put between lines and groups of what they encode."""


def forms(value: bytes) -> frozenset[bytes]:
    """Spellings that name a value as surely as itself; hex and percent signs in lower case, as `canary_hits` compares them."""
    found = {quote(value, safe="").encode().lower(), b"".join(b"%%%02x" % byte for byte in value)}
    text = value.decode("utf-8", "replace")
    for written in (value, text.encode("utf-16-le"), text.encode("utf-16-be")):
        found |= {
            written,
            written.hex().encode(),
            *_grouped(written, base64.b64encode, 3, 4),
            *_grouped(written, base64.b32encode, 5, 8),
        }
    return frozenset(found | {form.translate(bytes.maketrans(b"+/", b"-_")) for form in found})


def _grouped(value: bytes, encode: Callable[[bytes], bytes], size: int, length: int) -> Iterator[bytes]:
    """What of an encoding in groups of `size` bytes (`length` characters) is the value's alone, wherever in a group it begins.

    Of the first and the last group only some bits are the value's.
    """
    bits = 8 * size // length
    for before in range(size):
        code = encode(bytes(before) + value)
        yield code[-(-8 * before // bits) : (before + len(value)) * 8 // bits]


class Search(NamedTuple):
    """What a search found. Not `whole`: more was packed in the data than one search unpacks."""

    hits: list[str]
    whole: bool


def canary_hits(data: bytes, canaries: Mapping[str, str]) -> list[str]:
    """Names of the canaries that stand in `data`, sorted."""
    return search(data, canaries).hits


def search(data: bytes, canaries: Mapping[str, str]) -> Search:
    """The canaries that stand in `data`. Its cost is bounded by the length of the data, whatever they are."""
    wanted = {name: _pattern(value) for name, value in canaries.items() if value}
    found: set[str] = set()
    budget = _Budget()
    for text in _readings(data, budget, 0):
        looked = {text, text.translate(None, _BLANKS)}
        found |= {name for name, pattern in wanted.items() if any(pattern.search(one) is not None for one in looked)}
        if len(found) == len(wanted):
            return Search(sorted(found), True)
    return Search(sorted(found), not budget.spent)


@lru_cache(maxsize=256)
def _pattern(value: str) -> re2._Regexp:
    """One expression for all spellings, as a search through a large file by each of them takes as often as long."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    exact = sorted(forms(value.encode()))
    return re2.compile(
        b"|".join(b"(?i:%s)" % _quoted(form) if _FOLDED.fullmatch(form) else _quoted(form) for form in exact), options
    )


def _quoted(form: bytes) -> bytes:
    return b"".join(b"\\x%02x" % byte for byte in form)


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
    decoded = b"\0".join(_decoded(data.translate(None, _BREAKS)))
    if decoded:
        yield from _readings(decoded, budget, depth + 1)


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
    """What runs of base64 stand for."""
    for run in _BASE64.finditer(data):
        code = run[0].rstrip(b"=").translate(bytes.maketrans(b"-_", b"+/"))
        yield base64.b64decode(code[: len(code) // 4 * 4])
