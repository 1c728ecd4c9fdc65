"""The closed set of ledger events. One JSON object per line, one writer, chained by hash.

A line is the canonical JSON (sorted keys, no spaces) of an `Event`; `prev` is the sha256 of the previous line's bytes without its
newline, 64 zeros for the first. Unknown kinds are refused on write and kept on read. A text, JSON value or list of references
longer than `INLINE_TEXT` lies in `blobs/<sha256>` and stands in the line as a `BlobRef`. So does a JSON value that looks like a
reference: one in a ledger is always the writer's. Messages, system prompts and tool lists of model requests are blobs. Every
other text is cut at `PLAIN_TEXT` characters: an agent chooses many of them, and no event may be too long to be written.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, JsonValue, TypeAdapter

from realcli.api.base import Frozen, Hex64
from realcli.api.sweep import Mode
from realcli.api.trial import Tokens

SCHEMA_VERSION = 1
INLINE_TEXT = 65_536  # bytes of UTF-8 that may stand in a line
PLAIN_TEXT = 8_192  # characters of a text that has no blob form: names, ids, paths
MAX_LINE = 1 << 20
ZERO_HASH = "0" * 64

Actor = Literal["session", "user", "agent", "gateway", "runner"]


class BlobRef(Frozen):
    """A value stored once by digest below the attempt's blobs/."""

    blob: Hex64
    size: int  # bytes


Text = str | BlobRef
Json = Annotated[BlobRef | JsonValue, Field(union_mode="left_to_right")]  # in this order: a reference is an object too
Refs = list[BlobRef] | BlobRef  # a blob of the list's JSON where it is long: a turn adds two messages


class Data(Frozen):
    """Typed data of one kind of event; `kind` is the class's name in the ledger."""

    kind: ClassVar[str]


class LedgerOpen(Data):
    """First event: which attempt this ledger is of. Makes swapped attempts visible."""

    kind: ClassVar[str] = "ledger_open"
    sweep_uid: str
    sweep: str
    ordinal: int
    attempt: int
    configuration: str
    task: str
    mode: Mode
    repeat: int
    lock_digest: str
    session_version: str


class PhaseChange(Data):
    """The session enters a phase."""

    kind: ClassVar[str] = "phase"
    phase: Literal["setup", "work", "quiesce", "seal"]


class RunnerHello(Data):
    """What the runner said of itself and its container: a claim."""

    kind: ClassVar[str] = "runner_hello"
    facts: dict[str, JsonValue]


class RunData(Data):
    """run.json was made: its digest (the content stays private until the seal)."""

    kind: ClassVar[str] = "run_data"
    digest: str


class AgentStart(Data):
    """The agent program was started."""

    kind: ClassVar[str] = "agent_start"
    program: str
    version: str
    argv: list[str]
    binary_sha256: Hex64 | None = None


class AgentExit(Data):
    """The agent program ended."""

    kind: ClassVar[str] = "agent_exit"
    code: int | None = None
    signal: int | None = None
    stderr_tail: Text = ""


class EpisodeStart(Data):
    """The opener (EXEC: the specification) is handed to the agent."""

    kind: ClassVar[str] = "episode_start"


class UserMessage(Data):
    """A text of the simulated user. `source_ids` license it: opener, spec, closer, slice:<id>, probe:<id>."""

    kind: ClassVar[str] = "user_message"
    id: str
    text: Text
    source_ids: list[str]
    delivered: bool = True  # the closer is written down but not sent: the agent's last exchange is its final claim


class AgentMessage(Data):
    """A text the user would see; never hidden reasoning."""

    kind: ClassVar[str] = "agent_message"
    text: Text


class ToolCall(Data):
    """One tool invocation in a model reply."""

    kind: ClassVar[str] = "tool_call"
    call_id: str
    name: str
    input: Json


class ToolResult(Data):
    """What a tool call gave back, as it stands in the next model request."""

    kind: ClassVar[str] = "tool_result"
    call_id: str
    text: Text
    is_error: bool = False


class ModelRequest(Data):
    """A request at the gateway. `turn` of the envelope is its number if it was accepted."""

    kind: ClassVar[str] = "model_request"
    request_id: str
    dialect: Literal["anthropic"]
    path: str
    body_sha256: Hex64
    body_bytes: int
    model_asked: str
    model_sent: str | None = None
    stream: bool = False
    side: bool = False  # offers no tools; a label only
    counted: bool  # took a new turn; false also for a repeat of a turn whose answer the provider cut (envelope: that turn)
    refused: str | None = None  # reason, e.g. turn_limit, path, feature
    system: Refs = []
    tools: BlobRef | None = None
    messages: Refs = []


class ModelReply(Data):
    """The end of the answer to a request."""

    kind: ClassVar[str] = "model_reply"
    request_id: str
    status: int  # what the agent was answered with; 499: it hung up before, 502: the provider gave no HTTP answer
    model: str | None = None
    stop_reason: str | None = None
    usage: Tokens | None = None  # None: the provider gave none (aborted stream)
    usage_raw: dict[str, JsonValue] = {}
    aborted: Literal["agent", "provider"] | None = None
    attempts: int = 1  # requests the gateway sent for it
    waited_ms: int = 0  # waits between them
    first_byte_ms: int | None = None
    total_ms: int = 0
    body: BlobRef | None = None
    error: Text | None = None


