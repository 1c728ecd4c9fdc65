"""What is known of the order of two events."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli.ledger.events import (
    AgentMessage,
    Approval,
    Command,
    FileRead,
    FileWrite,
    FinalClaim,
    SliceReleased,
    ToolCall,
)
from realcli.trajectory.ordering import order_of
from tests.support.ledgers import Ledger

SAYS = AgentMessage(text="a plan")
CALL = ToolCall(call_id="c", name="Bash", input={})
APPROVED = Approval(action="a")
OUT = SliceReleased(slice="s", how="ask", message_id="m")
READ = FileRead(path="/a", marker="x")


def wrote(after: int, before: int | None) -> FileWrite:
    return FileWrite(path="/a", after_turn=after, before_turn=before, created=False)


def ran(record: str = "exec", id: int = 1) -> Command:
    return Command(id=id, argv=["make"], record=record, call_id="c")  # type: ignore[arg-type]


Run = Callable[[Ledger], Ledger]
# The ledger starts with the opener (1, 2) and request 1 (3); seq of the two events, and how the first lies to the second.
TABLE: list[tuple[str, Run, int, int, str]] = [
    ("text, then a write in its turn", lambda b: b.emit(SAYS, CALL).request().emit(wrote(1, 2)), 4, 7, "before"),
    ("a call before the text in one reply", lambda b: b.emit(CALL, SAYS).request().emit(wrote(1, 2)), 5, 7, "unknown"),
    ("a write of an earlier turn", lambda b: b.emit(CALL).request().emit(wrote(1, 2), SAYS), 7, 6, "after"),
    ("a write over both turns", lambda b: b.emit(CALL).request().emit(SAYS).request().emit(wrote(1, 3)), 6, 8, "unknown"),
    ("a write of a later turn", lambda b: b.emit(SAYS).request().emit(CALL).request().emit(wrote(2, 3)), 4, 8, "before"),
    ("a later turn, whatever stood in the reply", lambda b: b.emit(CALL, SAYS).request().emit(CALL).request().emit(wrote(2, 3)),
     5, 9, "before"),
    ("a write after the last request", lambda b: b.emit(SAYS, wrote(1, None)), 4, 5, "before"),
    ("two executed commands", lambda b: b.emit(ran(), ran(id=2)), 4, 5, "before"),
    ("two commands read from parallel calls", lambda b: b.emit(ran("tool_text"), ran("tool_text", 2)), 4, 5, "unknown"),
    ("read from calls of two turns", lambda b: b.emit(ran("tool_text")).request().emit(ran("tool_text", 2)), 4, 6, "before"),
    ("text, then a command", lambda b: b.emit(SAYS, ran()), 4, 5, "before"),
    ("a command noticed before the text of its turn", lambda b: b.emit(ran(), SAYS), 4, 5, "unknown"),
    ("a command of an earlier turn", lambda b: b.emit(ran()).request().emit(SAYS), 4, 6, "before"),
    ("shown, then written", lambda b: b.emit(CALL).request().emit(READ, CALL).request().emit(wrote(2, 3)), 6, 9, "before"),
    ("shown and written in one round", lambda b: b.emit(CALL).request().emit(READ, wrote(1, 2)), 6, 7, "unknown"),
    ("written, then fetched", lambda b: b.request().emit(wrote(1, 2)).request().emit(READ), 5, 7, "before"),
    ("released while idle, then written", lambda b: b.yields().emit(OUT).request().request().emit(wrote(2, 3)), 5, 8, "before"),
    ("written before that hand-over", lambda b: b.emit(wrote(1, None)).yields().emit(OUT), 6, 4, "after"),
    ("told after it, begun before", lambda b: b.request().yields().emit(OUT).request().emit(wrote(1, 3)), 6, 8, "unknown"),
    ("approved inside the turn of the write", lambda b: b.emit(APPROVED).request().emit(wrote(1, 2)), 4, 6, "unknown"),
    ("approved while idle", lambda b: b.yields().emit(APPROVED).request().emit(CALL).request().emit(wrote(2, 3)), 5, 9, "before"),
    ("the claim after a read", lambda b: b.request().emit(READ).yields().emit(FinalClaim()), 5, 7, "before"),
    ("an executed command and a claim", lambda b: b.emit(ran()).yields().emit(FinalClaim()), 4, 6, "before"),
    ("a command and a write in one turn", lambda b: b.emit(ran()).request().emit(wrote(1, 2)), 4, 6, "unknown"),
    ("a command and a write of the next", lambda b: b.emit(ran()).request().request().emit(wrote(2, 3)), 4, 7, "before"),
]  # fmt: skip
OPPOSITE = {"before": "after", "after": "before", "unknown": "unknown"}


@pytest.mark.parametrize(("name", "run", "one", "other", "known"), TABLE, ids=[row[0] for row in TABLE])
def test_order(name: str, run: Run, one: int, other: int, known: str) -> None:
    got = run(Ledger().starts().request()).trajectory
    assert order_of(got, got.items[one - 1], got.items[other - 1]) == known
    assert order_of(got, got.items[other - 1], got.items[one - 1]) == OPPOSITE[known]


@given(st.integers(1, 6), st.integers(0, 6), st.integers(1, 4), st.data())
def test_what_is_said_of_a_text_and_a_write_is_true(said: int, after: int, length: int, data: st.DataObject) -> None:
    """Whatever round the write really was in: a certain answer never contradicts it."""
    ledger = Ledger().starts()
    message = None
    for turn in range(1, after + length + 7):
        ledger.request()
        if turn == said:
            ledger.emit(SAYS)
            message = ledger.last
        if turn == after + length:
            ledger.emit(wrote(after, after + length))
            write = ledger.last
    real = data.draw(st.integers(after, after + length - 1))  # made on the answer to this request
    got = ledger.trajectory
    assert message is not None
    told = order_of(got, got.items[message - 1], got.items[write - 1])
    if told == "before":
        assert real >= said
    if told == "after":
        assert real < said
    if told == "unknown":
        assert after < said < after + length
