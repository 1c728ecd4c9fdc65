"""Codex's launch and what it prints, without the program: command line, environment, and its messages by tables."""

from __future__ import annotations

import tomllib
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli.api.agents import PROGRAMS
from realcli_session.agents import codex_launch
from realcli_session.agents.claude_code import ClaudeCode
from realcli_session.agents.codex import Codex
from realcli_session.agents.codex_stream import (
    Answered,
    Asked,
    Ended,
    Goal,
    Resolved,
    Started,
    Thread,
    question_answers,
)
from realcli_session.agents.port import AgentSpec, Error, Text, ToolCall, ToolResult, Usage, Yield
from realcli_session.agents.questions import question_parts, question_text
from realcli_session.runner.errors import SpawnFailed

TOKEN = "per-trial-token"


def a_spec(**more: Any) -> AgentSpec:
    base: dict[str, Any] = {
        "mode": "EXEC",
        "version": "0.142.0",
        "model": "gpt-5.2",
        "base_url": "http://127.0.0.1:8317/v1",
        "token": TOKEN,
        "workdir": "/app",
        "environ": {"PATH": "/task/bin"},
        "home": "/home/task",
    }
    return AgentSpec(**(base | more))


# ------------------------------------------------------------------------------------------------------------------ launch
def settings(spec: AgentSpec) -> dict[str, Any]:
    """What the command line sets, read as TOML."""
    line = codex_launch.argv(spec)
    assert line[:2] == ["/opt/realcli/agent/codex/bin/codex", "app-server"]
    assert set(line[2::2]) == {"-c"}
    found: dict[str, Any] = {}
    for pair in line[3::2]:
        key, _, value = pair.partition("=")
        found[key] = tomllib.loads(f"x = {value}")["x"]
    return found


def test_modes_differ_in_the_question_tool_alone() -> None:
    execute, talk = settings(a_spec()), settings(a_spec(mode="COLLAB"))
    assert {key: value for key, value in execute.items() if key not in talk} == {
        "tools.experimental_request_user_input": {"enabled": False}
    }
    assert {key: value for key, value in talk.items() if key not in execute} == {
        "features.default_mode_request_user_input": True,
        "suppress_unstable_features_warning": True,
    }
    assert codex_launch.environment(a_spec()) == codex_launch.environment(a_spec(mode="COLLAB"))


def test_command_line() -> None:
    found = settings(a_spec(effort="high"))
    assert found["model"] == "gpt-5.2"
    assert found["model_reasoning_effort"] == "high"
    assert found["approval_policy"] == "never"
    assert found["model_providers.gateway"]["base_url"] == "http://127.0.0.1:8317/v1"
    assert settings(a_spec(permissions="Ask"))["approval_policy"] == "untrusted"
    assert "model_reasoning_effort" not in settings(a_spec())
    assert not any(TOKEN in word for word in codex_launch.argv(a_spec()))


def test_odd_names_stay_whole() -> None:
    assert settings(a_spec(model='a "b" \\ \n c'))["model"] == 'a "b" \\ \n c'


def test_environment_is_the_tasks_own() -> None:
    environ = {"PATH": "/task/bin", "KUBERNETES_PORT": "x", "OPENAI_BASE_URL": "x", "CODEX_HOME": "x", "A": "b"}
    assert codex_launch.environment(a_spec(environ=environ)) == {
        "PATH": "/task/bin",
        "A": "b",
        "HOME": "/home/task",
        "CODEX_HOME": "/var/tmp/agent/codex",
        "OPENAI_API_KEY": TOKEN,
    }


def test_every_setting_is_listed_with_its_reason() -> None:
    for mode in ("EXEC", "COLLAB"):
        listed = {entry.setting.partition(" (")[0] for entry in Codex.deviations(cast(Any, mode))}
        assert settings(a_spec(mode=mode, effort="low")).keys() <= listed
        assert codex_launch.environment(a_spec(environ={})).keys() - {"PATH", "HOME"} <= listed
    assert all(entry.reason and entry.value for entry in Codex.deviations())
    names = [entry.setting for entry in Codex.deviations()]
    assert len(names) == len(set(names))


async def test_what_cannot_be_started_is_refused() -> None:
    adapter = Codex(cast(Any, None), cast(Any, None))
    with pytest.raises(SpawnFailed, match="expected Ask or Bypass"):
        await adapter.start(a_spec(permissions="Sometimes"))


@pytest.mark.parametrize("adapter", [ClaudeCode, Codex])
def test_planning_knows_the_same(adapter: type[ClaudeCode] | type[Codex]) -> None:
    facts = PROGRAMS[adapter.program]
    assert (facts.api, facts.libc) == (adapter.wire_api, adapter.libcs)
    assert set(facts.permissions) == set(adapter.permission_modes)
    assert adapter.visible_text


# ------------------------------------------------------------------------------------------------------------------ stream
T = "thread-1"


def item(method: str, thread: str = T, **fields: Any) -> dict[str, Any]:
    return {"method": f"item/{method}", "params": {"threadId": thread, "turnId": "t1", "item": fields}}


def turn(method: str, thread: str = T, **fields: Any) -> dict[str, Any]:
    return {"method": f"turn/{method}", "params": {"threadId": thread, "turn": {"id": "t1", **fields}}}


