"""Events of the session itself: phases, the agent program, limits, storage, the end."""

from __future__ import annotations

from typing import ClassVar, Literal

from realcli.api.base import Hex64
from realcli.api.sweep import Mode
from realcli.ledger.base import Data, JsonObject, Text


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
    facts: JsonObject


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


class AgentSetup(Data):
    """The user's own set-up was installed before the start."""

    kind: ClassVar[str] = "agent_setup"
    digest: str
    files: int = 0
    mcp_servers: list[str] = []
    tool_images: list[str] = []
    in_reach: list[str] = []  # names of secrets that this set-up gives to the agent


class Harness(Data):
    """The agent's own program file is another than at its start."""

    kind: ClassVar[str] = "harness"
    path: str
    sha256_before: Hex64 | None = None
    sha256_after: Hex64 | None = None


class StorageWait(Data):
    """Storage is away at the end of work, or came back."""

    kind: ClassVar[str] = "storage"
    state: Literal["blocked", "back"]
    seconds: float = 0.0
    spooled_bytes: int = 0
    message: str = ""


class Limit(Data):
    """A limit fired."""

    kind: ClassVar[str] = "limit"
    limit: Literal["turns", "deadline", "wall", "setup", "budget", "output"]
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
