"""The three wires: what a request says has happened, and that a stream says what the JSON says."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from realcli_provider.script import Script
from realcli_provider.server import Provider

KEY = "sk-provider-1"
Body = dict[str, Any]
PATHS = {"anthropic": "/v1/messages", "responses": "/v1/responses", "chat": "/v1/chat/completions"}
SHELLS = {"anthropic": "Bash", "responses": "exec_command", "chat": "shell_command"}
SCRIPT = {
    "capture": {"host": r"^host: (\w+)"},
    "rules": [
        {
            "when": {"said": "begin"},
            "steps": [
                {"think": "Hm.", "say": "I look.", "run": ["cat a", "cat b"]},
                {"say": "The host is {{host}}."},
            ],
        },
        {"when": {"said": "refuse"}, "then": {"say": "I will not.", "stop": "refusal"}},
        {"when": {"said": "long"}, "then": {"say": "It goes on and", "stop": "length"}},
        {"when": {"exchange": 2, "request": {"from": 3}}, "then": {"say": "second exchange"}},
        {"when": {"side": True, "system": "user"}, "then": {"json": {"text": "hello", "slice": None}}},
    ],
}


def body(api: str, *messages: tuple[str, Any], tools: bool = True, stream: bool = False, system: str = "") -> Body:
    """A request of the wire. messages: ("user", text), ("ours", answer body), ("result", texts)."""
    made: Body = {"model": "m-1", "stream": stream}
    built = [item for kind, value in messages for item in BUILD[api](kind, value)]
    if api == "responses":
        made |= {"input": built, "instructions": system}
        made["tools"] = [{"type": "function", "name": SHELLS[api]}, {"type": "custom", "name": "apply_patch"}] if tools else []
    elif api == "anthropic":
        made |= {"messages": built, "max_tokens": 10, "system": system}
        made["tools"] = [{"name": SHELLS[api], "input_schema": {}}] if tools else []
    else:
        made["messages"] = [{"role": "system", "content": system}, *built]
        made["tools"] = [{"type": "function", "function": {"name": SHELLS[api]}}] if tools else []
        made["stream_options"] = {"include_usage": True}
    return made


def _anthropic(kind: str, value: Any) -> list[Body]:
    if kind == "user":
        return [{"role": "user", "content": value}]
    if kind == "ours":
        return [{"role": "assistant", "content": value["content"]}]
    return [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{n}", "content": t} for n, t in enumerate(value)]}
    ]


def _responses(kind: str, value: Any) -> list[Body]:
    if kind == "user":
        context = {"type": "input_text", "text": "<environment_context>/app</environment_context>"}
        return [{"type": "message", "role": "user", "content": [context, {"type": "input_text", "text": value}]}]
    if kind == "ours":
        return list(value["output"])
    head = "Chunk ID: 1\nWall time: 0.0 seconds\nProcess exited with code 0\nOriginal token count: 1\nOutput:\n"
    return [{"type": "function_call_output", "call_id": str(n), "output": head + text} for n, text in enumerate(value)]


def _chat(kind: str, value: Any) -> list[Body]:
    if kind == "user":
        return [{"role": "user", "content": value}]
    if kind == "ours":
        return [value["choices"][0]["message"]]
    return [{"role": "tool", "tool_call_id": str(n), "content": text} for n, text in enumerate(value)]


BUILD: dict[str, Callable[[str, Any], list[Body]]] = {"anthropic": _anthropic, "responses": _responses, "chat": _chat}


def said(api: str, answer: Body) -> tuple[str, str, list[Any], str]:
    """(thinking, text, commands, stop reason) of an answer."""
    if api == "anthropic":
        content = answer["content"]
        return (
            "".join(b["thinking"] for b in content if b["type"] == "thinking"),
            "".join(b["text"] for b in content if b["type"] == "text"),
            [b["input"]["command"] for b in content if b["type"] == "tool_use"],
            answer["stop_reason"],
        )
    if api == "responses":
        items = answer["output"]
        parts = [part for item in items if item["type"] == "message" for part in item["content"]]
        details = answer["incomplete_details"] or {}
        return (
            "".join(s["text"] for item in items if item["type"] == "reasoning" for s in item["summary"]),
            "".join(part.get("text") or part.get("refusal") or "" for part in parts),
            [json.loads(item["arguments"])["cmd"] for item in items if item["type"] == "function_call"],
            details.get("reason") or ("refusal" if any(p["type"] == "refusal" for p in parts) else answer["status"]),
        )
    choice = answer["choices"][0]
    message = choice["message"]
    calls = [json.loads(call["function"]["arguments"])["command"] for call in message.get("tool_calls", [])]
    text = message.get("content") or message.get("refusal") or ""
    return message.get("reasoning_content", ""), text, calls, choice["finish_reason"]


@pytest.fixture
async def client() -> AsyncIterator[TestClient[Any, Any]]:
    async with TestClient(TestServer(Provider(KEY, Script.model_validate(SCRIPT), control=True).app)) as client:
        yield client


async def post(client: TestClient[Any, Any], api: str, asked: Body) -> Body:
    response = await client.post(PATHS[api], json=asked, headers={"authorization": f"Bearer {KEY}"})
    assert response.status == 200, await response.text()
    found: Body = await response.json()
    return found


@pytest.mark.parametrize("api", PATHS)
async def test_a_conversation_is_read_off_the_messages(client: TestClient[Any, Any], api: str) -> None:
    first = await post(client, api, body(api, ("user", "please begin")))
    thinking, text, commands, stop = said(api, first)
    assert (thinking, text, commands) == ("Hm.", "I look.", ["cat a", "cat b"])
    assert stop in ("tool_use", "completed", "tool_calls")
    talk = [("user", "please begin"), ("ours", first), ("result", ["nothing", "host: blue"])]
    second = await post(client, api, body(api, *talk))
    assert said(api, second)[1] == "The host is blue."
    again = await post(client, api, body(api, *talk))
    assert again == second
    third = await post(client, api, body(api, *talk, ("ours", second), ("user", "and now?")))
    assert said(api, third)[1] == "second exchange"


@pytest.mark.parametrize(
    ("word", "text", "stops"),
    [
        ("refuse", "I will not.", {"refusal", "content_filter"}),
        ("long", "It goes on and", {"max_tokens", "max_output_tokens", "length"}),
    ],
)
@pytest.mark.parametrize("api", PATHS)
async def test_each_wire_has_its_own_stop_reason(
    client: TestClient[Any, Any], api: str, word: str, text: str, stops: set[str]
) -> None:
    _, shown, _, stop = said(api, await post(client, api, body(api, ("user", word))))
    assert (shown, stop in stops) == (text, True)


@pytest.mark.parametrize("api", PATHS)
async def test_the_simulated_user_s_model_answers_json(client: TestClient[Any, Any], api: str) -> None:
    answer = await post(client, api, body(api, ("user", "word it"), tools=False, system="You are the user."))
    assert json.loads(said(api, answer)[1]) == {"text": "hello", "slice": None}
    assert said(api, await post(client, api, body(api, ("user", "title?"), tools=False)))[1] == "ok"


async def _events(client: TestClient[Any, Any], api: str, asked: Body) -> list[Body]:
    response = await client.post(PATHS[api], json={**asked, "stream": True}, headers={"x-api-key": KEY})
    assert response.content_type == "text/event-stream"
    blocks = (await response.text()).strip().split("\n\n")
    return [json.loads(data) for block in blocks if (data := block.split("data: ", 1)[1]) != "[DONE]"]


def unmarked(value: Any) -> str:
    """Without the ids, which follow from the request's bytes."""
    return re.sub(r"[0-9a-f]{22}", "", json.dumps(value))


