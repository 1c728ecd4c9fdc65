"""The end state of a namespace, judged from outside: nothing lost, nothing twice, every outcome explained.

Three witnesses that the operator does not write are held against its statuses: the API server's audit log (what was created),
the kubelet's own list (what ran) and storage (what was sealed).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from realcli.api.outcomes import BY_REASON, Effect, is_valid
from tests.support.control_plane import ControlPlane
from tests.support.stub_kubelet import GROUP, StubKubelet

VOLATILE = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z|[0-9a-f]{8}-[0-9a-f-]{27}|sha256:[0-9a-f]{64}")
DROPPED = ("resourceVersion", "managedFields", "creationTimestamp", "generation", "uid", "selfLink")
WORK = re.compile(r"(?P<trial>.+-\d{5})-a(?P<attempt>\d+)")
UNHEARD = frozenset({"Cancelled", "ConfigurationError"})
"""Ends of a trial that may never have had a pod."""


async def objects(admin: Any, namespace: str) -> dict[str, list[Any]]:
    """All objects of the namespace that the operator makes or reads."""
    paths = {
        "sweeps": f"{GROUP}/{namespace}/benchmarksweeps",
        "trials": f"{GROUP}/{namespace}/trials",
        "jobs": f"/apis/batch/v1/namespaces/{namespace}/jobs",
        "pods": f"/api/v1/namespaces/{namespace}/pods",
        "plans": f"/api/v1/namespaces/{namespace}/configmaps",
    }
    return {kind: (await admin.send("GET", path))["items"] for kind, path in paths.items()}


async def end_state(admin: Any, namespace: str) -> dict[str, Any]:
    """All objects of a namespace but events, without what differs between two runs of the same thing: uids, times, digests
    that hold uids, names of Job pods, the namespace's own name."""
    found: dict[str, Any] = await objects(admin, namespace)
    found["jobs"] = [{"name": job["metadata"]["name"], "conditions": job["status"]["conditions"]} for job in found["jobs"]]
    for job in found["jobs"]:
        for condition in job["conditions"]:
            del condition["lastProbeTime"], condition["lastTransitionTime"]
    found["pods"] = [re.sub(r"-[a-z0-9]{5}$", "", pod["metadata"]["name"]) for pod in found["pods"]]
    found["plans"] = [plan["metadata"]["name"] for plan in found["plans"]]
    return {kind: _normalised(items, namespace) for kind, items in found.items()}


def _normalised(value: Any, namespace: str) -> Any:
    if isinstance(value, dict):
        return {key: _normalised(child, namespace) for key, child in sorted(value.items()) if key not in DROPPED}
    if isinstance(value, list):
        return [_normalised(child, namespace) for child in value]
    return VOLATILE.sub("*", value).replace(namespace, "NS") if isinstance(value, str) else value


async def findings(
    admin: Any, plane: ControlPlane, kubelet: StubKubelet, namespace: str, *, reused: Iterable[str] = ()
) -> list[str]:
    """What is wrong with a namespace whose sweeps have ended. ``reused``: pod names that a fault let be used again."""
    found = await objects(admin, namespace)
    trials = {trial["metadata"]["name"]: trial for trial in found["trials"]}
    created = plane.created(namespace)
    wrong = [f"pod {name} was created {n} times" for name, n in created.items() if name and n > 1 and name not in set(reused)]
    wrong += [f"trial {name} was created {n} times" for name, n in plane.created(namespace, "trials").items() if n > 1]
    for sweep in found["sweeps"]:
        name, counts = sweep["metadata"]["name"], sweep["status"]["counts"]
        owned = sorted(t["spec"]["ordinal"] for t in found["trials"] if t["spec"]["sweep"] == name)
        if owned != list(range(counts["total"])):
            wrong.append(f"sweep {name} has {counts['total']} trials, and there are those of {owned}")
        for phase in ("Sealed", "Invalid"):
            number = sum(t["spec"]["sweep"] == name and t["status"]["phase"] == phase for t in found["trials"])
            if number != counts[phase.lower()]:
                wrong.append(f"sweep {name} counts {counts[phase.lower()]} {phase}, and there are {number}")
    for name, trial in trials.items():
        wrong += _of_trial(name, trial["status"], namespace, kubelet)
    for name in created:
        match = WORK.fullmatch(name)
        if match is None:
            continue
        trial = trials.get(match["trial"])
        if trial is None or int(match["attempt"]) > trial["status"]["attempt"]:
            wrong.append(f"work pod {name} was created, and no status knows that attempt")
    left = [pod["metadata"]["name"] for pod in found["pods"] if "realcli.dev/trial" in pod["metadata"].get("labels", {})]
    wrong += [f"pod {name} is left" for name in left]
    for kind, items in found.items():
        for item in items:
            ours = [f for f in item["metadata"].get("finalizers", ()) if not f.startswith("batch.kubernetes.io/")]
            wrong += [f"{kind} {item['metadata']['name']} has the finalizer {finalizer}" for finalizer in ours]
    return wrong


def _of_trial(name: str, status: Any, namespace: str, kubelet: StubKubelet) -> list[str]:
    phase, reason, attempt = status["phase"], status.get("reason", ""), status["attempt"]
    wrong = []
    row = BY_REASON.get(reason)
    if phase not in {"Sealed", "Invalid"} or row is None or row.effect is Effect.HELD or is_valid(reason) != (phase == "Sealed"):
        wrong.append(f"{name} ended {phase}/{reason}, which is no end of the table")
    if ("reward" in status) != (phase == "Sealed"):
        wrong.append(f"{name} is {phase} with reward {status.get('reward')}")
    stored = {k: seal for (place, trial, k), seal in kubelet.bucket.items() if (place, trial) == (namespace, name)}
    anchored = status.get("workSealDigest")
    if phase == "Sealed" and anchored != stored.get(str(attempt)):
        wrong.append(f"{name} anchors {anchored}, storage has {stored.get(str(attempt))} of attempt {attempt}")
    lost = sorted(k for k in stored if int(k) != attempt)
    if lost:
        wrong.append(f"{name} ended with attempt {attempt}, and attempts {lost} had been sealed")
    if not attempt and reason not in UNHEARD:
        wrong.append(f"{name} ended {reason} without an attempt")
    return wrong
