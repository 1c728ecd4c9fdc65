"""The audit of an end state finds each kind of wrong: a sweep of two trials that is right, and all that may be wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from realcli.api.termination import Result, Termination
from tests.support.end_audit import Seen, differences, judged
from tests.support.stub_kubelet import Ended

REPORT = "sha256:" + "8" * 64


def seal(digit: int) -> str:
    return f"sha256:{str(digit) * 64}"


def ended(role: str, owner: str, pod: str, attempt: str = "1", **said: Any) -> Ended:
    message = Termination.model_validate({"phase": role.capitalize()} | said)
    return Ended("here", "own", role, owner, attempt, pod, message)


def trial(number: int, mode: str, attempt: int, **status: Any) -> dict[str, Any]:
    found = {"phase": "Sealed", "reason": "Completed", "attempt": attempt, "reward": "1", "workSealDigest": seal(number)}
    return {
        "metadata": {"name": f"own-0000{number}"},
        "spec": {"sweep": "own", "ordinal": number, "mode": mode, "repeat": 1},
        "status": found | {"sealDigest": seal(number + 4)} | status,
    }


def right() -> Seen:
    """Trial 0 went through at once; trial 1 needed a second attempt and a second verify pod; the judge was refused once."""
    sweep = {
        "metadata": {"name": "own"},
        "spec": {"modes": ["EXEC", "COLLAB"], "repeats": 1},
        "status": {
            "state": "Complete",
            "reportDigest": REPORT,
            "counts": {"total": 2, "sealed": 2, "invalid": 0, "groups": 1, "groupsJudged": 1},
        },
    }
    verdict = {"result": Result.VERDICT, "reason": "Completed", "reward": "1"}
    ends = [
        ended("plan", "own-plan", "own-plan-xxxxx", result=Result.PLANNED),
        ended("work", "own-00000", "own-00000-a1", result=Result.WORK_SEALED, reason="Completed", seal=seal(0)),
        ended("verify", "own-00000", "own-00000-a1-v1", **verdict),
        ended("work", "own-00001", "own-00001-a1", result=Result.WORK_INVALID, reason="ProviderUnavailable"),
        ended("work", "own-00001", "own-00001-a2", "2", result=Result.WORK_SEALED, reason="Completed", seal=seal(1)),
        ended("verify", "own-00001", "own-00001-a2-v1", "2", result=Result.NO_VERDICT, reason="StorageUnavailable"),
        ended("verify", "own-00001", "own-00001-a2-v2", "2", **verdict),
        ended("judge", "own-j0000", "own-j0000-xxxxx", result=Result.REFUSED, reason="ProviderUnavailable"),
        ended("judge", "own-j0000", "own-j0000-yyyyy", result=Result.JUDGED, seal=seal(7)),
        ended("report", "own-report", "own-report-xxxxx", result=Result.REPORTED, seal=REPORT),
    ]
    named = [end.pod for end in ends if end.role in ("work", "verify")]
    return Seen(
        namespace="here",
        objects={
            "sweeps": [sweep],
            "trials": [trial(0, "EXEC", 1), trial(1, "COLLAB", 2, lastInvalidReason="ProviderUnavailable", invalidAttempts=1)],
            "jobs": [],
            "pods": [],
            "plans": [],
            "events": [{"metadata": {"name": "e"}, "reason": "AttemptInvalid", "message": "529"}],
        },
        pods=Counter({"": 4} | dict.fromkeys(named, 1)),
        trials=Counter({"own-00000": 1, "own-00001": 1}),
        jobs=Counter({"own-plan": 1, "own-j0000": 2, "own-report": 1}),
        ran=[(end.pod, f"uid-{end.pod}") for end in ends],
        ended=ends,
        bucket={("own-00000", "1"): seal(0), ("own-00001", "2"): seal(1)},
    )


def status(number: int, **values: Any) -> Callable[[Seen], Any]:
    def change(seen: Seen) -> None:
        found = seen.objects["trials"][number]["status"]
        found.update(values)
        for name in [name for name, value in found.items() if value is None]:
            del found[name]

    return change


def sweep_status(**values: Any) -> Callable[[Seen], Any]:
    def change(seen: Seen) -> None:
        found = seen.objects["sweeps"][0]["status"]
        found["counts"] |= values.pop("counts", {})
        found.update(values)

    return change


def more(*ends: Ended) -> Callable[[Seen], Any]:
    return lambda seen: seen.ended.extend(ends)


def without(role: str) -> Callable[[Seen], Any]:
    def change(seen: Seen) -> None:
        seen.ended[:] = [end for end in seen.ended if end.role != role]

    return change


def labelled(seen: Seen) -> None:
    seen.objects["pods"].append({"metadata": {"name": "own-00000-a1", "labels": {"realcli.dev/trial": "own-00000"}}})


def finalized(seen: Seen) -> None:
    seen.objects["trials"][0]["metadata"]["finalizers"] = ["realcli.dev/x"]


def unexplained(seen: Seen) -> None:
    seen.objects["events"].append({"metadata": {"name": "gap"}, "reason": "UnexplainedEnd", "message": "no rule explains it"})


def same_cell(seen: Seen) -> None:
    seen.objects["trials"][1]["spec"]["mode"] = "EXEC"


def trial_lost(seen: Seen) -> None:
    del seen.objects["trials"][1]
    sweep_status(counts={"total": 1, "sealed": 1})(seen)


INVALID = {"phase": "Invalid", "reward": None, "sealDigest": None, "workSealDigest": None}
AGAIN = ended("verify", "own-00000", "own-00000-a1-v2", result=Result.VERDICT, reason="Completed", reward="1")
JUDGED = ended("judge", "own-j0000", "own-j0000-zzzzz", result=Result.JUDGED, seal=seal(7))
BREAKS: dict[str, tuple[Callable[[Seen], Any], str]] = {
    "pod made twice": (lambda seen: seen.pods.update(["own-00000-a1"]), "pod own-00000-a1 was created 2 times"),
    "trial made twice": (lambda seen: seen.trials.update(["own-00000"]), "trial own-00000 was created 2 times"),
    "name ran twice": (lambda seen: seen.ran.append(("own-00000-a1", "other")), "pod own-00000-a1 ran 2 times"),
    "sweep failed": (sweep_status(state="Failed"), "sweep own ended Failed"),
    "trial lost": (trial_lost, "there are trials of [('EXEC', 1)]"),
    "trial of another's cell": (same_cell, "there are trials of [('EXEC', 1), ('EXEC', 1)]"),
    "total of less": (sweep_status(counts={"total": 1}), "sweep own has 1 trials"),
    "wrong count": (sweep_status(counts={"sealed": 1}), "sweep own counts 1 Sealed, and there are 2"),
    "incomplete without cause": (sweep_status(state="Incomplete"), "sweep own is Incomplete"),
    "group not judged": (sweep_status(counts={"groupsJudged": 0}), "counts as 0"),
    "judged by nobody": (without("judge"), "was judged 0 times"),
    "report of another": (sweep_status(reportDigest=seal(9)), "sweep own names the report"),
    "reason of no table": (status(0, reason="Nonsense"), "own-00000 ended Sealed/Nonsense"),
    "phase of another effect": (status(0, reason="ProviderUnavailable"), "own-00000 ended Sealed/ProviderUnavailable"),
    "held for ever": (status(0, phase="Pending", reason="Preempted", reward=None), "own-00000 ended Pending/Preempted"),
    "reward lost": (status(0, reward=None), "own-00000 is Sealed with reward None"),
    "reward of another": (status(0, reward="0"), "own-00000 ended ('Completed', '0')"),
    "reason of another": (status(0, reason="AgentCrashed"), "own-00000 ended ('AgentCrashed', '1')"),
    "anchor of another": (status(0, workSealDigest=seal(1)), "own-00000 anchors"),
    "no anchor": (status(0, workSealDigest=None), "own-00000 anchors None"),
    "no seal at all": (
        lambda seen: (status(0, workSealDigest=None)(seen), seen.bucket.pop(("own-00000", "1"))),
        "own-00000 ended Completed without a seal",
    ),
    "sealed attempt given up": (lambda seen: seen.bucket.update({("own-00001", "1"): seal(3)}), "attempts ['1'] had been sealed"),
    "no attempt": (status(0, attempt=0), "own-00000 ended Completed without an attempt"),
    "attempt without a pod": (
        lambda seen: (seen.pods.pop("own-00001-a1"), seen.ran.remove(("own-00001-a1", "uid-own-00001-a1"))),
        "attempts [1] never had a pod",
    ),
    "pod without an attempt": (
        lambda seen: seen.pods.update(["own-00000-a2"]),
        "work pod own-00000-a2 was created, and no status",
    ),
    "pod of no trial": (lambda seen: seen.pods.update(["own-00009-a1"]), "work pod own-00009-a1 was created, and no status"),
    "retried for a valid end": (status(1, lastInvalidReason="AgentCrashed"), "an attempt that ended AgentCrashed"),
    "invalid for another reason": (
        lambda seen: (
            status(1, **INVALID, reason="NodeLost", attempt=1)(seen),
            sweep_status(state="Incomplete", counts={"sealed": 1, "invalid": 1})(seen),
        ),
        "own-00001 ended NodeLost, and its session said ['ProviderUnavailable']",
    ),
    "verified twice": (more(AGAIN), "own-00000 (attempt 1) was Verdict 2 times"),
    "judged twice": (more(JUDGED), "own-j0000 (attempt 1) was Judged 2 times"),
    "Job without need": (
        lambda seen: seen.jobs.update(["own-j0000"]),
        "Job own-j0000 was created 3 times, and 1 of its pods had",
    ),
    "pod left": (labelled, "pod own-00000-a1 is left"),
    "finalizer": (finalized, "trials own-00000 has the finalizer realcli.dev/x"),
    "gap": (unexplained, "an end without an explanation: no rule explains it"),
}


def test_nothing_is_wrong_with_what_is_right() -> None:
    assert judged(right()) == []


@pytest.mark.parametrize("name", BREAKS)
def test_each_wrong_is_found(name: str) -> None:
    change, expected = BREAKS[name]
    seen = right()
    change(seen)
    assert [wrong for wrong in judged(seen) if expected in wrong], judged(seen)


def test_a_creation_that_was_cut_off_is_one_where_the_pod_ran() -> None:
    seen = right()
    del seen.pods["own-00001-a1"]
    assert judged(seen) == []


def test_what_a_fault_cut_may_be_done_again() -> None:
    seen = right()
    more(AGAIN, JUDGED)(seen)
    assert judged(seen, cut=True) == []
    seen.pods["own-00000-a1"] = 2
    assert judged(seen, frozenset({"own-00000-a1"}), cut=True) == []
    assert judged(replace(seen, trials=Counter(["own-00000"] * 2)), frozenset({"own-00000-a1"}), cut=True) != []


def test_end_states_differ_where_they_do() -> None:
    one = {"trials": [{"status": {"reward": "1"}}, {"status": {}}], "pods": ["a"]}
    assert differences(one, one) == []
    other = {"trials": [{"status": {"reward": "0"}}, {"status": {"turns": 3}}], "pods": []}
    assert differences(other, one) == [
        "pods: [], not ['a']",
        "trials[0].status.reward: '0', not '1'",
        "trials[1].status.turns: 3, not None",
    ]
