"""Do two orders agree: Spearman's rho and Kendall's tau. Pure; the counts are exact, the result is a float."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import sqrt

LEAST = 3
"""Fewer points than this have no correlation worth a number."""


def ranks(values: Sequence[Fraction]) -> list[Fraction]:
    """Ranks from 1, upwards; equal values share the mean of theirs."""
    found = []
    for value in values:
        below, equal = sum(other < value for other in values), sum(other == value for other in values)
        found.append(Fraction(2 * below + equal + 1, 2))
    return found


def spearman(left: Sequence[Fraction], right: Sequence[Fraction]) -> float | None:
    """Pearson's correlation of the ranks. None below three points, or where one side has one value only."""
    if len(left) != len(right):
        raise ValueError(f"{len(left)} and {len(right)} values; expected pairs")
    if len(left) < LEAST:
        return None
    middle = Fraction(len(left) + 1, 2)
    a, b = [rank - middle for rank in ranks(left)], [rank - middle for rank in ranks(right)]
    below = sum(x * x for x in a) * sum(y * y for y in b)
    return float(sum(x * y for x, y in zip(a, b, strict=True))) / sqrt(below) if below else None


def kendall(left: Sequence[Fraction], right: Sequence[Fraction]) -> float | None:
    """Kendall's tau-b: (concordant - discordant) / sqrt((pairs - ties left) (pairs - ties right)).

    None below two points, or where one side has one value only.
    """
    if len(left) != len(right):
        raise ValueError(f"{len(left)} and {len(right)} values; expected pairs")
    signs = [(_sign(a - b), _sign(c - d)) for (a, c), (b, d) in combinations(zip(left, right, strict=True), 2)]
    below = sum(x != 0 for x, _ in signs) * sum(y != 0 for _, y in signs)
    return sum(x * y for x, y in signs) / sqrt(below) if below else None


def agreement_of_orders(left: Mapping[str, Fraction | None], right: Mapping[str, Fraction | None]) -> tuple[int, float | None]:
    """(names with a score on both sides, tau between them): two judges, two simulators, two thresholds."""
    both = [(a, b) for name, a in left.items() if a is not None and (b := right.get(name)) is not None]
    return len(both), kendall([a for a, _ in both], [b for _, b in both])


def _sign(value: Fraction) -> int:
    return (value > 0) - (value < 0)
