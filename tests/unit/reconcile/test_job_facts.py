"""What was read of a Job that is done is not read again, and is not kept beyond a change of the Job or its pods."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from realcli.api.termination import Result, Termination
from realcli_operator.reconcile import jobs
from realcli_operator.reconcile.facts import JobFacts
from realcli_operator.reconcile.jobs import Done, Gone, Running, job_state
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
