"""What a trial uses and costs. Exact decimals; what nobody told is unknown and never 0."""

from __future__ import annotations

from decimal import Decimal

from realcli.api.models import Prices
from realcli.api.trial import Tokens

_MILLION = Decimal(1_000_000)
BYTES_PER_TOKEN = 3
"""For the budget alone, where a reply told no usage: few texts have fewer bytes per token, so an agent that drops its streams
before they tell theirs spends no less."""


def cost_of(tokens: Tokens | None, prices: Prices | None) -> Decimal | None:
    """US dollars of one reply; None without usage, without prices, or where a kind of token it used has none."""
    if tokens is None or prices is None:
        return None
    total = Decimal(0)
    for count, price in (
        (tokens.input, prices.input_per_million),
        (tokens.cache_read, prices.cache_read_per_million),
        (tokens.cache_write, prices.cache_write_per_million),
        (tokens.output, prices.output_per_million),
    ):
        if count and price is None:
            return None
        if count and price is not None:
            total += count * Decimal(price)
    return total / _MILLION


def guess(prices: Prices, sent: int, received: int) -> Decimal:
    """An upper estimate from bytes, in US dollars."""
    by_input = -(-sent // BYTES_PER_TOKEN) * Decimal(prices.input_per_million)
    return (by_input + -(-received // BYTES_PER_TOKEN) * Decimal(prices.output_per_million)) / _MILLION


class Account:
    """All replies to turns of one trial."""

    def __init__(self, prices: Prices | None, budget: Decimal | None) -> None:
        self._prices = prices
        self._budget = budget
        self._cost: Decimal | None = Decimal(0) if prices is not None else None
        self._spent = Decimal(0)
        self.tokens = Tokens()
        self.unknown = 0

    def add(self, tokens: Tokens | None, sent: int, received: int) -> Decimal | None:
        """Add one reply; returns its cost. `sent`, `received`: bytes of its request and of what came of the answer."""
        cost = cost_of(tokens, self._prices)
        self._cost = None if cost is None or self._cost is None else self._cost + cost
        if cost is not None:
            self._spent += cost
        elif self._prices is not None:
            self._spent += guess(self._prices, sent, received)
        if tokens is None:
            self.unknown += 1
        else:
            self.tokens = Tokens(**{name: getattr(self.tokens, name) + getattr(tokens, name) for name in Tokens.model_fields})
        return cost

    @property
    def cost(self) -> Decimal | None:
        """US dollars of everything; None where any of it is unknown."""
        return self._cost

    @property
    def spent(self) -> bool:
        """The budget is used up, estimates counted."""
        return self._budget is not None and self._spent >= self._budget
