"""Faults of a real cluster, with real sessions, verifiers, judges and storage."""

from __future__ import annotations

import hashlib
import re
import time
from collections import defaultdict
from typing import Any

import pytest

from realcli.storage.port import StorageUnavailable
from tests.support.kind_cluster import LIMIT, Folder, shell
from tests.support.kind_runs import IMAGE, PROVIDER, STORAGE, Runs, endpoint, write_suite

pytestmark = pytest.mark.kind
PHASES = ("plan", "work", "verify", "judge", "report")
OUTAGE = 25.0
OWN_KEY = "chaos-key"
ABSENT_KEY = "chaos-key-that-comes-late"
SECONDS_WORK = "sleep 20; echo done > /app/out.txt"


def audited(runs: Runs, name: str, *, attempts: int = 1, trials: int = 1) -> list[dict[str, Any]]:
    """Its trials, once the end of a sweep has been held against storage: every anchor is that of a ledger that verifies, of
    each trial storage has the attempts that the status counts, no more than ``attempts``, there is one report, which is the one
    that the status names, and every number of it is counted again. No pod name was that of two pods, no end is unexplained."""
    sweep = runs.kube.sweep_ended(name)
    assert sweep["status"]["state"] == "Complete", runs.kube.state()
    reached_storage(runs)
    folder = runs.below(sweep)
    names = folder.names()
    found = runs.kube.list("trials", f"realcli.dev/sweep={name}")
    assert len(found) == trials
    for trial in found:
        status = trial["status"]
        assert (status["phase"], status["reason"], status["reward"]) == ("Sealed", "Completed", "1"), status
        runs.events(trial)
        ordinal = f"trials/{trial['spec']['ordinal']:05d}/"
        stored = {int(m[1]) for key in names if (m := re.match(rf"{ordinal}attempt-(\d+)/", key))}
        assert stored <= set(range(1, status["attempt"] + 1)), stored
        assert status["attempt"] <= attempts, status
        sealed = [k for k in stored if f"{ordinal}attempt-{k}/work-seal.json" in names]
        assert status["attempt"] in sealed, "the attempt that counts is the one that was sealed"
    (report,) = {key.split("/")[1] for key in names if key.startswith("reports/")}
    summary = folder.read(f"reports/{report}/summary.json")
    assert sweep["status"]["reportDigest"] == f"sha256:{hashlib.sha256(summary).hexdigest()}"
    recounted(runs, name, folder)
    left = [pod["metadata"]["name"] for pod in runs.kube.list("pods", f"realcli.dev/sweep={name},realcli.dev/trial")]
    assert left == [], left
    pods: defaultdict[str, set[str]] = defaultdict(set)
    for event in runs.kube.list("events"):
        about = event["involvedObject"]
        if about["kind"] == "Pod" and re.match(rf"{name}-\d{{5}}-", about["name"]):
            pods[about["name"]].add(about["uid"])
        assert event["reason"] != "UnexplainedEnd", event["message"]
    assert pods.keys() >= {f"{name}-{number:05d}-a1" for number in range(trials)}
    assert [pod for pod, uids in pods.items() if len(uids) > 1] == []
    return found


def reached_storage(runs: Runs) -> None:
    """Wait until the way to the storage, which goes through the API server, is open."""

    def open_again() -> bool:
        try:
            next(iter(runs.s3.store.list(f"{runs.kube.namespace}/")), None)
        except StorageUnavailable:
            return False
        return True

    runs.kube.until("the way to the storage", LIMIT, open_again)


def recounted(runs: Runs, name: str, folder: Folder) -> None:
    """Every number of the report from the sealed ledgers, as anybody can who has downloaded the sweep."""
    whole = runs.folder / "downloaded" / name
    for key in folder.names():
        file = whole / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(folder.read(key))
    runs.s3.realcli("verify-report", str(whole))


def begin(
    runs: Runs, name: str, command: str = SECONDS_WORK, *, storage: str = STORAGE, secret: str = "provider", **changes: Any
) -> None:
    """A sweep of one trial in which Claude Code runs the command; ``secret``: with the provider's key, the spec changed so."""
    reached_storage(runs)
    test = "echo 1 > /logs/verifier/reward.txt"
    suite = write_suite(runs.folder / name, name, [command], IMAGE, ["/app/out.txt"], test, cpus="0.25")
    model = {"name": "sonnet", "model": "claude-sonnet-4-5", "endpoints": {"anthropic": endpoint(PROVIDER, secret)}}
    agents = [{"name": "claude-code", "version": "2.1.140"}]
    retry = {"infrastructure": 2, "backoff": "1s"}
    spec = {"agents": agents, "models": [model], "modes": ["EXEC"], "retry": retry, "storage": runs.storage(storage)}
    runs.start_suite(name, suite, **(spec | changes))


def reached(runs: Runs, name: str, phase: str) -> None:
    """Wait until the sweep is in that phase; a phase that was too quick to be seen counts as reached."""
    kube = runs.kube

    def look() -> bool:
        sweep = kube.get("sweep", name).get("status", {})
        if sweep.get("state") in ("Complete", "Failed", "Incomplete"):
            return True
        trials = [trial.get("status", {}).get("phase") for trial in kube.list("trials", f"realcli.dev/sweep={name}")]
        counts = sweep.get("counts", {})
        match phase:
            case "plan":
                return bool(kube.list("pods", f"realcli.dev/sweep={name},realcli.dev/role=plan"))
            case "work":
                return "Working" in trials
            case "verify":
                return "Verifying" in trials or "Sealed" in trials
            case "judge":
                return bool(trials) and set(trials) == {"Sealed"}
        return bool(counts.get("groupsJudged", 0))

    kube.until(f"phase {phase} of {name}", LIMIT, look)


