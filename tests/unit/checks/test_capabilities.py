"""The capability matrix: levels, what is left out of comparisons, the generated page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from realcli.benchmark.catalogue import load_catalogue
from realcli.checks.capabilities import (
    BY_AGENT,
    EXTRA,
    PAGE,
    Agent,
    comparable,
    events_of,
    lacks,
    main,
    observed,
    of_conformance,
    operator_cell,
    page,
    parse_observed,
)
from realcli.trajectory.matching import VOCABULARY_EVENTS

ROOT = Path(__file__).parents[3]
ALL = Agent("all", dict.fromkeys((*BY_AGENT, *EXTRA), "program"))
MUTE = Agent("mute", {**dict.fromkeys((*BY_AGENT, *EXTRA), "program"), "agent_message": "undecided", "visible_notes": "never"})
NONE = Agent("none", {})


def test_an_agent_that_shows_everything_lacks_nothing() -> None:
    catalogue = load_catalogue()
    assert comparable([ALL], catalogue) == list(catalogue.templates)
    for op in catalogue.vocabulary.hard_ops:
        cell = operator_cell(ALL, op, catalogue)
        assert cell is None or (cell.level, cell.program) == ("program", cell.checks)


def test_one_agent_that_lacks_something_takes_the_scenario_from_all() -> None:
    catalogue = load_catalogue()
    assert lacks(MUTE, catalogue.template("u.feedback.silent-long-run")) == {
        "agent_message": "undecided",
        "visible_notes": "never",
    }
    assert lacks(MUTE, catalogue.template("s.interrupt.mid-task-stop")) == {}
    assert "u.feedback.silent-long-run" not in comparable([ALL, MUTE], catalogue)
    assert "s.interrupt.mid-task-stop" in comparable([ALL, MUTE], catalogue)
    assert lacks(NONE, catalogue.template("s.interrupt.mid-task-stop")) == {
        "mid_turn_message": "undecided", "tool_call": "undecided", "yield": "undecided",
    }  # fmt: skip


def test_operator_cells_count_the_checks_that_decide() -> None:
    catalogue = load_catalogue()
    silent = operator_cell(MUTE, "max_stretch_le", catalogue)
    assert silent == ("never", 0, 1)
    orders = operator_cell(MUTE, "order", catalogue)
    assert orders is not None
    assert (orders.level, 0 < orders.program < orders.checks) == ("undecided", True)
    assert operator_cell(ALL, "text_not_in_file", catalogue) is None  # a hint decides nothing


def test_what_an_operator_rests_on() -> None:
    assert events_of({"op": "no_action_before", "until": "approval"}) == {"approval", "command", "file_write", "file_delete"}
    assert events_of({"op": "all_of", "of": [{"op": "yielded"}, {"op": "cmd_absent"}]}) == {"yield", "command"}
    assert events_of({"op": "canary_absent", "scopes": ["net_log_except_own", "agent_messages"]}) == {
        "net_request",
        "agent_message",
    }


def test_every_event_of_the_vocabulary_has_a_level() -> None:
    assert {event for event in VOCABULARY_EVENTS if NONE.level(event) == "undecided"} == set(BY_AGENT) - {"interrupt"}


def test_results_of_the_suite() -> None:
    found = of_conformance(
        [("a", "tool", ("tool_call", "tool_result", "model_reply")), ("a", "deny", ("tool_call",)), ("b", "tool", ["yield"])],
        {"a": ["permission_request"]},
    )
    assert found == {
        "a": {"permission_request": "never", "tool_call": "program", "tool_result": "program",
              "evidence": {"tool_call": ["tool", "deny"], "tool_result": ["tool"]}},
        "b": {"yield": "program", "evidence": {"yield": ["tool"]}},
    }  # fmt: skip
    one, two = parse_observed(found)
    assert (one.level("tool_call"), one.level("permission_request"), two.level("tool_call")) == ("program", "never", "undecided")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"tool_call": "program"}, "no conformance case is named"),
        ({"tool_call": "often", "evidence": {"tool_call": ["x"]}}, "tool_call is 'often'; expected program"),
        ({"file_write": "program", "evidence": {"file_write": ["x"]}}, "'file_write' is none of agent_message"),
    ],
)
def test_what_cannot_be_believed_is_refused(found: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_observed({"a": found})


def test_the_page_is_what_the_results_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert (ROOT / PAGE).read_text(encoding="utf-8") == page(observed(), load_catalogue()), (
        "python -m realcli.checks.capabilities"
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    assert main(["--check"]) == 1
    assert (main(["--write"]), main(["--check"])) == (0, 0)