async def test_a_responses_stream_says_the_same_as_the_json(client: TestClient[Any, Any]) -> None:
    asked = body("responses", ("user", "begin"))
    whole = await post(client, "responses", asked)
    events = await _events(client, "responses", asked)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [events[0]["type"], events[-1]["type"]] == ["response.created", "response.completed"]
    for name in ("output", "model", "status"):
        assert unmarked(events[-1]["response"][name]) == unmarked(whole[name])
    usages = events[-1]["response"]["usage"], whole["usage"]
    assert usages[0]["output_tokens"] == usages[1]["output_tokens"]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert unmarked(done) == unmarked(whole["output"])
    added = [event["item"]["id"] for event in events if event["type"] == "response.output_item.added"]
    assert added == [item["id"] for item in done]
    arguments = [event["delta"] for event in events if event["type"] == "response.function_call_arguments.delta"]
    assert "".join(arguments) == "".join(item["arguments"] for item in whole["output"] if item["type"] == "function_call")


async def test_a_chat_stream_says_the_same_as_the_json(client: TestClient[Any, Any]) -> None:
    asked = body("chat", ("user", "begin"))
    whole = await post(client, "chat", asked)
    events = await _events(client, "chat", asked)
    assert events[-1]["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"]
    deltas = [event["choices"][0]["delta"] for event in events if event["choices"]]
    message = whole["choices"][0]["message"]
    assert "".join(delta.get("content") or "" for delta in deltas) == message["content"]
    assert "".join(delta.get("reasoning_content") or "" for delta in deltas) == message["reasoning_content"]
    calls: dict[int, list[str]] = {}
    for delta in deltas:
        for call in delta.get("tool_calls", []):
            calls.setdefault(call["index"], []).append(call["function"]["arguments"])
    assert ["".join(parts) for parts in calls.values()] == [c["function"]["arguments"] for c in message["tool_calls"]]
    assert [e["choices"][0]["finish_reason"] for e in events if e["choices"]][-1] == "tool_calls"


@pytest.mark.parametrize("api", PATHS)
async def test_usage_adds_up_in_each_wire_s_own_words(client: TestClient[Any, Any], api: str) -> None:
    first = await post(client, api, body(api, ("user", "begin" + "x" * 4000), system="s" * 8000))
    second = await post(
        client, api, body(api, ("user", "begin" + "x" * 4000), ("ours", first), ("result", ["a", "b"]), system="s" * 8000)
    )
    usage = second["usage"]
    if api == "anthropic":
        assert usage["cache_read_input_tokens"] > 2000
        assert usage["input_tokens"] == 3
    elif api == "responses":
        assert usage["input_tokens"] > usage["input_tokens_details"]["cached_tokens"] > 2000
        assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
        assert first["usage"]["output_tokens_details"]["reasoning_tokens"] > 0
    else:
        assert usage["prompt_tokens"] > usage["prompt_tokens_details"]["cached_tokens"] > 2000
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_a_wrong_key_is_refused_in_openai_s_words(client: TestClient[Any, Any], api: str) -> None:
    response = await client.post(PATHS[api], json=body(api, ("user", "begin")), headers={"authorization": "Bearer other"})
    assert response.status == 401
    assert (await response.json())["error"]["code"] == "invalid_api_key"


async def test_the_record_for_tests_has_whole_bodies_and_no_keys(client: TestClient[Any, Any]) -> None:
    asked = body("chat", ("user", "begin"))
    await post(client, "chat", asked)
    (seen,) = await (await client.get("/control/requests")).json()
    assert (seen["path"], seen["rule"], seen["body"]) == ("/v1/chat/completions", "rules.0", asked)
    assert KEY not in json.dumps(seen)
