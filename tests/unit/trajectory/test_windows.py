"""Anchors and windows: what is in them, what closes them, what cuts them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from realcli.ledger.events import (
    AgentExit,
    AgentMessage,
    Approval,
    Denial,
    FileWrite,
    FinalClaim,
    InterimClaim,
    Interrupt,
    ProbeDelivered,
    RecordGap,
    ToolCall,
    ToolResult,
)
from realcli.trajectory.anchors import RULES, WINDOWS, Anchor, anchor_window, window
from tests.support.ledgers import Ledger

SAYS = AgentMessage(text="done")
RESULT = ToolResult(call_id="c", text="no such file")
DELIVERED = ProbeDelivered(probe="p", scenario="s", message_id="m")
Run = Callable[[Ledger], Ledger]


def delivered() -> Ledger:
    """Exchange 1 ends; the probe's message starts exchange 2: delivered at event 7."""
    return Ledger().starts().request().emit(SAYS).yields().says("probe:p").emit(DELIVERED)


RESP1: list[tuple[str, Run, int, int, bool, bool]] = [
    # what follows the delivery, first, last, complete, cut
    ("answered", lambda b: b.request().emit(SAYS).yields().says(), 8, 10, True, False),
    ("nothing at all", lambda b: b.ends("Deadline"), 8, 8, False, True),
    ("refused at once", lambda b: b.request("turn_limit").ends("TurnLimit"), 8, 9, False, True),
    ("refused and failed of it", lambda b: b.request("turn_limit").yields("failed").ends("TurnLimit"), 8, 9, False, True),
    ("the program died", lambda b: b.emit(AgentExit(code=1), actor="agent").ends("AgentCrashed"), 8, 9, False, True),
    ("asked, then cut", lambda b: b.request().ends("Deadline"), 8, 9, False, False),
    ("handed over by silence", lambda b: b.yields().says(), 8, 8, True, False),
    ("interrupted", lambda b: b.request().emit(Interrupt(taken=True)).yields("interrupted").says().yields(), 8, 10, True, False),
    ("a message into it", lambda b: b.request().message(["slice:x"], "mid_turn").request().yields(), 8, 11, True, False),
]  # fmt: skip


@pytest.mark.parametrize(("name", "run", "first", "last", "complete", "cut"), RESP1, ids=[row[0] for row in RESP1])
def test_response_after(name: str, run: Run, first: int, last: int, complete: bool, cut: bool) -> None:
    got = anchor_window(run(delivered()).trajectory, Anchor("response_after", 7))
    assert (got.first, got.last, got.complete, got.cut) == (first, last, complete, cut)
    assert [item.seq for item in got.items] == list(range(first, last + 1))
    assert (got.closed_by is None) == (not complete)


def test_a_late_interrupted_yield_of_the_exchange_before_closes_nothing() -> None:
    ledger = Ledger().starts().request().says("probe:p").emit(DELIVERED)
    ledger.exchange = 1
    ledger.yields("interrupted")
    ledger.exchange = 2
    got = anchor_window(ledger.request().emit(SAYS).yields().trajectory, Anchor("response_after", 5))
    assert (got.first, got.last, got.complete) == (6, 9, True)


def test_rest_of_response_holds_its_trigger() -> None:
    run = Ledger().starts().request().request().emit(RESULT).emit(SAYS).yields().says().request().ends().trajectory
    anchor = Anchor("rest_of_response", 5)
    assert [(w.first, w.last) for w in (window(run, anchor, name) for name in ("resp1", "post", "final", "run"))] == [
        (5, 7), (5, 11), (5, 11), (1, 11),
    ]  # fmt: skip


@pytest.mark.parametrize("claim", [FinalClaim(), InterimClaim(slices_pending=0, probes_pending=1)])
def test_containing_response_is_what_the_claim_closes(claim: FinalClaim | InterimClaim) -> None:
    run = Ledger().starts().request().yields().says().request().emit(SAYS).yields().emit(claim).ends("Deadline").trajectory
    got = window(run, Anchor("containing_response", 9), "resp1")
    assert (got.first, got.last, got.complete, got.cut) == (6, 9, True, False)
    assert [event.kind for event in (item.event for item in got.items)] == [
        "model_request", "agent_message", "yield", claim.kind,
    ]  # fmt: skip


def test_changes_told_at_the_hand_over_belong_to_the_response() -> None:
    write = FileWrite(path="/a", after_turn=2, created=True)
    late = FileWrite(path="/b", after_turn=2, before_turn=3, created=True)
    run = delivered().request().yields().emit(InterimClaim(slices_pending=1, probes_pending=0), write).says().request().emit(late)
    got = window(run.trajectory, Anchor("response_after", 7), "resp1")
    assert (got.last, [item.seq for item in got.items]) == (9, [8, 9, 11])


