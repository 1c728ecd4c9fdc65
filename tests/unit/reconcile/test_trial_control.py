"""`decide_trial` by tables: what a verify without a verdict counts as, the control's own pods, withdrawal and renewal."""

from __future__ import annotations

from typing import Any

import pytest

from realcli.api.outcomes import Phase
from realcli.api.sweepstatus import ControlEnd, ControlRow
from realcli.api.termination import Result
from realcli.api.trial import Awaiting, TrialStatus
from realcli_operator.reconcile.control import candidate
from realcli_operator.reconcile.plans import PodIntent, TrialPlan
from realcli_operator.reconcile.trial import decide_trial

CONTROL = "first-00000-a1-c1"


def decide(a: Any, facts: Any) -> TrialPlan:
    return decide_trial(facts, a.now)


def waits(a: Any, reason: str = "NoReward", **values: Any) -> TrialStatus:
    """A trial whose tests ended three times without a verdict."""
    awaiting = Awaiting.model_validate({"reason": reason, "detail": f"{reason}: so it said"})
    given = {"verify_attempt": 3, "verify_faults": 3, "reason": reason, "awaiting": awaiting, "verify_nodes": ["n1"]}
    return a.status(Phase.VERIFYING, **(given | values))  # type: ignore[no-any-return]


def row(trial: str = "first-00000", end: ControlEnd | None = None) -> ControlRow:
    result = "Running" if end is None else end.result
    return ControlRow.model_validate(
        {"task": "task-0", "image": "task:0", "verifier": "session:1", "result": result, "trial": trial, "end": end}
    )


def end(result: str, ordinal: int = 7) -> ControlEnd:
    return ControlEnd.model_validate({"result": result, "ordinal": ordinal, "attempt": 2, "number": 1, "detail": "so it was"})


def told(a: Any, phase: str) -> str:
    """What a session says that got SIGTERM."""
    return str(a.message(phase, Result.NO_VERDICT, reason="SessionLost", message="the session was told to end (SIGTERM)"))


@pytest.mark.parametrize(
    ("reason", "before", "counts_as"),
    [
        ("VerifierTimeout", None, "VerifierTimeout"),
        ("NoReward", "VerifierTimeout", "NoReward"),
        ("AgentBrokeEnvironment", "VerifierFault", "AgentBrokeEnvironment"),
        ("SessionLost", None, "AgentBrokeEnvironment"),
        ("SessionLost", "NoReward", "NoReward"),
        ("AgentOutOfMemory", "VerifierFault", "AgentBrokeEnvironment"),
        ("VerifierFault", None, "VerifierFault"),
        ("VerifierFault", "VerifierTimeout", "VerifierTimeout"),
        ("VerifierFault", "ImageUnavailable", "VerifierFault"),
    ],
)
def test_what_the_ends_count_as_if_the_control_passes(reason: str, before: str | None, counts_as: str) -> None:
    assert candidate(reason, before) == counts_as


@pytest.mark.parametrize(
    ("reason", "result", "phase", "outcome", "reward"),
    [
        ("VerifierTimeout", "Passed", Phase.SEALED, "VerifierTimeout", "0"),
        ("NoReward", "Passed", Phase.SEALED, "NoReward", "0"),
        ("AgentBrokeEnvironment", "Passed", Phase.SEALED, "AgentBrokeEnvironment", "0"),
        ("VerifierFault", "Passed", Phase.INVALID, "VerifierFault", None),
        ("NoReward", "Failed", Phase.INVALID, "VerifierFault", None),
        ("VerifierFault", "Failed", Phase.INVALID, "VerifierFault", None),
    ],
)
def test_the_control_of_another_trial_decides(
    a: Any, reason: str, result: str, phase: Phase, outcome: str, reward: str | None
) -> None:
    decided = end(result)
    plan = decide(a, a.facts(waits(a, reason), control=row("first-00007", decided)))
    status = plan.status
    assert status is not None
    assert (status.phase, status.reason, status.reward) == (phase, outcome, reward)
    assert (status.control, status.awaiting, status.work_end, status.attempt) == (decided, None, "Completed", 1)
    assert "trials/00007/attempt-2/control-1" in (status.message or "")
    assert plan.create is None


def test_it_waits_while_nobody_or_somebody_else_runs_the_control(a: Any) -> None:
    for control in (None, row("first-00007")):
        plan = decide(a, a.facts(waits(a), control=control))
        assert (plan.create, plan.status, plan.requeue_after) == (None, None, 60.0)


