"""The audit of `make bench-operator` finds what it is for: something twice, something lost, a read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from bench.operator.audit import Found, audit, requests

Json = dict[str, Any]
SEAL = "sha256:{}"


@dataclass
class Run:
    """A run of two trials of one group, as its traces would be."""

    log: list[Json] = field(default_factory=list)
    journal: list[Json] = field(default_factory=list)
    trials: list[Json] = field(default_factory=list)
    left: set[str] = field(default_factory=set)

    def asked(
        self, verb: str, resource: str, name: str = "", *, user: str = "operator", code: int = 200, uri: str = "", sub: str = ""
    ) -> None:
        at = f"2026-12-01T12:00:{len(self.log) % 60:02d}.000000Z"
        ref = {"resource": resource, "name": name} | ({"subresource": sub} if sub else {})
        self.log.append(
            {
                "stage": "ResponseComplete", "verb": verb, "user": {"username": user}, "objectRef": ref,
                "responseStatus": {"code": code}, "requestReceivedTimestamp": at, "stageTimestamp": at,
                "requestURI": uri or f"/{resource}/{name}",
            }
        )  # fmt: skip

    def ended(self, pod: str, role: str, work_seal: str | None = None) -> None:
        self.journal.append(
            {
                "pod": pod,
                "uid": f"uid-{pod}",
                "role": role,
                "key": pod,
                "digest": SEAL.format(pod),
                "new": True,
                "workSeal": work_seal,
                "at": 0.0,
            }
        )

    def found(self) -> Found:
        return audit(requests(map(json.dumps, self.log)), self.journal, self.trials, self.left, 2, 1)


@pytest.fixture
def run() -> Run:
    made = Run()
    made.asked("create", "pods", uri="/api/v1/namespaces/bench/pods?dryRun=All", code=201)
    made.ended("bench-plan-x", "plan")
    for ordinal in range(2):
        name = f"bench-{ordinal:05d}"
        work, verify = f"{name}-a1", f"{name}-a1-v1"
        made.asked("create", "trials", name, code=201)
        made.asked("create", "pods", work, code=201)
        made.asked("patch", "trials", name, sub="status")
        made.ended(work, "work")
        made.asked("create", "pods", verify, code=201)
        made.asked("patch", "trials", name, sub="status")
        made.asked("delete", "pods", work)
        made.ended(verify, "verify", SEAL.format(work))
        made.asked("patch", "trials", name, sub="status")
        made.asked("delete", "pods", verify)
        status = {
            "phase": "Sealed", "attempt": 1, "verifyAttempt": 1,
            "workSealDigest": SEAL.format(work), "sealDigest": SEAL.format(verify),
        }  # fmt: skip
        made.trials.append({"metadata": {"name": name}, "status": status})
    made.asked("create", "jobs", "bench-j0000", code=201)
    made.ended("bench-j0000-x", "judge")
    made.ended("bench-report-x", "report")
    made.asked("patch", "pods", "bench-00000-a1", user="kwok", sub="status")
    return made


def test_a_clean_run_has_no_findings_and_its_figures(run: Run) -> None:
    found = run.found()
    assert found.findings == []
    assert (found.trials, found.pods, found.groups) == (2, 4, 1)
    assert (found.writes_per_trial, found.all_writes_per_trial, found.reads_per_trial) == (8.0, 8.5, 0.0)
    assert found.asked == {"ask whether to create pods": 1}
    assert found.writes_of_all == {"operator": 18, "kwok": 1}
    assert 0 < found.first < found.last


def _again(run: Run) -> None:
    run.asked("create", "pods", "bench-00001-a1", code=201)


def _trial_again(run: Run) -> None:
    run.asked("create", "trials", "bench-00001", code=201)


def _second_attempt(run: Run) -> None:
    run.asked("create", "pods", "bench-00001-a2", code=201)
    run.asked("delete", "pods", "bench-00001-a2")
    run.ended("bench-00001-a2", "work")


def _under_two_uids(run: Run) -> None:
    run.journal.append(run.journal[1] | {"uid": "another"})


def _bucket_had_it(run: Run) -> None:
    run.journal[1]["new"] = False


def _pod_lost(run: Run) -> None:
    run.journal = [line for line in run.journal if line["pod"] != "bench-00001-a1-v1"]


def _pod_left(run: Run) -> None:
    run.left.add("bench-00000-a1")


def _not_deleted(run: Run) -> None:
    run.log = [e for e in run.log if (e["verb"], e["objectRef"].get("name")) != ("delete", "bench-00000-a1")]


def _never_created(run: Run) -> None:
    run.log = [e for e in run.log if (e["verb"], e["objectRef"].get("name")) != ("create", "bench-00000-a1")]


def _refused_creation(run: Run) -> None:
    event = next(e for e in run.log if (e["verb"], e["objectRef"].get("name")) == ("create", "bench-00000-a1"))
    event["responseStatus"]["code"] = 403


def _trial_lost(run: Run) -> None:
    run.trials.pop()


def _trial_invalid(run: Run) -> None:
    run.trials[0]["status"] |= {"phase": "Invalid", "reason": "PodLost"}


def _another_seal(run: Run) -> None:
    run.trials[0]["status"]["sealDigest"] = "sha256:of another"


def _verified_another(run: Run) -> None:
    run.journal[2]["workSeal"] = "sha256:of another"


def _not_judged(run: Run) -> None:
    run.journal = [line for line in run.journal if line["role"] != "judge"]


@pytest.mark.parametrize(
    ("happened", "said"),
    [
        (_again, "pod bench-00001-a1 was created 2 times"),
        (_trial_again, "Trial bench-00001 was created 2 times"),
        (_second_attempt, "pod bench-00001-a2 is nobody's first work or verify pod"),
        (_under_two_uids, "pod bench-00000-a1 ran under 2 uids"),
        (_bucket_had_it, "pod bench-00000-a1 found its object in the bucket already: bench-00000-a1"),
        (_pod_lost, "pod bench-00001-a1-v1 is lost: it was created and has left nothing in the bucket"),
        (_not_deleted, "pod bench-00000-a1: the operator never asked for its deletion"),
        (_pod_left, "pod bench-00000-a1 is still there"),
        (_never_created, "pod bench-00000-a1 ended, and the operator never created it"),
        (_refused_creation, "pod bench-00000-a1 ended, and the operator never created it"),
        (_trial_lost, "1 trials at the end, 2 in the plan"),
        (_trial_invalid, "trial bench-00000 is lost: it ended Invalid PodLost"),
        (_another_seal, "trial bench-00000: its status names sha256:of another"),
        (_verified_another, "trial bench-00000: what was verified is not what its work pod sealed"),
        (_not_judged, "0 judge pods ended, 1 should have"),
    ],
)
def test_what_must_not_happen_is_found(run: Run, happened: Callable[[Run], None], said: str) -> None:
    happened(run)
    assert any(finding.startswith(said) for finding in run.found().findings), run.found().findings


def test_a_creation_that_was_refused_is_no_second_one(run: Run) -> None:
    run.asked("create", "pods", "bench-00001-a1", code=409)
    found = run.found()
    assert found.findings == []
    assert found.refused == {"create pods 409": 1}
    assert found.writes_per_trial == 8.5, "but it is a write"


def _unanswered(run: Run, verb: str, *codes: int) -> None:
    event = next(e for e in run.log if (e["verb"], e["objectRef"].get("name")) == (verb, "bench-00000-a1"))
    event["responseStatus"]["code"] = 504
    for code in codes:
        run.asked(verb, "pods", "bench-00000-a1", code=code)


def test_what_the_server_did_without_an_answer_was_done_once(run: Run) -> None:
    _unanswered(run, "create", 409)
    _unanswered(run, "delete")
    assert run.found().findings == []


def test_a_second_pod_after_no_answer_is_found(run: Run) -> None:
    _unanswered(run, "create", 201, 409, 201)
    assert run.found().findings == ["pod bench-00000-a1 was created 2 times"]


def test_no_answer_is_no_deletion(run: Run) -> None:
    _unanswered(run, "delete", 504)
    run.left = {"bench-00000-a1", "bench-j0000-x"}
    assert run.found().findings == ["pod bench-00000-a1 is still there"], "pods of judge Jobs stay"


def test_reads_are_counted_and_lists_apart(run: Run) -> None:
    run.asked("get", "pods", "bench-00000-a1")
    run.asked("get", "configmaps", "bench-plan")
    run.asked("list", "trials")
    run.asked("get", "pods", "bench-00000-a1", user="scheduler")
    found = run.found()
    assert found.reads_per_trial == 0.5
    assert found.gets == {"get pods": 1, "get configmaps": 1}
    assert found.lists == {"list trials": 1}


def test_a_line_that_was_cut_is_no_empty_line() -> None:
    with pytest.raises(ValueError, match="line 2 of the audit log is no JSON"):
        list(requests(['{"stage": "RequestReceived"}', '{"stage": "Resp']))
