"""What the condition `Complete` says: as much as operator and report together know, and never that more was scored."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from realcli.api.outcomes import Phase
from realcli.api.termination import Result
from realcli_operator.reconcile.conditions import find
from realcli_operator.reconcile.facts import JobFacts
from realcli_operator.reconcile.sweep import decide_sweep

HINT = "; the report has the scores; allowIncomplete: true shows them here, a higher retryInvalid runs again what ended Invalid"


def told(a: Any, report: dict[str, Any], *, invalid: bool = False) -> tuple[str, str, str]:
    """(state, reason and message of Complete) of a sweep of two trials after its report Job."""
    trials = (a.settled(0), a.settled(1, Phase.INVALID, "NodeLost") if invalid else a.settled(1))
    message = a.message("Report", Result.REPORTED, uri="s3://evals/x", seal=a.seal, **report)
    jobs = {
        "first-j0000": a.done_job("judge", a.message("Judge", Result.JUDGED, seal=a.seal), "first-j0000"),
        "first-report": a.done_job("report", message, "first-report"),
    }
    known = decide_sweep(a.sweep_facts(plan=a.plan()), a.now).status
    status = decide_sweep(a.sweep_facts(plan=a.plan(), status=known, trials=trials, jobs=jobs), a.now).status
    assert status is not None
    complete = find(status.conditions, "Complete")
    assert complete is not None
    return status.state, complete.reason, complete.message


def test_everything_scored(a: Any) -> None:
    counts = "2 valid, 0 invalid, 0 missing of 2 trials; 1 of 1 groups judged"
    assert told(a, {"message": counts}) == ("Complete", "Scored", "2 trials scored")


def test_an_invalid_trial(a: Any) -> None:
    counts = "1 valid, 1 invalid, 0 missing of 2 trials; 1 of 1 groups judged"
    expected = f"1 of 2 trials ended Invalid ({counts}); missing is not 0{HINT}"
    assert told(a, {"message": counts, "reason": "Incomplete"}, invalid=True) == ("Incomplete", "Incomplete", expected)


def test_a_group_that_the_report_did_not_find(a: Any) -> None:
    counts = "0 valid, 0 invalid, 2 missing of 2 trials; 0 of 1 groups judged"
    expected = f"not every trial is in the report ({counts}); missing is not 0{HINT}"
    assert told(a, {"message": counts, "reason": "Incomplete"}) == ("Incomplete", "Incomplete", expected)


def test_a_report_that_says_no_counts(a: Any) -> None:
    assert told(a, {}, invalid=True)[2] == f"1 of 2 trials ended Invalid; missing is not 0{HINT}"
    assert told(a, {"reason": "Incomplete"})[2] == f"not every trial is in the report; missing is not 0{HINT}"


def test_a_report_whose_scores_fit_no_message_is_over_too(a: Any) -> None:
    """33 configurations of long names, say: nothing is left to be shown, so nothing is made anew and the sweep can go."""
    spec = a.spec(allowIncomplete=True, ttlAfterFinished="1s")
    trials = (a.settled(0), a.settled(1, Phase.INVALID, "NodeLost"))
    message = a.message("Report", Result.REPORTED, uri="s3://evals/x", seal=a.seal, reason="Incomplete")
    jobs = {
        "first-j0000": a.done_job("judge", a.message("Judge", Result.JUDGED, seal=a.seal), "first-j0000"),
        "first-report": a.done_job("report", message, "first-report"),
    }

    def step(status: Any, **values: Any) -> Any:
        facts = a.sweep_facts(
            plan=a.plan(), spec=spec, trials=trials, jobs=jobs, **({} if status is None else {"status": status})
        )
        return decide_sweep(a.replace(facts, **values), a.now)

    status = step(None).status
    assert (status.state, status.scores, status.report_uri) == ("Incomplete", [], "s3://evals/x")
    collected = {**jobs, "first-report": JobFacts(a.job("first-report", done=True, completion_time=a.ago(100)))}
    after = step(status, jobs=collected)
    assert (after.create_jobs, after.delete_jobs) == ((), ())
    later = decide_sweep(
        a.sweep_facts(plan=a.plan(), spec=spec, trials=trials, jobs=jobs, status=status), a.now + timedelta(seconds=2)
    )
    assert later.delete_sweep


def test_a_refusal_in_words_that_no_condition_can_have_is_told_all_the_same(a: Any) -> None:
    refusal = a.message("Plan", Result.REFUSED, reason="two words", message="what it said")
    failed = JobFacts(a.job(failed=True), (a.job_pod("plan", refusal, phase="Failed"),))
    status = decide_sweep(a.sweep_facts(jobs={"first-plan": failed}), a.now).status
    planned = find(status.conditions, "Planned")
    assert (planned.reason, planned.message) == ("Refused", "two words: what it said")