UNTIL: list[tuple[str, Run, int, bool]] = [
    ("of this action", lambda b: b.request().emit(SAYS).yields().says().emit(Approval(action="a")).request().ends(), 12, True),
    ("of another", lambda b: b.request().emit(Approval(action="b")).yields().ends("Deadline"), 11, False),
    ("another first", lambda b: b.request().emit(Approval(action="b"), Approval(action="a")).yields().ends(), 10, True),
    ("a denial", lambda b: b.request().emit(Denial(action="a")).yields().ends(), 12, True),
    ("before the anchor", lambda b: b.request().yields().ends(), 11, True),
]  # fmt: skip


@pytest.mark.parametrize(("name", "run", "last", "complete"), UNTIL, ids=[row[0] for row in UNTIL])
def test_until_approval(name: str, run: Run, last: int, complete: bool) -> None:
    earlier = Ledger().starts().request().emit(Approval(action="a")).yields().says("probe:p").emit(DELIVERED)
    got = window(run(earlier).trajectory, Anchor("response_after", 7), "until_approval", "a")
    assert (got.first, got.last, got.complete) == (8, last, complete)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", WINDOWS)
def test_pairs_that_could_be_empty_are_refused(rule: object, name: object) -> None:
    run = delivered().request().emit(SAYS).yields().ends().trajectory
    anchor = Anchor(rule, 11 if rule == "containing_response" else 7)  # type: ignore[arg-type]
    if rule in WINDOWS[name]:  # type: ignore[index]
        assert window(run, anchor, name, "a").items  # type: ignore[arg-type]
    else:
        with pytest.raises(ValueError, match="it could be empty"):
            window(run, anchor, name, "a")  # type: ignore[arg-type]


def test_the_whole_run_starts_with_the_episode() -> None:
    run = Ledger().emit(RecordGap(record="net", reason="late")).starts().request().yields().ends().trajectory
    got = anchor_window(run, Anchor("whole_run", 1))
    assert (got.first, got.last, got.complete) == (2, 7, True)


def test_gaps_are_those_of_a_record_or_of_the_ledger() -> None:
    gaps = [RecordGap(record=record, reason="x") for record in ("command", "file", "ledger")]
    got = delivered().emit(*gaps).ends().trajectory.post(7)
    assert [item.seq for item in got.gaps("file")] == [9, 10]
    assert [item.seq for item in got.gaps("net")] == [10]
    assert [item.seq for item in got.gaps("file", "command")] == [8, 9, 10]


def test_calls_and_their_results() -> None:
    def call(id: str) -> ToolCall:
        return ToolCall(call_id=id, name="Bash", input={})

    run = Ledger().starts().request().emit(call("a")).request().emit(ToolResult(call_id="a", text="1"), call("b"), call("c"))
    run.request().emit(ToolResult(call_id="c", text="2"))
    got = run.trajectory.calls
    assert [(c.call.seq, c.result and c.result.seq, c.parallel) for c in got] == [(4, 6, False), (7, None, True), (8, 10, True)]


def test_exchanges_hold_messages_into_them() -> None:
    run = Ledger().starts().request().message(["x"], "mid_turn").yields().says().request().yields("interrupted").says().ends()
    got = run.trajectory.exchanges
    assert [(e.number, len(e.messages), e.complete) for e in got] == [(1, 2, True), (2, 1, False), (3, 1, False)]


@pytest.mark.parametrize("late", ["before the text", "after the text", "at the hand-over"])
def test_a_window_of_a_change_does_not_depend_on_how_fast_it_was_noticed(late: str) -> None:
    """Request 2 was made after the write; what is said on it comes after the write."""
    wrote = FileWrite(path="/a", after_turn=1, before_turn=2, created=False)
    ledger = Ledger().starts().request().emit(ToolCall(call_id="c", name="Write", input={})).request()
    asked = len(ledger.trajectory.items)
    if late == "before the text":
        ledger = ledger.emit(wrote).emit(SAYS).yields()
    elif late == "after the text":
        ledger = ledger.emit(SAYS).emit(wrote).yields()
    else:
        ledger = ledger.emit(SAYS).yields().emit(wrote)
    trajectory = ledger.ends().trajectory
    trigger = next(item.seq for item in trajectory.items if item.data == wrote)
    for name in ("resp1", "post"):
        view = window(trajectory, Anchor("rest_of_response", trigger), name)
        assert view.first == asked
        assert SAYS in [item.data for item in view.items]
        assert wrote in [item.data for item in view.items]
    assert not anchor_window(trajectory, Anchor("rest_of_response", trigger)).cut


def test_a_window_of_a_change_that_no_request_followed() -> None:
    """Something left behind wrote it: what was said before is not after it."""
    ledger = (
        Ledger().starts().request().emit(SAYS).yields().emit(FileWrite(path="/a", after_turn=1, before_turn=None, created=False))
    )
    trigger = len(ledger.trajectory.items)
    view = window(ledger.says().request().yields().trajectory, Anchor("rest_of_response", trigger), "post")
    assert view.first == trigger
