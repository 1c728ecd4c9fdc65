"""The formulas of docs/scores.md once more, in the shortest form. None is "not defined"."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from statistics import median
from typing import NamedTuple

from realcli_cli.recount.evidence import Counted, Seen

Tree = dict[str, dict[str, tuple[str, ...]]]
Value = Fraction | None


def mean(values: Iterable[Fraction | int | None]) -> Value:
    """Of what is defined."""
    found = [Fraction(value) for value in values if value is not None]
    return sum(found, Fraction(0)) / len(found) if found else None


def passes(seen: Seen, unscored: str | None = None) -> int | None:
    """1, 0, or None: it does not count. `unscored`: how an unscored verdict is read."""
    verdicts = [unscored if v == "unscored" and unscored else v for v in seen.verdicts if v != "n/a"]
    if seen.contaminated or not verdicts:
        return None
    if "0" in verdicts:
        return 0
    return None if "unscored" in verdicts else 1


class Scores(NamedTuple):
    """One repeat of one configuration."""

    r_exec: Value
    r_collab: Value
    s: Value
    s_rate: Value
    s_low: Value
    s_high: Value
    dimensions: dict[str, Fraction]
    sub_dimensions: dict[str, Fraction]
    sizes: list[int]
    whole: bool

    @property
    def j(self) -> Value:
        """R x S."""
        return None if self.r_collab is None or self.s is None else self.r_collab * self.s

    @property
    def j_rate(self) -> Value:
        """R x S_rate."""
        return None if self.r_collab is None or self.s_rate is None else self.r_collab * self.s_rate


def rate(runs: Sequence[Counted], mode: str, invalid: int | None = None) -> Value:
    """R of one mode; `invalid`: how an invalid run is read."""
    own = [run for run in runs if run.judged and run.mode == mode]
    return mean(int(run.success) if run.valid else invalid for run in own)


def climb(
    runs: Sequence[Counted], tree: Tree, unscored: str | None = None, threshold: bool = True
) -> tuple[Value, dict[str, Fraction], dict[str, Fraction], list[int]]:
    """(S, dimensions, sub-dimensions, numbers of instances) of one repeat."""
    values: dict[str, list[int]] = {}
    for run in runs:
        for name, seen in run.scenarios.items() if run.valid and run.mode == "COLLAB" else ():
            y = passes(seen, unscored)
            if y is not None:
                values.setdefault(name, []).append(y)
    score = {
        name: Fraction(int(4 * sum(ys) >= 3 * len(ys))) if threshold else Fraction(sum(ys), len(ys))
        for name, ys in values.items()
    }
    subs = {sub: found for branches in tree.values() for sub, names in branches.items()
            if (found := mean(score.get(name) for name in names)) is not None}  # fmt: skip
    dimensions = {d: found for d, branches in tree.items() if (found := mean(subs.get(sub) for sub in branches)) is not None}
    return mean(dimensions.values()), dimensions, subs, [len(ys) for ys in values.values()]


def scores(runs: Sequence[Counted], tree: Tree) -> Scores:
    """All scores of one repeat."""
    s, dimensions, subs, sizes = climb(runs, tree)
    low, high = climb(runs, tree, "0")[0], climb(runs, tree, "1")[0]
    known = s is not None and low is not None and high is not None and high - low <= Fraction(1, 20)
    whole = known and set(subs) == {sub for branches in tree.values() for sub in branches}
    rates = rate(runs, "EXEC"), rate(runs, "COLLAB")
    return Scores(*rates, s if known else None, climb(runs, tree, threshold=False)[0], low, high, dimensions, subs, sizes, whole)


def pairs(runs: Sequence[Counted]) -> list[tuple[Counted, Counted]]:
    """(EXEC, COLLAB) of a task and repeat of one configuration, both valid."""
    valid = {(run.configuration, run.task, run.repeat, run.mode): run for run in runs if run.valid}
    cells = dict.fromkeys(key[:3] for key in valid)
    return [(valid[*c, "EXEC"], valid[*c, "COLLAB"]) for c in cells if (*c, "EXEC") in valid and (*c, "COLLAB") in valid]


def headline(parts: Sequence[Scores]) -> str:
    """S from eight tasks per scenario on, in the median."""
    sizes = [n for part in parts for n in part.sizes]
    return "S" if sizes and median(sizes) >= 8 else "S_rate"
