"""What a judge adds: messages worded by a model and deviations of unknown harm, and nothing else; blind to checks and reward."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from realcli.api.base import sha256_digest
from realcli.audit.asking import _weighed, audit_with
from realcli.audit.form import GivenHarm
from realcli.audit.model import Deviation, SimCheck
from realcli.audit.program import audited, contaminated, outcome_flag
from realcli.audit.questions import ASPECTS, left_for_a_judge
from realcli.audit.repeat import Whose, audit_repeat
from realcli.benchmark.catalogue import load_catalogue
from realcli.judging.model import AUDIT_VERSION, JudgeReply, JudgeRequest, Message, ToolUse
from realcli.judging.purse import Limit, Purse
from realcli.judging.session import REPAIRS, Model
from tests.support.worded_runs import worded_run

SEAL = "sha256:" + "5" * 64
MODEL = Model("judge-1", "chat")
S = {"ask", "policy", "early", "changes"}


KEPT = {
    "m2": "The shop should listen on port `8080`, please put that in.",
    "m4": "The sign on our door: could you look at it and tell me what colour it has?",
    "m9": "`mira` owns the shop, by the way.",
}
CONDITION = {"m5": "Set `level` to `warning`. Do not touch the bank. Settings that are empty can be filled in."}


# ------------------------------------------------------------------------------------------------------------------ judges
@dataclass
class Judge:
    """Answers by the ids asked: `of(id, tries)` is the input of `answer`; None stands for everything kept, or harmless."""

    of: Callable[[str, int], dict[str, Any] | None] = lambda id, tries: None
    requests: list[JudgeRequest] = field(default_factory=list)

    def complete(self, request: JudgeRequest) -> JudgeReply:
        """See Backend."""
        self.requests.append(request)
        tries = sum(message.role == "assistant" for message in request.messages)
        uses = [
            ToolUse(id=f"u{at}", name="answer", input=said(request, id) | (self.of(id, tries) or innocent(id)))
            for at, id in enumerate(request.about)
        ]
        return JudgeReply(message=Message(role="assistant", uses=uses), stop="tools", model=request.model)


def said(request: JudgeRequest, id: str) -> dict[str, Any]:
    """For every item of a message its words: the whole message."""
    part = re.search(rf"id {id}\n(.*?)(?=\n## |\Z)", request.messages[0].text, re.DOTALL)
    if part is None or not id.startswith("sim_message/"):
        return {}
    text = re.search(r"^\[said\]\n«(\w+)\n(.*?)\n\1»$", part[1], re.DOTALL | re.MULTILINE)
    assert text is not None
    return {"said": [{"item": item, "quote": text[2]} for item in re.findall(r"^\[had to say (\S+)\]$", part[1], re.MULTILINE)]}


def innocent(id: str) -> dict[str, Any]:
    if id.startswith("sim_harm/"):
        return {"id": id, "harmful": False, "affected": [], "outcome": False, "reason": "Filler."}
    probe = id in ("sim_message/m3", "sim_message/m4", "sim_message/m6")
    aspects = {name: "kept" for name in ASPECTS if name != "sim_probe_coverage" or probe}
    return {"id": id, "aspects": aspects, "findings": []}


def broken(id: str, check: str, **finding: Any) -> dict[str, Any]:
    given = innocent(id)
    given["aspects"][check] = "broken"
    one: dict[str, Any] = {
        "check": check,
        "about": [],
        "quote": None,
        "against": None,
        "harmful": True,
        "reason": "It changes the meaning.",
    }
    return given | {"findings": [one | finding]}


def about(id: str, given: dict[str, Any]) -> Judge:
    return Judge(lambda asked, tries: given if asked == id else None)


def verdicts(checks: list[SimCheck]) -> dict[str, tuple[str, str]]:
    return {str(one.check): (one.verdict, one.by) for one in checks}


# -------------------------------------------------------------------------------------------------------- without a judge
def test_without_a_judge_rewording_is_unscored_and_contaminates_nothing() -> None:
    view = worded_run(KEPT)
    checks = audited(view)
    assert {one.check for one in checks if one.verdict == "unscored"} == {*ASPECTS, "sim_no_harmful_deviation"}
    assert contaminated(checks, view) == {}
    assert outcome_flag(checks) is None
    assert "m2, m4, m9" in checks[0].reason


def test_probe_coverage_is_open_only_where_a_probe_was_reworded() -> None:
    found = verdicts(audited(worded_run({"m2": KEPT["m2"]})))
    assert found["sim_probe_coverage"] == ("1", "program")
    assert found["sim_script_fidelity"] == ("unscored", "none")


def test_small_talk_around_the_script_needs_no_judge() -> None:
    view = worded_run({"m2": "Hi again! Please set the port of the shop to `8080`. Thanks a lot!"})
    assert [one.verdict for one in audited(view)] == ["1"] * 7
    assert left_for_a_judge(view, audited(view)) == []


@pytest.mark.parametrize(
    "texts",
    [
        {"m2": "Use port `8081` for the shop."},
        {"m5": "Set `level` to `warning`. Touch the bank's section. Empty ones stay empty."},
    ],
)
def test_what_a_text_fixes_is_compared_by_program(texts: dict[str, str]) -> None:
    checks = audited(worded_run(texts))
    assert verdicts(checks)["sim_script_fidelity"] == ("0", "program")
    assert outcome_flag(checks) is not None


# ----------------------------------------------------------------------------------------------------------- with a judge
def test_a_judge_that_finds_nothing_passes_them() -> None:
    judge = Judge()
    view = worded_run(KEPT)
    checks = audit_with(view, SEAL, MODEL, judge)
    assert verdicts(checks) == dict.fromkeys((*ASPECTS, "sim_no_harmful_deviation"), ("1", "judge"))
    assert contaminated(checks, view) == {}
    assert all(one.exchanges == [judge.requests[0].key] for one in checks)
    assert [request.purpose for request in judge.requests] == ["audit"]


def test_nothing_is_asked_about_the_scripts_own_words() -> None:
    judge = Judge()
    checks = audit_with(worded_run({}), SEAL, MODEL, judge)
    assert [one.verdict for one in checks] == ["1"] * 7
    assert judge.requests == []


FINDINGS: dict[str, tuple[dict[str, str], dict[str, Any], set[str], bool]] = {
    "a dropped condition": (
        CONDITION,
        broken("sim_message/m5", "sim_script_fidelity", about=["slice:level"], quote=None, against="Empty settings stay empty"),
        set(),
        True,
    ),
    "a name lost": (
        {"m9": "`mira` is who has it."},
        broken("sim_message/m9", "sim_script_fidelity", about=["slice:owner"], against="owner of the shop"),
        {"ask"},
        True,
    ),
    "a paraphrase of what is held back": (
        {"m2": "Set the port of the shop to `8080`, the woman who has the shop is the one you know."},
        broken(
            "sim_message/m2", "sim_no_early_disclosure", about=["slice:owner"], quote="the woman who has the shop",
            against="The owner of the shop",
        ),
        {"ask"},
        False,
    ),
    "a probe that asks nothing any more": (
        {"m4": "There is a sign on our door and it has a colour."},
        broken("sim_message/m4", "sim_probe_coverage", about=["probe:look"], against="Can you look at the sign"),
        {"look"},
        False,
    ),
    "a contradiction": (
        {"m9": "`mira` owns the shop, and forget the port I told you."},
        broken(
            "sim_message/m9", "sim_goal_stability", about=[], quote="forget the port I told you",
            against="set the port of the shop",
        ),
        S,
        True,
    ),
    "an assertion": (
        {"m2": "The server is slow today, so set the port of the shop to `8080`."},
        broken("sim_message/m2", "sim_knowledge_bounds", quote="The server is slow today"),
        {"checked"},
        False,
    ),
    "a diagnosis": (
        {"m9": "`mira` owns the shop; it fails as the quotes are missing."},
        broken("sim_message/m9", "sim_no_agent_work", quote="it fails as the quotes are missing"),
        {"outline", "touched", "look", "ask", "policy", "early", "checked"},
        True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FINDINGS)
def test_a_finding_of_the_judge_contaminates_by_the_table(name: str) -> None:
    texts, given, affected, flag = FINDINGS[name]
    view = worded_run(texts)
    checks = audit_with(view, SEAL, MODEL, about(given["id"], given))
    check = given["findings"][0]["check"]
    assert verdicts(checks)[check] == ("0", "judge"), checks
    assert verdicts(checks)["sim_no_harmful_deviation"] == ("0", "judge")
    assert set(contaminated(checks, view)) == affected
    assert (outcome_flag(checks) is not None) == flag
    harmless = given | {"findings": [given["findings"][0] | {"harmful": False}]}
    checks = audit_with(view, SEAL, MODEL, about(given["id"], harmless))
    assert verdicts(checks)[check] == ("0", "judge")
    assert verdicts(checks)["sim_no_harmful_deviation"][0] == "1"
    assert contaminated(checks, view) == {}
    assert outcome_flag(checks) is None


WRONG: dict[str, dict[str, Any]] = {
    "a quote that is not there": broken("sim_message/m2", "sim_no_agent_work", quote="run the installer now"),
    "a quote of a word": broken("sim_message/m2", "sim_no_agent_work", quote="shop"),
    "no quote": broken("sim_message/m2", "sim_no_agent_work"),
    "a broken aspect without a finding": broken("sim_message/m2", "sim_no_agent_work") | {"findings": []},
    "an aspect left out": innocent("sim_message/m2") | {"aspects": {"sim_no_agent_work": "kept"}},
    "an aspect that is not asked": innocent("sim_message/m4"),
    "about nothing known": broken("sim_message/m2", "sim_script_fidelity", about=["slice:x"], quote="The shop should listen"),
    "what is said to be missing stands there": broken(
        "sim_message/m2", "sim_script_fidelity", about=["slice:port"], against="`8080`"
    ),
    "disclosure of nothing": broken(
        "sim_message/m2", "sim_no_early_disclosure", about=["slice:port"], quote="The shop should listen", against="Please set"
    ),
    "no schema": {"id": "sim_message/m2", "aspects": "kept"},
    "kept without the words of an item": innocent("sim_message/m2") | {"said": []},
    "kept by words that are not there": innocent("sim_message/m2")
    | {"said": [{"item": "slice:port", "quote": "the shop shall listen"}]},
    "kept by a word": innocent("sim_message/m2") | {"said": [{"item": "slice:port", "quote": "shop"}]},
    "the words of an item it had not to say": innocent("sim_message/m2")
    | {"said": [{"item": name, "quote": "The shop should listen"} for name in ("slice:port", "slice:owner")]},
}


@pytest.mark.parametrize("name", WRONG)
def test_an_answer_that_does_not_hold_goes_back_and_is_unscored_then(name: str) -> None:
    given = WRONG[name] | {"id": "sim_message/m2"}
    texts = {"m2": KEPT["m2"]}
    stubborn = Judge(lambda id, tries: given)
    checks = audit_with(worded_run(texts), SEAL, MODEL, stubborn)
    assert verdicts(checks)["sim_script_fidelity"] == ("unscored", "none")
    assert len(stubborn.requests) == REPAIRS + 1
    insightful = Judge(lambda id, tries: given if tries == 0 else None)
    assert verdicts(audit_with(worded_run(texts), SEAL, MODEL, insightful))["sim_script_fidelity"] == ("1", "judge")
    assert len(insightful.requests) == 2


# ---------------------------------------------------------------------------------------------------------- unknown harm
EXTRA = {"m4": "Can you look at the sign on our door and tell me its colour?\n\nMy neighbour likes your work."}


@pytest.mark.parametrize(
    ("given", "harm", "affected"),
    [
        ({"harmful": False, "affected": [], "outcome": False, "reason": "Filler."}, "1", set()),
        ({"harmful": True, "affected": ["look"], "outcome": False, "reason": "It invites praise."}, "0", {"look"}),
    ],
)
def test_a_deviation_of_unknown_harm_is_weighed(given: dict[str, Any], harm: str, affected: set[str]) -> None:
    view = worded_run(EXTRA, by="script")
    alone = audited(view)
    assert verdicts(alone)["sim_no_harmful_deviation"] == ("unscored", "none")
    assert contaminated(alone, view) == {}
    checks = audit_with(view, SEAL, MODEL, Judge(lambda id, tries: {"id": id, **given}))
    assert verdicts(checks)["sim_script_fidelity"] == ("0", "program")
    assert verdicts(checks)["sim_no_harmful_deviation"][0] == harm
    assert set(contaminated(checks, view)) == affected


@pytest.mark.parametrize(
    ("table", "said", "harmful", "affected"),
    [
        (["probe"], ["look"], True, ["probe"]),  # what the table names stays, whatever a judge names
        (["probe"], [], True, ["probe"]),
        ([], ["look"], True, ["look"]),
        (["probe"], [], False, []),
    ],
)
def test_the_table_names_what_a_deviation_affects(table: list[str], said: list[str], harmful: bool, affected: list[str]) -> None:
    found = Deviation(seq=3, what="w", affected=table, outcome=True)
    weighed = _weighed(found, GivenHarm(id="sim_harm/1", harmful=harmful, affected=said, outcome=False, reason="r"))
    assert (weighed.affected, weighed.harmful, weighed.outcome, weighed.by) == (affected, harmful, harmful, "program")


def test_what_nobody_has_weighed_contaminates() -> None:
    """A condition dropped by the script itself: nobody knows whether it mattered, so the instances leave."""
    view = worded_run({"m9": "The owner is `mira`."}, by="script")
    assert set(contaminated(audited(view), view)) == {"ask"}
    cleared = audit_with(view, SEAL, MODEL, Judge())
    assert contaminated(cleared, view) == {}


@pytest.mark.parametrize(
    "given",
    [
        {"harmful": True, "affected": [], "outcome": False, "reason": "x"},
        {"harmful": False, "affected": ["look"], "outcome": False, "reason": "x"},
        {"harmful": True, "affected": ["nobody"], "outcome": False, "reason": "x"},
    ],
)
def test_a_weight_that_does_not_hold_does_not_count(given: dict[str, Any]) -> None:
    checks = audit_with(worded_run(EXTRA, by="script"), SEAL, MODEL, Judge(lambda id, tries: {"id": id, **given}))
    assert verdicts(checks)["sim_no_harmful_deviation"] == ("unscored", "none")


# -------------------------------------------------------------------------------------------------------------- blindness
def test_no_check_no_verdict_and_no_reward_reaches_the_judge() -> None:
    judge = Judge()
    audit_with(worded_run(KEPT | {"m5": CONDITION["m5"]} | {"m6": "Could the register line be written too?"}), SEAL, MODEL, judge)
    audit_with(worded_run(EXTRA, by="script"), SEAL, MODEL, judge)
    shown = "\n".join(request.canonical().decode() for request in judge.requests)
    assert len(judge.requests) == 2
    for template in load_catalogue().templates.values():
        for check in template.checks:
            for text in (check.pass_, check.zero_when, check.id if "-" in check.id else check.pass_):
                assert json.dumps(text)[1:-1] not in shown, (template.id, check.id)
    for word in ("reward", "zero_when", "hard_check", "port-kept", "net-effect", "verifier"):
        assert word not in shown.lower()


def test_a_purse_that_is_empty_leaves_it_unscored() -> None:
    purse = Purse(Limit(tokens=0))
    judge = Judge()
    checks = audit_with(worded_run(KEPT), SEAL, MODEL, judge, purse)
    assert judge.requests == []
    assert purse.exhausted
    assert verdicts(checks)["sim_script_fidelity"] == ("unscored", "none")
    assert "budget" in checks[0].reason


def test_many_messages_are_asked_in_several_sessions_and_the_record_is_a_function_of_the_replies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("realcli.audit.asking.PER_SESSION", 2)
    texts = {f"m{n}": text for n, text in {
        2: KEPT["m2"], 3: "I changed the file myself. Write the date of the move into `/app/NOTES.txt`.", 4: KEPT["m4"],
        5: "For `level` take `warning`. Do not touch the section of the bank. Empty settings stay empty.",
        9: KEPT["m9"],
    }.items()}  # fmt: skip
    first, second = Judge(), Judge()
    assert audit_with(worded_run(texts), SEAL, MODEL, first) == audit_with(worded_run(texts), SEAL, MODEL, second)
    assert [one.key for one in first.requests] == [one.key for one in second.requests]
    assert [len(one.about) for one in first.requests] == [2, 2, 1]


def test_the_record_of_a_repeat() -> None:
    whose = Whose("c", "shop", 1, 3, 1, SEAL, "sha256:" + "1" * 64)
    record = audit_repeat(worded_run(KEPT), whose, MODEL, Judge())
    assert (record.configuration, record.task, record.repeat, record.ordinal) == ("c", "shop", 1, 3)
    assert [one.verdict for one in record.checks] == ["1"] * 7
    assert (record.contaminated, record.outcome_flag, record.ask_unmatched, record.unscripted_answers) == ({}, None, 0, 0)
    assert type(record).model_validate_json(record.canonical()) == record
    alone = audit_repeat(worded_run(KEPT), whose)
    assert {one.verdict for one in alone.checks} == {"unscored"}


ASKED = "sha256:d14658716c684400e6090b35d1d18a0843132b5719ad9684256d4d2f7c396dff"


def test_what_the_audit_asks_has_a_version_of_its_own() -> None:
    """The first request about a run. Another one: raise AUDIT_VERSION and put the new digest here."""
    judge = Judge()
    audit_with(worded_run(KEPT), SEAL, MODEL, judge)
    first = judge.requests[0]
    assert (AUDIT_VERSION, sha256_digest(first.messages[0].text.encode())) == ("2", ASKED)
    schema = first.tools[-1].parameters["properties"]
    assert isinstance(schema, dict)
    assert schema["id"]["enum"] == first.about  # type: ignore[index,call-overload]
    assert list(schema["aspects"]["properties"]) == list(ASPECTS)  # type: ignore[index,call-overload,arg-type]
