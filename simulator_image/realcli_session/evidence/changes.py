"""Which watched files changed between which requests: pure, from one scan to the next (RealCLI 3, measuring.md 2.2).

A scan runs after a request was forwarded, while the model thinks, and once more at each yield. What it finds differs from what
the scan before it saw, so the change lies after the request that was the highest when that earlier scan began. It lies before
the request that was the highest when this one ended, if the file's inode last changed before that request was accepted; else
somebody wrote while the model was thinking (a background program), and it lies before the next one. Windows of neighbouring
scans may overlap; they never claim more than was seen. A deletion leaves its time in the folder, as far as that is watched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple

from realcli_session.runner.port import ScanEntry, ScanResult

TICK_NS = 10_000_000
"""The kernel's times of files lag behind its clock by up to a tick (10 ms at 100 Hz)."""
_NONE: Mapping[str, Known] = MappingProxyType({})


class Change(NamedTuple):
    """One path that changed between two accepted requests (0: before the first, None: after the last)."""

    path: str
    how: Literal["created", "modified", "deleted"]
    after_turn: int
    before_turn: int | None
    entry: ScanEntry | None  # None: deleted


@dataclass(frozen=True, slots=True)
class Known:
    """What the last scan that saw a path saw, and the highest request when it began."""

    entry: ScanEntry
    turn: int


@dataclass(frozen=True, slots=True)
class ChangeTracker:
    """The state between scans. `absent_since`: highest request when the last complete scan began, None before there was one."""

    known: Mapping[str, Known] = field(default_factory=lambda: _NONE)
    absent_since: int | None = None

    def step(
        self, scan: ScanResult, *, began: int, ended: int | None, accepted_ns: int | None = None
    ) -> tuple[ChangeTracker, tuple[Change, ...]]:
        """Take a scan. `began`, `ended`: highest accepted request at its begin and end; `ended` None for the last scan.

        `accepted_ns`: when request `ended` was accepted, by the machine's clock; None: not known, so nothing lies before it.

        An incomplete scan proves no absence: nothing counts as deleted by it, and until a scan was complete nothing counts as
        created.
        """
        seen = {entry.path: entry for entry in scan.entries if entry.kind != "dir"}
        whole = scan.complete and not scan.unreadable
        changes: list[Change] = []
        folders = {entry.path: entry.ctime_ns for entry in scan.entries if entry.kind == "dir"}
        known = {path: Known(entry, began) for path, entry in seen.items()}
        for path, entry in seen.items():
            before = self.known.get(path)
            if before is None:
                if self.absent_since is not None:
                    changes.append(Change(path, "created", self.absent_since, _before(entry.ctime_ns, ended, accepted_ns), entry))
            elif _differs(before.entry, entry):
                changes.append(Change(path, "modified", before.turn, _before(entry.ctime_ns, ended, accepted_ns), entry))
        for path, before in self.known.items():
            if path in seen:
                continue
            if whole:
                changed = folders.get(path.rpartition("/")[0])
                changes.append(Change(path, "deleted", before.turn, _before(changed, ended, accepted_ns), None))
            else:
                known[path] = before
        absent_since = began if whole else self.absent_since
        return ChangeTracker(MappingProxyType(known), absent_since), tuple(sorted(changes, key=lambda change: change.path))

    def doubtful(self, scan: ScanResult) -> tuple[str, ...]:
        """Files too large to be compared whose inode changed though their size and time did not: written, or not."""
        return tuple(
            entry.path
            for entry in scan.entries
            if entry.kind == "file"
            and entry.sha256 is None
            and (before := self.known.get(entry.path)) is not None
            and not _differs(before.entry, entry)
            and before.entry.ctime_ns != entry.ctime_ns
        )

    def rebased(self, scan: ScanResult, path: str, *, began: int) -> ChangeTracker:
        """Take the state of one path as given: someone else than the agent changed it."""
        known = dict(self.known)
        known.pop(path, None)
        known.update({entry.path: Known(entry, began) for entry in scan.entries if entry.path == path and entry.kind != "dir"})
        return ChangeTracker(MappingProxyType(known), self.absent_since)


def _before(changed_ns: int | None, ended: int | None, accepted_ns: int | None) -> int | None:
    """The request that a change lies before. `changed_ns`: when the kernel says it happened at the latest, if it says so."""
    if ended is None or (changed_ns is not None and accepted_ns is not None and changed_ns + TICK_NS < accepted_ns):
        return ended
    return ended + 1


def _differs(before: ScanEntry, after: ScanEntry) -> bool:
    """Written counts, also with the same content: the time of the last change tells of a write that was taken back."""
    return (before.kind, before.size, before.sha256, before.link, before.mtime_ns) != (
        after.kind,
        after.size,
        after.sha256,
        after.link,
        after.mtime_ns,
    )
