"""Agents and providers that want to break or exhaust the session: bounded, recorded, and the next request is served."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import itertools
import json
import os
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from hypothesis import example, given
from hypothesis import strategies as st

from realcli_session.gateway import body as bodies
from realcli_session.gateway import listening, record
from realcli_session.gateway.allow import MAX_VALUES, BodyRefused, parse_body
from realcli_session.gateway.config import RetryPolicy
from realcli_session.gateway.dialects import anthropic
from realcli_session.gateway.keys import KeyFilter
from realcli_session.gateway.retry import retry_after
from tests.unit.gateway.rig import KEY, MODEL, MakeRig, Rig, drain, hangs, message, says, streams
from tests.unit.gateway.wires import WIRES, Wire

EACH = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)


def raw(body: dict[str, Any], **more: Any) -> bytes:
    return json.dumps(body | {"model": MODEL} | more).encode()


async def serves(made: Rig) -> bool:
    """The provider's next answer reaches the agent."""
    return (await made.ask(made.body("after")))[0] == 200


# Agents


@pytest.mark.parametrize("filler", [b"[],", b"{},", b"1,", b'"",', b"[[[]]],"])
def test_many_small_values_are_refused_before_they_are_made(filler: bytes) -> None:
    body = b'{"messages": [' + filler * (MAX_VALUES // filler.count(b",") + 1) + b"1]}"
    with pytest.raises(BodyRefused, match="more than 1000000 values"):
        parse_body(body)


def test_a_long_text_full_of_commas_is_read() -> None:
    text = "1,2;" * 200_000
    assert parse_body(json.dumps({"messages": [{"content": text}]}).encode())["messages"][0]["content"] == text


async def raw_request(made: Rig, head: bytes) -> bytes:
    """Send bytes as they are; what comes back until the gateway hangs up."""
    port = int(made.origin.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(head)
        await writer.drain()
        return await asyncio.wait_for(reader.read(1000), 10)
    except ConnectionError:
        return b""
    finally:
        writer.close()


LINE = b"POST /v1/messages HTTP/1.1\r\nHost: x\r\n"
HEADS = [
    ("ten thousand headers", LINE + b"".join(b"x-%d: y\r\n" % n for n in range(10_000)) + b"\r\n"),
    ("a header of a megabyte", LINE + b"x: " + b"y" * (1 << 20) + b"\r\n\r\n"),
    ("a path of a megabyte", b"GET /" + b"x" * (1 << 20) + b" HTTP/1.1\r\n\r\n"),
    ("no HTTP", os.urandom(5000) + b"\r\n\r\n"),
    ("two lengths", LINE + b"content-length: 5\r\ncontent-length: 6\r\n\r\n{}"),
    ("a length that is none", LINE + b"content-length: -1\r\n\r\n"),
]


@pytest.mark.parametrize(("name", "head"), HEADS, ids=[row[0] for row in HEADS])
async def test_heads(rig: MakeRig, name: str, head: bytes) -> None:
    made = await rig()
    answer = await raw_request(made, head)
    assert answer == b"" or answer.startswith((b"HTTP/1.1 400", b"HTTP/1.0 400", b"HTTP/1.1 401", b"HTTP/1.1 414")), answer[:60]
    assert made.provider.seen == []
    assert not made.gateway.broken.is_set()
    assert await serves(made)


async def test_connections_are_bounded(rig: MakeRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "MAX_CONNECTIONS", 20)
    made = await rig()
    port = int(made.origin.rpartition(":")[2])
    held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
    for _, writer in held:
        writer.write(b"GET ")
    async with asyncio.timeout(10):
        reader, over = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(ConnectionError):
            assert await reader.read(1) == b""
    over.close()
    for _, writer in held:
        writer.close()
        await writer.wait_closed()
    assert await serves(made)


async def test_requests_sent_ahead_are_not_read_while_one_is_answered(rig: MakeRig) -> None:
    """aiohttp would read and keep 32 of them for each connection, heads of a megabyte included."""
    go = asyncio.Event()

    async def late(request: web.Request) -> web.StreamResponse:
        await go.wait()
        return await streams(message())(request)

    made = await rig(late)
    port = int(made.origin.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = made.body()
    head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {made.gateway.token}\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await made.provider.arrived.get()
    ahead = b"GET /x HTTP/1.1\r\nhost: x\r\n" + b"".join(b"x%d: %s\r\n" % (n, b"y" * 8000) for n in range(60)) + b"\r\n"
    writer.write(ahead * 30)
    (guard,) = made.gateway._door.guards.values()
    async with asyncio.timeout(10):
        while not guard._paused:  # noqa: ASYNC110
            await asyncio.sleep(0)
    for _ in range(20):  # time in which it could read on
        async with made.http.get(made.origin + "/v1/models", headers={"x-api-key": made.gateway.token}) as response:
            assert response.status == 200
    assert len(guard._held) < 1 << 20
    assert len(made.of("model_request")) == 1
    go.set()
    got = b""
    async with asyncio.timeout(10):
        while got.count(b"HTTP/1.1 400") < 30:
            got += await reader.read(1 << 16)
    assert got.startswith(b"HTTP/1.1 200")
    assert [entry["refused"] for entry in made.of("model_request")[1:]] == ["path: GET /x"] * 30
    writer.close()


async def test_an_agent_that_hangs_up_after_sending_ahead_is_noticed(rig: MakeRig) -> None:
    never = asyncio.Event()
    made = await rig(hangs(never))
    port = int(made.origin.rpartition(":")[2])
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    body = made.body()
    head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {made.gateway.token}\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body + b"GET /x HTTP/1.1\r\nhost: x\r\n\r\n")
    await made.provider.arrived.get()
    writer.transport.abort()
    (reply,) = await made.until("model_reply")
    assert reply["aborted"] == "agent"
    never.set()


async def test_a_body_that_comes_too_slowly(rig: MakeRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "READ_SECONDS", 0.1)
    made, never = await rig(), asyncio.Event()

    async def drip() -> Any:
        yield b'{"mess'
        await never.wait()

    async with made.post(drip()) as response:
        assert response.status == 408
        never.set()
    assert made.of("model_request")[0]["refused"] == "slow"
    assert await serves(made)


async def test_a_compressed_body_is_refused_unread(rig: MakeRig) -> None:
    made = await rig()
    bomb = gzip.compress(b"0" * (64 << 20))
    async with made.post(bomb, **{"content-encoding": "gzip"}) as response:
        assert response.status == 400
    assert made.of("model_request")[0]["refused"] == "feature: content-encoding"


# Providers


async def endless(request: web.Request) -> web.StreamResponse:
    kind = "text/event-stream" if b'"stream": true' in await request.read() else "application/json"
    response = web.StreamResponse(headers={"content-type": kind})
    await response.prepare(request)
    while True:
        await response.write(b": " + b"x" * 65_534)


@EACH
async def test_a_stream_without_end_is_cut(rig: MakeRig, wire: Wire) -> None:
    made = await rig(endless, streams(*wire.stream("x", MODEL)), dialect=wire.api, max_reply=1 << 20)
    got: list[bytes] = []
    async with asyncio.timeout(20), made.post(raw(wire.plain("go"))) as response:
        with pytest.raises(aiohttp.ClientPayloadError):
            await drain(response, got)
    assert sum(map(len, got)) < 2 << 20
    (reply,) = made.of("model_reply")
    assert (reply["aborted"], reply["error"]) == ("provider", "the provider's answer is longer than 1048576 bytes")
    assert (await made.ask(raw(wire.plain("go"))))[0] == 200
    assert made.gateway.turns == 1  # the provider cut it


async def test_an_answer_without_end_that_is_not_streamed(rig: MakeRig) -> None:
    made = await rig(endless, max_reply=1 << 20, retry=RetryPolicy(max_attempts=2))
    assert (await made.ask(made.body(stream=False)))[0] == 502
    assert "longer than 524288 bytes" in made.of("model_reply")[0]["error"]
    assert len(made.provider.seen) == 2


@pytest.mark.parametrize("status", [200, 400])
async def test_a_compressed_answer_is_no_answer(rig: MakeRig, status: int) -> None:
    async def zipped(request: web.Request) -> web.Response:
        return web.Response(status=status, body=gzip.compress(message()), headers={"content-encoding": "gzip"})

    made = await rig(zipped)
    assert (await made.ask(made.body()))[0] == 502
    assert (made.of("model_reply")[0]["error"], len(made.provider.seen)) == (
        "the answer is compressed (gzip), though none was asked for",
        1,
    )
    assert made.provider.seen[0].headers["accept-encoding"] == "identity"
    assert made.gateway.provider_failed.is_set()


async def test_silence_before_the_first_byte_is_retried_and_in_the_stream_is_a_cut(rig: MakeRig) -> None:
    never = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        await never.wait()
        return web.Response()

    async def stalls(request: web.Request) -> web.StreamResponse:
        response = await streams(message()[:40])(request)
        await never.wait()
        return response

    made = await rig(silent, stalls, streams(message()), silence_seconds=0.1)
    await made.cut(made.body())
    (reply,) = made.of("model_reply")
    assert (reply["aborted"], reply["attempts"]) == ("provider", 2)
    assert (await made.ask(made.body()))[0] == 200
    assert made.gateway.turns == 1
    never.set()


async def test_a_redirect_takes_the_key_nowhere(rig: MakeRig) -> None:
    elsewhere = await rig()
    made = await rig(says(307, {}, {"location": elsewhere.provider.url + "/v1/messages"}))
    assert (await made.ask(made.body()))[0] == 307
    assert elsewhere.provider.seen == []


@pytest.mark.parametrize("value", [b"\x01\x02", b"a\x7fb", b"\xff\xfe", b"a\tb"])
@pytest.mark.parametrize("kind", [b"text/event-stream", b"application/json"])
async def test_a_header_that_cannot_be_passed_on_is_left_out(rig: MakeRig, kind: bytes, value: bytes) -> None:
    async def odd(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        head = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: " + kind + b"\r\nrequest-id: " + value + b"\r\n\r\n"
        request.transport.write(head + (message() if b"event" in kind else b"{}"))
        request.transport.close()
        return web.Response()

    made = await rig(odd, streams(message()))
    async with made.post(made.body()) as response:
        assert response.status == 200
        await response.read()
        assert response.content_type.encode() == kind
    assert not made.gateway.broken.is_set()
    assert await serves(made)


@EACH
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
async def test_a_provider_that_echoes_the_headers_does_not_give_the_key_away(rig: MakeRig, wire: Wire, size: int) -> None:
    echo = b": authorization: Bearer " + KEY.encode() + b"\n\n" + b"".join(wire.stream(f"your key is {KEY}", MODEL))
    pieces = [echo[at : at + size] for at in range(0, len(echo), size)]
    header = {"request-id": KEY, "x-request-id": KEY}
    script = [streams(*pieces), says(200, wire.whole(KEY, MODEL), header), says(400, {"error": {"message": KEY}}, header)]
    made = await rig(*script, dialect=wire.api)
    for streamed in (True, False, False):
        async with made.post(raw(wire.plain("go"), stream=streamed)) as response:
            seen = await response.read() + repr(response.headers).encode()
        assert KEY.encode() not in seen
        assert b"[redacted]" in seen
    assert KEY.encode() not in made.written()


@given(st.binary(max_size=60), st.lists(st.integers(0, 80), max_size=10), st.booleans())
def test_the_filter_changes_nothing_but_the_key(data: bytes, cuts: list[int], with_key: bool) -> None:
    key = "aabaab"
    if with_key:
        data = data[:20] + key.encode() + data[20:]
    at = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    keys = KeyFilter(key)
    got = b"".join(keys.feed(data[a:b]) for a, b in itertools.pairwise(at)) + keys.flush()
    assert key.encode() not in got
    if key.encode() not in data:
        assert got == data


@given(
    st.text(max_size=40)
    | st.from_regex(
        r"Mon, ([0-9]{1,2}|[0-9]{25}) Nov ([0-9]{4}|[0-9]{25}) [0-9]{2}(:[0-9]{2}){0,2} (GMT|[+-]([0-9]{4}|[0-9]{25}))",
        fullmatch=True,
    )
)
@example("Mon, 30 Nov 2026 00:00:00 +99999999999999999")
@example("Fri, 31 Dec 99999999999999999999 23:59:59 GMT")
def test_no_retry_after_breaks_the_gateway(text: str) -> None:
    asked = retry_after({"retry-after": text}, datetime(2026, 1, 1, tzinfo=UTC))
    assert asked is None or asked >= 0


async def test_ids_of_any_length_are_not_kept(rig: MakeRig) -> None:
    """600 turns of 32 MB would be more memory than the session has."""
    made = await rig()
    block = {"type": "tool_result", "tool_use_id": "c" * 500_000, "content": "out"}
    for _ in range(2):
        assert (await made.ask(made.body(messages=[{"role": "user", "content": [block]}])))[0] == 200
    assert len(made.of("tool_result")) == 1
    assert sum(map(len, made.gateway._recorder._results)) < 100


async def test_more_blocks_than_a_conversation_has_are_refused(rig: MakeRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may be a tool's result: hundreds of thousands of events in one step of the event loop."""
    monkeypatch.setattr(anthropic, "MAX_BLOCKS", 10)
    made = await rig()
    blocks = [{"type": "tool_result", "tool_use_id": str(n), "content": "x"} for n in range(6)]
    for count, status in ((1, 200), (2, 400)):
        assert (await made.ask(made.body(messages=[{"role": "user", "content": blocks}] * count)))[0] == status
    assert made.of("model_request")[-1]["refused"] == "feature: more than 10 blocks"
    assert len(made.of("tool_result")) == 6


async def test_texts_that_were_told_are_forgotten_beyond_a_bound(rig: MakeRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "MAX_TEXTS", 2)
    made = await rig(markers={"/a": ["marked line"]})
    for text in ("one", "two", "three", "marked line"):
        await made.ask(made.body(text))
    assert len(made.gateway._recorder._texts_seen) == 2
    assert [entry["path"] for entry in made.of("file_read")] == ["/a"]
