"""The closed set of ledger events. One JSON object per line, one writer, chained by hash.

A line is the canonical JSON (sorted keys, no spaces) of an `Event`; `prev` is the sha256 of the previous line's bytes without its
newline, 64 zeros for the first. Unknown kinds are refused on write and kept on read. A text, JSON value or list of references
longer than `INLINE_TEXT` lies in `blobs/<sha256>` and stands in the line as a `BlobRef`. So does a JSON value that looks like a
reference: one in a ledger is always the writer's. Messages, system prompts and tool lists of model requests are blobs. Every
other text is cut at `PLAIN_TEXT` characters: an agent chooses many of them, and no event may be too long to be written.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from realcli.api.base import Frozen, Hex64
from realcli.ledger.base import (
    INLINE_TEXT,
    MAX_LINE,
    PLAIN_TEXT,
    SCHEMA_VERSION,
    ZERO_HASH,
    Actor,
    BlobRef,
    Data,
    Json,
    Refs,
    Text,
)
from realcli.ledger.evidence import (
    Command,
    CommandEnd,
    FileDelete,
    FileRead,
    FileWrite,
    HardCheck,
    ModelReply,
    ModelRequest,
    NetRequest,
    Recorders,
    RecordGap,
    Snapshot,
    ToolCall,
    ToolResult,
)
from realcli.ledger.running import (
    AgentExit,
    AgentSetup,
    AgentStart,
    EpisodeEnd,
    Harness,
    LedgerOpen,
    Limit,
    PhaseChange,
    Quiesce,
    RunData,
    RunnerHello,
    SessionError,
    StateStored,
    StorageWait,
)
from realcli.ledger.talk import (
    AgentMessage,
    AgentQuestion,
    Approval,
    Ask,
    Denial,
    EpisodeStart,
    FinalClaim,
    Guard,
    InterimClaim,
    Interrupt,
    PermissionAnswer,
    PermissionRequest,
    Plant,
    ProbeDelivered,
    ProbeUntriggered,
    SliceReleased,
    Trigger,
    UserMessage,
    Wording,
    WordingRequest,
    Yield,
)

__all__ = [
    "EVENT",
    "INLINE_TEXT",
    "KINDS",
    "MAX_LINE",
    "PLAIN_TEXT",
    "SCHEMA_VERSION",
    "ZERO_HASH",
    "Actor",
    "AgentExit",
    "AgentMessage",
    "AgentQuestion",
    "AgentSetup",
    "AgentStart",
    "Approval",
    "Ask",
    "BlobRef",
    "Command",
    "CommandEnd",
    "Data",
    "Denial",
    "EpisodeEnd",
    "EpisodeStart",
    "Event",
    "FileDelete",
    "FileRead",
    "FileWrite",
    "FinalClaim",
    "Guard",
    "HardCheck",
    "Harness",
    "InterimClaim",
    "Interrupt",
    "Json",
    "LedgerOpen",
    "Limit",
    "ModelReply",
    "ModelRequest",
    "NetRequest",
    "PermissionAnswer",
    "PermissionRequest",
    "PhaseChange",
    "Plant",
    "ProbeDelivered",
    "ProbeUntriggered",
    "Quiesce",
    "RecordGap",
    "Recorders",
    "Refs",
    "RunData",
    "RunnerHello",
    "SessionError",
    "SliceReleased",
    "Snapshot",
    "StateStored",
    "StorageWait",
    "Text",
    "ToolCall",
    "ToolResult",
    "Trigger",
    "UserMessage",
    "Wording",
    "WordingRequest",
    "Yield",
]

KINDS: dict[str, type[Data]] = {
    cls.kind: cls
    for cls in (
        LedgerOpen, PhaseChange, RunnerHello, RunData, AgentStart, AgentExit, EpisodeStart, UserMessage, AgentMessage, ToolCall,
        ToolResult, ModelRequest, ModelReply, Yield, AgentQuestion, InterimClaim, FinalClaim, PermissionRequest, PermissionAnswer,
        SliceReleased, Plant, ProbeDelivered, ProbeUntriggered, FileRead, FileWrite, FileDelete, Snapshot, Limit, Quiesce,
        StateStored, SessionError, EpisodeEnd, Trigger, Ask, Approval, Denial, Guard, Wording, WordingRequest, Interrupt,
        Recorders, Command, CommandEnd, NetRequest, RecordGap, AgentSetup, Harness, StorageWait, HardCheck,
    )
}  # fmt: skip


class Event(Frozen):
    """One line of the ledger."""

    v: Literal[1] = 1
    seq: Annotated[int, Field(ge=1)]
    prev: Hex64
    t: str  # UTC, RFC 3339 with milliseconds
    mono: float  # seconds since the session's start, monotonic
    actor: Actor
    kind: str
    turn: Annotated[int, Field(ge=0)]  # highest accepted request when it happened
    exchange: Annotated[int, Field(ge=0)]  # 0 before the opener
    data: dict[str, Any]

    def typed(self) -> Data | None:
        """The typed data, None for a kind this version does not know."""
        cls = KINDS.get(self.kind)
        return None if cls is None else cls.model_validate(self.data)


EVENT = TypeAdapter(Event)
