"""`decide_trial` by tables: what a pod's end means, what is done next, what is never done."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from realcli.api.outcomes import Phase
from realcli.api.termination import Result
from realcli.api.trial import TrialStatus
from realcli_operator.reconcile.admission import Bounds, admit
from realcli_operator.reconcile.conditions import with_condition
from realcli_operator.reconcile.plans import PodIntent, TrialPlan
from realcli_operator.reconcile.policy import Policy
from realcli_operator.reconcile.rows import Rows
from realcli_operator.reconcile.trial import decide_trial


def decide(a: Any, facts: Any, policy: Policy | None = None) -> TrialPlan:
    return decide_trial(facts, a.now, policy)


class TestStart:
    def test_a_granted_trial_gets_its_work_pod_and_one_status(self, a: Any) -> None:
        plan = decide(a, a.facts())
        assert plan.create == PodIntent(1)
        assert plan.status is not None
        assert (plan.status.phase, plan.status.attempt, plan.status.pod) == (Phase.WORKING, 1, "first-00000-a1")
        assert plan.status.ledger_uri == "s3://evals/sweeps/one/first-11111111/trials/00000/attempt-1/ledger"
        assert plan.status.egress == "Unenforced"

    def test_without_a_grant_nothing_happens(self, a: Any) -> None:
        assert decide(a, a.facts(granted=False)) == TrialPlan()

    def test_suspended_it_says_so_once(self, a: Any) -> None:
        suspended = a.spec(suspend=True)
        plan = decide(a, a.facts(sweep=suspended))
        assert plan.create is None
        assert plan.status is not None
        assert (plan.status.phase, plan.status.reason) == (Phase.PENDING, "Suspended")
        assert decide(a, a.facts(plan.status, sweep=suspended)) == TrialPlan()
        resumed = decide(a, a.facts(plan.status, granted=False)).status
        assert resumed is not None
        assert resumed.reason is None

    def test_a_deleted_trial_is_left_to_its_owner(self, a: Any) -> None:
        facts = a.facts()
        assert decide(a, a.replace(facts, trial=a.trial(deleting=True))) == TrialPlan()

    def test_the_back_off_is_waited_for(self, a: Any) -> None:
        status = a.status(Phase.PENDING, attempt=1, invalid_attempts=1, retry_after="2026-12-01T12:00:30Z")
        assert decide(a, a.facts(status)) == TrialPlan(requeue_after=30.0)

    @pytest.mark.parametrize("time", ["0000-01-01T00:00:00Z", "2026-12-01T13:00:00Z", "2999-01-01T00:00:00Z"])
    def test_a_back_off_that_no_clock_of_ours_asks_for_is_over(self, a: Any, time: str) -> None:
        """The operator's clock was an hour ahead when it wrote it, or somebody's hand did: for a trial, and for the sweep."""
        waiting = a.status(Phase.PENDING, attempt=1, invalid_attempts=1, retry_after=time)
        plan = decide(a, a.facts(waiting))
        assert plan.create == PodIntent(2)
        rows = Rows([a.trial(waiting)])
        admission = admit(a.plan(), rows, frozenset(), Bounds(1), a.now, Policy())
        assert (admission.new, admission.next_due) == (("first-00000",), None)

    def test_a_new_attempt_waits_until_the_old_pod_is_gone(self, a: Any) -> None:
        status = a.status(Phase.PENDING, attempt=1, invalid_attempts=1)
        running = decide(a, a.facts(status, a.pod()))
        assert running.create is None
        assert [removal.name for removal in running.delete] == ["first-00000-a1"]
        terminating = decide(a, a.facts(status, a.pod(deletion_timestamp=a.now)))
        assert (terminating.create, terminating.delete) == (None, ())
        assert decide(a, a.facts(status, a.ended())).create == PodIntent(2)

    def test_a_pod_that_a_crash_left_without_status_is_taken_over(self, a: Any) -> None:
        plan = decide(a, a.facts(TrialStatus(), a.pod()))
        assert plan.create is None
        assert plan.status is not None
        assert (plan.status.phase, plan.status.attempt) == (Phase.WORKING, 1)
        third = decide(a, a.facts(a.status(Phase.PENDING, attempt=2, invalid_attempts=2), a.pod("first-00000-a3"))).status
        assert third is not None
        assert (third.attempt, third.invalid_attempts) == (3, 2)


class TestWorkEnds:
    @pytest.mark.parametrize("reason", ["Completed", "TurnLimit", "Deadline", "AgentCrashed", "RunnerLost", "StateTooLarge"])
    def test_a_sealed_work_is_verified(self, a: Any, reason: str) -> None:
        plan = decide(a, a.facts(a.status(), a.ended(said=a.work_sealed(reason))))
        assert plan.create == PodIntent(1, 1, a.seal)
        assert plan.status is not None
        assert plan.status.phase is Phase.VERIFYING
        assert (plan.status.work_end, plan.status.work_seal_digest, plan.status.turns) == (reason, a.seal, 7)
        assert plan.status.cost_usd == "0.25"
        assert [removal.name for removal in plan.delete] == ["first-00000-a1"]

    @pytest.mark.parametrize(
        ("said", "kept"),
        [("0.2500", "0.2500"), ("0", "0"), (None, None), ("2", None), ("NaN", None), ("many", None), ("-1", None)],
    )
    def test_the_share_of_throttled_requests_is_kept_if_it_is_one(self, a: Any, said: str | None, kept: str | None) -> None:
        plan = decide(a, a.facts(a.status(), a.ended(said=a.work_sealed(throttled=said))))
        assert plan.status is not None
        assert plan.status.throttled == kept

    @pytest.mark.parametrize(
        "said",
        [{"turns": -1}, {"cost_usd": "0." + "1" * 40}, {"working_seconds": "1" * 33}, {"limit": "x" * 65}, {"node": "n" * 254}],
    )
    def test_what_a_status_cannot_hold_is_unknown_and_keeps_the_trial_from_nothing(self, a: Any, said: dict[str, Any]) -> None:
        given = {"reason": "Completed", "seal": a.seal, "tokens": {"input": 5}} | said
        plan = decide(a, a.facts(a.status(), a.ended(said=a.message("Work", Result.WORK_SEALED, **given))))
        assert plan.status is not None
        assert TrialStatus.model_validate(plan.status.dump()) == plan.status, "what the API server is given it takes"
        assert (plan.status.phase, plan.status.tokens.input) == (Phase.VERIFYING, 5)
        (field, value) = next(iter(said.items()))
        assert getattr(plan.status, field) != value

    def test_an_agent_killed_for_memory_is_named_so(self, a: Any) -> None:
        killed = a.ended(said=a.work_sealed("RunnerLost"), agent={"reason": "OOMKilled", "exit_code": 137})
        status = decide(a, a.facts(a.status(), killed)).status
        assert status is not None
        assert status.work_end == "AgentOutOfMemory"
        verdict = a.ended("first-00000-a1-v1", a.verdict("RunnerLost", "0.5"))
        sealed = decide(a, a.facts(status, verdict)).status
        assert sealed is not None
        assert (sealed.phase, sealed.reason, sealed.reward) == (Phase.SEALED, "AgentOutOfMemory", "0.5")

    def test_an_agent_evicted_for_its_own_disk_is_named_so(self, a: Any) -> None:
        evicted = a.ended(said=a.work_sealed("RunnerLost"), phase="Failed", reason="Evicted", message=self.AGENT)
        status = decide(a, a.facts(a.status(), evicted)).status
        assert status is not None
        assert (status.work_end, status.work_seal_digest) == ("AgentDiskLimit", a.seal)

    @pytest.mark.parametrize("filled", ["AGENT", "SOCKET", "OWN"])
    @pytest.mark.parametrize("session", ["waiting", "terminated"])
    def test_an_evicted_agent_that_the_kubelet_forgot_is_named_so(self, a: Any, filled: str, session: str) -> None:
        """As seen on a real kubelet: a container that ran "waits", as if the pod had just begun."""
        forgotten = {"reason": "PodInitializing"}
        containers = (
            a.container("agent", "waiting", **forgotten),
            a.container("session", session, **(forgotten if session == "waiting" else {"exit_code": 137})),
        )
        pod = a.pod(phase="Failed", reason="Evicted", message=getattr(self, filled), containers=containers)
        look = decide(a, a.facts(a.status(), pod))
        assert look.create == PodIntent(1, 1, None), "there may be a seal"
        assert look.status is not None
        assert (look.status.phase, look.status.work_end) == (Phase.VERIFYING, "AgentDiskLimit")
        over = decide(a, a.facts(look.status, a.ended("first-00000-a1-v1", a.no_work_seal()))).status
        assert over is not None
        assert (over.phase, over.reason, over.reward) == (Phase.SEALED, "AgentDiskLimit", "0")

    @pytest.mark.parametrize(("turns", "phase", "reason"), [(2, "Sealed", "AgentDiskLimit"), (0, "Pending", "SessionLost")])
    def test_of_a_forgotten_agent_its_session_tells(self, a: Any, turns: int, phase: str, reason: str) -> None:
        said = a.message("Work", Result.WORK_INVALID, reason="SessionLost", message="told to end", turns=turns)
        containers = (
            a.container("agent", "waiting", reason="PodInitializing"),
            a.container("session", "terminated", message=said),
        )
        evicted = a.pod(phase="Failed", reason="Evicted", message=self.AGENT, containers=containers)
        status = decide(a, a.facts(a.status(), evicted)).status
        assert status is not None
        assert (status.phase, status.reason) == (phase, reason)

    def test_the_ends_of_an_evicted_pods_containers_are_waited_for(self, a: Any) -> None:
        """As seen on a real kubelet: Failed first, and what the session said to its end a moment later."""

        def evicted(ago: float, session: Any, **condition: Any) -> Any:
            ready = a.condition("ContainersReady", **({"status": "False", "reason": "PodFailed", "ago": ago} | condition))
            return a.pod(
                phase="Failed", reason="Evicted", message=self.NODE, conditions=(ready,),
                containers=(a.container("agent"), session),
            )  # fmt: skip

        running = a.container("session")
        assert decide(a, a.facts(a.status(), evicted(10, running))) == TrialPlan(requeue_after=50.0)
        sealed = evicted(10, a.container("session", "terminated", message=a.work_sealed("Deadline")))
        status = decide(a, a.facts(a.status(), sealed)).status
        assert status is not None
        assert (status.phase, status.work_end, status.work_seal_digest) == (Phase.VERIFYING, "Deadline", a.seal)
        silent = decide(a, a.facts(a.status(), evicted(61, running)))
        assert silent.create == PodIntent(1, 1, None), "a node that died meanwhile says nothing more"
        assert decide(a, a.facts(a.status(), evicted(10, running, status="True"))).create is not None, "nothing says since when"
        verify = a.replace(evicted(10, running), name="first-00000-a1-v1")
        assert decide(a, a.facts(a.status(Phase.VERIFYING), verify)) == TrialPlan(requeue_after=50.0)

    def test_a_session_whose_storage_was_away_may_have_stored_its_seal(self, a: Any) -> None:
        """Also what a pod meets whose name was used before: created, not yet in a status, and gone."""
        looks = decide(a, a.facts(a.status(), a.ended(said=a.work_invalid("StorageUnavailable", "run.json holds other bytes"))))
        assert looks.create == PodIntent(1, 1, None)
        assert looks.status is not None
        assert (looks.status.phase, looks.status.work_end) == (Phase.VERIFYING, "StorageUnavailable")
        verify = "first-00000-a1-v1"
        sealed = decide(a, a.facts(looks.status, a.ended(verify, a.verdict("TurnLimit", "0.5")))).status
        assert sealed is not None
        assert (sealed.phase, sealed.reason, sealed.reward, sealed.attempt) == (Phase.SEALED, "TurnLimit", "0.5", 1)
        over = decide(a, a.facts(looks.status, a.ended(verify, a.no_work_seal())))
        assert over.create is None
        assert over.status is not None
        assert (over.status.phase, over.status.reason, over.status.reward) == (Phase.PENDING, "StorageUnavailable", None)
        assert (over.status.invalid_attempts, over.status.message) == (1, "run.json holds other bytes")
        ready = over.status.model_copy(update={"retry_after": None})
        assert decide(a, a.facts(ready)).create == PodIntent(2), "a new number: nothing of it is in storage"

    def test_a_pod_whose_containers_the_kubelet_lost_sight_of_may_have_sealed(self, a: Any) -> None:
        lost = {"reason": "ContainerStatusUnknown", "exit_code": 137, "started_at": None, "finished_at": None}
        containers = tuple(a.container(name, "terminated", **lost) for name in ("agent", "session"))
        plan = decide(a, a.facts(a.status(), a.pod(phase="Failed", containers=containers)))
        assert plan.create == PodIntent(1, 1, None)
        assert plan.status is not None
        assert plan.status.work_end == "SessionLost"

    def test_an_invalid_work_is_tried_again_after_a_back_off(self, a: Any) -> None:
        plan = decide(a, a.facts(a.status(), a.ended(said=a.work_invalid("ProviderUnavailable"))))
        assert plan.create is None
        assert plan.status is not None
        assert (plan.status.phase, plan.status.reason) == (Phase.PENDING, "ProviderUnavailable")
        assert (plan.status.invalid_attempts, plan.status.last_invalid_reason) == (1, "ProviderUnavailable")
        assert datetime.fromisoformat(plan.status.retry_after or "") >= a.now
        assert plan.requeue_after == 30.0
        assert plan.events[0].type == "Warning"

    def test_what_the_provider_throttled_is_known_of_the_next_attempt_too(self, a: Any) -> None:
        said = a.message("Work", Result.WORK_INVALID, reason="ProviderUnavailable", message="429", throttled="0.9")
        over = decide(a, a.facts(a.status(), a.ended(said=said))).status
        assert over is not None
        again = decide(a, a.facts(over.model_copy(update={"retry_after": None}))).status
        assert again is not None
        assert (again.attempt, again.throttled, again.last_invalid_throttled) == (2, None, "0.9")

    @pytest.mark.parametrize(("before", "seconds"), [(0, 30.0), (1, 60.0), (2, 120.0)])
    def test_the_back_off_doubles(self, a: Any, before: int, seconds: float) -> None:
        status = a.status(invalid_attempts=before)
        assert decide(a, a.facts(status, a.ended(said=a.work_invalid("SessionLost")))).requeue_after == seconds

    def test_the_back_off_ends_at_ten_minutes(self, a: Any) -> None:
        patient = a.spec(retry={"infrastructure": 10, "backoff": "5m"})
        facts = a.facts(a.status(invalid_attempts=5), a.ended(said=a.work_invalid("SessionLost")), sweep=patient)
        assert decide(a, facts).requeue_after == 600.0

    def test_the_last_attempt_ends_the_trial_without_a_reward(self, a: Any) -> None:
        plan = decide(a, a.facts(a.status(invalid_attempts=3, reward="1"), a.ended(said=a.work_invalid("SessionLost"))))
        assert plan.status is not None
        assert (plan.status.phase, plan.status.reason, plan.status.reward) == (Phase.INVALID, "SessionLost", None)
        assert "attempt 4 of 4" in (plan.status.message or "")
        assert {c.type: c.status for c in plan.status.conditions} == {"Running": "False", "Invalid": "True"}

    @pytest.mark.parametrize("reason", ["ConfigurationError", "ModelMismatch"])
    def test_some_reasons_make_a_new_attempt_pointless(self, a: Any, reason: str) -> None:
        status = decide(a, a.facts(a.status(), a.ended(said=a.work_invalid(reason)))).status
        assert status is not None
        assert (status.phase, status.reason) == (Phase.INVALID, reason)

    OWN = "Pod ephemeral local storage usage exceeds the total limit of containers 10Gi. "
    AGENT = 'Container agent exceeded its local ephemeral storage limit "10Gi". '
    SESSION = 'Container session exceeded its local ephemeral storage limit "8Gi". '
    SPOOL = 'Usage of EmptyDir volume "spool" exceeds the limit "4Gi". '
    SOCKET = 'Usage of EmptyDir volume "socket" exceeds the limit "16Mi". '
    NODE = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 3Mi. "

    @pytest.mark.parametrize(
        ("pod", "work_end"),
        [
            ({"reason": "Evicted", "message": OWN}, "AgentDiskLimit"),
            ({"reason": "Evicted", "message": AGENT}, "AgentDiskLimit"),
            ({"reason": "Evicted", "message": SOCKET}, "AgentDiskLimit"),
            ({"reason": "Evicted", "message": SESSION}, "SessionLost"),
            ({"reason": "Evicted", "message": SPOOL}, "SessionLost"),
            ({"reason": "Evicted", "message": NODE}, "NodePressure"),
            ({"reason": "Evicted", "message": "something new"}, "NodePressure"),
            ({"disruption": "PreemptionByScheduler"}, "Preempted"),
            ({"disruption": "EvictionByEvictionAPI"}, "Drained"),
            ({"disruption": "DeletionByTaintManager"}, "NodeLost"),
            ({"disruption": "DeletionByPodGC"}, "NodeLost"),
            ({"disruption": "TerminationByKubelet", "reason": "Evicted", "message": NODE}, "NodePressure"),
            ({"disruption": "TerminationByKubelet", "reason": "Evicted", "message": OWN}, "AgentDiskLimit"),
            ({"disruption": "TerminationByKubelet", "reason": "Preempting"}, "Preempted"),
            ({"disruption": "TerminationByKubelet", "reason": "Terminated"}, "Drained"),
            ({"disruption": "SomethingNew"}, "PodLost"),
            ({"reason": "SomethingNew"}, "PodLost"),
            ({"reason": "NodeLost"}, "NodeLost"),
            ({"reason": "DeadlineExceeded"}, "SessionLost"),
            ({"agent": {"reason": "OOMKilled", "exit_code": 137}}, "AgentOutOfMemory"),
            ({}, "SessionLost"),
        ],
    )
    def test_a_pod_without_message_is_read_and_verified(self, a: Any, pod: dict[str, Any], work_end: str) -> None:
        values = dict(pod)
        disruption = values.pop("disruption", None)
        if disruption is not None:
            values["conditions"] = (a.condition("PodScheduled"), a.condition("DisruptionTarget", reason=disruption))
        plan = decide(a, a.facts(a.status(), a.ended(**values)))
        assert plan.create == PodIntent(1, 1, None)
        assert plan.status is not None
        assert (plan.status.phase, plan.status.work_end) == (Phase.VERIFYING, work_end)

    @pytest.mark.parametrize("text", ["", "{", '{"v":1}', "x" * 4096])
    def test_a_message_that_cannot_be_read_is_no_message(self, a: Any, text: str) -> None:
        plan = decide(a, a.facts(a.status(), a.ended(said=text, phase="Failed")))
        assert plan.create == PodIntent(1, 1, None)

    def test_a_cut_message_is_no_message(self, a: Any) -> None:
        cut = a.work_sealed()[:-20]
        assert decide(a, a.facts(a.status(), a.ended(said=cut))).create == PodIntent(1, 1, None)

    def test_a_seal_with_an_invalid_reason_is_no_message(self, a: Any) -> None:
        plan = decide(a, a.facts(a.status(), a.ended(said=a.work_sealed("NodeLost"))))
        assert plan.create == PodIntent(1, 1, None)

    def test_a_pod_that_never_ran_the_agent_is_not_verified(self, a: Any) -> None:
        rejected = a.pod(phase="Failed", reason="OutOfcpu", containers=(), conditions=())
        status = decide(a, a.facts(a.status(), rejected)).status
        assert status is not None
        assert (status.phase, status.reason) == (Phase.PENDING, "NodePressure")

    def test_preemption_consumes_no_attempt(self, a: Any) -> None:
        taken = (a.condition("DisruptionTarget", reason="PreemptionByScheduler"),)
        plan = decide(a, a.facts(a.status(), a.ended(said=a.work_invalid("SessionLost"), conditions=taken)))
        assert plan.status is not None
        assert (plan.status.phase, plan.status.reason, plan.status.invalid_attempts) == (Phase.PENDING, "Preempted", 0)
        again = decide(a, a.facts(a.replace(a.facts(), status=plan.status).status.model_copy(update={"retry_after": None})))
        assert again.create == PodIntent(2)

    def test_a_trial_that_is_taken_again_and_again_slows_down(self, a: Any) -> None:
        taken = (a.condition("DisruptionTarget", reason="PreemptionByScheduler"),)

        def waits(attempt: int, invalid: int) -> Any:
            status = a.status(attempt=attempt, invalid_attempts=invalid)
            pod = a.ended(f"first-00000-a{attempt}", a.work_invalid("SessionLost"), conditions=taken)
            return decide(a, a.facts(status, pod)).requeue_after

        assert [waits(*numbers) for numbers in ((1, 0), (2, 0), (2, 1), (9, 0))] == [30.0, 60.0, 30.0, 600.0]

    def test_an_absent_pod_is_looked_for_in_storage(self, a: Any) -> None:
        unsure = decide(a, a.facts(a.status()))
        assert (unsure.create, unsure.status, unsure.requeue_after) == (None, None, 1.0)
        plan = decide(a, a.facts(a.status(), absent=frozenset({"first-00000-a1"})))
        assert plan.create == PodIntent(1, 1, None)
        assert plan.status is not None
        assert plan.status.work_end == "PodLost"

    def test_a_crash_after_the_verify_pod_loses_no_count(self, a: Any) -> None:
        """The status write was lost: the step is taken again, and the pod that is there is not created again."""
        pods = (a.ended(said=a.work_sealed()), a.pod("first-00000-a1-v1"))
        plan = decide(a, a.facts(a.status(), *pods))
        assert plan.create is None
        assert plan.status is not None
        assert (plan.status.phase, plan.status.turns, plan.status.work_end) == (Phase.VERIFYING, 7, "Completed")
        assert [removal.name for removal in plan.delete] == ["first-00000-a1"]

    def test_a_verify_pod_that_ended_before_any_status_knew_it_is_read_first(self, a: Any) -> None:
        """Killed after its creation, and back only after its end: removed unread, its verdict or its fault would be lost."""
        pods = (a.ended(said=a.work_sealed()), a.ended("first-00000-a1-v1", said="whatever it says"))
        plan = decide(a, a.facts(a.status(), *pods))
        assert plan.create is None
        assert plan.status is not None
        assert (plan.status.phase, plan.status.verify_attempt) == (Phase.VERIFYING, 1)
        assert [removal.name for removal in plan.delete] == ["first-00000-a1"]

    def test_failed_pods_can_be_kept(self, a: Any) -> None:
        keep = Policy(keep_failed_pods=True)
        assert decide(a, a.facts(a.status(), a.ended()), keep).delete == ()
        assert len(decide(a, a.facts(a.status(), a.ended(said=a.work_sealed())), keep).delete) == 1


class TestNotStarted:
    def test_a_running_pod_is_left_alone(self, a: Any) -> None:
        assert decide(a, a.facts(a.status(), a.pod())) == TrialPlan()

    @pytest.mark.parametrize("word", ["ErrImageNeverPull", "InvalidImageName"])
    def test_some_images_can_never_come(self, a: Any, word: str) -> None:
        plan = decide(a, a.facts(a.status(), a.waiting(reason=word)))
        assert plan.status is not None
        assert (plan.status.phase, plan.status.reason) == (Phase.PENDING, "ImageUnavailable")
        assert word in (plan.status.message or "")
        assert [removal.name for removal in plan.delete] == ["first-00000-a1"]

    @pytest.mark.parametrize(
        ("word", "grace", "outcome"),
        [
            ("ErrImagePull", 120, "ImageUnavailable"),
            ("ImagePullBackOff", 120, "ImageUnavailable"),
            ("CreateContainerConfigError", 60, "ConfigurationError"),
        ],
    )
    def test_other_troubles_have_a_grace(self, a: Any, word: str, grace: float, outcome: str) -> None:
        first = decide(a, a.facts(a.status(), a.waiting(reason=word)))
        assert first.create is None
        assert first.delete == ()
        assert first.requeue_after == grace
        assert first.status is not None
        condition = first.status.conditions[0]
        assert (condition.type, condition.status, condition.reason) == ("Running", "False", word)
        assert first.status.reason == outcome, "kubectl get shows why it waits"
        # Pulling and backing off alternate: the clock runs on.
        other = "ErrImagePull" if word == "ImagePullBackOff" else word
        later = a.facts(first.status, a.waiting(reason=other))
        early = decide_trial(later, a.now.fromtimestamp(a.now.timestamp() + grace - 1, a.now.tzinfo))
        assert early.delete == ()
        late = decide_trial(later, a.now.fromtimestamp(a.now.timestamp() + grace, a.now.tzinfo))
        assert late.status is not None
        assert late.status.reason == outcome
        assert late.status.phase is (Phase.INVALID if outcome == "ConfigurationError" else Phase.PENDING)

    def test_a_container_that_cannot_be_started_is_not_waited_for(self, a: Any) -> None:
        never = {"reason": "StartError", "exit_code": 128, "message": "exec format error"}
        epoch = {"started_at": datetime.fromtimestamp(0, UTC)}
        containers = (a.container("agent", "terminated", **never, **epoch), a.container("session"))
        status = decide(a, a.facts(a.status(), a.pod(containers=containers))).status
        assert status is not None
        assert (status.phase, status.reason) == (Phase.PENDING, "SetupTimeout")
        assert "exec format error" in (status.message or "")
        assert (status.started_at or "").startswith("2026"), "not 1970"

    def test_a_trouble_that_passes_is_forgotten(self, a: Any) -> None:
        conditions = with_condition((), "Running", "False", "ErrImagePull", "no", a.ago(100), 1)
        plan = decide(a, a.facts(a.status(conditions=conditions, reason="ImageUnavailable"), a.pod()))
        assert plan.status is not None
        assert (plan.status.conditions[0].status, plan.status.reason, plan.status.message) == ("True", None, None)

    def test_a_pod_that_is_not_scheduled_in_time(self, a: Any) -> None:
        unscheduled = {
            "phase": "Pending", "node": None, "start_time": None, "containers": (),
            "conditions": (a.condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available"),),
        }  # fmt: skip
        waits = decide(a, a.facts(a.status(), a.pod(**unscheduled, creation_timestamp=a.ago(3599))))
        assert (waits.status, waits.requeue_after) == (None, 1.0)
        over = decide(a, a.facts(a.status(), a.pod(**unscheduled, creation_timestamp=a.ago(3600)))).status
        assert over is not None
        assert over.reason == "SetupTimeout"
        assert "0/1 nodes are available" in (over.message or "")
        gated = a.pod(**unscheduled, creation_timestamp=a.ago(9999), scheduling_gates=("kueue",))
        held = decide(a, a.facts(a.status(), gated))
        assert held.status is not None
        assert (held.status.phase, held.create, held.delete, held.requeue_after) == (Phase.QUEUED, None, (), None)

    def test_a_pod_that_does_not_start_in_time(self, a: Any) -> None:
        def creating(ago: float) -> Any:
            return a.waiting(reason="ContainerCreating", conditions=(a.condition("PodScheduled", ago=ago),))

        waits = decide(a, a.facts(a.status(), creating(899)))
        assert (waits.status, waits.requeue_after) == (None, 1.0)
        over = decide(a, a.facts(a.status(), creating(900)))
        assert over.status is not None
        assert over.status.reason == "SetupTimeout"
        assert len(over.delete) == 1


class TestDisturbed:
    def test_why_a_pod_is_taken_is_written_down_before_it_vanishes(self, a: Any) -> None:
        taken = a.pod(conditions=(a.condition("DisruptionTarget", reason="DeletionByTaintManager"),), deletion_timestamp=a.now)
        plan = decide(a, a.facts(a.status(), taken))
        assert plan.status is not None
        assert (plan.status.phase, plan.status.work_end) == (Phase.WORKING, "NodeLost")
        assert plan.requeue_after == 600.0
        gone = decide(a, a.facts(plan.status, absent=frozenset({"first-00000-a1"})))
        assert gone.status is not None
        lost = decide(a, a.facts(gone.status, a.ended("first-00000-a1-v1", a.no_work_seal()))).status
        assert lost is not None
        assert (lost.phase, lost.reason, lost.invalid_attempts) == (Phase.PENDING, "NodeLost", 1)

    def test_a_pod_whose_node_never_answers_is_removed_by_force(self, a: Any) -> None:
        plan = decide(a, a.facts(a.status(), a.pod(deletion_timestamp=a.ago(601))))
        assert [(r.name, r.grace_seconds) for r in plan.delete] == [("first-00000-a1", 0)]
        assert plan.status is not None
        assert plan.status.work_end == "NodeLost"

    def test_a_pod_that_outlives_its_session_is_ended(self, a: Any) -> None:
        def over(ago: float) -> Any:
            session = a.container("session", "terminated", message=a.work_sealed(), finished_at=a.ago(ago))
            return a.pod(containers=(a.container("agent"), session))

        assert decide(a, a.facts(a.status(), over(59))) == TrialPlan(requeue_after=1.0)
        plan = decide(a, a.facts(a.status(), over(60)))
        assert [removal.name for removal in plan.delete] == ["first-00000-a1"]
        assert plan.status is not None
        assert (plan.status.phase, plan.status.work_end, plan.status.work_seal_digest) == (Phase.WORKING, "Completed", a.seal)
        # … and only when it is gone the work is verified, with the seal it announced.
        gone = decide(a, a.facts(plan.status, absent=frozenset({"first-00000-a1"})))
        assert gone.create == PodIntent(1, 1, a.seal)


class TestCancelled:
    @pytest.mark.parametrize("phase", [Phase.PENDING, Phase.WORKING, Phase.VERIFYING])
    def test_what_has_not_ended_ends_now(self, a: Any, phase: Phase) -> None:
        name = "first-00000-a1-v1" if phase is Phase.VERIFYING else "first-00000-a1"
        pods = () if phase is Phase.PENDING else (a.pod(name),)
        plan = decide(a, a.facts(a.status(phase), *pods, sweep=a.spec(cancel=True, suspend=True)))
        assert plan.create is None
        assert [removal.name for removal in plan.delete] == [pod.name for pod in pods]
        assert plan.status is not None
        assert (plan.status.phase, plan.status.reason, plan.status.reward) == (Phase.INVALID, "Cancelled", None)

    def test_a_verdict_that_is_there_is_kept(self, a: Any) -> None:
        over = a.ended("first-00000-a1-v1", said=a.verdict())
        plan = decide(a, a.facts(a.status(Phase.VERIFYING), over, sweep=a.spec(cancel=True)))
        assert plan.status is not None
        assert (plan.status.phase, plan.status.reward) == (Phase.SEALED, "1")

    def test_work_that_is_sealed_is_not_verified_any_more_but_its_cost_is_known(self, a: Any) -> None:
        plan = decide(a, a.facts(a.status(), a.ended(said=a.work_sealed()), sweep=a.spec(cancel=True)))
        assert plan.create is None
        assert plan.status is not None
        assert (plan.status.reason, plan.status.cost_usd, plan.status.work_seal_digest) == ("Cancelled", "0.25", a.seal)


class TestQueued:
    """Kueue holds a pod by a scheduling gate, and deletes one that it takes back."""

    def queued(self, a: Any) -> tuple[TrialStatus, Any]:
        conditions = (a.condition("PodScheduled", "False", "SchedulingGated"),)
        unscheduled = {"conditions": conditions, "node": None, "start_time": None, "phase": "Pending", "containers": ()}
        gated = a.pod(**unscheduled, creation_timestamp=a.ago(9999), scheduling_gates=("kueue.x-k8s.io/admission",))
        status = decide(a, a.facts(a.status(), gated)).status
        assert status is not None
        return status, gated

    def test_it_is_said_once_and_waits_for_ever(self, a: Any) -> None:
        status, gated = self.queued(a)
        assert (status.phase, status.attempt) == (Phase.QUEUED, 1)
        assert status.message == "pod first-00000-a1 is held by kueue.x-k8s.io/admission"
        assert decide_trial(a.facts(status, gated), a.now + timedelta(days=2)) == TrialPlan()

    def test_the_time_to_be_scheduled_begins_when_it_is_let_in(self, a: Any) -> None:
        status, gated = self.queued(a)
        open_ = a.replace(gated, scheduling_gates=())
        now_working = decide(a, a.facts(status, open_))
        assert now_working.status is not None
        assert (now_working.status.phase, now_working.status.message) == (Phase.WORKING, None)
        assert now_working.requeue_after == 3600
        late = decide_trial(a.facts(now_working.status, open_), a.now + timedelta(hours=1))
        assert late.status is not None
        assert late.status.reason == "SetupTimeout"

    def test_a_pod_that_is_taken_back_while_it_is_queued_costs_no_attempt(self, a: Any) -> None:
        status, _ = self.queued(a)
        gone = decide(a, a.facts(status, absent=frozenset({"first-00000-a1"})))
        assert gone.status is not None
        assert (gone.status.work_end, gone.create) == ("Preempted", PodIntent(1, 1))
        said = a.ended("first-00000-a1-v1", said=a.no_work_seal())
        over = decide(a, a.facts(gone.status, said)).status
        assert over is not None
        assert (over.phase, over.reason, over.invalid_attempts) == (Phase.PENDING, "Preempted", 0)

    def test_one_that_runs_and_is_taken_back_costs_none_either(self, a: Any) -> None:
        target = a.condition("TerminationTarget", reason="WorkloadEvicted", message="preempted for a higher priority")
        going = a.pod(conditions=(a.condition("PodScheduled", ago=100), target), deletion_timestamp=a.ago(1))
        status = decide(a, a.facts(a.status(), going)).status
        assert status is not None
        assert status.work_end == "Preempted"
        ended = a.ended(phase="Failed", conditions=(target,), said=a.work_invalid("SessionLost", "told to end"))
        over = decide(a, a.facts(status, ended)).status
        assert over is not None
        assert (over.phase, over.reason, over.invalid_attempts) == (Phase.PENDING, "Preempted", 0)

    def test_a_queued_trial_takes_a_place(self, a: Any) -> None:
        status, _ = self.queued(a)
        rows = Rows([a.trial(status, ordinal=0), a.trial(ordinal=1)])
        assert admit(a.plan(), rows, frozenset(), Bounds(1), a.now, Policy()).new == ()
