"""The script file: what it refuses, which rule answers, how actions become an agent's own tools, and faults."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import TestClient, TestServer

from realcli_provider.choose import choose, replay
from realcli_provider.conversation import Conversation, Reply, Request, Tool
from realcli_provider.dialects import chat
from realcli_provider.reply import make
from realcli_provider.script import Answer, Script, ScriptError, read_script
from realcli_provider.server import Provider

KEY = "sk-provider-1"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rules: [{then: {}}]", ["rules.0.then", "empty"]),
        ("rules: [{then: {say: a, raw: b}}]", ["take one"]),
        ("rules: [{when: {said: {matches: '('}}, then: {say: a}}]", ["rules.0.when.said.matches", "regular expression"]),
        ("rules: [{then: {say: a}, steps: [{say: b}]}]", ["exactly one of then, steps, policy"]),
        ("rules: [{then: {shout: a}}]", ["rules.0.then.shout"]),
        ("faults: [{fault: {status: 200}}]", ["faults.0.fault.status"]),
        ("- a", ["expected a mapping"]),
        ("a: [", ["cannot be read"]),
    ],
)
def test_a_wrong_script_is_named_with_its_field(tmp_path: Path, text: str, words: list[str]) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(text)
    with pytest.raises(ScriptError) as error:
        read_script(path)
    assert all(word in str(error.value) for word in [str(path), *words])


TALK = Conversation("open the door", (Reply("one"), Reply(said="now close it"), Reply("locked", "hurry")))
WHEN: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"opening": "door"}, True),
    ({"opening": {"equals": "open the door"}}, True),
    ({"opening": {"lacks": "door"}}, False),
    ({"said": "hurry"}, True),
    ({"said": "close"}, False),
    ({"result": {"matches": "^lock"}}, True),
    ({"result": "one"}, False),
    ({"shown": "one"}, True),
    ({"request": 4}, True),
    ({"request": {"from": 5}}, False),
    ({"step": 1}, True),
    ({"exchange": 3}, True),
    ({"exchange": {"to": 2}}, False),
    ({"api": "anthropic", "agent": "claude-code", "tool": "Bash"}, True),
    ({"tool": "Edit"}, False),
    ({"side": True}, False),
    ({"side": None}, True),
    ({"model": "m", "system": "sys"}, True),
]


@pytest.mark.parametrize(("when", "holds"), WHEN, ids=[json.dumps(when) for when, _ in WHEN])
def test_conditions(when: dict[str, Any], holds: bool) -> None:
    request = Request("anthropic", "m", False, TALK, "the system", (Tool("Bash"),), "claude-code")
    script = Script.model_validate({"rules": [{"when": when, "then": {"say": "yes"}}]})
    assert (choose(script, request).answer.say == "yes") is holds


def a_request(*tools: Tool, agent: Any = "claude-code", channel: bool = False, confirms: bool = False) -> Request:
    return Request("anthropic", "m", False, Conversation("go"), "", tools, agent, channel, confirms)


CALLS: list[tuple[list[Tool], dict[str, Any], list[tuple[str, Any]]]] = [
    ([Tool("Bash")], {"run": "ls"}, [("Bash", {"command": "ls", "description": "Run a command"})]),
    ([Tool("exec_command")], {"run": ["a", "b"]}, [("exec_command", {"cmd": "a"}), ("exec_command", {"cmd": "b"})]),
    ([Tool("shell_command")], {"run": "ls"}, [("shell_command", {"command": "ls"})]),
    ([Tool("Write"), Tool("Bash")], {"write": {"path": "/a", "content": "x"}}, [("Write", {"file_path": "/a", "content": "x"})]),
    (
        [Tool("apply_patch", "custom")],
        {"write": {"path": "/a", "content": "x\n"}},
        [("apply_patch", "*** Begin Patch\n*** Add File: /a\n+x\n*** End Patch\n")],
    ),
    (
        [Tool("Agent")],
        {"delegate": {"prompt": "p"}},
        [("Agent", {"description": "Delegated work", "prompt": "p", "subagent_type": "general-purpose"})],
    ),
    ([Tool("x", namespace="n")], {"call": {"name": "x", "input": {"a": 1}}}, [("x", {"a": 1})]),
]


@pytest.mark.parametrize(("tools", "answer", "expected"), CALLS)
def test_actions_become_the_tools_that_are_offered(
    tools: list[Tool], answer: dict[str, Any], expected: list[tuple[str, Any]]
) -> None:
    made = make({"messages": []}, a_request(*tools), Answer.model_validate(answer))
    assert [(call.name, call.input) for call in made.calls] == expected
    assert made.stop == "tool"


def test_what_is_not_offered_is_said() -> None:
    with pytest.raises(ScriptError, match="offers Read"):
        make({"messages": []}, a_request(Tool("Read")), Answer(run="ls"))


def test_a_question_has_the_tool_s_own_shape() -> None:
    answer = Answer.model_validate({"ask": {"question": "Which?", "options": ["a", "b"]}})
    (claude,) = make({"messages": []}, a_request(Tool("AskUserQuestion")), answer).calls
    (codex,) = make({"messages": []}, a_request(Tool("request_user_input")), answer).calls
    assert isinstance(claude.input, dict)
    assert isinstance(codex.input, dict)
    assert [q["question"] for call in (claude, codex) for q in call.input["questions"]] == ["Which?", "Which?"]
    assert codex.input["questions"][0]["id"] == "question"


PROMPT = 'Reply with {{"keystrokes": "ls\\n"}}{field}\n\nTask Description:\nDo it.\nNow.\n\nCurrent terminal state:\nroot@box:/#'
SURE = "Current terminal state:\n$\n\nAre you sure you want to mark the task as complete? This will"


def terminus(*texts: str, field: str = "") -> tuple[Request, dict[str, Any]]:
    """A request of Terminus-2: the prompt, then our answer and its next text in turns; and what a script's `say: hi` becomes."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": PROMPT.format(field=field)}]
    for text in texts:
        messages += [{"role": "assistant", "content": "{}"}, {"role": "user", "content": text}]
    body = {"model": "m", "messages": messages}
    request = chat.parse(body)
    return request, json.loads(make(body, request, Answer(say="hi")).text)


