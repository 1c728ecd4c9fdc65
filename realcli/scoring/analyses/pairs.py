"""EXEC against COLLAB: flips, churn, and their difference by category, information structure, framework (RealCLI 5.6). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from realcli.scoring.aggregate import ConfigurationScores
from realcli.scoring.agreement import mcnemar
from realcli.scoring.analyses.table import Table
from realcli.scoring.levels import mean
from realcli.scoring.paired import churn, excess_churn, flips
from realcli.scoring.runs import ConfigurationLabels, Run, TaskLabels

Runs = Mapping[str, list[Run]]
"""Configuration -> its runs."""


def pooled(by_configuration: Runs) -> list[Run]:
    """All runs as if of one configuration; a task of another configuration is another task, so nothing is paired across."""
    return [replace(run, task=f"{run.configuration}\0{run.task}") for runs in by_configuration.values() for run in runs]


def flips_table(by_configuration: Runs) -> Table:
    """Flips over complete pairs: fail to pass, pass to fail, changed = their sum / pairs, dR = their difference / pairs.

    Beside them exact McNemar (it takes pairs as independent; repeats of one task are not: read it with the interval, which
    resamples tasks) and churn: the share of repeat pairs inside one mode that differ. excess = changed - mean of the two churns;
    index pairing flips without any effect, so only the excess is one (measuring.md 4.3; paper: 17.9, 18.5, 36.5 %).
    """
    rows = []
    for configuration, runs in [*by_configuration.items(), ("all", pooled(by_configuration))]:
        one = flips(runs)
        inside = [churn(run for run in runs if run.mode == mode) for mode in ("EXEC", "COLLAB")]
        p = mcnemar(one.fail_to_pass, one.pass_to_fail) if one.pairs else None
        counts = (configuration, one.pairs, one.fail_to_pass, one.pass_to_fail)
        rows.append((*counts, one.changed, one.delta_r, p, *inside, excess_churn(runs)))
    columns = "configuration pairs fail_to_pass pass_to_fail changed dR_paired mcnemar_p churn_exec churn_collab excess_churn"
    return Table.of("flips", columns, rows)


def category_deltas(by_configuration: Runs, tasks: Mapping[str, TaskLabels]) -> Table:
    """dR(category, configuration) = (f2p - p2f) / complete pairs of the category's tasks; `all`: of all configurations pooled.

    Tasks without a category are left out (measuring.md 4.3; paper: +50.0 to -57.1 pp).
    """
    groups = {name: labels.category for name, labels in tasks.items() if labels.category is not None}
    return _deltas("category_deltas", "category", by_configuration, groups)


def structure_deltas(by_configuration: Runs, tasks: Mapping[str, TaskLabels]) -> Table:
    """dR(structure, configuration) = (f2p - p2f) / complete pairs of the tasks of an information structure: requirements that add
    up (additive), or that have to stay consistent (consistency); `all`: of all configurations pooled.

    Tasks without one are left out (RealCLI 5.6, 6.1; measuring.md 4.3).
    """
    groups = {name: labels.information_structure for name, labels in tasks.items() if labels.information_structure is not None}
    return _deltas("structure_deltas", "information_structure", by_configuration, groups)


def _deltas(name: str, kind: str, by_configuration: Runs, groups: Mapping[str, str]) -> Table:
    rows = []
    for group in sorted(set(groups.values())):
        inside = {c: [run for run in runs if groups.get(run.task) == group] for c, runs in by_configuration.items()}
        for configuration, runs in [*inside.items(), ("all", pooled(inside))]:
            one = flips(runs)
            count = sum(found == group for found in groups.values())
            rows.append((group, configuration, count, one.pairs, one.fail_to_pass, one.pass_to_fail, one.delta_r))
    return Table.of(name, f"{kind} configuration tasks pairs fail_to_pass pass_to_fail dR_paired", rows)


def framework_deltas(by_configuration: Runs, configurations: Mapping[str, ConfigurationLabels]) -> Table:
    """Per framework the mean, least and greatest of paired dR = (f2p - p2f) / pairs of its configurations; each counts once.

    Configurations without a framework or without a complete pair are left out (RealCLI 5.6; paper: Codex +3.4 pp on average).
    """
    found: dict[str, list[Fraction]] = {}
    for configuration, runs in by_configuration.items():
        framework, delta = _label(configurations, configuration).framework, flips(runs).delta_r
        if framework is not None and delta is not None:
            found.setdefault(framework, []).append(delta)
    rows = ((framework, len(found[framework]), mean(found[framework]), min(found[framework]), max(found[framework]))
            for framework in sorted(found))  # fmt: skip
    return Table.of("framework_deltas", "framework configurations dR_mean dR_least dR_greatest", rows)


def model_averages(scores: Mapping[str, ConfigurationScores], configurations: Mapping[str, ConfigurationLabels]) -> Table:
    """Average of a model = sum of its cells R_exec, R_collab and J over its frameworks / number of these cells.

    None where a cell is not defined: an average of fewer cells is another number. `cells` says how many there are
    (measuring.md 4.1; paper: nine cells, best 49.2 %).
    """
    found: dict[str, list[Fraction | None]] = {}
    for name, one in scores.items():
        model = _label(configurations, name).model
        if model is not None:
            found.setdefault(model, []).extend((one.r_exec, one.r_collab, one.j))
    rows = []
    for model in sorted(found):
        cells = [cell for cell in found[model] if cell is not None]
        rows.append((model, len(found[model]), len(cells), mean(cells) if len(cells) == len(found[model]) else None))
    return Table.of("model_averages", "model cells defined average", rows)


def delta_j_table(scores: Mapping[str, ConfigurationScores]) -> Table:
    """dJ = J - R_exec, and its parts: task part J - R_exec x S, collaboration part -R_exec x (1 - S).

    dJ is negative for nearly everyone by arithmetic (J is a product of shares), so it is read by its parts (measuring.md 4.1).
    """
    rows = []
    for name, one in scores.items():
        task, collaboration = one.delta_j_parts or (None, None)
        rows.append((name, one.r_exec, one.s, one.j, one.delta_j, task, collaboration))
    return Table.of("delta_j", "configuration R_exec S J dJ task_part collaboration_part", rows)


def invalid_bounds(scores: Mapping[str, ConfigurationScores]) -> Table:
    """R = successes / runs of each mode with every invalid run read as a failure and as a success, mean over repeats.

    measuring.md 4.2, 10.
    """
    rows = []
    for name, one in scores.items():
        ends = one.r_exec_bounds or (None, None)
        rows.append((name, "EXEC", one.valid["EXEC"], one.invalid["EXEC"], one.r_exec, *ends))
        ends = one.r_collab_bounds or (None, None)
        rows.append((name, "COLLAB", one.valid["COLLAB"], one.invalid["COLLAB"], one.r_collab, *ends))
    return Table.of("invalid_bounds", "configuration mode valid invalid R invalid_as_0 invalid_as_1", rows)


def _label(configurations: Mapping[str, ConfigurationLabels], name: str) -> ConfigurationLabels:
    return configurations.get(name, ConfigurationLabels())
