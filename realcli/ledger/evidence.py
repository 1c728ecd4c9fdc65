"""Events of the record: model requests, tools, commands, files, requests to mock hosts, snapshots, checks."""

from __future__ import annotations

from typing import ClassVar, Literal

from realcli.api.base import Hex64
from realcli.api.trial import Tokens
from realcli.ledger.base import BlobRef, Data, Json, JsonObject, Refs, Text


class ToolCall(Data):
    """One tool invocation in a model reply."""

    kind: ClassVar[str] = "tool_call"
    call_id: str
    name: str
    input: Json = None  # null is not written: a model may call a tool with it


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
    dialect: Literal["anthropic", "responses", "chat"]
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
    usage_raw: JsonObject = {}
    cost_usd: str | None = None  # decimal; None without a price or without usage
    aborted: Literal["agent", "provider"] | None = None
    attempts: int = 1  # requests the gateway sent for it
    waited_ms: int = 0  # waits between them
    first_byte_ms: int | None = None
    total_ms: int = 0
    body: BlobRef | None = None
    error: Text | None = None


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
    """Contract paths were snapshotted into snapshots/<seq>.tar.zst (`seq` of this event).

    What is there but not in the archive is named: whoever asks for such a path does not learn that it is absent.
    """

    kind: ClassVar[str] = "snapshot"
    name: Literal["s0", "anchor", "response_end", "final"]
    probe: str | None = None
    sha256: Hex64
    size: int
    skipped: list[str] = []  # paths of what is no file, folder or link, or was refused (the first 100)
    skipped_count: int = 0  # of all of them
    changed: list[str] = []  # files that changed while they were read (the first 100): their content is of no one moment


class Recorders(Data):
    """Where evidence of this run comes from; what is `none` or `tool_text` leaves checks undecided."""

    kind: ClassVar[str] = "recorders"
    commands: Literal["exec", "tool_text", "none"]
    reason: str = ""  # why not exec
    files: bool = True
    net: bool = False


class Command(Data):
    """One executed program. exec: a successful execve of a descendant of the agent; tool_text: read from a tool call."""

    kind: ClassVar[str] = "command"
    id: int  # from 1, in order of execution
    argv: list[str]
    cwd: str = ""
    path: str = ""  # of the executable
    record: Literal["exec", "tool_text"]
    pid: int | None = None
    parent: int | None = None
    call_id: str = ""  # tool_text: the tool call
    cut: bool = False  # argv was longer than what is kept


class CommandEnd(Data):
    """That program ended. Missing where it is unknown or it still ran at the end."""

    kind: ClassVar[str] = "command_end"
    id: int
    code: int | None = None
    signal: int | None = None


class NetRequest(Data):
    """A request reached a mock host."""

    kind: ClassVar[str] = "net_request"
    host: str
    method: str
    url: str
    status: int
    body_sha256: Hex64
    body_bytes: int
    canaries: list[str] = []  # names of canaries found in URL, headers or body, in any of their encodings
    body: BlobRef | None = None


class RecordGap(Data):
    """A recorder missed something: operators that rest on it are undecided where the gap lies in their window."""

    kind: ClassVar[str] = "record_gap"
    record: Literal["command", "file", "net", "ledger"]
    count: int | None = None  # None: unknown
    reason: str


class HardCheck(Data):
    """A program's verdict on one check; lines of `checks.jsonl` hold the same fields."""

    kind: ClassVar[str] = "hard_check"
    instance: str
    check: str
    op: str
    outcome: Literal["pass", "fail", "undecided", "broken"]
    by_seq: int | None = None  # the deciding event
    detail: str = ""
