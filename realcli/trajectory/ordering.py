"""What is known of the order of two events. A turn is one request and all that is done on its answer.

The ledger's own order (seq) is the order of *noticing*. It is the order of happening for what the session itself does and for
executed commands (the kernel is asked before each runs). Elsewhere a program knows the order of requests alone:
* content shown in request T was fetched between T-1 and T, and was known to the model from T on;
* a file changed somewhere between two requests;
* calls of one reply, and commands read from them, ran in an unknown order;
* a text of reply T comes before what the calls after it in that reply do, and nobody knows how it lies to those before it.
Changes of a turn in which several things ran cannot be put into order with them: unknown, never guessed.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from realcli.ledger.events import AgentMessage, AgentQuestion, Command, FileDelete, FileRead, FileWrite, ToolResult
from realcli.trajectory.model import Item, Trajectory

Order = Literal["before", "after", "unknown"]
_END = 1 << 60


class Span(NamedTuple):
    """When an event happened, in requests: request k is accepted at 2k, what is done on its answer lies between 2k and 2k+2."""

    first: int
    last: int


def span(item: Item) -> Span:
    """The stretch in which the event happened."""
    match item.data:
        case FileWrite(after_turn=after, before_turn=before) | FileDelete(after_turn=after, before_turn=before):
            return Span(2 * after, _END if before is None else 2 * before)
        case FileRead() | ToolResult():
            return Span(2 * (item.turn - 1), 2 * item.turn)
        case _:
            return Span(2 * item.turn, 2 * item.turn + 2)


def order_of(trajectory: Trajectory, one: Item, other: Item) -> Order:
    """How `one` lies to `other`, two events of that run."""
    if isinstance(one.data, AgentMessage | AgentQuestion) and _done_by_agent(other):
        return _message_and_deed(trajectory, one, other)
    if isinstance(other.data, AgentMessage | AgentQuestion) and _done_by_agent(one):
        return _opposite(_message_and_deed(trajectory, other, one))
    if _in_order_of_notice(one) and _in_order_of_notice(other):
        return "before" if one.seq < other.seq else "after"
    if _in_order_of_notice(one) and one.seq in trajectory.idle:
        return _while_idle(one, other)
    if _in_order_of_notice(other) and other.seq in trajectory.idle:
        return _opposite(order_of(trajectory, other, one))
    return _by_span(one, other)


def _while_idle(one: Item, other: Item) -> Order:
    """`one` while the agent waits: what was done on the last answer is done, and what was noticed earlier was earlier."""
    its = span(other)
    if other.seq < one.seq or its.last <= 2 * one.turn:
        return "after"
    return "before" if its.first >= 2 * one.turn else "unknown"


def _by_span(one: Item, other: Item) -> Order:
    mine, its = span(one), span(other)
    if mine.last <= its.first:
        return "before"
    return "after" if its.last <= mine.first else "unknown"


def _in_order_of_notice(item: Item) -> bool:
    """Seq is the order in which such events happened."""
    match item.data:
        case Command(record="tool_text") | FileWrite() | FileDelete() | FileRead() | ToolResult():
            return False
        case _:
            return True


def _done_by_agent(item: Item) -> bool:
    return isinstance(item.data, FileWrite | FileDelete | Command)


def _message_and_deed(trajectory: Trajectory, message: Item, deed: Item) -> Order:
    """A text of reply T against what was done: on an earlier answer, on a later one, or on this one."""
    its = span(deed)
    if its.last <= 2 * message.turn:
        return "after"
    if its.first < 2 * message.turn:
        return "unknown"
    if its.first >= 2 * message.turn + 2:
        return "before"
    if isinstance(deed.data, Command):
        return "before" if message.seq < deed.seq else "unknown"
    call = trajectory.first_call.get(message.turn)
    return "before" if call is None or message.seq < call else "unknown"


def _opposite(order: Order) -> Order:
    return "unknown" if order == "unknown" else ("after" if order == "before" else "before")
