"""Two readers of the same thing: agreement, error rates and exact tests (measuring.md 4.4). Pure, exact.

Everything is a `Fraction` or None; None is "not defined" (no labels, or nothing that chance could explain) and never a 0.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from math import comb, exp, lgamma, log

from realcli.scoring.levels import THRESHOLD


@dataclass(frozen=True, slots=True)
class Confusion:
    """A judge's binary verdicts beside those of people (or of the known answer)."""

    both_1: int
    judge_1: int  # judge says 1, the label 0
    judge_0: int  # judge says 0, the label 1
    both_0: int

    @property
    def n(self) -> int:
        """All labels."""
        return self.both_1 + self.judge_1 + self.judge_0 + self.both_0

    @property
    def observed(self) -> Fraction | None:
        """Raw agreement; misleads alone (33-41 points above kappa in a large study, 2606.19544)."""
        return _share(self.both_1 + self.both_0, self.n)

    @property
    def chance(self) -> Fraction | None:
        """Agreement of two readers with these margins who do not look."""
        says = self.both_1 + self.judge_1
        is_ = self.both_1 + self.judge_0
        return _share(says * is_ + (self.n - says) * (self.n - is_), self.n**2)

    @property
    def kappa(self) -> Fraction | None:
        """Cohen's kappa; None where chance alone explains everything (both used one category)."""
        observed, chance = self.observed, self.chance
        return None if observed is None or chance is None or chance == 1 else (observed - chance) / (1 - chance)

    @property
    def sensitivity(self) -> Fraction | None:
        """Of what is a 1: share the judge calls 1. Its complement is the false-failure rate."""
        return _share(self.both_1, self.both_1 + self.judge_0)

    @property
    def specificity(self) -> Fraction | None:
        """Of what is a 0: share the judge calls 0. Its complement is the miss rate."""
        return _share(self.both_0, self.both_0 + self.judge_1)

    @property
    def corrected(self) -> Fraction | None:
        """Rogan-Gladen: the share of 1 that this judge's share of 1 stands for. May leave 0..1; a sensitivity result."""
        apparent, sensitivity, specificity = _share(self.both_1 + self.judge_1, self.n), self.sensitivity, self.specificity
        if apparent is None or sensitivity is None or specificity is None or sensitivity + specificity == 1:
            return None
        return (apparent + specificity - 1) / (sensitivity + specificity - 1)


def krippendorff_alpha(units: Sequence[Sequence[Hashable | None]]) -> Fraction | None:
    """Krippendorff's alpha for nominal values; a unit's values are those of its readings, None a missing one.

    None where fewer than two values can be compared, or where only one value was ever used (nothing to disagree about).
    """
    weights: dict[tuple[Hashable, Hashable], Fraction] = {}
    for unit in units:
        values = [value for value in unit if value is not None]
        if len(values) < 2:
            continue
        for pair in permutations(values, 2):
            weights[pair] = weights.get(pair, Fraction(0)) + Fraction(1, len(values) - 1)
    total = sum(weights.values(), Fraction(0))
    if total < 2:
        return None
    margin: dict[Hashable, Fraction] = {}
    for (left, _), weight in weights.items():
        margin[left] = margin.get(left, Fraction(0)) + weight
    observed = sum((w for (a, b), w in weights.items() if a != b), Fraction(0)) / total
    expected = sum((margin[a] * margin[b] for a in margin for b in margin if a != b), Fraction(0)) / (total * (total - 1))
    return None if expected == 0 else 1 - observed / expected


def mcnemar(up: int, down: int) -> Fraction:
    """Exact two-sided p of McNemar's test: `up` and `down` pairs changed one way and the other.

    It takes pairs as independent; repeats of one task are not, so it is read beside the bootstrap over tasks and never alone.
    """
    if up < 0 or down < 0:
        raise ValueError(f"{up} and {down} changed pairs; expected counts of at least 0")
    n = up + down
    tail = sum(comb(n, k) for k in range(min(up, down) + 1))
    return min(Fraction(1), Fraction(2 * tail, 2**n))


def scenario_passes(rate: Fraction, n: int, threshold: Fraction = THRESHOLD) -> Fraction:
    """P(r_q = 1) of a scenario whose instances pass independently with `rate`: why S of few tasks is not S of many.

    P(Binomial(n, rate) >= threshold x n); exact.
    """
    least = -(-threshold.numerator * n // threshold.denominator)
    return sum((comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(least, n + 1)), Fraction(0))


def errorless_labels_needed(bound: Fraction, confidence: Fraction = Fraction(19, 20)) -> int:
    """The least n for which no error in n labels shows, one-sided at `confidence`, that the error rate is at most `bound`.

    (1 - bound)^n <= 1 - confidence; 74 for 4 % at 95 %.
    """
    if not 0 < bound < 1 or not 0 < confidence < 1:
        raise ValueError(f"bound {bound} and confidence {confidence}; expected both between 0 and 1")
    left, n = Fraction(1), 0
    while left > 1 - confidence:
        left *= 1 - bound
        n += 1
    return n


def clopper_pearson(hits: int, of: int, confidence: float = 0.95) -> tuple[float, float]:
    """Exact two-sided interval of a share, as floats (bisection to 1e-12). ValueError unless 0 <= hits <= of and of >= 1."""
    if not 0 <= hits <= of or of < 1:
        raise ValueError(f"{hits} of {of}; expected hits between 0 and a number of at least 1")
    tail = (1 - confidence) / 2
    low = 0.0 if hits == 0 else _bisect(lambda p: _at_least(hits, of, p) < tail)
    high = 1.0 if hits == of else _bisect(lambda p: 1 - _at_least(hits + 1, of, p) > tail)
    return low, high


def _at_least(k: int, n: int, p: float) -> float:
    """P(Binomial(n, p) >= k), 0 < p < 1."""
    logs = (lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) + i * log(p) + (n - i) * log(1 - p) for i in range(k, n + 1))
    return sum(exp(value) for value in logs)


def _bisect(below: Callable[[float], bool]) -> float:
    """Where `below` turns from true to false between 0 and 1."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return (low + high) / 2


def _share(part: int, whole: int) -> Fraction | None:
    return Fraction(part, whole) if whole else None
