"""Canaries are found in the forms they travel in."""

from __future__ import annotations

import base64
import gzip
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli.benchmark.canaries import canary_hits

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
    assert canary_hits(bomb, CANARIES) == []
