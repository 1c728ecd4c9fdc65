"""Controls, a withdrawn task and a renewal on the cluster: real sessions say what the tests left, real Jobs judge it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from realcli.api.base import sha256_digest
from realcli.ledger.seals import ControlSeal
from tests.support.kind_cluster import LIMIT
from tests.support.kind_runs import IMAGE, Runs, write_suite

pytestmark = pytest.mark.kind

REWARD = "/logs/verifier/reward.txt"
OUT = ["/app/out.txt"]
NO_SECRET = {
    "name": "notes",
    "command": ["/bin/true"],
    "env": [{"name": "TOKEN", "secretRef": {"name": "comes-later", "key": "token"}}],
}


def start(cluster: Any) -> Runs:
    """`hangs`: what the agent leaves hangs tests that the solution passes. `broken`: tests that nobody passes."""
    runs: Runs = cluster.runs
    suite = runs.folder / "controlled"
    hangs = f'[ "$(cat /app/out.txt)" = solved ] || sleep 600; echo 1 > {REWARD}'
    write = "echo done > /app/out.txt"
    solved = {"solution": "echo solved > /app/out.txt", "verifier_seconds": 4.0, "cpus": "0.1"}
    write_suite(suite, "broken", [write], IMAGE, OUT, "true", **solved)
    write_suite(suite, "hangs", [write], IMAGE, OUT, hangs, **solved)
    given: dict[str, Any] = {"modes": ["EXEC"], "retry": {"infrastructure": 0, "backoff": "1s"}}
    runs.start_suite("controlled", suite, agents=[{"name": "claude-code", "version": "2.1.140"}], repeats=2, **given)
    late = write_suite(runs.folder / "renewed", "renewed", [write], IMAGE, OUT, f"echo 1 > {REWARD}", cpus="0.1")
    runs.start_suite(
        "renewed",
        late,
        agents=[{"name": "claude-code", "version": "2.1.140", "mcpServers": [NO_SECRET]}],
        limits={"setup": "45s", "exec": {"deadline": "5m"}},
        **given,
    )
    return runs


def trials(runs: Runs, sweep: str, task: str) -> list[dict[str, Any]]:
    return [t for t in runs.kube.list("trials", f"realcli.dev/sweep={sweep}") if t["spec"]["task"] == task]


@pytest.fixture(scope="module")
def controlled(started: Runs) -> dict[str, Any]:
    found: dict[str, Any] = started.kube.sweep_ended("controlled")
    return found


def test_tests_that_only_the_agents_work_hangs_are_its_own_doing(started: Runs, controlled: dict[str, Any]) -> None:
    ended = [trial["status"] for trial in trials(started, "controlled", "hangs")]
    assert [(s["phase"], s["reason"], s["reward"], s["verifyAttempt"]) for s in ended] == [
        ("Sealed", "VerifierTimeout", "0", 3)
    ] * 2
    (row,) = [row for row in controlled["status"]["controls"] if row["task"] == "hangs"]
    assert row["result"] == "Passed"
    end = row["end"]
    assert [s["control"] for s in ended] == [end, end], "one control, whose result is reused"
    folder = f"trials/{end['ordinal']:05d}/attempt-{end['attempt']}/control-{end['number']}"
    sealed = started.below(controlled).read(f"{folder}/seal.json")
    assert sha256_digest(sealed) == end["seal"]
    seal = ControlSeal.model_validate_json(sealed)
    assert (seal.intact(), seal.passed, seal.reward) == (True, True, "1")
    controls = [name for name in started.below(controlled).names() if "/control-" in name and name.endswith("/seal.json")]
    assert len(controls) == 2, "one for each task"


def test_a_task_whose_own_solution_fails_is_withdrawn(started: Runs, controlled: dict[str, Any]) -> None:
    status = controlled["status"]
    (gone,) = status["withdrawn"]
    assert (gone["task"], status["state"]) == ("broken", "Incomplete")
    (row,) = [row for row in status["controls"] if row["task"] == "broken"]
    assert (row["result"], row["end"]["detail"].split(":")[0]) == ("Failed", "NoReward")
    assert {(t["status"]["phase"], t["status"]["reason"]) for t in trials(started, "controlled", "broken")} == {
        ("Invalid", "VerifierFault")
    }
    counts = status["counts"]
    assert (counts["tasksWithdrawn"], counts["groupsWithdrawn"], counts["groupsJudged"], counts["sealed"]) == (1, 1, 1, 2)
    assert "rExec" not in status
    report = started.s3.below(status["reportURI"]).json("summary.json")
    assert [one["task"] for one in report["withdrawn"]] == ["broken"]
    assert (report["counts"]["withdrawn"], report["counts"]["valid"]) == (2, 2)
    assert {t["phase"] for t in report["trials"] if t["task"] == "broken"} == {"Withdrawn"}
    (configuration,) = report["configurations"]
    assert configuration["exec"]["r"]["exact"] == "0", "of the other task alone: two runs that hung its tests"

    started.kube.run("patch", "sweep", "controlled", "--type=merge", "-p", json.dumps({"spec": {"allowIncomplete": True}}))
    started.kube.until("the scores in the status", 60, lambda: started.kube.get("sweep", "controlled")["status"].get("rExec"))


def test_what_ended_invalid_runs_again_when_it_is_asked_to(started: Runs) -> None:
    """A Secret that comes too late. Meanwhile the sweep has ended, and was reported as far as it went."""
    kube = started.kube
    first = kube.sweep_ended("renewed")
    assert (first["status"]["state"], first["status"]["counts"]["invalid"]) == ("Incomplete", 1)
    (trial,) = trials(started, "renewed", "renewed")
    assert (trial["status"]["phase"], trial["status"]["reason"], trial["status"]["round"]) == ("Invalid", "SetupTimeout", 1)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "comes-later"}, "stringData": {"token": "not-so-secret"}}
    kube.apply(secret)
    kube.run("patch", "sweep", "renewed", "--type=merge", "-p", json.dumps({"spec": {"retryInvalid": 1}}))
    kube.until("the new report", LIMIT, lambda: kube.get("sweep", "renewed")["status"]["state"] == "Complete")
    status = kube.get("sweep", "renewed")["status"]
    (trial,) = trials(started, "renewed", "renewed")
    ended = trial["status"]
    assert (ended["reason"], ended["reward"], ended["attempt"], ended["round"]) == ("Completed", "1", 2, 2)
    assert (status["round"], status["counts"]["invalid"], status["rExec"]) == (2, 0, "1.000")
    assert status["reportURI"] != first["status"]["reportURI"]
    judgements = [name for name in started.below(first).names() if "/group-" in name]
    assert sorted(name.rpartition("/")[2] for name in judgements) == ["group-1.json", "group-2.json"], "the earlier one stays"
