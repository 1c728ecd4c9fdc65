from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli.benchmark.edits import apply_edit, edit_present
from realcli.benchmark.models import Edit


def an_edit(*lines: str, after: str | None = None) -> Edit:
    return Edit(path="/app/notes.txt", after=after, insert=list(lines))


@pytest.mark.parametrize(
    ("name", "content", "edit", "expected"),
    [
        ("after the first match", b"a\nb x\nb y\nc\n", an_edit("new", after="b"), b"a\nb x\nnew\nb y\nc\n"),
        ("at the end", b"a\n", an_edit("1", "2"), b"a\n1\n2\n"),
        ("no match goes to the end", b"a\nb\n", an_edit("new", after="zzz"), b"a\nb\nnew\n"),
        ("last line without newline", b"a", an_edit("new"), b"a\nnew\n"),
        ("match on the last line without newline", b"a\nb", an_edit("new", after="b"), b"a\nb\nnew\n"),
        ("empty file", b"", an_edit("new", after="b"), b"new\n"),
        ("windows line ends are kept", b"a\r\nb\r\n", an_edit("new", after="a"), b"a\r\nnew\r\nb\r\n"),
        ("not text", b"\xff\x00\nb\n", an_edit("new", after="b"), b"\xff\x00\nb\nnew\n"),
        ("a form feed ends no line", b"a\x0cb\nc\n", an_edit("new", after="a"), b"a\x0cb\nnew\nc\n"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_edit_is_put_where_it_says(name: str, content: bytes, edit: Edit, expected: bytes) -> None:
    assert apply_edit(content, edit) == expected


@pytest.mark.parametrize(
    ("content", "present"),
    [
        (b"x\n# keep me\n# and me\ny\n", True),
        (b"# and me\nmoved\n# keep me", True),
        (b"# keep me  \n# and me\r\n", True),
        (b"x\n# keep me\n", False),
        (b"x # keep me\n# and me\n", False),
        (b"", False),
    ],
)
def test_presence_means_every_line_as_a_whole_line(content: bytes, present: bool) -> None:
    assert edit_present(content, an_edit("# keep me", "# and me")) is present


def test_a_line_inserted_twice_has_to_stand_twice() -> None:
    edit = an_edit("---", "text", "---")
    assert not edit_present(b"---\ntext\n", edit)
    assert edit_present(b"---\ntext\n---\n", edit)


LINE = st.text(st.characters(exclude_characters="\n\r", codec="utf-8"), min_size=1).filter(lambda text: text.encode().strip())
LINES = st.lists(LINE, min_size=1, max_size=4)


@given(content=st.binary(), lines=LINES, after=st.none() | LINE)
def test_an_applied_edit_is_present_and_nothing_else_changes(content: bytes, lines: list[str], after: str | None) -> None:
    edit = an_edit(*lines, after=after)
    edited = apply_edit(content, edit)
    assert edit_present(edited, edit)
    block = b"".join(line.encode() + (b"\r\n" if b"\r\n" in content else b"\n") for line in lines)
    assert block in edited
    rest = edited.replace(block, b"", 1)
    assert rest.rstrip(b"\r\n") == content.rstrip(b"\r\n") or block in content
