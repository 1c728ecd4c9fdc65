"""The provider's troubles end in the gateway, within a bound, and cost the agent no working time."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from realcli_session.gateway.config import RetryPolicy
from realcli_session.gateway.retry import next_wait, retry_after
from realcli_session.gateway.waits import WaitMeter
from tests.unit.gateway.rig import KEY, MODEL, Answer, MakeRig, NoWait, message, resets, says, sse, streams
from tests.unit.gateway.wires import WIRES, Wire

EACH = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
OVERLOADED = sse({"type": "error", "error": {"type": "overloaded_error"}})


async def test_agent_sees_nothing_of_troubles_before_the_first_byte(rig: MakeRig) -> None:
    script = [
        says(429, headers={"retry-after": "7"}),
        says(529),
        resets,
        streams(OVERLOADED),
        streams(),
        says(503),
        streams(message()),
    ]
    made = await rig(*script, retry=RetryPolicy(max_attempts=7))
    assert await made.ask(made.body()) == (200, message())
    assert made.clock.slept == [7.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    (reply,) = made.of("model_reply")
    assert (reply["attempts"], reply["waitedMs"], reply["status"]) == (7, 69_000, 200)
    assert made.gateway.turns == 1
    assert made.gateway.throttled == Decimal(1) / 7, "one of seven tries was answered 429"
    assert made.gateway.waiting_seconds() == 69.0
    assert len({seen.raw for seen in made.provider.seen}) == 1


def raw(body: dict[str, Any]) -> bytes:
    return json.dumps(body | {"model": MODEL, "stream": False}).encode()


def half(text: bytes, content_type: str = "application/json") -> Answer:
    """A 200 with these bytes, closed in good order."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(body=text, content_type=content_type)

    return answer


@EACH
async def test_a_200_that_is_no_json_is_asked_again(rig: MakeRig, wire: Wire) -> None:
    whole = half(json.dumps(wire.whole("x", MODEL)).encode())
    script = [half(b'{"id": "half an ans'), half(b"<html>busy</html>", "text/html"), half(b""), whole]
    made = await rig(*script, dialect=wire.api, retry=RetryPolicy(max_attempts=4))
    status, _ = await made.ask(raw(wire.plain("go")))
    (reply,) = made.of("model_reply")
    assert (status, reply["attempts"], "aborted" in reply, made.gateway.turns) == (200, 4, False, 1)


@EACH
async def test_a_200_that_is_never_json_is_the_end_of_the_retries(rig: MakeRig, wire: Wire) -> None:
    made = await rig(half(b"<html>busy</html>"), dialect=wire.api, retry=RetryPolicy(max_attempts=3))
    assert (await made.ask(raw(wire.plain("go"))))[0] == 502
    assert made.gateway.provider_failed.is_set()
    assert "is no JSON object: <html>busy</html>" in str(made.gateway.provider_failure)
    assert not (await made.gateway.plain_request()).ok


@EACH
async def test_a_200_of_another_api_is_the_providers_cut(rig: MakeRig, wire: Wire) -> None:
    made = await rig(half(b'{"hello": "there"}'), dialect=wire.api)
    assert (await made.ask(raw(wire.plain("go"))))[0] == 200
    (reply,) = made.of("model_reply")
    assert reply["aborted"] == "provider"
    assert f"the answer is none of the {wire.api} API" in str(made.gateway.cut_by_provider)


async def test_waits_of_what_is_no_turn_are_working_time(rig: MakeRig) -> None:
    """A program may send any number of token counts; their waits would stop its clock."""
    made = await rig(says(429, headers={"retry-after": "7"}), says(200, {"input_tokens": 1}))
    assert (await made.ask(made.body(), "/v1/messages/count_tokens"))[0] == 200
    assert made.clock.slept == [7.0]
    assert (made.gateway.waiting_seconds(), made.gateway.turns) == (0.0, 0)
    assert made.of("model_reply")[0]["waitedMs"] == 7000


