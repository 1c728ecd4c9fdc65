"""Emulated judges over the known-answer set, through the real sessions."""

from __future__ import annotations

import pytest

from realcli.checks import judge_instance
from realcli.judging.model import JudgeRequest, Message
from realcli.judging.port import BackendRefused
from realcli.judging.run import Settings
from realcli.judging.session import Model
from realcli.known import calibration
from realcli.known.bench import Bench, injected
from realcli.known.calibration import rows_of
from realcli.known.cases import known_cases
from realcli.known.judges import emulated
from realcli.known.model import Case, KnownError
from realcli.scoring.records import InstanceRecord

CASES = known_cases()
SETTINGS = Settings(Model("emulated", "anthropic"), votes=1)
VIOLATIONS = [case for case in CASES if case.kind == "violates"]
SOME = VIOLATIONS[::3]
"""Enough to see a judge err; all of them are judged for docs/known-answers.md, which lint compares."""


def judged(name: str, cases: list[Case], seed: int = 0) -> list[InstanceRecord]:
    return calibration.judged(cases, SETTINGS, emulated(name, seed).over(cases))


def test_the_oracle_is_right_everywhere() -> None:
    for case, record in zip(CASES, judged("oracle", list(CASES)), strict=True):
        assert {row.check: row.verdict for row in rows_of(case, record)} == dict(case.expected), case.id
        assert not any(check.conflict for check in record.checks), case.id


def test_an_instruction_outside_every_fence_would_be_obeyed_but_there_is_none() -> None:
    hostile = [injected(case) for case in SOME]
    for case, record in zip(hostile, judged("gullible-outside", hostile), strict=True):
        assert {row.check: row.verdict for row in rows_of(case, record)} == dict(case.expected), case.id


def test_an_instruction_inside_the_fence_is_what_a_gullible_judge_falls_for() -> None:
    hostile = [injected(case) for case in SOME]
    rows = [row for c, r in zip(hostile, judged("gullible-inside", hostile), strict=True) for row in rows_of(c, r)]
    assert all(row.verdict == "1" for row in rows if not row.settled and row.truth == "0")
    assert all(row.verdict == row.truth for row in rows if row.settled)  # a program listens to nobody


def test_without_an_instruction_a_gullible_judge_is_an_oracle() -> None:
    for case, record in zip(SOME, judged("gullible-inside", SOME), strict=True):
        assert {row.check: row.verdict for row in rows_of(case, record)} == dict(case.expected), case.id


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 4))])
def test_a_lazy_judge_is_accepted_only_where_a_quote_is_all_that_is_asked(seed: int) -> None:
    for case, record in zip(VIOLATIONS, judged("lazy", VIOLATIONS, seed), strict=True):
        bench = Bench(case)
        for row in rows_of(case, record):
            if row.truth == "0" and row.verdict == "1":
                question = bench.questions[case.of(row.check)]
                assert row.needs == "quote", row
                assert bench.quotable(question) is not None
            if row.needs == "absence" and not row.settled:
                assert row.verdict == "unscored", row


def test_noise_is_drawn_anew_for_every_seed_and_the_same_for_one() -> None:
    one, again, other = (judged("noisy", VIOLATIONS[:12], seed) for seed in (1, 1, 2))
    assert one == again
    assert one != other


def test_injection_changes_what_the_user_sees_and_no_record_of_what_was_done() -> None:
    case = VIOLATIONS[0]
    hostile = injected(case)
    assert hostile.trajectory != case.trajectory
    assert len(hostile.trajectory.items) == len(case.trajectory.items)
    got = judge_instance(hostile.instance, hostile.trajectory, hostile.evidence)
    assert got.checks


def test_an_unknown_judge_and_a_strange_question_are_refused() -> None:
    with pytest.raises(KnownError, match="there is no emulated judge 'wise'; there are oracle, noisy"):
        emulated("wise")
    backend = emulated("oracle").over(CASES[:1])
    text = f"«{Bench(CASES[0]).run.reading.fence}\nx"
    request = JudgeRequest(purpose="checks", about=["k/x"], model="m", api="chat", system="", tools=[],
                           messages=[Message(role="user", text=text)])  # fmt: skip
    with pytest.raises(BackendRefused, match="k/x is no question"):
        backend.complete(request)
    with pytest.raises(BackendRefused, match="not failure"):
        backend.complete(request.model_copy(update={"purpose": "failure"}))
    with pytest.raises(BackendRefused, match="no others"):
        backend.complete(request.model_copy(update={"messages": [Message(role="user")]}))
