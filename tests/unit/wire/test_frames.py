"""Frames survive any cut; anything else is one typed error and bounded memory."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli.wire.frames import MARK, MAX_HEADER, MAX_PAYLOAD, Frame, FrameDecoder, ProtocolError, encode

values = st.one_of(st.none(), st.booleans(), st.integers(-(2**60), 2**60), st.text(max_size=20))
headers = st.dictionaries(st.text(max_size=8), values, max_size=5).map(
    lambda extra: {"t": "x"} | {"f" + k: v for k, v in extra.items()}
)
frames = st.lists(st.tuples(headers, st.binary(max_size=300)), max_size=6)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces, start = [], 0
    for size in sizes:
        pieces.append(data[start : start + size])
        start += size
    return [*pieces, data[start:]]


@given(frames, st.lists(st.integers(0, 40), max_size=60))
def test_any_split_gives_the_same_frames(sent: list[tuple[dict[str, Any], bytes]], sizes: list[int]) -> None:
    stream = b"".join(encode(header, payload) for header, payload in sent)
    decoder = FrameDecoder()
    got = [frame for piece in cut(stream, sizes) for frame in decoder.feed(piece)]
    assert got == [Frame(header, payload) for header, payload in sent]
    assert decoder.buffered == 0


@given(frames, st.binary(max_size=200), st.lists(st.integers(0, 40), max_size=20))
def test_garbage_is_an_error_or_waits_for_more_and_never_another_frame(
    sent: list[tuple[dict[str, Any], bytes]], garbage: bytes, sizes: list[int]
) -> None:
    stream = b"".join(encode(header, payload) for header, payload in sent)
    decoder = FrameDecoder()
    decoder.feed(stream)
    try:
        for piece in cut(garbage, sizes):
            assert decoder.feed(piece) == []  # 200 random bytes do not spell a frame
    except ProtocolError:
        with pytest.raises(ProtocolError):
            decoder.feed(encode({"t": "x"}))
        assert decoder.buffered == 0
    else:
        assert decoder.buffered == len(garbage)
        assert MARK.startswith(garbage[:4])


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_lengths_are_believed_only_within_limits(header: int, payload: int) -> None:
    decoder = FrameDecoder()
    prefix = struct.pack(">4sII", MARK, header, payload)
    if 0 < header <= MAX_HEADER and payload <= MAX_PAYLOAD:
        assert decoder.feed(prefix) == []
        assert decoder.buffered == len(prefix)
    else:
        with pytest.raises(ProtocolError, match="length"):
            decoder.feed(prefix)


@given(st.binary(max_size=100), st.integers(0, 110))
def test_a_cut_stream_shows_as_buffered_bytes(payload: bytes, end: int) -> None:
    stream = encode({"t": "x"}, payload)
    decoder = FrameDecoder()
    got = decoder.feed(stream[:end])
    assert (len(got), decoder.buffered) == ((1, 0) if end >= len(stream) else (0, min(end, len(stream))))


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"t":1}',
        b'{"t":"x","n":NaN}',
        b'{"t":"\xff"}',
        b"[" * 60_000,
        b'{"t":"x","n":' + b"9" * 5000 + b"}",
    ],
    ids=["empty", "cut", "list", "no-kind", "kind-not-text", "nan", "not-ascii", "deep", "huge-number"],
)
def test_headers_that_are_refused(header: bytes) -> None:
    with pytest.raises(ProtocolError):
        FrameDecoder().feed(struct.pack(">4sII", MARK, len(header), 0) + header)


def test_another_version_is_refused_at_once() -> None:
    with pytest.raises(ProtocolError, match="RCW1"):
        FrameDecoder().feed(b"RCW2")


def test_the_largest_frame_passes_and_one_more_byte_does_not() -> None:
    fill = MAX_HEADER - len(json.dumps({"t": "x", "f": ""}, separators=(",", ":")))
    largest = {"t": "x", "f": "a" * fill}
    (frame,) = FrameDecoder().feed(encode(largest, bytes(MAX_PAYLOAD)))
    assert len(frame.payload) == MAX_PAYLOAD
    with pytest.raises(ValueError, match="payload"):
        encode({"t": "x"}, bytes(MAX_PAYLOAD + 1))
    with pytest.raises(ValueError, match="header"):
        encode(largest | {"g": 1})


@pytest.mark.parametrize("value", [None, -1, 1.5, "1", True, 1 << 53])
def test_numbers_of_a_header_are_checked(value: object) -> None:
    with pytest.raises(ProtocolError, match="id"):
        Frame({"t": "x", "id": value}, b"").number("id")
