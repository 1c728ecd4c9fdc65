"""Every wire API through the same gateway: what takes a turn, what the ledger holds, how a request is refused."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from realcli.api.trial import Tokens
from realcli_session.gateway.dialects import dialect_of
from tests.unit.gateway.rig import KEY, MODEL, Answer, MakeRig, Rig, hangs, resets, says, streams
from tests.unit.gateway.wires import ANTHROPIC, CALL, CHAT, RESPONSES, USED, WIRES, Wire

EACH = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)


def raw(body: dict[str, Any], **more: Any) -> bytes:
    return json.dumps(body | {"model": MODEL} | more).encode()


def good(wire: Wire, text: str = "hello") -> Answer:
    return streams(*wire.stream(text, MODEL))


def slips(pieces: list[bytes], never: asyncio.Event) -> Answer:
    """Sends the pieces and then nothing more."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = await streams(*pieces)(request)
        await never.wait()
        return response

    return answer


async def ask_anyhow(made: Rig, body: bytes) -> None:
    async with made.post(body) as response:
        with contextlib.suppress(aiohttp.ClientPayloadError):
            await response.read()


# Turns: the end of the first answer, and whether the same body then takes the same turn.
# (name, answers to the first request, the provider cut it)
ENDS: list[tuple[str, Any, bool]] = [
    ("whole", lambda w: [good(w)], False),
    ("whole, not streamed", lambda w: [says(200, w.whole("hi", MODEL))], False),
    ("refusal of the model", lambda w: [streams(*w.stream("no", MODEL, refused=True))], False),
    ("connection lost in the stream", lambda w: [streams(*w.half(MODEL), cut=True)], True),
    ("connection lost after the first piece", lambda w: [streams(w.stream("x", MODEL)[0], cut=True)], True),
    ("ended in order, but too early", lambda w: [streams(*w.half(MODEL)[:3])], True),
    ("an error inside the stream", lambda w: [streams(*w.broken)], True),
    ("not the API's language", lambda w: [streams(b"event: x\ndata: {}\n\n", b"\xff\n\n")], True),
    ("an error of the request", lambda w: [says(400, {"error": {"message": "m"}})], False),
    ("retries inside, then whole", lambda w: [says(529), resets, good(w)], False),
    ("an error before anything else, then whole", lambda w: [streams(w.error_first), good(w)], False),
    ("no answer within the bound", lambda w: [says(529)] * 3, True),
    ("no HTTP answer within the bound", lambda w: [resets] * 3, True),
]
# (name, change of the second body, it is the same to the model)
SECOND: list[tuple[str, dict[str, Any], bool]] = [
    ("identical", {}, True),
    ("not streamed", {"stream": False}, True),
    ("another temperature", {"temperature": 0.5}, False),
]


@EACH
@pytest.mark.parametrize(("name", "script", "cut"), ENDS, ids=[row[0] for row in ENDS])
@pytest.mark.parametrize(("how", "change", "same"), SECOND, ids=[row[0] for row in SECOND])
async def test_what_takes_a_turn(
    rig: MakeRig, wire: Wire, name: str, script: Any, cut: bool, how: str, change: dict[str, Any], same: bool
) -> None:
    made = await rig(*script(wire), good(wire), dialect=wire.api)
    body = wire.plain("go")
    await ask_anyhow(made, raw(body))
    await ask_anyhow(made, raw(body, **change))
    requests = [event for event in made.events if event.kind == "model_request"]
    second = 1 if cut and same else 2
    assert [(event.turn, event.data["counted"]) for event in requests] == [(1, True), (second, second == 2)]
    assert made.gateway.turns == second
    assert (made.of("model_reply")[0].get("aborted") == "provider") is cut
    await ask_anyhow(made, raw(body, **change))  # an answered turn is not repeated
    assert made.gateway.turns == second + 1


@EACH
@pytest.mark.parametrize("pieces", [0, 2], ids=["before the first byte", "in the stream"])
async def test_dropped_by_the_agent_is_counted_and_not_repeated(rig: MakeRig, wire: Wire, pieces: int) -> None:
    never = asyncio.Event()
    first = hangs(never) if not pieces else slips(wire.stream("x", MODEL)[:pieces], never)
    made = await rig(first, good(wire), dialect=wire.api)
    if pieces:
        async with made.post(raw(wire.plain("go"))) as response:
            await response.content.readany()
    else:
        asking = asyncio.create_task(made.ask(raw(wire.plain("go"))))
        await made.provider.arrived.get()
        asking.cancel()
    (reply,) = await made.until("model_reply")
    assert (reply["aborted"], reply["status"]) == ("agent", 200 if pieces else 499)
    assert "usage" not in reply
    await ask_anyhow(made, raw(wire.plain("go")))
    assert (made.gateway.turns, made.gateway.usage_unknown) == (2, 1)
    never.set()


