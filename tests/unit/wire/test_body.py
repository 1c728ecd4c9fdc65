"""Bodies: any byte string passes, everything else is named in the error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli.wire import body
from realcli.wire.body import BadBody, Fields, plain_bytes, wire_bytes
from realcli.wire.frames import MAX_PAYLOAD


@given(st.binary(max_size=200))
def test_bytes_pass_as_plain_json(value: bytes) -> None:
    text = json.dumps(wire_bytes(value))
    text.encode("utf-8")
    assert plain_bytes(json.loads(text), "x") == value


@given(st.binary(max_size=200))
def test_any_payload_is_a_body_or_a_bad_body(raw: bytes) -> None:
    try:
        assert isinstance(body.load(raw), dict)
    except BadBody:
        assert raw


@pytest.mark.parametrize(
    ("getter", "value"),
    [
        (lambda f: f.integer("x"), True),
        (lambda f: f.integer("x"), -1),
        (lambda f: f.integer("x"), None),
        (lambda f: f.optional_integer("x"), "1"),
        (lambda f: f.number("x"), "1"),
        (lambda f: f.number("x"), False),
        (lambda f: f.text("x"), 1),
        (lambda f: f.optional_text("x"), 1),
        (lambda f: f.flag("x"), 1),
        (lambda f: f.items("x"), {}),
        (lambda f: f.mapping("x"), []),
        (lambda f: f.raw("x"), "a\0b"),
        (lambda f: f.raw("x"), {"b64": "?"}),
        (lambda f: f.raw("x"), "\ud800"),
        (lambda f: f.raws("x"), [1]),
        (lambda f: f.pairs("x"), [["A"]]),
        (lambda f: f.pairs("x"), [["", "v"]]),
        (lambda f: f.pairs("x"), [["A=B", "v"]]),
        (lambda f: f.pairs("x"), [["A", "v\0"]]),
    ],
)
def test_a_wrong_field_is_named(getter: Any, value: object) -> None:
    with pytest.raises(BadBody, match="x"):
        getter(Fields({"x": value}))


def test_pairs_and_optional_fields() -> None:
    fields = Fields({"env": [["A", "1"], ["A", {"b64": "/w=="}]], "none": None})
    assert fields.pairs("env") == {b"A": b"\xff"}
    assert (fields.optional_integer("none"), fields.optional_raw("absent"), fields.optional_text("none")) == (None, None, None)


def test_a_body_that_does_not_fit_is_refused_by_its_sender() -> None:
    with pytest.raises(ValueError, match="allowed"):
        body.dump({"x": "a" * MAX_PAYLOAD})
