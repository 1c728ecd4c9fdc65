"""Intervals: how far a score could move with other tasks of the same kind (measuring.md 4.4, 2). Seeded; floats, never exact.

Tasks are the sampling unit: all repeats, both modes and all configurations of a task get one weight, so that differences are
paired. Default is the Bayesian bootstrap (Dirichlet weights; no scenario can vanish), the plain one is a check. Percentile
intervals; a repeat whose exact S is undefined stays undefined in every draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from realcli.scoring.cubes import Branches, Cube, Draws, Floats, draws
from realcli.scoring.document import ScoreInput

DRAWS = 2000
LEVEL = 0.95
DIGITS = 4
"""Decimals of what is written: the resampling knows no more, and equal inputs give equal bytes."""

Kind = Literal["bayesian", "plain"]


def weights(tasks: int, *, kind: Kind = "bayesian", seed: int = 0, count: int = DRAWS) -> Floats:
    """Draw x task. Bayesian: Dirichlet(1, …, 1), times the number of tasks. Plain: how often a task was drawn."""
    rng = np.random.default_rng(seed)
    if kind == "plain":
        return rng.multinomial(tasks, np.full(tasks, 1 / tasks), size=count).astype(float) if tasks else np.zeros((count, 0))
    drawn = rng.standard_exponential((count, tasks))
    return drawn / drawn.mean(axis=1, keepdims=True) if tasks else drawn


@dataclass(frozen=True, slots=True)
class Interval:
    """Percentile interval of the draws in which the score is defined."""

    low: float
    high: float
    defined: float  # share of draws in which the score is defined; 1 but for the plain bootstrap

    def written(self) -> dict[str, float]:
        """JSON form, rounded to what the resampling can tell."""
        return {"low": _rounded(self.low), "high": _rounded(self.high)}


def interval(values: Floats, level: float = LEVEL) -> Interval | None:
    """None where no draw defines the score."""
    known = values[~np.isnan(values)]
    if not known.size:
        return None
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), known.size / values.size)


def resample(
    given: ScoreInput, *, kind: Kind = "bayesian", seed: int = 0, count: int = DRAWS, tasks: Sequence[str] | None = None
) -> dict[str, Draws]:
    """Draws of every configuration under the same weights. `tasks`: those to look at; all of the document without."""
    axis = sorted({run.task for run in given.runs}) if tasks is None else sorted(tasks)
    branches = Branches.of(given.tree)
    drawn = weights(len(axis), kind=kind, seed=seed, count=count)
    by_name: dict[str, list[Any]] = {name: [] for name in given.names}
    for run in given.runs:
        by_name[run.configuration].append(run)
    return {
        name: draws(Cube.of(runs, axis, branches, given.tree, given.threshold), drawn, branches, given.threshold)
        for name, runs in by_name.items()
    }


def intervals_output(given: ScoreInput, *, seed: int = 0, count: int = DRAWS) -> dict[str, Any]:
    """What `realcli score --intervals` adds: intervals of scores and dimensions, P(pass) of scenarios, the plain check."""
    bayesian = resample(given, seed=seed, count=count)
    plain = resample(given, kind="plain", seed=seed, count=count)
    return {
        "method": "bayesian bootstrap over tasks, percentile",
        "level": LEVEL,
        "draws": count,
        "seed": seed,
        "configurations": {
            name: {
                "scores": _written(found.scores),
                "dimensions": _written(found.dimensions),
                "P_pass": {scenario: _rounded(share) for scenario, share in found.passes.items()},
                "plain": _written(plain[name].scores),
            }
            for name, found in bayesian.items()
        },
    }


def _written(values: Mapping[str, Floats]) -> dict[str, dict[str, float] | None]:
    found = {name: interval(drawn) for name, drawn in values.items()}
    return {name: None if one is None else one.written() for name, one in found.items()}


def _rounded(value: float) -> float:
    return round(value, DIGITS) + 0.0  # no -0.0