COMMAND = {"type": "commandExecution", "id": "c1", "command": "ls", "cwd": "/app"}
HEARD: list[tuple[str, Any, list[Any]]] = [
    ("text", item("completed", type="agentMessage", id="m", text="hi"), [Text("hi")]),
    ("text that is being written", item("started", type="agentMessage", id="m", text=""), []),
    ("text of a sub-agent", item("completed", thread="other", type="agentMessage", id="m", text="hi"), []),
    ("reasoning", item("completed", type="reasoning", id="r", summary=["hm"], content=[]), []),
    ("plan", item("completed", type="plan", id="p", text="1."), []),
    ("command", item("started", **COMMAND), [ToolCall("c1", "commandExecution", {"command": "ls", "cwd": "/app"})]),
    (
        "command of a sub-agent",
        item("started", thread="other", **COMMAND),
        [ToolCall("c1", "commandExecution", {"command": "ls", "cwd": "/app"})],
    ),
    (
        "result that comes alone",
        item("completed", **COMMAND, status="completed", exitCode=1),
        [ToolCall("c1", "commandExecution", {"command": "ls", "cwd": "/app"}), ToolResult("c1", True)],
    ),
    (
        "error item",
        item("completed", type="error", id="e", message="Model metadata not found"),
        [Error("Model metadata not found")],
    ),
    ("turn starts", turn("started"), [Started("t1")]),
    ("turn ends", turn("completed", status="completed"), [Ended("t1", Yield("yielded", ""))]),
    ("turn of a sub-agent ends", turn("completed", thread="other", status="completed"), []),
    ("turn is stopped", turn("completed", status="interrupted"), [Ended("t1", Yield("interrupted", ""))]),
    (
        "turn fails",
        turn("completed", status="failed", error={"message": "call limit reached"}),
        [Ended("t1", Yield("failed", "call limit reached"))],
    ),
    ("turn ends in a way nobody knows", turn("completed", status="other"), [Ended("t1", Yield("failed", "other"))]),
    (
        "usage",
        {
            "method": "thread/tokenUsage/updated",
            "params": {"threadId": T, "tokenUsage": {"last": {"inputTokens": 120, "cachedInputTokens": 20, "outputTokens": 7}}},
        },
        [Usage],
    ),
    (
        "error that is tried again",
        {"method": "error", "params": {"threadId": T, "error": {"message": "lost"}, "willRetry": True}},
        [Error("lost (it retries)")],
    ),
    (
        "goal that is pursued",
        {"method": "thread/goal/updated", "params": {"threadId": T, "goal": {"status": "active"}}},
        [Goal(True)],
    ),
    (
        "goal that is reached",
        {"method": "thread/goal/updated", "params": {"threadId": T, "goal": {"status": "complete"}}},
        [Goal(False)],
    ),
    ("goal that is gone", {"method": "thread/goal/cleared", "params": {"threadId": T}}, [Goal(False)]),
    ("goal of a sub-agent", {"method": "thread/goal/updated", "params": {"threadId": "o", "goal": {"status": "active"}}}, []),
    ("answer", {"id": 3, "result": {"a": 1}}, [Answered("3", {"a": 1}, None)]),
    ("refusal", {"id": 3, "error": {"code": -32600, "message": "no active turn"}}, [Answered("3", {}, "no active turn")]),
    ("request", {"id": 0, "method": "item/x", "params": {"a": 1}}, [Asked(0, "item/x", {"a": 1})]),
    (
        "request that is settled",
        {"method": "serverRequest/resolved", "params": {"threadId": T, "requestId": 0}},
        [Resolved("codex-0")],
    ),
    ("unknown notification", {"method": "account/updated", "params": {}}, []),
    ("no object", [1], [Error("a line of its output is JSON but no object")]),
    ("nothing", {}, []),
]


@pytest.mark.parametrize(("name", "line", "want"), HEARD, ids=[row[0] for row in HEARD])
def test_what_a_line_says(name: str, line: Any, want: list[Any]) -> None:
    heard = Thread(id=T).hear(line)
    if want == [Usage]:
        (usage,) = heard
        assert isinstance(usage, Usage)
        assert (usage.tokens.input, usage.tokens.cache_read, usage.tokens.output) == (100, 20, 7)
        return
    assert heard == want


def test_a_call_is_announced_once() -> None:
    thread = Thread(id=T)
    assert len(thread.hear(item("started", **COMMAND))) == 1
    assert thread.hear(item("completed", **COMMAND, status="completed", exitCode=0)) == [ToolResult("c1", False)]
    assert thread.reported == set()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)
WORDS = st.sampled_from(
    ["method", "params", "id", "item", "turn", "type", "threadId", "status", "error", "questions", "tokenUsage"]
)
LIKE = st.recursive(
    JSON | st.sampled_from([T, "agentMessage", "turn/completed", "item/started", "commandExecution"]),
    lambda inner: st.dictionaries(WORDS, inner),
)


@given(LIKE)
def test_no_line_breaks_it(line: Any) -> None:
    Thread(id=T).hear(line)


def test_questions() -> None:
    asked = {
        "questions": [
            {"id": "q1", "question": "Which?", "options": [{"label": "A", "description": "first"}, {"label": "B"}]},
            {"id": "q2", "question": "Why?", "options": None},
        ]
    }
    assert question_text(asked) == "Which?\n- A: first\n- B\n\nWhy?"
    assert question_parts(asked) == ("Which?\n- A: first\n- B", "Why?")
    assert question_answers(asked, "B", {"Why?": "C"}) == {"answers": {"q1": {"answers": ["B"]}, "q2": {"answers": ["C"]}}}
