"""What `realcli score` prints: every number exact and as a decimal, null where it is not defined. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from realcli.scoring.aggregate import ConfigurationScores, RepeatScores, configuration_scores
from realcli.scoring.document import ScoreInput
from realcli.scoring.runs import Tree


def score_output(given: ScoreInput) -> dict[str, Any]:
    """`{"configurations": {name: {…}}}`, configurations in the order of the document."""
    return {
        "configurations": {
            name: configuration_output(configuration_scores(name, given.of(name), given.tree, given.threshold), given.tree)
            for name in given.names
        }
    }


def configuration_output(scores: ConfigurationScores, tree: Tree) -> dict[str, Any]:
    """One configuration. dR and dJ are differences of the printed means; counts of instances are over the valid COLLAB runs."""
    low, high = scores.r_collab_bounds or (None, None)
    return {
        "R_exec": number(scores.r_exec),
        "R_collab": number(scores.r_collab),
        "S": number(scores.s),
        "S_rate": number(scores.s_rate),
        "S_low": number(scores.s_low),
        "S_high": number(scores.s_high),
        "J": number(scores.j),
        "dR": number(scores.delta_r),
        "dJ": number(scores.delta_j),
        "dR_paired": number(scores.flips.delta_r),
        "R_collab_bounds": [number(low), number(high)],
        "headline": "S" if scores.headline_s else "S_rate",
        "partial": scores.partial,
        "dimensions": _numbers(tree, scores.dimensions),
        "subdimensions": _numbers((sub for subs in tree.values() for sub in subs), scores.sub_dimensions),
        "per_repeat": {str(repeat): _repeat(one, tree) for repeat, one in scores.repeats.items()},
        "counts": {
            "valid": sum(scores.valid.values()),
            "invalid": sum(scores.invalid.values()),
            "triggered": scores.instances.triggered,
            "untriggered": scores.instances.untriggered,
            "not_applicable": scores.instances.not_applicable,
            "unscored": scores.instances.unscored,
            "contaminated": scores.instances.contaminated,
            "complete_pairs": scores.flips.pairs,
            "fail_to_pass": scores.flips.fail_to_pass,
            "pass_to_fail": scores.flips.pass_to_fail,
        },
    }


def number(value: Fraction | None) -> dict[str, Any] | None:
    """`{"exact": "17/50", "value": 0.34}`, or null."""
    return None if value is None else {"exact": str(value), "value": float(value)}


def _repeat(one: RepeatScores, tree: Tree) -> dict[str, Any]:
    part = one.collaboration
    return {
        "R_exec": number(one.r_exec),
        "R_collab": number(one.r_collab),
        "S": number(part.s),
        "S_rate": number(part.s_rate),
        "S_low": number(part.s_low),
        "S_high": number(part.s_high),
        "J": number(one.j),
        "dimensions": _numbers(tree, part.profile.dimensions),
    }


def _numbers(names: Iterable[str], values: Mapping[str, Fraction]) -> dict[str, Any]:
    """Every name of the tree; null where it had no instance."""
    return {name: number(values.get(name)) for name in names}
