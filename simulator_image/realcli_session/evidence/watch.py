"""The scans behind the change evidence: through the runner, one at a time, into the ledger."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterable, Sequence

from realcli.ledger.events import BlobRef, FileDelete, FileWrite, RecordGap
from realcli.wire.protocol import ErrorCode
from realcli_session.evidence.changes import Change, ChangeTracker
from realcli_session.evidence.port import OnChange, OnContent
from realcli_session.gateway.port import EventSink
from realcli_session.runner.errors import FileMissing, RunnerError
from realcli_session.runner.port import RunnerPort, ScanEntry, ScanResult

FIRST_BUDGET = 30.0  # seconds; nothing waits yet
BUDGET = 0.5
CONTENT_LIMIT = 256 << 10  # bytes of a file that is kept as content
CONTENT_FILES = 20  # per scan
FIRST_FILES = 200  # of the first scan, whose contents are read for their markers
_WILD = frozenset("*?[")


class ChangeWatch:
    """Implements `ChangeWatchPort`. Turns are the sink's: the highest request accepted."""

    def __init__(
        self,
        runner: RunnerPort,
        sink: EventSink,
        globs: Sequence[str],
        *,
        on_change: OnChange | None = None,
        on_content: OnContent | None = None,
    ) -> None:
        self._runner = runner
        self._sink = sink
        self._globs = tuple(globs)
        self._listed = tuple(glob for glob in globs if not _WILD.intersection(glob))
        self._on_change = on_change
        self._on_content = on_content
        self._tracker = ChangeTracker()
        self._accepted = (0, 0)  # highest request that is known to be accepted, and when (wall clock, ns)
        self._now = time.time_ns
        self._scanned = -1  # highest request a scan has covered
        self._one_at_a_time = asyncio.Lock()
        self._unreadable: set[str] = set()

    async def start(self) -> None:
        """Remember the state before the first request."""
        async with self._one_at_a_time:
            if not self._globs:
                return
            scan = await self._runner.scan(self._globs, budget=FIRST_BUDGET)
            if not scan.complete:
                self._gap(scan, "new files are not recognised")
            self._note_unreadable(scan)
            self._tracker, _ = self._tracker.step(scan, began=0, ended=0)
            self._scanned = 0
            if self._on_content is not None:
                self._on_content(await self._read(scan.entries, FIRST_FILES))

    async def on_turn(self, turn: int) -> None:
        """Scan for request `turn`, unless a scan that began after it was accepted has been made."""
        if turn > self._accepted[0]:
            self._accepted = (turn, self._now())
        async with self._one_at_a_time:
            if self._globs and self._scanned < turn:
                await self._look(last=False)

    async def at_yield(self) -> None:
        """Scan again now: what background programs wrote since the last request stands before what follows the yield."""
        async with self._one_at_a_time:
            if self._globs:
                await self._look(last=False)

    async def rebase(self, path: str) -> None:
        """Take the present state of `path` as not the agent's doing. RunnerError if it cannot be seen."""
        async with self._one_at_a_time:
            if self._globs:
                began = self._sink.turn
                scan = await self._runner.scan((path,), budget=FIRST_BUDGET)  # one file, and the agent is idle
                if not any(entry.path == path for entry in scan.entries):
                    raise FileMissing(ErrorCode.NOT_FOUND, f"{path} cannot be seen after its edit")
                self._tracker = self._tracker.rebased(scan, path, began=began)

    async def finish(self) -> None:
        """The last scan."""
        async with self._one_at_a_time:
            if self._globs:
                await self._look(last=True)

    async def _look(self, *, last: bool) -> None:
        began = self._sink.turn
        scan = await self._scan(FIRST_BUDGET if last else BUDGET)
        ended = None if last else self._sink.turn
        accepted = self._accepted[1] if ended == self._accepted[0] else None
        tracker, changes = self._tracker.step(scan, began=began, ended=ended, accepted_ns=accepted)
        doubtful = self._tracker.doubtful(scan)
        contents = await self._contents(changes)
        # No pause from here: a cancelled scan leaves the state as it was, and the next one finds the same changes.
        self._tracker, self._scanned = tracker, began
        if self._on_content is not None:
            gone = {change.path: b"" for change in changes if change.path not in contents}
            self._on_content(gone | contents)
        if not scan.complete:
            self._gap(scan, "only the paths named outright were looked at" if self._listed else "not all paths were looked at")
        self._note_unreadable(scan)
        if doubtful:
            reason = f"too large to be compared, and perhaps written: {'; '.join(doubtful[:5])}"
            self._sink.emit("session", RecordGap(record="file", count=len(doubtful), reason=reason[:1000]))
        for change in changes:
            self._record(change, contents.get(change.path))

    def _gap(self, scan: ScanResult, what: str) -> None:
        reason = f"the watched paths hold too much to look at ({scan.stopped_by}): {what}"
        self._sink.emit("session", RecordGap(record="file", reason=reason))

    def _note_unreadable(self, scan: ScanResult) -> None:
        """A gap for each place that cannot be looked at, once."""
        new = [place for place in scan.unreadable if place not in self._unreadable]
        if new:
            self._unreadable.update(new)
            reason = f"not looked at: {'; '.join(new[:5])}"
            self._sink.emit("session", RecordGap(record="file", count=len(new), reason=reason[:1000]))

    async def _scan(self, budget: float = BUDGET) -> ScanResult:
        """All globs within the budget; if that is not enough at least the paths named outright."""
        scan = await self._runner.scan(self._globs, budget=budget)
        if scan.complete or not self._listed:
            return scan
        listed = await self._runner.scan(self._listed, budget=budget)
        entries = {entry.raw: entry for entry in (*scan.entries, *listed.entries)}
        return ScanResult(tuple(entries[raw] for raw in sorted(entries)), False, scan.stopped_by, scan.unreadable)

    async def _contents(self, changes: Sequence[Change]) -> dict[str, bytes]:
        """Contents of small changed files, as far as they still are what was scanned."""
        return await self._read([change.entry for change in changes if change.entry is not None], CONTENT_FILES)

    async def _read(self, entries: Iterable[ScanEntry], limit: int) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for entry in entries:
            if entry.sha256 is None or entry.size > CONTENT_LIMIT or len(found) >= limit:
                continue
            try:
                data = await self._runner.get_file(entry.raw, limit=CONTENT_LIMIT)
            except RunnerError:
                continue  # gone or grown since the scan; the event stands without content
            if hashlib.sha256(data).hexdigest() == entry.sha256:
                found[entry.path] = data
        return found

    def _record(self, change: Change, content: bytes | None) -> None:
        window = {"path": change.path, "after_turn": change.after_turn, "before_turn": change.before_turn}
        if change.entry is None:
            self._sink.emit("agent", FileDelete.model_validate(window))
            return
        stored: BlobRef | None = None if content is None else self._sink.blob(content)
        facts = {"created": change.how == "created", "sha256": change.entry.sha256, "size": change.entry.size, "content": stored}
        self._sink.emit("agent", FileWrite.model_validate(window | facts))
        if self._on_change is not None:
            self._on_change(change.path)
