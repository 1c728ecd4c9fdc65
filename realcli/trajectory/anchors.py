"""Anchors and windows: which stretch of a run a check looks at. Definitions: `vocabulary.anchors`, `vocabulary.windows`.

What the words leave open is decided here:
* A window that starts at a trigger holds the trigger; one that starts at a delivery does not hold the delivery. A change of a
  file is noticed by a look that takes its time: the window it starts begins with the request made after it, so that what the
  agent said on that request is in it, however fast it was.
* `until_approval` ends with the approval, which is in it; only an approval of the action named in `approval_of` closes it.
* `final` looks at a state. The events of its window are those up to the end, for operators that also need an event.
* An interrupt closes a response, as the next message starts another exchange; a program that failed closes none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from realcli.ledger.events import Approval, FileDelete, FileWrite
from realcli.trajectory.model import Trajectory, Window

Rule = Literal["response_after", "rest_of_response", "containing_response", "whole_run"]
WindowName = Literal["resp1", "post", "until_approval", "run", "final"]
RULES: tuple[Rule, ...] = get_args(Rule)
WINDOWS: dict[WindowName, frozenset[Rule]] = {
    "resp1": frozenset(("response_after", "rest_of_response", "containing_response")),
    "post": frozenset(("response_after", "rest_of_response")),
    "until_approval": frozenset(("response_after", "rest_of_response")),
    "run": frozenset(RULES),
    "final": frozenset(RULES),
}
"""Rules under which a window cannot be empty by construction: nothing follows a claim; a whole run has no response of its own."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """Where an instance begins: the seq of its delivery, its trigger, or the start of the episode."""

    rule: Rule
    seq: int


def anchor_window(trajectory: Trajectory, anchor: Anchor) -> Window:
    """The window of the anchor rule itself; the instance is `cut` where the run ended in it before the agent did anything."""
    return trajectory.run() if anchor.rule == "whole_run" else window(trajectory, anchor, "resp1")


def window(trajectory: Trajectory, anchor: Anchor, name: WindowName, action: str | None = None) -> Window:
    """A check's window. `action`: the id that `approval_of` is bound to. ValueError for a pair that could be empty."""
    if anchor.rule not in WINDOWS[name]:
        raise ValueError(f"window {name} has no meaning under the anchor rule {anchor.rule}: it could be empty")
    match name:
        case "resp1":
            return _response(trajectory, anchor)
        case "run":
            return trajectory.run()
        case "final" if anchor.rule == "whole_run":
            return trajectory.run()
        case "post" | "final":
            return trajectory.post(_first(trajectory, anchor) - 1)
        case "until_approval":
            if action is None:
                raise ValueError("window until_approval needs the action whose approval closes it")
            return _until(trajectory, anchor, action)


def _response(trajectory: Trajectory, anchor: Anchor) -> Window:
    if anchor.rule == "containing_response":
        return _containing(trajectory, anchor.seq)
    return trajectory.response_from(_first(trajectory, anchor), trajectory.items[anchor.seq - 1].event.exchange)


def _first(trajectory: Trajectory, anchor: Anchor) -> int:
    """The first event of the window. Of a change of a file: the request before which it was made, however late it was noticed."""
    if anchor.rule == "response_after":
        return anchor.seq + 1
    data = trajectory.items[anchor.seq - 1].data
    made = data.before_turn if isinstance(data, FileWrite | FileDelete) else None
    if made is None:
        return anchor.seq
    return next((item.seq for item in trajectory.items[: anchor.seq] if item.turn >= made), anchor.seq)


def _containing(trajectory: Trajectory, claim: int) -> Window:
    """The response that the claim at seq `claim` closes: from the message that began its exchange to the claim."""
    item = trajectory.items[claim - 1]
    exchange = next(found for found in trajectory.exchanges if found.number == item.event.exchange)
    first = (exchange.messages[0] if exchange.messages else exchange.items[0]).seq + 1
    return Window(first, claim, trajectory.items[first - 1 : claim], complete=True, closed_by=item)


def _until(trajectory: Trajectory, anchor: Anchor, action: str) -> Window:
    rest = trajectory.post(_first(trajectory, anchor) - 1)
    for at, item in enumerate(rest.items):
        if isinstance(item.data, Approval) and item.data.action == action:
            return Window(rest.first, item.seq, rest.items[: at + 1], complete=True, closed_by=item)
    return rest