@EACH
async def test_identical_bodies_at_the_same_time_take_a_turn_each(rig: MakeRig, wire: Wire) -> None:
    go = asyncio.Event()

    async def cut_later(request: web.Request) -> web.StreamResponse:
        await go.wait()
        return await streams(*wire.half(MODEL), cut=True)(request)

    made = await rig(cut_later, cut_later, good(wire), dialect=wire.api)
    body = raw(wire.plain("go"))
    both = [asyncio.create_task(ask_anyhow(made, body)) for _ in range(2)]
    await made.until("model_request", 2)
    assert made.gateway.turns == 2
    go.set()
    await asyncio.gather(*both)
    for _ in range(3):  # both were cut: two repeats, then a new turn
        await ask_anyhow(made, body)
    turns = [(event.turn, event.data["counted"]) for event in made.events if event.kind == "model_request"]
    assert turns == [(1, True), (2, True), (1, False), (2, False), (3, True)]


@EACH
async def test_the_limit_in_the_shape_of_the_api(rig: MakeRig, wire: Wire) -> None:
    made = await rig(good(wire), dialect=wire.api, turn_limit=1)
    assert (await made.ask(raw(wire.plain("1"))))[0] == 200
    assert not made.gateway.turn_limit_hit.is_set()
    async with made.post(raw(wire.plain("2"))) as response:
        assert (response.status, response.headers["x-should-retry"]) == (400, "false")
        body = await response.json()
    assert (wire.error_code(body), body["error"]["message"]) == ("call_limit", "call limit reached")
    assert body["error"]["type"] == "invalid_request_error"
    assert made.gateway.turn_limit_hit.is_set()
    assert (made.gateway.turns, len(made.provider.seen), made.of("model_request")[-1]["refused"]) == (1, 1, "turn_limit")


# What passes, and what is recorded


@EACH
@pytest.mark.parametrize("size", [1 << 20, 13])
async def test_streams_pass_byte_for_byte_with_the_key_of_the_api(rig: MakeRig, wire: Wire, size: int) -> None:
    whole = b"".join(wire.stream("caf\u00e9 \U0001f600", MODEL, call=True))
    made = await rig(streams(*(whole[at : at + size] for at in range(0, len(whole), size))), dialect=wire.api)
    sent = raw(wire.plain("go"))
    assert await made.ask(sent) == (200, whole)
    (seen,) = made.provider.seen
    name, value = wire.key_header(KEY)
    assert (seen.headers[name], seen.raw, seen.path) == (value, sent, wire.path)
    assert made.gateway.token not in json.dumps(seen.headers)


@EACH
async def test_what_the_ledger_holds(rig: MakeRig, wire: Wire) -> None:
    made = await rig(streams(*wire.stream("visible", MODEL, call=True)), dialect=wire.api, markers={"/a": ["the marker"]})
    await made.ask(raw(wire.plain("go")))
    await made.ask(raw(wire.with_result(CALL[0], "line\nthe marker\n")))
    await made.ask(raw(wire.with_result(CALL[0], "line\nthe marker\n")))
    assert [entry["text"] for entry in made.of("agent_message")] == ["visible"] * 3
    assert made.of("tool_call")[0] == {"callId": CALL[0], "name": CALL[1], "input": CALL[2]}
    assert made.of("tool_result") == [{"callId": CALL[0], "text": "line\nthe marker\n", "isError": False}]
    assert made.of("file_read") == [{"path": "/a", "marker": "the marker", "callId": CALL[0]}]
    assert {event.turn for event in made.events if event.kind in ("tool_result", "file_read")} == {2}
    request, reply = made.of("model_request")[0], made.of("model_reply")[0]
    assert (request["dialect"], request["stream"], request["counted"]) == (wire.api, True, True)
    assert (len(request["messages"]), "tools" in request) == (len(dialect_of(wire.api).shown(wire.plain("go")).messages), True)
    assert (reply["model"], Tokens.model_validate(reply["usage"])) == (MODEL, USED)
    assert b"hidden" not in json.dumps(made.of("agent_message")).encode()


@EACH
async def test_a_text_of_the_program_shows_a_file(rig: MakeRig, wire: Wire) -> None:
    made = await rig(good(wire), dialect=wire.api, markers={"/a": ["the marker"]})
    await made.ask(raw(wire.plain("note: the marker")))
    assert made.of("file_read") == [{"path": "/a", "marker": "the marker", "callId": ""}]


