"""One interface for every agent program: verb by verb what a session can do to it, event by event what it tells.

Who writes what into the ledger: the adapter records facts of the program (`AgentStart`, `AgentExit`, `PermissionRequest`,
`PermissionAnswer`); the gateway records text, tool calls and tool results; phases record what they decide from the events
below (`Yield`, `AgentQuestion`, claims).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol

from pydantic import JsonValue

from realcli.api.plan import Deviation
from realcli.api.sweep import Mode
from realcli.api.trial import Tokens
from realcli_session.gateway.port import EventSink
from realcli_session.runner.port import ExitStatus, RunnerPort

Decision = Literal["allow", "deny"]


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """What an adapter needs to start its program. Environment, home and working directory are the task's own."""

    mode: Mode
    version: str
    model: str
    """Model id; the program is told this one, and the gateway pins it anyway."""
    base_url: str
    token: str = field(repr=False)
    workdir: str
    environ: Mapping[str, str]
    """The image's environment (`Hello.environ`)."""
    home: str
    libc: Literal["glibc", "musl", "none"] = "glibc"
    permissions: str = "Bypass"
    program_dir: str = "/opt/realcli/agent"
    state_dir: str = "/tmp/agent"
    """Made by the program; its own configuration and transcripts go here and not into HOME. The model reads this path."""
    uid: int | None = None
    gid: int | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """A text of the main conversation that the user would see, as the program says (the gateway has the ground truth)."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The program announces a tool call."""

    call_id: str
    name: str
    input: JsonValue


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The program announces a tool's result."""

    call_id: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """A permission prompt. `answered`: the fixed policy has answered it already (and recorded that); else call `answer`."""

    request_id: str
    tool: str
    input: JsonValue
    answered: Decision | None


@dataclass(frozen=True, slots=True)
class Question:
    """The agent asks the user through a typed channel and waits: a hand-over. No `Yield` comes for it; call `answer`."""

    request_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Yield:
    """The agent hands over: nothing of it is running and no message is unread."""

    how: Literal["yielded", "interrupted", "failed"]
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """The program's own count of one response; for comparison only."""

    tokens: Tokens


@dataclass(frozen=True, slots=True)
class Error:
    """Something the adapter could not read, or an error the program reports; the program goes on."""

    message: str


@dataclass(frozen=True, slots=True)
class Exit:
    """The program ended. Always the last event."""

    code: int | None
    signal: int | None


AgentEvent = Text | ToolCall | ToolResult | PermissionRequest | Question | Yield | Usage | Error | Exit


class AgentUnresponsive(Exception):
    """The program did not answer a control request in time; the message says which one."""


class AgentAdapter(Protocol):
    """A running (or startable) agent program. One per attempt."""

    program: ClassVar[str]

    def __init__(self, runner: RunnerPort, sink: EventSink) -> None:
        """Bind to the container and the ledger; nothing is started."""

    async def start(self, spec: AgentSpec) -> None:
        """Start the program and wait until it takes messages. Raises SpawnFailed, AgentUnresponsive, RunnerLost.

        SpawnFailed also where this program cannot be started in this image (libc) or with these permissions.

        Emits `AgentStart` with the binary's digest as the runner reads it.
        """

    def events(self) -> AsyncIterator[AgentEvent]:
        """Typed events in order, ending with `Exit`. One consumer. Raises RunnerLost if the runner goes."""

    async def send(self, text: str, *, mid_turn: bool = False) -> None:
        """Give the program a user message. `mid_turn`: while it works, it reads it with its next model call."""

    async def interrupt(self) -> None:
        """Stop the running response. Returns when the program has taken it; a `Yield("interrupted")` follows."""

    async def answer(self, request_id: str, decision: Decision, text: str = "") -> None:
        """Answer a `Question` (allow: `text` is the answer) or an unanswered `PermissionRequest` (deny: `text` is the reason).

        LookupError if it is not open any more: an interrupt withdraws it.
        """

    async def stop(self, *, grace: float = 5.0) -> ExitStatus | None:
        """End of input, after `grace` seconds SIGKILL for its process group. Idempotent.

        None if it was never started, or if the runner is gone and nobody knows how it ended.
        """

    @classmethod
    def deviations(cls, mode: Mode | None = None) -> tuple[Deviation, ...]:
        """Every setting that differs from the pinned program's default, with its reason; for one mode, or for any."""
