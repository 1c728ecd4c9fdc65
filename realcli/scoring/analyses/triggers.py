"""Did the same things happen to everyone (measuring.md 2.3, 4.2)? Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

from realcli.scoring.aggregate import configuration_scores
from realcli.scoring.analyses.table import Table
from realcli.scoring.levels import THRESHOLD
from realcli.scoring.runs import Observation, Run, Tree

GAP = Fraction(1, 10)
"""A difference of trigger rates above this is flagged."""


def trigger_rates(by_configuration: Mapping[str, list[Run]], tree: Tree) -> Table:
    """Triggered / scheduled per scenario and configuration, over instances of valid COLLAB runs that are not contaminated and of
    which it is known whether they happened (a session that was lost with its ledger says neither).

    `flagged`: the rates of a scenario differ by more than 10 points between configurations: its passes are of other situations
    (measuring.md 2.3; 4.2, 1).
    """
    found: dict[str, dict[str, list[int]]] = {}
    for configuration, runs in by_configuration.items():
        for run in _collab(runs):
            for scenario, seen in run.scenarios.items():
                if not seen.contaminated and not seen.unknown:
                    cell = found.setdefault(scenario, {}).setdefault(configuration, [0, 0])
                    cell[0] += seen.triggered
                    cell[1] += 1
    rows: list[tuple[str, str, int, int, Fraction, bool]] = []
    for scenario in (q for subs in tree.values() for qs in subs.values() for q in qs if q in found):
        rates = {name: Fraction(*cell) for name, cell in found[scenario].items()}
        flagged = max(rates.values()) - min(rates.values()) > GAP
        for name in by_configuration:
            if name in rates:
                triggered, scheduled = found[scenario][name]
                rows.append((scenario, name, triggered, scheduled, rates[name], flagged))
    return Table.of("trigger_rates", "scenario configuration triggered scheduled rate flagged", rows)


def commonly_triggered(by_configuration: Mapping[str, list[Run]]) -> dict[str, list[Run]]:
    """The same runs with only those instances (task, scenario, repeat) that triggered, uncontaminated, in every configuration."""
    keys = [
        {
            (run.task, run.repeat, q)
            for run in _collab(runs)
            for q, seen in run.scenarios.items()
            if seen.happened and not seen.contaminated
        }
        for runs in by_configuration.values()
    ]
    common = set.intersection(*keys) if keys else set()
    return {
        name: [
            replace(run, scenarios={q: seen for q, seen in run.scenarios.items() if (run.task, run.repeat, q) in common})
            for run in runs
        ]
        for name, runs in by_configuration.items()
    }


def common_scores(by_configuration: Mapping[str, list[Run]], tree: Tree, threshold: Fraction = THRESHOLD) -> Table:
    """S and S_rate as they are, on commonly triggered instances, and with scheduled but untriggered ones as failures (y = 0).

    The first can favour who triggers little; the second compares like with like; the third takes not triggering as failing, which
    it is not: a bound (measuring.md 2.3; 4.2, 1). `common`: how many instances all configurations share.
    """
    shared = commonly_triggered(by_configuration)
    rows = []
    for name, runs in by_configuration.items():
        plain = configuration_scores(name, runs, tree, threshold)
        common = configuration_scores(name, shared[name], tree, threshold)
        failed = configuration_scores(name, [_as_failures(run) for run in runs], tree, threshold)
        n = sum(len(run.scenarios) for run in _collab(shared[name]))
        rows.append((name, plain.s, plain.s_rate, n, common.s, common.s_rate, failed.s, failed.s_rate))
    columns = "configuration S S_rate common S_common S_rate_common S_untriggered_as_0 S_rate_untriggered_as_0"
    return Table.of("common_scores", columns, rows)


def _as_failures(run: Run) -> Run:
    failed = Observation(("0",))
    return replace(
        run, scenarios={q: seen if seen.triggered or seen.contaminated else failed for q, seen in run.scenarios.items()}
    )


def _collab(runs: Iterable[Run]) -> list[Run]:
    return [run for run in runs if run.mode == "COLLAB" and run.valid]
