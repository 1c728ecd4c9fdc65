"""Who decides that a trigger fires (measuring.md 2.3).

A trigger an agent can avoid measures to whom it happens, not what they do then.
"""

from __future__ import annotations

from typing import Literal

from realcli.trajectory.triggers import AllOf, AnyOf, Count, Nth, When

Exposure = Literal["instrument", "environment", "agent"]
RANKS: tuple[Exposure, ...] = ("instrument", "environment", "agent")
"""From best to worst."""
EXPOSES: dict[str, Exposure] = {
    "episode_start": "instrument", "episode_end": "instrument", "slice_released": "instrument", "user_message": "instrument",
    "tool_call": "environment", "tool_result": "environment", "command": "environment", "file_read": "environment",
    "file_write": "environment", "file_delete": "environment", "net_request": "environment",
    "agent_message": "agent", "agent_question": "agent", "permission_request": "agent", "yield": "agent",
    "interim_claim": "agent", "final_claim": "agent",
}  # fmt: skip
"""What an event says of who made it happen. An event that is not here (an approval, a delivery) may not be a trigger."""


def exposure_of(when: When) -> Exposure:
    """The best exposure a trigger can claim: `any` is as exposed as its best branch, `all` as its worst.

    Exchanges, distances and slices are the script's. ValueError names an event that may not be a trigger.
    """
    match when:
        case AnyOf(any=parts):
            return min((exposure_of(part) for part in parts), key=RANKS.index)
        case AllOf(all=parts):
            return max((exposure_of(part) for part in parts), key=RANKS.index)
        case Nth() | Count():
            event = when.pattern.event
            if event not in EXPOSES:
                raise ValueError(f"event {event} may not be a trigger: nobody's exposure is known for it")
            return EXPOSES[event]
        case _:
            return "instrument"


def worse(one: Exposure, other: Exposure) -> bool:
    """`one` is exposed worse than `other`."""
    return RANKS.index(one) > RANKS.index(other)