async def test_an_open_count_keeps_no_wait_of_a_turn_from_counting(rig: MakeRig) -> None:
    go = asyncio.Event()

    async def count_or_overloaded(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("count_tokens"):
            await go.wait()
            return await says(200, {"input_tokens": 1})(request)
        return await (says(529) if len(made.provider.seen) < 3 else streams(message()))(request)

    made = await rig(count_or_overloaded)
    counting = asyncio.create_task(made.ask(made.body(), "/v1/messages/count_tokens"))
    await made.provider.arrived.get()
    assert (await made.ask(made.body()))[0] == 200
    assert made.gateway.waiting_seconds() == 1.0
    go.set()
    assert (await counting)[0] == 200


BOUNDS = [
    ("number of requests", RetryPolicy(max_attempts=3), says(529), 3, [1.0, 2.0], 529),
    ("sum of waits", RetryPolicy(total_wait=10), says(500), 4, [1.0, 2.0, 4.0], 500),
    ("wait asked for is over the bound", RetryPolicy(total_wait=10), says(429, headers={"retry-after": "11"}), 1, [], 429),
    ("no HTTP answer", RetryPolicy(max_attempts=2), resets, 2, [1.0], None),
]


@pytest.mark.parametrize(("name", "policy", "answer", "requests", "waits", "status"), BOUNDS, ids=[row[0] for row in BOUNDS])
async def test_bound(
    rig: MakeRig, name: str, policy: RetryPolicy, answer: Any, requests: int, waits: list[float], status: int | None
) -> None:
    made = await rig(answer, retry=policy)
    async with made.post(made.body()) as response:
        assert response.status == status or response.status == 502
        assert response.headers["x-should-retry"] == "false"
    assert (len(made.provider.seen), made.clock.slept) == (requests, waits)
    assert made.gateway.provider_failed.is_set()
    failure = made.gateway.provider_failure
    assert failure is not None
    assert (failure.turn, failure.status, failure.attempts) == (1, status, requests)
    (reply,) = made.of("model_reply")
    assert (reply["aborted"], reply["attempts"]) == ("provider", requests)


@pytest.mark.parametrize(("status", "failed"), [(400, False), (413, False), (401, True), (403, True), (404, True)])
async def test_errors_that_are_not_retried(rig: MakeRig, status: int, failed: bool) -> None:
    """A key or model the provider refuses is not the agent's doing; a request it refuses is."""
    made = await rig(says(status, {"type": "error", "error": {"message": "m"}}))
    assert await made.ask(made.body()) == (status, b'{"type": "error", "error": {"message": "m"}}')
    assert made.gateway.provider_failed.is_set() is failed
    assert made.clock.slept == []


async def test_plain_request_tells_whose_fault_it_is(rig: MakeRig) -> None:
    made = await rig(says(200, {"model": "claude-test-1", "content": []}), says(529, {"e": KEY}), resets)
    ok, busy, dead = [await made.gateway.plain_request() for _ in range(3)]
    assert (ok.ok, ok.status, ok.model) == (True, 200, "claude-test-1")
    assert (busy.ok, busy.status) == (False, 529)
    assert (dead.ok, dead.status) == (False, None)
    assert KEY not in busy.message
    assert (made.gateway.turns, made.gateway.tokens.input) == (0, 0)


async def test_wait_ends_when_the_agent_hangs_up(rig: MakeRig) -> None:
    never = asyncio.Event()
    made = await rig(says(529))
    entered = asyncio.Event()

    async def sleep(seconds: float) -> None:
        entered.set()
        await never.wait()

    made.clock.sleep = sleep  # type: ignore[method-assign]
    asking = asyncio.create_task(made.ask(made.body()))
    await entered.wait()
    asking.cancel()
    (reply,) = await made.until("model_reply")
    assert (reply["aborted"], reply["attempts"]) == ("agent", 1)
    assert len(made.provider.seen) == 1
    assert not made.gateway.provider_failed.is_set()


NOW = datetime(2026, 1, 1, tzinfo=UTC)
AFTER = [
    ({"retry-after": "3"}, 3.0),
    ({"retry-after": "0.5"}, 0.5),
    ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
    ({"retry-after": "Thu, 01 Jan 2026 00:00:10 GMT"}, 10.0),
    ({"retry-after": "Wed, 31 Dec 2025 00:00:10 GMT"}, 0.0),
    ({"retry-after": "soon"}, None),
    ({"retry-after": "-1"}, None),
    ({"retry-after": "inf"}, None),
    ({}, None),
]


@pytest.mark.parametrize(("headers", "want"), AFTER)
def test_retry_after(headers: dict[str, str], want: float | None) -> None:
    assert retry_after(headers, NOW) == want


@given(st.lists(st.none() | st.floats(0, 1e4), max_size=60), st.integers(1, 20), st.floats(0, 1000))
def test_waits_never_exceed_the_bound(asked: list[float | None], attempts: int, total: float) -> None:
    policy = RetryPolicy(max_attempts=attempts, total_wait=total)
    waited = 0.0
    for number, seconds in enumerate(asked, start=1):
        wait = next_wait(policy, number, waited, seconds)
        if wait is None:
            break
        waited += wait
        assert number < attempts
    assert waited <= total


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=60))
def test_waiting_time_is_the_union_in_which_nothing_is_with_the_provider(steps: list[tuple[int, int]]) -> None:
    """Four requests go absent → with the provider → waiting → with the provider → absent; time passes between the steps."""
    clock = NoWait()
    meter = WaitMeter(clock)
    states = [0, 0, 0, 0]
    held: list[list[Any]] = [[], [], [], []]
    expected = 0.0
    for who, seconds in steps:
        state = states[who]
        if state in (0, 1):
            context = meter.request() if state == 0 else meter.waiting()
            context.__enter__()
            held[who].append(context)
        else:
            held[who].pop().__exit__(None, None, None)
        states[who] = (state + 1) % 4
        now = [s for s in states if s]
        clock.now += seconds
        if now and all(s == 2 for s in now):
            expected += seconds
        assert meter.total() == expected
