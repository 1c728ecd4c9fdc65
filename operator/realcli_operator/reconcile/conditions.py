"""Conditions as a value: set one, keep the rest; the transition time moves only when the status does (KEP-1623)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, Literal

from realcli.api.sweepstatus import Condition

MAX_MESSAGE: Final = 2048


def rfc3339(time: datetime) -> str:
    """Whole seconds, UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def find(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """The condition of that type."""
    return next((condition for condition in conditions if condition.type == type_), None)


def is_true(conditions: Iterable[Condition], type_: str) -> bool:
    """Whether it is there and True."""
    found = find(conditions, type_)
    return found is not None and found.status == "True"


def with_condition(
    conditions: Iterable[Condition],
    type_: str,
    status: Literal["True", "False", "Unknown"],
    reason: str,
    message: str,
    now: datetime,
    generation: int,
) -> list[Condition]:
    """The conditions, sorted by type, with this one set."""
    before = find(conditions, type_)
    since = before.last_transition_time if before is not None and before.status == status else rfc3339(now)
    new = Condition(
        type=type_,
        status=status,
        reason=reason,
        message=message[:MAX_MESSAGE],
        last_transition_time=since,
        observed_generation=generation,
    )
    return sorted([*(c for c in conditions if c.type != type_), new], key=lambda condition: condition.type)


def without(conditions: Iterable[Condition], *types: str) -> list[Condition]:
    """The conditions but those."""
    return [condition for condition in conditions if condition.type not in types]
