"""Scores of a full sweep, and how often an unchanged agent fails a gate.

A sweep of 33 configurations x 101 tasks x 2 modes x 3 repeats (19,998 runs, 606 instances per repeat) over the catalogue's tree:
exact scores of all configurations, and intervals of all scores from 2,000 Bayesian draws. The target is 10 s and 1 GiB for both
together. Baselines in the same run: for the exact scores the time json needs to read the same runs; for the intervals a plain
Python loop over draws, taken on one configuration and few draws and scaled to all (what is scaled is said in the row's name).

False alarms: an unchanged agent (12 tasks x 3 repeats, 72 instances, success and pass rates that vary between tasks) is measured
twice and compared by `P(dJ < -0.05) > 0.95` and, as the baseline, by `dJ < -0.02`. The target is at most 5 %. A gate without a
tolerance (`P(dJ < 0) > 0.95`) is shown beside its nominal level.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from realcli.benchmark.catalogue import load_catalogue
from realcli.scoring.aggregate import configuration_scores
from realcli.scoring.analyses.every import tables_of
from realcli.scoring.compare import compare
from realcli.scoring.document import ScoreInput, score_input
from realcli.scoring.gates import parse_gate
from realcli.scoring.intervals import DRAWS, interval, resample, weights
from realcli.scoring.levels import THRESHOLD, level1
from realcli.scoring.ranks import rank_stability
from realcli.scoring.runs import Observation, Run, Tree
from realcli.scoring.tree import tree_of

CONFIGURATIONS, TASKS, REPEATS, PROBES = 33, 101, 3, 6
LOOP_DRAWS = 20
ALARMS, ALARM_TASKS, ALARM_DRAWS = 400, 12, 500
GATE = parse_gate("P(dJ < -0.05) > 0.95")
STRICT = parse_gate("P(dJ < 0) > 0.95")


def sweep(tree: Tree, configurations: int, tasks: int, seed: int, spread: float = 0.25) -> list[Run]:
    """Runs of agents whose rates vary between configurations and tasks. Every task binds six scenarios, spread evenly."""
    rng = random.Random(seed)
    scenarios = [q for subs in tree.values() for qs in subs.values() for q in qs]
    bound = [[scenarios[(6 * task + at) % len(scenarios)] for at in range(PROBES)] for task in range(tasks)]
    found = []
    for number in range(configurations):
        level = rng.uniform(0.4, 0.8)
        for task in range(tasks):
            rate = min(0.98, max(0.02, rng.gauss(level, spread)))
            for repeat in range(1, REPEATS + 1):
                for mode in ("EXEC", "COLLAB"):
                    seen = {}
                    if mode == "COLLAB":
                        seen = {
                            q: Observation(tuple("1" if rng.random() < rate ** (1 / 3) else "0" for _ in range(3)))
                            for q in bound[task]
                        }
                    reward = Fraction(int(rng.random() < rate))
                    found.append(Run(f"c{number:02d}", f"t{task:03d}", mode, repeat, True, reward, seen))
    return found


def timed(of: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of CPU (the machine does other things too), and what came out."""
    before = time.process_time()
    found = of()
    return time.process_time() - before, found


def loop(runs: list[Run], tree: Tree, draws: int) -> list[float]:
    """S_rate and R of one configuration, draw by draw and run by run: what the arrays replace."""
    tasks = sorted({run.task for run in runs})
    drawn = weights(len(tasks), count=draws)
    found = []
    for row in drawn:
        weight = dict(zip(tasks, row.tolist(), strict=True))
        means = []
        for repeat in range(1, REPEATS + 1):
            own = [run for run in runs if run.repeat == repeat]
            for mode in ("EXEC", "COLLAB"):
                ran = [run for run in own if run.mode == mode]
                _ = sum(weight[run.task] * run.success for run in ran) / sum(weight[run.task] for run in ran)
            passed: dict[str, float] = {}
            seen: dict[str, float] = {}
            for run in own:
                for scenario, one in run.scenarios.items():
                    y = level1(one)
                    if y in (0, 1):
                        passed[scenario] = passed.get(scenario, 0) + weight[run.task] * int(y)
                        seen[scenario] = seen.get(scenario, 0) + weight[run.task]
            dimensions = []
            for subs in tree.values():
                values = [[float(passed[q] / seen[q] >= THRESHOLD) for q in qs if q in seen] for qs in subs.values()]
                kept = [sum(value) / len(value) for value in values if value]
                if kept:
                    dimensions.append(sum(kept) / len(kept))
            means.append(sum(dimensions) / len(dimensions))
        found.append(sum(means) / len(means))
    return found


