"""What the pods of the benchmark leave behind: the plan, seals in a bucket (a directory), termination messages. Files are made
once; that one was there already is a finding, not an error."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from realcli.api.base import canonical_json, sha256_digest
from realcli.api.plan import Plan, PlanConfiguration, PlanTask, Platform
from realcli.api.termination import MAX_REPORT_BYTES, Result, Termination
from realcli.storage.paths import SweepPaths, sweep_root

Json = dict[str, Any]
LABEL = "realcli.dev"
JOB_ROLE = "bench/role"
"""Label of the pods of plain Jobs."""
JUDGE8 = "0" * 8


@dataclass(frozen=True)
class Size:
    """Factors of the product."""

    configurations: int
    tasks: int
    repeats: int = 3
    modes: tuple[str, ...] = ("COLLAB", "EXEC")

    @staticmethod
    def of(trials: int) -> Size:
        """33 x tasks x 2 x 3, as near to ``trials`` as it gets; 19,998 is 33 x 101 x 2 x 3."""
        return Size(33, max(1, round(trials / 198)))

    @property
    def trials(self) -> int:
        """Number of trials."""
        return self.configurations * self.tasks * self.repeats * len(self.modes)

    @property
    def groups(self) -> int:
        """Number of judge Jobs."""
        return self.configurations * self.tasks


def sweep_of(name: str, namespace: str, size: Size, parallelism: int) -> Json:
    """The sweep's object: three agents with as many models as the configurations need."""
    endpoint = {"url": "https://api.anthropic.com", "apiKey": {"secretRef": {"name": "anthropic", "key": "api-key"}}}
    agents = [f"agent-{index}" for index in range(min(3, size.configurations))]
    models = [f"model-{index:02d}" for index in range(size.configurations // len(agents))]
    return {
        "apiVersion": "realcli.dev/v1alpha1",
        "kind": "BenchmarkSweep",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "benchmark": {"source": "s3://evals/benchmarks/bench/1.0.0"},
            "agents": [{"name": agent, "program": "claude-code"} for agent in agents],
            "models": [{"name": name, "model": name, "endpoints": {"anthropic": endpoint}} for name in models],
            "repeats": size.repeats,
            "modes": list(size.modes),
            "parallelism": parallelism,
            "storage": {"bucket": "evals", "credentials": {"secretRef": {"name": "evals-s3"}}},
        },
    }


def plan_of(asked: Json, size: Size) -> Plan:
    """The plan of what a plan Job was asked (its REALCLI_SWEEP)."""
    sweep, spec = asked["sweep"], asked["spec"]
    pairs = sorted((agent["name"], model["name"]) for agent in spec["agents"] for model in spec["models"])
    return Plan(
        sweep_uid=sweep["uid"],
        root=sweep_root("", sweep["namespace"], sweep["name"], sweep["uid"]),
        lock_digest="sha256:" + "1" * 64,
        benchmark_digest="sha256:" + "2" * 64,
        platform=Platform.model_validate(asked["platform"]),
        tasks=[PlanTask(name=f"task-{i:03d}", image=f"example/task-{i:03d}:1", verifier_seconds=60) for i in range(size.tasks)],
        configurations=[
            PlanConfiguration(name=f"{agent}.{model}", agent=agent, program="claude-code", agent_version="2.1.140", model=model)
            for agent, model in pairs
        ],
        modes=sorted(spec["modes"]),
        repeats=spec["repeats"],
    )


def asked_of(pod: Json) -> Json:
    """What the plan Job of this pod was asked."""
    environment = {env["name"]: env.get("value") for env in pod["spec"]["containers"][-1]["env"]}
    asked: Json = json.loads(environment["REALCLI_SWEEP"])
    return asked


@dataclass
class Bucket:
    """A directory. ``journal`` has one line per pod that ended: what the audit counts from."""

    folder: Path
    journal: Path
    roots: dict[str, str] = field(default_factory=dict)

    def put(self, key: str, body: Json) -> tuple[str, bool]:
        """Digest of the object and whether it is new."""
        path = self.folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        data = canonical_json(body)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return sha256_digest(path.read_bytes()), False
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        return sha256_digest(data), True

    def digest(self, key: str) -> str | None:
        """Digest of an object, None without it."""
        path = self.folder / key
        return sha256_digest(path.read_bytes()) if path.exists() else None

    def note(self, line: Json) -> None:
        """One line of the journal."""
        with self.journal.open("a") as file:
            file.write(json.dumps(line | {"at": time.time()}, separators=(",", ":")) + "\n")

    def end(self, pod: Json, size: Size) -> str:
        """Write what this pod seals, and what it says."""
        metadata = pod["metadata"]
        labels, name, uid = metadata["labels"], metadata["name"], metadata["uid"]
        role = labels.get(f"{LABEL}/role") or labels[JOB_ROLE]
        seal: Json = {"pod": name, "uid": uid}
        if JOB_ROLE in labels:
            said, key = _said(role), f"jobs/{name}.json"
        else:
            sweep = labels[f"{LABEL}/sweep"]
            if role == "plan":
                plan = plan_of(asked_of(pod), size)
                self.roots[sweep] = plan.root
                self.note({"pod": name, "uid": uid, "role": role, "new": True})
                return Termination(phase="Plan", result=Result.PLANNED, seal=plan.content_digest()).encode().decode()
            said, key = self._of_sweep(SweepPaths(self.roots[sweep]), role, labels, pod)
        if said.work_seal is not None:
            seal["workSeal"] = said.work_seal
        digest, new = self.put(key, seal)
        self.note({"pod": name, "uid": uid, "role": role, "key": key, "digest": digest, "new": new, "workSeal": said.work_seal})
        return said.model_copy(update={"seal": digest}).encode(MAX_REPORT_BYTES).decode()

    def _of_sweep(self, paths: SweepPaths, role: str, labels: Json, pod: Json) -> tuple[Termination, str]:
        if role == "judge":
            configuration, task = labels[f"{LABEL}/configuration"], labels[f"{LABEL}/task"]
            return _said(role), paths.group(JUDGE8, configuration, task)
        if role == "report":
            return _said(role), f"{paths.report(JUDGE8)}/summary.json"
        ordinal, attempt = int(labels[f"{LABEL}/trial"][-5:]), int(labels[f"{LABEL}/attempt"])
        place = paths.attempt(ordinal, attempt)
        if role == "work":
            return _said(role), place.work_seal
        sealed = self.digest(place.work_seal)
        number = pod["metadata"]["name"].rpartition("-v")[2]
        said = _said(role).model_copy(update={"work_seal": sealed})
        if sealed is None:
            said = Termination(phase="Verify", result=Result.NO_WORK_SEAL, message=f"{place.work_seal} is not there")
        return said, f"{place.root}/verify-{number}/seal.json"


def _said(role: str) -> Termination:
    values: dict[str, Json] = {
        "work": {
            "phase": "Work", "result": Result.WORK_SEALED, "reason": "Completed", "turns": 117, "cost_usd": "1.234567",
            "tokens": {"input": 123456, "cacheRead": 2345678, "cacheWrite": 34567, "output": 45678},
            "workingSeconds": "3456.789", "throttled": "0.01",
        },
        "verify": {
            "phase": "Verify", "result": Result.VERDICT, "reason": "Completed", "workEnd": "Completed", "reward": "1",
            "checks": {"passed": 8, "total": 8},
        },
        "judge": {"phase": "Judge", "result": Result.JUDGED},
        "report": {"phase": "Report", "result": Result.REPORTED, "uri": "s3://evals/report/index.html"},
    }  # fmt: skip
    return Termination.model_validate(values[role])
