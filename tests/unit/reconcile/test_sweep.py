"""`decide_sweep` by tables: plan, window, judging at the barrier, report, suspend, everything that is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from realcli.api.outcomes import Phase
from realcli.api.plan import Cgroup
from realcli.api.sweepstatus import SweepStatus
from realcli.api.termination import Result
from realcli.api.trial import TrialStatus
from realcli_operator.reconcile.admission import Bounds, admit, missing
from realcli_operator.reconcile.conditions import find, with_condition
from realcli_operator.reconcile.facts import JobFacts, PlanLog
from realcli_operator.reconcile.order import order_of
from realcli_operator.reconcile.plans import JobIntent, SweepPlan, Task
from realcli_operator.reconcile.policy import Policy
from realcli_operator.reconcile.rows import Rows
from realcli_operator.reconcile.sweep import decide_sweep
from realcli_operator.reconcile.sweepstatus import blocked
from realcli_operator.reconcile.tally import complete_groups, count


def decide(a: Any, facts: Any, later: float = 0) -> SweepPlan:
    return decide_sweep(facts, a.now + timedelta(seconds=later))


def said(status: SweepStatus | None, type_: str) -> tuple[str, str] | None:
    assert status is not None
    condition = find(status.conditions, type_)
    return (condition.status, condition.reason) if condition is not None else None


def planned(a: Any, **values: Any) -> SweepStatus:
    """The status of a sweep whose plan is stored."""
    status = decide(a, a.sweep_facts(plan=a.plan(**values))).status
    assert status is not None
    return status


class TestPlanning:
    def test_the_plan_job_is_all_that_runs_first(self, a: Any) -> None:
        plan = decide(a, a.sweep_facts())
        assert plan.create_jobs == (JobIntent(Task.PLAN),)
        assert plan.create_trials == ()
        assert plan.status is not None
        assert (plan.status.state, plan.status.observed_generation) == ("Planning", 1)

    def test_suspended_nothing_runs_at_all(self, a: Any) -> None:
        plan = decide(a, a.sweep_facts(spec=a.spec(suspend=True)))
        assert plan.create_jobs == ()
        assert plan.status is not None
        assert plan.status.state == "Suspended"
        assert said(plan.status, "Suspended") == ("True", "Asked")

    def test_a_plan_in_the_log_is_stored(self, a: Any) -> None:
        frozen = a.plan(repeats=3, tasks=2, warnings=["no judge model"])
        done = a.done_job("plan", a.message("Plan", Result.PLANNED, seal=frozen.content_digest()), "first-plan")
        plan = decide(a, a.sweep_facts(jobs={"first-plan": done}, plan_log=PlanLog(frozen)))
        assert plan.store_plan == frozen
        status = plan.status
        assert status is not None
        assert (status.state, status.plan_digest, status.egress) == ("Running", frozen.content_digest(), "Unenforced")
        assert status.storage_uri == "s3://evals/sweeps/one/first-11111111"
        assert (said(status, "Planned"), said(status, "Ready")) == (("True", "Planned"), ("True", "Proven"))
        assert "no judge model" in find(status.conditions, "Planned").message  # type: ignore[union-attr]
        assert (status.counts.total, status.counts.groups, status.trials) == (12, 2, "0/12")
        assert status.counts.exec.total == 6

    @pytest.mark.parametrize("reason", ["StorageRefused", "BenchmarkNotFound", "DigestMismatch", "ConfigurationError"])
    def test_a_refusal_starts_nothing_and_says_why(self, a: Any, reason: str) -> None:
        refusal = a.message("Plan", Result.REFUSED, reason=reason, message="s3://evals: the access key is unknown")
        facts = a.sweep_facts(jobs={"first-plan": a.done_job("plan", refusal, "first-plan")})
        plan = decide(a, facts)
        assert (plan.create_jobs, plan.delete_jobs, plan.create_trials, plan.store_plan) == ((), (), (), None)
        assert plan.status is not None
        assert plan.status.state == "Failed"
        for type_, value in (("Ready", "False"), ("Planned", "False"), ("Failed", "True")):
            assert said(plan.status, type_) == (value, reason)
        message = find(plan.status.conditions, "Failed").message  # type: ignore[union-attr]
        assert "the access key is unknown" in message
        assert "make a new sweep" in message
        assert decide(a, a.sweep_facts(status=plan.status, jobs=facts.jobs)) == SweepPlan()

    def test_storage_that_is_away_is_asked_again_with_back_off(self, a: Any) -> None:
        refusal = a.message("Plan", Result.REFUSED, reason="StorageUnavailable", message="no answer")

        def facts(attempt: int) -> Any:
            return a.sweep_facts(jobs={"first-plan": a.done_job("plan", refusal, "first-plan", attempt=attempt)})

        waits = decide(a, facts(1))
        assert (waits.delete_jobs, waits.requeue_after) == ((), 25.0)
        assert said(waits.status, "Ready") == ("False", "StorageUnavailable")
        assert waits.status is not None
        assert waits.status.state == "Planning"
        again = decide(a, facts(1), later=25)
        assert [removal.name for removal in again.delete_jobs] == ["first-plan"]
        assert again.create_jobs == (JobIntent(Task.PLAN, attempt=2),)
        assert decide(a, facts(20)).requeue_after == 595.0, "for ever, at most every ten minutes"

    @pytest.mark.parametrize(
        ("job", "why"),
        [
            (lambda a: a.done_job("plan", "cut", "first-plan"), "no readable termination message"),
            (lambda a: JobFacts(a.job(done=True, completion_time=a.ago(60))), "the pod of Job first-plan is gone"),
            (lambda a: JobFacts(a.job(failed=True), (a.job_pod("plan", "x", phase="Failed"),)), "BackoffLimitExceeded"),
            (
                lambda a: JobFacts(a.job(), (a.job_pod("plan", containers=(a.container("plan", started_at=a.ago(1800)),)),)),
                "ran for more than 1800 s",
            ),
        ],
        ids=["message", "pod", "failed", "hangs"],
    )
    def test_a_lost_plan_is_made_again_three_times(self, a: Any, job: Any, why: str) -> None:
        facts = job(a)
        again = decide(a, a.sweep_facts(jobs={"first-plan": facts}), later=600)
        assert again.create_jobs == (JobIntent(Task.PLAN, attempt=2),)
        assert said(again.status, "Ready") == ("Unknown", "PlanLost")
        third = JobFacts(a.replace(facts.job, labels={**facts.job.labels, "realcli.dev/attempt": "3"}), facts.pods)
        over = decide(a, a.sweep_facts(jobs={"first-plan": third}), later=600)
        assert over.create_jobs == ()
        assert said(over.status, "Failed") == ("True", "PlanFailed")
        assert why in find(over.status.conditions, "Failed").message  # type: ignore[union-attr]

    def test_a_log_without_the_plan_is_a_lost_plan(self, a: Any) -> None:
        done = a.done_job("plan", a.message("Plan", Result.PLANNED, seal=a.seal), "first-plan")
        facts = a.sweep_facts(jobs={"first-plan": done}, plan_log=PlanLog(None, "the plan's digest is x, expected y"))
        assert decide(a, facts, later=60).create_jobs == (JobIntent(Task.PLAN, attempt=2),)

    def test_a_missing_secret_shows_and_heals(self, a: Any) -> None:
        waiting = a.container("plan", "waiting", reason="CreateContainerConfigError", message='secret "evals-s3" not found')
        stuck = JobFacts(a.job(), (a.job_pod("plan", phase="Pending", containers=(waiting,)),))
        plan = decide(a, a.sweep_facts(jobs={"first-plan": stuck}))
        assert (plan.create_jobs, plan.delete_jobs) == ((), ())
        assert said(plan.status, "Ready") == ("False", "ConfigurationError")
        assert plan.status is not None
        assert 'secret "evals-s3" not found' in find(plan.status.conditions, "Ready").message  # type: ignore[union-attr]
        healed = decide(a, a.sweep_facts(status=plan.status, jobs={"first-plan": JobFacts(a.job(), (a.job_pod("plan"),))}))
        assert said(healed.status, "Ready") is None

    def test_what_keeps_it_from_going_on_is_told_at_once_and_once(self, a: Any) -> None:
        waiting = a.container("plan", "waiting", reason="CreateContainerConfigError", message='secret "evals-s3" not found')
        stuck = {"first-plan": JobFacts(a.job(), (a.job_pod("plan", phase="Pending", containers=(waiting,)),))}
        plan = decide(a, a.sweep_facts(jobs=stuck))
        (note,) = plan.events
        assert (note.type, note.reason) == ("Warning", "ConfigurationError")
        assert 'secret "evals-s3" not found' in note.message
        assert "goes on by itself" in note.message
        assert decide(a, a.sweep_facts(status=plan.status, jobs=stuck)).events == ()

    def test_a_provider_that_is_away_shows_through_every_try(self, a: Any) -> None:
        """Planning does not end for it, and neither condition nor event comes and goes with each Job."""
        refusal = a.message("Plan", Result.REFUSED, reason="ProviderUnavailable", message="https://m answers 529")

        def facts(status: Any, job: Any) -> Any:
            return a.sweep_facts(status=status, jobs={"first-plan": job})

        first = decide(a, facts(None, a.done_job("plan", refusal, "first-plan")))
        assert [(note.type, note.reason) for note in first.events] == [("Warning", "ProviderUnavailable")]
        assert "tried again by itself" in first.events[0].message
        fresh = {"conditions": (a.condition("PodScheduled", ago=5),), "start_time": a.ago(5)}
        waiting = a.job_pod("plan", phase="Pending", containers=(a.container("plan", "waiting"),), **fresh)
        for pod in (waiting, a.job_pod("plan")):
            running = decide(a, facts(first.status, JobFacts(a.job(attempt=2), (pod,))))
            assert running.status is None, "what was said stands until something better is"
        second = decide(a, facts(first.status, a.done_job("plan", refusal, "first-plan", attempt=9)))
        assert (second.status, second.events) == (None, ())
        frozen = a.plan()
        done = a.done_job("plan", a.message("Plan", Result.PLANNED, seal=frozen.content_digest()), "first-plan", attempt=3)
        there = decide(a, a.sweep_facts(status=first.status, jobs={"first-plan": done}, plan_log=PlanLog(frozen)))
        assert said(there.status, "Ready") == ("True", "Proven")

    def test_a_final_refusal_is_one_event(self, a: Any) -> None:
        refusal = a.message("Plan", Result.REFUSED, reason="ConfigurationError", message="the key is refused (401)")
        plan = decide(a, a.sweep_facts(jobs={"first-plan": a.done_job("plan", refusal, "first-plan")}))
        assert [note.reason for note in plan.events] == ["ConfigurationError"]

    def test_a_pod_that_does_not_start_is_surfaced(self, a: Any) -> None:
        """The status of a pod says nothing of a ConfigMap that is missing."""
        waiting = a.container("plan", "waiting", reason="ContainerCreating")
        stuck = {"first-plan": JobFacts(a.job(), (a.job_pod("plan", phase="Pending", containers=(waiting,)),))}  # for 100 s
        early = decide(a, a.sweep_facts(jobs=stuck), later=-50)
        assert (said(early.status, "Ready"), early.requeue_after) == (None, 10.0)
        late = decide(a, a.sweep_facts(jobs=stuck))
        assert said(late.status, "Ready") == ("False", "PodNotStarted")
        assert [note.reason for note in late.events] == ["PodNotStarted"]
        healed = decide(a, a.sweep_facts(status=late.status, jobs={"first-plan": JobFacts(a.job(), (a.job_pod("plan"),))}))
        assert said(healed.status, "Ready") is None

    def test_a_job_without_pods_is_surfaced(self, a: Any) -> None:
        early = decide(a, a.sweep_facts(jobs={"first-plan": JobFacts(a.job())}))
        assert (said(early.status, "Ready"), early.requeue_after) == (None, 60.0)
        late = decide(a, a.sweep_facts(jobs={"first-plan": JobFacts(a.job())}), later=60)
        assert said(late.status, "Ready") == ("False", "PodNotCreated")

    def test_another_plan_than_the_first_is_refused(self, a: Any) -> None:
        done = a.done_job("plan", a.message("Plan", Result.PLANNED, seal=a.seal), "first-plan")
        facts = a.sweep_facts(status=planned(a), jobs={"first-plan": done}, plan_log=PlanLog(a.plan(repeats=2)))
        plan = decide(a, facts)
        assert plan.store_plan is None
        assert said(plan.status, "Failed") == ("True", "DigestMismatch")


class TestWindow:
    def test_trials_are_made_in_a_window_of_twice_the_parallelism(self, a: Any) -> None:
        plan = decide(a, a.sweep_facts(spec=a.spec(parallelism=3), plan=a.plan(tasks=4, repeats=4)))
        assert plan.create_trials == order_of(a.plan(tasks=4, repeats=4)).ordinals[:6]
        assert plan.requeue_after == 0.0

    def test_holes_are_filled_first(self, a: Any) -> None:
        trials = tuple(a.trial(ordinal=i) for i in (0, 2, 5))
        facts = a.sweep_facts(spec=a.spec(parallelism=3), plan=a.plan(tasks=4, repeats=4), trials=trials)
        order = order_of(facts.plan).ordinals
        assert decide(a, facts).create_trials == tuple(i for i in order if i not in (0, 2, 5))[:3]
        assert 1 in decide(a, facts).create_trials

    def test_as_many_start_as_may_have_a_pod_lowest_first(self, a: Any) -> None:
        running = a.trial(a.status(), ordinal=0)
        trials = (running, *(a.trial(ordinal=i) for i in (1, 2, 3, 4)))
        plan = decide(a, a.sweep_facts(spec=a.spec(parallelism=3), plan=a.plan(tasks=4, repeats=4), trials=trials))
        assert plan.grants == {"first-00001", "first-00002"}
        assert plan.wake == ("first-00001", "first-00002")

    def test_a_grant_holds_its_place_until_it_is_used(self, a: Any) -> None:
        trials = tuple(a.trial(ordinal=i) for i in range(4))
        granted = frozenset({"first-00002"})
        facts = a.sweep_facts(spec=a.spec(parallelism=2), plan=a.plan(repeats=2), trials=trials, granted=granted)
        plan = decide(a, facts)
        assert (plan.grants, plan.wake) == ({"first-00000", "first-00002"}, ("first-00000",))

    def test_a_trial_in_its_back_off_takes_no_place(self, a: Any) -> None:
        waits = a.trial(a.status(Phase.PENDING, attempt=1, retry_after="2026-12-01T12:01:00Z"), ordinal=0)
        facts = a.sweep_facts(
            spec=a.spec(parallelism=1), plan=a.plan(), trials=(waits, a.trial(ordinal=1)), granted=frozenset({"first-00000"})
        )
        plan = decide(a, facts)
        assert (plan.grants, plan.requeue_after) == ({"first-00001"}, 60.0)

    def test_suspended_nothing_new_starts(self, a: Any) -> None:
        trials = (a.trial(a.status(), ordinal=0), a.trial(ordinal=1))
        facts = a.sweep_facts(
            spec=a.spec(suspend=True),
            plan=a.plan(repeats=3),
            status=planned(a),
            trials=trials,
            granted=frozenset({"first-00001"}),
        )
        plan = decide(a, facts)
        assert (plan.create_trials, plan.grants) == ((), frozenset())
        assert plan.wake == ("first-00001",), "it is to say that it is suspended"
        assert plan.status is not None
        assert plan.status.state == "Suspended"
        resumed = decide(a, a.sweep_facts(plan=a.plan(repeats=3), status=plan.status, trials=trials))
        assert resumed.grants == {"first-00001"}
        assert said(resumed.status, "Suspended") == ("False", "Resumed")

    def test_counters_are_written_at_most_every_five_seconds(self, a: Any) -> None:
        status = planned(a)
        changed = {"plan": a.plan(), "status": status, "trials": (a.trial(a.status(), ordinal=0), a.trial(ordinal=1))}
        held = decide(a, a.sweep_facts(**changed, last_write=a.ago(2), granted=frozenset({"first-00001"})))
        assert (held.status, held.requeue_after) == (None, 3.0)
        due = decide(a, a.sweep_facts(**changed, last_write=a.ago(5)))
        assert due.status is not None
        assert (due.status.counts.created, due.status.counts.working, due.status.counts.pending) == (2, 1, 1)
        suspended = decide(a, a.sweep_facts(**changed, spec=a.spec(suspend=True), last_write=a.ago(0)))
        assert suspended.status is not None, "a condition is written at once"


def two_groups(a: Any) -> dict[str, Any]:
    """Two tasks, one repeat, both modes: ordinals 0-1 are group 0, 2-3 group 1."""
    return {"plan": a.plan(tasks=2), "status": planned(a, tasks=2)}


class TestJudging:
    def test_a_group_is_judged_when_all_its_trials_are_terminal(self, a: Any) -> None:
        trials = (a.settled(0), a.settled(1, Phase.INVALID, "NodeLost"), a.settled(2), a.trial(a.status(), ordinal=3))
        plan = decide(a, a.sweep_facts(**two_groups(a), trials=trials))
        (intent,) = plan.create_jobs
        assert (intent.task, intent.group, intent.attempt) == (Task.JUDGE, 0, 1)
        assert intent.input is not None
        assert (intent.input.configuration, intent.input.task) == ("claude-code.sonnet", "task-0")
        assert [(m.ordinal, m.mode, m.phase, m.reward) for m in intent.input.members] == [
            (0, "COLLAB", Phase.SEALED, "1"),
            (1, "EXEC", Phase.INVALID, None),
        ]

    def test_at_most_four_at_once(self, a: Any) -> None:
        trials = tuple(a.settled(i) for i in range(12))
        jobs = {"first-j0000": JobFacts(a.job("first-j0000"), (a.job_pod("judge"),))}
        facts = a.sweep_facts(plan=a.plan(tasks=6), status=planned(a, tasks=6), trials=trials, jobs=jobs)
        assert [intent.group for intent in decide(a, facts).create_jobs] == [1, 2, 3]

    def test_a_lost_judgement_is_made_again_then_the_sweep_fails(self, a: Any) -> None:
        trials = (a.settled(0), a.settled(1))
        given = {"plan": a.plan(tasks=2), "status": planned(a, tasks=2), "trials": trials}
        lost = a.sweep_facts(**given, jobs={"first-j0000": a.done_job("judge", "cut", "first-j0000")})
        (intent,) = decide(a, lost, later=60).create_jobs
        assert (intent.attempt, intent.group) == (2, 0)
        assert intent.input is not None
        over = a.sweep_facts(**given, jobs={"first-j0000": a.done_job("judge", "cut", "first-j0000", attempt=3)})
        assert said(decide(a, over, later=60).status, "Failed") == ("True", "JudgeFailed")
        refusal = a.message("Judge", Result.REFUSED, reason="SealMismatch", message="group 0 is not what was sealed")
        refused = a.sweep_facts(**given, jobs={"first-j0000": a.done_job("judge", refusal, "first-j0000")})
        assert said(decide(a, refused).status, "Failed") == ("True", "JudgeFailed")

    def test_a_sweep_that_goes_on_has_not_failed(self, a: Any) -> None:
        given = {"plan": a.plan(tasks=2), "trials": (a.settled(0), a.settled(1))}
        lost = {"first-j0000": a.done_job("judge", "cut", "first-j0000", attempt=3)}
        failed = decide(a, a.sweep_facts(**given, status=planned(a, tasks=2), jobs=lost), later=60)
        assert said(failed.status, "Failed") == ("True", "JudgeFailed")
        same = decide(a, a.sweep_facts(**given, status=failed.status, jobs=lost), later=120)
        assert (same.status, same.events) == (None, ())
        again = decide(a, a.sweep_facts(**given, status=failed.status))  # somebody has deleted the Job
        assert [intent.group for intent in again.create_jobs] == [0]
        assert said(again.status, "Failed") is None
        assert again.status is not None
        assert again.status.state == "Running"

    @pytest.mark.parametrize(("task", "name"), [("judge", "first-j0000"), ("report", "first-report")])
    def test_a_judge_or_report_that_hangs_is_run_again(self, a: Any, task: str, name: str) -> None:
        def hangs(ago: float) -> Any:
            container = a.container(task, started_at=a.ago(ago))
            judged = a.done_job("judge", a.message("Judge", Result.JUDGED, seal=a.seal), "first-j0000")
            jobs = {"first-j0000": judged, name: JobFacts(a.job(name), (a.job_pod(task, containers=(container,)),))}
            trials = (a.settled(0), a.settled(1))
            return a.sweep_facts(plan=a.plan(), status=planned(a), trials=trials, jobs=jobs)

        limit = Policy().job_limit
        assert decide(a, hangs(limit - 7)).requeue_after == 7
        over = decide(a, hangs(limit))
        assert [removal.name for removal in over.delete_jobs] == [name]
        assert [(intent.task, intent.attempt) for intent in over.create_jobs] == [(Task(task), 2)]

    def test_a_judge_that_finds_storage_away_is_asked_again_for_ever(self, a: Any) -> None:
        away = a.message("Judge", Result.REFUSED, reason="StorageUnavailable", message="no answer")
        failed = JobFacts(a.job("first-j0000", failed=True, attempt=7), (a.job_pod("judge", away, phase="Failed"),))
        given = {"plan": a.plan(tasks=2), "status": planned(a, tasks=2), "trials": (a.settled(0), a.settled(1))}
        waits = decide(a, a.sweep_facts(**given, jobs={"first-j0000": failed}))
        assert (waits.create_jobs, waits.delete_jobs) == ((), ())
        (intent,) = decide(a, a.sweep_facts(**given, jobs={"first-j0000": failed}), later=600).create_jobs
        assert (intent.task, intent.attempt) == (Task.JUDGE, 8)

    def test_a_judge_pod_in_trouble_shows_and_the_condition_is_steady(self, a: Any) -> None:
        waiting = a.container("judge", "waiting", reason="ImagePullBackOff", message="no")
        jobs = {"first-j0000": JobFacts(a.job("first-j0000"), (a.job_pod("judge", phase="Pending", containers=(waiting,)),))}
        given = {"plan": a.plan(), "trials": (a.settled(0), a.settled(1)), "jobs": jobs}
        first = decide(a, a.sweep_facts(**given, status=planned(a)))
        assert said(first.status, "Ready") == ("False", "ImageUnavailable")
        assert decide(a, a.sweep_facts(**given, status=first.status), later=9).status is None


class TestReport:
    def given(self, a: Any, **values: Any) -> Any:
        trials = values.pop("trials", (a.settled(0), a.settled(1)))
        judged = a.done_job("judge", a.message("Judge", Result.JUDGED, seal=a.seal), "first-j0000")
        jobs = {"first-j0000": judged} | values.pop("jobs", {})
        return a.sweep_facts(**({"plan": a.plan(), "status": planned(a), "trials": trials, "jobs": jobs} | values))

    def test_it_is_made_when_all_groups_are_judged(self, a: Any) -> None:
        plan = decide(a, self.given(a))
        assert plan.create_jobs == (JobIntent(Task.REPORT),)
        assert plan.status is not None
        assert (plan.status.counts.groups_judged, plan.status.trials) == (1, "2/2")
        assert decide(a, self.given(a, spec=a.spec(suspend=True))).create_jobs == ()

    def test_scores_complete_the_sweep(self, a: Any) -> None:
        row = {"configuration": "claude-code.sonnet", "r_exec": "0.500", "r_collab": "0.333", "s": "0.543~", "j": "0.181"}
        message = a.message("Report", Result.REPORTED, scores=[row], uri="s3://evals/x/index.html", seal=a.seal)
        jobs = {"first-report": a.done_job("report", message, "first-report")}
        plan = decide(a, self.given(a, jobs=jobs))
        status = plan.status
        assert status is not None
        assert (status.state, said(status, "Complete")) == ("Complete", ("True", "Scored"))
        assert (status.r_exec, status.r_collab, status.s, status.j) == ("0.500", "0.333", "0.543~", "0.181")
        assert status.report_uri == "s3://evals/x/index.html"
        assert status.report_digest == a.seal
        assert decide(a, self.given(a, jobs=jobs, status=status)) == SweepPlan()
        invalid = (a.settled(0), a.settled(1, Phase.INVALID, "NodeLost"))
        incomplete = decide(a, self.given(a, jobs=jobs, trials=invalid)).status
        assert incomplete is not None
        assert (incomplete.state, said(incomplete, "Complete")) == ("Incomplete", ("True", "Incomplete"))

    def test_a_report_whose_scores_are_lost_is_made_again(self, a: Any) -> None:
        gone = {"first-report": JobFacts(a.job("first-report", done=True, completion_time=a.ago(100)))}
        assert decide(a, self.given(a, jobs=gone)).create_jobs == (JobIntent(Task.REPORT, attempt=2),)
        third = {"first-report": JobFacts(a.job("first-report", done=True, attempt=3, completion_time=a.ago(100)))}
        assert said(decide(a, self.given(a, jobs=third)).status, "Failed") == ("True", "ReportFailed")


class TestParts:
    def test_a_foreign_object_blocks_and_is_named(self, a: Any) -> None:
        known = planned(a)
        counted = known.model_copy(update={"trials": "7/9"})
        message = "Job one/first-j0000 exists and is not ours"
        status = blocked(a.sweep_facts(status=known), counted, "ConfigurationError", message, a.now)
        assert said(status, "Ready") == ("False", "ConfigurationError")
        assert (status.state, status.trials) == ("Running", "7/9"), "what goes on beside it is still told"
        later = blocked(a.sweep_facts(status=status), known, "ConfigurationError", message, a.now + timedelta(hours=1))
        assert find(later.conditions, "Ready") == find(status.conditions, "Ready"), "the condition is steady"

    def test_a_deleted_sweep_is_left_alone(self, a: Any) -> None:
        facts = a.sweep_facts(plan=a.plan())
        assert decide(a, a.replace(facts, sweep=a.replace(facts.sweep, deletion_timestamp=a.now))) == SweepPlan()

    def test_counts_add_up(self, a: Any) -> None:
        frozen = a.plan(tasks=2, repeats=2)
        trials = (a.settled(0), a.settled(1, Phase.INVALID, "NodeLost"), a.trial(a.status(), ordinal=2), a.trial(ordinal=3))
        counts = count(frozen, Rows(trials), ())
        assert counts.pending + counts.working + counts.verifying + counts.sealed + counts.invalid == counts.total == 8
        assert (counts.collab.sealed, counts.exec.invalid, counts.exec.total) == (1, 1, 4)

    def test_groups_are_configuration_major(self, a: Any) -> None:
        frozen = a.plan(tasks=3, repeats=2)
        for group in range(frozen.groups):
            trials = tuple(a.settled(i) for i in frozen.ordinals_of_group(group))
            assert complete_groups(frozen, Rows(trials)) == [group]
            assert complete_groups(frozen, Rows(trials[1:])) == []

    def test_parallelism_may_shrink_below_what_runs(self, a: Any) -> None:
        rows = Rows([*(a.trial(a.status(), ordinal=i) for i in range(4)), a.trial(ordinal=4)])
        assert admit(a.plan(tasks=4, repeats=4), rows, frozenset(), Bounds(2), a.now, Policy()).new == ()
        assert missing(a.plan(tasks=4, repeats=4), rows, 4, 50) == ()

    def test_an_unknown_phase_counts_as_pending(self, a: Any) -> None:
        view = a.replace(a.trial(), status={"phase": "Dreaming"})
        assert Rows([view])[0].phase is Phase.PENDING

    def test_policy_bounds_the_creations_of_a_step(self, a: Any) -> None:
        rows = Rows(())
        assert len(missing(a.plan(tasks=4, repeats=4), rows, 1000, Policy().creates_per_step)) == 32
        assert len(missing(a.plan(tasks=4, repeats=4), rows, 1000, 5)) == 5

    def test_a_status_of_a_newer_operator_is_read(self, a: Any) -> None:
        from realcli_operator.reconcile.facts import UnreadableObject, trial_status

        newer = a.replace(a.trial(), status={"phase": "Sealed", "future": 1, "tokens": {"input": 1, "other": 2}})
        assert trial_status(newer).phase is Phase.SEALED
        with pytest.raises(UnreadableObject, match=r"Trial one/first-00000: status\.attempt"):
            trial_status(a.replace(a.trial(), status={"attempt": "many"}))
        assert trial_status(a.trial()) == TrialStatus()


class TestCancel:
    def test_before_the_plan_nothing_more_runs(self, a: Any) -> None:
        running = JobFacts(a.job(), (a.job_pod("plan"),))
        plan = decide(a, a.sweep_facts(spec=a.spec(cancel=True), jobs={"first-plan": running}))
        assert ([removal.name for removal in plan.delete_jobs], plan.create_jobs) == (["first-plan"], ())
        assert plan.status is not None
        assert (plan.status.state, said(plan.status, "Complete")) == ("Incomplete", ("True", "Cancelled"))
        assert decide(a, a.sweep_facts(spec=a.spec(cancel=True), status=plan.status)) == SweepPlan()

    def test_without_a_complete_group_there_is_no_report(self, a: Any) -> None:
        trials = (a.settled(0), a.settled(1, Phase.INVALID, "Cancelled"))
        plan = decide(a, a.sweep_facts(spec=a.spec(cancel=True), plan=a.plan(), status=planned(a), trials=trials))
        assert (plan.create_jobs, said(plan.status, "Complete")) == ((), ("True", "Cancelled"))

    def test_what_still_runs_is_waited_for(self, a: Any) -> None:
        trials = (a.settled(0), a.trial(a.status(), ordinal=1))
        plan = decide(a, a.sweep_facts(spec=a.spec(cancel=True), plan=a.plan(), status=planned(a), trials=trials))
        assert (plan.wake, plan.create_trials, plan.grants) == (("first-00001",), (), frozenset())
        assert said(plan.status or planned(a), "Complete") is None

    def test_the_report_of_a_part_says_so(self, a: Any) -> None:
        trials = (a.settled(0), a.settled(1), a.settled(2, Phase.INVALID, "Cancelled"))
        judged = a.done_job("judge", a.message("Judge", Result.JUDGED, seal=a.seal), "first-j0000")
        given = {"spec": a.spec(cancel=True), "plan": a.plan(tasks=2), "status": planned(a, tasks=2), "trials": trials}
        assert decide(a, a.sweep_facts(**given, jobs={"first-j0000": judged})).create_jobs == (JobIntent(Task.REPORT),)
        report = a.done_job("report", a.message("Report", Result.REPORTED, uri="s3://e/r", seal=a.seal), "first-report")
        over = decide(a, a.sweep_facts(**given, jobs={"first-j0000": judged, "first-report": report})).status
        assert over is not None
        assert (over.state, said(over, "Complete"), over.report_uri) == ("Incomplete", ("True", "Cancelled"), "s3://e/r")
        assert "1 of 2 groups" in find(over.conditions, "Complete").message  # type: ignore[union-attr]


class TestTtl:
    @pytest.mark.parametrize("type_", ["Complete", "Failed"])
    def test_a_sweep_that_is_over_goes_when_it_was_asked_to(self, a: Any, type_: str) -> None:
        over = SweepStatus(conditions=with_condition((), type_, "True", "Scored", "", a.ago(100), 1))

        def facts(ttl: str | None) -> Any:
            return a.sweep_facts(spec=a.spec(**({"ttlAfterFinished": ttl} if ttl else {})), status=over)

        assert decide(a, facts(None)) == SweepPlan()
        assert decide(a, facts("101s")) == SweepPlan(requeue_after=1.0)
        assert decide(a, facts("100s")) == SweepPlan(delete_sweep=True)

    def test_one_that_runs_does_not(self, a: Any) -> None:
        failed = planned(a).model_copy(
            update={"conditions": with_condition(planned(a).conditions, "Failed", "True", "JudgeFailed", "", a.ago(9999), 1)}
        )
        assert not decide(a, a.sweep_facts(spec=a.spec(ttlAfterFinished="1s"), plan=a.plan(), status=failed)).delete_sweep


class TestOfCluster:
    """What was decided once about the cluster stands in the status, as every pod is built for it."""

    @pytest.mark.parametrize(
        ("cgroup", "shown"),
        [
            (Cgroup(version="1", kills="Process"), {"cgroup": "1", "outOfMemory": "Process"}),
            (Cgroup(version="2", kills="Container"), {"cgroup": "2", "outOfMemory": "Container"}),
            (None, {}),
        ],
    )
    def test_it_is_told(self, a: Any, cgroup: Cgroup | None, shown: dict[str, str]) -> None:
        plan = a.plan(platform=a.platform(user_namespaces=False), cgroup=cgroup)
        status = decide_sweep(a.sweep_facts(plan=plan), a.now).status
        assert status is not None
        assert status.resolved is not None
        told = status.resolved.dump()
        assert {key: told[key] for key in ("cgroup", "outOfMemory") if key in told} == shown
        assert (told["userNamespaces"], told["imageVolumes"]) == (False, True)
