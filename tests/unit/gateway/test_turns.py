"""What takes a turn: every way an answer can end, and what the same request costs afterwards."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli_session.gateway.dialects import dialect_of
from realcli_session.gateway.turns import Turn, TurnCounter
from tests.unit.gateway.rig import MakeRig, hangs, message, resets, says, sse, start, streams, text_block

HALF = sse(start(), *text_block(0, "half"))
OVERLOADED = sse(start(), {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})

ENDS = [
    # how the answer ended, its script, turns after a repeat of the same body, turns after another body
    ("whole", [streams(message())], 2, 2),
    ("cut by the provider, connection lost", [streams(HALF, cut=True), streams(message())], 1, 2),
    ("ended by the provider without message_stop", [streams(HALF), streams(message())], 1, 2),
    ("an error inside the stream", [streams(OVERLOADED), streams(message())], 1, 2),
    ("an error of the request", [says(400), streams(message())], 2, 2),
    ("one retry inside", [says(529), streams(message())], 2, 2),
    ("reset before the first byte, then answered", [resets, streams(message())], 2, 2),
    ("no answer within the bound", [says(529), says(529), says(529), streams(message())], 1, 2),
    ("not streamed though asked to", [says(200, {"id": "m", "content": []}), streams(message())], 2, 2),
]


async def ask_anyhow(made: Any, body: bytes) -> None:
    """Whatever becomes of it."""
    async with made.post(body) as response:
        with contextlib.suppress(aiohttp.ClientPayloadError):
            await response.read()


@pytest.mark.parametrize(("how", "script", "after_repeat", "after_other"), ENDS, ids=[row[0] for row in ENDS])
async def test_turn_stays_counted_and_only_the_providers_cut_is_repeated(
    rig: MakeRig, how: str, script: list[Any], after_repeat: int, after_other: int
) -> None:
    same = await rig(*script)
    await ask_anyhow(same, same.body("one"))
    assert same.gateway.turns == 1
    await ask_anyhow(same, same.body("one"))
    assert same.gateway.turns == after_repeat
    other = await rig(*script)
    await ask_anyhow(other, other.body("one"))
    await ask_anyhow(other, other.body("two"))
    assert other.gateway.turns == after_other
    requests = [event for event in same.events if event.kind == "model_request"]
    assert [event.turn for event in requests] == [1, after_repeat]
    assert [event.data["counted"] for event in requests] == [True, after_repeat == 2]


async def test_dropped_by_the_agent_stays_counted_and_is_not_repeated(rig: MakeRig) -> None:
    never = asyncio.Event()
    made = await rig(hangs(never), streams(message()))
    asking = asyncio.create_task(made.ask(made.body("one")))
    await made.provider.arrived.get()
    asking.cancel()
    (reply,) = await made.until("model_reply")
    assert (reply["aborted"], reply["status"]) == ("agent", 499)
    assert "usage" not in reply
    assert (await made.ask(made.body("one")))[0] == 200
    assert made.gateway.turns == 2
    never.set()


async def test_dropped_in_the_stream_stays_counted(rig: MakeRig) -> None:
    never = asyncio.Event()

    async def half(request: Any) -> Any:
        response = await streams(HALF)(request)
        await never.wait()
        return response

    made = await rig(half, streams(message()))
    async with made.post(made.body("one")) as response:
        await response.content.readany()
    (reply,) = await made.until("model_reply")
    assert (reply["aborted"], reply["status"]) == ("agent", 200)
    assert reply["usageRaw"]["input_tokens"] == 100
    await made.ask(made.body("one"))
    assert made.gateway.turns == 2
    never.set()


async def test_limit_refuses_the_next_request_and_no_other(rig: MakeRig) -> None:
    made = await rig(turn_limit=2)
    assert [(await made.ask(made.body(str(n))))[0] for n in range(2)] == [200, 200]
    assert not made.gateway.turn_limit_hit.is_set()  # a yield on turn n is no TurnLimit
    async with made.post(made.body("2")) as response:
        assert response.status == 400
        assert response.headers["x-should-retry"] == "false"
        error = {"type": "invalid_request_error", "code": "call_limit", "message": "call limit reached"}
        assert await response.json() == {"type": "error", "error": error}
    assert made.gateway.turn_limit_hit.is_set()
    assert (made.gateway.turns, len(made.provider.seen)) == (2, 2)
    assert made.of("model_request")[-1]["refused"] == "turn_limit"


async def test_cut_turn_may_be_repeated_at_the_limit(rig: MakeRig) -> None:
    made = await rig(streams(HALF, cut=True), streams(message()), turn_limit=1)
    assert await made.cut(made.body("one")) == HALF
    assert (await made.ask(made.body("one")))[0] == 200
    assert (await made.ask(made.body("one")))[0] == 400
    assert (made.gateway.turns, len(made.provider.seen)) == (1, 2)


async def test_fifty_parallel_requests_at_n_minus_2(rig: MakeRig) -> None:
    go = asyncio.Event()
    made = await rig(*[streams(message())] * 3, hangs(go), turn_limit=5)
    for n in range(3):
        await made.ask(made.body(str(n)))
    race = [asyncio.create_task(made.ask(made.body(f"race {n}"))) for n in range(50)]
    await made.until("model_request", 53)
    go.set()
    statuses = [status for status, _ in await asyncio.gather(*race)]
    assert sorted(statuses) == [200] * 2 + [400] * 48
    assert len(made.provider.seen) == 5
    assert {seen.headers["x-api-key"] for seen in made.provider.seen} == {"sk-real-key-0123456789abcdef"}
    turns = [event.turn for event in made.events if event.kind == "model_request" and event.data["counted"]]
    assert turns == [1, 2, 3, 4, 5]


async def test_count_tokens_and_models_are_no_turns(rig: MakeRig) -> None:
    made = await rig(says(200, {"input_tokens": 42}), turn_limit=1)
    status, body = await made.ask(made.body(), "/v1/messages/count_tokens?beta=true")
    assert (status, body) == (200, b'{"input_tokens": 42}')
    async with made.http.get(made.gateway.base_url + "/v1/models", headers={"x-api-key": made.gateway.token}) as response:
        assert [entry["id"] for entry in (await response.json())["data"]] == ["claude-test-1"]
    assert made.gateway.turns == 0
    assert made.of("model_request")[0]["counted"] is False


SIGNED = [{"type": "text", "text": "x-anthropic-billing-header: cc_version=2; cch=554ea;"}, {"type": "text", "text": "be good"}]
RESIGNED = [{"type": "text", "text": "x-anthropic-billing-header: cc_version=2; cch=aaa8e;"}, {"type": "text", "text": "be good"}]
SAME = [
    ("not streamed any more", {"stream": True}, {"stream": False}, True),
    ("order of names", {"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
    ("signed again", {"system": SIGNED}, {"system": RESIGNED}, True),
    ("another system prompt", {"system": SIGNED}, {"system": [*SIGNED, {"type": "text", "text": "be bad"}]}, False),
    ("signature as the whole system prompt", {"system": SIGNED[0]["text"]}, {"system": RESIGNED[0]["text"]}, False),
    ("another message", {"messages": [1]}, {"messages": [2]}, False),
    ("fewer tokens", {"max_tokens": 2}, {"max_tokens": 1}, False),
]


@pytest.mark.parametrize(("name", "one", "other", "same"), SAME, ids=[row[0] for row in SAME])
def test_same_turn(name: str, one: dict[str, Any], other: dict[str, Any], same: bool) -> None:
    key = dialect_of("anthropic").turn_key
    assert (key(one) == key(other)) is same


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=40), st.integers(1, 8))
def test_counter_never_gives_more_than_its_limit(requests: list[tuple[str, bool]], limit: int) -> None:
    """Against the definition: a request repeats the oldest turn of its body that the provider cut, else takes the next number."""
    counter = TurnCounter(limit)
    used, cut = 0, []
    for digest, provider_cuts in requests:
        turn = counter.accept(digest)
        again = next((entry for entry in cut if entry[0] == digest), None)
        if again is not None:
            cut.remove(again)
            expected: Turn | None = Turn(again[1], repeat=True)
        elif used < limit:
            used += 1
            expected = Turn(used, repeat=False)
        else:
            expected = None
        assert turn == expected
        if turn is not None and provider_cuts:
            counter.cut_by_provider(digest, turn.number)
            cut.append((digest, turn.number))
    assert counter.used == used <= limit
