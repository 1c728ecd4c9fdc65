"""One measurement: a fresh cluster and a sweep (`peers.py`: the same pods from a script); what is known of it afterwards is one
JSON object."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.operator.audit import of_folder
from bench.operator.ends import Size, sweep_of
from bench.operator.http import LIMIT
from bench.operator.servers import BURST, GC_SYNCS, JOB_SYNCS, NAMESPACE, NODES, QPS, ROOT, Server, Servers
from bench.operator.traces import OPERATOR, WRITES, Request, log_of, steady
from bench.operator.usage import cpu, machine_cpu, most_memory

SWEEP = "bench"
RUNS = {"plan": 1.0, "work": 20.0, "verify": 10.0, "judge": 1.0, "report": 1.0}
"""Seconds. Long enough that a third to a half of a full window runs: of pods of a few seconds nine in ten wait in a queue, where
controllers take several of their changes for one and cost less than they do in a cluster that is not drowned."""
WORKERS, JUDGES, RATE = 64, 32, 1000.0
LOOK = 1.0
TRIALS = f"/apis/realcli.dev/v1alpha1/namespaces/{NAMESPACE}/trials"
SWEEPS = f"/apis/realcli.dev/v1alpha1/namespaces/{NAMESPACE}/benchmarksweeps"
Json = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """``kill``: share of the trials after which the operator is killed, once. ``latency``: the stand-in watches the Trials."""

    size: Size
    parallelism: int = 1000
    kill: float | None = None
    latency: bool = False
    runs: Json | None = None
    patience: float = 7200.0


class Bench:
    """The cluster, the stand-in and what is under test."""

    def __init__(self, folder: Path, options: Options) -> None:
        self.folder = folder
        self.options = options
        self.servers = Servers(folder)
        self.stand_in = Server("stand-in", [
            sys.executable, "-m", "bench.operator.standin", f"--kubeconfig={self.servers.kubeconfig('stand-in')}",
            f"--folder={folder}", f"--port={self.servers.kubelet_port}", f"--configurations={options.size.configurations}",
            f"--tasks={options.size.tasks}", f"--runs={json.dumps(options.runs or RUNS)}",
            *(["--trials"] if options.latency else []),
        ], folder / "stand-in.log", paths())  # fmt: skip
        environment = paths() | {
            "REALCLI_KUBECONFIG": str(self.servers.kubeconfig("operator")), "REALCLI_WATCH_NAMESPACES": "",
            "REALCLI_IMAGE_SESSION": "example/session:1", "REALCLI_IMAGE_JUDGE": "example/judge:1",
            "REALCLI_IMAGE_TOOLKIT": "example/toolkit:1",
            "REALCLI_AGENT_IMAGES": '{"claude-code": {"2.1.140": "example/agent:1"}}',
            "REALCLI_LIVENESS": "", "REALCLI_METRICS_PORT": "0", "REALCLI_LOG_LEVEL": "WARNING",
            "REALCLI_WRITES_PER_SECOND": str(RATE), "REALCLI_WORKERS": str(WORKERS), "REALCLI_JUDGES": str(JUDGES),
        }  # fmt: skip
        self.operator = Server("operator", [sys.executable, "-m", "realcli_operator"], folder / "operator.log", environment)
        self.journal = folder / "journal.jsonl"
        self.journal.touch()

    def processes(self) -> Iterator[Server]:
        """Those that run now."""
        for server in (*self.servers.all, self.stand_in, self.operator):
            if server.popen is not None:
                yield server

    def check(self) -> None:
        """RuntimeError if one has ended."""
        for server in self.processes():
            server.check()

    def quiet(self) -> None:
        """End all that asks the API server for anything: its log is whole then, and nobody writes to it while it is read."""
        for server in (self.operator, self.stand_in, *self.servers.all[2:]):
            server.end()
        time.sleep(1.0)


@contextmanager
def bench(options: Options, keep: Path | None) -> Iterator[Bench]:
    """A running cluster with its stand-in."""
    with tempfile.TemporaryDirectory(prefix="bench-operator-", ignore_cleanup_errors=True) as name:
        made = Bench(Path(keep or name), options)
        try:
            made.servers.start()
            made.stand_in.start()
            yield made
        finally:
            for server in (made.operator, made.stand_in):
                server.end(signal.SIGKILL)
            made.servers.stop()


class Meter:
    """CPU of every process between `begin` and `end`. A process that is started again counts under its name."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._before = {server.pid: cpu(server.pid) for server in bench.processes()}
        self._seconds: dict[str, float] = {}
        self._begun = time.time()
        self._machine = machine_cpu()

    def gone(self, server: Server) -> None:
        """Call before a process is killed: what it has used is not forgotten."""
        self.add(server.name, cpu(server.pid) - self._before.get(server.pid, 0.0))

    def add(self, name: str, seconds: float) -> None:
        """Of a process that has ended by itself."""
        self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    def end(self) -> Json:
        """Seconds of CPU by process, and their shares of what all of them used."""
        for server in self._bench.processes():
            self.gone(server)
        busy, total = (after - before for before, after in zip(self._machine, machine_cpu(), strict=True))
        used = sum(self._seconds.values())
        return {
            "wallSeconds": round(time.time() - self._begun, 1),
            "cpuSeconds": {name: round(value, 2) for name, value in self._seconds.items()},
            "share": {name: round(value / used, 4) for name, value in self._seconds.items()},
            "machineBusy": round(busy / total, 3),
            "othersSeconds": round(busy - used, 1),
        }


