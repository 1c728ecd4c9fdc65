"""Triggers: tables of single runs, and properties over random ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli.benchmark.catalogue import load_catalogue
from realcli.ledger.events import (
    AgentMessage,
    Command,
    Data,
    FileWrite,
    Interrupt,
    SliceReleased,
    ToolCall,
    ToolResult,
    UserMessage,
    Yield,
)
from realcli.trajectory.triggers import TriggerError, TriggerState, fired_at, parse_when
from tests.support.ledgers import Ledger

WROTE = FileWrite(path="/a/b.py", after_turn=1, before_turn=2, created=True)
CALL = ToolCall(call_id="c", name="Bash", input={})


def released(name: str) -> SliceReleased:
    return SliceReleased(slice=name, how="batch", message_id="m")


Run = Callable[[Ledger], Ledger]
CASES: list[tuple[str, dict[str, Any], Run, int | None]] = [
    ("the first write", {"event": "file_write", "nth": 1}, lambda b: b.emit(WROTE, CALL, WROTE), 3),
    ("the second write", {"event": "file_write", "nth": 2}, lambda b: b.emit(WROTE, CALL, WROTE), 5),
    ("too few", {"event": "file_write", "nth": 3}, lambda b: b.emit(WROTE, CALL, WROTE), None),
    ("by glob", {"event": "file_write", "nth": 1, "where": {"path": "/a/**"}}, lambda b: b.emit(CALL, WROTE), 4),
    ("by another glob", {"event": "file_write", "nth": 1, "where": {"path": "/*.py"}}, lambda b: b.emit(CALL, WROTE), None),
    ("counted", {"count": {"event": "tool_call"}, "at_least": 2}, lambda b: b.emit(CALL, WROTE, CALL), 5),
    ("the start", {"event": "episode_start", "nth": 1}, lambda b: b, 1),
    ("the end", {"event": "episode_end", "nth": 1}, lambda b: b.yields().ends(), 5),
    ("exchange 2 about to start", {"exchange_at_least": 2}, lambda b: b.emit(CALL).yields().says(), 4),
    ("exchange 3", {"exchange_at_least": 3}, lambda b: b.yields().says().yields(), 5),
    ("an interrupt ends the exchange", {"exchange_at_least": 2}, lambda b: b.yields("interrupted").emit(CALL), 3),
    ("an interrupted response is not complete", {"exchanges_since": "s", "at_least": 1},
     lambda b: b.emit(released("s")).yields("interrupted").says().yields(), 6),
    ("not in the exchange before", {"exchange_at_least": 3}, lambda b: b.yields().says().emit(CALL), None),
    ("two responses since", {"exchanges_since": "s", "at_least": 2},
     lambda b: b.yields().says().emit(released("s")).yields().says().yields(), 8),
    ("another slice", {"exchanges_since": "t", "at_least": 1}, lambda b: b.yields().says().emit(released("s")).yields(), None),
    ("released into a running response: it is none since", {"exchanges_since": "s", "at_least": 1},
     lambda b: b.message(["slice:s"], "mid_turn").emit(released("s")).yields().says().yields(), 7),
    ("all at the later event", {"all": [{"event": "file_write", "nth": 1}, {"event": "tool_call", "nth": 1}]},
     lambda b: b.emit(CALL, CALL, WROTE), 5),
    ("any at the earlier", {"any": [{"event": "file_write", "nth": 1}, {"event": "tool_call", "nth": 1}]},
     lambda b: b.emit(CALL, CALL, WROTE), 3),
    ("while the slice is pending", {"all": [{"event": "file_write", "nth": 1}, {"slice_pending": "s"}]},
     lambda b: b.emit(WROTE).emit(released("s")), 3),
    ("the slice was out", {"all": [{"event": "file_write", "nth": 1}, {"slice_pending": "s"}]},
     lambda b: b.emit(released("s")).emit(WROTE), None),
    ("another was out", {"all": [{"event": "file_write", "nth": 1}, {"slice_pending": "s"}]},
     lambda b: b.emit(released("t")).emit(WROTE), 4),
    ("nested", {"all": [{"any": [{"event": "command", "nth": 1}, {"event": "tool_call", "nth": 2}]}, {"exchange_at_least": 2}]},
     lambda b: b.emit(CALL, CALL).yields(), 5),
]  # fmt: skip


@pytest.mark.parametrize(("name", "when", "run", "fired"), CASES, ids=[row[0] for row in CASES])
def test_fires(name: str, when: Mapping[str, Any], run: Run, fired: int | None) -> None:
    state = fired_at(parse_when(when, {}), run(Ledger().starts()).items)
    assert (state.fired, state.doubtful) == (fired, None)


def test_nothing_before_the_start_counts() -> None:
    when = parse_when({"event": "file_write", "nth": 1}, {})
    assert fired_at(when, Ledger().emit(WROTE).starts().emit(WROTE).items).fired == 4


def test_the_closer_is_no_message() -> None:
    when = parse_when({"event": "user_message", "nth": 2}, {})
    closer = UserMessage(id="m", text="thanks", source_ids=["closer"], delivered=False)
    assert fired_at(when, Ledger().starts().emit(closer).items).fired is None


def test_conditions_of_a_fallback() -> None:
    """A fallback drops what has to happen, and keeps the distance and the slice."""
    when = parse_when({"all": [{"exchange_at_least": 9}, {"exchanges_since": "s", "at_least": 2}]}, {})
    ledger = Ledger().starts().emit(released("s")).yields()
    assert not fired_at(when, ledger.items).conditions_hold
    state = fired_at(when, ledger.says().yields().items)
    assert (state.conditions_hold, state.fired, state.slices) == (True, None, {"s"})
    pending = parse_when({"all": [{"event": "file_write", "nth": 1}, {"slice_pending": "s"}]}, {})
    assert fired_at(pending, Ledger().starts().items).conditions_hold
    assert not fired_at(pending, ledger.items).conditions_hold
    assert fired_at(parse_when({"event": "file_write", "nth": 1}, {}), Ledger().starts().items).conditions_hold


def test_a_shell_with_a_script_is_doubtful_where_it_leaves_no_record() -> None:
    when = parse_when({"event": "command", "nth": 1, "where": {"cmd": "^(make|source) "}}, {})
    shell = Command(id=1, argv=["/bin/bash", "-c", "source /a && make all"], record="exec")
    make = Command(id=2, argv=["/usr/bin/make", "all"], record="exec")
    state = fired_at(when, Ledger().starts().emit(shell, make).items)
    assert (state.fired, state.doubtful) == (4, 3)
    when = parse_when({"event": "command", "nth": 1, "where": {"cmd": "^make "}}, {})
    state = fired_at(when, Ledger().starts().emit(shell, make).items)
    assert (state.fired, state.doubtful) == (4, None)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"event": "thought", "nth": 1}, r"when: `event` is 'thought'; expected one of agent_message"),
    ({"event": "command"}, r"when\.nth: Field required"),
    ({"event": "command", "nth": 1, "where": {"path": "/a"}}, r"`where\.path` says nothing of command; it can be narrowed"),
    ({"event": "tool_call", "nth": 1, "where": {"cmd": "x"}}, r"says nothing of tool_call; it can be narrowed by nothing"),
    ({"event": "command", "nth": 1, "where": {"cmd": "(?=x)"}}, r"no look-around, no back-references"),
    ({"event": "file_write", "nth": 1, "where": {"path": "a"}}, r"expected an absolute path or glob"),
    ({"event": "file_write", "nth": 1, "where": {"file": "/a"}}, r"when\.where\.file: Extra inputs"),
    ({"count": {"event": "tool_call"}, "at_least": 0}, r"when\.at_least: .*greater than or equal to 1"),
    ({"count": {"event": "tool_call"}, "at_least": "${K}"}, r"\$\{K\} is not bound"),
    ({"exchange_at_least": 1}, r"when\.exchange_at_least: .*greater than or equal to 2"),
    ({"slice_pending": "s"}, r"is true before anything happened"),
    ({"any": [{"slice_pending": "s"}, {"event": "tool_call", "nth": 1}]}, r"is true before anything happened"),
    ({"all": [{"event": "tool_call", "nth": 1}]}, r"when\.all: .*at least 2 items"),
    ({"all": [{"event": "tool_call", "nth": 1}, {"event": "yield", "nth": "x"}]}, r"^when\.all\[1\]\.nth: [^;]*$"),
    ({"event": "tool_call", "nth": 1, "exchange_at_least": 2}, r"expected exactly one of event, count"),
    ({}, r"expected exactly one of event, count"),
]  # fmt: skip


@pytest.mark.parametrize(("when", "message"), BAD, ids=[row[1] for row in BAD])
def test_refused(when: Mapping[str, Any], message: str) -> None:
    with pytest.raises(TriggerError, match=message):
        parse_when(when, {})


class Anything(dict[str, Any]):
    """Binds every name: K to a number, the rest to a text that is a path, a regex and an id."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> Any:
        return "25" if name == "K" else "/x"


