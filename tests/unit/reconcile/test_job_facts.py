"""What was read of a Job that is done is not read again, and is not kept beyond a change of the Job or its pods."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from realcli.api.termination import Result, Termination
from realcli_operator.reconcile import jobs
from realcli_operator.reconcile.facts import JobFacts
from realcli_operator.reconcile.jobs import Done, Gone, Lost, Running, job_state
from realcli_operator.reconcile.policy import Policy


@pytest.fixture
def done(a: Any) -> JobFacts:
    said = Termination(phase="Judge", result=Result.JUDGED, seal="sha256:" + "7" * 64)
    facts: JobFacts = a.done_job("judge", said.encode().decode(), "first-j0000")
    return facts


def _state(a: Any, facts: JobFacts, later: float = 0.0) -> Any:
    return job_state(facts, "judge", a.ago(-later), Policy())


def test_a_done_job_is_read_once(a: Any, done: JobFacts, monkeypatch: pytest.MonkeyPatch) -> None:
    first = _state(a, done)
    assert isinstance(first, Done)
    monkeypatch.setattr(jobs, "parse_termination", lambda text: None)
    jobs._parsed.cache_clear()
    assert _state(a, done) is first
    assert done == JobFacts(done.job, done.pods), "what was read is no part of what it is"
    jobs._parsed.cache_clear()


def test_the_same_job_keeps_its_facts_and_another_does_not(done: JobFacts) -> None:
    assert done.of(done.job, done.pods) is done
    assert done.of(done.job, ()) is not done
    assert done.of(replace(done.job, resource_version=99), done.pods) is not done
    assert done.of(done.job, tuple(replace(pod, reason="x") for pod in done.pods)) is not done


def test_a_done_job_whose_pod_goes_is_gone(a: Any, done: JobFacts) -> None:
    _state(a, done)
    without = done.of(done.job, ())
    assert isinstance(_state(a, without, later=1e6), Gone)


def test_what_may_change_with_time_is_not_kept(a: Any, done: JobFacts) -> None:
    fresh = done.of(done.job, ())
    assert isinstance(_state(a, fresh, later=-1e6), Running)
    assert fresh.read == []
    assert isinstance(_state(a, fresh, later=1e6), Gone)


CONTAINERS = {"runs": "running", "waits": "waiting"}


@pytest.mark.parametrize("stands", CONTAINERS)
def test_a_pod_whose_node_does_not_confirm_its_deletion_is_lost(a: Any, stands: str) -> None:
    """A Job with a pod failure policy makes no other pod before the first has ended, which a lost node never says."""
    policy = Policy()
    containers = (a.container("judge", CONTAINERS[stands]),)

    def state(overdue: float) -> Any:
        pod = a.job_pod("judge", deletion_timestamp=a.ago(overdue), containers=containers, start_time=a.ago(5000))
        return job_state(JobFacts(a.job("first-j0000"), (pod,)), "judge", a.ago(0), policy, limit=1e6)

    patient = state(policy.node_lost_grace - 1)
    assert isinstance(patient, Running)
    assert (patient.again, patient.blocked) == (1.0, None)
    lost = state(policy.node_lost_grace + 40)
    assert isinstance(lost, Lost)
    assert "n1" in lost.why
    assert "judge-pod" in lost.why
    assert lost.since == a.ago(40), "the back-off begins once, not with each look"


def test_a_pod_that_ended_while_it_was_deleted_is_its_jobs_to_count(a: Any) -> None:
    """It is not lost with its node: the Job goes on by itself."""
    pod = a.job_pod("judge", "no message", phase="Failed", deletion_timestamp=a.ago(1e6))
    assert job_state(JobFacts(a.job("first-j0000"), (pod,)), "judge", a.ago(0), Policy()) == Running()
