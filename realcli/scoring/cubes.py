"""Runs as arrays over tasks, and every score of a configuration for many weightings of the tasks at once. numpy, floats.

The exact scores are `aggregate`'s. This is the same arithmetic with a weight per task: with all weights 1 it gives the same
numbers (tested), with random weights it gives the draws that intervals, ranks and comparisons are read from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from realcli.scoring.aggregate import repeat_scores
from realcli.scoring.levels import THRESHOLD, level1
from realcli.scoring.runs import Run, Tree

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Branches:
    """A tree as matrices of 0 and 1: scenario x sub-dimension, sub-dimension x dimension."""

    scenarios: tuple[str, ...]
    sub_dimensions: tuple[str, ...]
    dimensions: tuple[str, ...]
    to_sub: Floats
    to_dimension: Floats

    @staticmethod
    def of(tree: Tree) -> Branches:
        """In the tree's order."""
        subs = [(dimension, sub) for dimension, children in tree.items() for sub in children]
        leaves = [(at, q) for at, (dimension, sub) in enumerate(subs) for q in tree[dimension][sub]]
        to_sub = np.zeros((len(leaves), len(subs)))
        to_sub[np.arange(len(leaves)), [at for at, _ in leaves]] = 1
        to_dimension = np.zeros((len(subs), len(tree)))
        dimensions = list(tree)
        to_dimension[np.arange(len(subs)), [dimensions.index(dimension) for dimension, _ in subs]] = 1
        return Branches(tuple(q for _, q in leaves), tuple(sub for _, sub in subs), tuple(tree), to_sub, to_dimension)


@dataclass(frozen=True)
class Cube:
    """The runs of one configuration: repeats x tasks (x scenarios). What is not valid or not defined has weight 0 and value 0."""

    repeats: tuple[int, ...]
    exec_valid: Floats  # repeat, task
    exec_success: Floats
    collab_valid: Floats
    collab_success: Floats
    defined: Floats  # repeat, task, scenario: y is 0 or 1
    passed: Floats
    s_defined: Bools  # repeat: S is not withheld because its bounds are too far apart

    @staticmethod
    def of(runs: Iterable[Run], tasks: Sequence[str], branches: Branches, tree: Tree, threshold: Fraction = THRESHOLD) -> Cube:
        """`tasks` gives the axis; runs of other tasks are left out (they are not compared)."""
        index = {task: at for at, task in enumerate(tasks)}
        leaf = {scenario: at for at, scenario in enumerate(branches.scenarios)}
        own = [run for run in runs if run.task in index]
        repeats = tuple(sorted({run.repeat for run in own}))
        rank = {repeat: at for at, repeat in enumerate(repeats)}
        plane, block = (len(repeats), len(tasks)), (len(repeats), len(tasks), len(leaf))
        valid = {"EXEC": np.zeros(plane), "COLLAB": np.zeros(plane)}
        success = {"EXEC": np.zeros(plane), "COLLAB": np.zeros(plane)}
        defined, passed = np.zeros(block), np.zeros(block)
        for run in own:
            if not run.valid:
                continue
            at = rank[run.repeat], index[run.task]
            valid[run.mode][at], success[run.mode][at] = 1, run.success
            if run.mode != "COLLAB":
                continue
            for scenario, seen in run.scenarios.items():
                y = level1(seen)
                if y in (0, 1) and scenario in leaf:
                    defined[*at, leaf[scenario]], passed[*at, leaf[scenario]] = 1, int(y)
        scored = [
            repeat_scores([run for run in own if run.repeat == repeat], tree, threshold).collaboration.s is not None
            for repeat in repeats
        ]
        rates = (valid["EXEC"], success["EXEC"], valid["COLLAB"], success["COLLAB"])
        return Cube(repeats, *rates, defined, passed, np.array(scored, dtype=bool))


