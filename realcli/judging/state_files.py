"""Files of the sealed snapshots as a judge names them: `s0`, `final`, `anchor@<instance>`, `response_end@<instance>`. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from realcli.ledger.events import Snapshot
from realcli.trajectory import Trajectory

LISTED = 400  # paths of a snapshot that are named at once


class FilesUnreadable(Exception):
    """A snapshot or a file in it cannot be read; the message says why."""


def snapshot_name(data: Snapshot) -> str:
    """As a judge names it."""
    return data.name if data.probe is None else f"{data.name}@{data.probe}"


class SnapshotSource(Protocol):
    """Contents of the sealed snapshots of one attempt; `realcli.checks.SnapshotReader` is one."""

    def read(self, seq: int, path: str) -> bytes | None:
        """See there."""

    def paths(self, seq: int) -> list[str]:
        """See there."""


class StateFiles(Protocol):
    """What `read_state_file` reads."""

    @property
    def names(self) -> list[str]:
        """Names of the snapshots there are."""

    def read(self, snapshot: str, path: str) -> bytes | None:
        """A file's content; None: no such file there. `FilesUnreadable`."""

    def paths(self, snapshot: str) -> list[str]:
        """The files of a snapshot. `FilesUnreadable`."""


@dataclass(frozen=True)
class SnapshotFiles:
    """`StateFiles` of a run."""

    trajectory: Trajectory
    source: SnapshotSource

    @cached_property
    def _seqs(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for event, data in self.trajectory.of(Snapshot):
            found[snapshot_name(data)] = event.seq  # the last of a name counts
        return found

    @property
    def names(self) -> list[str]:
        """See StateFiles."""
        return list(self._seqs)

    def read(self, snapshot: str, path: str) -> bytes | None:
        """See StateFiles."""
        seq = self._seq(snapshot)
        try:
            found = self.source.read(seq, path)
        except Exception as error:  # the reader's own kinds of trouble are not known here; what it says is passed on
            raise FilesUnreadable(f"{snapshot}:{path}: {error}") from error
        if found is None and any(path == left or path.startswith(left.rstrip("/") + "/") for left in self._left_out(seq)):
            raise FilesUnreadable(f"{snapshot}:{path} is there, but the snapshot does not hold it")
        return found

    def paths(self, snapshot: str) -> list[str]:
        """See StateFiles."""
        try:
            return sorted(self.source.paths(self._seq(snapshot)))
        except FilesUnreadable:
            raise
        except Exception as error:
            raise FilesUnreadable(f"{snapshot}: {error}") from error

    def _seq(self, snapshot: str) -> int:
        if snapshot not in self._seqs:
            raise FilesUnreadable(f"there is no snapshot {snapshot!r}; there are {', '.join(self.names) or 'none'}")
        return self._seqs[snapshot]

    def _left_out(self, seq: int) -> list[str]:
        data = self.trajectory.items[seq - 1].data
        return data.skipped if isinstance(data, Snapshot) else []


class NoFiles:
    """A run without snapshots."""

    names: list[str] = []

    def read(self, snapshot: str, path: str) -> bytes | None:
        """See StateFiles."""
        raise FilesUnreadable("this run has no snapshots")

    def paths(self, snapshot: str) -> list[str]:
        """See StateFiles."""
        raise FilesUnreadable("this run has no snapshots")