@pytest.mark.parametrize("how", ["gone", "broken"])
@pytest.mark.parametrize("phase", PHASES)
def test_storage(cluster: Any, door: Any, phase: str, how: str, tell: Any) -> None:
    """S3 not there, or answering 500, for half a minute in each phase of a sweep."""
    runs, name = cluster.runs, f"storage-{phase}-{how}"
    try:
        if phase == "plan":
            getattr(door, how)()
        begin(runs, name, storage=door.address)
        reached(runs, name, phase)
        met = runs.kube.get("sweep", name)["status"].get("state")
        assert met in (None, "Planning", "Running") or phase == "report", f"it ended before the fault began: {met}"
        if phase != "plan":
            getattr(door, how)()
        time.sleep(OUTAGE)  # the fault itself
    finally:
        door.open()
    audited(runs, name)
    tell(seconds_away=OUTAGE)


def test_killed_after_every_write(cluster: Any, instead: Any, tell: Any) -> None:
    """The operator dies after each of its writes, until a real sweep is through."""
    runs, name = cluster.runs, "every-write"
    begin(runs, name)

    def over() -> bool:
        status = runs.kube.get("sweep", name).get("status", {})
        left = runs.kube.list("pods", f"realcli.dev/sweep={name},realcli.dev/trial")
        return status.get("state") in ("Complete", "Failed", "Incomplete") and not left

    kills = 0
    while not instead.live(over, write=1):
        kills += 1
        assert kills < 60, runs.kube.state()
    audited(runs, name)
    assert kills >= 10
    tell(kills=kills)


def own_secret(runs: Runs, key: str | None = None, name: str = OWN_KEY) -> None:
    """The provider's key (or another one) under a name that only these tests use."""
    value = key if key is not None else runs.kube.secret("provider", "api-key")
    runs.kube.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"api-key": value}})


def planned(runs: Runs, name: str) -> None:
    runs.kube.until(f"the plan of {name}", LIMIT, lambda: runs.kube.get("sweep", name).get("status", {}).get("planDigest"))


def test_secret_missing(cluster: Any, tell: Any) -> None:
    """The key's Secret is not there when the plan's pod is made, which is told, and comes later: no attempt is used up."""
    runs, name = cluster.runs, "secret-missing"
    begin(runs, name, secret=ABSENT_KEY)

    def told() -> bool:
        conditions = runs.kube.get("sweep", name).get("status", {}).get("conditions", ())
        return any(c["reason"] == "ConfigurationError" and ABSENT_KEY in c["message"] for c in conditions)

    runs.kube.until("the sweep to say what it waits for", LIMIT, told)
    time.sleep(OUTAGE)  # the fault itself
    own_secret(runs, name=ABSENT_KEY)
    audited(runs, name)
    tell(seconds_missing=OUTAGE)


def test_secret_removed(cluster: Any, tell: Any) -> None:
    """The key's Secret is deleted once the sweep is planned, and is back after a while."""
    runs, name = cluster.runs, "secret-removed"
    own_secret(runs)
    begin(runs, name, secret=OWN_KEY)
    planned(runs, name)
    runs.kube.run("delete", "secret", OWN_KEY)
    time.sleep(OUTAGE)  # the fault itself
    own_secret(runs)
    audited(runs, name)
    tell(seconds_missing=OUTAGE)


def test_key_revoked(cluster: Any, tell: Any) -> None:
    """The provider refuses the key from the middle of a sweep on: what runs with the old one ends well, what begins then is told
    and tried again until the Secret has the right key."""
    runs, name = cluster.runs, "key-revoked"
    own_secret(runs)
    begin(runs, name, secret=OWN_KEY, repeats=2, parallelism=1, retry={"infrastructure": 9, "backoff": "1s"})
    runs.kube.until("the agent to work", LIMIT, lambda: running(runs, f"{name}-00000-a1"))
    own_secret(runs, "revoked")

    def refused() -> Any:
        trials = runs.kube.list("trials", f"realcli.dev/sweep={name}")
        return [status for trial in trials if (status := trial.get("status", {})).get("lastInvalidReason")]

    (status,) = runs.kube.until("a trial to be refused", LIMIT, refused)
    assert status["lastInvalidReason"] == "ProviderUnavailable", status
    own_secret(runs)
    first, second = sorted(audited(runs, name, attempts=10, trials=2), key=lambda trial: trial["spec"]["ordinal"])
    assert (first["status"]["attempt"], first["status"]["invalidAttempts"]) == (1, 0)
    assert second["status"]["attempt"] == 1 + second["status"]["invalidAttempts"] > 1
    tell(refused=second["status"]["invalidAttempts"])


def test_node_restarted(cluster: Any, tell: Any) -> None:
    """`docker restart` of the node while an agent works: what ran is lost with a reason, and runs again."""
    runs, name = cluster.runs, "node-restarted"
    begin(runs, name, "sleep 40; echo done > /app/out.txt")
    runs.kube.until("the agent to work", LIMIT, lambda: running(runs, f"{name}-00000-a1"))
    shell("docker restart realcli-control-plane >/dev/null")
    runs.kube.until("the API server", 300, lambda: runs.kube.run("get", "--raw", "/readyz", check=False) == "ok")
    (trial,) = audited(runs, name, attempts=3)
    status = trial["status"]
    assert status["attempt"] == 1 + status["invalidAttempts"] > 1, status
    tell(attempt=status["attempt"], last_invalid=status["lastInvalidReason"])


def running(runs: Runs, pod: str) -> bool:
    found = [p for p in runs.kube.list("pods", "realcli.dev/role=work") if p["metadata"]["name"] == pod]
    statuses = [item for pod_found in found for item in pod_found["status"].get("containerStatuses", ())]
    return any("running" in item["state"] for item in statuses if item["name"] == "agent")
