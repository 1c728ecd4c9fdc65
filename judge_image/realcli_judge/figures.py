"""How a report writes numbers: exactly, as a decimal and for people. None stays absent and is never a 0. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

from realcli.api.base import Frozen
from realcli.scoring.scorerow import decimal, signed


class Interval(Frozen):
    """95 % of what resampled tasks give (realcli.scoring.intervals)."""

    low: float
    high: float
    text: str  # "0.310 to 0.742"


class Number(Frozen):
    """A fraction, exactly and for people."""

    exact: str  # "17/50"
    value: float
    text: str  # "0.340"
    interval: Interval | None = None  # None: not resampled

    def signed(self) -> str:
        """As a difference is written: "+0.340"; what reads as zero has no sign."""
        return signed(Fraction(self.exact))


class Money(Frozen):
    """US dollars."""

    usd: str  # decimal
    text: str  # "$12.35"


def number(value: Fraction | None) -> Number | None:
    """A fraction as it is written; None stays absent."""
    return None if value is None else Number(exact=str(value), value=float(value), text=decimal(value))


def money(values: Iterable[str | None]) -> Money | None:
    """The sum of what is known; None where nothing is."""
    known = [Decimal(value) for value in values if value is not None]
    return dollars(sum(known, Decimal(0))) if known else None


def dollars(amount: Decimal) -> Money:
    """To the cent from a dollar on, below to the hundredth of a cent."""
    return Money(usd=f"{amount:f}", text=f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.4f}")
