"""A thousand broken objects beside a sweep: none of them stops it, is taken for its own, or is touched."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from realcli_operator.kube.names import LABEL_ATTEMPT, LABEL_MANAGED_BY, LABEL_ROLE, LABEL_SWEEP, LABEL_TRIAL, MANAGER
from tests.support.control_plane import wait_for
from tests.support.stub_kubelet import GROUP, Json

pytestmark = pytest.mark.apiserver
SEED = 11
TRIALS, PODS, JOBS = 400, 400, 200
PHASES = ["Pending", "Queued", "Working", "Verifying", "Sealed", "Invalid"]
WORDS = ["", "x", "Nonsense", "PodLost", "Completed", "null", "{", '{"phase":"Work","result":"WorkSealed"}', "\U0001f4a5" * 40]
NAMES = ["session", "agent", "x"]
NEAR = ["0", "1", "-1", "99999999999999", "x", "", "1.5"]
DIGEST = "sha256:" + "0" * 64


class Junk:
    """Objects that look like ours, chosen by the seed."""

    def __init__(self, sweep: Json, foreign: Json) -> None:
        self.rng = random.Random(SEED)
        self.sweep = {
            "apiVersion": "realcli.dev/v1alpha1",
            "kind": "BenchmarkSweep",
            "name": "healthy",
            "uid": sweep["metadata"]["uid"],
        }
        self.foreign = {"apiVersion": "v1", "kind": "ConfigMap", "name": "foreign", "uid": foreign["metadata"]["uid"]}

    def metadata(self, name: str) -> Json:
        pick = self.rng.choice
        labels = {
            LABEL_MANAGED_BY: MANAGER,
            LABEL_SWEEP: pick(["healthy", "healthy", "no-such-sweep", ""]),
            LABEL_ATTEMPT: pick([near for near in NEAR if near != "-1"]),
            **pick([{}, {LABEL_TRIAL: f"healthy-0000{self.rng.randrange(8)}"}, {LABEL_TRIAL: "x"}]),
        }
        owner = pick([None, self.foreign, self.sweep])
        owners = [] if owner is None else [owner | {"controller": self.rng.random() < 0.8}]
        digests = pick([{}, {"realcli.dev/spec-digest": pick(WORDS)}])
        return {"name": name, "labels": labels, "ownerReferences": owners, "annotations": digests}

    def trial(self, number: int) -> Json:
        pick = self.rng.choice
        spec = {
            "sweep": pick(["healthy", "no-such-sweep"]),
            "planDigest": DIGEST,
            "ordinal": pick([0, 3, 5, 6, 99999]),
            "configuration": pick(["claude-code.sonnet", "x"]),
            "task": pick(["log-triage", "x"]),
            "mode": pick(["EXEC", "COLLAB"]),
            "repeat": pick([1, 100]),
        }
        # some have the name of a trial that a larger sweep would have
        name = f"healthy-{number:05d}" if number % 7 == 0 and number > 5 else f"junk-{number}"
        return {"apiVersion": "realcli.dev/v1alpha1", "kind": "Trial", "metadata": self.metadata(name), "spec": spec}

    def trial_status(self) -> Json:
        pick = self.rng.choice
        condition = {
            "type": pick(["Running", "Sealed", "Nonsense"]),
            "status": "False",
            "reason": "Nonsense",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        status = {
            "phase": pick(PHASES),
            "reason": pick([word for word in WORDS if len(word) < 64]),
            "attempt": pick([0, 1, 10**9]),
            "conditions": pick([[], [condition]]),
            "invalidAttempts": pick([0, 10**9]),
            "reward": pick(["1", "NaN", "x"]),
            "verifyAttempt": pick([0, 1, 10**6]),
            "retryAfter": pick(["2026-01-01T00:00:00Z", "2999-01-01T00:00:00Z"]),
            "throttled": pick(["0.5", "Infinity", "x"]),
            "lastInvalidReason": pick(["Nonsense", "ProviderUnavailable"]),
            "lastInvalidAt": "2999-01-01T00:00:00Z",
            "costUSD": pick(["x", "-1", "1e9999"]),
        }
        return {key: value for key, value in status.items() if self.rng.random() < 0.8}

    def pod(self, number: int) -> Json:
        metadata = self.metadata(f"junk-{number}")
        metadata["labels"] |= self.rng.choice([{}, {LABEL_ROLE: self.rng.choice(["work", "judge", "nonsense"])}])
        return {"metadata": metadata, "spec": {"containers": [{"name": "session", "image": "x"}], "restartPolicy": "Never"}}

    def pod_status(self) -> Json:
        pick = self.rng.choice
        ended = {
            "exitCode": pick([0, 1, 137, -1]),
            "reason": pick(WORDS),
            "message": pick(WORDS) * pick([1, 200]),
        }
        state = pick([{}, {"terminated": ended}, {"waiting": {"reason": pick(WORDS)}}])
        statuses = [
            {
                "name": pick(["session", "agent", "x"]),
                "image": "",
                "imageID": "",
                "ready": False,
                "restartCount": 9,
                "state": state,
            }
        ]
        condition = {
            "type": "DisruptionTarget",
            "status": pick(["True", "Unknown"]),
            "reason": pick(["", "Nonsense"]),
        }
        return {
            "phase": pick(["Pending", "Running", "Succeeded", "Failed"]),
            "reason": pick(WORDS),
            "message": pick(WORDS),
            "containerStatuses": statuses,
            "conditions": pick([[], [condition]]),
        }

    def job(self, number: int) -> Json:
        template = {"metadata": {}, "spec": {"containers": [{"name": "c", "image": "x"}], "restartPolicy": "Never"}}
        return {"metadata": self.metadata(f"junk-{number}"), "spec": {"suspend": True, "template": template}}


async def test_a_thousand_broken_objects(place: Callable[[str], Any]) -> None:
    here = await place("broken-objects")
    sweep = await here.apply("healthy", repeats=3, suspend=True)
    config_map = {"metadata": {"name": "foreign"}}
    junk = Junk(sweep, await here.admin.send("POST", f"{here.core}/configmaps", config_map))
    send, merge = here.admin.send, here.admin.merge
    jobs = f"/apis/batch/v1/namespaces/{here.namespace}/jobs"
    trials = [junk.trial(number) for number in range(TRIALS)]
    pods = [junk.pod(number) for number in range(PODS)]
    await here.admin.each(
        *(send("POST", here.trials, trial) for trial in trials),
        *(send("POST", f"{here.core}/pods", pod) for pod in pods),
        *(send("POST", jobs, junk.job(number)) for number in range(JOBS)),
    )
    await here.admin.each(
        *(merge(f"{here.trials}/{t['metadata']['name']}/status", {"status": junk.trial_status()}) for t in trials[::2]),
        *(merge(f"{here.core}/pods/{p['metadata']['name']}/status", {"status": junk.pod_status()}) for p in pods[::2]),
    )
    names = {item["metadata"]["name"] for item in (*trials, *pods)}

    async def versions() -> dict[str, str]:
        found = [await send("GET", path) for path in (here.trials, f"{here.core}/pods")]
        items = [item["metadata"] for answer in found for item in answer["items"]]
        return {item["name"]: item["resourceVersion"] for item in items if item["name"] in names}

    before = await versions()
    assert len(before) == len(names)
    async with here.living() as life:
        await merge(f"{GROUP}/{here.namespace}/benchmarksweeps/healthy", {"spec": {"suspend": False}})

        async def complete() -> bool:
            return (await here.sweep("healthy")).get("status", {}).get("state") == "Complete"

        await wait_for(complete, "the sweep goes through beside them")
        counts = (await here.sweep("healthy"))["status"]["counts"]
        assert (counts["total"], counts["created"], counts["sealed"], counts["invalid"]) == (6, 6, 6, 0)
        touched = [write for write in life.transport.writes if write.rsplit("/", 1)[-1] in names or "/junk-" in write]
        assert touched == []
        samples = [sample for family in life.metrics.registry.collect() for sample in family.samples]
        errors = {s.labels["error"]: s.value for s in samples if s.name == "realcli_reconcile_errors_total"}
        assert errors == {}
        assert life.layer.problems() == []
    assert await versions() == before
