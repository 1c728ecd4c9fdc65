"""The section of docs/benchmarks.md about the operator, drawn from the raw results in docs/bench/operator/.

`bench/run.py` takes the section over when it writes the page, and `draw` leaves what is above it alone.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
RESULTS = ROOT / "docs" / "bench" / "operator"
TITLE = "## operator"
Json = dict[str, Any]


def results() -> list[Json]:
    """All raw results, oldest first."""
    return [json.loads(path.read_text()) | {"file": path.name} for path in sorted(RESULTS.glob("*.json"))]


def draw() -> None:
    """Replace the section in the page; the rest stays."""
    before = PAGE.read_text().partition(f"\n{TITLE}\n")[0].rstrip("\n") if PAGE.exists() else "# Benchmarks"
    PAGE.write_text(before + "\n" + section(results()))


def section(found: Sequence[Json]) -> str:
    """The section, "" without results."""
    if not found:
        return ""
    where = found[-1]["machine"]
    told = [where["cpu"], f"{where['cores']} cores", where["memory"], f"Linux {where['kernel']}", f"Python {where['python']}"]
    dates = sorted({one["date"][:10] for one in found})
    parts = [
        f"\n{TITLE}\n",
        "Written by `make bench-operator` from the raw results in [docs/bench/operator](bench/operator); what is measured, and "
        "how, is in [design 043](design/043-scale.md). Real etcd, kube-apiserver, kube-controller-manager and kube-scheduler as "
        "processes, kwok nodes, the operator as a process. **All of them share the machine, and the API server, kwok and etcd "
        "take most of it: their speed is the ceiling of these figures, not the operator's.**\n",
        f"{dates[0] if len(dates) == 1 else f'{dates[0]} to {dates[-1]}'}: {', '.join(told)}.\n",
    ]
    parts += _sweeps([one for one in found if one["what"] == "sweep"])
    parts += _pairs([one for one in found if one["kind"] == "pair"])
    parts += _limits(found[-1])
    return "\n".join(parts)


def _sweeps(found: Sequence[Json]) -> list[str]:
    rows = [
        "### Sweeps\n",
        "| run | trials | audit | trials/min | judged and reported after | operator: CPU per trial | memory | writes per trial "
        "| reads per trial | share of all CPU | other work on the machine |",
        "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for one in found:
        audit = one["audit"]
        number = audit["numberOfFindings"]
        words = "nothing lost, nothing twice" if not number else f"{number} findings"
        rows.append(
            f"| {one['kind']} {one['date'][:16].replace('T', ' ')} | {one['trials']:,} | {words} | {one['trialsPerMinute']:,.0f} "
            f"| {one['completeSeconds']:,.0f} s | {one['operatorCPUPerTrialMs']:.1f} ms | {one['operatorMiB']:.0f} MiB "
            f"| {audit['writes_per_trial']:.2f} ({audit['all_writes_per_trial']:.2f} with Jobs and the sweep's) "
            f"| {audit['reads_per_trial']:.2f} | {100 * one['use']['share']['operator']:.0f} % | {_others(one)} |"
        )
    rows.append("")
    for one in found:
        if one.get("kill"):
            later = one["kill"]["firstWriteAfterSeconds"]
            rows.append(f"* Killed with -9 in the middle of {one['trials']:,} trials: first write {later} s after the new start.")
        if one.get("latency"):
            late = one["latency"]
            rows.append(
                f"* At {one['trialsPerMinute']:.0f} trials/min: from the end of a pod until its Trial's status says so, p50 "
                f"{late['median']} s, p90 {late['p90']} s, p99 {late['p99']} s, max {late['max']} s ({late['pods']:,} pods)."
            )
    return [*rows, ""]


def _pairs(found: Sequence[Json]) -> list[str]:
    sweeps = [one for one in found if one["what"] == "sweep"]
    jobs = [one for one in found if one["what"] == "jobs"]
    pairs = list(zip(sweeps, jobs, strict=False))
    if not pairs:
        return []
    ratios = [ours["podsPerMinute"] / theirs["podsPerMinute"] for ours, theirs in pairs]
    rows = [
        "### Beside plain Jobs\n",
        "The same pods as plain Jobs (`bench/operator/jobs.py`, 20 lines, two Jobs per trial, same window), in turn with sweeps "
        "on the same machine. The sweep judges meanwhile: its pods are counted without and with those of its judge Jobs that "
        "ended before its last trial. The CPU is that of all processes of the benchmark, per pod: what other work on the machine "
        "does to the pace, it does hardly to that.\n",
        "| trials | window | sweep: pods/min | with judges | Jobs: pods/min | ratio | with judges | writes per pod: sweep | Jobs "
        "| CPU per pod: sweep | Jobs | ratio |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for (ours, theirs), ratio in zip(pairs, ratios, strict=True):
        writes = sum(ours["audit"]["writes_of_all"].values()) / (2 * ours["trials"] + ours["groups"])
        with_judges = ours["allPodsPerMinute"] / theirs["podsPerMinute"]
        rows.append(
            f"| {ours['trials']:,} | {ours['parallelism']:,} | {ours['podsPerMinute']:,.0f} | {ours['allPodsPerMinute']:,.0f} "
            f"| {theirs['podsPerMinute']:,.0f} | {ratio:.2f} | {with_judges:.2f} | {writes:.1f} | {theirs['writesPerJob']:.1f} "
            f"| {ours['cpuPerPodMs']:.0f} ms | {theirs['cpuPerPodMs']:.0f} ms | {_cpu_ratio(ours, theirs):.2f} |"
        )
    rows.append(
        f"\nRatio of pods per minute: {_spread(ratios)}; of CPU per pod: {_spread([_cpu_ratio(*pair) for pair in pairs])}.\n"
    )
    names = list(dict.fromkeys(name for pair in pairs for one in pair for name in one["use"]["share"]))
    rows += ["| share of the CPU | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for word, ones in (("sweeps", sweeps), ("plain Jobs", jobs)):
        shares = [statistics.median(one["use"]["share"].get(name, 0.0) for one in ones) for name in names]
        rows.append(f"| {word} | " + " | ".join(f"{100 * share:.0f} %" if share else "" for share in shares) + " |")
    return [*rows, ""]


def _cpu_ratio(ours: Json, theirs: Json) -> float:
    return float(theirs["cpuPerPodMs"] / ours["cpuPerPodMs"])


def _spread(values: Sequence[float]) -> str:
    middle, number = statistics.median(values), len(values)
    return f"median **{middle:.2f}**, {min(values):.2f} to {max(values):.2f} in {number} pair{'s' if number > 1 else ''}"


def _limits(one: Json) -> list[str]:
    limits = "; ".join(f"{name}: {', '.join(f'{k} {v:g}' for k, v in values.items())}" for name, values in one["limits"].items())
    runs = ", ".join(f"{role} {value:g} s" for role, value in one["podSeconds"].items())
    return [
        f"Client limits, raised on both sides: {limits}. Pods run {runs} (half to one and a half of it); {one['nodes']} nodes.\n"
    ]


def _others(one: Json) -> str:
    """CPU that went to what is not of the benchmark, as a share of what the machine did."""
    used = sum(one["use"]["cpuSeconds"].values())
    others = max(0.0, one["use"]["othersSeconds"])
    return f"{100 * others / (used + others):.0f} %"
