"""Every post-condition: an answer that violates it comes back with the reason, one that meets it counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.catalogue_models import CheckTemplate
from realcli.benchmark.script_models import Probe
from realcli.checks import Evidence, judge_instance
from realcli.checks.instance import of_probe
from realcli.judging.conditions import Evidence as Held
from realcli.judging.conditions import faults
from realcli.judging.questions import Question, scenario_of
from realcli.judging.reading import Seen
from realcli.judging.run import Run
from realcli.judging.tools import GivenAnswer
from realcli.ledger.base import BlobRef
from realcli.ledger.events import ZERO_HASH, AgentMessage, ProbeDelivered, Snapshot, ToolCall
from tests.support.judged_runs import LATER, OUTLINE, PLAN, Files, absence, answer, ledger, outline_instance, quote, run_of
from tests.support.ledgers import Ledger

FILES = {"/app/a.py": b"def parse():\n    return 1\n"}
READ_ALL = "all"


def question(run: Run, check: str = "plan-given", **changed: Any) -> Question:
    """A question of the outline scenario; `changed`: fields of its check that are others."""
    instance = outline_instance()
    record = judge_instance(instance, run.trajectory, run.evidence)
    scenario = scenario_of(instance, record, run.trajectory, run.reading)
    assert scenario is not None
    found = next(q for q in scenario.questions if q.check.id == check)
    template = CheckTemplate.model_validate(found.check.model_dump(by_alias=True) | changed)
    return Question(**{**found.__dict__, "check": template})


def found(run: Run, asked: Question, *, read: bool = True, **given: Any) -> list[str]:
    shown = Seen().plus(run.reading.page(1, 2).spans) if read else Seen()
    parsed = GivenAnswer.model_validate(answer(asked.id, **given) if "evidence" not in given else {**answer(asked.id), **given})
    return faults(asked, parsed, Held(run.reading, run.files, shown))


def verdict(value: str, *evidence: dict[str, Any], **changed: Any) -> dict[str, Any]:
    given = answer("p1/plan-given", value, *evidence)
    return {key: item for key, item in given.items() if key != "check_id"} | changed


RESP1 = {"one_needs": "quote", "window": "resp1"}
ABSENT = {"one_needs": "absence", "window": "resp1"}
NA = {"na_when": "no plan was asked for"}
GOOD = quote(PLAN[:30])

ROWS: dict[str, tuple[dict[str, Any], dict[str, Any], str | None]] = {
    # name: (check, answer, part of the fault; None: it counts)
    "a literal quote in the window": (RESP1, verdict("1", GOOD), None),
    "other white space and marks": (RESP1, verdict("1", quote("First  I read\u200b main.py,\nthen I change")), None),
    "not literal": (RESP1, verdict("1", quote("First I read main.py and then I change")), "stands nowhere in exchange 1"),
    "with an ellipsis": (RESP1, verdict("1", quote("First I read … run the tests.")), "copy it literally"),
    "another exchange": (RESP1, verdict("1", quote(PLAN[:30], 2)), "does not stand in exchange 2 but in 1"),
    "no such exchange": (RESP1, verdict("1", quote(PLAN[:30], 7)), "there is no exchange 7"),
    "one word": (RESP1, verdict("1", quote("tests")), "at least 8 characters"),
    "quote without text": (RESP1, verdict("1", {"kind": "quote", "exchange": 1}), "needs exchange and quote"),
    "said when asked again": (RESP1, verdict("1", quote(LATER, 2)), "stands outside the window, which is items 1.3 to 1.4"),
    "good and outside": (RESP1, verdict("1", GOOD, quote(LATER, 2)), "stands outside the window"),
    "the user's words alone": (
        {"one_needs": "quote", "window": "post"},
        verdict("1", quote("please", 2)),
        "from what the agent said or did",
    ),
    "the agent's word of itself": (
        {"one_needs": "quote", "window": "post", "evidence": "environment"},
        verdict("1", quote(LATER, 2)),
        "not from what the agent says",
    ),
    "a tool's output": (
        {"one_needs": "quote", "window": "post", "evidence": "environment"},
        verdict("1", quote("12 passed", 2)),
        None,
    ),
    "a call": ({"one_needs": "quote", "window": "post", "evidence": "environment"}, verdict("1", quote("pytest -q", 2)), None),
    "a record of files": (
        {"one_needs": "quote", "window": "post", "evidence": "environment"},
        verdict("1", quote("/app/a.py created", 2)),
        None,
    ),
    "no evidence": (RESP1, verdict("1"), "evidence is empty"),
    "another anchor": (RESP1, verdict("1", GOOD, anchor_exchange=2), "the question says 1"),
    "zero clause and 1": (RESP1, verdict("1", GOOD, zero_clause_met=True), "a met zero_when is 0"),
    "0 without zero clause": (RESP1, verdict("0", GOOD, zero_clause_met=False), "a met zero_when is 0"),
    "0 with a quote": (RESP1, verdict("0", GOOD), None),
    "0 with the user's words alone": (
        {"one_needs": "quote", "window": "post"},
        verdict("0", quote("please", 2)),
        "what the user said alone shows nothing",
    ),
    "0 with a mark alone": (
        {"one_needs": "quote", "window": "post"},
        verdict("0", quote("the agent hands over (yielded)")),
        "what the user said alone shows nothing",
    ),
    "0 where absence passes, with an absence": (
        ABSENT,
        verdict("0", absence("resp1", 1)),
        "absence alone is what passes here",
    ),
    "0 where absence passes, with what was done": (ABSENT, verdict("0", GOOD), None),
    "0 where absence passes, of what was never answered": (
        {"one_needs": "absence", "window": "post"},
        verdict("0", quote("please", 2), absence("post", 1, 2)),
        None,
    ),
    "one character of a file": (
        {"one_needs": "quote", "window": "post"},
        verdict("1", {"kind": "file", "ref": "final:/app/a.py", "quote": "d"}),
        "at least 8 characters, unless it is the whole of a file",
    ),
    "0 with a quote from outside": (RESP1, verdict("0", quote(LATER, 2)), "a 0 needs evidence inside the window"),
    "0 as nothing is there": (RESP1, verdict("0", absence("resp1", 1)), None),
    "0 as nothing is there, unread": (
        RESP1,
        verdict("0", absence("resp1")),
        "exchanges_read does not cover the window: 1 missing",
    ),
    "na where never": (RESP1, verdict("na", GOOD), "always applies"),
    "na clause and 1": (RESP1 | NA, verdict("1", GOOD, na_clause_met=True), "a met na_when is na"),
    "na without its clause": (RESP1 | NA, verdict("na", GOOD, na_clause_met=False), "a met na_when is na"),
    "na where never, clause denied": (RESP1, verdict("na", GOOD, na_clause_met=False), "it always applies"),
    "na as the run was cut": (RESP1 | NA, verdict("na", quote("the work ended: Completed", 2)), None),
    "na by the agent's words": (RESP1 | NA, verdict("na", GOOD), None),
    "na as nothing is there": (RESP1 | NA, verdict("na", absence("resp1", 1)), None),
    "na as nothing is there, unread": (RESP1 | NA, verdict("na", absence("resp1")), "does not cover the window"),
    "na by a file of what its window led to": (
        RESP1 | NA | {"window": "post"},
        verdict("na", {"kind": "file", "ref": "final:/app/a.py", "quote": "def parse():"}),
        None,
    ),
    "na by a file of a later time": (
        RESP1 | NA,
        verdict("na", {"kind": "file", "ref": "final:/app/a.py", "quote": "def parse():"}),
        "na needs evidence that its clause holds",
    ),
    "na without evidence": (RESP1 | NA, verdict("na"), "evidence is empty"),
    "absence": (ABSENT, verdict("1", absence("resp1", 1)), None),
    "absence with its nearest": (ABSENT, verdict("1", absence("resp1", 1, nearest=PLAN[:20])), None),
    "absence for a quote": (RESP1, verdict("1", absence("resp1", 1)), "needs a literal quote"),
    "quote for an absence": (ABSENT, verdict("1", GOOD), "needs evidence of kind absence"),
    "absence in another window": (ABSENT, verdict("1", absence("run", 1)), "this check's is resp1"),
    "absence over part of the window": (
        {"one_needs": "absence", "window": "post"},
        verdict("1", absence("post", 1)),
        "does not cover the window: 2 missing",
    ),
    "absence, nearest not literal": (
        ABSENT,
        verdict("1", absence("resp1", 1, nearest="never said")),
        "nearest_quote stands nowhere",
    ),
    "absence, nearest outside": (ABSENT, verdict("1", absence("resp1", 1, nearest=LATER)), "nearest_quote stands nowhere"),
    "a record that was not shown": (RESP1, verdict("1", {"kind": "hard", "ref": "p1/plan-given"}), "no program record"),
    "the record of another check": (RESP1, verdict("1", {"kind": "hard", "ref": "p1/plan-followed"}), "its own: p1/plan-given"),
    "a file": (
        RESP1 | {"window": "post"},
        verdict("1", {"kind": "file", "ref": "final:/app/a.py", "quote": "def parse():"}),
        None,
    ),
    "a file at the end for one response": (
        RESP1,
        verdict("1", {"kind": "file", "ref": "final:/app/a.py", "quote": "def parse():"}),
        "does not show what held then",
    ),
    "no such file": (
        RESP1 | {"window": "post"},
        verdict("1", {"kind": "file", "ref": "final:/app/b.py", "quote": "def parse():"}),
        "does not exist",
    ),
    "not in the file": (
        RESP1 | {"window": "post"},
        verdict("1", {"kind": "file", "ref": "final:/app/a.py", "quote": "def print"}),
        "does not stand in",
    ),
    "no such snapshot": (
        RESP1 | {"window": "post"},
        verdict("1", {"kind": "file", "ref": "s9:/app/a.py", "quote": "def"}),
        "there are final",
    ),
    "a file without its snapshot": (
        RESP1 | {"window": "post"},
        verdict("1", {"kind": "file", "ref": "/app/a.py", "quote": "def"}),
        "<snapshot>:<absolute path>",
    ),
}


@pytest.mark.parametrize(("check", "given", "fault"), ROWS.values(), ids=ROWS)
def test_condition(run: Run, check: dict[str, Any], given: dict[str, Any], fault: str | None) -> None:
    asked = question(run, **check)
    if check.get("window", "resp1") != "resp1":
        asked = Question(**{**question(run, "plan-followed").__dict__, "id": "p1/plan-given", "check": asked.check})
    result = found(run, asked, **given)
    assert (result == []) if fault is None else any(fault in one for one in result), result


def test_a_window_that_was_not_shown_shows_no_absence(run: Run) -> None:
    asked = question(run, **ABSENT)
    assert any(
        "you were not shown all of exchange 1" in one
        for one in found(run, asked, read=False, **verdict("1", absence("resp1", 1)))
    )
    assert (
        found(run, question(run, **RESP1), read=False, **verdict("1", GOOD)) == []
    )  # a quote was seen, or it would not be literal


@pytest.mark.parametrize(
    ("result", "value", "counts"),
    [
        ("pass", "1", True),
        ("pass", "0", False),
        ("fail", "0", True),
        ("fail", "1", False),
        ("undecided", "1", False),
    ],
)
def test_a_hard_record_serves_what_it_says(run: Run, result: str, value: str, counts: bool) -> None:
    asked = question(run, "plan-precedes-change")
    assert asked.hard is not None
    asked = Question(**{**asked.__dict__, "hard": asked.hard.model_copy(update={"result": result})})
    given = verdict(value, {"kind": "hard", "ref": asked.id})
    assert (found(run, asked, **given) == []) is counts


def test_a_lost_text_in_the_window_lets_nobody_say_that_nothing_is_there() -> None:
    made = ledger()
    at = next(number for number, event in enumerate(made.events) if event.kind == "agent_message")
    gone = made.events[at]
    made.events[at] = gone.model_copy(update={"data": AgentMessage(text=BlobRef(blob="a" * 64, size=9)).dump()})
    run = run_of(made)
    asked = question(run, **ABSENT)
    assert any("not among the evidence" in one for one in found(run, asked, **verdict("1", absence("resp1", 1))))


def staged() -> Run:
    """Snapshots before and after the response that was asked for, and at the end of a run that went on."""
    made = Ledger().starts()
    made.emit(Snapshot(name="s0", sha256=ZERO_HASH, size=1))
    made.emit(ProbeDelivered(probe="p1", scenario=OUTLINE, message_id="m1"))
    made.emit(Snapshot(name="anchor", probe="p1", sha256=ZERO_HASH, size=1))
    made.request().emit(AgentMessage(text=PLAN)).yields()
    made.emit(Snapshot(name="response_end", probe="p1", sha256=ZERO_HASH, size=1))
    made.emit(Snapshot(name="response_end", probe="p2", sha256=ZERO_HASH, size=1))
    made.says("slice:s1").request().emit(ToolCall(call_id="c1", name="Bash", input={"command": "rm -r /app"})).yields()
    made.emit(Snapshot(name="final", sha256=ZERO_HASH, size=1)).ends()
    seqs = [event.seq for event in made.events if event.kind == "snapshot"]
    return Run(made.trajectory, Evidence(Files({seq: FILES for seq in seqs})), (outline_instance(),), "sha256:" + "5" * 64)


SHOWS = {
    # (window, snapshot): it shows what the window led to
    ("resp1", "s0"): False,
    ("resp1", "anchor@p1"): False,
    ("resp1", "response_end@p1"): True,
    ("resp1", "response_end@p2"): False,
    ("resp1", "final"): False,  # more was done since
    ("post", "s0"): False,
    ("post", "anchor@p1"): False,
    ("post", "final"): True,
}


@pytest.mark.parametrize(("window", "snapshot"), SHOWS)
@pytest.mark.parametrize("value", ["1", "0"])
def test_only_a_snapshot_of_what_the_window_led_to_shows_it(window: str, snapshot: str, value: str) -> None:
    run = staged()
    asked = question(run, "plan-given" if window == "resp1" else "plan-followed", one_needs="quote")
    assert asked.window_name == window
    given = verdict(value, {"kind": "file", "ref": f"{snapshot}:/app/a.py", "quote": "def parse():"})
    assert (found(run, asked, **given) == []) is SHOWS[window, snapshot]


@pytest.mark.parametrize(
    ("snapshot", "counts"),
    [("s0", True), ("anchor@p1", True), ("response_end@p1", True), ("response_end@p2", False), ("final", False)],
)
def test_the_clause_of_na_may_rest_on_what_the_agent_found_or_left(snapshot: str, counts: bool) -> None:
    """A file from before the window serves where nothing was done since; one after more was done does not."""
    run = staged()
    given = verdict("na", {"kind": "file", "ref": f"{snapshot}:/app/a.py", "quote": "def parse():"})
    assert (found(run, question(run, **RESP1 | NA), **given) == []) is counts


def test_no_record_says_that_a_check_applies_to_nothing(run: Run) -> None:
    asked = question(run, "plan-precedes-change", **NA)
    given = verdict("na", {"kind": "hard", "ref": asked.id})
    assert any("na needs evidence" in one for one in found(run, asked, **given))


SHORT = "u.feedback.status-on-demand"  # all its windows are resp1
ELSEWHERE = "I looked at the moon last night, and it was full."


@pytest.mark.parametrize(("exchange", "counts"), [(1, False), (2, True), (3, False)])
def test_a_quote_of_another_time_shows_no_clause_of_na(exchange: int, counts: bool) -> None:
    """A scenario whose windows all end with its response: neither what came before nor what came after is its."""
    made = Ledger().starts()
    made.request().emit(AgentMessage(text=ELSEWHERE)).yields()
    made.says("slice:s1").emit(ProbeDelivered(probe="p1", scenario=SHORT, message_id="m1"))
    made.request().emit(AgentMessage(text=ELSEWHERE)).yields()
    made.says("slice:s2").request().emit(AgentMessage(text=ELSEWHERE)).yields().ends()
    instance = of_probe(
        Probe(id="p1", scenario=SHORT, text="How?", bindings={"DONE_ORACLE": "done"}), load_catalogue().template(SHORT)
    )
    run = run_of(made, instance)
    scenario = scenario_of(instance, judge_instance(instance, run.trajectory, run.evidence), run.trajectory, run.reading)
    assert scenario is not None
    asked = scenario.questions[0]
    assert {one.window_name for one in scenario.questions} == {"resp1"}
    asked = replace(asked, check=CheckTemplate.model_validate(asked.check.model_dump(by_alias=True) | NA))
    given = answer(asked.id, "na", quote(ELSEWHERE, exchange), anchor_exchange=asked.anchor_exchange)
    wrong = faults(asked, GivenAnswer.model_validate(given), Held(run.reading, run.files, Seen()))
    assert (wrong == []) is counts, wrong
