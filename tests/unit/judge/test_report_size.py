"""The index stays small: a row per configuration and per task, whatever the number of trials."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realcli.api.plan import plan_of
from realcli.api.sweep import Mode
from realcli.ledger.events import AgentMessage, ToolCall, ToolResult
from realcli.trajectory import Section, conversation
from realcli_judge.aligned import TEXTS, pieces
from realcli_judge.pages import SMALL, Site, environment
from realcli_judge.scores import Counted, summarise
from realcli_judge.shown import LEAST, LIMITS, PAGE, REPORT, room_for, shown
from tests.support.ledgers import Ledger
from tests.support.synthetic_report import synthetic


def made_pages(configurations: int, tasks: int, repeats: int, mode: Mode | None = None) -> dict[str, str]:
    """Pages of a synthetic sweep; with `mode` of that one alone."""
    made = synthetic(configurations, tasks, repeats)
    if mode is not None:
        lock = made.lock.model_copy(update={"modes": [mode]})
        plan = plan_of(lock, made.plan.root, made.plan.lock_digest)
        left = sorted((t for t in made.collected.trials.values() if t.cell.mode == mode), key=lambda t: t.member.ordinal)
        numbers = {trial.member.ordinal: ordinal for ordinal, trial in enumerate(left)}
        trials = {o: replace(t, member=t.member.model_copy(update={"ordinal": o})) for o, t in enumerate(left)}
        told = [t.model_copy(update={"ordinal": numbers[t.ordinal]}) for t in made.trials if t.mode == mode]
        made = made._replace(lock=lock, plan=plan, collected=replace(made.collected, trials=trials), trials=told)
    counted = Counted.of(made.lock, made.collected)
    summary = summarise(made.lock, made.plan, made.collected, counted, made.trials)
    return dict(Site(summary, made.collected, "s3://bucket/sweep", environment()).pages())


@pytest.mark.slow
def test_a_large_sweep_is_told_in_pages() -> None:
    found = made_pages(6, 26, 1)
    assert SMALL < 6 * 26
    kinds = Counter(name.split("/")[0] for name in found)
    assert (kinds["index.html"], kinds["configurations"], kinds["tasks"]) == (1, 6, 26)
    assert "trials/" not in found["index.html"]
    assert found["index.html"].count("<tr") < 25 * 6 + 2 * 26 + 100  # rows by configuration, by task, and the legends
    for ordinal in (0, 100, 6 * 26 * 2 - 1):  # every trial stands on the page of its configuration and of its task
        assert sum(f"trials/{ordinal:05d}.html" in page for name, page in found.items() if name != "index.html") >= 2


def test_a_small_sweep_lists_its_trials_on_the_index() -> None:
    assert "trials/00003.html" in made_pages(1, 2, 1)["index.html"]


@pytest.mark.parametrize("mode", ["EXEC", "COLLAB"])
def test_a_sweep_of_one_mode_and_one_repeat_compares_nothing(mode: Mode) -> None:
    index = made_pages(1, 3, 1, mode)["index.html"]
    assert "cannot be compared" in index
    assert not re.search(r'id="flips"|#flips|paired/|Pairs', index)
    assert "not run" in index.split('id="tasks"')[0]  # the other mode
    assert ('id="collaboration"' in index) is (mode == "COLLAB")


# -- pages of trials


def talk(turns: int, prints: int, says: int = 100) -> list[Section]:
    made = Ledger().starts()
    for number in range(turns):
        made.request().emit(AgentMessage(text="w" * says))
        made.emit(ToolCall(call_id=f"c{number}", name="Bash", input={"command": "cat file"}))
        made.emit(ToolResult(call_id=f"c{number}", text="x" * prints + "the end"))
    return conversation(made.yields().ends().trajectory)


def size(sections: list[Section], room: int) -> tuple[int, bool]:
    found = shown(sections, str, room)
    return sum(len(entry.text) for section in found.sections for entry in section.entries), found.fitted


def test_all_pages_of_a_report_have_room_for_so_much() -> None:
    assert (room_for(1), room_for(100)) == (PAGE, PAGE)
    assert LEAST < room_for(19_998) * 19_998 <= REPORT


def test_a_run_that_fits_is_shown_as_ever() -> None:
    sections = talk(20, 9_000)
    texts = [entry.text for section in shown(sections, str).sections for entry in section.entries]
    assert any("5008 characters left out" in text and text.endswith("the end") for text in texts)
    assert not shown(sections, str).fitted


def test_a_long_run_is_shortened_until_it_fits_and_every_event_stays() -> None:
    """600 turns of 4,000 characters: 2.4 million, shown in the room of a page of the largest report."""
    sections = talk(600, 9_000)
    room = room_for(19_998)
    chars, fitted = size(sections, room)
    assert fitted
    assert chars < 3 * room  # the ends of 1,800 texts and what is said of each
    events = [[entry.seq for entry in section.entries] for section in sections]
    found = shown(sections, str, room)
    assert [[entry.seq for entry in section.entries] for section in found.sections] == events
    results = [entry.text for section in found.sections for entry in section.entries if "left out" in entry.text]
    assert len(results) == 600  # all outputs; what was said and called is short
    assert all(text.endswith("the end") for text in results)


def test_what_tools_print_is_shortened_before_what_is_said() -> None:
    sections = talk(50, 9_000, says=3_000)
    found = shown(sections, str, 210_000)
    said = [entry.text for section in found.sections for entry in section.entries if entry.kind == "agent"]
    assert found.fitted
    assert said == ["w" * 3_000] * 50


@settings(max_examples=20)
@given(st.integers(1, 40), st.integers(0, 9_000), st.integers(0, 9_000), st.integers(1, 500_000))
def test_more_room_never_shows_less(turns: int, prints: int, says: int, room: int) -> None:
    sections = talk(turns, prints, says)
    assert size(sections, room)[0] <= size(sections, 2 * room)[0]


def test_a_page_side_by_side_shows_so_many_texts_of_a_run_and_says_how_many_more() -> None:
    made = Ledger().starts()
    for _ in range(TEXTS + 8):
        made.request().emit(AgentMessage(text="word"))
    trajectory = made.yields().ends().trajectory
    found = pieces(trajectory, shown(conversation(trajectory), str).sections)
    assert [len(piece.entries) for piece in found] == [TEXTS]
    said = sum(entry.kind in ("user", "agent", "mark", "trouble") for s in conversation(trajectory) for entry in s.entries)
    assert found[0].more > 8
    assert found[0].more + TEXTS <= said


def test_limits_go_down() -> None:
    assert sorted(LIMITS, reverse=True) == list(LIMITS)
