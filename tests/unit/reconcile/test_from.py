"""`spec.from`: what a sweep waits for before it is planned, and what it does with runs that another has made."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from realcli.api.outcomes import Phase
from realcli.api.plan import Plan
from realcli.api.source import ModeEnds, PlanSource, Settled, SourceRef
from realcli.api.sweep import SweepSpec
from realcli.api.sweepstatus import Condition, SweepStatus, Withdrawn
from realcli.api.termination import Result
from realcli_operator.pods.jobs import sweep_job
from realcli_operator.pods.parts import SweepContext
from realcli_operator.reconcile.conditions import find
from realcli_operator.reconcile.facts import JobFacts
from realcli_operator.reconcile.plans import JobIntent, PodIntent, SweepPlan, Task
from realcli_operator.reconcile.policy import Policy
from realcli_operator.reconcile.sweep import decide_sweep
from realcli_operator.reconcile.trial import decide_trial

URI = "s3://evals/sweeps/one/first-22222222"
LOCK = "sha256:" + "7" * 64
STORAGE = {"bucket": "evals", "credentials": {"secretRef": {"name": "evals-s3"}}}


def again(phases: tuple[str, ...] = ("Judge",), **source: Any) -> SweepSpec:
    given = source or {"sweep": "source"}
    return SweepSpec.model_validate({"from": {**given, "phases": list(phases)}, "storage": STORAGE})


def status(a: Any, type_: str = "Complete", **values: Any) -> SweepStatus:
    over = Condition(type=type_, status="True", reason="Scored", last_transition_time=a.at(60))
    given: dict[str, Any] = {
        "conditions": [over],
        "storage_uri": URI,
        "lock_digest": LOCK,
        "trials": "12/12",
        "state": "Complete",
    }
    return SweepStatus(**(given | values))


def source_of(a: Any, **values: Any) -> Any:
    view = a.sweep(status=status(a, **values))
    return replace(view, name="source", uid="22222222")


def ready(plan: SweepPlan) -> tuple[str, str]:
    assert plan.status is not None
    found = find(plan.status.conditions, "Ready")
    assert found is not None
    return found.reason, found.message


class TestPlanning:
    def test_of_a_complete_sweep_the_plan_job_is_told_the_place(self, a: Any) -> None:
        row = Withdrawn(task="bad", reason="VerifierFault", configurations=["x"])
        plan = decide_sweep(a.sweep_facts(spec=again(), source=source_of(a, withdrawn=[row])), a.now)
        ref = SourceRef(uri=URI, lock_digest=LOCK, withdrawn=["bad"])
        assert plan.create_jobs == (JobIntent(Task.PLAN, source=ref),)

    def test_one_that_is_gone_is_found_by_its_place(self, a: Any) -> None:
        plan = decide_sweep(a.sweep_facts(spec=again(uri=URI, lockDigest=LOCK)), a.now)
        assert plan.create_jobs == (JobIntent(Task.PLAN, source=SourceRef(uri=URI, lock_digest=LOCK)),)

    def test_what_is_not_there_is_waited_for(self, a: Any) -> None:
        plan = decide_sweep(a.sweep_facts(spec=again()), a.now)
        assert (plan.create_jobs, plan.requeue_after) == ((), 30.0)
        reason, text = ready(plan)
        assert reason == "SourceNotFound"
        assert "there is no sweep source in namespace one" in text
        assert "spec.from.uri" in text

    @pytest.mark.parametrize(
        ("type_", "values", "shown"),
        [
            ("Planned", {"state": "Running", "trials": "3/12"}, "source is Running (3/12)"),
            ("Failed", {"state": "Failed", "trials": None}, "source is Failed (no trials yet)"),
        ],
    )
    def test_what_is_not_complete_is_waited_for(self, a: Any, type_: str, values: dict[str, Any], shown: str) -> None:
        plan = decide_sweep(a.sweep_facts(spec=again(), source=source_of(a, type_=type_, **values)), a.now)
        assert (plan.create_jobs, plan.requeue_after) == ((), 30.0)
        reason, text = ready(plan)
        assert reason == "SourceNotComplete"
        assert shown in text

    def test_a_source_that_goes_while_its_plan_is_made_again(self, a: Any) -> None:
        """The Job's result was lost, and so is the source: it is waited for, and the Job stays."""
        facts = a.sweep_facts(spec=again(), jobs={"first-plan": JobFacts(a.job("first-plan", failed=True))})
        plan = decide_sweep(facts, a.now)
        assert (plan.create_jobs, plan.delete_jobs) == ((), ())

    def test_the_job_has_it_in_its_environment(self, a: Any) -> None:
        context = SweepContext("one", "first", "uid", again(), a.platform())
        job = sweep_job(context, JobIntent(Task.PLAN, source=SourceRef(uri=URI, lock_digest=LOCK)))
        env = {e["name"]: e.get("value", "") for e in job["spec"]["template"]["spec"]["containers"][0]["env"]}
        assert json.loads(env["REALCLI_SWEEP"])["source"] == {"uri": URI, "lockDigest": LOCK, "withdrawn": []}
        assert not [name for name in env if name.startswith("REALCLI_KEY")], "no model under test is asked"


