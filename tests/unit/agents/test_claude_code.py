"""Claude Code's launch and what it prints, without the program: command line, environment, and the yield by tables."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any, Literal, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli_session.agents import claude_launch
from realcli_session.agents.claude_code import ClaudeCode
from realcli_session.agents.claude_stream import Answered, Asked, Conversation, question_answer
from realcli_session.agents.lines import LineSplitter, Oversize, Tail
from realcli_session.agents.port import AgentSpec, Error, Text, ToolCall, ToolResult, Usage, Withdrawn, Yield
from realcli_session.agents.questions import question_parts, question_text
from realcli_session.agents.registry import adapter_class, programs
from realcli_session.runner.errors import SpawnFailed

TOKEN = "per-trial-token"


def a_spec(**more: Any) -> AgentSpec:
    base: dict[str, Any] = {
        "mode": "EXEC",
        "version": "2.1.140",
        "model": "m-1",
        "base_url": "http://127.0.0.1:8317",
        "token": TOKEN,
        "workdir": "/app",
        "environ": {"PATH": "/task/bin", "LANG": "C.UTF-8"},
        "home": "/home/task",
    }
    return AgentSpec(**(base | more))


# ------------------------------------------------------------------------------------------------------------------ launch


def test_modes_differ_in_the_question_tool_alone() -> None:
    execute, talk = claude_launch.argv(a_spec()), claude_launch.argv(a_spec(mode="COLLAB"))
    assert execute == [*talk, "--disallowedTools", "AskUserQuestion"]
    assert claude_launch.environment(a_spec()) == claude_launch.environment(a_spec(mode="COLLAB"))


def test_command_line() -> None:
    line = claude_launch.argv(a_spec(mode="COLLAB"))
    assert line[0] == "/opt/realcli/agent/claude"
    assert line[line.index("--model") + 1] == "m-1"
    assert "--dangerously-skip-permissions" in line
    assert TOKEN not in line
    assert TOKEN not in repr(a_spec())


def test_environment_is_the_tasks_own() -> None:
    environ = {"PATH": "/task/bin", "KUBERNETES_PORT": "x", "ANTHROPIC_AUTH_TOKEN": "x", "CLAUDE_CODE_USE_BEDROCK": "1", "A": "b"}
    assert claude_launch.environment(a_spec(environ=environ)) == {
        "PATH": "/task/bin",
        "A": "b",
        "HOME": "/home/task",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:8317",
        "ANTHROPIC_API_KEY": TOKEN,
        "CLAUDE_CONFIG_DIR": "/var/tmp/agent/claude-code",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
        "API_TIMEOUT_MS": "3600000",
    }
    assert claude_launch.environment(a_spec(environ={}))["PATH"].endswith("/usr/bin:/sbin:/bin")


def test_every_setting_is_listed_with_its_reason() -> None:
    listed = {entry.setting.partition(" (")[0] for entry in ClaudeCode.deviations("EXEC")}
    line = claude_launch.argv(a_spec())
    assert {word for word in line if word.startswith("--")} <= listed
    assert claude_launch.environment(a_spec(environ={})).keys() - {"PATH", "HOME"} <= listed
    assert all(entry.reason and entry.value for entry in ClaudeCode.deviations())
    assert not any(TOKEN in entry.value for entry in ClaudeCode.deviations())
    only_exec = {entry.setting for entry in ClaudeCode.deviations("EXEC")} - {d.setting for d in ClaudeCode.deviations("COLLAB")}
    assert only_exec == {"--disallowedTools"}
    assert "--disallowedTools (EXEC)" in {entry.setting for entry in ClaudeCode.deviations()}


def test_permissions_decide_one_flag() -> None:
    bypass, ask = claude_launch.argv(a_spec()), claude_launch.argv(a_spec(permissions="Ask"))
    assert [word for word in bypass if word not in ask] == ["--dangerously-skip-permissions"]
    assert [word for word in ask if word not in bypass] == []


@pytest.mark.parametrize("more", [{"libc": "musl"}, {"libc": "none"}, {"permissions": "Sometimes"}])
async def test_what_cannot_be_started_is_refused(more: Any) -> None:
    adapter = ClaudeCode(cast(Any, None), cast(Any, None))  # refused before either is used
    with pytest.raises(SpawnFailed, match=r"glibc|expected Ask or Bypass"):
        await adapter.start(a_spec(**more))


def test_found_by_name() -> None:
    assert adapter_class("claude-code") is ClaudeCode
    assert "claude-code" in programs()
    with pytest.raises(LookupError, match=r"no adapter for agent program 'other'; installed: .*claude-code"):
        adapter_class("other")


# ------------------------------------------------------------------------------------------------------------------- yields


def result(**more: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": False, "terminal_reason": "completed"} | more


def replay(uuid: str) -> dict[str, Any]:
    return {"type": "user", "isReplay": True, "uuid": uuid, "message": {"content": []}}


INTERRUPTED = result(subtype="error_during_execution", is_error=True, terminal_reason="aborted_tools")
LIMIT = result(is_error=True, api_error_status=400, result="API Error: 400 call limit reached")
How = Literal["yielded", "interrupted", "failed"]
YIELDS: list[tuple[str, list[Any], list[How]]] = [
    # name, what is sent ("> uuid") and printed, the yields
    ("one message", [">a", replay("a"), result()], ["yielded"]),
    ("nothing said yet", [">a", replay("a")], []),
    ("read while working", [">a", replay("a"), ">b", replay("b"), result()], ["yielded"]),
    ("sent during the last text", [">a", replay("a"), ">b", result(), replay("b"), result()], ["yielded"]),
    ("two unread", [">a", replay("a"), ">b", ">c", result(), replay("b"), replay("c"), result()], ["yielded"]),
    ("interrupt", [">a", replay("a"), INTERRUPTED], ["interrupted"]),
    ("message, then interrupt", [">a", replay("a"), ">b", INTERRUPTED, replay("b"), result()], ["yielded"]),
    ("limit: an error that calls itself success", [">a", replay("a"), LIMIT], ["failed"]),
    ("error", [">a", replay("a"), result(subtype="error_max_turns", is_error=True, terminal_reason=None)], ["failed"]),
    ("a response of its own after the yield", [">a", replay("a"), result(), result()], ["yielded"]),
    ("an echo of something else", [">a", replay("x"), result(), replay("a"), result()], ["yielded"]),
]


@pytest.mark.parametrize(("name", "lines", "want"), YIELDS, ids=[row[0] for row in YIELDS])
def test_yields(name: str, lines: list[Any], want: list[How]) -> None:
    talk, found = Conversation(), []
    for line in lines:
        if isinstance(line, str):
            talk.sent(line[1:])
        else:
            found += [event.how for event in talk.hear(line) if isinstance(event, Yield)]
    assert found == want


def test_failed_yield_says_what_failed() -> None:
    (heard,) = Conversation(owed=True).hear(LIMIT)
    assert heard == Yield("failed", "API Error: 400 call limit reached (status 400)")


def assistant(*content: Any, parent: str | None = None) -> dict[str, Any]:
    return {"type": "assistant", "parent_tool_use_id": parent, "message": {"content": list(content)}}


TOOL = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "x", "is_error": True}
HEARD = [
    ("text", assistant({"type": "text", "text": "hi"}), [Text("hi")]),
    ("text of a sub-agent", assistant({"type": "text", "text": "hi"}, parent="t0"), []),
    ("thinking", assistant({"type": "thinking", "thinking": "hm"}), []),
    ("tool", assistant(TOOL, parent="t0"), [ToolCall("t1", "Bash", {"command": "ls"})]),
    ("tool result", {"type": "user", "message": {"content": [RESULT]}}, [ToolResult("t1", True)]),
    ("text as content", {"type": "user", "message": {"content": "hi"}}, []),
    (
        "permission",
        {"type": "control_request", "request_id": "r", "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}}},
        [Asked("r", "Bash", {})],
    ),
    ("withdrawn", {"type": "control_cancel_request", "request_id": "r"}, [Withdrawn("r")]),
    ("answer", {"type": "control_response", "response": {"subtype": "success", "request_id": "i"}}, [Answered("i", None)]),
    (
        "refusal",
        {"type": "control_response", "response": {"subtype": "error", "request_id": "i", "error": "no"}},
        [Answered("i", "no")],
    ),
    ("unknown line", {"type": "stream_event"}, []),
    ("no object", [1], [Error("a line of its output is JSON but no object")]),
]


@pytest.mark.parametrize(("name", "line", "want"), HEARD, ids=[row[0] for row in HEARD])
def test_heard(name: str, line: Any, want: list[Any]) -> None:
    assert Conversation().hear(line) == want


def test_unknown_control_request_is_told() -> None:
    (heard,) = Conversation().hear({"type": "control_request", "request_id": "r", "request": {"subtype": "hook_callback"}})
    assert isinstance(heard, Error)
    assert "hook_callback" in heard.message


def test_usage_is_normalised() -> None:
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 4, "cache_read_input_tokens": None, "output_tokens": 5}
    heard = Conversation().hear(result(usage=usage))
    assert [event.tokens.model_dump() for event in heard if isinstance(event, Usage)] == [
        {"input": 3, "cache_read": 0, "cache_write": 4, "output": 5}
    ]


def test_questions() -> None:
    asked = {
        "questions": [
            {"question": "Which?", "options": [{"label": "A", "description": "first"}, {"label": "B"}]},
            {"question": "Why?", "options": []},
        ]
    }
    assert question_text(asked) == "Which?\n- A: first\n- B\n\nWhy?"
    assert question_parts(asked) == ("Which?\n- A: first\n- B", "Why?")
    assert question_parts({"questions": asked["questions"][:1]}) == ()
    assert question_answer(asked, "B", {}) == {**asked, "answers": {"Which?": "B", "Why?": "B"}}
    assert question_answer(asked, "B", {"Why?": "C"}) == {**asked, "answers": {"Which?": "B", "Why?": "C"}}
    assert question_text({"questions": "nonsense"}) == ""


NAMES = ["type", "message", "content", "request", "response", "usage", "subtype", "input", "questions", "errors", "request_id"]
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
NONSENSE = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(NAMES), inner))


@given(NONSENSE)
def test_no_line_breaks_the_reader(value: Any) -> None:
    for kind in ("assistant", "user", "result", "control_request", "control_response", "control_cancel_request", "system"):
        talk = Conversation()
        line = {"type": kind, "message": value, "request": value, "response": value, "usage": value, "errors": value}
        talk.hear(line)
        talk.hear({**line, "message": {"content": value}, "request": {"subtype": "can_use_tool", "input": value}})
        talk.hear(value)
    question_text({"questions": value})


# -------------------------------------------------------------------------------------------------------------------- lines


@given(st.lists(st.binary(max_size=20), max_size=20))
def test_lines_do_not_depend_on_chunks(chunks: list[bytes]) -> None:
    splitter = LineSplitter()
    lines = [line for chunk in chunks for line in splitter.feed(chunk)] + splitter.close()
    whole = b"".join(chunks).split(b"\n")
    assert lines == (whole if whole[-1] else whole[:-1])


@given(st.integers(1, 40), st.integers(1, 7))
def test_huge_lines_are_counted_not_kept(size: int, step: int) -> None:
    splitter, data = LineSplitter(max_line=10), b"x" * size + b"\nok\n"
    lines = [line for i in range(0, len(data), step) for line in splitter.feed(data[i : i + step])]
    assert lines == [b"x" * size if size <= 10 else Oversize(size), b"ok"]


def test_character_split_over_two_chunks_stays_whole() -> None:
    line = json.dumps({"text": "caf\u00e9"}, ensure_ascii=False).encode() + b"\n"
    splitter = LineSplitter()
    middle = line.index(b"\xc3") + 1
    assert [*splitter.feed(line[:middle]), *splitter.feed(line[middle:])] == [line[:-1]]


def test_tail_keeps_the_end() -> None:
    tail = Tail(limit=5)
    for chunk in (b"abc", b"def", b"\xff"):
        tail.add(chunk)
    assert tail.text() == "cdef\ufffd"


def test_endless_line_takes_no_memory() -> None:
    splitter, chunk = LineSplitter(max_line=1 << 20), b"x" * (1 << 18)
    tracemalloc.start()
    for _ in range(400):  # 100 MB
        splitter.feed(bytes(chunk) + b"x")  # a new object each time
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20
    assert splitter.close() == [Oversize(400 * ((1 << 18) + 1))]
