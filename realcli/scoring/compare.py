"""Two results beside each other: what changed from A to B, on the tasks both have, with paired intervals. Pure, numpy.

Both sides of a task get one weight in every draw, so what makes a task hard for both cancels. Scores are exact; draws are floats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from realcli.api.sweep import Mode
from realcli.scoring.aggregate import ConfigurationScores, configuration_scores
from realcli.scoring.cubes import Branches, Cube, Floats, draws
from realcli.scoring.document import ScoreInput
from realcli.scoring.gates import MEASURES, Gate, GateError
from realcli.scoring.intervals import DRAWS, LEVEL, Interval, interval, weights
from realcli.scoring.runs import Run

POWER = 0.8
"""The smallest detectable drop is one that is found with this probability."""
_NO_SCATTER = 1e-12
"""Draws whose standard deviation is below it are the same but for the last digits of floats."""
COLLABORATION = frozenset(("dS", "dS_rate", "dJ", "dJ_rate"))
"""What rests on the judge and on the tree of scenarios."""


Cell = tuple[str, Mode, int]
"""(task, mode, repeat); repeat 0 stands for all of a task."""


class CompareError(ValueError):
    """The two cannot be compared; the message says why and what to do."""


@dataclass(frozen=True)
class Change:
    """One measure from A to B."""

    measure: str
    a: Fraction | None
    b: Fraction | None
    drawn: Floats  # B - A per draw; NaN where one is undefined
    why_not: str | None = None  # why it is not compared at all

    @property
    def difference(self) -> Fraction | None:
        """B - A, exact."""
        return None if self.a is None or self.b is None or self.why_not is not None else self.b - self.a

    @property
    def interval(self) -> Interval | None:
        """95 % of the draws."""
        return None if self.difference is None else interval(self.drawn)

    def probability(self, gate: Gate) -> float:
        """Share of draws in which the gate's event holds; `GateError` where the measure has no draws."""
        known = self.drawn[~np.isnan(self.drawn)]
        if self.difference is None or not known.size:
            why = self.why_not or f"{self.measure} is not defined on both sides"
            raise GateError(f"{gate.text!r} cannot be answered: {why}")
        return float(np.mean(gate.event(known)))

    def smallest_drop(self, bound: float = 0.0, level: float = LEVEL) -> float | None:
        """The least true drop that `P(d < bound) > level` would have found with probability 0.8; None where there are no draws,
        or all are the same (one task, or no task that differs): then nothing shows how far tasks scatter.

        |bound| + (z_level + z_0.8) x the standard deviation of the draws: normal approximation.
        """
        known = self.drawn[~np.isnan(self.drawn)]
        if self.difference is None or not known.size or not 0 < level < 1 or float(known.std()) < _NO_SCATTER:
            return None
        normal = NormalDist()
        return max(0.0, -bound) + (normal.inv_cdf(level) + normal.inv_cdf(POWER)) * float(known.std())


@dataclass(frozen=True)
class Comparison:
    """One configuration of A and one of B."""

    a: str
    b: str
    tasks: tuple[str, ...]  # on both sides, with a valid run
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    changes: Mapping[str, Change]
    headlines: tuple[str, str]  # S or S_rate, on the common tasks
    one_sided: tuple[Cell, ...] = ()  # of common tasks: valid on one side alone, left out on both


def check_comparable(a: ScoreInput, b: ScoreInput) -> list[str]:
    """What a reader has to know first. `CompareError` where A and B are of different benchmarks: nothing can be compared."""
    if a.benchmark is not None and b.benchmark is not None and a.benchmark != b.benchmark:
        raise CompareError(
            f"A is of benchmark {a.benchmark}, B of {b.benchmark}; expected the same digest: their tasks are not the same"
        )
    notes = []
    if a.benchmark is None or b.benchmark is None:
        notes.append("not both sides tell their benchmark: whether the tasks are the same is not known")
    reason = _not_the_same_instrument(a, b)
    if reason is not None:
        notes.append(f"S and J are not compared: {reason}")
    elif a.judge is None or b.judge is None:
        notes.append("not both sides tell their judge: whether S and J mean the same is not known")
    return notes


