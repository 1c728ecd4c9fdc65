"""Texts of commands, globs, expressions and the keys of `where`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli.ledger.events import (
    ZERO_HASH,
    AgentMessage,
    AgentQuestion,
    Ask,
    BlobRef,
    Command,
    Data,
    FileDelete,
    FileRead,
    InterimClaim,
    SliceReleased,
    ToolResult,
    UserMessage,
)
from realcli.trajectory.commands import command_text, simple_commands
from realcli.trajectory.matching import EventPattern, matches, parse_pattern, words_reach
from realcli.trajectory.patterns import MAX_PATTERN, MAX_SEARCHED, NoBlobs, PatternError, expression, path_matches, search
from realcli_runner.globs import Globs
from tests.support.ledgers import Ledger

SCRIPTS: list[tuple[str, tuple[str, ...]]] = [
    ("ls -la", ("ls -la",)),
    ("cd /a && make all; echo done", ("cd /a", "make all", "echo done")),
    ("a | b |& c || d & e", ("a", "b", "c", "d", "e")),
    ("/usr/bin/git   status", ("git status",)),
    ("A=1 B='x y' sudo -E ls", ("sudo -E ls",)),
    ("env -i A=1 timeout -k 5 10 nice -n 5 make x", ("make x",)),
    ("if test -f x; then rm x; else true; fi", ("test -f x", "rm x", "true", "fi")),
    ("echo 'a; rm -rf /' \"b && c\"", ("echo a; rm -rf / b && c",)),
    ("echo a \\; b", ("echo a ; b",)),
    ("make \\\n  all", ("make all",)),
    ("cat > f <<'EOF'\nrm -rf /\nEOF\nls", ("cat > f", "ls")),
    ("cat <<-A <<B\n1\nA\n2\nB\nls", ("cat", "ls")),
    ("grep x <<< 'a; b'", ("grep x <<< a; b",)),
    ("make # ; rm x\nls", ("make", "ls")),
    ("# don't\nrm x", ("rm x",)),
    ("(cd a; ls)", ("cd a", "ls")),
    ("x=$(rm y)", ("rm y",)),
    ("make 2>&1 >log", ("make 2>&1 >log",)),
    ("echo 'never closed", ("echo 'never closed",)),
    ("cat <<EOF\nrm x", ("cat",)),
    ("", ()),
]


@pytest.mark.parametrize(("script", "parts"), SCRIPTS, ids=[row[0] for row in SCRIPTS])
def test_simple_commands(script: str, parts: tuple[str, ...]) -> None:
    assert simple_commands(script) == parts


RECORDS: list[tuple[list[str], str, tuple[str, ...], tuple[str, ...]]] = [
    (["/usr/bin/git", "status"], "exec", ("git status",), ()),
    (["-bash"], "exec", ("bash",), ()),
    (["/bin/bash", "-lc", "cd a && make"], "exec", ("bash -c",), ("cd a",)),
    (["bash", "run.sh", "-c"], "exec", ("bash run.sh -c",), ()),
    (["sh", "-c"], "exec", ("sh -c",), ()),
    (["cd a && make"], "tool_text", ("cd a", "make"), ()),
    (["bash", "-lc", "cd a && make"], "tool_text", ("cd a", "make"), ()),
    (["rg", "a b"], "tool_text", ("rg a b",), ()),
]


@pytest.mark.parametrize(("argv", "record", "certain", "possible"), RECORDS, ids=[" ".join(row[0]) + row[1] for row in RECORDS])
def test_text_of_a_record(argv: list[str], record: Any, certain: tuple[str, ...], possible: tuple[str, ...]) -> None:
    got = command_text(Command(id=1, argv=argv, record=record))
    assert (got.certain, got.possible) == (certain, possible)


@given(st.text(max_size=60))
def test_any_text_can_be_taken_apart(script: str) -> None:
    for part in simple_commands(script):
        assert part == " ".join(part.split())


GLOBS: list[tuple[str, str, bool]] = [
    ("/a/b.py", "/a/b.py", True),
    ("/a/*.py", "/a/b.py", True),
    ("/a/*.py", "/a/c/b.py", False),
    ("/a/**", "/a/c/b.py", True),
    ("/a/**", "/a", False),
    ("/a/**/b.py", "/a/b.py", True),
    ("/a/**/b.py", "/a/c/d/b.py", True),
    ("/a/**/b.py", "/a/c/xb.py", False),
    ("/a/?.py", "/a/b.py", True),
    ("/a/?.py", "/a//.py", False),
    ("/a/[bc].py", "/a/c.py", True),
    ("/a/[!bc].py", "/a/c.py", False),
    ("/a/[!b].py", "/a/c.py", True),
    ("/a/[b].py", "/a/[b].py", True),
    ("/a/x[.py", "/a/x[.py", True),
    ("/a/(b).py", "/a/(b).py", True),
    ("/a/*", "/a/.hidden", True),
    ("/a/*", "/a/b\nc", True),
    ("/a/b", "/a/bc", False),
]


@pytest.mark.parametrize(("glob", "path", "expected"), GLOBS, ids=[f"{row[0]} {row[1]!r}" for row in GLOBS])
def test_globs(glob: str, path: str, expected: bool) -> None:
    assert path_matches(path, [glob]) is expected
    assert path_matches(path, ["/nothing", glob]) is expected


@given(st.lists(st.sampled_from(["a", "b", "ab", "*", "**", "?", "[ab]", "[!a]*"]), min_size=1, max_size=5),
       st.lists(st.sampled_from(["a", "b", "ab", "ba", "abc"]), min_size=1, max_size=5))  # fmt: skip
def test_globs_are_those_of_the_runner(glob: list[str], path: list[str]) -> None:
    globs = Globs([("/" + "/".join(glob)).encode()])
    states, matched = globs.start, False
    for name in path:
        matched, states = globs.step(states, name.encode())
    assert path_matches("/" + "/".join(path), ["/" + "/".join(glob)]) is matched


def test_texts_beyond_what_is_searched_are_unknown() -> None:
    assert search("needle$", "x" * 10) is False
    assert search("needle", "needle" + "x" * MAX_SEARCHED) is True
    assert search("needle", "x" * MAX_SEARCHED + "needle") is None
    assert search("é$", "caf\ud800 é") is True  # a broken character is no reason to fail


def test_expressions_that_backtracking_dies_of() -> None:
    assert search("(a+)+$", "a" * 100_000 + "b") is False
    assert search("^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 100_000) is False


def test_expressions_are_of_a_size() -> None:
    with pytest.raises(PatternError, match=f"at most {MAX_PATTERN}"):
        expression("x" * (MAX_PATTERN + 1))
    with pytest.raises(PatternError, match="no back-references"):
        expression(r"(a)\1")


LONG = BlobRef(blob=ZERO_HASH, size=99_999)


class Blob:
    def read(self, ref: BlobRef) -> bytes | None:
        return b"one two three needle"


def message(text: Any) -> AgentMessage:
    return AgentMessage(text=text)


WHERE: list[tuple[dict[str, Any], Data, bool | None]] = [
    ({"event": "agent_message"}, message("x"), True),
    ({"event": "tool_result"}, message("x"), False),
    ({"event": "agent_message", "where": {"min_words": 3}}, message("one, two - three!"), True),
    ({"event": "agent_message", "where": {"min_words": 3}}, message("don't stop"), False),
    ({"event": "agent_message", "where": {"min_words": 3}}, message("我先看文件"), True),
    ({"event": "agent_message", "where": {"min_words": 3, "text": "two"}}, message("one two three"), True),
    ({"event": "agent_message", "where": {"text": "needle"}}, message(LONG), None),
    ({"event": "agent_question"}, AgentQuestion(text="which?"), True),
    ({"event": "agent_message"}, AgentQuestion(text="which?"), True),
    ({"event": "agent_message", "where": {"min_words": 2}}, AgentQuestion(text="which?"), False),
    ({"event": "agent_question"}, Ask(wants="information", how="text", answer="neutral"), True),
    ({"event": "agent_question"}, Ask(wants="information", how="structured", answer="neutral"), False),
    ({"event": "user_message"}, UserMessage(id="m", text="x", source_ids=[]), True),
    ({"event": "user_message"}, UserMessage(id="m", text="x", source_ids=[], delivered=False), False),
    ({"event": "tool_result", "where": {"text": "E\\d+"}}, ToolResult(call_id="c", text="an E42"), True),
    ({"event": "tool_result", "where": {"exit": 0}}, ToolResult(call_id="c", text="x"), True),
    ({"event": "tool_result", "where": {"exit": 0}}, ToolResult(call_id="c", text="x", is_error=True), False),
    ({"event": "tool_result", "where": {"exit": 2}}, ToolResult(call_id="c", text="x", is_error=True), None),
    ({"event": "tool_result", "where": {"exit": 2}}, ToolResult(call_id="c", text="x"), False),
    ({"event": "command", "where": {"cmd": "^ls"}}, Command(id=1, argv=["ls", "x" * 9000], record="exec", cut=True), True),
    ({"event": "command", "where": {"cmd": "zz$"}}, Command(id=1, argv=["ls"], record="exec", cut=True), None),
    ({"event": "file_read", "where": {"path": "/a/*", "marker": " x "}}, FileRead(path="/a/b", marker="x"), True),
    ({"event": "file_read", "where": {"marker": "x"}}, FileRead(path="/a/b", marker="xy"), False),
    ({"event": "file_read", "where": {"marker_re": "x"}}, FileRead(path="/a/b", marker="xy"), True),
    ({"event": "file_delete", "where": {"path": ["/b", "/a/**"]}}, FileDelete(path="/a/b", after_turn=1), True),
    ({"event": "slice_released", "where": {"slice": "s"}}, SliceReleased(slice="t", how="ask", message_id="m"), False),
    ({"event": "interim_claim", "where": {"slices_pending": 0}}, InterimClaim(slices_pending=0, probes_pending=1), True),
    ({"event": "interim_claim", "where": {"slices_pending": 0}}, InterimClaim(slices_pending=1, probes_pending=0), False),
]


@pytest.mark.parametrize(("pattern", "data", "expected"), WHERE)
def test_where(pattern: dict[str, Any], data: Data, expected: bool | None) -> None:
    assert matches(parse_pattern(pattern), Ledger().emit(data).items[0], NoBlobs()) is expected


def test_a_long_text_is_read_where_it_lies() -> None:
    item = Ledger().emit(message(LONG)).items[0]
    for where, expected in (
        ({"text": "needle$"}, True),
        ({"text": "pin"}, False),
        ({"min_words": 4}, True),
        ({"min_words": 5}, False),
    ):
        assert matches(EventPattern.model_validate({"event": "agent_message", "where": where}), item, Blob()) is expected


@given(st.text(alphabet="ab 我.'-", max_size=30), st.integers(1, 12))
def test_words_are_monotone(text: str, least: int) -> None:
    assert words_reach(text, least) or not words_reach(text, least + 1)
    assert words_reach("x " * least, least)
    assert not words_reach("x " * (least - 1), least)
