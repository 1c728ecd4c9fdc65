"""A session that waits for storage shows as a condition of its trial, and only such a session."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from realcli.api.outcomes import Phase
from realcli.api.sweepstatus import Condition
from realcli.api.trial import TrialStatus
from realcli_operator.kube.views import PodView
from realcli_operator.reconcile.conditions import find, is_true
from realcli_operator.reconcile.plans import TrialPlan
from realcli_operator.reconcile.policy import Policy
from realcli_operator.reconcile.trial import decide_trial

BLOCKED = "StorageBlocked"


def waiting(a: Any, ago: float = 60, agent: str = "terminated", **session: Any) -> PodView:
    """A work pod whose session is not ready since `ago` seconds."""
    containers = (a.container("agent", agent), a.container("session", **({"ready": False, "started_at": a.ago(3600)} | session)))
    unready = a.condition("ContainersReady", "False", "ContainersNotReady", ago=ago)
    pod: PodView = a.pod(containers=containers, conditions=(a.condition("PodScheduled"), unready))
    return pod


def decide(a: Any, status: TrialStatus, *pods: PodView, **values: Any) -> TrialPlan:
    return decide_trial(a.facts(status, *pods, **values), a.now)


def condition(plan: TrialPlan, before: TrialStatus) -> Condition | None:
    return find((plan.status or before).conditions, BLOCKED)


def blocked(a: Any) -> TrialStatus:
    status = decide(a, a.status(), waiting(a)).status
    assert status is not None
    assert is_true(status.conditions, BLOCKED)
    return status


def test_it_is_told_with_what_to_do(a: Any) -> None:
    found = find(blocked(a).conditions, BLOCKED)
    assert found is not None
    assert (found.status, found.reason) == ("True", "StorageUnavailable")
    assert "up to limits.spoolHold (24h)" in found.message
    assert "realcli ledger recover first-00000 -n one" in found.message


def test_it_is_told_once_and_the_trial_goes_on_waiting(a: Any) -> None:
    (note,) = decide(a, a.status(), waiting(a)).events
    assert (note.type, note.reason) == ("Warning", "StorageBlocked")
    assert "realcli ledger recover" in note.message
    again = decide(a, blocked(a), waiting(a))
    assert again == TrialPlan()


def test_a_node_too_busy_to_be_asked_is_no_storage_that_is_away(a: Any) -> None:
    """Before it waits the session lets the agent's container end; a probe that times out meanwhile says nothing of storage."""
    for ago, told in ((60, False), (299, False), (301, True)):
        plan = decide(a, a.status(), waiting(a, ago, agent="running"))
        assert (condition(plan, a.status()) is not None) is told


@pytest.mark.parametrize(
    ("session", "ago"),
    [({"ready": True}, 60), ({}, 3), ({"started_at": "just now"}, 60), ({"state": "waiting"}, 60)],
    ids=["ready", "not for long", "just started", "not started"],
)
def test_what_is_no_waiting_for_storage(a: Any, session: dict[str, Any], ago: float) -> None:
    if session.get("started_at"):
        session = {"started_at": a.ago(3)}
    pod = waiting(a, ago, **session)
    plan = decide(a, a.status(), pod)
    assert condition(plan, a.status()) is None
    if "state" not in session:
        left = None if session.get("ready") else Policy().readiness_grace - 3
        assert plan.requeue_after == left


def test_storage_is_back(a: Any) -> None:
    found = condition(decide(a, blocked(a), a.pod()), a.status())
    assert found is not None
    assert found.status == "False"


@pytest.mark.parametrize("reason", ["Completed", "StorageUnavailable"])
def test_the_end_of_the_work_pod_ends_it(a: Any, reason: str) -> None:
    said = a.work_sealed() if reason == "Completed" else a.work_invalid(reason)
    plan = decide(a, blocked(a), a.ended(said=said))
    assert plan.status is not None
    assert plan.status.phase is Phase.VERIFYING
    found = condition(plan, a.status())
    assert found is not None
    assert found.status == "False"


def test_a_pod_that_is_gone_waits_for_nothing(a: Any) -> None:
    plan = decide(a, blocked(a), absent=frozenset({"first-00000-a1"}))
    found = condition(plan, a.status())
    assert found is not None
    assert found.status == "False"


def test_a_verify_pod_does_not_say_so(a: Any) -> None:
    status = a.status(Phase.VERIFYING)
    session = a.container("session", ready=False, started_at=a.ago(3600))
    pod = replace(a.pod("first-00000-a1-v1"), containers=(a.container("verifier"), session))
    assert condition(decide(a, status, pod), status) is None
