"""Who asks, and who gains (RealCLI 5.8); and how R and S go together (RQ1). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from realcli.scoring.aggregate import ConfigurationScores
from realcli.scoring.analyses.table import Table, share
from realcli.scoring.correlation import spearman
from realcli.scoring.levels import mean
from realcli.scoring.paired import flips
from realcli.scoring.runs import Run


def questions_asked(by_configuration: Mapping[str, list[Run]]) -> Table:
    """questions = hand-overs that ask / valid COLLAB runs where their number is known, beside the paired dR.

    A row per configuration (task `all`) and per task of it (measuring.md 4.3: those who gain are those who ask).
    """
    rows = []
    for configuration, runs in by_configuration.items():
        for task in ["all", *sorted({run.task for run in runs})]:
            own = [run for run in runs if task in ("all", run.task)]
            asked = [q for run in own if run.mode == "COLLAB" and run.valid and (q := _questions(run)) is not None]
            one = flips(own)
            rows.append((configuration, task, len(asked), mean(asked), one.pairs, one.delta_r))
    return Table.of("questions_asked", "configuration task runs questions pairs dR_paired", rows)


def questions_against_gain(by_configuration: Mapping[str, list[Run]]) -> Table:
    """rho = Pearson's correlation of the ranks of (mean questions per COLLAB run, paired dR): over configurations, and over the
    tasks of each, of those where both are known.

    None below three points, or without spread (RealCLI 5.8; measuring.md 4.3: questions asked against dR, per configuration and
    per task).
    """
    rows = questions_asked(by_configuration).dicts()
    found = [("configurations", [row for row in rows if row["task"] == "all"])]
    found += [(name, [row for row in rows if row["configuration"] == name and row["task"] != "all"]) for name in by_configuration]
    return Table.of("questions_against_gain", "over points rho", (_correlated(name, own) for name, own in found))


def _correlated(name: str, rows: Sequence[Mapping[str, object]]) -> tuple[str, int, float | None]:
    points = [(row["questions"], row["dR_paired"]) for row in rows]
    known = [(x, y) for x, y in points if isinstance(x, Fraction) and isinstance(y, Fraction)]
    rho = spearman([x for x, _ in known], [y for _, y in known])
    return name, len(known), None if rho is None else round(rho, 4)


def outcome_and_collaboration(by_configuration: Mapping[str, list[Run]]) -> Table:
    """Within tasks: does a run that collaborated without any failed check succeed more often (RQ1; measuring.md 4.3)?

    Valid COLLAB runs with an applicable check. kept: every applicable check passed; unknown: one is unscored, none failed.
    difference = sum_t (a n0 - b n1) / N  /  sum_t n1 n0 / N over tasks t (Mantel-Haenszel risk difference): a of n1 kept runs
    and b of n0 others succeed, N = n1 + n0. None where no task has both.
    """
    rows = []
    for configuration, runs in [*by_configuration.items(), ("all", [r for own in by_configuration.values() for r in own])]:
        strata: dict[str, list[int]] = {}
        unknown = 0
        for run in runs:
            if run.mode != "COLLAB" or not run.valid:
                continue
            kept = _kept(run)
            if kept == "unknown":
                unknown += 1
            elif kept != "nothing":
                cell = strata.setdefault(run.task, [0, 0, 0, 0])
                at = 0 if kept == "kept" else 2
                cell[at] += run.success
                cell[at + 1] += 1
        a, n1, b, n0 = (sum(cell[i] for cell in strata.values()) for i in range(4))
        rows.append((configuration, a, n1, share(a, n1), b, n0, share(b, n0), _mantel_haenszel(strata.values()), unknown))
    columns = "configuration kept_success kept kept_rate broken_success broken broken_rate difference_within_tasks unknown"
    return Table.of("outcome_and_collaboration", columns, rows)


def rank_relation(scores: Mapping[str, ConfigurationScores]) -> Table:
    """rho = Pearson's correlation of the ranks of (R_collab, S), and of (R_collab, S_rate), over configurations.

    Of those where both are known; None below three, or without spread. Its interval: `ranks.relation_interval` (RQ1;
    measuring.md 4.3, R and S).
    """
    rows = []
    for name in ("S", "S_rate"):
        points = [(one.r_collab, one.s if name == "S" else one.s_rate) for one in scores.values()]
        known = [(r, s) for r, s in points if r is not None and s is not None]
        rho = spearman([x for x, _ in known], [y for _, y in known])
        rows.append((name, len(known), None if rho is None else round(rho, 4)))
    return Table.of("rank_relation", "with configurations rho", rows)


def _questions(run: Run) -> int | None:
    return None if run.facts is None else run.facts.questions


def _kept(run: Run) -> str:
    verdicts = [v for seen in run.scenarios.values() if not seen.contaminated for v in seen.verdicts if v != "n/a"]
    if not verdicts:
        return "nothing"
    return "broken" if "0" in verdicts else "unknown" if "unscored" in verdicts else "kept"


def _mantel_haenszel(strata: Iterable[Sequence[int]]) -> Fraction | None:
    above = below = Fraction(0)
    for a, n1, b, n0 in strata:
        if n1 and n0:
            above += Fraction(a * n0 - b * n1, n1 + n0)
            below += Fraction(n1 * n0, n1 + n0)
    return above / below if below else None
