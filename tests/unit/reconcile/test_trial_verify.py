"""`decide_trial` by tables: verify pods, verdicts, what is no fault of the verifier, and the end."""

from __future__ import annotations

from typing import Any

import pytest

from realcli.api.outcomes import Phase
from realcli.api.trial import Awaiting
from realcli_operator.reconcile.outcome import refused
from realcli_operator.reconcile.plans import PodIntent, TrialPlan
from realcli_operator.reconcile.trial import decide_trial


def decide(a: Any, facts: Any) -> TrialPlan:
    return decide_trial(facts, a.now)


def taken(a: Any, reason: str) -> Any:
    return (a.condition("DisruptionTarget", reason=reason),)


def crashed(a: Any) -> Any:
    return a.container("session", "terminated", exit_code=1, reason="Error", finished_at=a.ago(61))


class TestVerify:
    VERIFY = "first-00000-a1-v1"

    def test_a_verdict_seals_the_trial(self, a: Any) -> None:
        message = a.verdict("TurnLimit", "0.75", checks={"passed": 3, "total": 4})
        plan = decide(a, a.facts(a.status(Phase.VERIFYING, work_end="TurnLimit"), a.ended(self.VERIFY, message)))
        status = plan.status
        assert status is not None
        assert (status.phase, status.reason, status.reward) == (Phase.SEALED, "TurnLimit", "0.75")
        assert (status.work_seal_digest, status.seal_digest) == (a.seal, a.verify_seal)
        assert status.ended_at == "2026-12-01T12:00:00Z"
        assert {c.type: c.status for c in status.conditions} == {"Running": "False", "Sealed": "True"}
        assert [removal.name for removal in plan.delete] == [self.VERIFY]
        assert plan.events == ()

    def test_a_verdict_counts_although_the_verifier_does_not_end(self, a: Any) -> None:
        session = a.container("session", "terminated", message=a.verdict())
        hangs = a.pod(self.VERIFY, containers=(a.container("verifier"), session))
        plan = decide(a, a.facts(a.status(Phase.VERIFYING), hangs))
        assert plan.status is not None
        assert plan.status.phase is Phase.SEALED
        assert [removal.name for removal in plan.delete] == [self.VERIFY]

    def test_the_seal_is_the_truth_about_a_lost_work_pod(self, a: Any) -> None:
        status = a.status(Phase.VERIFYING, work_end="PodLost", work_seal_digest=None)
        sealed = decide(a, a.facts(status, a.ended(self.VERIFY, a.verdict("Deadline")))).status
        assert sealed is not None
        assert (sealed.reason, sealed.work_end, sealed.work_seal_digest) == ("Deadline", "Deadline", a.seal)

    def test_a_restarted_node_is_no_fault_of_what_the_agent_left(self, a: Any) -> None:
        """Three of them, and a control that passes, would else make a reward of 0 of it."""
        gone = {"exit_code": 255, "reason": "Unknown"}
        containers = tuple(a.container(name, "terminated", **gone) for name in ("verifier", "session"))
        pod = a.pod(self.VERIFY, phase="Failed", containers=containers)
        status = decide(a, a.facts(a.status(Phase.VERIFYING, verify_faults=2), pod)).status
        assert status is not None
        assert (status.verify_faults, status.awaiting, status.retry_after is not None) == (2, None, True)

    def test_no_verdict_is_tried_twice_more_elsewhere_then_the_control_decides(self, a: Any) -> None:
        first = decide(a, a.facts(a.status(Phase.VERIFYING), a.ended(self.VERIFY, a.no_verdict())))
        assert first.create is None
        assert first.status is not None
        assert (first.status.phase, first.status.verify_faults, first.status.verify_nodes) == (Phase.VERIFYING, 1, ["n1"])
        assert [removal.name for removal in first.delete] == [self.VERIFY]
        ready = first.status.model_copy(update={"retry_after": "2026-12-01T12:00:00Z"})
        assert decide(a, a.facts(first.status)).create is None
        second = decide(a, a.facts(ready, a.ended(self.VERIFY, a.no_verdict())))
        assert second.create == PodIntent(1, 2, a.seal, avoid=("n1",))
        assert second.status is not None
        failed = decide(a, a.facts(second.status, a.ended("first-00000-a1-v2", a.no_verdict(), node="n2"))).status
        assert failed is not None
        assert (failed.verify_faults, failed.verify_nodes, failed.awaiting) == (2, ["n1", "n2"], None)
        third = decide(a, a.facts(failed.model_copy(update={"retry_after": "2026-12-01T12:00:00Z"})))
        assert third.create == PodIntent(1, 3, a.seal, avoid=("n1", "n2"))
        assert third.status is not None
        over = decide(a, a.facts(third.status, a.ended("first-00000-a1-v3", a.no_verdict())))
        assert over.create is None
        assert [removal.name for removal in over.delete] == ["first-00000-a1-v3"]
        status = over.status
        assert status is not None
        assert (status.phase, status.reason, status.reward, status.attempt) == (Phase.VERIFYING, "NoReward", None, 1)
        assert status.awaiting == Awaiting(reason="NoReward", detail="NoReward: no reward file")
        assert status.retry_after is None
        assert [note.reason for note in over.events] == ["AwaitsControl"]

    def test_a_sweep_whose_images_have_no_control_calls_it_the_verifiers_fault(self, a: Any) -> None:
        plan = a.plan(platform=a.platform(operator_version="0.3.0", control=False))
        status = a.status(Phase.VERIFYING, verify_faults=2)
        over = decide(a, a.facts(status, a.ended(self.VERIFY, a.no_verdict()), plan=plan)).status
        assert over is not None
        assert (over.phase, over.reason, over.reward, over.attempt) == (Phase.INVALID, "VerifierFault", None, 1)

    @pytest.mark.parametrize(
        ("make", "faults"),
        [
            (lambda a, n: a.ended(n), 1),
            (lambda a, n: a.ended(n, a.verdict("NodeLost")), 1),
            (lambda a, n: a.ended(n, a.verdict(reward=None)), 1),
            (lambda a, n: a.ended(n, a.verdict(work_seal="sha256:" + "9" * 64)), 1),
            (lambda a, n: a.ended(n, a.work_sealed()), 1),
            (lambda a, n: a.ended(n, a.verdict(reward="NaN")), 1),
            (lambda a, n: a.ended(n, a.verdict(reward="much")), 1),
            (lambda a, n: a.ended(n, a.verdict(reward="0." + "3" * 40)), 1),
            (lambda a, n: a.ended(n, agent={"reason": "OOMKilled"}), 1),
            (lambda a, n: a.ended(n, reason="Evicted", message='Usage of EmptyDir volume "socket" exceeds the limit'), 1),
            (lambda a, n: a.pod(n, containers=(a.container("verifier"), crashed(a))), 1),
            (lambda a, n: a.waiting(n, "InvalidImageName"), 0),
            (lambda a, n: a.waiting(n, "ContainerCreating", conditions=(a.condition("PodScheduled", ago=9999),)), 0),
            (lambda a, n: a.ended(n, a.no_verdict("StorageUnavailable")), 0),
            (lambda a, n: a.ended(n, conditions=taken(a, "PreemptionByScheduler")), 0),
            (lambda a, n: a.ended(n, conditions=taken(a, "DeletionByTaintManager")), 0),
            (lambda a, n: a.ended(n, reason="Evicted", message="The node was low on resource: memory. "), 0),
            (lambda a, n: a.ended(n, deletion_timestamp=a.now), 0),
            (lambda a, n: a.ended(n, a.no_verdict(), conditions=taken(a, "EvictionByEvictionAPI")), 0),
            (lambda a, n: a.ended(n, a.no_verdict(), deletion_timestamp=a.now), 0),
        ],
        ids=[
            "lost", "not a valid reason", "no reward", "another seal", "not a verify message", "NaN", "a word", "endless",
            "out of memory", "own disk limit", "crashed beside a verifier that hangs",
            "image", "setup", "storage", "preempted", "node lost", "node pressure", "deleted by hand",
            "drained while the tests ran", "deleted while the tests ran",
        ],
    )  # fmt: skip
    def test_everything_else_is_no_verdict(self, a: Any, make: Any, faults: int) -> None:
        plan = decide(a, a.facts(a.status(Phase.VERIFYING), make(a, self.VERIFY)))
        assert plan.status is not None
        assert (plan.status.phase, plan.status.verify_faults, plan.status.reward) == (Phase.VERIFYING, faults, None)
        assert plan.status.retry_after is not None

    def test_storage_that_is_away_is_waited_for_a_day(self, a: Any) -> None:
        def after(pods: int) -> TrialPlan:
            name = f"first-00000-a1-v{pods}"
            status = a.status(Phase.VERIFYING, verify_attempt=pods)
            return decide(a, a.facts(status, a.ended(name, a.no_verdict("StorageUnavailable"))))

        assert [after(n).requeue_after for n in (1, 2, 5, 9, 149)] == [30.0, 60.0, 480.0, 600.0, 600.0]
        over = after(150).status
        assert over is not None
        assert (over.phase, over.reason, over.reward) == (Phase.INVALID, "StorageUnavailable", None)

    def test_a_verify_pod_that_vanished_is_replaced(self, a: Any) -> None:
        plan = decide(a, a.facts(a.status(Phase.VERIFYING), absent=frozenset({self.VERIFY})))
        assert plan.status is not None
        assert (plan.status.verify_faults, plan.status.retry_after) == (0, "2026-12-01T12:00:30Z")

    @pytest.mark.parametrize(
        ("make", "reason"),
        [
            (lambda a, n: a.ended(n, conditions=taken(a, "DeletionByTaintManager")), "NodeLost"),
            (lambda a, n: a.ended(n, conditions=taken(a, "PreemptionByScheduler")), "PodLost"),
            (lambda a, n: a.waiting(n, "InvalidImageName"), "ImageUnavailable"),
        ],
    )
    def test_what_never_ends_is_given_up_by_its_own_name(self, a: Any, make: Any, reason: str) -> None:
        status = a.status(Phase.VERIFYING, verify_attempt=150)
        over = decide(a, a.facts(status, make(a, "first-00000-a1-v150"))).status
        assert over is not None
        assert (over.phase, over.reason, over.reward) == (Phase.INVALID, reason, None)

    def test_a_verify_pod_that_does_not_start_moves_no_times_of_the_work(self, a: Any) -> None:
        status = a.status(Phase.VERIFYING, started_at="2026-12-01T02:00:00Z", node="n7")
        failed = decide(a, a.facts(status, a.waiting(self.VERIFY, "InvalidImageName"))).status
        assert failed is not None
        assert (failed.started_at, failed.node) == ("2026-12-01T02:00:00Z", "n7")

    @pytest.mark.parametrize(
        ("work_end", "seal", "phase", "reason", "reward"),
        [
            ("SessionLost", None, Phase.PENDING, "SessionLost", None),
            ("PodLost", None, Phase.PENDING, "PodLost", None),
            ("NodePressure", None, Phase.PENDING, "NodePressure", None),
            ("Preempted", None, Phase.PENDING, "Preempted", None),
            ("AgentDiskLimit", None, Phase.SEALED, "AgentDiskLimit", "0"),
            ("AgentOutOfMemory", None, Phase.SEALED, "AgentOutOfMemory", "0"),
            ("Completed", "sha256:" + "5" * 64, Phase.PENDING, "StorageUnavailable", None),
            ("Completed", None, Phase.PENDING, "SessionLost", None),
        ],
    )
    def test_without_a_seal_the_attempt_ends_as_its_pod(
        self, a: Any, work_end: str, seal: str | None, phase: Phase, reason: str, reward: str | None
    ) -> None:
        status = a.status(Phase.VERIFYING, work_end=work_end, work_seal_digest=seal)
        ended = decide(a, a.facts(status, a.ended(self.VERIFY, a.no_work_seal()))).status
        assert ended is not None
        assert (ended.phase, ended.reason, ended.reward) == (phase, reason, reward)
        assert ended.invalid_attempts == (0 if reason == "Preempted" or phase is Phase.SEALED else 1)

    @pytest.mark.parametrize(
        ("work_end", "sealed_as", "reason", "invalid"),
        [
            ("PodLost", "StorageUnavailable", "StorageUnavailable", 1),
            ("Preempted", "SessionLost", "Preempted", 0),
            ("NodePressure", "SessionLost", "NodePressure", 1),
            ("Preempted", "ProviderUnavailable", "ProviderUnavailable", 1),
            ("AgentDiskLimit", "SessionLost", "AgentDiskLimit", 0),
            ("AgentDiskLimit", "ProviderUnavailable", "AgentDiskLimit", 0),
            (None, "SessionLost", "SessionLost", 1),
        ],
    )
    def test_an_invalid_seal_ends_the_attempt_as_it_says_unless_the_pod_knows_better(
        self, a: Any, work_end: str | None, sealed_as: str, reason: str, invalid: int
    ) -> None:
        said = a.message("Verify", "WorkInvalid", reason=sealed_as, work_end=sealed_as, work_seal=a.seal)
        status = a.status(Phase.VERIFYING, work_end=work_end, work_seal_digest=None)
        ended = decide(a, a.facts(status, a.ended(self.VERIFY, said))).status
        assert ended is not None
        assert (ended.reason, ended.invalid_attempts) == (reason, invalid)

    def test_a_running_trial_finishes_although_the_sweep_is_suspended(self, a: Any) -> None:
        facts = a.facts(a.status(), a.ended(said=a.work_sealed()), sweep=a.spec(suspend=True), granted=False)
        assert decide(a, facts).create == PodIntent(1, 1, a.seal)


class TestOver:
    @pytest.mark.parametrize("phase", [Phase.SEALED, Phase.INVALID])
    def test_leftovers_go_and_nothing_else_happens(self, a: Any, phase: Phase) -> None:
        status = a.status(phase, attempt=1)
        assert decide(a, a.facts(status)) == TrialPlan()
        pods = (a.ended(said=a.work_sealed()), a.pod("first-00000-a1-v1"))
        plan = decide(a, a.facts(status, *pods))
        assert (plan.create, plan.status) == (None, None)
        assert sorted(removal.name for removal in plan.delete) == ["first-00000-a1", "first-00000-a1-v1"]

    def test_a_refused_work_pod_ends_the_trial_and_a_refused_verify_pod_does_not(self, a: Any) -> None:
        ended = refused(a.status(Phase.PENDING), "Pod one/x exists and is not ours", a.now, 1, final=True)
        assert (ended.phase, ended.reason) == (Phase.INVALID, "ConfigurationError")
        assert "one/x" in (ended.message or "")
        waits = refused(a.status(Phase.VERIFYING), "quota", a.now, 1, final=False)
        assert (waits.phase, waits.message) == (Phase.VERIFYING, "quota")