def judged_only(a: Any, **values: Any) -> Plan:
    ends = {"exec": ModeEnds(sealed=5, invalid=1), "collab": ModeEnds(sealed=6)}
    made: Plan = a.plan(tasks=6, repeats=1, source=PlanSource(sweep="one/source", verify=False, **ends), **values)
    return made


class TestJudging:
    def test_all_groups_are_judged_without_a_single_trial(self, a: Any) -> None:
        plan = judged_only(a)
        made = decide_sweep(a.sweep_facts(spec=again(), plan=plan), a.now)
        assert made.create_trials == ()
        assert [(i.task, i.group) for i in made.create_jobs] == [(Task.JUDGE, group) for group in range(Policy().judges)]
        assert all(intent.input is not None and intent.input.members == [] for intent in made.create_jobs)
        assert made.status is not None
        counts = made.status.counts
        assert (counts.total, counts.created, counts.pending, counts.sealed, counts.invalid) == (12, 0, 0, 11, 1)
        assert (counts.exec.invalid, counts.collab.sealed, made.status.trials) == (1, 6, "12/12")
        assert made.status.cost is None, "what the runs cost was counted where they ran"

    def test_groups_with_a_trial_that_ended_invalid_there_are_counted(self, a: Any) -> None:
        source = PlanSource(sweep="one/source", verify=False, exec=ModeEnds(sealed=4, invalid=2), incomplete=[1, 4])
        plan = a.plan(tasks=6, repeats=1, source=source)
        said = a.message("Judge", Result.JUDGED, seal=LOCK)
        jobs = {f"first-j{g:04d}": a.done_job("judge", said, f"first-j{g:04d}") for g in range(4)}
        made = decide_sweep(a.sweep_facts(spec=again(), plan=plan, jobs=jobs), a.now)
        assert made.status is not None
        counts = made.status.counts
        assert (counts.groups_judged, counts.groups_incomplete) == (4, 1), "of those that are judged"

    def test_nothing_tells_to_run_again_what_ran_elsewhere(self, a: Any) -> None:
        plan = judged_only(a)
        said = a.message("Judge", Result.JUDGED, seal=LOCK)
        jobs = {f"first-j{g:04d}": a.done_job("judge", said, f"first-j{g:04d}") for g in range(6)}
        jobs["first-report"] = a.done_job("report", a.message("Report", Result.REPORTED, seal=LOCK, uri=URI), "first-report")
        made = decide_sweep(a.sweep_facts(spec=again(), plan=plan, jobs=jobs), a.now)
        assert made.status is not None
        complete = find(made.status.conditions, "Complete")
        assert complete is not None
        assert complete.reason == "Incomplete"
        assert "retryInvalid" not in complete.message
        assert "allowIncomplete: true shows them here" in complete.message

    def test_then_the_report_is_made(self, a: Any) -> None:
        plan = judged_only(a)
        said = a.message("Judge", Result.JUDGED, seal=LOCK)
        jobs = {f"first-j{g:04d}": a.done_job("judge", said, f"first-j{g:04d}") for g in range(6)}
        made = decide_sweep(a.sweep_facts(spec=again(), plan=plan, jobs=jobs), a.now)
        assert [intent.task for intent in made.create_jobs] == [Task.REPORT]

    def test_cancelled_nothing_new_is_judged(self, a: Any) -> None:
        spec = SweepSpec.model_validate(again().dump() | {"cancel": True})
        made = decide_sweep(a.sweep_facts(spec=spec, plan=judged_only(a)), a.now)
        assert made.create_jobs == ()
        assert made.status is not None
        complete = find(made.status.conditions, "Complete")
        assert complete is not None
        assert (complete.status, complete.reason) == ("True", "Cancelled")


def verifying(a: Any, *settled: Settled) -> Plan:
    made: Plan = a.plan(source=PlanSource(sweep="one/source", verify=True, settled=list(settled)))
    return made