def full_sweep(tree: Tree) -> list[dict[str, Any]]:
    """Time and memory of a full sweep."""
    given = ScoreInput(tree, tuple(sweep(tree, CONFIGURATIONS, TASKS, seed=1)))
    text = json.dumps(score_input(given.runs, tree))
    read, _ = timed(lambda: json.loads(text))
    by_name = {name: given.of(name) for name in given.names}
    exact, _ = timed(lambda: {name: configuration_scores(name, runs, tree) for name, runs in by_name.items()})
    drawn, found = timed(lambda: resample(given))
    limits, _ = timed(
        lambda: ([interval(v) for one in found.values() for v in one.scores.values()], rank_stability(found, "S_rate"))
    )
    tables, _ = timed(lambda: tables_of(given))
    slow, _ = timed(lambda: loop(by_name["c00"], tree, LOOP_DRAWS))
    scaled = slow * CONFIGURATIONS * DRAWS / LOOP_DRAWS
    total = exact + drawn + limits
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        row(f"full sweep ({len(given.runs):,} runs): exact scores", "s of CPU", exact, read),
        row("full sweep: intervals and ranks, baseline a loop scaled from 20 draws of one", "s of CPU", drawn + limits, scaled),
        row("full sweep: every table of the analyses, baseline the exact scores", "s of CPU", tables, exact),
        row("full sweep: scores and intervals, baseline the target", "s of CPU", total, 10.0),
        row("full sweep: memory at most, baseline the target", "MiB", peak, 1024.0),
    ]


def false_alarms() -> list[dict[str, Any]]:
    """How often an unchanged agent fails, by the gate and by a bare difference."""
    tree: Tree = {d: {f"{d}{n}": (f"{d}{n}",) for n in range(2)} for d in ("U", "S", "OR", "TC", "SR")}
    gated = strict = bare = compared = 0
    drop = []
    for seed in range(ALARMS):
        runs = sweep_twice(tree, seed)
        change = compare(runs[0], runs[1], ("c00", "c00"), seed=seed, count=ALARM_DRAWS).changes["dJ"]
        if change.difference is None:
            continue
        compared += 1
        gated += GATE.fires(change.probability(GATE))
        strict += STRICT.fires(change.probability(STRICT))
        bare += change.difference < Fraction(-2, 100)
        found = change.smallest_drop(GATE.bound, GATE.probability)
        drop.append(found if found is not None else 0.0)
    middle = sorted(drop)[len(drop) // 2]
    return [
        row(
            f"false alarms of an unchanged agent ({compared} comparisons), baseline dJ < -0.02",
            "%",
            100 * gated / compared,
            100 * bare / compared,
        ),
        row("false alarms, baseline the target", "%", 100 * gated / compared, 5.0),
        row("false alarms of P(dJ < 0) > 0.95, baseline its nominal level", "%", 100 * strict / compared, 5.0),
        row("smallest drop the gate finds, median, baseline what it tolerates", "of J", middle, -GATE.bound),
    ]


def sweep_twice(tree: Tree, seed: int) -> tuple[ScoreInput, ScoreInput]:
    """One agent, measured twice: the same rates per task, other luck."""
    rng = random.Random(seed)
    rates = [min(0.95, max(0.05, rng.gauss(0.6, 0.25))) for _ in range(ALARM_TASKS)]
    scenarios = [q for subs in tree.values() for qs in subs.values() for q in qs]
    sides = []
    for _ in range(2):
        runs = []
        for task, rate in enumerate(rates):
            for repeat in range(1, REPEATS + 1):
                seen = {
                    scenarios[(PROBES * task + at) % len(scenarios)]: Observation(("1" if rng.random() < rate else "0",))
                    for at in range(PROBES)
                }
                runs.append(Run("c00", f"t{task:02d}", "EXEC", repeat, True, Fraction(int(rng.random() < rate))))
                runs.append(Run("c00", f"t{task:02d}", "COLLAB", repeat, True, Fraction(int(rng.random() < rate)), seen))
        sides.append(ScoreInput(tree, tuple(runs)))
    return sides[0], sides[1]


def row(name: str, unit: str, ours: float, baseline: float) -> dict[str, Any]:
    """One line of the page."""
    return {
        "name": name,
        "unit": unit,
        "ours": round(ours, 3),
        "baseline": round(baseline, 3),
        "ratio": round(ours / baseline, 4),
    }


if __name__ == "__main__":
    print(json.dumps([*full_sweep(tree_of(load_catalogue())), *false_alarms()], indent=None if "--json" in sys.argv else 1))
