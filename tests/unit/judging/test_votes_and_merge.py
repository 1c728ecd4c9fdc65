"""Majorities, and one record of program and judge."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli.judging.merge import merged
from realcli.judging.model import EvidenceItem, JudgeAnswer
from realcli.judging.votes import decide
from realcli.scoring.records import CheckRecord, HardRecord, InstanceRecord

ROWS: dict[str, tuple[list[Any], int, str | None, str]] = {
    # name: (accepted verdicts, votes asked for, what they come to, part of the reason)
    "one vote": (["1"], 1, "1", "1 of 1 votes say 1"),
    "all agree": (["0", "0", "0"], 3, "0", "3 of 3 votes say 0"),
    "two of three": (["1", "0", "1"], 3, "1", "2 of 3 votes say 1"),
    "three of a kind each": (["1", "0", "na"], 3, None, "no majority: 1 x 0, 1 x 1, 1 x na"),
    "one lost, two agree": (["na", "na"], 3, "na", "2 of 2 votes say na"),
    "one lost, two differ": (["1", "0"], 3, None, "no majority"),
    "two lost": (["1"], 3, None, "1 of 3 answers of the judge count"),
    "half of four": (["1", "1"], 4, "1", "2 of 2"),
    "less than half of four": (["1"], 4, None, "1 of 4"),
    "a tie": (["1", "1", "0", "0"], 4, None, "no majority: 2 x 0, 2 x 1"),
    "most but not more than half": (["1", "1", "0", "na"], 4, None, "no majority"),
    "none": ([], 1, None, "0 of 1"),
}


@pytest.mark.parametrize(("verdicts", "votes", "verdict", "why"), ROWS.values(), ids=ROWS)
def test_decide(verdicts: list[Any], votes: int, verdict: str | None, why: str) -> None:
    found = decide(verdicts, votes)
    assert found.verdict == verdict
    assert why in found.why


def test_why_votes_were_lost_is_said_once() -> None:
    assert decide(["1"], 3, ["cut", "cut"]).why == "1 of 3 answers of the judge count (cut)"


@given(st.lists(st.sampled_from(["1", "0", "na"]), max_size=9), st.integers(1, 9), st.randoms(use_true_random=False))
def test_order_does_not_matter(verdicts: list[Any], votes: int, random: Any) -> None:
    mixed = random.sample(verdicts, len(verdicts))
    assert decide(verdicts, votes) == decide(mixed, votes)


def vote(verdict: Any, number: int = 1, check: str = "p1/c") -> JudgeAnswer:
    return JudgeAnswer(
        check_id=check, vote=number, zero_clause_met=verdict == "0", na_clause_met=verdict == "na",
        evidence=[EvidenceItem(kind="quote", exchange=1, quote="q")], verdict=verdict, reason=f"vote {number}",
    )  # fmt: skip


def record(*checks: CheckRecord) -> InstanceRecord:
    return InstanceRecord(
        scenario="u.x", probe="p1", dimension="U", sub_dimension="s", state="unscored", reason="no program settles c", anchor=3,
        checks=list(checks),
    )  # fmt: skip


def open_check(hard: Any = None) -> CheckRecord:
    found = None if hard is None else HardRecord(op="order", result=hard, why="as recorded")
    return CheckRecord(check="c", verdict="unscored", by="none", hard=found, reason="nobody yet")


def one(check: CheckRecord, *verdicts: Any) -> CheckRecord:
    answers = [vote(verdict, number) for number, verdict in enumerate(verdicts, 1)]
    return merged(record(check), {"p1/c": answers[::-1]}, max(len(verdicts), 1), {}).checks[0]


@pytest.mark.parametrize(("said", "verdict"), [("1", "1"), ("0", "0"), ("na", "n/a")])
def test_the_judge_decides_what_is_open(said: str, verdict: str) -> None:
    found = one(open_check(), said, said, "1")
    assert (found.verdict, found.by, found.conflict) == (verdict, "judge", False)
    assert [answer.vote for answer in found.answers] == [1, 2, 3]
    assert found.reason == "vote 1"


@pytest.mark.parametrize(
    ("hard", "said", "trusted"),
    [
        (None, "1", True),
        ("undecided", "1", True),
        ("pass", "1", False),
        ("pass", "0", True),
        ("fail", "0", False),
        ("fail", "1", True),
    ],
)
def test_trusted_is_what_no_record_backs(hard: str | None, said: str, trusted: bool) -> None:
    assert one(open_check(hard), said).trusted is trusted


@pytest.mark.parametrize(("said", "conflict"), [("1", True), ("na", True), ("0", False)])
def test_the_program_stays_and_a_conflict_is_logged(said: str, conflict: bool) -> None:
    settled = CheckRecord(
        check="c", verdict="0", by="program", hard=HardRecord(op="order", result="fail", why="w"), reason="the program says so"
    )
    found = one(settled, said)
    assert (found.verdict, found.by, found.reason, found.conflict) == ("0", "program", "the program says so", conflict)
    assert not found.trusted


def test_one_answer_that_says_otherwise_is_a_conflict() -> None:
    settled = CheckRecord(check="c", verdict="0", by="program", hard=HardRecord(op="order", result="fail", why="w"))
    assert one(settled, "0", "1", "0").conflict
    assert not one(settled, "0", "0").conflict


def test_no_answer_is_unscored_with_the_reasons() -> None:
    found = merged(record(open_check()), {}, 3, {"p1/c": ["the judge refused to answer"]})
    assert (found.state, found.reason) == ("unscored", "neither program nor judge settles c")
    assert found.checks[0].reason == "nobody yet; 0 of 3 answers of the judge count (the judge refused to answer)"


def test_a_0_beside_an_open_check_is_triggered() -> None:
    failed = CheckRecord(check="d", verdict="0", by="program", reason="r")
    assert merged(record(failed, open_check()), {}, 1, {}).state == "triggered"


def test_what_has_no_checks_stays_as_it_is() -> None:
    untriggered = record().model_copy(update={"state": "untriggered", "reason": "cut"})
    assert merged(untriggered, {}, 3, {}) is untriggered
