from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import TestClient, TestServer

from realcli_provider.__main__ import DEMO
from realcli_provider.script import read_script
from realcli_provider.server import Provider

KEY = "sk-provider-1"
HEADERS = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
TOOLS = [{"name": "Bash", "input_schema": {"type": "object"}}]


def a_body(text: str = "hello", **more: Any) -> dict[str, Any]:
    return {"model": "any-model", "max_tokens": 100, "messages": [{"role": "user", "content": text}], **more}


@pytest.fixture
async def client() -> AsyncIterator[TestClient[Any, Any]]:
    async with TestClient(TestServer(Provider(KEY, read_script(DEMO), control=True).app)) as client:
        yield client


async def events(response: aiohttp.ClientResponse) -> list[dict[str, Any]]:
    blocks = (await response.text()).strip().split("\n\n")
    parsed = [json.loads(block.split("\ndata: ")[1]) for block in blocks]
    assert [block.split("\n")[0] for block in blocks] == [f"event: {event['type']}" for event in parsed]
    return parsed


async def test_an_answer_has_the_asked_model_and_usage_with_cache_fields(client: TestClient[Any, Any]) -> None:
    response = await client.post("/v1/messages?beta=true", json=a_body(), headers=HEADERS)
    answer = await response.json()
    assert (response.status, answer["model"], answer["stop_reason"]) == (200, "any-model", "end_turn")
    assert answer["content"] == [{"type": "text", "text": "ok"}]
    assert {"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"} <= set(answer["usage"])


async def test_a_stream_says_the_same_as_the_json(client: TestClient[Any, Any]) -> None:
    body = a_body("run\n```sh\necho 'a long command, longer than one piece'\n```\n", tools=TOOLS)
    plain = await (await client.post("/v1/messages", json=body, headers=HEADERS)).json()
    response = await client.post("/v1/messages", json={**body, "stream": True}, headers=HEADERS)
    assert response.content_type == "text/event-stream"
    seen = await events(response)
    assert [seen[0]["type"], seen[1]["type"], seen[-1]["type"]] == ["message_start", "ping", "message_stop"]
    pieces = [event["delta"]["partial_json"] for event in seen if event["type"] == "content_block_delta"]
    assert len(pieces) > 2
    assert json.loads("".join(pieces)) == plain["content"][0]["input"]
    end = next(event for event in seen if event["type"] == "message_delta")
    assert (end["delta"]["stop_reason"], end["usage"]["output_tokens"]) == ("tool_use", plain["usage"]["output_tokens"])


async def test_the_cache_is_read_in_the_second_request_and_the_parts_make_up_the_whole(client: TestClient[Any, Any]) -> None:
    first = a_body("x" * 4000, tools=TOOLS, system="s" * 8000)
    answer = await (await client.post("/v1/messages", json=first, headers=HEADERS)).json()
    block = {"type": "tool_result", "tool_use_id": answer["content"][0]["id"], "content": "listing"}
    more = [{"role": "assistant", "content": answer["content"]}, {"role": "user", "content": [block]}]
    second = {**first, "messages": first["messages"] + more}
    usages = [answer["usage"], (await (await client.post("/v1/messages", json=second, headers=HEADERS)).json())["usage"]]
    assert usages[0]["cache_read_input_tokens"] == 0
    assert usages[0]["cache_creation_input_tokens"] > 2000
    assert usages[1]["cache_read_input_tokens"] > usages[1]["cache_creation_input_tokens"] > 0
    counted = await (await client.post("/v1/messages/count_tokens", json=second, headers=HEADERS)).json()
    parts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    assert sum(usages[1][part] for part in parts) == counted["input_tokens"]


@pytest.mark.parametrize("key", [None, "wrong", ""])
async def test_a_wrong_key_is_refused_as_the_real_one_does(client: TestClient[Any, Any], key: str | None) -> None:
    headers = {} if key is None else {"x-api-key": key}
    for response in [
        await client.post("/v1/messages", json=a_body(), headers=headers),
        await client.get("/v1/models", headers=headers),
    ]:
        body = await response.json()
        assert response.status == 401
        assert body["type"] == "error"
        assert body["error"] == {"type": "authentication_error", "message": "invalid x-api-key"}
        assert body["request_id"] == response.headers["request-id"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "the request body is not valid JSON"),
        (b"[]", "the request body is not a JSON object"),
        (b'{"messages": [], "max_tokens": 1}', "model: Field required"),
        (b'{"model": 1, "messages": [], "max_tokens": 1}', "model: Input should be a valid str"),
        (b'{"model": "m", "messages": [], "max_tokens": 1}', "messages: at least one message is required"),
        (
            b'{"model": "m", "messages": [{"role": "assistant"}], "max_tokens": 1}',
            "messages: the last message has to be of",
        ),
    ],
)
async def test_a_malformed_request_is_an_invalid_request_error(client: TestClient[Any, Any], data: bytes, message: str) -> None:
    response = await client.post("/v1/messages", data=data, headers=HEADERS)
    assert response.status == 400
    error = (await response.json())["error"]
    assert error["type"] == "invalid_request_error"
    assert error["message"].startswith(message)


async def test_the_small_routes(client: TestClient[Any, Any]) -> None:
    assert (await client.head("/")).status == 200
    assert await (await client.get("/healthz")).text() == "ok\n"
    models = await (await client.get("/v1/models", headers=HEADERS)).json()
    assert "claude-sonnet-4-5" in [model["id"] for model in models["data"]]
    lost = await client.post("/v1/files", headers=HEADERS)
    assert (lost.status, (await lost.json())["error"]["type"]) == (404, "not_found_error")


async def test_the_record_shows_keys_as_digests_and_bodies_trimmed(client: TestClient[Any, Any]) -> None:
    await client.post("/v1/messages", json=a_body("y" * 5000, tools=TOOLS), headers=HEADERS)
    await client.post("/v1/messages", json=a_body(), headers={"x-api-key": "other"})
    record = await (await client.get("/requests")).json()
    assert record["counts"] == {"/v1/messages 200": 1, "/v1/messages 401": 1}
    assert record["keys"] == {hashlib.sha256(key.encode()).hexdigest(): 1 for key in (KEY, "other")}
    first = record["last"][0]["body"]
    assert first["tools"] == ["Bash"]
    assert first["messages"][0]["content"].endswith("… 3000 more")
    assert KEY not in json.dumps(record)


async def test_control_changes_what_is_answered_for_so_many_requests(client: TestClient[Any, Any]) -> None:
    async def ask(**more: Any) -> aiohttp.ClientResponse:
        return await client.post("/v1/messages", json=a_body(**more), headers=HEADERS)

    await client.post("/control", json={"status": 529, "times": 1})
    answers = [await ask(), await ask()]
    assert [answer.status for answer in answers] == [529, 200]
    assert (await answers[0].json())["error"]["type"] == "overloaded_error"
    await client.post("/control", json={"stick": "true", "model": "another"})
    for _ in range(2):
        answer = await (await ask(tools=TOOLS)).json()
        assert (answer["model"], answer["content"][0]["input"]["command"]) == ("another", "true")
    await client.post("/control", json={"cut": True})
    with pytest.raises(aiohttp.ClientPayloadError):
        await (await ask(stream=True)).read()
    refused = await client.post("/control", json={"speed": 1})
    assert refused.status == 400
    await client.post("/control", json={})
    assert (await ask()).status == 200


async def test_without_the_switch_there_is_no_control() -> None:
    async with TestClient(TestServer(Provider(KEY, read_script(DEMO)).app)) as client:
        assert (await client.post("/control", json={"status": 500})).status == 404
