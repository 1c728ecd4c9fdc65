"""What lies below S: dimension profiles, strict pass rates and the paper's contrasts (RealCLI 5.4, 5.5). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from realcli.scoring.aggregate import ConfigurationScores
from realcli.scoring.analyses.table import Table
from realcli.scoring.levels import Counts, level2
from realcli.scoring.runs import Run, Tree

FEW = 4
"""Fewer instances than this are flagged: with 1 to 3 the 3/4 rule means "all"."""

CONTRASTS: tuple[tuple[str, str, str], ...] = (
    ("replanning", "u.plan.replan-after-obstacle", "80.2"),
    ("replanning", "s.conflict.scope-expansion", "51.7"),
    ("retention", "s.retain.successive-changes", "98.8"),
    ("retention", "s.retain.early-constraint-late-artifact", "54.4"),
    ("retention", "s.conflict.cross-turn-contradiction", "29.3"),
)
"""(contrast, template, per cent in the paper: on other templates of the same intent, so a reference and no target)."""


def pooled_counts(runs: Iterable[Run]) -> dict[str, Counts]:
    """Strict pass counts per scenario over all valid COLLAB runs, before L2 (choice 14)."""
    return level2(pair for run in runs if run.mode == "COLLAB" and run.valid for pair in run.scenarios.items())


def profile_table(scores: Mapping[str, ConfigurationScores], tree: Tree) -> Table:
    """Per configuration every dimension = mean of its sub-dimensions, mean over repeats where defined; S (`S_all`: a dimension is
    called S too) = mean of the dimensions, S_rate = S without a threshold, and whether the tree was partial.

    RealCLI 5.4; measuring.md 4.1.
    """
    rows = ((name, *(one.dimensions.get(dimension) for dimension in tree), one.s, one.s_rate, one.s_partial)
            for name, one in scores.items())  # fmt: skip
    return Table.of("dimension_profile", f"configuration {' '.join(tree)} S_all S_rate partial", rows)


def strict_scenarios(by_configuration: Mapping[str, list[Run]], tree: Tree) -> Table:
    """Strict pass rate of a scenario: sum of y / n over all repeats, before L2 (measuring.md 4.2, 14).

    `all`: configurations pooled. Scenarios without a defined instance have no row. `few`: n < 4.
    """
    rows = []
    for configuration, counts in _counts(by_configuration).items():
        for dimension, subs in tree.items():
            for sub, scenarios in subs.items():
                rows += [
                    (configuration, dimension, sub, q, counts[q].passes, counts[q].n, counts[q].rate, counts[q].n < FEW)
                    for q in scenarios if q in counts
                ]  # fmt: skip
    return Table.of("strict_scenarios", "configuration dimension sub_dimension scenario passes n rate few", rows)


def strict_sub_dimensions(by_configuration: Mapping[str, list[Run]], tree: Tree) -> Table:
    """The same over the instances of a sub-dimension ("excellence rate" of the paper): sum of all y / sum of all n.

    RealCLI 5.5; measuring.md 4.2, 14.
    """
    rows = []
    for configuration, counts in _counts(by_configuration).items():
        for dimension, subs in tree.items():
            for sub, scenarios in subs.items():
                own = [counts[q] for q in scenarios if q in counts]
                passes, n = sum(c.passes for c in own), sum(c.n for c in own)
                if n:
                    rows.append((configuration, dimension, sub, passes, n, Fraction(passes, n), n < FEW))
    return Table.of("strict_sub_dimensions", "configuration dimension sub_dimension passes n rate few", rows)


def contrast_panel(by_configuration: Mapping[str, list[Run]]) -> Table:
    """The paper's contrasts: strict pass rates = passes / n of templates that ask for similar things.

    RealCLI 5.5; measuring.md 4.3.
    """
    rows = []
    for configuration, counts in _counts(by_configuration).items():
        for contrast, scenario, paper in CONTRASTS:
            one = counts.get(scenario)
            rows.append((configuration, contrast, scenario, *((one.passes, one.n, one.rate) if one else (0, 0, None)), paper))
    return Table.of("contrasts", "configuration contrast scenario passes n rate paper_percent", rows)


def _counts(by_configuration: Mapping[str, list[Run]]) -> dict[str, dict[str, Counts]]:
    found = {configuration: pooled_counts(runs) for configuration, runs in by_configuration.items()}
    return {**found, "all": pooled_counts(run for runs in by_configuration.values() for run in runs)}
