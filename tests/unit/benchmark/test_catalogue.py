"""The shipped catalogue, and a broken twin for every rule it is held to."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from importlib import resources
from typing import Any

import pytest
import yaml

from realcli.benchmark.catalogue import CatalogueError, load_catalogue, parse_catalogue, read_catalogue

DATA = resources.files("realcli.benchmark").joinpath("data/scenarios.yaml").read_bytes()
RAW = yaml.load(DATA, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def test_the_shipped_catalogue_is_whole() -> None:
    catalogue = load_catalogue()
    assert (len(catalogue.templates), len(catalogue.generic), len(catalogue.sub_dimensions)) == (51, 6, 22)
    assert sum(len(t.checks) for t in catalogue.templates.values()) == 139
    for key, sub in catalogue.sub_dimensions.items():
        assert sum(t.sub_dimension == key for t in catalogue.templates.values()) == sub.templates
    assert catalogue.digest == parse_catalogue(DATA).digest
    assert catalogue.digest != parse_catalogue(DATA + b"\n# changed\n").digest


def test_the_template_of_the_starter_suite_is_decided_by_program_alone() -> None:
    template = load_catalogue().template("or.verify.concurrent-edit")
    assert (template.dimension, template.sub_dimension, template.plant) == ("OR", "state-verification", "dynamic")
    hard = {check.id: check.hard for check in template.checks}
    assert {id: (h["op"], h["decides"]) for id, h in hard.items() if h} == {
        "reread-first": ("order", "both"),
        "user-edit-kept": ("patch_present", "both"),
    }


def test_a_template_that_is_not_there_is_named() -> None:
    with pytest.raises(KeyError, match=r"scenario 'no\.such' is not in the catalogue \(51 templates\)"):
        load_catalogue().template("no.such")


Change = Callable[[dict[str, Any]], object]


def check(entry: dict[str, Any], id: str) -> dict[str, Any]:
    found: dict[str, Any] = next(check for check in entry["checks"] if check["id"] == id)
    return found


def put(*path: str, value: Any) -> Change:
    """Set a value below the entry; `checks` goes by the id of the check."""

    def change(entry: dict[str, Any]) -> None:
        at = entry
        for step in path[:-1]:
            at = check(entry, step.removeprefix("check ")) if step.startswith("check ") else at[step]
        at[path[-1]] = value

    return change


WRITE = {"event": "file_write", "nth": 1}
CLAIM = {"event": "final_claim", "nth": 1}
STOP, RESUME, HANDOFF = "s.interrupt.mid-task-stop", "s.interrupt.side-request-and-resume", "u.feedback.structured-handoff"
ROUTE, EDIT, AFTER = "u.plan.replan-after-obstacle", "or.verify.concurrent-edit", "or.verify.after-mutation"
PREMISE, LAST, SHARE = "tc.risk.false-premise-drop", "or.verify.after-mutation", "sr.secret.explicit-credential-share"
TWINS: list[tuple[str, str, Change, str]] = [
    # rule, entry, change, what is said
    ("trigger", STOP, put("trigger", "when", value={"event": "file_write"}), r"when\.nth: Field required"),
    ("trigger", STOP, put("trigger", "when", value={"all": [WRITE]}), "at least 2 items"),
    ("trigger", ROUTE, put("trigger", "when", "where", value={"cmd": "x"}), r"`where\.cmd` says nothing of tool_result"),
    ("trigger", ROUTE, put("trigger", "when", "where", value={"text": "(?=x)"}), "no look-around"),
    ("trigger", EDIT, put("trigger", "when", value={"slice_pending": "x"}), "true before anything happened"),
    ("trigger-event", EDIT, put("trigger", "when", value={"event": "approval", "nth": 1}), "approval may not be a trigger"),
    ("exposure", STOP, put("trigger", "exposure", value="instrument"), "declared instrument, but its trigger is environment"),
    ("exposure", EDIT, put("trigger", "when", value={"all": [WRITE, {"event": "yield", "nth": 1}]}), "is agent at best"),
    ("exposure", "or.observe.truncated-output", put("trigger", "when", value={"any": [CLAIM, {"event": "yield", "nth": 2}]}),
     "declared environment, but its trigger is agent"),
    ("neutral-because", HANDOFF, lambda e: e["trigger"].pop("neutral_because"), "needs `neutral_because`"),
    ("neutral-because", STOP, put("trigger", "neutral_because", value="x"), "no other has it"),
    ("delivery", ROUTE, put("trigger", "delivery", value="at_yield"), "a passive scenario is not delivered at_yield"),
    ("fallback-violator", "u.feedback.status-on-demand", lambda e: e["trigger"].pop("fallback_violator"), "says what a violator"),
    ("fallback", RESUME, lambda e: e["trigger"].update(fallback="before_completion", fallback_violator="x"), "at a yield"),
    ("mid-turn", STOP, put("trigger", "requires", value=[]), "goes with `requires"),
    ("requires", STOP, put("trigger", "requires", value=["agent_working", "luck"]), "requires 'luck'"),
    ("opener", "u.plan.outline-before-action", put("trigger", "when", value={"exchange_at_least": 2}), "trigger episode_start"),
    ("anchor-rule", STOP, put("anchor", "rule", value="after_response"), "anchor rule 'after_response'"),
    ("anchor-probe", STOP, put("anchor", "rule", value="rest_of_response"), "a probe is anchored at its delivery"),
    ("anchor-event", ROUTE, put("anchor", "event", value="episode_start"), "the anchor is not 'episode_start'"),
    ("anchor-empty", ROUTE, lambda e: e["trigger"].update(when=CLAIM, exposure="agent", neutral_because="x"), "nothing follows"),
    ("anchor-empty", ROUTE, put("anchor", "rule", value="response_after"), "needs a delivered message"),
    ("anchor-empty", HANDOFF, lambda e: e["trigger"].update(when={"event": "yield", "nth": 1}), "needs a claim"),
    ("window", HANDOFF, put("check how-checked", "window", value="post"), "could be empty under containing_response"),
    ("window", AFTER, put("check result-respected", "window", value="resp1"), "could be empty under whole_run"),
    ("window", STOP, put("check waits", "window", value="resp2"), "window 'resp2' is not defined"),
    ("approval-of", SHARE, lambda e: check(e, "not-copied-before-ok").pop("approval_of"), "goes with `approval_of`"),
    ("approval-of", SHARE, put("check not-copied-before-ok", "approval_of", value="OTHER"), "'OTHER' is no binding"),
    ("final-evidence", EDIT, put("check user-edit-kept", "evidence", value="trajectory"), "looks at a state"),
    ("hard-missing", STOP, put("check state-reported", "evidence", value="both"), "evidence both without a hard check"),
    ("decides", STOP, put("check waits", "hard", "decides", value="maybe"), "decides 'maybe'"),
    ("decides", PREMISE, lambda e: check(e, "not-removed-on-premise")["hard"]["of"][0].update(decides="both"), "at the top"),
    ("pattern-found", LAST, put("check check-after-last-change", "hard", "decides", value="both"), "not found proves nothing"),
    ("model-event", "s.dissent.flawed-approach", put("check no-silent-apply", "hard", "until", value="agent_question"),
     "on what a model read: agent_question"),
    ("operator", RESUME, put("check errand-done", "hard", "op", value="scripts"), "operator 'scripts' is not defined"),
    ("operator-needs", ROUTE, lambda e: check(e, "old-route-abandoned")["hard"].pop("n"), "count_le needs n"),
    ("hard-window", STOP, put("check waits", "hard", "window", value="post"), "has the window of its check"),
    ("snapshot", EDIT, lambda e: check(e, "user-edit-kept")["hard"].pop("snapshot"), "does not say which state"),
    ("snapshot", EDIT, put("check user-edit-kept", "hard", "snapshot", value="later"), "snapshot 'later'"),
    ("baseline", "tc.proactive.adjacent-defect", put("check not-changed-unasked", "hard", "baseline", value="final"), "baseline"),
    ("order-last", LAST, lambda e: check(e, "check-after-last-change")["hard"]["after"].pop("last"), "after.last: true"),
    ("scope", "sr.secret.persisted-or-echoed", put("check not-in-messages", "hard", "scopes", value=["mail"]), "scope 'mail'"),
    ("event", "or.stuck.blocked-resource", put("check asks-in-time", "hard", "until", value="sigh"), "is 'sigh', an event"),
    ("where", ROUTE, put("check old-route-abandoned", "hard", "where", value={"path": "/a"}), "says nothing of command"),
    ("needs", STOP, put("needs", value=["file_record"]), r"what it rests on is \['file_record', 'mid_turn_message'\]"),
    ("hosts", SHARE, put("hosts", value=["fax"]), "host role 'fax'"),
    ("unbound", EDIT, lambda e: e["bindings"].pop("EDIT_MARKER"), r"\$\{EDIT_MARKER\} is not among its bindings"),
    ("user-intent", STOP, put("stimulus", "user_intent", value=None), "every probe has one"),
    ("plant", ROUTE, put("stimulus", "plant", "kind", value="dynamic"), "only a probe has one"),
    ("plant", ROUTE, put("stimulus", "plant", "kind", value="liquid"), "'liquid' is not defined"),
    ("closure", STOP, lambda e: e["stimulus"].pop("closure"), "every probe has one"),
    ("closure", EDIT, put("stimulus", "closure", value={"kind": "returns"}), "says how"),
    ("sub-dimension", STOP, put("sub_dimension", value="plan-transparency"), "is none of S"),
    ("check-ids", STOP, put("check waits", "id", value="state-reported"), "two checks have the same id"),
]  # fmt: skip


def refusal(raw: dict[str, Any]) -> str:
    with pytest.raises(CatalogueError) as caught:
        read_catalogue(raw, "sha256:0")
    return str(caught.value)


@pytest.mark.parametrize(("rule", "id", "change", "said"), TWINS, ids=[f"{row[0]}: {row[3]}" for row in TWINS])
def test_a_broken_twin_is_refused_by_its_own_rule(rule: str, id: str, change: Change, said: str) -> None:
    raw = copy.deepcopy(RAW)
    change(next(entry for entry in raw["templates"] if entry["id"] == id))
    message = refusal(raw)
    wanted = [line for line in message.splitlines() if f"[{rule}]" in line]
    assert wanted, message
    assert re.search(said, wanted[0]), wanted[0]
    assert {found for line in message.splitlines()[1:] for found in re.findall(r"\[([a-z-]+)\]$", line)} == {rule}, message


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda v: v["events"].pop("denial"), "vocabulary.events.denial: the file does not define it"),
        (lambda v: v["events"].update(sigh={"means": "x", "by": "program"}), "vocabulary.events.sigh: this program gives it no"),
        (lambda v: v["windows"]["post"]["with"].append("whole_run"), "vocabulary.windows.post: goes with"),
        (lambda v: v["hard_ops"].update(mind_read={"means": "x", "needs": []}), "mind_read: no check uses it"),
    ],
)  # fmt: skip
def test_a_vocabulary_this_program_does_not_speak_is_refused(change: Change, said: str) -> None:
    raw = copy.deepcopy(RAW)
    change(raw["vocabulary"])
    assert said in refusal(raw)


def test_an_entry_twice_and_a_malformed_one_are_refused() -> None:
    raw = copy.deepcopy(RAW)
    raw["templates"].append(raw["templates"][0])
    assert "u.plan.outline-before-action: stands 2 times [id]" in refusal(raw)
    raw["templates"][-1] = {**raw["templates"][0], "type": "rumour"}
    assert "entries of another form" in refusal(raw)
