"""Was the instrument at fault (RealCLI 4.6; measuring.md 3.1, 4.3)? Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

from realcli.audit.model import AuditRecord, SimName
from realcli.scoring.analyses.table import Table, share
from realcli.scoring.levels import mean
from realcli.scoring.paired import flips
from realcli.scoring.runs import Run, Tree

CHECKS: tuple[SimName, ...] = get_args(SimName)


def audit_table(audits: Mapping[str, Sequence[AuditRecord]], by_configuration: Mapping[str, list[Run]]) -> Table:
    """Per configuration: n audited, of each of the seven checks the share of 1 = ones / (ones + zeros), dR, and per audited run
    the questions that matched no slice and the answers no script held.

    n/a and unscored verdicts are in no share (measuring.md 3.1, 4.3; paper, Table 8: 94.9 to 98.0 % script fidelity, 98.0 %
    without harmful deviation).
    """
    rows = []
    for configuration, records in audits.items():
        rates = []
        for check in CHECKS:
            said = [found.verdict for record in records for found in record.checks if found.check == check]
            rates.append(share(said.count("1"), said.count("1") + said.count("0")))
        unmatched = mean(record.ask_unmatched for record in records)
        unscripted = mean(record.unscripted_answers for record in records)
        delta = flips(by_configuration.get(configuration, [])).delta_r
        rows.append((configuration, len(records), *rates, delta, unmatched, unscripted))
    columns = f"configuration audited {' '.join(CHECKS)} dR_paired ask_unmatched_per_run unscripted_answers_per_run"
    return Table.of("simulator_audit", columns, rows)


def contaminated_dimensions(by_configuration: Mapping[str, list[Run]], tree: Tree) -> Table:
    """By configuration and dimension: contaminated instances / instances of valid COLLAB runs. They left S on both sides.

    RealCLI 4.6; measuring.md 3.1, 4.3 (simulator audit: by dimension the share of contaminated instances).
    """
    dimension_of = {q: dimension for dimension, subs in tree.items() for qs in subs.values() for q in qs}
    rows = []
    for configuration, runs in by_configuration.items():
        seen = [
            (dimension_of[q], one.contaminated)
            for run in runs if run.mode == "COLLAB" and run.valid for q, one in run.scenarios.items()
        ]  # fmt: skip
        for dimension in tree:
            own = [contaminated for where, contaminated in seen if where == dimension]
            rows.append((configuration, dimension, sum(own), len(own), share(sum(own), len(own))))
    return Table.of("contaminated_dimensions", "configuration dimension contaminated instances share", rows)