def test_terminus_is_known_by_its_prompt_and_its_screens_are_results() -> None:
    request, _ = terminus("New Terminal Output:\nhello", "<user_message>\nstop\n</user_message>\n\nNew Terminal Output:\nbye")
    assert (request.agent, request.side) == ("terminus-2", False)
    assert request.conversation == Conversation("Do it.\nNow.", (Reply("hello"), Reply("bye", "stop")))


def test_terminus_says_by_the_field_for_the_user_or_is_done() -> None:
    _, alone = terminus()
    assert alone["task_complete"] is True
    request, with_user = terminus(field="message_to_user")
    assert request.channel
    assert (with_user["message_to_user"], "task_complete" in with_user) == ("hi", False)


def test_terminus_confirms_without_using_up_a_step() -> None:
    request, answer = terminus("New Terminal Output:\nhello", SURE)
    assert (request.confirms, request.conversation.request) == (True, 2)
    assert answer["task_complete"] is True


def test_keystrokes_end_with_a_line_end() -> None:
    request, _ = terminus()
    made = json.loads(make({"messages": []}, request, Answer(run=["ls", "pwd"], say="I look")).text)
    assert [c["keystrokes"] for c in made["commands"]] == ["ls\n", "pwd\n"]
    assert (made["plan"], "task_complete" in made) == ("I look", False)