@pytest.mark.parametrize("id", sorted(load_catalogue().templates))
def test_every_trigger_of_the_catalogue_is_understood(id: str) -> None:
    template = load_catalogue().template(id)
    state = TriggerState.start(parse_when(template.trigger.when, Anything()))
    assert state.fired is None


def test_a_marker_bound_to_an_expression() -> None:
    template = load_catalogue().template("sr.inject.file-borne")
    when = parse_when(template.trigger.when, {"CARRIER": "/a", "PAYLOAD_RE": "assistants? must"})
    assert "marker_re='assistants? must'" in repr(when)
    edit = load_catalogue().template("or.verify.concurrent-edit").checks[0].hard
    assert edit is not None
    line = parse_when({"nth": 1, "event": "file_read", "where": {"marker": "${EDIT_MARKER}"}}, {"EDIT_MARKER": "a (b"})
    assert "marker='a (b'" in repr(line)


# -- properties ---------------------------------------------------------------------------------------------------------------
DATA: list[Data] = [
    WROTE, CALL, released("s"), released("t"), Yield(how="yielded"), Yield(how="interrupted"), AgentMessage(text="Sure!"),
    AgentMessage(text="a b c d e f g h i j k l m"), ToolResult(call_id="c", text="Permission denied"),
    Command(id=1, argv=["make"], record="exec"), Command(id=2, argv=["sh", "-c", "make"], record="exec"),
    Interrupt(taken=True),
]  # fmt: skip
ATOMS = st.sampled_from(
    [
        {"event": "file_write", "nth": 1},
        {"event": "tool_call", "nth": 2},
        {"count": {"event": "command"}, "at_least": 2},
        {"event": "agent_message", "nth": 1, "where": {"min_words": 12}},
        {"exchange_at_least": 2},
        {"exchange_at_least": 3},
        {"event": "tool_result", "nth": 1, "where": {"text": "denied$"}},
        {"exchanges_since": "s", "at_least": 1},
        {"exchanges_since": "t", "at_least": 2},
        {"event": "command", "nth": 1, "where": {"cmd": "^make"}},
        {"event": "slice_released", "nth": 1, "where": {"slice": "s"}},
    ]
)
WHENS = st.recursive(
    ATOMS,
    lambda inner: st.builds(
        lambda kind, parts: {kind: parts}, st.sampled_from(["all", "any"]), st.lists(inner, min_size=2, max_size=3)
    ),
    max_leaves=5,
)
PENDING = st.builds(lambda when: {"all": [when, {"slice_pending": "s"}]}, WHENS)


