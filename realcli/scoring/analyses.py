"""Further readings of the same runs (measuring.md 4.3). Each takes runs and gives a count or a share. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from realcli.scoring.levels import Counts, level2
from realcli.scoring.runs import Run

NEAR = Fraction(9, 10)


@dataclass(frozen=True, slots=True)
class Share:
    """`hits` of `of`."""

    hits: int
    of: int


def success_with_violation(runs: Iterable[Run]) -> Share:
    """Of valid COLLAB runs with success and at least one applicable check: those with any failed check (paper: 91.0 %).

    Contaminated instances count on neither side.
    """
    hits = total = 0
    for run in runs:
        if run.mode != "COLLAB" or not run.valid or not run.success:
            continue
        verdicts = [v for seen in run.scenarios.values() if not seen.contaminated for v in seen.verdicts if v != "n/a"]
        total += bool(verdicts)
        hits += "0" in verdicts
    return Share(hits, total)


def near_misses(runs: Iterable[Run], least: Fraction = NEAR) -> Share:
    """Of failed valid EXEC runs with a check summary: those that passed at least `least` of the checks (paper: 45.7 %)."""
    summaries = [run.checks for run in runs if run.mode == "EXEC" and run.valid and not run.success and run.checks is not None]
    rated = [(passed, total) for passed, total in summaries if total > 0]
    return Share(sum(Fraction(passed, total) >= least for passed, total in rated), len(rated))


def pooled_counts(runs: Iterable[Run]) -> dict[str, Counts]:
    """Strict pass counts per scenario over all valid COLLAB runs, before L2 (choice 14)."""
    return level2(pair for run in runs if run.mode == "COLLAB" and run.valid for pair in run.scenarios.items())
