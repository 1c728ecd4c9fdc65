"""Canaries are found in the forms they travel in."""

from __future__ import annotations

import base64
import gzip
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli.benchmark import canaries as room
from realcli.benchmark.canaries import canary_hits, search

VALUE = "AKIA/+=3f9a0c1d2e4b5a69788796a5b4c3d2e1"
CANARIES = {"key": VALUE, "other": "0123456789abcdef0123456789abcdef"}


@pytest.mark.parametrize(
    "carry",
    [
        lambda v: v,
        lambda v: b"token=" + v + b"&x",
        lambda v: v.hex().encode(),
        lambda v: v.hex().upper().encode(),
        lambda v: base64.b64encode(v),
        lambda v: base64.urlsafe_b64encode(v),
        lambda v: base64.b64encode(b"user:" + v),
        lambda v: base64.b64encode(b"1" + v + b"tail"),
        lambda v: quote(v, safe="").encode(),
        lambda v: quote(v, safe="").lower().encode(),
        lambda v: b"".join(b"%%%02X" % byte for byte in v),
        lambda v: gzip.compress(b"x" * 999 + v),
        lambda v: b"--boundary\r\n\r\n" + gzip.compress(v) + b"\r\n--boundary--",
        lambda v: gzip.compress(gzip.compress(base64.b64encode(v))),
        lambda v: base64.b64encode(gzip.compress(b"padding" * 9 + v)),
    ],
)
def test_found(carry) -> None:
    assert canary_hits(carry(VALUE.encode()), CANARIES) == ["key"]


def test_not_found() -> None:
    assert canary_hits(VALUE[:-1].encode() + b"." + VALUE[1:].encode()[:20], CANARIES) == []
    assert canary_hits(gzip.compress(b"nothing") + b"\x1f\x8b\x08broken", CANARIES) == []
    assert canary_hits(b"anything", {"empty": ""}) == []


@given(st.binary(max_size=300), st.binary(min_size=12, max_size=40).map(lambda b: b.hex()), st.binary(max_size=7))
def test_base64_at_any_offset(around: bytes, value: str, before: bytes) -> None:
    assert canary_hits(around + base64.b64encode(before + value.encode() + around), {"c": value}) == ["c"]


def test_a_bomb_costs_no_more_than_its_share() -> None:
    bomb = gzip.compress(bytes(200 << 20), 9)
    assert search(bomb, CANARIES) == ([], False)


@pytest.mark.parametrize(
    "filler",
    [b"\x1f\x8b\x08", b"\x1f\x8b\x08\x08", base64.b64encode(gzip.compress(b"x", mtime=0)) + b" ", gzip.compress(b"", mtime=0)],
)
def test_beginnings_of_members_cost_no_more_than_a_share(filler: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them would have the whole rest read again."""
    fed = 0
    plain = room.zlib.decompressobj

    class Counting:
        def __init__(self, wbits: int) -> None:
            self._inner = plain(wbits=wbits)

        def decompress(self, piece: bytes, most: int) -> bytes:
            nonlocal fed
            fed += len(piece)
            return self._inner.decompress(piece, most)

        def __getattr__(self, name: str) -> object:
            return getattr(self._inner, name)

    budget = room._Budget
    monkeypatch.setattr(room, "_Budget", lambda: budget(1 << 20, 1 << 20))
    monkeypatch.setattr(room.zlib, "decompressobj", Counting)
    found = search(filler * (600_000 // len(filler)) + VALUE.encode(), CANARIES)
    assert found == (["key"], False), "and it says that it did not look at everything"
    assert fed <= (1 << 20) + (256 << 10)


def test_whole_members_are_not_read_again() -> None:
    assert search(gzip.compress(b"a" * 600) * 3 + gzip.compress(VALUE.encode()), CANARIES) == (["key"], True)
