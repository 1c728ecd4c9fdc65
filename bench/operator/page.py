"""The section of docs/benchmarks.md about the operator, drawn from the raw results in docs/bench/operator/.

`bench/run.py` takes the section over when it writes the page, and `draw` leaves what is above it alone. Of runs that measure the
same thing the newest is shown: a page that mixes them would be of no version of the operator.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
RESULTS = ROOT / "docs" / "bench" / "operator"
TITLE = "## operator"
FREE = frozenset({"full", "pair", "single"})
"""Kinds of runs that nothing holds back and nobody disturbs."""
RATIO, WRITES, READS, MEMORY, P99, AGAIN = 1.5, 8.0, 0.0, 300.0, 2.0, 30.0
"""What was promised: pods per minute beside plain Jobs; of a trial; of a trial; MiB; seconds at `PACE` of saturation; seconds."""
PACE, LEAST_PACE = 0.3, 0.25
LINEAR = 1.25
"""CPU per trial of the largest sweep, in terms of one a tenth as large, that still passes for the same."""
Json = dict[str, Any]
Pair = dict[str, Json]
"""What is measured → its result."""


def results() -> list[Json]:
    """All raw results, oldest first, but for those that do not say of which code they are."""
    found = [json.loads(path.read_text()) | {"file": path.name} for path in sorted(RESULTS.glob("*.json"))]
    for one in found:
        if "code" not in one:
            print(f"docs/bench/operator/{one['file']} does not say what it has measured; it is not shown", file=sys.stderr)
    return [one for one in found if "code" in one]


def draw() -> None:
    """Replace the section in the page; the rest stays."""
    before = PAGE.read_text().partition(f"\n{TITLE}\n")[0].rstrip("\n") if PAGE.exists() else "# Benchmarks"
    PAGE.write_text(before + "\n" + section(results()))


def newest(found: Iterable[Json]) -> list[Json]:
    """Of runs of the same kind and size the last; of pairs those of the last call that has made whole ones."""
    last: dict[tuple[Any, ...], list[Json]] = {}
    pairs: dict[str, dict[str, list[Json]]] = {}
    for one in found:
        if one["kind"] == "pair":
            pairs.setdefault(one["session"], {}).setdefault(one["pair"], []).append(one)
        else:
            last[one["kind"], one["what"], one["trials"], one["parallelism"]] = [one]
    for session in pairs.values():
        whole = [one for pair in session.values() if {"sweep", "jobs"} <= {one["what"] for one in pair} for one in pair]
        if whole:
            last[("pair",)] = whole
    return sorted((one for ones in last.values() for one in ones), key=lambda one: str(one["file"]))


def section(found: Sequence[Json]) -> str:
    """The section, "" without results."""
    found = newest(found)
    if not found:
        return ""
    sweeps = [one for one in found if one["what"] == "sweep"]
    pairs = list(_pairs(found))
    parts = [
        f"\n{TITLE}\n",
        "Written by `make bench-operator` from the raw results in [docs/bench/operator](bench/operator); what is measured, and "
        "how, is in [design 043](design/043-scale.md). Real etcd, kube-apiserver, kube-controller-manager and kube-scheduler as "
        "processes, kwok nodes, the operator as a process. **All of them share the machine, and the API server, kwok and etcd "
        "take most of it: their speed is the ceiling of these figures, not the operator's.**\n",
        *_machines(found),
        *_promised(sweeps, pairs, next((one for one in found if one["what"] == "burst"), None)),
        *_sweeps(sweeps),
        *_beside_jobs(pairs),
        *_limits(found),
    ]
    return "\n".join(parts)


def _machines(found: Sequence[Json]) -> Iterator[str]:
    dates: dict[str, set[str]] = {}
    for one in found:
        where = one["machine"]
        told = f"{where['cpu']}, {where['cores']} cores, {where['memory']}, Linux {where['kernel']}, Python {where['python']}"
        dates.setdefault(told, set()).add(one["date"][:10])
    for told, days in dates.items():
        yield f"{' to '.join(dict.fromkeys((min(days), max(days))))}: {told}.\n"


def _promised(sweeps: Sequence[Json], pairs: Sequence[Pair], burst: Json | None) -> list[str]:
    """What was promised, what came of it. What was not measured is no promise kept."""
    calm = [one for one in sweeps if not one.get("kill")]
    largest = max(sweeps, key=lambda one: one["trials"], default=None)
    rows: list[tuple[str, str, bool | None]] = [_whole(largest), _ratio(pairs)]
    for name, key, most in (("writes per trial", "writes_per_trial", WRITES), ("reads per trial", "reads_per_trial", READS)):
        values = [one["audit"][key] for one in calm]
        rows.append(_most(f"{name}: at most {most:g}, nothing going wrong", values, most, "{:.2f}"))
    memory = [one["operatorMiB"] for one in sweeps]
    rows.append(_most(f"memory of the operator: at most {MEMORY:g} MiB", memory, MEMORY, "{:.1f} MiB"))
    rows += [_linear(sweeps), _latency(sweeps)]
    again = [one["kill"]["firstWriteAfterSeconds"] for one in sweeps if one.get("kill")]
    rows.append(_most(f"killed with -9 in the middle: decides again in {AGAIN:g} s", again, AGAIN, "{:.1f} s"))
    rows.append(_burst(burst))
    words = {True: "yes", False: "**no**", None: "not measured"}
    return ["| promised | measured | kept |", "|---|---|---|", *(f"| {a} | {b} | {words[kept]} |" for a, b, kept in rows), ""]


def _most(what: str, values: Sequence[float], most: float, shown: str) -> tuple[str, str, bool | None]:
    if not values:
        return what, "", None
    return what, shown.format(max(values)), max(values) <= most


def _whole(one: Json | None) -> tuple[str, str, bool | None]:
    what = "19,998 trials: nothing lost, nothing twice, every group judged"
    if one is None or one["trials"] < 19_998:
        return what, "", None
    number = one["audit"]["numberOfFindings"]
    return what, f"{number} findings, {one['state']}", number == 0


def _ratio(pairs: Sequence[Pair]) -> tuple[str, str, bool | None]:
    what = f"pods per minute beside plain Jobs: at least {RATIO:g} times"
    if not pairs:
        return what, "", None
    ratios = [_pace_ratio(pair) for pair in pairs]
    whole = statistics.median(_whole_ratio(pair) for pair in pairs)
    return what, f"{_spread(ratios)} (the whole runs: {whole:.2f})", statistics.median(ratios) >= RATIO


def _linear(sweeps: Sequence[Json]) -> tuple[str, str, bool | None]:
    what = "linear from 2,000 to 20,000: CPU of the operator per trial"
    full = [one for one in sweeps if one["kind"] in FREE and one["trials"] >= 18_000]
    tenth = [one for one in sweeps if one["kind"] in FREE and 1_800 <= one["trials"] <= 2_200]
    if not full or not tenth:
        return what, "", None
    large, small = (statistics.median(one["operatorCPUPerTrialMs"] for one in ones) for ones in (full, tenth))
    return what, f"{large:.1f} ms beside {small:.1f} ms, {large / small:.2f} times", large / small <= LINEAR


def _latency(sweeps: Sequence[Json]) -> tuple[str, str, bool | None]:
    what = f"from a pod's end to its status at {PACE:.0%} of saturation: p99 at most {P99:g} s"
    paced = next((one for one in reversed(sweeps) if one.get("latency")), None)
    share = _share(sweeps, paced) if paced is not None else None
    if paced is None or share is None:
        return what, "", None
    late = paced["latency"]
    told = f"p99 {late['p99']} s at {share:.0%}" + (f", {late['unseen']} pods unseen" if late["unseen"] else "")
    return what, told, late["p99"] <= P99 and not late["unseen"] and share >= LEAST_PACE


def _burst(one: Json | None) -> tuple[str, str, bool | None]:
    what = "20,000 pod updates as fast as the API server takes them (watch layer alone): all reach their statuses"
    if one is None:
        return what, "", None
    told = one["figures"]
    last = told["last status after last update s"]
    return what, f"all; the last status {last:.1f} s after the last update, {told['updates/s']:.0f} updates/s", True


def _share(sweeps: Sequence[Json], paced: Json) -> float | None:
    """Of saturation: the best pace of sweeps whose window is the benchmark's own (small ones are over before they reach it)."""
    free = [one["trialsPerMinute"] for one in sweeps if one["kind"] in FREE]
    return float(paced["trialsPerMinute"]) / max(free) if free else None