@EACH
async def test_texts_left_to_the_adapter(rig: MakeRig, wire: Wire) -> None:
    made = await rig(
        streams(*wire.stream("x", MODEL, call=True)), dialect=wire.api, texts="adapter", markers={"/a": ["the marker"]}
    )
    await made.ask(raw(wire.with_result(CALL[0], "the marker")))
    kinds = {event.kind for event in made.events}
    assert kinds == {"model_request", "model_reply", "file_read"}


@EACH
async def test_an_answer_that_is_not_streamed(rig: MakeRig, wire: Wire) -> None:
    made = await rig(says(200, wire.whole("hi", MODEL)), dialect=wire.api)
    status, body = await made.ask(raw(wire.plain("go"), stream=False))
    assert (status, json.loads(body)) == (200, wire.whole("hi", MODEL))
    assert [entry["text"] for entry in made.of("agent_message")] == ["hi"]
    assert (made.gateway.tokens, made.gateway.usage_unknown) == (USED, 0)


HIDDEN = [
    (ANTHROPIC, {"tools": []}, {}),
    (ANTHROPIC, {}, {"x-claude-code-agent-id": "a"}),
    (RESPONSES, {"tools": []}, {}),
    (RESPONSES, {}, {"x-openai-subagent": "collab_spawn"}),
]


@pytest.mark.parametrize(("wire", "body", "headers"), HIDDEN)
async def test_side_requests_say_nothing_to_the_user(
    rig: MakeRig, wire: Wire, body: dict[str, Any], headers: dict[str, str]
) -> None:
    made = await rig(streams(*wire.stream("title", MODEL, call=True)), dialect=wire.api)
    async with made.post(raw(wire.plain("go"), **body), **headers) as response:
        await response.read()
    assert (made.of("agent_message"), len(made.of("tool_call")), made.gateway.turns) == ([], 1, 1)


# The model


@EACH
async def test_another_id_is_mapped(rig: MakeRig, wire: Wire) -> None:
    made = await rig(good(wire), dialect=wire.api)
    await made.ask(json.dumps(wire.plain("go") | {"model": "dearer"}).encode())
    assert json.loads(made.provider.seen[0].raw) == wire.plain("go") | {"model": MODEL}
    assert (made.of("model_request")[0]["modelAsked"], made.of("model_request")[0]["modelSent"]) == ("dearer", MODEL)


@EACH
@pytest.mark.parametrize("streamed", [True, False])
async def test_an_answer_of_another_model_ends_everything(rig: MakeRig, wire: Wire, streamed: bool) -> None:
    answers = [streams(*wire.stream("x", m)) if streamed else says(200, wire.whole("x", m)) for m in ("m-1", "m-2", "m-3")]
    made = await rig(*answers, dialect=wire.api, resolved_model="m-1", accepted_ids=["m-2"])
    for _ in range(2):
        assert (await made.ask(raw(wire.plain("go"), stream=streamed)))[0] == 200
        assert not made.gateway.model_mismatch.is_set()
    await made.ask(raw(wire.plain("go"), stream=streamed))
    assert made.gateway.model_mismatch.is_set()
    assert made.gateway.mismatch == "the provider answered as 'm-3'; accepted: m-1, m-2 (models[].acceptedIds allows more)"
    assert (await made.ask(raw(wire.plain("go"))))[0] == 400
    assert made.of("model_request")[-1]["refused"] == "model_mismatch"
    assert len(made.provider.seen) == 3


@EACH
@pytest.mark.parametrize(("resolved", "answered"), [(None, "anything"), ("m-1", None)], ids=["nothing known", "no id answered"])
async def test_what_is_no_mismatch(rig: MakeRig, wire: Wire, resolved: str | None, answered: str | None) -> None:
    made = await rig(streams(*wire.stream("x", answered)), dialect=wire.api, resolved_model=resolved)
    assert (await made.ask(raw(wire.plain("go"))))[0] == 200
    assert not made.gateway.model_mismatch.is_set()
    assert made.of("model_reply")[0].get("model") == answered


@EACH
async def test_a_refusal_is_the_last_word_until_the_agent_goes_on(rig: MakeRig, wire: Wire) -> None:
    refusal, never = streams(*wire.stream("I cannot", MODEL, refused=True)), asyncio.Event()
    script = [good(wire), refusal, says(200, wire.whole("no", MODEL, refused=True)), hangs(never)]
    made = await rig(*script, dialect=wire.api)
    seen = []
    for number in range(3):
        await made.ask(raw(wire.plain(str(number))))
        seen.append(made.gateway.refused_by_model)
    assert seen == [False, True, True]
    asking = asyncio.create_task(made.ask(raw(wire.plain("again"))))
    await made.until("model_request", 4)
    assert not made.gateway.refused_by_model
    asking.cancel()
    never.set()