@dataclass(frozen=True)
class Draws:
    """Scores of one configuration, one per draw (row of weights); NaN where a draw leaves one undefined."""

    scores: Mapping[str, Floats]  # R_exec, R_collab, S, S_rate, J, J_rate, dR, dR_paired, dJ, dJ_rate
    dimensions: Mapping[str, Floats]
    passes: Mapping[str, float]  # scenario -> P(r_q = 1): share over draws and repeats where it is defined


def draws(cube: Cube, weights: Floats, branches: Branches, threshold: Fraction = THRESHOLD) -> Draws:
    """Scores under each row of `weights` (draw x task, not negative).

    A scenario passes where its weighted rate is at least the threshold. J is the mean over repeats of R x S, dR and dJ are
    differences of means, dR_paired weights the complete pairs, all as in `aggregate`.
    """
    shape = (len(weights), len(cube.repeats))
    r_exec, r_collab = np.full(shape, np.nan), np.full(shape, np.nan)
    s, s_rate = np.full(shape, np.nan), np.full(shape, np.nan)
    profile = np.full((*shape, len(branches.dimensions)), np.nan)
    passing, seen = np.zeros(len(branches.scenarios)), np.zeros(len(branches.scenarios))
    for at in range(len(cube.repeats)):
        r_exec[:, at] = _ratio(weights @ (cube.exec_valid[at] * cube.exec_success[at]), weights @ cube.exec_valid[at])
        r_collab[:, at] = _ratio(weights @ (cube.collab_valid[at] * cube.collab_success[at]), weights @ cube.collab_valid[at])
        n, k = weights @ cube.defined[at], weights @ cube.passed[at]
        present = n > 0
        passed = present & (threshold.denominator * k >= threshold.numerator * n)
        passing += passed.sum(axis=0)
        seen += present.sum(axis=0)
        profile[:, at], s[:, at] = _climb(passed.astype(float), present, branches)
        _, s_rate[:, at] = _climb(np.nan_to_num(_ratio(k, n)), present, branches)
        if not cube.s_defined[at]:
            s[:, at] = np.nan
    scores = {
        "R_exec": mean(r_exec), "R_collab": mean(r_collab), "S": mean(s), "S_rate": mean(s_rate),
        "J": mean(r_collab * s), "J_rate": mean(r_collab * s_rate),
    }  # fmt: skip
    both = cube.exec_valid * cube.collab_valid
    changed = (both * (cube.collab_success - cube.exec_success)).sum(axis=0)
    scores["dR"] = scores["R_collab"] - scores["R_exec"]
    scores["dR_paired"] = _ratio(weights @ changed, weights @ both.sum(axis=0))
    scores["dJ"] = scores["J"] - scores["R_exec"]
    scores["dJ_rate"] = scores["J_rate"] - scores["R_exec"]
    share = _ratio(passing, seen)
    return Draws(
        scores,
        {name: mean(profile[:, :, at]) for at, name in enumerate(branches.dimensions)},
        {name: float(value) for name, value in zip(branches.scenarios, share, strict=True) if not np.isnan(value)},
    )


def mean(values: Floats) -> Floats:
    """Mean over the last axis of what is defined; NaN of nothing."""
    known = ~np.isnan(values)
    return _ratio(np.where(known, values, 0).sum(axis=-1), known.sum(axis=-1))


def _ratio(above: Floats, below: Floats | NDArray[np.int_]) -> Floats:
    """above / below, NaN where below is 0."""
    found = np.full(np.shape(above), np.nan)
    np.divide(above, below, out=found, where=np.asarray(below) > 0)
    return found


def _climb(leaves: Floats, present: Bools, branches: Branches) -> tuple[Floats, Floats]:
    """(dimensions, S) of each draw: equal-weight means of what is present."""
    here = present.astype(float)
    subs = _ratio((leaves * here) @ branches.to_sub, here @ branches.to_sub)
    known = ~np.isnan(subs)
    dimensions = _ratio(np.where(known, subs, 0) @ branches.to_dimension, known.astype(float) @ branches.to_dimension)
    return dimensions, mean(dimensions)
