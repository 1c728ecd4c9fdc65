"""Globs as states, against a plain reference."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli_runner.errors import Failure
from realcli_runner.globs import Globs


def matches(glob: bytes, path: bytes) -> bool:
    globs = Globs([glob])
    states, matched = globs.start, False
    for name in path.strip(b"/").split(b"/"):
        matched, states = globs.step(states, name)
    return matched


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("/app/a.py", "/app/a.py", True),
        ("/app/a.py", "/app/b.py", False),
        ("/app", "/app/a", False),
        ("/app/*", "/app/.hidden", True),
        ("/app/*", "/app/a/b", False),
        ("/app/**", "/app", False),
        ("/app/**", "/app/a", True),
        ("/app/**", "/app/a/b/c", True),
        ("/app/**/c", "/app/c", True),
        ("/app/**/c", "/app/a/b/c", True),
        ("/app/**/c/*.py", "/app/c/x/c/y.py", True),
        ("/**", "/x", True),
        ("/a?c", "/abc", True),
        ("/a?c", "/ac", False),
        ("/a[0-9]", "/a7", True),
        ("/a[!0-9]", "/a7", False),
        ("/a[^0-9]", "/ax", True),
        ("/a[]x]", "/a]", True),
        ("/a[", "/a[", True),
        ("/a[b", "/a[b", True),
        ("/a[\\]", "/a\\", True),
        ("/a.b", "/axb", False),
        ("/*\n", "/a\n", True),
    ],
)
def test_table(glob: str, path: str, expected: bool) -> None:
    assert matches(glob.encode(), path.encode()) is expected


part = st.text("ab*?.-", min_size=1, max_size=4).filter(lambda t: t not in (".", "..", "**"))
name = st.text("ab.-", min_size=1, max_size=4).filter(lambda t: t not in (".", ".."))


@given(st.lists(st.one_of(part, st.just("**")), min_size=1, max_size=4), st.lists(name, min_size=1, max_size=5))
def test_against_a_regular_expression(parts: list[str], path: list[str]) -> None:
    expression = ""
    for number, item in enumerate(parts):
        if item != "**":
            expression += "/" + "".join({"*": "[^/]*", "?": "[^/]"}.get(char, re.escape(char)) for char in item)
        elif number == len(parts) - 1:
            expression += "(?:/[^/]+)+"
        else:
            expression += "(?:/[^/]+)*"
    wanted = re.fullmatch(expression, "/" + "/".join(path)) is not None
    assert matches(("/" + "/".join(parts)).encode(), ("/" + "/".join(path)).encode()) is wanted


def test_only_literal_names_need_no_listing() -> None:
    globs = Globs([b"/app/x", b"/app/y/*", b"/srv/z"])
    assert globs.literals(globs.start) == [b"app", b"srv"]
    below = globs.step(globs.start, b"app").below
    assert globs.literals(below) == [b"x", b"y"]
    assert globs.literals(globs.step(below, b"y").below) is None


@pytest.mark.parametrize("glob", [b"app/*", b"/app/../x", b"/", b"/a[z-a]"])
def test_refused(glob: bytes) -> None:
    with pytest.raises(Failure):
        Globs([glob])


def test_many_stars_are_not_slow() -> None:
    assert not matches(b"/" + b"*" * 50 + b"x", b"/" + b"a" * 200)
