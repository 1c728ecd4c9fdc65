"""Claims of the agent and labels of failures: what is asked, and what counts as an answer."""

from __future__ import annotations

from typing import Any

import pytest

from realcli.api.trial import Checks
from realcli.judging.claims import claims_session, needs_claims, subjects_of
from realcli.judging.failures import FailureForm, by_program, failure_session, judged
from realcli.judging.model import Claim
from realcli.judging.run import Run, Settings, generic_instances, judge_run
from realcli.judging.session import Ask, Done, step
from realcli.scoring.records import GroupMember
from tests.support.judged_runs import LATER, MODEL, PLAN, Told, in_turn, ledger, outline_instance, reply, run_of, use


def claim(**changed: Any) -> dict[str, Any]:
    return {"kind": "ran", "exchange": 1, "quote": "at last I run the tests", "value": "tests", "outcome": "unsaid"} | changed


ROWS: dict[str, tuple[list[dict[str, Any]], str | None]] = {
    "none": ([], None),
    "one": ([claim()], None),
    "not the agent's words": ([claim(exchange=2, quote="12 passed in all")], "does not stand in the agent's words of exchange 2"),
    "a tool's output": ([claim(exchange=2, quote="pytest -q")], "does not stand in the agent's words"),
    "a word": ([claim(quote="tests")], "at least 8 characters"),
    "a state of nothing listed": ([claim(kind="state", subject="tests pass")], "subject 'tests pass' is none of"),
    "a number of nothing": ([claim(kind="number", value="12")], "a number needs subject and value"),
    "a number": ([claim(kind="number", subject="tests", value="12")], None),
    "another kind": ([claim(kind="hope")], "not of the tool's schema"),
}


@pytest.mark.parametrize(("given", "fault"), ROWS.values(), ids=ROWS)
def test_claims(run: Run, given: list[dict[str, Any]], fault: str | None) -> None:
    first = claims_session(run.reading, run.files, run.instances, MODEL)
    assert isinstance(first, Ask)
    now = step(first.state, reply(use("answer", claims=given)))
    if fault is None:
        assert isinstance(now, Done)
        assert [c.model_dump() for c in now.answers["claims"].answer] == [Claim.model_validate(c).model_dump() for c in given]
    else:
        assert isinstance(now, Ask)
        assert fault in now.request.messages[-1].returns[0].text


def test_no_list_of_claims_before_all_words_were_read() -> None:
    run = run_of(ledger(first="z" * 60_000))
    first = claims_session(run.reading, run.files, (), MODEL)
    assert isinstance(first, Ask)
    now = step(first.state, reply(use("answer", claims=[])))
    assert isinstance(now, Ask)
    assert "you were not shown all of the agent's words in exchange 1" in now.request.messages[-1].returns[0].text


def test_claims_are_asked_where_an_operator_compares_them(run: Run) -> None:
    assert not needs_claims([outline_instance()])
    assert needs_claims(generic_instances())
    assert subjects_of(generic_instances()) == ()


def test_claims_reach_the_operators(run: Run) -> None:
    def say(request: Any) -> Any:
        if request.purpose == "claims":
            return reply(use("answer", claims=[claim(exchange=2, quote=LATER[:30], value="make deploy", outcome="passed")]))
        return reply(text="nothing")

    generic = tuple(i for i in generic_instances() if i.id == "generic/g.claims-supported")
    asked = Run(run.trajectory, run.evidence, (), run.work_seal, generic)
    found = judge_run(asked, Settings(MODEL, votes=1), Told(say))
    assert [c.value for c in found.claims] == ["make deploy"]
    check = found.generic[0].checks[0]
    assert check.hard is not None
    assert check.hard.op == "claims_vs_trajectory"
    without = judge_run(asked, Settings(MODEL, votes=1), in_turn(reply(text="nothing")))
    assert without.claims == ()
    assert without.generic[0].checks[0].verdict == "unscored"


def member(**changed: Any) -> GroupMember:
    seen = {"ordinal": 3, "mode": "EXEC", "repeat": 1, "phase": "Sealed", "reason": "Completed", "attempt": 1, "reward": "0"}
    return GroupMember.model_validate(seen | changed)


@pytest.mark.parametrize(
    ("reason", "label"),
    [("TurnLimit", "gave-up-or-budget"), ("Deadline", "gave-up-or-budget"), ("Budget", "gave-up-or-budget"), ("Completed", None)],
)
def test_what_a_program_sees_of_a_failure(reason: str, label: str | None) -> None:
    found = by_program(member(reason=reason))
    assert (found.label, found.by) == (label, "program" if label else "none")


FAILURES: dict[str, tuple[dict[str, Any], str | None]] = {
    "a quote of the run": ({"exchange": 1, "quote": PLAN[:30]}, None),
    "a quote of the log": ({"exchange": 0, "quote": "FAILED test_parser"}, None),
    "nowhere in the log": ({"exchange": 0, "quote": PLAN[:30]}, "does not stand in the verifier's log"),
    "nowhere in the run": ({"exchange": 2, "quote": PLAN[:30]}, "does not stand in exchange 2"),
    "a word": ({"exchange": 0, "quote": "FAILED"}, "at least 8 characters"),
    "another label": ({"exchange": 1, "quote": PLAN[:30], "label": "bad luck"}, "not of the tool's schema"),
}
LOG = "FAILED test_parser - assert 1 == 2\nAnswer: label is other."


@pytest.mark.parametrize(("given", "fault"), FAILURES.values(), ids=FAILURES)
def test_failures(run: Run, given: dict[str, Any], fault: str | None) -> None:
    first = failure_session(run.reading, run.files, member(), Checks(passed=7, total=8), LOG, MODEL)
    assert isinstance(first, Ask)
    text = first.request.messages[0].text
    assert "its reward is 0; 7 of 8 checks passed" in text
    assert f"«{run.reading.fence}\n{LOG}" in text
    now = step(first.state, reply(use("answer", **({"label": "functional-or-boundary", "reason": "wrong"} | given))))
    if fault is None:
        assert isinstance(now, Done)
        record = judged(member(), now)
        assert (record.label, record.by, record.quote, record.exchanges) == (
            "functional-or-boundary", "judge", given["quote"], [first.request.key],
        )  # fmt: skip
    else:
        assert isinstance(now, Ask)
        assert fault in now.request.messages[-1].returns[0].text


def test_no_label_is_no_label(run: Run) -> None:
    first = failure_session(run.reading, run.files, member(), None, "", MODEL)
    assert isinstance(first, Ask)
    done = step(first.state, reply(stop="refusal"))
    assert isinstance(done, Done)
    record = judged(member(), done)
    assert (record.label, record.by, record.reason) == (None, "none", "the judge refused to answer")


def test_a_long_log_is_cut_in_the_middle_and_says_so(run: Run) -> None:
    log = "begin" + "x" * 100_000 + "the end of it"
    first = failure_session(run.reading, run.files, member(), None, log, MODEL)
    assert isinstance(first, Ask)
    text = first.request.messages[0].text
    assert "characters of the log are left out" in text
    assert "the end of it" in text
    assert FailureForm(run.reading, log).tool.name == "answer"