class Yield(Data):
    """The agent hands over."""

    kind: ClassVar[str] = "yield"
    how: Literal["yielded", "interrupted", "failed"]
    detail: str = ""


class AgentQuestion(Data):
    """The agent asks through a typed channel."""

    kind: ClassVar[str] = "agent_question"
    text: Text
    request_id: str | None = None


class InterimClaim(Data):
    """A yield while a mandatory slice or probe is pending."""

    kind: ClassVar[str] = "interim_claim"
    slices_pending: int
    probes_pending: int


class FinalClaim(Data):
    """The yield the state machine accepts as completion. At most one."""

    kind: ClassVar[str] = "final_claim"


class PermissionRequest(Data):
    """A permission prompt of the agent program."""

    kind: ClassVar[str] = "permission_request"
    request_id: str
    tool: str
    input: Json


class PermissionAnswer(Data):
    """The answer given to it."""

    kind: ClassVar[str] = "permission_answer"
    request_id: str
    decision: Literal["allow", "deny"]
    by: Literal["policy", "script"]
    text: str = ""


class SliceReleased(Data):
    """A slice stands in a delivered user message."""

    kind: ClassVar[str] = "slice_released"
    slice: str
    how: Literal["opener", "batch", "probe"]
    message_id: str


class Plant(Data):
    """A file put or edited by the session for a probe (dynamic) or in setup (static)."""

    kind: ClassVar[str] = "plant"
    path: str
    how: Literal["static", "dynamic"]
    probe: str | None = None
    applied: bool
    detail: str = ""
    sha256_before: Hex64 | None = None
    sha256_after: Hex64 | None = None


class ProbeDelivered(Data):
    """User text and all plants of a probe are in place."""

    kind: ClassVar[str] = "probe_delivered"
    probe: str
    scenario: str
    message_id: str


class ProbeUntriggered(Data):
    """A probe that was not delivered, with the reason of scenarios.yaml."""

    kind: ClassVar[str] = "probe_untriggered"
    probe: str
    scenario: str
    reason: Literal["not_reached", "distance", "capability", "cut", "probe_undelivered"]


class FileRead(Data):
    """Content shown: a marker line of the file stands in the request `turn`, in a tool result or in a text of the agent program.

    Claude Code puts a file that changed since it was read into a reminder beside the user's text, so the model sees the change
    without any tool. The simulated user's own texts hold no marker (realcli.benchmark.consistency).
    """

    kind: ClassVar[str] = "file_read"
    path: str
    marker: str
    call_id: str = ""  # "": not in a tool result


class FileWrite(Data):
    """A watched file was created or modified between request `after_turn` and request `before_turn` (both accepted)."""

    kind: ClassVar[str] = "file_write"
    path: str
    after_turn: int  # 0: before the first request
    before_turn: int | None = None  # None: after the last request
    created: bool
    sha256: Hex64 | None = None
    size: int = 0
    content: BlobRef | None = None


class FileDelete(Data):
    """A watched file was removed in that window."""

    kind: ClassVar[str] = "file_delete"
    path: str
    after_turn: int
    before_turn: int | None = None


class Snapshot(Data):
    """Contract paths were snapshotted into snapshots/<seq>.tar.zst (`seq` of this event)."""

    kind: ClassVar[str] = "snapshot"
    name: Literal["s0", "anchor", "response_end", "final"]
    probe: str | None = None
    sha256: Hex64
    size: int


class Limit(Data):
    """A limit fired."""

    kind: ClassVar[str] = "limit"
    limit: Literal["turns", "deadline", "wall", "setup"]
    allowed: str
    measured: str


class Quiesce(Data):
    """What the runner found when it stopped everything."""

    kind: ClassVar[str] = "quiesce"
    stopped: list[str]  # argv of what ran
    survivors: list[str]


class StateStored(Data):
    """The state archive."""

    kind: ClassVar[str] = "state"
    digest: str
    size: int
    files: int
    missing: list[str] = []  # declared artifacts that do not exist
    skipped: list[str] = []


class SessionError(Data):
    """Something of ours or of the platform went wrong."""

    kind: ClassVar[str] = "error"
    where: str
    message: Text


class EpisodeEnd(Data):
    """Last event of the work, whatever ended it; `reason` is one of the table in realcli.api.outcomes."""

    kind: ClassVar[str] = "episode_end"
    reason: str
    detail: str = ""


KINDS: dict[str, type[Data]] = {
    cls.kind: cls
    for cls in (
        LedgerOpen, PhaseChange, RunnerHello, RunData, AgentStart, AgentExit, EpisodeStart, UserMessage, AgentMessage, ToolCall,
        ToolResult, ModelRequest, ModelReply, Yield, AgentQuestion, InterimClaim, FinalClaim, PermissionRequest, PermissionAnswer,
        SliceReleased, Plant, ProbeDelivered, ProbeUntriggered, FileRead, FileWrite, FileDelete, Snapshot, Limit, Quiesce,
        StateStored, SessionError, EpisodeEnd,
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
