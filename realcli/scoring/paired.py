"""EXEC against COLLAB on the same (task, repeat): flips, the paired difference, churn (measuring.md 4.1, 4.3). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from realcli.scoring.levels import mean
from realcli.scoring.runs import Run


@dataclass(frozen=True, slots=True)
class Flips:
    """Of the complete pairs (both modes of a (task, repeat) valid): how many changed, and which way."""

    pairs: int
    fail_to_pass: int
    pass_to_fail: int

    @property
    def delta_r(self) -> Fraction | None:
        """The paired difference R_collab - R_exec: the one identity that holds on complete pairs, and only there."""
        return Fraction(self.fail_to_pass - self.pass_to_fail, self.pairs) if self.pairs else None

    @property
    def changed(self) -> Fraction | None:
        """Share of pairs that changed."""
        return Fraction(self.fail_to_pass + self.pass_to_fail, self.pairs) if self.pairs else None


def complete_pairs(runs: Iterable[Run]) -> list[tuple[Run, Run]]:
    """(EXEC, COLLAB) of one configuration where both are valid, by (task, repeat)."""
    by_key = {(run.task, run.repeat, run.mode): run for run in runs if run.valid}
    keys = sorted({key[:2] for key in by_key})
    found = ((by_key.get((*key, "EXEC")), by_key.get((*key, "COLLAB"))) for key in keys)
    return [(left, right) for left, right in found if left is not None and right is not None]


def flips(runs: Iterable[Run]) -> Flips:
    """Flips of one configuration."""
    pairs = complete_pairs(runs)
    up = sum(not e.success and c.success for e, c in pairs)
    down = sum(e.success and not c.success for e, c in pairs)
    return Flips(len(pairs), up, down)


def churn(runs: Iterable[Run]) -> Fraction | None:
    """Share of repeat pairs of one task, in one mode, that differ: what index pairing changes without any effect.

    The runs are those of one configuration and mode. None without a task that has two valid repeats.
    """
    by_task: dict[str, list[Run]] = {}
    for run in runs:
        if run.valid:
            by_task.setdefault(run.task, []).append(run)
    return mean(int(a.success != b.success) for group in by_task.values() for a, b in combinations(group, 2))


def excess_churn(runs: Iterable[Run]) -> Fraction | None:
    """changed - mean(churn within EXEC, churn within COLLAB)."""
    found = list(runs)
    inside = [churn(run for run in found if run.mode == mode) for mode in ("EXEC", "COLLAB")]
    changed = flips(found).changed
    both = [value for value in inside if value is not None]
    base = mean(both)
    return None if changed is None or base is None or len(both) < 2 else changed - base
