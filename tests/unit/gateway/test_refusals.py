"""What is not on the list does not reach the provider, and stands in the ledger."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from realcli_session.gateway.allow import BodyRefused, parse_body
from realcli_session.gateway.config import EndpointRefused, check_endpoint
from realcli_session.gateway.dialects import dialect_of
from tests.unit.gateway.rig import MakeRig

PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}


def body(**more: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 1, "messages": []} | more


def holding(*blocks: dict[str, Any]) -> dict[str, Any]:
    return body(messages=[{"role": "user", "content": list(blocks)}])


FEATURES = [
    ("plain text", body(messages=[{"role": "user", "content": "hi"}], system="s"), None),
    ("a client tool", body(tools=[{"name": "x", "input_schema": {}}, {"type": "bash_20250124", "name": "bash"}]), None),
    ("an image inside", holding({"type": "tool_result", "tool_use_id": "t", "content": [PNG]}), None),
    ("web search", body(tools=[{"type": "web_search_20250305", "name": "web_search"}]), "tools[0].type web_search_20250305"),
    ("web fetch", body(tools=[{"type": "web_fetch_20250910", "name": "web_fetch"}]), "tools[0].type web_fetch_20250910"),
    ("code execution", body(tools=[{"type": "code_execution_20250825"}]), "tools[0].type code_execution_20250825"),
    ("a later tool", body(tools=[{"name": "a"}, {"type": "bash_20250124x"}]), "tools[1].type bash_20250124x"),
    ("tool type of no text", body(tools=[{"type": ["custom"]}]), "tools[0].type ['custom']"),
    ("called by provider code", body(tools=[{"name": "a", "allowed_callers": ["code_execution_20250825"]}]), "allowed_callers"),
    ("MCP connector", body(mcp_servers=[{"type": "url", "url": "https://x"}]), "feature: mcp_servers"),
    ("container", body(container="c_1"), "feature: container"),
    ("unknown field", body(inference_geo="us"), "feature: inference_geo"),
    ("image by URL", holding({"type": "image", "source": {"type": "url", "url": "https://x"}}), "source url"),
    ("file", holding({"type": "document", "source": {"type": "file", "file_id": "f"}}), "source file"),
    ("document without source", holding({"type": "document"}), "source None"),
    ("upload", holding({"type": "container_upload", "file_id": "f"}), "block container_upload"),
    ("server tool use", holding({"type": "server_tool_use"}), "block server_tool_use"),
    (
        "URL inside a tool result",
        holding({"type": "tool_result", "content": [{"type": "image", "source": {"type": "url"}}]}),
        "source url",
    ),
    (
        "URL inside a document's content",
        holding({"type": "document", "source": {"type": "content", "content": [{"type": "image", "source": {"type": "url"}}]}}),
        "source url",
    ),
    ("URL in the system prompt", body(system=[{"type": "image", "source": {"type": "url"}}]), "system source url"),
    ("content of another kind", body(messages=[{"role": "user", "content": 7}]), "content is neither"),
    ("no messages", {"model": "m"}, "messages is not a list"),
    ("too many messages", body(messages=[{}] * 10_001), "more than 10000 messages"),
    ("block type of no text", holding({"type": ["text"]}), "block ['text']"),
    ("source type of no text", holding({"type": "image", "source": {"type": {"base64": 1}}}), "source {'base64': 1}"),
]


@pytest.mark.parametrize(("name", "given", "want"), FEATURES, ids=[row[0] for row in FEATURES])
def test_features(name: str, given: dict[str, Any], want: str | None) -> None:
    got = dialect_of("anthropic").refused(given)
    assert (got is None) if want is None else (got is not None and want in got), got


PATHS = [
    ("POST", "/v1/messages", "beta=true", "generate"),
    ("POST", "/v1/messages", "", "generate"),
    ("POST", "/v1/messages/count_tokens", "beta=true", "count"),
    ("GET", "/v1/models", "limit=1000", "models"),
    ("GET", "/v1/models/claude-x", "", "models"),
    ("HEAD", "/", "", "root"),
    ("GET", "/", "", None),
    ("POST", "/v1/messages", "beta=true&x=1", None),
    ("POST", "/v1/messages/batches", "", None),
    ("POST", "/v1/files", "", None),
    ("GET", "/v1/files/f_1/content", "", None),
    ("POST", "/v1/responses", "", None),
    ("POST", "/v1/messages/", "", None),
    ("POST", "/v1/../v1/files", "", None),
    ("GET", "/v1/messages", "", None),
]


@pytest.mark.parametrize(("method", "path", "query", "want"), PATHS)
def test_paths(method: str, path: str, query: str, want: str | None) -> None:
    assert dialect_of("anthropic").route(method, path, query) == want


@pytest.mark.parametrize(
    "raw",
    [b'{"model":"a","model":"b"}', b'{"a":{"type":"x","type":"y"}}', b"[]", b"{", b"\xff", b'{"a":NaN}', b"[" * 100_000],
)
def test_bodies_that_can_be_read_in_two_ways_or_none(raw: bytes) -> None:
    with pytest.raises(BodyRefused):
        parse_body(raw)


async def test_refusals_end_at_the_gateway_and_are_recorded(rig: MakeRig) -> None:
    made = await rig(max_body=10_000)
    search = json.dumps(body(tools=[{"type": "web_search_20250305", "name": "web_search"}])).encode()
    cases = [
        (made.post(search), 400, "feature: tools[0].type web_search_20250305"),
        (made.post(b"{}", "/v1/files"), 400, "path: POST /v1/files"),
        (made.post(made.body("x" * 10_000)), 413, "size"),
        (made.post(made.body(), **{"x-api-key": "wrong"}), 401, "token"),
        (made.post(made.body(), **{"content-encoding": "gzip"}), 400, "feature: content-encoding"),
        (made.post(b'{"model":"a","model":"b"}'), 400, "json: a name stands twice in one object"),
    ]
    for asking, status, _ in cases:
        async with asking as response:
            assert (response.status, response.headers["x-should-retry"]) == (status, "false")
    assert [entry["refused"] for entry in made.of("model_request")] == [reason for _, _, reason in cases]
    assert (made.gateway.refused, made.gateway.turns, made.provider.seen) == (6, 0, [])
    assert not made.gateway.turn_limit_hit.is_set()


async def test_unbounded_body_is_cut_at_the_cap(rig: MakeRig) -> None:
    made = await rig(max_body=100_000)

    async def endless() -> Any:
        while True:
            yield b"x" * 65_536

    async with made.post(endless()) as response:
        assert response.status == 413


async def test_after_refuse_all(rig: MakeRig) -> None:
    made = await rig()
    made.gateway.refuse_all("deadline")
    made.gateway.refuse_all("later")
    assert (await made.ask(made.body()))[0] == 400
    assert made.of("model_request")[0]["refused"] == "deadline"
    assert made.provider.seen == []


ENDPOINTS = [
    ("https://api.example.com", False, True),
    ("https://10.0.0.1:8443/base", False, True),
    ("http://provider.demo.svc:8080", True, True),
    ("http://provider.demo.svc.cluster.local", True, True),
    ("http://provider.demo.svc.other.domain", True, False),
    ("http://provider", True, True),
    ("http://provider.demo.svc:8080", False, False),
    ("http://api.example.com", True, False),
    ("http://provider.demo", True, False),
    ("http://evil.com.svc", True, True),  # <service>.<namespace>.svc: no public domain ends so
    ("http://a.b.c.svc", True, False),
    ("http://10.96.0.7", True, False),
    ("http://[fd00::1]:80", True, False),
    ("http://2130706433", True, False),
    ("http://0x7f000001", True, False),
    ("http://127.0.0.1:1", True, False),
    ("http://localhost", True, False),
    ("http://key@provider", True, False),
    ("https://api.example.com?x=1", False, False),
    ("ftp://provider", True, False),
]


@pytest.mark.parametrize(("url", "insecure", "allowed"), ENDPOINTS)
def test_endpoints_a_key_may_go_to(url: str, insecure: bool, allowed: bool) -> None:
    if allowed:
        check_endpoint(url, insecure_http=insecure)
    else:
        with pytest.raises(EndpointRefused, match=r"\S"):
            check_endpoint(url, insecure_http=insecure)


def test_loopback_is_for_tests_alone() -> None:
    check_endpoint("http://127.0.0.1:1", insecure_http=False, allow_loopback=True)
    with pytest.raises(EndpointRefused):
        check_endpoint("http://10.0.0.1:1", insecure_http=False, allow_loopback=True)


HOSTILE = [
    pytest.param(json.dumps({"\ud800": 1}), id="half a character as a name"),
    pytest.param(json.dumps(holding({"type": "\udfff"})), id="half a character as a block type"),
    pytest.param(json.dumps(body(tools=[{"type": "\ud800"}])), id="half a character as a tool type"),
    pytest.param(json.dumps(holding({"type": ["text"]})), id="a list as a block type"),
    pytest.param(json.dumps(holding({"type": "image", "source": {"type": {}}})), id="an object as a source type"),
    pytest.param('{"metadata": ' + "[" * 980 + "]" * 980 + ', "messages": []}', id="lists in lists, just readable"),
    pytest.param('{"metadata": ' + '{"a": ' * 101 + "1" + "}" * 101 + ', "messages": []}', id="objects in objects"),
    pytest.param("[" * 100_000, id="lists in lists, unreadable"),
    pytest.param('{"max_tokens": 1e999, "messages": []}', id="a number out of range"),
    pytest.param('{"max_tokens": ' + "9" * 5000 + ', "messages": []}', id="a number too long"),
]


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
@pytest.mark.parametrize("hostile", HOSTILE)
async def test_no_body_breaks_the_session(rig: MakeRig, hostile: str, path: str) -> None:
    """A broken session is an invalid trial: an agent that is losing would have found a way to start again."""
    r = await rig()
    status, _ = await r.ask(hostile.encode(), path)
    assert status == 400
    assert not r.gateway.broken.is_set(), r.gateway.breakage
    (event,) = r.of("model_request")
    assert event["refused"].startswith(("json: ", "feature: "))
    assert (await r.ask(r.body()))[0] == 200


async def test_a_request_waits_for_room_before_its_body_is_read(rig: MakeRig) -> None:
    free, asked = asyncio.Event(), asyncio.Event()

    async def room() -> None:
        asked.set()
        await free.wait()

    r = await rig(room=room)
    asking = asyncio.create_task(r.ask(r.body()))
    await asked.wait()
    assert (r.provider.seen, r.gateway.turns) == ([], 0)
    free.set()
    assert (await asking)[0] == 200
