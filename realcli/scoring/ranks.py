"""How sure a ranking is, from the draws all configurations share (measuring.md 4.4, 10). numpy, floats."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from realcli.scoring.analyses.table import Table
from realcli.scoring.correlation import LEAST
from realcli.scoring.cubes import Draws, Floats
from realcli.scoring.intervals import DIGITS, interval


def rank_stability(drawn: Mapping[str, Draws], measure: str) -> Table:
    """Per configuration: P(rank 1) = draws in which it is first / draws (shared evenly between ties), its mean rank and a 95 %
    interval of the rank.

    Rank 1 is the greatest. Draws in which any configuration has no score are left out; `draws` says how many remain
    (measuring.md 4.4, 10).
    """
    names, ranks = _ranks(drawn, measure)
    rows = []
    for at, name in enumerate(names):
        own = ranks[:, at]
        limits = interval(own) if len(own) else None
        first = ranks == ranks.min(axis=1, keepdims=True)
        share = float((first[:, at] / first.sum(axis=1)).mean()) if len(own) else None
        middle = float(own.mean()) if len(own) else None
        ends = (limits.low, limits.high) if limits is not None else (None, None)
        rows.append((name, len(own), _rounded(share), _rounded(middle), *ends))
    return Table.of(f"rank_{measure}", "configuration draws P_rank_1 mean_rank rank_low rank_high", rows)


def pairwise(drawn: Mapping[str, Draws], measure: str) -> Table:
    """P(a > b) = (draws with a > b + ties / 2) / draws in which both have a score, for every ordered pair.

    measuring.md 4.4, 10.
    """
    rows = []
    for a, left in drawn.items():
        for b, right in drawn.items():
            if a != b:
                difference = left.scores[measure] - right.scores[measure]
                known = difference[~np.isnan(difference)]
                chance = float(((known > 0) + (known == 0) / 2).mean()) if len(known) else None
                rows.append((a, b, len(known), _rounded(chance)))
    return Table.of(f"pairwise_{measure}", "a b draws P_a_above_b", rows)


def relation_interval(drawn: Mapping[str, Draws], left: str = "R_collab", right: str = "S_rate") -> Table:
    """The 95 % interval, over the draws, of rho = Pearson's correlation of the ranks of two measures over configurations.

    RQ1; measuring.md 4.3 (R and S: Spearman with bootstrap interval), 4.4, 2.
    """
    names, a = _ranks(drawn, left, right)
    _, b = _ranks(drawn, right, left)
    if not a.size or len(names) < LEAST:
        return Table.of("relation_interval", "of with configurations rho_low rho_high", [(left, right, len(names), None, None)])
    x, y = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    below = np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    rho = np.full(len(a), np.nan)
    np.divide((x * y).sum(axis=1), below, out=rho, where=below > 0)
    found = interval(rho)
    ends = (_rounded(found.low), _rounded(found.high)) if found is not None else (None, None)
    return Table.of("relation_interval", "of with configurations rho_low rho_high", [(left, right, len(names), *ends)])


def _ranks(drawn: Mapping[str, Draws], measure: str, also: str | None = None) -> tuple[list[str], Floats]:
    """Configurations that have the measure in some draw, and the ranks (draw x configuration) of draws in which all have it."""
    columns = {name: own.scores[measure] for name, own in drawn.items()}
    others = {name: own.scores[also or measure] for name, own in drawn.items()}
    names = [name for name in columns if not np.isnan(columns[name]).all() and not np.isnan(others[name]).all()]
    if not names:
        return [], np.zeros((0, 0))
    values = np.stack([columns[name] for name in names], axis=1)
    known = ~np.isnan(values).any(axis=1) & ~np.isnan(np.stack([others[name] for name in names], axis=1)).any(axis=1)
    kept = values[known]
    above = (kept[:, None, :] > kept[:, :, None]).sum(axis=2)
    equal = (kept[:, None, :] == kept[:, :, None]).sum(axis=2)
    return names, above + (equal + 1) / 2


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS) + 0.0
