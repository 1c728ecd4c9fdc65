"""Cost in exact decimals, the trial's budget, and what is unknown."""

from __future__ import annotations

import asyncio
import contextlib
import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli.api.models import Prices
from realcli.api.trial import Tokens
from realcli_session.gateway.config import GatewayConfig
from realcli_session.gateway.cost import Account, cost_of, guess
from tests.unit.gateway.rig import MODEL, MakeRig, resets, says, streams
from tests.unit.gateway.wires import CHAT, USED, WIRES, Wire

EACH = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
PRICES = Prices(input_per_million="15", cache_read_per_million="1.5", cache_write_per_million="18.75", output_per_million="75")
ONE = Decimal("0.0022425")  # of USED: 100 x 15 + 20 x 1.5 + 10 x 18.75 + 7 x 75, per million

COUNTS = st.integers(0, 10**8)
TOKENS = st.builds(Tokens, input=COUNTS, cache_read=COUNTS, cache_write=COUNTS, output=COUNTS)
USD = st.decimals("0", "999999", places=6).map(lambda d: format(d, "f"))
FIELDS = ("input_per_million", "cache_read_per_million", "cache_write_per_million", "output_per_million")
ALL = st.tuples(USD, USD, USD, USD).map(lambda usd: Prices(**dict(zip(FIELDS, usd, strict=True))))


def raw(body: dict[str, Any], **more: Any) -> bytes:
    return json.dumps(body | {"model": MODEL} | more).encode()


def by_hand(tokens: Tokens, prices: Prices) -> Fraction:
    pairs = [
        (tokens.input, prices.input_per_million),
        (tokens.cache_read, prices.cache_read_per_million),
        (tokens.cache_write, prices.cache_write_per_million),
        (tokens.output, prices.output_per_million),
    ]
    return sum((Fraction(count) * Fraction(price or "0") for count, price in pairs), Fraction(0)) / 10**6


@given(TOKENS, ALL)
def test_cost_is_exact(tokens: Tokens, prices: Prices) -> None:
    cost = cost_of(tokens, prices)
    assert cost is not None
    assert Fraction(cost) == by_hand(tokens, prices)


@given(st.lists(st.one_of(st.none(), TOKENS), max_size=12), ALL)
def test_a_trial_costs_what_its_replies_cost_or_nobody_knows(replies: list[Tokens | None], prices: Prices) -> None:
    account = Account(prices, None)
    for tokens in replies:
        account.add(tokens, 1000, 0)
    known = [tokens for tokens in replies if tokens is not None]
    if len(known) < len(replies):
        assert account.cost is None
    else:
        assert account.cost is not None
        assert Fraction(account.cost) == sum((by_hand(tokens, prices) for tokens in known), Fraction(0))
    assert account.unknown == len(replies) - len(known)
    assert account.tokens.input == sum(tokens.input for tokens in known)
    assert not account.spent


@given(st.lists(st.one_of(st.none(), TOKENS), max_size=12), st.decimals("0.01", "1000", places=2))
def test_the_budget_is_spent_once_and_for_ever(replies: list[Tokens | None], budget: Decimal) -> None:
    account, spent, by_now = Account(PRICES, budget), False, Fraction(0)
    for tokens in replies:
        account.add(tokens, 3000, 300)
        by_now += Fraction(guess(PRICES, 3000, 300)) if tokens is None else by_hand(tokens, PRICES)
        spent = spent or by_now >= Fraction(budget)
        assert account.spent is spent


@pytest.mark.parametrize(
    ("tokens", "prices", "cost"),
    [
        (USED, PRICES, ONE),
        (USED, None, None),
        (None, PRICES, None),
        (USED, Prices(input_per_million="1", output_per_million="1"), None),
        (Tokens(input=1, output=1), Prices(input_per_million="1", output_per_million="1"), Decimal("0.000002")),
        (Tokens(), PRICES, Decimal(0)),
    ],
    ids=["all", "no prices", "no usage", "cache without a price", "no cache, no price", "nothing"],
)
def test_cost_of(tokens: Tokens | None, prices: Prices | None, cost: Decimal | None) -> None:
    assert cost_of(tokens, prices) == cost


@EACH
async def test_replies_and_trial_have_their_cost(rig: MakeRig, wire: Wire) -> None:
    made = await rig(streams(*wire.stream("x", MODEL)), says(400, {"error": {}}), dialect=wire.api, prices=PRICES)
    for number in range(2):
        await made.ask(raw(wire.plain(str(number))))
    assert made.of("model_reply")[0]["costUsd"] == str(ONE)
    assert "costUsd" not in made.of("model_reply")[1]
    assert (made.gateway.cost_usd, made.gateway.usage_unknown) == (ONE, 0)  # an error generated nothing


@EACH
async def test_a_cut_answer_makes_the_cost_unknown(rig: MakeRig, wire: Wire) -> None:
    made = await rig(streams(*wire.stream("x", MODEL)), streams(*wire.half(MODEL)), dialect=wire.api, prices=PRICES)
    await made.ask(raw(wire.plain("0")))
    with contextlib.suppress(aiohttp.ClientPayloadError):
        await made.ask(raw(wire.plain("1")))
    assert (made.gateway.cost_usd, made.gateway.usage_unknown, made.gateway.tokens) == (None, 1, USED)


async def test_without_prices_nothing_has_a_cost(rig: MakeRig) -> None:
    made = await rig()
    await made.ask(made.body())
    assert made.gateway.cost_usd is None
    assert "costUsd" not in made.of("model_reply")[0]


@EACH
async def test_the_request_after_the_last_cent_is_refused(rig: MakeRig, wire: Wire) -> None:
    made = await rig(streams(*wire.stream("x", MODEL)), dialect=wire.api, prices=PRICES, budget_usd=2 * ONE)
    for number in range(2):
        assert (await made.ask(raw(wire.plain(str(number)))))[0] == 200
        assert not made.gateway.budget_hit.is_set()  # an agent that yields now is Completed
    async with made.post(raw(wire.plain("3"))) as response:
        assert (response.status, response.headers["x-should-retry"]) == (400, "false")
        assert wire.error_code(await response.json()) == "budget_spent"
    assert made.gateway.budget_hit.is_set()
    assert not made.gateway.turn_limit_hit.is_set()
    assert (made.of("model_request")[-1]["refused"], made.gateway.turns, len(made.provider.seen)) == ("budget", 2, 2)


async def test_an_agent_that_drops_its_answers_spends_all_the_same(rig: MakeRig) -> None:
    never = asyncio.Event()

    async def one_piece(request: Any) -> Any:
        response = await streams(CHAT.stream("x", MODEL)[0])(request)
        await never.wait()
        return response

    made = await rig(one_piece, dialect="chat", prices=PRICES, budget_usd=Decimal("0.05"))
    for number in range(3):
        if made.gateway.budget_hit.is_set():
            break
        async with made.post(raw(CHAT.plain("x" * 6000 + str(number)))) as response:
            await response.content.readany()
        if response.status == 200:
            await made.until("model_reply", number + 1)
    assert made.gateway.budget_hit.is_set()
    never.set()


async def test_no_answer_at_all_is_unknown(rig: MakeRig) -> None:
    made = await rig(resets, prices=PRICES)
    await made.ask(made.body())
    assert (made.gateway.cost_usd, made.gateway.usage_unknown) == (None, 1)


def test_a_budget_needs_prices() -> None:
    with pytest.raises(ValueError, match=r"a budget without prices .* models\[\]\.prices"):
        GatewayConfig(upstream="https://x", key="sk-12345678", model="m", turn_limit=1, budget_usd=Decimal(1))
