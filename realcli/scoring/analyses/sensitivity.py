"""What hangs on a choice: the threshold, the rule of L1, product against sum (measuring.md 4.4, 1; 4.2, 6 and 7). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from realcli.scoring.analyses.profiles import pooled_counts
from realcli.scoring.analyses.table import Table
from realcli.scoring.correlation import agreement_of_orders
from realcli.scoring.levels import MAX_SPREAD, THRESHOLD, Counts, level2, mean, profile
from realcli.scoring.runs import Run, Tree

THETAS = tuple(Fraction(percent, 100) for percent in range(50, 101, 5))
Scores = dict[str, Fraction | None]


class _Repeat:
    """Counts of one repeat, read once for every threshold."""

    def __init__(self, runs: Iterable[Run]) -> None:
        own = [run for run in runs if run.valid and run.mode == "COLLAB"]
        seen = [pair for run in own for pair in run.scenarios.items()]
        self.rate = mean(int(run.success) for run in own)
        self.counts, self.low, self.high = level2(seen), level2(seen, 0), level2(seen, 1)
        shares: dict[str, list[Fraction]] = {}
        for scenario, one in seen:
            applicable = [verdict for verdict in one.verdicts if verdict != "n/a"]
            if applicable and not one.contaminated and "unscored" not in applicable:
                shares.setdefault(scenario, []).append(Fraction(applicable.count("1"), len(applicable)))
        self.checks = {scenario: _counts(found) for scenario, found in shares.items()}

    def s(self, tree: Tree, theta: Fraction | None) -> Fraction | None:
        """S at a threshold, withheld where its bounds are too far apart; None: S_rate, which has no threshold to fall below."""
        found = profile(self.counts, tree, threshold=theta).s
        if theta is None or found is None:
            return found
        low, high = profile(self.low, tree, threshold=theta).s, profile(self.high, tree, threshold=theta).s
        return None if low is None or high is None or high - low > MAX_SPREAD else found


def threshold_table(by_configuration: Mapping[str, list[Run]], tree: Tree) -> Table:
    """S(theta) = mean over repeats of S with a scenario passing where passes / n >= theta, for theta 0.5 to 1.0 in steps of 0.05,
    and without a threshold (S_rate); exact.

    `tau`: Kendall's tau-b of the ranking at theta with the ranking at 3/4, over configurations with both scores
    (measuring.md 4.4, 1: the paper names it as open).
    """
    repeats = _repeats(by_configuration)
    columns: dict[Fraction | None, Scores] = {
        theta: {name: _mean(one.s(tree, theta) for one in own) for name, own in repeats.items()} for theta in (*THETAS, None)
    }
    rows = []
    for theta, scores in columns.items():
        _, tau = agreement_of_orders(scores, columns[THRESHOLD])
        rows += [(name, "none" if theta is None else theta, score, _rounded(tau)) for name, score in scores.items()]
    return Table.of("threshold_sensitivity", "configuration threshold S tau", rows)


def variant_table(by_configuration: Mapping[str, list[Run]], tree: Tree, threshold: Fraction = THRESHOLD) -> Table:
    """Other readings of the same verdicts beside the one that counts, and tau of their rankings with it.

    S_pooled: repeats pooled before L2 (choice 6). S_checks: L1 is the share of applicable checks that pass, instances with an
    unscored check left out, and no threshold. J_of_means: R x S of the means (choice 7). J_additive: mean over repeats of
    (R + S) / 2. S_pooled and S_checks are compared with S and S_rate, the two J with J (measuring.md 4.2, 6 and 7; 4.4, 1).
    """
    repeats = _repeats(by_configuration)
    s: Scores = {name: _mean(one.s(tree, threshold) for one in own) for name, own in repeats.items()}
    rates: Scores = {name: _mean(one.s(tree, None) for one in own) for name, own in repeats.items()}
    r: Scores = {name: _mean(one.rate for one in own) for name, own in repeats.items()}
    j = {name: _mean(_both(lambda a, b: a * b, one.rate, one.s(tree, threshold)) for one in own) for name, own in repeats.items()}
    pooled: Scores = {name: profile(pooled_counts(runs), tree, threshold=threshold).s for name, runs in by_configuration.items()}
    checks: Scores = {n: _mean(profile(one.checks, tree, threshold=None).s for one in own) for n, own in repeats.items()}
    of_means: Scores = {name: _both(lambda a, b: a * b, r[name], s[name]) for name in repeats}
    additive: Scores = {
        n: _mean(_both(lambda a, b: (a + b) / 2, one.rate, one.s(tree, threshold)) for one in own) for n, own in repeats.items()
    }
    rows = []
    for variant, scores, beside, reference in (
        ("S_pooled", pooled, "S", s),
        ("S_checks", checks, "S_rate", rates),
        ("J_of_means", of_means, "J", j),
        ("J_additive", additive, "J", j),
    ):
        _, tau = agreement_of_orders(scores, reference)
        rows += [(variant, name, score, beside, reference[name], _rounded(tau)) for name, score in scores.items()]
    return Table.of("variants", "variant configuration score beside value tau", rows)


def _repeats(by_configuration: Mapping[str, list[Run]]) -> dict[str, list[_Repeat]]:
    found = {}
    for name, runs in by_configuration.items():
        groups: dict[int, list[Run]] = {}
        for run in runs:
            groups.setdefault(run.repeat, []).append(run)
        found[name] = [_Repeat(groups[repeat]) for repeat in sorted(groups)]
    return found


def _counts(shares: list[Fraction]) -> Counts:
    """As counts whose rate is the mean of the shares."""
    total = sum(shares, Fraction(0))
    return Counts(total.numerator, total.denominator * len(shares))


def _both(of: Callable[[Fraction, Fraction], Fraction], a: Fraction | None, b: Fraction | None) -> Fraction | None:
    return None if a is None or b is None else of(a, b)


def _mean(values: Iterable[Fraction | None]) -> Fraction | None:
    return mean(value for value in values if value is not None)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4) + 0.0
