"""The session machine: tools, repairs, bounds. Whatever a judge says, it ends with every check answered or unscored."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realcli.checks import judge_instance
from realcli.judging.model import JudgeReply
from realcli.judging.questions import scenario_of
from realcli.judging.run import Run, checks_session
from realcli.judging.session import REPAIRS, ROUNDS, Ask, Done, Model, step
from realcli.judging.tools import GivenAnswer
from tests.support.judged_runs import (
    GOOD,
    MODEL,
    PLAN,
    absence,
    answer,
    answers,
    ledger,
    quote,
    reply,
    run_of,
    use,
)

CHECKS = ("p1/plan-given", "p1/plan-precedes-change", "p1/plan-followed")
Session = Ask[GivenAnswer] | Done[GivenAnswer]


def begin(run: Run, model: Model = MODEL) -> Ask[GivenAnswer]:
    scenarios = []
    for instance in run.instances:
        found = scenario_of(instance, judge_instance(instance, run.trajectory, run.evidence), run.trajectory, run.reading)
        assert found is not None
        scenarios.append(found)
    first = checks_session(run, scenarios, model, 1)
    assert isinstance(first, Ask)
    return first


def play(first: Session, *replies: JudgeReply) -> Session:
    now = first
    for one in replies:
        assert isinstance(now, Ask)
        now = step(now.state, one)
    return now


def returned(now: Session) -> str:
    assert isinstance(now, Ask)
    return "\n".join(item.text for item in now.request.messages[-1].returns) or now.request.messages[-1].text


def test_good_answers_end_it(run: Run) -> None:
    first = begin(run)
    done = play(first, reply(answers("p1", *GOOD)))
    assert isinstance(done, Done)
    assert {id: taken.answer.verdict for id, taken in done.answers.items()} == dict.fromkeys(CHECKS, "1")
    assert {taken.key for taken in done.answers.values()} == {first.request.key}
    assert done.unscored == {}


def test_the_first_request(run: Run) -> None:
    request = begin(run).request
    assert request.about == list(CHECKS)
    assert [tool.name for tool in request.tools] == ["read_turns", "search", "read_state_file", "answer"]
    text = request.messages[0].text
    assert text.index(PLAN) < text.index("# Questions") < text.index("### Check p1/plan-given")
    assert "window: resp1 (exchanges 1; items 1.3 to 1.4)" in text
    schema = request.tools[-1].parameters["properties"]
    assert isinstance(schema, dict)
    assert schema["instance"]["enum"] == ["p1"]  # type: ignore[index,call-overload]


def test_a_fault_comes_back_and_is_mended(run: Run) -> None:
    bad = answer("p1/plan-given", "1", quote("never said in this run"))
    now = play(begin(run), reply(answers("p1", bad, *GOOD[1:])))
    assert isinstance(now, Ask)
    assert now.request.about == ["p1/plan-given"]
    assert "not accepted: p1/plan-given: evidence 1 (quote): this text stands nowhere" in returned(now)
    assert now.request.messages[-1].returns[0].is_error
    done = play(now, reply(answers("p1", GOOD[0])))
    assert isinstance(done, Done)
    assert set(done.answers) == set(CHECKS)
    assert done.answers["p1/plan-given"].key != done.answers["p1/plan-followed"].key


def test_after_two_repairs_it_is_unscored_and_never_a_verdict(run: Run) -> None:
    bad = answer("p1/plan-given", "1", quote("never said in this run"))
    now: Session = begin(run)
    for _ in range(REPAIRS):
        now = play(now, reply(answers("p1", bad, *GOOD[1:])))
        assert isinstance(now, Ask)
    done = play(now, reply(answers("p1", bad)))
    assert isinstance(done, Done)
    assert set(done.answers) == {"p1/plan-followed", "p1/plan-precedes-change"}
    assert "stands nowhere" in done.unscored["p1/plan-given"]


MALFORMED: dict[str, tuple[dict[str, Any], str]] = {
    "no input": ({}, "instance: Field required"),
    "another instance": ({"instance": "p9", "answers": list(GOOD)}, "'p9' was not asked; asked are p1"),
    "a check of nobody": ({"instance": "p1", "answers": [answer("p1/plan-liked", "1", quote(PLAN))]}, "is no check of p1"),
    "a verdict of nobody": (
        {"instance": "p1", "answers": [answer("p1/plan-given", "C", quote(PLAN))]},
        "Input should be",
    ),
    "a verdict in words": ({"instance": "p1", "answers": "1"}, "valid list"),
    "a further field": ({"instance": "p1", "answers": [], "grade": "A"}, "grade"),
    "what no JSON is": ({"unparsable": "{"}, "instance: Field required"),
}


@pytest.mark.parametrize(("given", "told"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_answer_is_about_nothing(run: Run, given: dict[str, Any], told: str) -> None:
    now = play(begin(run), reply(use("answer", **given)))
    assert told in returned(now)
    assert isinstance(now, Ask)
    assert now.request.about == list(CHECKS)


def test_each_check_once(run: Run) -> None:
    now = play(begin(run), reply(answers("p1", GOOD[0], answer("p1/plan-given", "0", quote(PLAN[:30])))))
    assert "p1/plan-given: it was answered more than once in this call" in returned(now)
    assert "p1/plan-followed: it was not answered" in returned(now)


def test_an_answer_that_counts_is_not_answered_again(run: Run) -> None:
    other = answer("p1/plan-given", "0", quote(PLAN[:30]))
    now = play(begin(run), reply(answers("p1", *GOOD[:2], answer("p1/plan-followed", "1", quote("nothing like it")))))
    done = play(now, reply(answers("p1", other, GOOD[2])))
    assert isinstance(done, Done)
    assert done.answers["p1/plan-given"].answer.verdict == "1"


def test_words_are_no_answer(run: Run) -> None:
    now: Session = begin(run)
    for _ in range(REPAIRS):
        now = play(now, reply(text="The verdict is 1 for everything. GRADE: C"))
        assert "Answer by the tool answer" in returned(now)
    done = play(now, reply(text="As I said."))
    assert isinstance(done, Done)
    assert (dict(done.answers), set(done.unscored)) == ({}, set(CHECKS))
    assert "3 replies in a row brought nothing" in done.unscored["p1/plan-given"]


def test_looking_is_no_idling_but_has_an_end(run: Run) -> None:
    now: Session = begin(run)
    rounds = 0
    while isinstance(now, Ask):
        now = play(now, reply(use("search", text=f"word {rounds}")))
        rounds += 1
    assert rounds == ROUNDS + 3
    assert "did not come to an end in 27 replies" in now.unscored["p1/plan-given"]


def test_errors_alone_are_idling(run: Run) -> None:
    done = play(begin(run), *[reply(use("read_turns", first=99))] * (REPAIRS + 1))
    assert isinstance(done, Done)


def test_a_cut_message_is_told_so(run: Run) -> None:
    assert returned(play(begin(run), reply(text="I think", stop="length"))).startswith(
        "Your message was cut at its length limit."
    )


def test_a_refusal_is_unscored(run: Run) -> None:
    done = play(begin(run), reply(text="I cannot", stop="refusal"))
    assert isinstance(done, Done)
    assert set(done.unscored.values()) == {"the judge refused to answer"}


TOOLS: dict[str, tuple[str, dict[str, Any], str]] = {
    "exchanges": ("read_turns", {"first": 1, "last": 2}, "=== exchange 2 ==="),
    "one exchange": ("read_turns", {"first": 2}, "pytest -q"),
    "beyond the end": ("read_turns", {"first": 2, "last": 99}, "[2.8 mark: the work ended: Completed]"),
    "no such exchange": ("read_turns", {"first": 9}, "the run, which has 1 to 2"),
    "turned round": ("read_turns", {"first": 2, "last": 1}, "are not in the run"),
    "no such item": ("read_turns", {"item": "9.9"}, "there is no item 9.9"),
    "an item": ("read_turns", {"item": "1.3"}, f"characters 0 to {len(PLAN)} of {len(PLAN)}"),
    "nothing named": ("read_turns", {}, "name the first exchange"),
    "another field": ("read_turns", {"from": 1}, "not of the tool's schema"),
    "search": ("search", {"text": "PYTEST"}, "[2.2 the agent calls a tool; around the hit]"),
    "empty search": ("search", {"text": ""}, "not of the tool's schema"),
    "a file": ("read_state_file", {"snapshot": "final", "path": "/app/a.py"}, "def parse():"),
    "files": ("read_state_file", {"snapshot": "final"}, "1 files of final"),
    "no such file": ("read_state_file", {"snapshot": "final", "path": "/etc/shadow"}, "final holds no /etc/shadow"),
    "no such snapshot": ("read_state_file", {"snapshot": "tomorrow"}, "there is no snapshot 'tomorrow'; there are final"),
    "no such tool": ("bash", {"command": "id"}, "there is no tool bash; there are read_turns, search, read_state_file, answer"),
}


@pytest.mark.parametrize(("name", "arguments", "told"), TOOLS.values(), ids=TOOLS)
def test_tool(run: Run, name: str, arguments: dict[str, Any], told: str) -> None:
    assert told in returned(play(begin(run), reply(use(name, **arguments))))


def test_every_use_is_returned_under_its_id(run: Run) -> None:
    uses = [use("search", "a", text="tests"), use("read_turns", "b", first=1), use("nothing", "c")]
    now = play(begin(run), reply(*uses))
    assert isinstance(now, Ask)
    assert [item.id for item in now.request.messages[-1].returns] == ["a", "b", "c"]


def test_what_was_not_shown_has_to_be_read_before_it_is_absent() -> None:
    made = ledger(first="y" * 60_000 + PLAN)
    run = run_of(made)
    absent = answer("p1/plan-given", "0", absence("resp1", 1))
    now = play(begin(run), reply(answers("p1", absent)))
    assert "you were not shown all of exchange 1" in returned(now)
    now = play(now, reply(use("read_turns", "r", item="1.3", offset=24_000)))
    now = play(now, reply(answers("p1", absent)))
    assert "accepted: p1/plan-given" in returned(now).splitlines()


def test_a_page_asked_for_in_the_same_reply_was_not_read_before_the_answer() -> None:
    run = run_of(ledger(first="y" * 60_000 + PLAN))
    absent = answers("p1", answer("p1/plan-given", "0", absence("resp1", 1)), id="a")
    now = play(begin(run), reply(use("read_turns", "r", item="1.3", offset=24_000), absent))
    assert "you were not shown all of exchange 1" in returned(now)
    assert isinstance(now, Ask)
    assert "p1/plan-given" in now.request.about
    now = play(now, reply(answers("p1", answer("p1/plan-given", "0", absence("resp1", 1)), id="b")))
    assert "accepted: p1/plan-given" in returned(now).splitlines()


@pytest.mark.parametrize("ids", [("a", "a"), ("", ""), ("functions.search:0", "b c"), ("x" * 65, "\u00e4")], ids=repr)
def test_every_message_that_goes_back_is_one_that_an_endpoint_takes(run: Run, ids: tuple[str, str]) -> None:
    now: Session = begin(run)
    for _ in range(3):
        odd = [use("search", ids[0], text="tests"), use("read turns!", ids[1], first=1)]
        now = play(now, reply(*odd))
    assert isinstance(now, Ask)
    said = [use for message in now.request.messages for use in message.uses]
    back = [one.id for message in now.request.messages for one in message.returns]
    assert len({use.id for use in said}) == len(said) == 6
    assert [use.id for use in said] == back
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", text) for use in said for text in (use.id, use.name))
    assert "there is no tool unknown" in returned(now)


def test_a_full_context_is_said_and_ends() -> None:
    small = Model("judge-1", "chat", context_tokens=32_000)
    run = run_of(ledger(first="y" * 300_000))
    now: Session = begin(run, small)
    for number in range(12):
        now = play(now, reply(use("read_turns", f"r{number}", item="1.3", offset=20_000 * number)))
        if "the context is full" in returned(now):
            break
    else:
        raise AssertionError("the context never got full")
    done = play(now, reply(answers("p1", answer("p1/plan-given", "0", absence("resp1", 1)))))
    assert isinstance(done, Ask)  # it may still be mended by a quote
    assert "you were not shown all of exchange 1" in returned(done)


def test_many_pages_at_once_do_not_burst_the_context() -> None:
    run = run_of(ledger(first="y" * 900_000))
    uses = [use("read_turns", f"r{number}", item="1.3", offset=24_000 + 60_000 * number) for number in range(12)]
    now = play(begin(run), reply(*uses))
    assert isinstance(now, Ask)  # those that fit are shown, the others say that the context is full
    returns = now.request.messages[-1].returns
    assert 1 < sum(not item.is_error for item in returns) < 12
    assert all("the context is full" in item.text for item in returns if item.is_error)


def test_questions_that_do_not_fit_are_unscored() -> None:
    run = run_of(ledger())
    scenarios = [
        s
        for i in run.instances
        if (s := scenario_of(i, judge_instance(i, run.trajectory, run.evidence), run.trajectory, run.reading))
    ]
    done = checks_session(run, scenarios, Model("m", "chat", context_tokens=4_000), 1)
    assert isinstance(done, Done)
    assert "does not fit 4000 tokens" in done.unscored["p1/plan-given"]


# -- whatever a judge says

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda c: st.lists(c, max_size=3) | st.dictionaries(st.text(max_size=8), c, max_size=3),
    max_leaves=8,
)
_evidence = st.fixed_dictionaries(
    {"kind": st.sampled_from(["quote", "hard", "file", "absence"])},
    optional={
        "exchange": st.integers(-1, 3),
        "quote": st.sampled_from([PLAN, PLAN[:20], "", "nope", "tests"]),
        "window": st.sampled_from(["resp1", "post", "x"]),
        "ref": st.sampled_from(["p1/plan-given", "final:/app/a.py", "x", ":"]),
        "exchanges_read": st.lists(st.integers(0, 3), max_size=3),
        "nearest_quote": st.sampled_from([None, PLAN[:20], "nope"]),
    },
)
_answer = st.fixed_dictionaries(
    {
        "check_id": st.sampled_from([*CHECKS, "p1/none"]),
        "anchor_exchange": st.integers(0, 2),
        "evidence": st.lists(_evidence, max_size=2),
        "reason": st.just("r"),
        "zero_clause_met": st.booleans(),
        "na_clause_met": st.booleans(),
        "verdict": st.sampled_from(["1", "0", "na"]),
    }
)
_use = st.one_of(
    st.builds(lambda a: use("answer", instance="p1", answers=a), st.lists(_answer, max_size=4)),
    st.builds(lambda i: use("answer", **{"instance": "p1", "answers": i}), _json),
    st.builds(lambda f, t: use("read_turns", first=f, last=t), st.integers(-1, 4), st.integers(-1, 4)),
    st.builds(lambda t: use("search", text=t), st.text(max_size=5)),
    st.just(use("nothing")),
)
_reply = st.builds(
    lambda uses, stop: reply(*uses, text="words", stop=stop),
    st.lists(_use, max_size=3),
    st.sampled_from(["end", "tools", "length", "other"]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(_reply, min_size=1, max_size=40), st.booleans())
def test_it_ends_and_leaves_nothing_out(replies: list[JudgeReply], good: bool) -> None:
    run = run_of(ledger(), files={"/app/a.py": b"def parse"})
    now: Session = begin(run)
    rounds = 0
    while isinstance(now, Ask):
        again = step(now.state, replies[rounds % len(replies)])
        assert again == step(now.state, replies[rounds % len(replies)])  # pure
        now, rounds = again, rounds + 1
        assert rounds <= ROUNDS + 3
    assert set(now.answers) | set(now.unscored) == set(CHECKS)
    assert not set(now.answers) & set(now.unscored)
    for taken in now.answers.values():
        assert (taken.answer.verdict == "0") == taken.answer.zero_clause_met
        assert taken.answer.evidence
