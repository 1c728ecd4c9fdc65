"""The audit of `make bench-operator` finds what it is for: something twice, something lost, a read, a group judged too early."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bench.operator.audit import Found, audit, main, of_folder
from bench.operator.ends import Bucket, Size
from bench.operator.traces import Traces, requests

Json = dict[str, Any]
SEAL = "sha256:{}"
BEGIN = datetime(2026, 12, 1, 12, tzinfo=UTC).timestamp()


@dataclass
class Run:
    """A run of four trials of two groups, as its traces would be. Each request takes a second."""

    log: list[Json] = field(default_factory=list)
    journal: list[Json] = field(default_factory=list)
    bucket: dict[str, str] = field(default_factory=dict)
    trials: list[Json] = field(default_factory=list)
    left: set[str] = field(default_factory=set)
    state: str = "Complete"

    def asked(
        self, verb: str, resource: str, name: str = "", *, user: str = "operator", code: int = 200, uri: str = "", sub: str = ""
    ) -> None:
        received, at = (
            datetime.fromtimestamp(BEGIN + len(self.log) + later, UTC).isoformat().replace("+00:00", "Z") for later in (0.0, 0.5)
        )
        ref = {"resource": resource, "name": name} | ({"subresource": sub} if sub else {})
        self.log.append(
            {
                "stage": "ResponseComplete", "verb": verb, "user": {"username": user}, "objectRef": ref,
                "responseStatus": {"code": code}, "requestReceivedTimestamp": received, "stageTimestamp": at,
                "requestURI": uri or f"/{resource}/{name}",
            }
        )  # fmt: skip

    def ended(self, pod: str, role: str, work_seal: str | None = None, key: str = "") -> None:
        line = {"pod": pod, "uid": f"uid-{pod}", "role": role, "new": True, "at": BEGIN + len(self.log)}
        if role != "plan":
            line |= {"key": key or pod, "digest": SEAL.format(pod), "workSeal": work_seal}
            self.bucket[key or pod] = SEAL.format(pod)
        self.journal.append(line)

    def trial(self, ordinal: int) -> None:
        name = f"bench-{ordinal:05d}"
        work, verify = f"{name}-a1", f"{name}-a1-v1"
        self.asked("create", "trials", name, code=201)
        self.asked("create", "pods", work, code=201)
        self.asked("patch", "trials", name, sub="status")
        self.ended(work, "work")
        self.asked("create", "pods", verify, code=201)
        self.asked("patch", "trials", name, sub="status")
        self.asked("delete", "pods", work)
        self.ended(verify, "verify", SEAL.format(work))
        self.asked("patch", "trials", name, sub="status")
        self.asked("delete", "pods", verify)
        spec = {"configuration": f"c{ordinal // 2}", "task": "t", "mode": ("COLLAB", "EXEC")[ordinal % 2], "repeat": 1}
        status = {
            "phase": "Sealed", "attempt": 1, "verifyAttempt": 1,
            "workSealDigest": SEAL.format(work), "sealDigest": SEAL.format(verify),
        }  # fmt: skip
        self.trials.append({"metadata": {"name": name}, "spec": spec, "status": status})

    def judge(self, group: int) -> None:
        self.asked("create", "jobs", f"bench-j000{group}", code=201)
        self.ended(f"bench-j000{group}-x", "judge", key=f"s/judgements/00000000/c{group}/t/group-1.json")

    def event(self, verb: str, name: str) -> Json:
        """The first request of that verb about that object."""
        return next(e for e in self.log if (e["verb"], e["objectRef"].get("name")) == (verb, name))

    def line(self, pod: str) -> Json:
        """Of the journal."""
        return next(line for line in self.journal if line["pod"] == pod)

    def found(self) -> Found:
        sweep = {"status": {"state": self.state, "counts": {"sealed": 4, "groupsJudged": 2}}}
        log = requests(map(json.dumps, self.log))
        return audit(Traces(log, self.journal, self.bucket, self.trials, self.left, sweep), 4, 2)


@pytest.fixture
def run() -> Run:
    made = Run()
    made.asked("create", "pods", uri="/api/v1/namespaces/bench/pods?dryRun=All", code=201)
    made.asked("create", "jobs", "bench-plan", code=201)
    made.ended("bench-plan-x", "plan")
    for group in range(2):
        made.trial(2 * group)
        made.trial(2 * group + 1)
        made.judge(group)
    made.asked("create", "jobs", "bench-report", code=201)
    made.ended("bench-report-x", "report")
    made.asked("patch", "pods", "bench-00000-a1", user="kwok", sub="status")
    return made


def test_a_clean_run_has_no_findings_and_its_figures(run: Run) -> None:
    found = run.found()
    assert found.findings == []
    assert (found.trials, found.pods, found.groups) == (4, 8, 2)
    assert (found.writes_per_trial, found.all_writes_per_trial, found.reads_per_trial) == (8.0, 9.0, 0.0)
    assert found.asked == {"ask whether to create pods": 1}
    assert found.writes_of_all == {"operator": 37, "kwok": 1}
    assert (found.first - BEGIN, found.last - BEGIN) == (3.5, 33.5), "first pod created, last status of a trial; when answered"
    assert found.judged_meanwhile == 1


def _again(run: Run) -> None:
    run.asked("create", "pods", "bench-00001-a1", code=201)


def _trial_again(run: Run) -> None:
    run.asked("create", "trials", "bench-00001", code=201)


def _job_again(run: Run) -> None:
    run.asked("create", "jobs", "bench-j0001", code=201)


def _second_attempt(run: Run) -> None:
    run.asked("create", "pods", "bench-00001-a2", code=201)
    run.asked("delete", "pods", "bench-00001-a2")
    run.ended("bench-00001-a2", "work")


def _took_two_attempts(run: Run) -> None:
    run.trials[1]["status"]["attempt"] = 2


def _took_two_verifies(run: Run) -> None:
    run.trials[1]["status"]["verifyAttempt"] = 2


def _under_two_uids(run: Run) -> None:
    run.journal.append(run.line("bench-00000-a1") | {"uid": "another"})


def _bucket_had_it(run: Run) -> None:
    run.line("bench-00000-a1")["new"] = False


def _pod_lost(run: Run) -> None:
    run.journal.remove(run.line("bench-00001-a1-v1"))


def _pod_left(run: Run) -> None:
    run.left.add("bench-00000-a1")


def _not_deleted(run: Run) -> None:
    run.log.remove(run.event("delete", "bench-00000-a1"))


def _deleted_by_another(run: Run) -> None:
    run.asked("delete", "pods", "bench-00000-a1", user="controller-manager")


def _trial_deleted(run: Run) -> None:
    run.asked("delete", "trials", "bench-00000")


def _job_deleted(run: Run) -> None:
    run.asked("delete", "jobs", "bench-j0000", user="controller-manager")


def _all_deleted(run: Run) -> None:
    run.asked("deletecollection", "pods", user="admin")


def _never_created(run: Run) -> None:
    run.log.remove(run.event("create", "bench-00000-a1"))


def _refused_creation(run: Run) -> None:
    run.event("create", "bench-00000-a1")["responseStatus"]["code"] = 400


def _created_by_another(run: Run) -> None:
    run.event("create", "bench-00000-a1")["user"]["username"] = "admin"


def _there_already(run: Run) -> None:
    run.event("create", "bench-00000-a1")["responseStatus"]["code"] = 409


def _trial_lost(run: Run) -> None:
    run.trials.pop()


def _trial_invalid(run: Run) -> None:
    run.trials[0]["status"] |= {"phase": "Invalid", "reason": "PodLost"}


def _another_seal(run: Run) -> None:
    run.trials[0]["status"]["sealDigest"] = "sha256:of another"


def _another_work_seal(run: Run) -> None:
    run.trials[0]["status"]["workSealDigest"] = "sha256:of another"


def _verified_another(run: Run) -> None:
    run.line("bench-00000-a1-v1")["workSeal"] = "sha256:of another"


def _not_in_the_bucket(run: Run) -> None:
    del run.bucket["bench-00000-a1"]


def _changed_in_the_bucket(run: Run) -> None:
    run.bucket["bench-00000-a1"] = "sha256:of another"


def _stray_in_the_bucket(run: Run) -> None:
    run.bucket["stray"] = "sha256:of nobody"


def _same_run_twice(run: Run) -> None:
    run.trials[1]["spec"] = run.trials[0]["spec"]


def _another_product(run: Run) -> None:
    run.trials[0]["spec"]["repeat"] = 2


def _not_judged(run: Run) -> None:
    run.journal.remove(run.line("bench-j0001-x"))


def _another_group_judged(run: Run) -> None:
    run.line("bench-j0001-x")["key"] = "s/judgements/00000000/c7/t/group-1.json"


def _judge_job_of_nobody(run: Run) -> None:
    run.log.remove(run.event("create", "bench-j0001"))


def _judged_too_early(run: Run) -> None:
    run.asked("patch", "trials", "bench-00000", sub="status")


def _no_report(run: Run) -> None:
    run.journal.remove(run.line("bench-report-x"))


def _two_plans(run: Run) -> None:
    run.ended("bench-plan-y", "plan")


def _incomplete(run: Run) -> None:
    run.state = "Incomplete"


@pytest.mark.parametrize(
    ("happened", "said"),
    [
        (_again, "pod bench-00001-a1 was created 2 times"),
        (_trial_again, "Trial bench-00001 was created 2 times"),
        (_job_again, "Job bench-j0001 was created 2 times"),
        (_second_attempt, "pod bench-00001-a2 is nobody's first work or verify pod"),
        (_second_attempt, "5 work pods ended, 4 should have"),
        (_took_two_attempts, "trial bench-00001 took attempt 2, verify 1"),
        (_took_two_attempts, "trial bench-00001 is sealed without a pod bench-00001-a2"),
        (_took_two_verifies, "trial bench-00001 took attempt 1, verify 2"),
        (_under_two_uids, "pod bench-00000-a1 ran under 2 uids"),
        (_bucket_had_it, "pod bench-00000-a1 found its object in the bucket already: bench-00000-a1"),
        (_pod_lost, "pod bench-00001-a1-v1 is lost: it was created and has left nothing in the bucket"),
        (_pod_lost, "3 verify pods ended, 4 should have"),
        (_pod_lost, "no pod wrote bench-00001-a1-v1, and the bucket has it"),
        (_not_deleted, "pod bench-00000-a1: the operator never asked for its deletion"),
        (_deleted_by_another, "pod bench-00000-a1 was deleted by controller-manager"),
        (_trial_deleted, "operator deleted bench-00000 of trials"),
        (_job_deleted, "controller-manager deleted bench-j0000 of jobs"),
        (_all_deleted, "admin deleted all of pods"),
        (_pod_left, "pod bench-00000-a1 is still there"),
        (_never_created, "pod bench-00000-a1 ended, and the operator never created it"),
        (_refused_creation, "pod bench-00000-a1 ended, and the operator never created it"),
        (_created_by_another, "pod bench-00000-a1 ended, and the operator never created it"),
        (_there_already, "pod bench-00000-a1 ended, and the operator never created it"),
        (_trial_lost, "3 trials at the end, 4 in the plan"),
        (_trial_invalid, "trial bench-00000 is lost: it ended Invalid PodLost"),
        (_another_seal, "trial bench-00000: its status names sha256:of another"),
        (_another_work_seal, "trial bench-00000: its status names sha256:of another"),
        (_verified_another, "trial bench-00000: what was verified is not what its work pod sealed"),
        (_not_in_the_bucket, "the bucket has nothing at bench-00000-a1, its pod wrote sha256:bench-00000-a1"),
        (_changed_in_the_bucket, "the bucket has sha256:of another at bench-00000-a1, its pod wrote sha256:bench-00000-a1"),
        (_stray_in_the_bucket, "no pod wrote stray, and the bucket has it"),
        (_same_run_twice, "trials bench-00000 and bench-00001 are the same run: c0, t, COLLAB, 1"),
        (_another_product, "the trials are of a product of 8 runs, 4 in the plan"),
        (_not_judged, "1 judge pods ended, 2 should have"),
        (_not_judged, "group c1, t was never judged"),
        (_another_group_judged, "pod bench-j0001-x judged c7, t, which is no group of the trials"),
        (_judge_job_of_nobody, "pod bench-j0001-x judged c1, t, and the operator never created Job bench-j0001"),
        (_judged_too_early, "group c0, t was given to Job bench-j0000 "),
        (_no_report, "0 report pods ended, 1 should have"),
        (_two_plans, "2 plan pods ended, 1 should have"),
        (_incomplete, "the sweep says Incomplete, 4 sealed, 2 groups judged; 4 and 2 should be"),
    ],
)
def test_what_must_not_happen_is_found(run: Run, happened: Callable[[Run], None], said: str) -> None:
    happened(run)
    assert any(finding.startswith(said) for finding in run.found().findings), run.found().findings


def test_a_second_judge_job_of_a_group_is_found(run: Run) -> None:
    run.asked("create", "jobs", "bench-j0009", code=201)
    run.ended("bench-j0009-x", "judge", key="s/judgements/00000000/c1/t/group-1.json")
    run.line("bench-j0009-x")["new"] = False
    findings = run.found().findings
    assert "3 judge pods ended, 2 should have" in findings
    assert run.found().groups == 2, "groups, not pods"


def test_a_creation_that_was_refused_is_no_second_one(run: Run) -> None:
    run.asked("create", "pods", "bench-00001-a1", code=409)
    found = run.found()
    assert found.findings == []
    assert found.refused == {"create pods 409": 1}
    assert found.writes_per_trial == 8.25, "but it is a write"


def test_what_others_asked_for_in_vain_or_of_others_is_nothing(run: Run) -> None:
    run.asked("delete", "pods", "bench-00000-a1", user="controller-manager", code=409)
    run.asked("delete", "pods", "bench-plan-x", user="controller-manager")
    run.asked("delete", "pods", "bench-00000-a1", user="kwok")
    run.asked("delete", "trials", "bench-00000", user="controller-manager", code=404)
    run.asked("deletecollection", "pods", user="controller-manager", code=403)
    assert run.found().findings == []


@pytest.mark.parametrize(("at", "number"), [(33.5, 2), (33.6, 0)])
def test_judged_meanwhile_is_until_the_last_status_of_a_trial(run: Run, at: float, number: int) -> None:
    for line in run.journal:
        if line["role"] == "judge":
            line["at"] = BEGIN + at
    assert run.found().judged_meanwhile == number


def _unanswered(run: Run, verb: str, *codes: int) -> None:
    run.event(verb, "bench-00000-a1")["responseStatus"]["code"] = 504
    for code in codes:
        run.asked(verb, "pods", "bench-00000-a1", code=code)


def test_what_the_server_did_without_an_answer_was_done_once(run: Run) -> None:
    _unanswered(run, "create", 409)
    _unanswered(run, "delete")
    run.event("create", "bench-00001-a1")["responseStatus"]["code"] = 0  # the client was killed
    run.asked("create", "pods", "bench-00001-a1", code=409)
    assert run.found().findings == []


def test_a_pod_that_the_next_operator_found_in_a_list_was_created(run: Run) -> None:
    _unanswered(run, "create")
    assert run.found().findings == []
    run.journal = [line for line in run.journal if line["pod"] != "bench-00000-a1"]
    assert "trial bench-00000 is sealed without a pod bench-00000-a1" in run.found().findings


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
    assert found.reads_per_trial == 0.25
    assert found.gets == {"get pods": 1, "get configmaps": 1}
    assert found.lists == {"list trials": 1}


def test_a_line_that_was_cut_is_no_empty_line() -> None:
    with pytest.raises(ValueError, match="line 2 of the audit log is no JSON"):
        list(requests(['{"stage": "RequestReceived"}', '{"stage": "Resp']))


def test_a_folder_is_read_as_it_lies_there(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bucket is opened, and the parts of the log that were rotated away come first."""
    stand_in = Bucket(tmp_path / "bucket", tmp_path / "journal.jsonl")
    run.bucket.clear()
    for line in run.journal:
        if "key" in line:
            line["digest"], line["new"] = stand_in.put(line["key"], {"pod": line["pod"]})
    for trial in run.trials:
        name, status = trial["metadata"]["name"], trial["status"]
        work, verify = run.line(f"{name}-a1"), run.line(f"{name}-a1-v1")
        status["workSealDigest"] = verify["workSeal"] = work["digest"]
        status["sealDigest"] = verify["digest"]
    (tmp_path / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in run.journal))
    half = len(run.log) // 2
    for name, events in (("audit-2026-12-01T12-00-00.000.log", run.log[:half]), ("audit.log", run.log[half:])):
        (tmp_path / name).write_text("".join(json.dumps(event) + "\n" for event in events))
    sweep = {"status": {"state": "Complete", "counts": {"sealed": 4, "groupsJudged": 2}}}
    for name, document in (("trials", run.trials), ("pods", []), ("sweep", sweep)):
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    assert of_folder(tmp_path, 4, 2).findings == []
    (tmp_path / "bucket" / "bench-00000-a1").write_text("changed")
    (finding,) = of_folder(tmp_path, 4, 2).findings
    assert finding.startswith("the bucket has sha256:")
    (tmp_path / "size.json").write_text(json.dumps({"trials": 4, "groups": 2}))
    monkeypatch.setattr(sys, "argv", ["audit", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert json.loads(capsys.readouterr().out)["findings"] == [finding]
    for path in tmp_path.glob("audit*.log"):
        path.unlink()
    with pytest.raises(FileNotFoundError, match="no audit log"):
        of_folder(tmp_path, 4, 2)


def test_the_size_is_a_product() -> None:
    assert (Size.of(19_998).trials, Size.of(19_998).groups) == (19_998, 3_333)
