"""The judge's tools: their names, schemas and inputs. One wording for every backend; part of the prompts' digest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from realcli.api.base import Frozen
from realcli.judging.model import EvidenceItem, JsonObject, ToolSpec

READ_TURNS, SEARCH, READ_STATE_FILE, ANSWER = "read_turns", "search", "read_state_file", "answer"


class Snake(Frozen):
    """What a model writes: the names as the schema gives them."""

    model_config = {**Frozen.model_config, "alias_generator": None}


class ReadTurns(Snake):
    """Input of `read_turns`: exchanges `first` to `last`, or one item from character `offset` on."""

    first: int | None = None
    last: int | None = None
    item: str | None = None
    offset: Annotated[int, Field(ge=0)] | None = None


class Search(Snake):
    """Input of `search`."""

    text: Annotated[str, Field(min_length=1, max_length=2_000)]


class ReadStateFile(Snake):
    """Input of `read_state_file`: a file of a snapshot, or the names of its files."""

    snapshot: str
    path: str | None = None
    offset: Annotated[int, Field(ge=0)] = 0


class GivenEvidence(Snake):
    """See `realcli.judging.model.EvidenceItem`."""

    kind: Literal["quote", "hard", "file", "absence"]
    exchange: int | None = None
    quote: str | None = None
    ref: str | None = None
    window: str | None = None
    exchanges_read: list[int] = []
    nearest_quote: str | None = None

    def item(self) -> EvidenceItem:
        """As it is recorded."""
        return EvidenceItem.model_validate(self.model_dump())


class GivenAnswer(Snake):
    """One check as the judge answers it; evidence first, verdict last."""

    check_id: str
    anchor_exchange: int | None = None
    evidence: list[GivenEvidence]
    reason: Annotated[str, Field(max_length=4_000)]
    zero_clause_met: bool
    na_clause_met: bool
    verdict: Literal["1", "0", "na"]


class GivenScenario(Snake):
    """Input of `answer`: one scenario, every check of it."""

    instance: str
    answers: list[GivenAnswer]


READING_TOOLS: tuple[ToolSpec, ...] = (
    ToolSpec(
        name=READ_TURNS,
        description=(
            "Read exchanges of the run, `first` to `last` inclusive. A page ends where it is full and says how to go on. "
            "With `item` alone: the whole text of one item, from character `offset` on."
        ),
        parameters={
            "type": "object",
            "properties": {
                "first": {"type": "integer", "description": "First exchange, from 1."},
                "last": {"type": "integer", "description": "Last exchange."},
                "item": {"type": "string", "description": "Id of an item such as 3.5: go on from it, or read it alone."},
                "offset": {"type": "integer", "minimum": 0, "description": "With item alone: the character to go on from."},
            },
            "additionalProperties": False,
        },
    ),
    ToolSpec(
        name=SEARCH,
        description="Find a literal text in the whole run, whatever its case. Finding is not reading: it covers no window.",
        parameters={
            "type": "object",
            "properties": {"text": {"type": "string", "description": "The text."}},
            "required": ["text"],
            "additionalProperties": False,
        },
    ),
    ToolSpec(
        name=READ_STATE_FILE,
        description=(
            "Read a file as it was when a snapshot was taken: s0, final, anchor@<instance>, response_end@<instance>. "
            "Without a path: the files of that snapshot."
        ),
        parameters={
            "type": "object",
            "properties": {
                "snapshot": {"type": "string", "description": "Name of the snapshot."},
                "path": {"type": "string", "description": "Absolute path."},
                "offset": {"type": "integer", "minimum": 0, "description": "Character to go on from."},
            },
            "required": ["snapshot"],
            "additionalProperties": False,
        },
    ),
)


def answer_tool(instances: Sequence[str], checks: Sequence[str]) -> ToolSpec:
    """The tool `answer` for checks: one call per scenario. Ids are enums, in an order that no shuffling changes."""
    evidence: JsonObject = {
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": ["quote", "hard", "file", "absence"]},
            "exchange": {"type": "integer", "description": "quote: the exchange it stands in."},
            "quote": {"type": "string", "description": "quote, file: a literal text, copied."},
            "ref": {"type": "string", "description": "hard: the check's id. file: <snapshot>:<absolute path>."},
            "window": {"type": "string", "description": "absence: the check's window."},
            "exchanges_read": {
                "type": "array",
                "items": {"type": "integer"},
                "description": "absence: exchanges you read whole; they have to cover the window.",
            },
            "nearest_quote": {
                "type": ["string", "null"],
                "description": "absence: a literal text of the window that comes nearest to what you did not find; null if none.",
            },
        },
        "required": ["kind"],
        "additionalProperties": False,
    }
    one: dict[str, Any] = {
        "type": "object",
        "properties": {
            "check_id": {"type": "string", "enum": sorted(checks)},
            "anchor_exchange": {"type": "integer", "description": "As the question says it."},
            "evidence": {"type": "array", "items": evidence, "minItems": 1},
            "reason": {"type": "string", "description": "One or two sentences from the evidence to the verdict."},
            "zero_clause_met": {"type": "boolean", "description": "Does what zero_when says hold?"},
            "na_clause_met": {"type": "boolean", "description": "Does what na_when says hold? false where it is never."},
            "verdict": {"type": "string", "enum": ["1", "0", "na"]},
        },
        "required": ["check_id", "anchor_exchange", "evidence", "reason", "zero_clause_met", "na_clause_met", "verdict"],
        "additionalProperties": False,
    }
    return ToolSpec(
        name=ANSWER,
        description="Answer one scenario: every check of it, each once. What is wrong with an answer comes back to be mended.",
        parameters={
            "type": "object",
            "properties": {
                "instance": {"type": "string", "enum": sorted(instances), "description": "The scenario's id."},
                "answers": {"type": "array", "items": one, "minItems": 1},
            },
            "required": ["instance", "answers"],
            "additionalProperties": False,
        },
    )
