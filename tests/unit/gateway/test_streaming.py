"""Bytes pass untouched, in both directions, and never faster than the agent reads them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web

from tests.unit.gateway.rig import KEY, MODEL, MakeRig, hangs, message, says, sse, start, streams, text_block

ODD = [
    message("plain"),
    b"event: ping\r\ndata: {}\r\n\r\n: comment\n\n\n" + message("\u00e9\U0001f600 caf\u00e9"),
    b"\xef\xbb\xbfdata: not json\n\nid: 7\nretry: 10\n" + b"\xff\xfe\n\n" + message(),
    b"\n\n" + message("x" * 300_000),
]


@pytest.mark.parametrize("body", ODD)
@pytest.mark.parametrize("size", [1 << 20, 997, 7])
async def test_byte_for_byte(rig: MakeRig, body: bytes, size: int) -> None:
    if size == 7:
        body = body[-2000:] if body.startswith(b"\n\n") else body
    made = await rig(streams(*(body[i : i + size] for i in range(0, len(body), size))))
    async with made.post(made.body()) as response:
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert response.headers["request-id"] == "req_1"
        assert await response.read() == body


async def test_first_bytes_arrive_before_the_provider_is_done(rig: MakeRig) -> None:
    go = asyncio.Event()

    async def slowly(request: Any) -> Any:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(sse(start(), *text_block(0, "one")))
        await go.wait()
        await response.write(message())
        return response

    made = await rig(slowly)
    async with made.post(made.body()) as response:
        assert await response.content.readany() == sse(start(), *text_block(0, "one"))
        go.set()
        assert await response.content.read() == message()


async def test_cut_as_received(rig: MakeRig) -> None:
    half = sse(start(), *text_block(0, "half")) + b'event: content_block_delta\ndata: {"type"'
    made = await rig(streams(half, cut=True))
    assert await made.cut(made.body()) == half
    (reply,) = made.of("model_reply")
    assert reply["aborted"] == "provider"
    assert "usage" not in reply
    assert [entry["text"] for entry in made.of("agent_message")] == ["half"]
    assert made.gateway.tokens.input == 0


async def test_what_ends_in_good_order_before_it_is_complete_is_cut_for_the_agent_too(rig: MakeRig) -> None:
    """A program would take it for the whole answer and hand over on half of it."""
    half = sse(start(), *text_block(0, "half"))
    made = await rig(streams(half), streams(message()))
    body = made.body()
    assert await made.cut(body) == half
    assert made.of("model_reply")[0]["aborted"] == "provider"
    assert made.gateway.cut_by_provider is not None
    assert await made.ask(body) == (200, message())
    assert made.gateway.turns == 1, "asked again, it is the same turn"


async def test_slow_agent_slows_the_provider(rig: MakeRig) -> None:
    sent = 0
    chunk = b": " + b"x" * 65_534 + b"\n"

    async def flood(request: Any) -> Any:
        nonlocal sent
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for _ in range(2000):  # 128 MB
            await response.write(chunk)
            sent += len(chunk)
        return response

    made = await rig(flood)
    async with made.post(made.body()) as response:
        before = -1
        while before != sent:  # until nothing moves any more
            before = sent
            await asyncio.sleep(0.2)
        assert sent < 32 << 20
        assert await response.content.readany()


async def test_body_is_forwarded_as_it_came_unless_the_model_differs(rig: MakeRig) -> None:
    made = await rig()
    odd = made.body("caf\u00e9 \ud83d\ude00").replace(b'"max_tokens": 10', b'"max_tokens"   :  10')
    await made.ask(odd)
    await made.ask(made.body("hi", model="claude-haiku-x"))
    await made.ask(made.body("hi", model=None))
    assert made.provider.seen[0].raw == odd
    assert [json.loads(seen.raw)["model"] for seen in made.provider.seen] == [MODEL] * 3
    assert json.loads(made.provider.seen[1].raw) == json.loads(made.body())
    requests = made.of("model_request")
    assert [entry["modelAsked"] for entry in requests] == [MODEL, "claude-haiku-x", ""]
    assert [entry["modelSent"] for entry in requests] == [MODEL] * 3
    assert made.of("model_reply")[0]["model"] == MODEL


async def test_key_only_goes_to_the_provider(rig: MakeRig) -> None:
    """Also where the provider quotes it back in an error, or hangs up with it."""
    made = await rig(says(401, {"error": f"no such key {KEY}"}), says(400, {"error": KEY}), streams(message()))
    seen = b""
    for n in range(3):
        async with made.post(made.body(str(n)), authorization="Bearer x", cookie="a=b") as response:
            seen += await response.read() + repr(response.headers).encode()
    assert KEY.encode() not in seen
    assert KEY.encode() not in made.written()
    assert KEY not in repr(made.gateway.__dict__)
    for sent in made.provider.seen:
        assert sent.headers["x-api-key"] == KEY
        assert made.gateway.token not in repr(sent.headers)
        assert "cookie" not in sent.headers
        assert "authorization" not in sent.headers


async def test_reply_waits_for_the_scan_and_the_scan_for_the_request(rig: MakeRig) -> None:
    order: list[str] = []
    asked = asyncio.Event()

    async def scan(turn: int) -> None:
        await asyncio.wait_for(asked.wait(), 5)  # the provider has the request while the scan runs
        await asyncio.sleep(0.05)  # longer than an answer that is not held takes to arrive
        order.append(f"scan {turn}")

    async def answer(request: Any) -> Any:
        asked.set()
        return await streams(message())(request)

    made = await rig(answer, hold_seconds=5.0)
    made.gateway.on_request_accepted = scan
    async with made.post(made.body()) as response:
        await response.content.readany()
        order.append("reply")
    assert order == ["scan 1", "reply"]


async def test_scan_that_hangs_or_fails_does_not_stop_the_agent(rig: MakeRig) -> None:
    async def hang(turn: int) -> None:
        if turn == 2:
            raise ValueError("no runner")
        await asyncio.Event().wait()

    made = await rig(hold_seconds=0.05)
    made.gateway.on_request_accepted = hang
    assert (await made.ask(made.body("1")))[0] == 200
    assert (await made.ask(made.body("2")))[0] == 200
    assert [entry["message"] for entry in made.of("error")] == ["ValueError: no runner"]


async def test_stop_cuts_and_records_what_is_open(rig: MakeRig) -> None:
    never = asyncio.Event()
    made = await rig(hangs(never))
    asking = asyncio.create_task(made.ask(made.body()))
    await made.provider.arrived.get()
    assert made.gateway.open_requests == 1
    await made.gateway.stop()
    with pytest.raises(Exception, match=r"(?i)disconnected|reset|closed"):
        await asking
    (reply,) = made.of("model_reply")
    assert "aborted" not in reply
    assert reply["error"] == "the session stopped"
    assert made.gateway.open_requests == 0
    never.set()


async def test_ledger_that_cannot_be_written_stops_everything(rig: MakeRig) -> None:
    made = await rig()
    made.ledger.close()
    assert (await made.ask(made.body()))[0] == 500
    assert made.gateway.broken.is_set()
    assert "closed" in str(made.gateway.breakage)
    assert made.provider.seen == []
