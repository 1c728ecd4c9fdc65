"""Intervals and further readings of a sweep's runs: what `realcli.scoring` computes, as the report writes it. Pure, seeded."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from importlib import resources
from typing import NamedTuple

import yaml

from realcli.api.plan import Lock
from realcli.audit.model import AuditRecord
from realcli.benchmark.catalogue import load_catalogue
from realcli.scoring.aggregate import ConfigurationScores
from realcli.scoring.analyses.every import judged_tables, tables_of
from realcli.scoring.analyses.table import Cell, Table
from realcli.scoring.analyses.violations import RETENTION
from realcli.scoring.document import ScoreInput
from realcli.scoring.intervals import interval, resample
from realcli.scoring.ranks import pairwise, rank_stability, relation_interval
from realcli.scoring.records import CheckRecord, Failure, InstanceRecord
from realcli.scoring.runs import ConfigurationLabels, Run, TaskLabels, Tree
from realcli.scoring.scorerow import decimal
from realcli_judge.beside import Analysis
from realcli_judge.collect import Collected, InstanceSeen
from realcli_judge.figures import Interval, Number, number

DIGITS = 4
"""Decimals of the ends of an interval: the resampling knows no more."""


class Told(NamedTuple):
    """How a table is shown."""

    title: str
    means: str


@cache
def titles() -> dict[str, Told]:
    """Name of a table -> how it is shown; one that is not there is shown under its name."""
    text = resources.files("realcli_judge").joinpath("data/analyses.yaml").read_text(encoding="utf-8")
    return {name: Told(**item) for name, item in yaml.safe_load(text).items()}


def score_document(lock: Lock, runs: list[Run], tree: Tree, judge: str) -> ScoreInput:
    """The runs as scoring's own document: what `tables/runs.json` holds."""
    return ScoreInput(
        tree=tree,
        runs=tuple(runs),
        benchmark=lock.benchmark.digest,
        judge=judge,
        tasks={task.name: TaskLabels(task.category, task.information_structure) for task in lock.tasks},
        configurations={c.name: ConfigurationLabels(c.program, c.model) for c in lock.configurations},
    )


class Readings(NamedTuple):
    """Intervals by (configuration, measure), and all tables."""

    intervals: Mapping[tuple[str, str], Interval]
    analyses: list[Analysis]


def readings(given: ScoreInput, collected: Collected, scores: Mapping[str, ConfigurationScores]) -> Readings:
    """Everything that rests on the runs of all configurations together."""
    drawn = resample(given)
    found: dict[tuple[str, str], Interval] = {}
    for name, draws in drawn.items():
        dimensions = {f"dimension {dimension}": values for dimension, values in draws.dimensions.items()}
        for measure, values in {**draws.scores, **dimensions}.items():
            one = interval(values)
            if one is not None:
                found[name, measure] = written(one.low, one.high)
    tables = [*tables_of(given, scores), *_judged(given, collected)]
    if len(drawn) > 1:
        for measure in ("S_rate", "R_collab"):
            tables += [rank_stability(drawn, measure), pairwise(drawn, measure)]
        tables.append(relation_interval(drawn))
    return Readings(found, [_analysis(table) for table in tables if table.rows])


def written(low: float, high: float) -> Interval:
    """Ends as they are written."""
    low, high = round(low, DIGITS) + 0.0, round(high, DIGITS) + 0.0
    return Interval(low=low, high=high, text=f"{decimal(Fraction(repr(low)))} to {decimal(Fraction(repr(high)))}")


def _judged(given: ScoreInput, collected: Collected) -> list[Table]:
    instances: dict[str, list[InstanceRecord]] = {name: [] for name in given.names}
    labels: dict[str, list[Failure]] = {name: [] for name in given.names}
    audits: dict[str, list[AuditRecord]] = {name: [] for name in given.names}
    kept = {id: t for id, t in load_catalogue().templates.items() if t.sub_dimension == RETENTION}
    for trial in collected.trials.values():
        name = trial.cell.configuration
        if not trial.valid:
            continue
        instances[name] += [_record(one) for one in trial.instances if one.scenario in kept]
        labels[name] += [trial.failure] if trial.failure is not None else []
        audits[name] += [trial.audit] if trial.audit is not None else []
    evidence = {check.id: check.evidence for template in kept.values() for check in template.checks}
    return judged_tables(given, instances, evidence, labels, audits)


def _record(seen: InstanceSeen) -> InstanceRecord:
    return InstanceRecord.model_validate(
        {
            "scenario": seen.scenario,
            "probe": seen.id,
            "dimension": seen.dimension,
            "sub_dimension": RETENTION,
            "state": "contaminated" if seen.contaminated is not None else seen.state,
            "checks": [CheckRecord(check=c.check, verdict=c.verdict, by="none") for c in seen.checks],
        }
    )


def _analysis(table: Table) -> Analysis:
    told = titles().get(table.name, Told(table.name.replace("_", " "), ""))
    return Analysis(
        id=table.name,
        title=told.title,
        means=told.means,
        columns=list(table.columns),
        rows=[[_cell(cell) for cell in row] for row in table.rows],
    )


def _cell(cell: Cell) -> Number | bool | int | float | str | None:
    return number(cell) if isinstance(cell, Fraction) else cell
