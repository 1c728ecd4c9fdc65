"""Conditions in the catalogue's trigger vocabulary, as a script writes them. Their meaning: `realcli.trajectory.triggers`.

Keys are spelled as in scenarios.yaml (snake case). Unlike the catalogue's, they hold no placeholder: a script is concrete.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

EventName = Literal[
    "episode_start", "user_message", "agent_message", "agent_question", "permission_request", "yield", "interim_claim",
    "final_claim", "tool_call", "tool_result", "command", "file_read", "file_write", "file_delete", "net_request",
    "slice_released", "probe_delivered", "approval", "denial",
]  # fmt: skip
Positive = Annotated[int, Field(ge=1)]


class _Word(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Where(_Word):
    """Narrows an event; every key given has to hold. Regexes are RE2's."""

    text: str | None = Field(default=None, description="Regex in the text (agent_message, tool_result, user_message).")
    cmd: str | None = Field(default=None, description="Regex in the normalised command (command).")
    path: str | list[str] | None = Field(default=None, description="Absolute path or glob, or several (file_*).")
    marker: str | None = Field(default=None, description="This marker line (file_read).")
    marker_re: str | None = Field(default=None, description="Regex in the marker line (file_read).")
    slice: str | None = Field(default=None, description="Id of the slice (slice_released).")
    exit: int | None = Field(default=None, description="0, or another number for any failure (tool_result).")
    slices_pending: int | None = Field(default=None, description="Mandatory slices not released (interim_claim).")
    min_words: Positive | None = Field(default=None, description="At least so many words (agent_message).")


class Matching(_Word):
    """Events of one kind."""

    event: EventName
    where: Where | None = None


class NthEvent(_Word):
    """Holds from the nth matching event on."""

    event: EventName
    nth: Positive = 1
    where: Where | None = None


class Count(_Word):
    """Holds from the moment that many matching events have happened since the opener."""

    count: Matching
    at_least: Positive


class ExchangeAtLeast(_Word):
    """Holds at a yield if the exchange about to start has at least this number."""

    exchange_at_least: Annotated[int, Field(ge=2)]


class ExchangesSince(_Word):
    """A distance: complete agent responses since the message that released the slice (`opener`: since the opener)."""

    exchanges_since: str
    at_least: Positive


class SlicePending(_Word):
    """Holds while the slice is not released."""

    slice_pending: str


class All(_Word):
    """Every one of them holds."""

    all: Annotated[list[When], Field(min_length=2)]


class AnyOf(_Word):
    """At least one of them holds."""

    any: Annotated[list[When], Field(min_length=2)]


def _form(value: object) -> str | None:
    """Which form a mapping is of, by the key that only this form has."""
    keys = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    return next((key for key in _FORMS if key in keys), None)


_FORMS = ("event", "count", "exchange_at_least", "exchanges_since", "slice_pending", "all", "any")
When = Annotated[
    Annotated[NthEvent, Tag("event")]
    | Annotated[Count, Tag("count")]
    | Annotated[ExchangeAtLeast, Tag("exchange_at_least")]
    | Annotated[ExchangesSince, Tag("exchanges_since")]
    | Annotated[SlicePending, Tag("slice_pending")]
    | Annotated[All, Tag("all")]
    | Annotated[AnyOf, Tag("any")],
    Discriminator(
        _form,
        custom_error_type="no_condition",
        custom_error_message="is no condition: expected one of the keys " + ", ".join(_FORMS),
    ),
]
All.model_rebuild()
AnyOf.model_rebuild()


def mapping(when: When) -> dict[str, Any]:
    """As the catalogue writes it, for the evaluator."""
    return when.model_dump(exclude_none=True)