class TestTrials:
    VERIFY = "first-00000-a1-v1"

    def facts(self, a: Any, status: Any = None, *pods: Any, **values: Any) -> Any:
        spec = again(("Verify", "Judge"))
        return a.facts(status, *pods, **({"sweep": spec, "plan": verifying(a)} | values))

    def test_it_starts_with_its_verify_pod(self, a: Any) -> None:
        plan = decide_trial(self.facts(a), a.now)
        assert plan.create == PodIntent(1, 1)
        assert plan.status is not None
        assert (plan.status.phase, plan.status.attempt, plan.status.verify_attempt) == (Phase.VERIFYING, 1, 1)
        assert (plan.status.pod, plan.status.ledger_uri) == (self.VERIFY, None)

    def test_a_pod_that_was_made_before_a_crash_is_taken_over(self, a: Any) -> None:
        plan = decide_trial(self.facts(a, None, a.pod(self.VERIFY)), a.now)
        assert plan.create is None
        assert plan.status is not None
        assert (plan.status.phase, plan.status.verify_attempt, plan.status.ledger_uri) == (Phase.VERIFYING, 1, None)

    def test_a_verdict_seals_it(self, a: Any) -> None:
        message = a.verdict("TurnLimit", "0.5", uri=f"{URI}/trials/00007/attempt-2", turns=9)
        begun = a.status(Phase.VERIFYING, work_end=None, work_seal_digest=None)
        made = decide_trial(self.facts(a, begun, a.ended(self.VERIFY, message)), a.now).status
        assert made is not None
        assert (made.phase, made.reason, made.reward, made.work_seal_digest) == (Phase.SEALED, "TurnLimit", "0.5", a.seal)
        assert (made.ledger_uri, made.turns) == (f"{URI}/trials/00007/attempt-2/ledger", 9)
        assert made.started_at is not None, "what its forecast is made of"

    def test_without_a_seal_at_the_source_it_is_lost_and_not_tried_again(self, a: Any) -> None:
        begun = a.status(Phase.VERIFYING, work_end=None, work_seal_digest=None)
        plan = decide_trial(self.facts(a, begun, a.ended(self.VERIFY, a.no_work_seal())), a.now)
        assert plan.create is None
        assert plan.status is not None
        assert (plan.status.phase, plan.status.reason) == (Phase.INVALID, "StorageUnavailable")
        assert "the run of one/source cannot be verified again: there is no work-seal.json" in str(plan.status.message)

    @pytest.mark.parametrize(
        ("phase", "reason", "reward"), [(Phase.INVALID, "NodeLost", None), (Phase.SEALED, "AgentOutOfMemory", "0")]
    )
    def test_what_left_no_state_ends_as_there(self, a: Any, phase: Phase, reason: str, reward: str | None) -> None:
        plan = verifying(a, Settled(ordinal=0, phase=phase, reason=reason))
        made = decide_trial(self.facts(a, plan=plan, granted=False), a.now)
        assert made.create is None
        assert made.status is not None
        assert (made.status.phase, made.status.reason, made.status.reward) == (phase, reason, reward)
        assert (made.status.attempt, made.status.work_seal_digest, made.status.pod) == (1, None, None)
        assert "one/source" in str(made.status.message)

    def test_how_runs_ended_at_the_source_says_nothing_of_the_cluster_now(self, a: Any) -> None:
        """Else a sweep that only verifies would open its breaker over what a provider did weeks ago."""
        settled = [Settled(ordinal=ordinal, phase=Phase.INVALID, reason="ProviderUnavailable") for ordinal in range(6)]
        source = PlanSource(sweep="one/source", verify=True, settled=settled)
        plan = a.plan(tasks=6, repeats=1, source=source)
        spec, trials = again(("Verify", "Judge")), []
        for ordinal in range(6):
            facts = a.facts(
                None, plan=plan, sweep=spec, spec=a.trial_spec(ordinal, plan), trial=a.trial(None, ordinal=ordinal, plan=plan)
            )
            trials.append(a.trial(decide_trial(facts, a.now).status, ordinal=ordinal, plan=plan))
        assert {trial.status["reason"] for trial in trials} == {"ProviderUnavailable"}
        made = decide_sweep(a.sweep_facts(spec=spec, plan=plan, trials=tuple(trials)), a.now)
        assert made.status is not None
        assert find(made.status.conditions, "Degraded") is None
        assert made.create_trials, "the others are verified"