@EACH
async def test_a_cut_by_the_provider_is_known_until_the_agent_asks_again(rig: MakeRig, wire: Wire) -> None:
    whole = wire.stream("half of it", MODEL)
    made = await rig(streams(*whole[:2], cut=True), good(wire), dialect=wire.api)
    await made.cut(raw(wire.plain("go"), stream=True))
    assert "the provider cut the answer to turn 1" in str(made.gateway.cut_by_provider)
    await made.ask(raw(wire.plain("go"), stream=True))
    assert made.gateway.cut_by_provider is None


DECLINED = [
    (RESPONSES, {"error": {"code": "invalid_prompt", "message": "flagged"}}, True),
    (CHAT, {"error": {"code": "content_filter", "message": "filtered"}}, True),
    (CHAT, {"error": {"code": "x", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}, True),
    (CHAT, {"error": {"code": "context_length_exceeded", "message": "too long"}}, False),
    (ANTHROPIC, {"error": {"type": "invalid_request_error", "message": "no"}}, False),
]


@pytest.mark.parametrize(("wire", "body", "declined"), DECLINED)
async def test_a_filter_that_declines_the_request(rig: MakeRig, wire: Wire, body: dict[str, Any], declined: bool) -> None:
    made = await rig(says(400, body), dialect=wire.api)
    assert (await made.ask(raw(wire.plain("go"))))[0] == 400
    assert made.gateway.refused_by_model is declined


@EACH
async def test_plain_request_in_the_api(rig: MakeRig, wire: Wire) -> None:
    other = CHAT if wire is not CHAT else RESPONSES
    made = await rig(says(200, wire.whole("Hi", "m-1")), says(200, other.whole("Hi")), says(401, {"e": KEY}), dialect=wire.api)
    ok, strange, refused = [await made.gateway.plain_request() for _ in range(3)]
    assert (ok.ok, ok.model) == (True, "m-1")
    assert (strange.ok, strange.status) == (False, 200)
    assert (refused.ok, refused.status, KEY in refused.message) == (False, 401, False)
    assert made.provider.seen[0].path == wire.path.partition("?")[0]
    assert made.gateway.turns == 0


@EACH
async def test_models_are_answered_here(rig: MakeRig, wire: Wire) -> None:
    made = await rig(dialect=wire.api)
    async with made.http.get(made.origin + "/v1/models", headers={"authorization": f"Bearer {made.gateway.token}"}) as response:
        assert [entry["id"] for entry in (await response.json())["data"]] == [MODEL]
    async with made.http.get(made.origin + "/v1/models") as response:
        assert response.status == 401
    assert made.provider.seen == []


async def test_chat_stream_without_usage_is_unknown_and_not_zero(rig: MakeRig) -> None:
    made = await rig(streams(*CHAT.stream("x", MODEL, usage=False)), dialect="chat")
    await made.ask(raw(CHAT.plain("go"), stream_options=None))
    assert "usage" not in made.of("model_reply")[0]
    assert (made.gateway.tokens, made.gateway.usage_unknown) == (Tokens(), 1)


async def test_chat_stream_that_never_says_done(rig: MakeRig) -> None:
    made = await rig(streams(*CHAT.stream("x", MODEL)[:-1]), dialect="chat")
    await made.ask(raw(CHAT.plain("go")))
    assert "aborted" not in made.of("model_reply")[0]
    assert (made.gateway.tokens, [m["text"] for m in made.of("agent_message")]) == (USED, ["x"])


async def test_counting_tokens_is_no_turn(rig: MakeRig) -> None:
    made = await rig(says(200, {"object": "response.input_tokens", "input_tokens": 42}), dialect="responses")
    status, body = await made.ask(raw(RESPONSES.plain("go")), "/v1/responses/input_tokens")
    assert (status, json.loads(body)["input_tokens"], made.provider.seen[0].path) == (200, 42, "/v1/responses/input_tokens")
    assert (made.gateway.turns, made.of("model_request")[0]["counted"], made.gateway.usage_unknown) == (0, False, 0)


async def test_a_base_url_of_another_form(rig: MakeRig) -> None:
    """What stands before the API's own paths is the endpoint's, `/v1` or not."""
    made = await rig(says(200, CHAT.whole()), dialect="chat")
    other = await rig(dialect="chat", upstream=made.provider.url + "/openai/deployments/x/")
    await other.ask(raw(CHAT.plain("go"), stream=False))
    assert made.provider.seen[0].path == "/openai/deployments/x/chat/completions"
