"""S bottom-up, L1 to L4, with exact fractions (RealCLI 5; measuring.md 4.1). Pure.

y: 1 if an instance's applicable checks all pass. r: 1 if at least 3/4 of a scenario's instances do. Sub-dimension, dimension and
S: equal-weight means of what is defined. Whatever is undefined leaves its mean; it is never a 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from statistics import median

from realcli.scoring.runs import L1, Observation, Tree

THRESHOLD = Fraction(3, 4)
MAX_SPREAD = Fraction(1, 20)
"""S is undefined where S_high - S_low is more than this."""
HEADLINE_MEDIAN = 8
"""S is the headline only where the median number of tasks per scenario is at least this; else S_rate is."""


def mean(values: Iterable[Fraction | int]) -> Fraction | None:
    """Exact mean; None of nothing."""
    found = list(values)
    return Fraction(sum(found), len(found)) if found else None


def level1(observation: Observation, unscored: int | None = None) -> L1:
    """y of an instance. `unscored` reads every unscored verdict as that value (for the bounds).

    excluded: contaminated, not triggered, or no check applies. undefined: an unscored check and none that failed.
    """
    if observation.contaminated:
        return "excluded"
    applicable = [verdict for verdict in observation.verdicts if verdict != "n/a"]
    if not applicable:
        return "excluded"
    if "0" in applicable:
        return 0
    if "unscored" in applicable:
        return "undefined" if unscored is None else 1 if unscored else 0
    return 1


@dataclass(frozen=True, slots=True)
class Counts:
    """Instances of one scenario: how many pass, of how many that are defined (n >= 1)."""

    passes: int
    n: int

    @property
    def rate(self) -> Fraction:
        """Share that passes."""
        return Fraction(self.passes, self.n)

    def passed(self, threshold: Fraction = THRESHOLD) -> int:
        """r of the scenario. In integers: 0.75 has to be exact."""
        return int(threshold.denominator * self.passes >= threshold.numerator * self.n)


def level2(observations: Iterable[tuple[str, Observation]], unscored: int | None = None) -> dict[str, Counts]:
    """Counts per scenario; a scenario without a defined instance is not in the result."""
    found: dict[str, Counts] = {}
    for scenario, observation in observations:
        y = level1(observation, unscored)
        if y in (0, 1):
            before = found.get(scenario, Counts(0, 0))
            found[scenario] = Counts(before.passes + int(y), before.n + 1)
    return found


@dataclass(frozen=True)
class Profile:
    """L3 and L4. Only what is defined stands in it."""

    sub_dimensions: Mapping[str, Fraction]
    dimensions: Mapping[str, Fraction]
    s: Fraction | None
    missing: tuple[str, ...]  # sub-dimensions of the tree without a defined instance; dimensions without a sub-dimension


def profile(counts: Mapping[str, Counts], tree: Tree, *, threshold: Fraction | None = THRESHOLD) -> Profile:
    """Means up the tree; `threshold` None takes the rates themselves (S_rate)."""
    subs: dict[str, Fraction] = {}
    dimensions: dict[str, Fraction] = {}
    missing: list[str] = []
    for dimension, children in tree.items():
        values: list[Fraction] = []
        for name, scenarios in children.items():
            value = mean(counts[q].rate if threshold is None else counts[q].passed(threshold) for q in scenarios if q in counts)
            if value is None:
                missing.append(name)
            else:
                subs[name] = value
                values.append(value)
        if not children:
            missing.append(dimension)
        score = mean(values)
        if score is not None:
            dimensions[dimension] = score
    return Profile(subs, dimensions, mean(dimensions.values()), tuple(missing))


@dataclass(frozen=True)
class Collaboration:
    """Collaboration scores of one repeat."""

    counts: Mapping[str, Counts]
    profile: Profile
    s: Fraction | None  # None: nothing defined, or the bounds are too far apart
    s_rate: Fraction | None
    s_low: Fraction | None
    s_high: Fraction | None

    @property
    def partial(self) -> bool:
        """S is missing, or rests on less than the whole tree."""
        return self.s is None or bool(self.profile.missing)


def collaboration(observations: Iterable[tuple[str, Observation]], tree: Tree, threshold: Fraction = THRESHOLD) -> Collaboration:
    """S, S_rate and the bounds of one repeat from (scenario, observation), one per task and scenario."""
    seen = list(observations)
    counts = level2(seen)
    scores = profile(counts, tree, threshold=threshold)
    low = profile(level2(seen, unscored=0), tree, threshold=threshold).s
    high = profile(level2(seen, unscored=1), tree, threshold=threshold).s
    spread = None if low is None or high is None else high - low
    defined = scores.s is not None and spread is not None and spread <= MAX_SPREAD
    return Collaboration(counts, scores, scores.s if defined else None, profile(counts, tree, threshold=None).s, low, high)


def headline_is_s(sizes: Iterable[int]) -> bool:
    """True if S may be the headline: the median of n(r, q) over what is defined is at least `HEADLINE_MEDIAN`."""
    found = list(sizes)
    return bool(found) and median(found) >= HEADLINE_MEDIAN