def test_the_control_is_a_pod_of_its_own_elsewhere(a: Any) -> None:
    plan = decide(a, a.facts(waits(a), control=row()))
    assert plan.create == PodIntent(1, control=1, avoid=("n1",))
    assert plan.status is not None
    assert (plan.status.phase, plan.status.control_attempt, plan.status.pod) == (Phase.VERIFYING, 1, CONTROL)
    held = decide(a, a.facts(waits(a), control=row(), sweep=a.spec(suspend=True)))
    assert (held.create, held.status) == (None, None)


def test_a_control_pod_made_just_before_a_crash_is_taken_over(a: Any) -> None:
    plan = decide(a, a.facts(waits(a), a.pod(CONTROL), control=row()))
    assert plan.create is None
    assert plan.status is not None
    assert plan.status.control_attempt == 1


@pytest.mark.parametrize(
    ("result", "phase", "reason"),
    [(Result.CONTROL_PASSED, Phase.SEALED, "NoReward"), (Result.CONTROL_FAILED, Phase.INVALID, "VerifierFault")],
)
def test_its_own_control_is_read_and_its_pod_goes(a: Any, result: Result, phase: Phase, reason: str) -> None:
    said = a.message("Control", result, reason="VerifierTimeout", message="killed", seal=a.seal)
    plan = decide(a, a.facts(waits(a, control_attempt=1), a.ended(CONTROL, said), control=row()))
    status = plan.status
    assert status is not None
    assert (status.phase, status.reason) == (phase, reason)
    assert status.control is not None
    assert (status.control.ordinal, status.control.attempt, status.control.number, status.control.seal) == (0, 1, 1, a.seal)
    assert [removal.name for removal in plan.delete] == [CONTROL]


@pytest.mark.parametrize(
    ("make", "faults"),
    [
        (lambda a: a.ended(CONTROL, a.message("Control", Result.NO_VERDICT, reason="StorageUnavailable", message="away")), 0),
        (lambda a: a.ended(CONTROL, conditions=(a.condition("DisruptionTarget", reason="PreemptionByScheduler"),)), 0),
        (lambda a: a.ended(CONTROL, deletion_timestamp=a.now), 0),
        (lambda a: a.waiting(CONTROL, "InvalidImageName"), 0),
        (lambda a: a.ended(CONTROL, a.message("Control", Result.NO_VERDICT, reason="VerifierFault", message="no runner")), 1),
        (lambda a: a.ended(CONTROL), 1),
        (lambda a: a.ended(CONTROL, told(a, "Control"), phase="Failed"), 0),
        (lambda a: a.ended(CONTROL, told(a, "Control"), phase="Failed", reason="DeadlineExceeded"), 1),
    ],
    ids=["storage", "preempted", "deleted", "image", "no runner", "died", "node", "deadline"],
)
def test_a_control_that_says_nothing_is_tried_again(a: Any, make: Any, faults: int) -> None:
    status = decide(a, a.facts(waits(a, control_attempt=1), make(a), control=row())).status
    assert status is not None
    assert (status.phase, status.control_faults, status.control) == (Phase.VERIFYING, faults, None)
    assert status.retry_after is not None
    ready = status.model_copy(update={"retry_after": "2026-12-01T12:00:00Z"})
    again = decide(a, a.facts(ready, control=row()))
    assert again.create == PodIntent(1, control=2, avoid=("n1",))


@pytest.mark.parametrize(("name", "phase"), [(CONTROL, "Control"), ("first-00000-a1-v3", "Verify")])
def test_whoever_told_a_session_to_end_shows_when_its_pod_is_over(a: Any, name: str, phase: str) -> None:
    """An eviction for the pod's own limit, say, is not the node's doing."""
    status = waits(a, control_attempt=1) if phase == "Control" else a.status(Phase.VERIFYING, verify_attempt=3, verify_faults=2)
    ended = a.ended(name, told(a, phase))
    alive = a.replace(ended, phase="Running", containers=(a.container("verifier"), ended.containers[1]))
    waited = decide(a, a.facts(status, alive, control=row()))
    assert (waited.status, waited.delete) == (None, ())
    assert waited.requeue_after is not None
    text = "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi."
    evicted = a.replace(ended, phase="Failed", reason="Evicted", message=text)
    over = decide(a, a.facts(status, evicted, control=row())).status
    assert over is not None
    assert (over.control_faults, over.verify_faults) == ((1, 3) if phase == "Control" else (0, 3))
    lost = decide(a, a.facts(status, a.replace(ended, phase="Failed"), control=row())).status
    assert lost is not None
    assert (lost.control_faults, lost.verify_faults) == ((0, 3) if phase == "Control" else (0, 2))


def test_three_that_die_have_failed(a: Any) -> None:
    status = decide(a, a.facts(waits(a, control_attempt=3, control_faults=2), a.ended("first-00000-a1-c3"), control=row())).status
    assert status is not None
    assert (status.phase, status.reason) == (Phase.INVALID, "VerifierFault")
    assert status.control is not None
    assert (status.control.result, status.control.seal) == ("Failed", None)


