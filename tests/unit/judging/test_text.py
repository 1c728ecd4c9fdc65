"""Which two texts are the same text, and what nobody sees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli.judging.text import normal, seen

SAME = {
    "white space": ("a  b\n\tc", "a b c"),
    "line ends": ("a\r\nb\rc\u2028d", "a b c d"),
    "odd spaces": ("a\u00a0b\u2003c", "a b c"),
    "quotation marks": ("\u201ea\u201c \u2018b\u2019 \u00abc\u00bb `d`", "\"a\" 'b' \"c\" 'd'"),
    "compatibility forms": ("\ufb01le \uff21\u2460", "file A1"),
    "composed and decomposed": ("e\u0301", "\u00e9"),
    "zero width": ("pass\u200bword\ufeff\u2060", "password"),
    "tag characters": ("ok\U000e0068\U000e0069", "ok"),
    "direction": ("a\u202eb\u202c", "ab"),
    "controls": ("a\x1b[31mb\x00", "a[31mb"),
    "blank letters": ("a\u3164b", "ab"),
    "surrogates": ("a\ud800b", "ab"),
    "around it": ("  a ", "a"),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_same(one: str, other: str) -> None:
    assert normal(one) == normal(other)


@pytest.mark.parametrize(("one", "other"), [("done", "Done"), ("a b", "ab"), ("1.0", "10"), ("not ok", "ok")])
def test_not_the_same(one: str, other: str) -> None:
    assert normal(one) != normal(other)


def test_what_is_left_out_is_counted() -> None:
    assert seen("a\u200b\u200bb\r\n\x1bc") == ("ab\nc", 3)
    assert seen("plain\n\ttext") == ("plain\n\ttext", 0)


@given(st.text(st.characters(exclude_categories=[])))
def test_normal_form_is_one(text: str) -> None:
    once = normal(text)
    assert normal(once) == once
    once.encode()


@given(st.text(st.characters(exclude_categories=[])))
def test_what_is_shown_can_be_quoted(text: str) -> None:
    assert normal(seen(text)[0]) == normal(text)