def match(a: ScoreInput, b: ScoreInput, wanted: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Which configurations are compared: `wanted` (`NAME` or `A=B`), else those of equal name, else the only ones."""
    if wanted:
        pairs = [(left, right or left) for left, _, right in (text.partition("=") for text in wanted)]
        for (left, right), text in zip(pairs, wanted, strict=True):
            for name, side, given in ((left, "A", a), (right, "B", b)):
                if name not in given.names:
                    raise CompareError(f"{text!r}: {side} has no configuration {name}; expected one of {', '.join(given.names)}")
        return pairs
    common = [name for name in a.names if name in b.names]
    if common:
        return [(name, name) for name in common]
    if len(a.names) == len(b.names) == 1:
        return [(a.names[0], b.names[0])]
    raise CompareError(
        f"A has {', '.join(a.names) or 'nothing'}, B {', '.join(b.names) or 'nothing'}: none in common; "
        "expected which belong together (--configuration A=B)"
    )


def compare(a: ScoreInput, b: ScoreInput, names: tuple[str, str], *, seed: int = 0, count: int = DRAWS) -> Comparison:
    """Compare one configuration of A with one of B on what both have a valid run of. `CompareError` where that is nothing.

    A run that only one side lost counts on neither: were the hard tasks lost in B, B would look better.
    """
    left, right = a.of(names[0]), b.of(names[1])
    tasks_a, tasks_b = ({run.task for run in runs if run.valid} for runs in (left, right))
    common = sorted(tasks_a & tasks_b)
    if not common:
        raise CompareError(f"{names[0]} of A and {names[1]} of B have no task in common that both have a valid run of")
    one_sided, left, right = _paired(*([run for run in runs if run.task in common] for runs in (left, right)))
    drawn = weights(len(common), seed=seed, count=count)
    sides = []
    for given, runs, name in ((a, left, names[0]), (b, right, names[1])):
        branches = Branches.of(given.tree)
        cube = Cube.of(runs, common, branches, given.tree, given.threshold)
        exact = configuration_scores(name, runs, given.tree, given.threshold)
        sides.append((_exact(exact), draws(cube, drawn, branches, given.threshold).scores, exact))
    (exact_a, drawn_a, scores_a), (exact_b, drawn_b, scores_b) = sides
    reason = _not_the_same_instrument(a, b)
    changes = {}
    for measure in MEASURES:
        score = measure.removeprefix("d")
        why_not = reason if measure in COLLABORATION else None
        changes[measure] = Change(measure, exact_a[score], exact_b[score], drawn_b[score] - drawn_a[score], why_not)
    return Comparison(
        *names, tuple(common), tuple(sorted(tasks_a - tasks_b)), tuple(sorted(tasks_b - tasks_a)), changes,
        ("S" if scores_a.headline_s else "S_rate", "S" if scores_b.headline_s else "S_rate"), one_sided,
    )  # fmt: skip


def _paired(left: list[Run], right: list[Run]) -> tuple[tuple[Cell, ...], list[Run], list[Run]]:
    """(cells that are valid on one side alone, runs of both sides without these).

    Repeats are paired by their number where both sides have the same ones, else a task counts where a repeat of it is valid.
    A mode that one side never ran is not looked at.
    """
    modes = {run.mode for run in left} & {run.mode for run in right}
    by_number = {run.repeat for run in left} == {run.repeat for run in right}

    def cell(run: Run) -> Cell:
        return run.task, run.mode, run.repeat if by_number else 0

    valid = [{cell(run) for run in runs if run.valid and run.mode in modes} for runs in (left, right)]
    one_sided = valid[0] ^ valid[1]
    kept_left, kept_right = ([run for run in runs if cell(run) not in one_sided] for runs in (left, right))
    return tuple(sorted(one_sided)), kept_left, kept_right


def _exact(scores: ConfigurationScores) -> dict[str, Fraction | None]:
    return {
        "R_exec": scores.r_exec, "R_collab": scores.r_collab, "S": scores.s, "S_rate": scores.s_rate,
        "J": scores.j, "J_rate": scores.j_rate,
    }  # fmt: skip


def _not_the_same_instrument(a: ScoreInput, b: ScoreInput) -> str | None:
    """Why S and J of A and B are different quantities; None if they are not."""
    if a.judge is not None and b.judge is not None and a.judge != b.judge:
        return f"A was judged by {a.judge}, B by {b.judge}"
    if a.tree != b.tree:
        return "their trees of scenarios differ"
    return f"their thresholds differ ({a.threshold} and {b.threshold})" if a.threshold != b.threshold else None