def test_a_verify_that_missed_the_works_own_words_brings_them(a: Any) -> None:
    """The operator was away when the work pod ended, and it is gone."""
    lost = a.status(Phase.VERIFYING, work_end="PodLost", work_seal_digest=None, verify_faults=2)
    said = a.message(
        "Verify", Result.NO_VERDICT, reason="NoReward", message="none", work_end="Deadline", work_seal=a.seal, turns=9, node="n7"
    )
    status = decide(a, a.facts(lost, a.ended("first-00000-a1-v1", said))).status
    assert status is not None
    assert (status.work_end, status.work_seal_digest, status.turns) == ("Deadline", a.seal, 9)
    assert status.awaiting is not None


class TestWithdrawn:
    @pytest.mark.parametrize("attempt", [0, 2])
    def test_what_waits_ends(self, a: Any, attempt: int) -> None:
        status = decide(a, a.facts(a.status(Phase.PENDING, attempt=attempt), withdrawn=True)).status
        assert status is not None
        assert (status.phase, status.reason, status.attempt, status.reward) == (Phase.INVALID, "VerifierFault", attempt, None)
        assert "task task-0 is withdrawn" in (status.message or "")

    def test_what_runs_finishes(self, a: Any) -> None:
        plan = decide(a, a.facts(a.status(), a.ended(said=a.work_sealed()), withdrawn=True))
        assert plan.create is not None
        assert plan.create.verify == 1


class TestRenewal:
    def invalid(self, a: Any, **values: Any) -> TrialStatus:
        given = {
            "phase": Phase.INVALID, "reason": "NodeLost", "message": "it is gone", "attempt": 4, "invalid_attempts": 4,
            "ended_at": a.at(50), "started_at": a.at(900), "node": "n3", "turns": 7, "cost_usd": "2", "work_end": "NodeLost",
        }  # fmt: skip
        return TrialStatus.model_validate(given | values)

    def test_it_runs_again_with_its_budget_anew(self, a: Any) -> None:
        spec = a.spec(retryInvalid=1)
        renewed = decide(a, a.facts(self.invalid(a), sweep=spec)).status
        assert renewed is not None
        assert (renewed.phase, renewed.round, renewed.attempt, renewed.reason) == (Phase.PENDING, 2, 4, None)
        assert (renewed.invalid_attempts, renewed.earlier_invalid) == (4, 4)
        assert (renewed.last_invalid_reason, renewed.last_invalid_at, renewed.last_invalid_node) == ("NodeLost", a.at(50), "n3")
        begun = decide(a, a.facts(renewed, sweep=spec))
        assert begun.create == PodIntent(5, avoid=("n3",))
        assert begun.status is not None
        assert (begun.status.round, begun.status.earlier_invalid) == (2, 4)
        assert begun.status.earlier is not None
        assert begun.status.earlier.cost_usd == "2"
        lost = decide(
            a, a.facts(begun.status, a.ended("first-00000-a5", a.work_invalid("ProviderUnavailable")), sweep=spec)
        ).status
        assert lost is not None
        assert (lost.phase, lost.invalid_attempts) == (Phase.PENDING, 5), "the first of four, not the fifth"
        last = lost.model_copy(update={"phase": Phase.WORKING, "attempt": 8, "invalid_attempts": 7, "retry_after": None})
        over = decide(a, a.facts(last, a.ended("first-00000-a8", a.work_invalid("ProviderUnavailable")), sweep=spec)).status
        assert over is not None
        assert (over.phase, over.invalid_attempts) == (Phase.INVALID, 8)
        assert decide(a, a.facts(over, sweep=spec)).status is None, "once for each time it was raised"

    @pytest.mark.parametrize(
        ("spec", "status", "facts"),
        [
            ({}, {}, {}),
            ({"retryInvalid": 1}, {"round": 2}, {}),
            ({"retryInvalid": 1}, {"reason": "Cancelled"}, {}),
            ({"retryInvalid": 1, "cancel": True}, {}, {}),
            ({"retryInvalid": 1}, {}, {"withdrawn": True}),
            ({"retryInvalid": 1}, {"phase": Phase.SEALED, "reason": "Completed", "reward": "1"}, {}),
            ({"retryInvalid": 1}, {"control": end("Failed", 0)}, {"control": row()}),
        ],
        ids=["not asked", "done", "cancelled trial", "cancelled sweep", "withdrawn", "sealed", "its control was not read yet"],
    )
    def test_nothing_else_does(self, a: Any, spec: Any, status: Any, facts: Any) -> None:
        plan = decide(a, a.facts(self.invalid(a, **status), sweep=a.spec(**spec), **facts))
        assert (plan.create, plan.status) == (None, None)