def _sweeps(found: Sequence[Json]) -> list[str]:
    rows = [
        "### Sweeps\n",
        "| run | code | trials | audit | trials/min | judged and reported after | operator: CPU per trial | memory "
        "| writes per trial | reads per trial | lists | share of all CPU | other work on the machine |",
        "|---|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for one in found:
        audit = one["audit"]
        number = audit["numberOfFindings"]
        words = "nothing lost, nothing twice" if not number else f"**{number} findings**"
        rows.append(
            f"| {one['kind']} {one['date'][:16].replace('T', ' ')} | {one['code']} | {one['trials']:,} | {words} "
            f"| {one['trialsPerMinute']:,.0f} | {one['completeSeconds']:,.0f} s | {one['operatorCPUPerTrialMs']:.1f} ms "
            f"| {one['operatorMiB']:.0f} MiB "
            f"| {audit['writes_per_trial']:.2f} ({audit['all_writes_per_trial']:.2f} with Jobs and the sweep's) "
            f"| {audit['reads_per_trial']:.2f} | {sum(audit['lists'].values())} "
            f"| {100 * one['use']['share']['operator']:.0f} % | {_others(one)} |"
        )
    rows += ["", "A list is a page of one: all of a kind at the start, after a minute, then every ten minutes.", ""]
    for one in found:
        if one.get("kill"):
            kill = one["kill"]
            rows.append(
                f"* Killed with -9 when {kill['sealed']:,} of {one['trials']:,} trials were sealed and {kill['created']:,} made: "
                f"first write {kill['firstWriteAfterSeconds']} s after the new start."
            )
        if one.get("latency"):
            late, share = one["latency"], _share(found, one)
            pace = "" if share is None else f", {share:.0%} of the pace of sweeps that nothing holds back"
            unseen = f", {late['unseen']} unseen" if late["unseen"] else ""
            rows.append(
                f"* At {one['trialsPerMinute']:.0f} trials/min{pace}: from the moment the end of a pod is sent until the status "
                f"of its Trial says so, p50 {late['median']} s, p90 {late['p90']} s, p99 {late['p99']} s, max {late['max']} s "
                f"({late['pods']:,} pods{unseen})."
            )
    return [*rows, ""]


def _pairs(found: Sequence[Json]) -> Iterator[Pair]:
    """What was measured one after the other: the sweep, the same pods as plain Jobs, perhaps bare ones."""
    pairs: dict[str, Pair] = {}
    for one in found:
        if one["kind"] == "pair":
            pairs.setdefault(one["pair"], {})[one["what"]] = one
    for pair in pairs.values():
        ours = pair["sweep"]
        for other in pair.values():
            for name in ("trials", "parallelism", "podSeconds", "limits", "nodes"):
                if ours[name] != other[name]:
                    raise ValueError(
                        f"{ours['file']}, {other['file']}: {name} is {ours[name]} and {other[name]}, so they are no pair"
                    )
        yield pair


def _beside_jobs(pairs: Sequence[Pair]) -> list[str]:
    if not pairs:
        return []
    rows = [
        "### Beside plain Jobs\n",
        "The same pods as plain Jobs (`bench/operator/jobs.py`, a short script: two Jobs per trial and one that judges per "
        "group, same window), and bare, with nobody who looks after them (`bench/operator/bare.py`, the floor), in turn on the "
        "same machine, each time from another one on. The time is from the first pod created to the last status written of a "
        "trial, or of a Job or bare pod of one; the pods are those of trials and those that judged meanwhile. The window is full "
        "between a fifth and four fifths of the ends of trials: what comes before and after (a sweep begins with a few trials, "
        "until one has worked) weighs in these runs, and little in one of 19,998. Writes and CPU are those of everybody and of "
        "all processes of the benchmark from beginning to end, per pod that ran: what other work on the machine does to the "
        "pace, it does hardly to that.\n",
        "| trials | window | first | pods/min: sweep | Jobs | bare | ratio to Jobs "
        "| the window full: sweep | Jobs | bare | ratio to Jobs | writes per pod: "
        "sweep | Jobs | bare | CPU per pod: sweep | Jobs | bare | ratio to Jobs | other work: sweep | Jobs | bare |",
        "|---:|---:|---|" + "---:|" * 18,
    ]
    for pair in pairs:
        ours, theirs, bare = pair["sweep"], pair["jobs"], pair.get("bare")
        first = min(pair.values(), key=lambda one: str(one["file"]))["what"]
        writes = sum(ours["audit"]["writes_of_all"].values()) / (2 * ours["trials"] + ours["groups"])
        cells = [
            f"{ours['trials']:,}", f"{ours['parallelism']:,}", first, f"{ours['podsPerMinute']:,.0f}",
            f"{theirs['podsPerMinute']:,.0f}", f"{bare['podsPerMinute']:,.0f}" if bare else "",
            f"{_whole_ratio(pair):.2f}", f"{ours['steadyPodsPerMinute']:,.0f}",
            f"{theirs['steadyPodsPerMinute']:,.0f}", f"{bare['steadyPodsPerMinute']:,.0f}" if bare else "",
            f"{_pace_ratio(pair):.2f}",
            f"{writes:.1f}", f"{theirs['writesPerPod']:.1f}", f"{bare['writesPerPod']:.1f}" if bare else "",
            f"{ours['cpuPerPodMs']:.0f} ms", f"{theirs['cpuPerPodMs']:.0f} ms", f"{bare['cpuPerPodMs']:.0f} ms" if bare else "",
            f"{_cpu_ratio(pair):.2f}", _others(ours), _others(theirs), _others(bare) if bare else "",
        ]  # fmt: skip
        rows.append(f"| {' | '.join(cells)} |")
    whole = [_whole_ratio(pair) for pair in pairs]
    paces, cpus = [_pace_ratio(pair) for pair in pairs], [_cpu_ratio(pair) for pair in pairs]
    rows.append(
        f"\nRatio of pods per minute: {_spread(whole)}, the window full: {_spread(paces)}; of CPU per pod: {_spread(cpus)}.\n"
    )
    floors = [pair for pair in pairs if "bare" in pair]
    if floors:
        most = [pair["jobs"]["cpuPerPodMs"] / pair["bare"]["cpuPerPodMs"] for pair in floors]
        above = [[pair[what]["cpuPerPodMs"] - pair["bare"]["cpuPerPodMs"] for what in ("sweep", "jobs")] for pair in floors]
        times = f": {_spread([theirs / ours for ours, theirs in above])}" if all(ours > 0 for ours, _ in above) else ""
        rows.append(
            f"The most that the ratio of CPU can be, for an operator that costs nothing: {_spread(most)}. Above the floor a pod "
            f"of a sweep costs {statistics.median(ours for ours, _ in above):.0f} ms, that of a Job "
            f"{statistics.median(theirs for _, theirs in above):.0f} ms{times}.\n"
        )
    return [*rows, *_cpu_shares(pairs), ""]


def _cpu_shares(pairs: Sequence[Pair]) -> Iterator[str]:
    """Of every process, the median over the runs of a sort."""
    names = list(dict.fromkeys(name for pair in pairs for one in pair.values() for name in one["use"]["share"]))
    yield "| share of the CPU | " + " | ".join(names) + " |"
    yield "|---|" + "---:|" * len(names)
    for what, word in (("sweep", "sweeps"), ("jobs", "plain Jobs"), ("bare", "bare pods")):
        uses = [pair[what]["use"]["share"] for pair in pairs if what in pair]
        shares = [[use[name] for use in uses if name in use] for name in names]
        if uses:
            yield f"| {word} | " + " | ".join(f"{100 * statistics.median(s):.0f} %" if s else "" for s in shares) + " |"


def _whole_ratio(pair: Pair) -> float:
    return float(pair["sweep"]["podsPerMinute"] / pair["jobs"]["podsPerMinute"])


def _pace_ratio(pair: Pair) -> float:
    """The window full."""
    return float(pair["sweep"]["steadyPodsPerMinute"] / pair["jobs"]["steadyPodsPerMinute"])


def _cpu_ratio(pair: Pair) -> float:
    return float(pair["jobs"]["cpuPerPodMs"] / pair["sweep"]["cpuPerPodMs"])


def _spread(values: Sequence[float]) -> str:
    middle, number = statistics.median(values), len(values)
    return f"median **{middle:.2f}**, {min(values):.2f} to {max(values):.2f} in {number} pair{'s' if number > 1 else ''}"


def _limits(found: Sequence[Json]) -> Iterator[str]:
    """Client limits, times of pods and commands, each with the kinds of runs it is that of."""
    told: dict[str, dict[str, None]] = {}
    for one in found:
        if "limits" not in one:
            continue
        limits = "; ".join(f"{name}: {', '.join(f'{k} {v:g}' for k, v in kept.items())}" for name, kept in one["limits"].items())
        runs = ", ".join(f"{role} {value:g} s" for role, value in one["podSeconds"].items())
        kinds = told.setdefault(f"pods run {runs} (half to one and a half of it); {one['nodes']} nodes; limits of {limits}", {})
        kinds[one["kind"]] = None
    yield "Client limits, raised on both sides:\n"
    yield from (f"* {', '.join(kinds)}: {text}." for text, kinds in told.items())
    commands = dict.fromkeys(one["command"] for one in found)
    yield f"\nCommands: {', '.join(f'`{command}`' for command in commands)}.\n"


def _others(one: Json) -> str:
    """CPU that went to what is not of the benchmark, as a share of what the machine did."""
    used = sum(one["use"]["cpuSeconds"].values())
    others = max(0.0, one["use"]["othersSeconds"])
    return f"{100 * others / (used + others):.0f} %"