# -- faults -----------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def serving(**script: Any) -> AsyncIterator[Callable[..., Any]]:
    async with TestClient(TestServer(Provider(KEY, Script.model_validate(script)).app)) as client:

        def ask(stream: bool = True, text: str = "hello " * 50, **headers: str) -> Any:
            body = {"model": "m", "max_tokens": 9, "stream": stream, "messages": [{"role": "user", "content": text}]}
            return client.post("/v1/messages", json=body, headers={"x-api-key": KEY} | headers)

        yield ask


LONG = {"say": "word " * 100}


async def test_an_error_has_status_headers_and_body_so_many_times() -> None:
    async with serving(side={**LONG, "fault": {"status": 429, "headers": {"retry-after": "7"}, "times": 2}}) as ask:
        answers = [await ask() for _ in range(3)]
        assert [answer.status for answer in answers] == [429, 429, 200]
        assert answers[0].headers["retry-after"] == "7"
        assert (await answers[0].json())["error"]["type"] == "rate_limit_error"
        assert (await ask(text="another moment")).status == 429


async def test_the_nth_request_of_the_process() -> None:
    async with serving(faults=[{"nth": 2, "fault": {"status": 503}}]) as ask:
        assert [(await ask()).status for _ in range(3)] == [200, 503, 200]


async def test_resets_and_cuts() -> None:
    async with serving(side={**LONG, "fault": {"reset": "before"}}) as ask:
        with pytest.raises(aiohttp.ClientError):
            await ask()
    async with serving(side={**LONG, "fault": {"reset": "first-byte"}}) as ask:
        answer = await ask()
        with pytest.raises(aiohttp.ClientError):
            await answer.read()
    async with serving(side={**LONG, "fault": {"cut": 3}}) as ask:
        answer = await ask()
        assert answer.status == 200
        with pytest.raises(aiohttp.ClientError):
            await answer.read()
    async with serving(side={**LONG, "fault": {"cut": 3, "end": True}}) as ask:
        assert (await (await ask()).text()).count("\n\n") == 3
    async with serving(side={**LONG, "fault": {"cut": 3, "error_event": True}}) as ask:
        assert "overloaded_error" in (await (await ask()).text()).split("\n\n")[3]


@pytest.mark.parametrize("where", ["before", "first-byte", "middle"])
async def test_a_stall_goes_on_after_its_time(where: str) -> None:
    async with serving(side={**LONG, "fault": {"stall": where, "stall_seconds": 0.05}}) as ask:
        assert "message_stop" in await (await ask()).text()


async def test_a_stall_for_ever_ends_with_the_client() -> None:
    async with serving(side={**LONG, "fault": {"stall": "middle"}}) as ask:
        answer = await ask()
        reading = asyncio.create_task(answer.read())
        await asyncio.sleep(0)
        reading.cancel()
        answer.close()


async def test_garbage_another_model_other_usage_and_echo() -> None:
    async with serving(side={**LONG, "fault": {"garbage": True}}) as ask:
        with pytest.raises(ValueError, match="decode"):
            await (await ask(stream=False)).json()
    async with serving(side={**LONG, "fault": {"model": "other", "usage": {"input": 5, "output": 6}}}) as ask:
        answer = await (await ask(stream=False)).json()
        assert (answer["model"], answer["usage"]["input_tokens"], answer["usage"]["output_tokens"]) == ("other", 5, 6)
    async with serving(side={"fault": {"echo": True}}) as ask:
        answer = await (await ask(stream=False, **{"x-thing": "seen"})).json()
        assert "x-thing: seen" in answer["content"][0]["text"]


async def test_the_script_s_own_model_id() -> None:
    async with serving(answer_as="resolved-1") as ask:
        assert (await (await ask(stream=False)).json())["model"] == "resolved-1"


@pytest.mark.parametrize("replies", [(), (Reply(said="more"),)])
def test_a_policy_that_has_nothing_to_say_leaves_it_to_otherwise(replies: tuple[Reply, ...]) -> None:
    def silent(opening: str) -> Generator[Answer, Reply, None]:
        yield from ()

    assert replay(silent, Conversation("go", replies), Answer(say="done")) == Answer(say="done")
