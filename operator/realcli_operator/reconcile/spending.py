"""What a sweep's trials have cost so far, over all their attempts, and whether its budget is spent. Pure.

An attempt whose session was lost left no count. It is counted as such and never taken for one that cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, InvalidOperation
from typing import Any, Final, NamedTuple

from realcli.api.sweep import SweepSpec
from realcli.api.sweepstatus import Tokens
from realcli.api.trial import Earlier, TrialStatus
from realcli_operator.reconcile.recent import ACTIVE, Row

NEVER_RAN: Final = frozenset({"ImageUnavailable", "SetupTimeout", "ConfigurationError"})
"""Ends of attempts whose agent asked nothing."""
KINDS: Final = ("input", "cacheRead", "cacheWrite", "output")
MOST: Final = Decimal(10**9)
"""US dollars of one attempt are below that; what says otherwise says nothing."""
SMALLEST: Final = Decimal("1e-9")
"""US dollars that a status tells apart."""
LONGEST: Final = 20
"""Characters of an amount in a Trial's status."""
_EXACT: Final = Context(prec=100)
"""Sums of whatever 32 characters can say: what is taken away again must leave what was there."""


@dataclass(frozen=True, slots=True)
class Spending:
    """``usd`` None: a model has no price. ``uncounted``: ended attempts of unknown tokens or cost."""

    usd: Decimal | None
    tokens: Tokens
    uncounted: int

    @property
    def column(self) -> str | None:
        """For `kubectl get sweeps`; ≥ where attempts are uncounted."""
        return None if self.usd is None else f"{'≥' if self.uncounted else ''}${self.usd:.2f}"

    def exhausted(self, spec: SweepSpec) -> tuple[str, str] | None:
        """Reason and text, if the budget of the sweep is spent."""
        budget = spec.budget
        if budget is None:
            return None
        hint = f" ({self.uncounted} attempts left no count and are not in it)" if self.uncounted else ""
        if budget.usd is not None and self.usd is not None and self.usd >= Decimal(budget.usd):
            return "Usd", f"${self.usd:.2f} of spec.budget.usd {budget.usd} are spent{hint}"
        used = sum_of(self.tokens)
        if budget.tokens is not None and used >= budget.tokens:
            return "Tokens", f"{used} of spec.budget.tokens {budget.tokens} are used{hint}"
        return None


def sum_of(tokens: Tokens) -> int:
    """Of every kind."""
    return tokens.input + tokens.cache_read + tokens.cache_write + tokens.output


class Spent(NamedTuple):
    """What attempts took: US dollars of those whose cost is known, tokens by kind, and how many left no count."""

    usd: Decimal
    tokens: tuple[int, int, int, int]
    uncounted: int

    def plus(self, other: Spent) -> Spent:
        """Both."""
        return Spent(_EXACT.add(self.usd, other.usd), _added(self.tokens, other.tokens, 1), self.uncounted + other.uncounted)

    def minus(self, other: Spent) -> Spent:
        """Without ``other``, which is a part of it."""
        return Spent(
            _EXACT.subtract(self.usd, other.usd), _added(self.tokens, other.tokens, -1), self.uncounted - other.uncounted
        )


NOTHING: Final = Spent(Decimal(0), (0, 0, 0, 0), 0)


def spent_by(row: Row) -> Spent:
    """All attempts of a trial that ended, and one whose work did."""
    status = row.view.status
    usd, tokens, uncounted = Decimal(0), [0, 0, 0, 0], 0
    earlier = status.get("earlier")
    if earlier:
        usd = _decimal(earlier.get("costUSD"), MOST * MOST) or usd
        _add(tokens, earlier.get("tokens"))
        uncounted += earlier.get("uncounted", 0)
    used, cost = status.get("tokens"), _decimal(status.get("costUSD"))
    _add(tokens, used)
    usd = _EXACT.add(usd, cost or 0)
    over = row.phase not in ACTIVE or row.sealed_work
    if over and row.attempt and (used is None or cost is None) and not _asked_nothing(used, str(status.get("workEnd"))):
        uncounted += 1
    return Spent(usd, (tokens[0], tokens[1], tokens[2], tokens[3]), uncounted)


def spending_of(rows: Iterable[Row], spec: SweepSpec) -> Spending:
    """Over all attempts that ended, and those whose work did."""
    total = NOTHING
    for row in rows:
        total = total.plus(spent_by(row))
    return spending(total, spec)


def spending(total: Spent, spec: SweepSpec) -> Spending:
    """The sum, as the sweep tells it."""
    priced = all(model.prices is not None for model in spec.models)
    read, cached, written, put = total.tokens
    tokens = Tokens(input=read, cache_read=cached, cache_write=written, output=put)
    return Spending(total.usd if priced else None, tokens, total.uncounted)


def _added(one: tuple[int, int, int, int], other: tuple[int, int, int, int], sign: int) -> tuple[int, int, int, int]:
    a, b, c, d = one
    e, f, g, h = other
    return a + sign * e, b + sign * f, c + sign * g, d + sign * h


def earlier_of(status: TrialStatus) -> Earlier | None:
    """What all attempts of a trial took, as the next one begins; None before the first."""
    if not status.attempt:
        return status.earlier
    before = status.earlier or Earlier()
    used = status.tokens or Tokens()
    cost = _decimal(status.cost_usd)
    unknown = status.tokens is None or cost is None
    counted = status.tokens.dump() if status.tokens is not None else None
    return Earlier(
        cost_usd=usd_text(min(_EXACT.add(Decimal(before.cost_usd), cost or 0), MOST - SMALLEST)),
        tokens=Tokens(
            input=before.tokens.input + used.input,
            cache_read=before.tokens.cache_read + used.cache_read,
            cache_write=before.tokens.cache_write + used.cache_write,
            output=before.tokens.output + used.output,
        ),
        uncounted=before.uncounted + (unknown and not _asked_nothing(counted, status.work_end or "")),
    )


def _asked_nothing(tokens: Mapping[str, Any] | None, work_end: str) -> bool:
    if tokens is None:
        return work_end in NEVER_RAN
    return not any(tokens.get(kind) for kind in KINDS)


def _add(totals: list[int], tokens: Mapping[str, Any] | None) -> None:
    if tokens:
        for index, kind in enumerate(KINDS):
            totals[index] += tokens.get(kind, 0)


def usd_text(usd: Decimal) -> str:
    """US dollars as a status says them: what has more digits than `SMALLEST` is rounded up, so that it overdraws no budget."""
    rounded = usd.quantize(SMALLEST, ROUND_CEILING, _EXACT)
    return format(usd if rounded == usd and len(format(usd, "f")) <= LONGEST else rounded.normalize(_EXACT), "f")


def _decimal(text: Any, limit: Decimal = MOST) -> Decimal | None:
    """US dollars from 0 to below ``limit``; None: unknown."""
    try:
        value = Decimal(text) if isinstance(text, str) else None
    except InvalidOperation:
        return None
    return value if value is not None and value.is_finite() and 0 <= value < limit else None
