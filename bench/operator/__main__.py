"""`make bench-operator`: the operator on real servers and kwok nodes; a JSON file per run in docs/bench/operator, and the page.

Without options: the full sweep, then pairs of a smaller one with plain Jobs, then one a tenth as large, a kill, the latency.
`--draw` only draws.
"""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from bench.operator.burst import of_burst
from bench.operator.ends import Size
from bench.operator.measure import RUNS, Options, of_sweep
from bench.operator.page import PACE, RESULTS, ROOT, draw
from bench.operator.peers import of_script
from bench.run import machine

FULL, PAIR, SMALL = 19_998, 3_960, 1_980
PAIRS = 3
MEASURED = ("bench/operator", "crds", "operator", "realcli")
"""What a result depends on."""


def stamp() -> str:
    """Now, as a part of a file's name."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S")


SESSION = stamp()
"""This call."""


def code() -> str:
    """The last commit of what is measured, with "+" if it has been changed since."""
    commit, changed = (
        subprocess.run(["git", *arguments, "--", *MEASURED], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
        for arguments in (("log", "-1", "--format=%h"), ("status", "--porcelain"))
    )
    return commit + ("+" if changed else "")


def measured(run: Callable[[], dict[str, Any]], kind: str, pair: str | None = None) -> dict[str, Any]:
    """Measure and write the result down; a run that fails later loses nothing."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["make", "bench-operator", *([f"OPTIONS={shlex.join(sys.argv[1:])}"] if sys.argv[1:] else [])])
    known = {"kind": kind, "code": code(), "session": SESSION, "command": command, "machine": machine()}
    known |= {"pair": pair} if pair is not None else {}
    found = known | run()
    path = RESULTS / f"{stamp()}-{kind}-{found['what']}-{found['trials']}.json"
    path.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{path.name}: {json.dumps(short(found))}", flush=True)
    return found


def short(found: dict[str, Any]) -> dict[str, Any]:
    """What a person wants to see at once."""
    names = (
        "trials", "trialsPerMinute", "podsPerMinute", "completeSeconds", "operatorMiB", "operatorCPUPerTrialMs", "writesPerPod",
        "kill", "latency", "figures",
    )  # fmt: skip
    told = {name: found[name] for name in names if found.get(name) is not None}
    told |= {"share": found["use"]["share"]} if "use" in found else {}
    audit = found.get("audit", {})
    if "writes_per_trial" in audit:
        told |= {"writesPerTrial": round(audit["writes_per_trial"], 3), "readsPerTrial": audit["reads_per_trial"]}
        told |= {"findings": audit["findings"][:5]}
    return told


def main() -> None:
    """Measure, write, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, help=f"of the sweep (default {FULL})")
    parser.add_argument("--parallelism", type=int, default=1000)
    parser.add_argument("--pairs", type=int, help=f"rounds of sweep, plain Jobs and bare pods (default {PAIRS} of {PAIR} trials)")
    parser.add_argument("--no-floor", action="store_true", help="rounds without the bare pods")
    parser.add_argument("--only", choices=("sweep", "jobs", "bare"), help="no rounds: one run")
    parser.add_argument("--kill", type=float, help="kill -9 the operator when this share of the trials is sealed")
    parser.add_argument("--latency", type=float, metavar="TRIALS_PER_MINUTE", help="one run at this pace")
    parser.add_argument("--burst", action="store_true", help="20,000 updates of pods as fast as the API server takes them")
    parser.add_argument("--keep", type=Path, help="leave logs, audit and bucket of the (one) run in this empty folder")
    parser.add_argument("--draw", action="store_true", help="only write docs/benchmarks.md from the results there are")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    if options.draw:
        draw()
        return
    if options.latency:
        plan = paced(options.latency, options.trials or SMALL)
        found = [measured(partial(of_sweep, plan, options.keep), "latency")]
    elif options.only or options.kill is not None:
        plan = Options(Size.of(options.trials or FULL), options.parallelism, kill=options.kill)
        peer = options.only in ("jobs", "bare")
        run = partial(of_script, plan, options.only, options.keep) if peer else partial(of_sweep, plan, options.keep)
        found = [measured(run, "kill" if options.kill is not None else "single")]
    elif options.burst:
        found = [measured(of_burst, "burst")]
    elif options.pairs:
        found = pairs(options.pairs, options.trials or PAIR, options.parallelism, floor=not options.no_floor)
    else:
        found = everything(options.parallelism)
    draw()
    bad = [one for one in found if one.get("audit", {}).get("numberOfFindings")]
    if bad:
        sys.exit(f"the audit has findings: {', '.join(bad[0]['audit']['findings'][:5])}; see docs/bench/operator")


def pairs(number: int, trials: int, parallelism: int, *, floor: bool = True) -> list[dict[str, Any]]:
    """Sweep, plain Jobs and bare pods in turn, each time from another one on: who comes first has the machine as it is then."""
    plan = Options(Size.of(trials), parallelism)
    runs = [partial(of_sweep, plan), partial(of_script, plan, "jobs"), *([partial(of_script, plan, "bare")] if floor else [])]
    found = []
    for index in range(number):
        turn = index % len(runs)
        found += [measured(run, "pair", f"{SESSION}-{index}") for run in (*runs[turn:], *runs[:turn])]
    return found


def paced(per_minute: float, trials: int) -> Options:
    """A sweep whose window lets about so many trials through: pods that take ten seconds, as many at once as that needs."""
    runs = RUNS | {"work": 10.0, "verify": 10.0}
    about = runs["work"] + runs["verify"] + 5.0  # scheduled, started, told
    return Options(Size.of(trials), max(2, round(per_minute / 60 * about)), latency=True, runs=runs)


def everything(parallelism: int) -> list[dict[str, Any]]:
    """All that the page shows."""
    found = [measured(partial(of_sweep, Options(Size.of(FULL), parallelism)), "full")]
    found += pairs(PAIRS, PAIR, parallelism)
    found.append(measured(partial(of_sweep, Options(Size.of(SMALL), parallelism)), "single"))
    rate = max(one["trialsPerMinute"] for one in found if (one["kind"], one["what"]) == ("pair", "sweep"))
    found.append(measured(partial(of_sweep, Options(Size.of(SMALL), parallelism, kill=0.5)), "kill"))
    found.append(measured(partial(of_sweep, paced(PACE * rate, SMALL)), "latency"))
    found.append(measured(of_burst, "burst"))
    return found


if __name__ == "__main__":
    main()