def of_sweep(options: Options, keep: Path | None = None) -> Json:
    """A sweep from apply to Complete."""
    size = options.size
    with bench(options, keep) as here:
        here.operator.start()
        meter = Meter(here)
        begun = time.time()
        here.servers.ask("POST", SWEEPS, sweep_of(SWEEP, NAMESPACE, size, options.parallelism))
        progress: list[Json] = []
        back: Json | None = None
        memory = 0.0
        while True:
            time.sleep(LOOK)
            here.check()
            memory = max(memory, most_memory(here.operator.pid))
            status = here.servers.ask("GET", f"{SWEEPS}/{SWEEP}").get("status", {})
            counts = status.get("counts", {})
            used = cpu(here.operator.pid)
            progress.append({"at": round(time.time() - begun, 1), "sealed": counts.get("sealed", 0),
                             "working": counts.get("working", 0), "verifying": counts.get("verifying", 0),
                             "judged": counts.get("groupsJudged", 0), "operatorCPU": round(used, 1)})  # fmt: skip
            if options.kill is not None and back is None and counts.get("sealed", 0) >= options.kill * size.trials:
                back = _killed(here, meter) | {"sealed": counts["sealed"], "created": counts["created"]}
            if status.get("state") in {"Complete", "Incomplete", "Failed"}:
                break
            if time.time() - begun > options.patience:
                raise RuntimeError(f"not within {options.patience:.0f} s: {status}")
        complete = time.time() - begun
        used_by = meter.end()
        trials = here.servers.listed(TRIALS)
        (here.folder / "trials.json").write_text(json.dumps(trials))
        pods = here.servers.listed(f"/api/v1/namespaces/{NAMESPACE}/pods")
        (here.folder / "pods.json").write_text(json.dumps([pod["metadata"]["name"] for pod in pods]))
        (here.folder / "size.json").write_text(json.dumps({"trials": size.trials, "groups": size.groups}))
        (here.folder / "sweep.json").write_text(json.dumps(here.servers.ask("GET", f"{SWEEPS}/{SWEEP}")))
        here.quiet()
        journal = [json.loads(line) for line in here.journal.read_text().splitlines()]
        found = of_folder(here.folder, size.trials, size.groups)
        if back is not None:
            back["firstWriteAfterSeconds"] = first_write(log_of(here.folder), back["startedAt"])
        elif options.kill is not None:
            raise RuntimeError(
                f"the operator was to be killed at {options.kill:.0%} of the trials, and the sweep was over before"
            )
        latencies = of_latencies(here.folder / "latencies.jsonl", 2 * size.trials) if options.latency else None
        print((here.folder / "stand-in.log").read_text() + (here.folder / "operator.log").read_text()[-3000:], file=sys.stderr)
    seconds = found.last - found.first
    return {
        "what": "sweep", **what_was(options), "state": status["state"], "completeSeconds": round(complete, 1),
        "trialsSeconds": round(seconds, 1), "trialsPerMinute": round(60 * size.trials / seconds, 1),
        "podsPerMinute": round(60 * (2 * size.trials + found.judged_meanwhile) / seconds, 1),
        "steadyPodsPerMinute": round(steady(journal), 1),
        "use": used_by, "operatorMiB": round(memory, 1), "cpuPerPodMs": per_pod(used_by, 2 * size.trials + size.groups),
        "operatorCPUPerTrialMs": round(1000 * used_by["cpuSeconds"]["operator"] / size.trials, 2),
        "audit": asdict(found) | {"findings": found.findings[:50], "numberOfFindings": len(found.findings)},
        "kill": back, "latency": latencies, "progress": progress[:: max(1, len(progress) // 200)],
    }  # fmt: skip


def _killed(here: Bench, meter: Meter) -> Json:
    meter.gone(here.operator)
    here.operator.end(signal.SIGKILL)
    started = time.time()
    here.operator.start()
    return {"startedAt": started}


def first_write(log: Iterable[Request], since: float) -> float:
    """Seconds from the second start of the operator to its first write that was answered well: it has decided. Before
    it decides it lists everything; what the server received before may be a request of the killed process, still on its way."""
    mine = [request for request in log if request.user == OPERATOR and request.received > since]
    seeded = min((request.received for request in mine if request.what == "list trials"), default=None)
    times = [r.time for r in mine if seeded is not None and r.received > seeded and r.verb in WRITES and r.made]
    if not times:
        raise RuntimeError("the operator wrote nothing after its second start")
    return round(min(times) - since, 2)


def of_latencies(path: Path, expected: int) -> Json:
    """Percentiles over all ``expected`` pods; one that was not seen (the watch was cut) is told, it may be the slowest."""
    found = sorted(json.loads(line)["seconds"] for line in path.read_text().splitlines())
    if not found:
        raise RuntimeError("the stand-in has seen no Trial tell of the end of a pod")

    def below(share: float) -> float:
        return round(float(found[min(len(found) - 1, int(share * len(found)))]), 3)

    told = {"median": below(0.5), "p90": below(0.9), "p99": below(0.99), "max": round(found[-1], 3)}
    return {"pods": len(found), "unseen": expected - len(found), **told}


def per_pod(used: Json, pods: int) -> float:
    """CPU of all processes of the benchmark per pod; of a sweep the pods of its judge Jobs are pods too."""
    seconds: float = sum(used["cpuSeconds"].values())
    return round(1000 * seconds / pods, 1)


def what_was(options: Options) -> Json:
    """Sizes, times of pods, and limits on all sides."""
    limits = {
        "operator": {"REALCLI_WRITES_PER_SECOND": RATE, "REALCLI_WORKERS": WORKERS, "REALCLI_JUDGES": JUDGES},
        "kube-controller-manager": {"kube-api-qps": QPS, "kube-api-burst": BURST, "concurrent-job-syncs": JOB_SYNCS,
                                    "concurrent-gc-syncs": GC_SYNCS},
        "kube-scheduler": {"qps": QPS, "burst": BURST}, "script": {"connections": LIMIT},
    }  # fmt: skip
    size = options.size
    factors = {"configurations": size.configurations, "tasks": size.tasks, "modes": len(size.modes), "repeats": size.repeats}
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"), "trials": size.trials, "groups": size.groups, "factors": factors,
        "parallelism": options.parallelism, "nodes": NODES, "podSeconds": options.runs or RUNS, "limits": limits,
    }  # fmt: skip


def paths() -> dict[str, str]:
    """The processes import what lies beside this file, wherever that is, and not an installed copy."""
    rooms = (".", "operator", "cli", "judge_image", "simulator_image", "runner_image", "provider")
    return {"PYTHONPATH": ":".join(str(ROOT / room) for room in rooms)}
