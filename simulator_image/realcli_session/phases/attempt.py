"""What the phases of one attempt share: its inputs, its evidence and its living parts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeVar

from realcli.ledger.events import SessionError, Snapshot
from realcli.ledger.redaction import Redactor
from realcli.ledger.seals import RunJson
from realcli.ledger.uploader import Uploader
from realcli.ledger.writer import LedgerWriter
from realcli_session.agents.port import AgentAdapter, OwnSetup
from realcli_session.evidence.commands import CommandRecorder
from realcli_session.evidence.mockhosts.server import MockHosts
from realcli_session.evidence.port import ChangeWatchPort
from realcli_session.evidence.protected import ProtectedPlaces
from realcli_session.gateway.port import GatewayPort
from realcli_session.inputs import Task, Trial
from realcli_session.phases.archive import Archive, archive
from realcli_session.phases.limits import SNAPSHOT_BYTES, SNAPSHOT_ENTRIES, SNAPSHOTS_BYTES
from realcli_session.phases.table import Cause, Progress
from realcli_session.phases.working import WorkingClock
from realcli_session.runner.errors import RunnerError
from realcli_session.runner.port import RunnerPort
from realcli_session.settings import Settings
from realcli_session.user.state import State
from realcli_session.user.wording import WordingPort

Happening = tuple[Cause, str]
SnapshotName = Literal["s0", "anchor", "response_end", "final"]
_LISTED = 100
T = TypeVar("T")


@dataclass(slots=True)
class Attempt:
    """One attempt, from its first event to its seal. Phases fill it in; who needs a part asks for it by `need`."""

    trial: Trial
    settings: Settings
    writer: LedgerWriter
    uploader: Uploader
    run: RunJson
    redactor: Redactor
    clock: WorkingClock
    causes: asyncio.Queue[Happening] = field(default_factory=asyncio.Queue)
    started_at: str = field(default_factory=lambda: utc_now())
    progress: Progress = field(default_factory=Progress)
    task: Task | None = None
    own: OwnSetup | None = None
    """The team's own set-up of the agent."""
    runner: RunnerPort | None = None
    gateway: GatewayPort | None = None
    adapter: AgentAdapter | None = None
    watch: ChangeWatchPort | None = None
    commands: CommandRecorder | None = None
    mock_hosts: MockHosts | None = None
    protected: ProtectedPlaces | None = None
    refused_forks: int | None = None
    """As the kernel counted before the agent started."""
    user: State | None = None
    wording: WordingPort | None = None
    oracle_paths: list[str] = field(default_factory=list)
    turns_at_delivery: int = 0
    files: list[tuple[str, Path]] = field(default_factory=list)
    """Files of the attempt that go up with the seal: (name below the attempt's key, path)."""
    excess: tuple[str, str] | None = None
    """(allowed, measured) of the limit of output that the agent went beyond."""
    state: str | None = None
    """Digest of state.tar.zst, once it is complete."""

    @property
    def baseline(self) -> Path:
        """Manifest of the root as it was before the agent, where the whole root is the state (trust `system`)."""
        return self.settings.spool / "baseline.zst"

    @property
    def kept(self) -> int:
        """Bytes of the files that lie in the spool until the seal."""
        return sum(path.stat().st_size for _, path in self.files if path.exists())

    def happened(self, cause: Cause, detail: str = "") -> None:
        """Tell the driver."""
        self.causes.put_nowait((cause, detail))

    async def snapshot(self, name: SnapshotName, probe: str | None = None) -> None:
        """Snapshot the contract paths. One that cannot be taken leaves an error event; its check is then undecided."""
        if not self.oracle_paths:
            return
        where = f"snapshot {name}" + (f" of probe {probe}" if probe else "")
        if (kept := self.kept) >= SNAPSHOTS_BYTES:
            told = f"not taken: {kept} bytes of snapshots are kept already, {SNAPSHOTS_BYTES} are allowed"
            self.writer.emit("session", SessionError(where=where, message=told))
            return
        target = self.settings.spool / "snapshots" / f"{len(self.files)}.tar.zst"
        try:
            made = await archive(
                need(self.runner), self.oracle_paths, target, max_bytes=SNAPSHOT_BYTES, max_entries=SNAPSHOT_ENTRIES
            )
        except RunnerError as error:
            self.writer.emit("session", SessionError(where=where, message=str(error)))
            return
        event = self.writer.emit("session", _told(name, probe, made))
        self.files.append((f"snapshots/{event.seq}.tar.zst", made.path))


def _told(name: SnapshotName, probe: str | None, made: Archive) -> Snapshot:
    report = made.report
    return Snapshot(
        name=name, probe=probe, sha256=made.sha256, size=made.size, skipped=[path for path, _ in report.skipped[:_LISTED]],
        skipped_count=report.skipped_count, changed=list(report.changed[:_LISTED]),
    )  # fmt: skip


def need(part: T | None) -> T:
    """A part that an earlier phase has made."""
    if part is None:
        raise RuntimeError("a phase used a part that no phase before it has made")
    return part


def utc_now() -> str:
    """RFC 3339 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