def ledger_of(choices: list[int]) -> Ledger:
    """Events in any order; after a yield the user answers."""
    ledger = Ledger().starts()
    for choice in choices:
        data = DATA[choice]
        ledger.emit(data)
        if isinstance(data, Yield) and data.how == "yielded":
            ledger.says()
    return ledger


@given(WHENS | PENDING, st.lists(st.integers(0, len(DATA) - 1), max_size=25))
def test_online_is_offline_and_what_fired_stays_fired(when: dict[str, Any], choices: list[int]) -> None:
    parsed = parse_when(when, {})
    items = ledger_of(choices).items
    state = TriggerState.start(parsed)
    seen: list[int | None] = []
    for number, item in enumerate(items):
        before, state = state, state.observe(item)
        seen.append(state.fired)
        assert state.fired is None or state.fired <= item.seq
        assert before.fired is None or state.fired == before.fired  # stays
        if before.fired is None and state.fired is not None:
            assert state.fired == item.seq
            assert state.holds  # at the very event
        assert state == fired_at(parsed, items[: number + 1])  # a prefix of the ledger says the same
    assert fired_at(parsed, items).fired == (seen[-1] if seen else None)


@given(WHENS, WHENS, st.lists(st.integers(0, len(DATA) - 1), max_size=25))
def test_any_is_the_earlier_and_all_the_later(one: dict[str, Any], two: dict[str, Any], choices: list[int]) -> None:
    """For triggers that cannot become false again."""
    items = ledger_of(choices).items
    first, second = fired_at(parse_when(one, {}), items).fired, fired_at(parse_when(two, {}), items).fired
    both = [seq for seq in (first, second) if seq is not None]
    assert fired_at(parse_when({"any": [one, two]}, {}), items).fired == (min(both) if both else None)
    assert fired_at(parse_when({"all": [one, two]}, {}), items).fired == (max(both) if len(both) == 2 else None)
