"""One interface for every agent program: verb by verb what a session can do to it, event by event what it tells.

Who writes what into the ledger: the adapter records facts of the program (`AgentStart`, `AgentSetup`, `AgentExit`, `Harness`) and
prompts that its fixed policy answers (`PermissionRequest`, `PermissionAnswer`); the gateway records text, tool calls and tool
results; phases record what they decide from the events below (`Yield`, `AgentQuestion`, claims, prompts the user answers).
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
from realcli_session.gateway.witness import Witness
from realcli_session.runner.port import ExitStatus, RunnerPort

Decision = Literal["allow", "deny"]
Permissions = Literal["Ask", "Bypass"]
LibC = Literal["glibc", "musl", "none"]
STATE_DIR = "/var/tmp/agent"
"""What an agent program keeps for itself, secrets of MCP servers among it: no part of the state, and not in a verify pod."""


@dataclass(frozen=True, slots=True)
class McpServer:
    """A server of the user's own set-up, which the agent program starts and talks to over stdio: all of it is in its reach."""

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class OwnSetup:
    """What a user brings along (`SetupLock` with its archive). Checked and installed before the program starts.

    `files` is an uncompressed tar whose members lie below `Config/` (the program's configuration directory) and `Work/` (the
    task's working directory).
    """

    digest: str
    """Over everything below; in the configuration's key and in the ledger."""
    files: bytes | None = field(default=None, repr=False)
    mcp_servers: tuple[McpServer, ...] = ()
    tool_images: tuple[str, ...] = ()
    """Mount paths, for the record: the pod has mounted them."""
    in_reach: tuple[str, ...] = ()
    """Names of secrets among the servers' environment."""


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """What an adapter needs to start its program. Environment, home and working directory are the task's own."""

    mode: Mode
    version: str
    model: str
    """Model id; the program is told this one, and the gateway pins it anyway."""
    base_url: str
    """As `GatewayPort.base_url`: with /v1 for the OpenAI APIs, without for Anthropic's."""
    token: str = field(repr=False)
    workdir: str
    environ: Mapping[str, str]
    """The image's environment (`Hello.environ`)."""
    home: str
    libc: LibC = "glibc"
    permissions: str = "Bypass"
    exec_permissions: Decision = "allow"
    """EXEC with permissions Ask: the task's fixed answer to every prompt. COLLAB asks the simulated user."""
    effort: str | None = None
    """Reasoning effort (spec.agents[].options.effort), None: the program's default."""
    context_tokens: int | None = None
    """Most tokens of a request to the model (spec.models[].contextTokens), None: not told."""
    setup: OwnSetup | None = None
    program_dir: str = "/opt/realcli/agent"
    state_dir: str = STATE_DIR
    """The program's configuration and transcripts go here and not into HOME. The model reads this path."""
    uid: int | None = None
    gid: int | None = None
    witness: Witness | None = None
    """Bears out hand-overs and prompts; None (in tests): everything the program says is believed."""


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
    """A permission prompt. `answered`: the fixed policy has answered it already (and recorded that); else call `answer`.

    Only COLLAB with permissions Ask leaves it open: the simulated user answers. Then the caller records prompt and answer.
    """

    request_id: str
    tool: str
    input: JsonValue
    answered: Decision | None


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """An open `PermissionRequest` or `Question` is not open any more, because of an interrupt or the end of its response."""

    request_id: str


@dataclass(frozen=True, slots=True)
class Question:
    """The agent asks the user through a typed channel and waits: a hand-over. No `Yield` comes for it; call `answer`."""

    request_id: str
    text: str
    parts: tuple[str, ...] = ()
    """The single questions where one call asks several, each with its options below, as in `text`; () for one question."""
    prose: bool = False
    """A message in the agent's own words that waits for an answer: a report as often as a question. It is read like any text."""


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


AgentEvent = Text | ToolCall | ToolResult | PermissionRequest | Withdrawn | Question | Yield | Usage | Error | Exit


class SetupRefused(ValueError):
    """The user's own set-up cannot be installed; the message names the file or field, what is wrong, what to do."""


class NotWorking(Exception):
    """`send(mid_turn=True)` or `interrupt`: the agent has handed over already, so there is no response to reach."""


class AgentUnresponsive(Exception):
    """The program did not answer a control request in time; the message says which one."""


class AgentAdapter(Protocol):
    """A running (or startable) agent program. One per attempt."""

    program: ClassVar[str]
    wire_api: ClassVar[Literal["anthropic", "responses", "chat"]]
    """The API its requests speak; the model needs an endpoint of it."""
    libcs: ClassVar[tuple[LibC, ...]]
    """Images it can be started in."""
    permission_modes: ClassVar[tuple[Permissions, ...]]
    visible_text: ClassVar[str]
    """Which of its texts the user sees: `U` rests on it, so it is part of the configuration's key."""

    def __init__(self, runner: RunnerPort, sink: EventSink) -> None:
        """Bind to the container and the ledger; nothing is started."""

    async def start(self, spec: AgentSpec) -> None:
        """Install the user's own set-up, start the program, wait until it takes messages.

        Raises SetupRefused, SpawnFailed, AgentUnresponsive, RunnerLost; SpawnFailed also where this program cannot be started
        in this image (libc) or with these permissions.

        Emits `AgentSetup` if there is one, and `AgentStart` with the binary's digest as the runner reads it.
        """

    def events(self) -> AsyncIterator[AgentEvent]:
        """Typed events in order, ending with `Exit`. One consumer. Raises RunnerLost if the runner goes."""

    async def send(self, text: str, *, mid_turn: bool = False) -> None:
        """Give the program a user message. `mid_turn`: into the running response, it reads it with its next model call.

        Raises NotWorking for a `mid_turn` message to an agent that has handed over. One that comes while the last text is being
        written prolongs the response: no `Yield` comes before it was read.
        """

    async def interrupt(self) -> None:
        """Stop the running response and the command it waits for. Returns when both is done; a `Yield("interrupted")` follows.

        Raises NotWorking if the agent has handed over.
        """

    async def answer(
        self, request_id: str, decision: Decision, text: str = "", *, parts: Mapping[str, str] | None = None
    ) -> None:
        """Answer a `Question` (allow: `text` is the answer) or an unanswered `PermissionRequest` (deny: `text` is the reason).

        `parts`: answers to single questions by their text without options; the others get `text`.
        LookupError if it is not open any more: an interrupt withdraws it.
        """

    async def stop(self, *, grace: float = 5.0) -> ExitStatus | None:
        """End of input, after `grace` seconds SIGKILL for its process group. Idempotent.

        None if it was never started, or if the runner is gone and nobody knows how it ended.
        """

    @classmethod
    def deviations(cls, mode: Mode | None = None) -> tuple[Deviation, ...]:
        """Every setting that differs from the pinned program's default, with its reason; for one mode, or for any."""
