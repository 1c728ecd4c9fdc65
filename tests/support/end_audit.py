"""The end state of a namespace, judged from outside: nothing lost, nothing twice, every outcome explained.

Three witnesses that the operator does not write are held against its statuses: the API server's audit log (what was created),
the kubelet's own lists (what ran, and what it said at its end) and storage (what was sealed).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from realcli.api.outcomes import BY_REASON, Effect, is_valid
from realcli.api.termination import Result
from tests.support.control_plane import ControlPlane
from tests.support.stub_kubelet import GROUP, Ended, StubKubelet

VOLATILE = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z|[0-9a-f]{8}-[0-9a-f-]{27}|sha256:[0-9a-f]{64}")
DROPPED = ("resourceVersion", "managedFields", "creationTimestamp", "generation", "uid", "selfLink", "podHoursExpected")
"""What no two runs have in common; the hours are those that pods took."""
WORK = re.compile(r"(?P<trial>.+-\d{5})-a(?P<attempt>\d+)")
JOB_POD = re.compile(r"-[a-z0-9]{5}$")
"""What a Job adds to its name for that of a pod."""
UNHEARD = frozenset({"Cancelled", "ConfigurationError"})
"""Ends of a trial that may never have had a pod."""
UNEXPLAINED = "UnexplainedEnd"
NOTHING: Final[dict[str, Any]] = {"status": {"attempt": 0}}
DONE = frozenset({Result.PLANNED, Result.WORK_SEALED, Result.VERDICT, Result.JUDGED, Result.REPORTED})
"""Ends after which nothing of the kind is to be done again."""


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
    jobs = found["jobs"]
    found["jobs"] = [{"name": job["metadata"]["name"], "conditions": job["status"]["conditions"]} for job in found["jobs"]]
    for job in found["jobs"]:
        for condition in job["conditions"]:
            del condition["lastProbeTime"], condition["lastTransitionTime"]
    there = {item["metadata"]["uid"] for items in (found["trials"], jobs) for item in items}
    kept = [pod for pod in found["pods"] if owners(pod) & there]  # of a Job that was replaced the garbage collector takes them
    found["pods"] = sorted(JOB_POD.sub("", pod["metadata"]["name"]) for pod in kept)
    found["plans"] = [plan["metadata"]["name"] for plan in found["plans"]]
    return {kind: _normalised(items, namespace) for kind, items in found.items()}


def differences(found: Any, expected: Any, path: str = "") -> list[str]:
    """Where two end states differ: path, what is there, what was expected."""
    if isinstance(found, dict) and isinstance(expected, dict):
        names = sorted({*found, *expected})
        return [text for name in names for text in differences(found.get(name), expected.get(name), f"{path}.{name}")]
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        pairs = enumerate(zip(found, expected, strict=True))
        return [text for number, pair in pairs for text in differences(*pair, f"{path}[{number}]")]
    return [] if found == expected else [f"{path.lstrip('.')}: {found!r}, not {expected!r}"]


def owners(item: Any) -> set[str]:
    """Uids of the objects that it goes with."""
    return {owner["uid"] for owner in item["metadata"].get("ownerReferences", ())}


def _normalised(value: Any, namespace: str) -> Any:
    if isinstance(value, dict):
        return {key: _normalised(child, namespace) for key, child in sorted(value.items()) if key not in DROPPED}
    if isinstance(value, list):
        named = all(isinstance(child, dict) and {"type", "status"} <= child.keys() for child in value)
        items = sorted(value, key=lambda child: child["type"]) if named else value  # conditions stand in the order they came
        return [_normalised(child, namespace) for child in items]
    return VOLATILE.sub("*", value).replace(namespace, "NS") if isinstance(value, str) else value


@dataclass(frozen=True)
class Seen:
    """What the witnesses say of a namespace, and the objects that are there."""

    namespace: str
    objects: dict[str, list[Any]]
    pods: Counter[str]
    """Name -> how often a pod of it was created (audit log); "" for those whose name the server made."""
    trials: Counter[str]
    jobs: Counter[str]
    ran: list[tuple[str, str]]
    """Name and uid of the pods that ran (kubelet)."""
    ended: list[Ended]
    """How pods ended, with their messages (kubelet)."""
    bucket: dict[tuple[str, str], str]
    """(trial, attempt) -> seal in storage."""


async def findings(
    admin: Any, plane: ControlPlane, kubelet: StubKubelet, namespace: str, *, reused: Iterable[str] = (), cut: bool = False
) -> list[str]:
    """What is wrong with a namespace whose sweeps have ended. ``reused``: pod names that a fault let be used again; ``cut``: a
    fault deleted pods, so what had been said by one of them may have been asked again."""
    return judged(
        Seen(
            namespace,
            await objects(admin, namespace)
            | {"events": (await admin.send("GET", f"/api/v1/namespaces/{namespace}/events"))["items"]},
            plane.created(namespace),
            plane.created(namespace, "trials"),
            plane.created(namespace, "jobs"),
            [(name, uid) for place, name, uid in kubelet.ran if place == namespace],
            [end for end in kubelet.ended if end.namespace == namespace],
            {(trial, k): seal for (place, trial, k), seal in kubelet.bucket.items() if place == namespace},
        ),
        frozenset(reused),
        cut,
    )


def judged(seen: Seen, reused: frozenset[str] = frozenset(), cut: bool = False) -> list[str]:
    """`findings`, of what was seen. Pure."""
    wrong = [f"pod {name} was created {n} times" for name, n in seen.pods.items() if name and n > 1 and name not in reused]
    wrong += [f"trial {name} was created {n} times" for name, n in seen.trials.items() if n > 1]
    uids: defaultdict[str, set[str]] = defaultdict(set)
    for name, uid in seen.ran:
        uids[name].add(uid)
    wrong += [f"pod {name} ran {len(found)} times" for name, found in uids.items() if len(found) > 1 and name not in reused]
    for sweep in seen.objects["sweeps"]:
        wrong += _of_sweep(sweep, seen)
    trials = {trial["metadata"]["name"]: trial for trial in seen.objects["trials"]}
    for name, trial in trials.items():
        wrong += _of_trial(name, trial["status"], seen)
    for name in seen.pods:
        match = WORK.fullmatch(name)
        if match is not None and int(match["attempt"]) > trials.get(match["trial"], NOTHING)["status"]["attempt"]:
            wrong.append(f"work pod {name} was created, and no status knows that attempt")
    wrong += [] if cut else _twice(seen)
    left = [pod["metadata"]["name"] for pod in seen.objects["pods"] if "realcli.dev/trial" in pod["metadata"].get("labels", {})]
    wrong += [f"pod {name} is left" for name in left]
    for kind, items in seen.objects.items():
        for item in items:
            ours = [f for f in item["metadata"].get("finalizers", ()) if not f.startswith("batch.kubernetes.io/")]
            wrong += [f"{kind} {item['metadata']['name']} has the finalizer {finalizer}" for finalizer in ours]
    gaps = [event for event in seen.objects["events"] if event["reason"] == UNEXPLAINED]
    return wrong + [f"an end without an explanation: {event['message']}" for event in gaps]


def _of_sweep(sweep: Any, seen: Seen) -> list[str]:
    """Its trials are those that were asked for (one task, one configuration), each once, and all of them are in its numbers."""
    name, spec, status = sweep["metadata"]["name"], sweep["spec"], sweep["status"]
    counts, state = status["counts"], status["state"]
    wrong = [] if state in {"Complete", "Incomplete"} else [f"sweep {name} ended {state}"]
    own = [trial for trial in seen.objects["trials"] if trial["spec"]["sweep"] == name]
    asked = {(mode, repeat) for mode in spec["modes"] for repeat in range(1, spec["repeats"] + 1)}
    cells = Counter((trial["spec"]["mode"], trial["spec"]["repeat"]) for trial in own)
    if cells != Counter(asked):
        wrong.append(f"sweep {name} asked for {sorted(asked)}, and there are trials of {sorted(cells.elements())}")
    ordinals = sorted(trial["spec"]["ordinal"] for trial in own)
    if ordinals != list(range(counts["total"])):
        wrong.append(f"sweep {name} has {counts['total']} trials, and there are those of {ordinals}")
    for phase in ("Sealed", "Invalid"):
        number = sum(trial["status"]["phase"] == phase for trial in own)
        if number != counts[phase.lower()]:
            wrong.append(f"sweep {name} counts {counts[phase.lower()]} {phase}, and there are {number}")
    if (state == "Complete") != all(trial["status"]["phase"] == "Sealed" for trial in own):
        wrong.append(f"sweep {name} is {state} with trials {sorted(trial['status']['phase'] for trial in own)}")
    said = [end.message for end in seen.ended if end.sweep == name and end.message is not None]
    verdicts = sum(message.result is Result.JUDGED for message in said)
    if not verdicts or counts["groupsJudged"] != 1:
        wrong.append(f"the group of sweep {name} was judged {verdicts} times and counts as {counts['groupsJudged']}")
    reports = {message.seal for message in said if message.result is Result.REPORTED}
    if status.get("reportDigest") not in reports:
        wrong.append(
            f"sweep {name} names the report {status.get('reportDigest')}, and those made are {sorted(map(str, reports))}"
        )
    return wrong


def _of_trial(name: str, status: Any, seen: Seen) -> list[str]:
    phase, reason, attempt = status["phase"], status.get("reason", ""), status["attempt"]
    wrong = []
    row = BY_REASON.get(reason)
    if phase not in {"Sealed", "Invalid"} or row is None or row.effect is Effect.HELD or is_valid(reason) != (phase == "Sealed"):
        wrong.append(f"{name} ended {phase}/{reason}, which is no end of the table")
    if ("reward" in status) != (phase == "Sealed"):
        wrong.append(f"{name} is {phase} with reward {status.get('reward')}")
    stored = {k: seal for (trial, k), seal in seen.bucket.items() if trial == name}
    anchored = status.get("workSealDigest")
    if phase == "Sealed" and anchored != stored.get(str(attempt)):
        wrong.append(f"{name} anchors {anchored}, storage has {stored.get(str(attempt))} of attempt {attempt}")
    if phase == "Sealed" and row is not None and row.effect is Effect.VERIFIED and anchored is None:
        wrong.append(f"{name} ended {reason} without a seal")
    lost = sorted(k for k in stored if int(k) != attempt)
    if lost:
        wrong.append(f"{name} ended with attempt {attempt}, and attempts {lost} had been sealed")
    if not attempt and reason not in UNHEARD:
        wrong.append(f"{name} ended {reason} without an attempt")
    # one whose creation was cut off (504 in the audit log) may be there all the same, and has run then
    there = {*seen.pods, *(pod for pod, _ in seen.ran)}
    silent = [k for k in range(1, attempt + 1) if f"{name}-a{k}" not in there]
    if silent and reason not in UNHEARD:
        wrong.append(f"{name} ended with attempt {attempt}, and attempts {silent} never had a pod")
    again = status.get("lastInvalidReason")
    if again is not None and (again not in BY_REASON or is_valid(again)):
        wrong.append(f"{name} had an attempt that ended {again}, which is no invalid end of the table")
    return wrong + _as_said(name, status, seen)


def _as_said(name: str, status: Any, seen: Seen) -> list[str]:
    """An outcome is what the pods of the attempt that counts said."""
    said = [end.message for end in seen.ended if (end.owner, end.attempt) == (name, str(status["attempt"])) and end.message]
    verdicts = {(message.reason, message.reward) for message in said if message.result is Result.VERDICT}
    told = (status.get("reason"), status.get("reward"))
    if status["phase"] == "Sealed" and status.get("sealDigest") is not None and told not in verdicts:
        return [f"{name} ended {told}, and its verdicts are {sorted(map(str, verdicts))}"]
    invalid = {message.reason for message in said if message.result is Result.WORK_INVALID} - {
        "SessionLost",
        "StorageUnavailable",
    }
    if status["phase"] == "Invalid" and invalid and told[0] not in invalid | UNHEARD:
        return [f"{name} ended {told[0]}, and its session said {sorted(map(str, invalid))}"]
    return []


def _twice(seen: Seen) -> list[str]:
    """Work that was done again although it had succeeded, where no fault took what it had left."""
    done = Counter(
        (end.owner, end.attempt, end.message.result.value) for end in seen.ended if end.message and end.message.result in DONE
    )
    wrong = [f"{owner} (attempt {attempt}) was {result} {n} times" for (owner, attempt, result), n in done.items() if n > 1]
    ran = Counter(JOB_POD.sub("", name) for name, _ in seen.ran)
    succeeded = Counter(end.owner for end in seen.ended if end.message and end.message.result in DONE)
    for name, n in seen.jobs.items():
        if n > 1 + ran[name] - succeeded[name]:
            wrong.append(
                f"Job {name} was created {n} times, and {ran[name] - succeeded[name]} of its pods had failed or vanished"
            )
    return wrong
