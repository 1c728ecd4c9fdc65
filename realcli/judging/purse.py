"""What judging costs, and what of a budget is left. Pure arithmetic; the purse itself is kept by one thread.

A budget is spent in waves: what is left is divided evenly over the sessions of a wave, and what they leave goes to the next.
So what a session may spend does not hang on which of them was faster, and a Job that runs again comes to the same end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal

from realcli.api.judge import JudgeBudget
from realcli.api.models import Prices
from realcli.api.trial import Tokens
from realcli.judging.model import JudgeReply, JudgeRequest
from realcli.scoring.records import JudgeCost

_MILLION = Decimal(1_000_000)


def cost_of(tokens: Tokens, prices: Prices | None) -> Decimal | None:
    """US dollars; None without a price for a kind of token that was used."""
    if prices is None:
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
        total += count * Decimal(price or 0) / _MILLION
    return total


@dataclass(frozen=True)
class Spent:
    """What was used. `tokens` are those that were told; `charged` also counts replies whose usage nobody told, by their size."""

    requests: int = 0
    tokens: Tokens = Tokens()  # noqa: RUF009 - frozen
    untold: int = 0  # replies without usage
    charged: int = 0  # tokens against a budget
    usd: Decimal = Decimal(0)  # against a budget
    unpriced: bool = False  # a kind of token without a price was used

    def plus(self, other: Spent) -> Spent:
        """Both."""
        return Spent(
            self.requests + other.requests, added(self.tokens, other.tokens), self.untold + other.untold,
            self.charged + other.charged, self.usd + other.usd, self.unpriced or other.unpriced,
        )  # fmt: skip


def added(one: Tokens, other: Tokens) -> Tokens:
    """Sum by kind."""
    return Tokens(
        input=one.input + other.input,
        cache_read=one.cache_read + other.cache_read,
        cache_write=one.cache_write + other.cache_write,
        output=one.output + other.output,
    )


def spent_on(request: JudgeRequest, reply: JudgeReply, prices: Prices | None) -> Spent:
    """Of one request. A reply without usage is charged by its bytes, a token each three; a kind of token without a price at
    what it may cost at most. Rather too much than nothing: the cost that is told stays unknown, and a budget holds."""
    tokens, untold = reply.usage, 0
    if tokens is None:
        sent, got = len(request.canonical()), len(reply.message.canonical())
        charged, tokens, untold = Tokens(input=-(-sent // 3), output=-(-got // 3)), Tokens(), 1
    else:
        charged = tokens
    usd = cost_of(charged, prices)
    most = usd if usd is not None or prices is None else cost_of(charged, _filled(prices))
    count = charged.input + charged.cache_read + charged.cache_write + charged.output
    return Spent(1, tokens, untold, count, most or Decimal(0), usd is None)


def _filled(prices: Prices) -> Prices:
    """A price for every kind: reading a cache costs no more than input, writing one at most twice as much."""
    twice = str(2 * Decimal(prices.input_per_million))
    return prices.model_copy(
        update={
            "cache_read_per_million": prices.cache_read_per_million or prices.input_per_million,
            "cache_write_per_million": prices.cache_write_per_million or twice,
        }
    )


@dataclass(frozen=True)
class Limit:
    """What a session may spend; None: no limit."""

    tokens: int | None = None
    usd: Decimal | None = None

    def reached(self, spent: Spent, coming: int = 0, prices: Prices | None = None) -> bool:
        """Nothing may be asked any more. `coming`: tokens of the request that is due; one that would go over the limit by itself,
        even if all of it were read from a cache, is not asked.
        """
        least = Decimal(0)
        if prices is not None:
            least = min(Decimal(p) for p in (prices.input_per_million, prices.cache_read_per_million) if p is not None) / _MILLION
        return (self.tokens is not None and (spent.charged >= self.tokens or spent.charged + coming > self.tokens)) or (
            self.usd is not None and (spent.usd >= self.usd or spent.usd + coming * least > self.usd)
        )


@dataclass
class Purse:
    """A group's share of a sweep's budget."""

    limit: Limit = Limit()
    prices: Prices | None = None
    spent: Spent = Spent()
    exhausted: bool = False  # something was not asked for want of it

    @staticmethod
    def of(budget: JudgeBudget | None, groups: int, prices: Prices | None) -> Purse:
        """The even share of one of `groups` groups. ValueError for dollars without prices: nothing could be held to them."""
        if budget is None:
            return Purse(prices=prices)
        if budget.usd is not None and prices is None:
            raise ValueError("spec.judge.budget.usd needs spec.judge.model.prices; or give budget.tokens")
        tokens = None if budget.tokens is None else budget.tokens // groups
        usd = None if budget.usd is None else Decimal(budget.usd) / groups
        return Purse(Limit(tokens, usd), prices)

    def split(self, sessions: int) -> Limit:
        """What each of so many sessions may spend of what is left."""
        n = max(sessions, 1)
        tokens = None if self.limit.tokens is None else max(0, self.limit.tokens - self.spent.charged) // n
        usd = None if self.limit.usd is None else max(Decimal(0), self.limit.usd - self.spent.usd) / n
        return replace(self.limit, tokens=tokens, usd=usd)

    def add(self, spent: Spent) -> None:
        """A session is over."""
        self.spent = self.spent.plus(spent)

    def cost(self) -> JudgeCost:
        """As it stands in the group file; what nobody told is None, not 0."""
        spent = self.spent
        known = not spent.untold
        priced = known and self.prices is not None and not spent.unpriced
        usd = spent.usd.quantize(Decimal("0.000001"), ROUND_CEILING) if priced else None
        return JudgeCost(
            requests=spent.requests,
            tokens=spent.tokens if known else None,
            cost_usd=None if usd is None else str(usd),
            exhausted=self.exhausted,
        )
