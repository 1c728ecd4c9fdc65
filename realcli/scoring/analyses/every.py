"""All tables that follow from a document alone, and those that need the records of judging. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from realcli.audit.model import AuditRecord
from realcli.scoring.aggregate import ConfigurationScores, configuration_scores
from realcli.scoring.analyses import asking, audits, effort, failures, pairs, profiles, sensitivity, triggers, violations
from realcli.scoring.analyses.table import Table
from realcli.scoring.document import ScoreInput
from realcli.scoring.records import Failure, InstanceRecord
from realcli.scoring.runs import Run


def tables_of(given: ScoreInput, scores: Mapping[str, ConfigurationScores] | None = None) -> list[Table]:
    """Every table that needs runs, tree and labels alone. `scores`: those of the runs, if already there."""
    runs: dict[str, list[Run]] = {name: [] for name in given.names}
    for run in given.runs:
        runs[run.configuration].append(run)
    found = scores or {name: configuration_scores(name, own, given.tree, given.threshold) for name, own in runs.items()}
    return [
        pairs.flips_table(runs),
        pairs.category_deltas(runs, given.tasks),
        pairs.structure_deltas(runs, given.tasks),
        pairs.framework_deltas(runs, given.configurations),
        pairs.model_averages(found, given.configurations),
        pairs.delta_j_table(found),
        pairs.invalid_bounds(found),
        profiles.profile_table(found, given.tree),
        profiles.strict_scenarios(runs, given.tree),
        profiles.strict_sub_dimensions(runs, given.tree),
        profiles.contrast_panel(runs),
        effort.length_cells(runs, given.tasks),
        effort.length_by_category(runs, given.tasks),
        effort.effort_without_gain(runs),
        effort.retry_errors(runs),
        asking.questions_asked(runs),
        asking.questions_against_gain(runs),
        asking.outcome_and_collaboration(runs),
        asking.rank_relation(found),
        violations.violations_table(runs),
        violations.near_miss_table(runs),
        triggers.trigger_rates(runs, given.tree),
        triggers.common_scores(runs, given.tree, given.threshold),
        audits.contaminated_dimensions(runs, given.tree),
        sensitivity.threshold_table(runs, given.tree),
        sensitivity.variant_table(runs, given.tree, given.threshold),
    ]


def judged_tables(
    given: ScoreInput,
    instances: Mapping[str, Iterable[InstanceRecord]],
    evidence: Mapping[str, str],
    labels: Mapping[str, Iterable[Failure]],
    records: Mapping[str, Sequence[AuditRecord]],
) -> list[Table]:
    """Tables of what judging wrote, each by configuration: instance records, evidence of checks, failure labels, audits."""
    runs = {name: given.of(name) for name in given.names}
    return [
        violations.said_against_done(instances, evidence),
        failures.failure_taxonomy(labels),
        audits.audit_table(records, runs),
    ]
