"""`make bench-operator`: the operator on real servers and kwok nodes; a JSON file per run in docs/bench/operator, and the page.

Without options: the full sweep, then pairs of a smaller one with plain Jobs, then a kill, then the latency. `--draw` only draws.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.operator.ends import Size
from bench.operator.measure import RUNS, Options, of_jobs, of_sweep
from bench.operator.page import RESULTS, draw
from bench.run import machine

FULL, PAIR, SMALL = 19_998, 1_980, 1_980
PAIRS = 3


def keep(found: dict[str, Any], kind: str) -> dict[str, Any]:
    """Write a result down; a run that fails later loses nothing."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    found = {"kind": kind, "machine": machine(), **found}
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    path = RESULTS / f"{stamp}-{kind}-{found['what']}-{found['trials']}.json"
    path.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{path.name}: {json.dumps(short(found))}", flush=True)
    return found


def short(found: dict[str, Any]) -> dict[str, Any]:
    """What a person wants to see at once."""
    names = (
        "trials", "trialsPerMinute", "podsPerMinute", "completeSeconds", "operatorMiB", "operatorCPUPerTrialMs", "writesPerJob",
        "kill", "latency",
    )  # fmt: skip
    told = {name: found[name] for name in names if found.get(name) is not None} | {"share": found["use"]["share"]}
    audit = found["audit"]
    if "writes_per_trial" in audit:
        told |= {"writesPerTrial": round(audit["writes_per_trial"], 3), "readsPerTrial": audit["reads_per_trial"]}
        told |= {"findings": audit["findings"][:5]}
    return told


def main() -> None:
    """Measure, write, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, help=f"of the sweep (default {FULL})")
    parser.add_argument("--parallelism", type=int, default=1000)
    parser.add_argument("--pairs", type=int, help=f"runs of sweep and plain Jobs in turn (default {PAIRS} of {PAIR} trials)")
    parser.add_argument("--only", choices=("sweep", "jobs"), help="no pairs: one run")
    parser.add_argument("--kill", type=float, help="kill -9 the operator when this share of the trials is sealed")
    parser.add_argument("--latency", type=float, metavar="TRIALS_PER_MINUTE", help="one run at this pace")
    parser.add_argument("--keep", type=Path, help="leave logs, audit and bucket of the (one) run in this empty folder")
    parser.add_argument("--draw", action="store_true", help="only write docs/benchmarks.md from the results there are")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    if options.draw:
        draw()
        return
    if options.latency:
        keep(of_sweep(paced(options.latency, options.trials or SMALL), options.keep), "latency")
    elif options.only or options.kill is not None:
        plan = Options(Size.of(options.trials or FULL), options.parallelism, kill=options.kill)
        found = of_jobs(plan, options.keep) if options.only == "jobs" else of_sweep(plan, options.keep)
        keep(found, "kill" if options.kill is not None else "single")
    elif options.pairs:
        pairs(options.pairs, options.trials or PAIR, options.parallelism)
    else:
        everything(options.parallelism)
    draw()


def pairs(number: int, trials: int, parallelism: int) -> float:
    """Sweep and plain Jobs in turn; the sweep's trials per minute, the slowest of them."""
    plan = Options(Size.of(trials), parallelism)
    rates: list[float] = []
    for _ in range(number):
        rates.append(keep(of_sweep(plan), "pair")["trialsPerMinute"])
        keep(of_jobs(plan), "pair")
    return min(rates)


def paced(per_minute: float, trials: int) -> Options:
    """A sweep whose window lets about so many trials through: pods that take ten seconds, as many at once as that needs."""
    runs = RUNS | {"work": 10.0, "verify": 10.0}
    about = runs["work"] + runs["verify"] + 5.0  # scheduled, started, told
    return Options(Size.of(trials), max(2, round(per_minute / 60 * about)), latency=True, runs=runs)


def everything(parallelism: int) -> None:
    """All that the page shows."""
    found = keep(of_sweep(Options(Size.of(FULL), parallelism)), "full")
    rate = pairs(PAIRS, PAIR, parallelism)
    keep(of_sweep(Options(Size.of(PAIR), parallelism, kill=0.5)), "kill")
    keep(of_sweep(paced(0.3 * rate, SMALL)), "latency")
    if found["audit"]["numberOfFindings"]:
        sys.exit("the audit of the full sweep has findings; see its file")


if __name__ == "__main__":
    main()
