"""Carries complete files of the spool to storage while the trial runs; an outage spools to disk and catches up."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from realcli.ledger.seals import SealedObject
from realcli.ledger.writer import SEGMENT_SECONDS, LedgerWriter
from realcli.storage.paths import join
from realcli.storage.port import ObjectStore, StorageUnavailable

_MAX_BACKOFF = 30.0
MAX_WAITING = 1 << 30
"""Bytes that may wait for storage before `room` holds who writes more; the spool's volume is larger."""


class Backlog(NamedTuple):
    """What waits for storage."""

    files: int
    bytes: int


class Uploader:
    """Uploads below `root` (the attempt's key). Every uploaded object is remembered for the seal.

    Run `run()` as a task while work goes on; `drain()` at the end uploads everything left, retrying transient failures until
    `give_up` seconds have passed since the first of them. `StorageRefused` and `AlreadyStored` are raised at once.
    """

    def __init__(
        self,
        writer: LedgerWriter,
        store: ObjectStore,
        root: str,
        *,
        interval: float = SEGMENT_SECONDS,
        on_blocked: Callable[[bool], None] | None = None,
        max_waiting: int = MAX_WAITING,
    ) -> None:
        self._writer = writer
        self._store = store
        self._root = root
        self._interval = interval
        self._on_blocked = on_blocked
        self._pending: list[Path] = []
        self._objects: dict[str, SealedObject] = {}
        self._blocked = False
        self._lock = asyncio.Lock()
        self._max_waiting = max_waiting
        self._uploaded = 0
        self._full = asyncio.Event()
        self._taken = asyncio.Event()

    async def room(self) -> None:
        """Wait while too much waits for storage. Nobody may fill the spool's volume by writing faster than storage takes."""
        while self._writer.written - self._uploaded >= self._max_waiting:
            self._full.set()
            self._taken.clear()
            await self._taken.wait()

    async def run(self) -> None:
        """Upload for ever; cancel to stop. Transient failures back off, others end the task with their error."""
        backoff = 1.0
        while True:
            if self._blocked:
                await asyncio.sleep(backoff)
            else:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._full.wait(), min(self._interval, 5.0))
            self._writer.roll_if_old(0.0 if self._full.is_set() else self._interval)
            self._full.clear()
            try:
                await self._flush()
            except StorageUnavailable:
                self._set_blocked(True)
                backoff = min(backoff * 2, _MAX_BACKOFF)
            else:
                self._set_blocked(False)
                backoff = 1.0

    async def drain(self, give_up: float) -> None:
        """Upload all that is complete. Raises `StorageUnavailable` once `give_up` seconds of failing are over."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + give_up
        backoff = 0.5
        while True:
            try:
                await self._flush()
            except StorageUnavailable:
                self._set_blocked(True)
                if loop.time() + backoff > deadline:
                    raise
                await asyncio.sleep(backoff)
                backoff = min(backoff * 2, _MAX_BACKOFF)
            else:
                self._set_blocked(False)
                return

    async def put(self, name: str, data: bytes | Path, give_up: float) -> SealedObject:
        """Upload one more object below the attempt (`run.json`, `state.tar.zst`, snapshots), with the retries of `drain`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + give_up
        backoff = 0.5
        sealed = await asyncio.to_thread(_describe, name, data)
        while True:
            try:
                await asyncio.to_thread(self._store.put_once, join(self._root, name), data)
            except StorageUnavailable:
                self._set_blocked(True)
                if loop.time() + backoff > deadline:
                    raise
                await asyncio.sleep(backoff)
                backoff = min(backoff * 2, _MAX_BACKOFF)
            else:
                self._set_blocked(False)
                self._objects[name] = sealed
                return sealed

    @property
    def objects(self) -> list[SealedObject]:
        """Everything uploaded, by path."""
        return [self._objects[name] for name in sorted(self._objects)]

    @property
    def backlog(self) -> Backlog:
        """Files taken from the writer that are not in storage yet."""
        return Backlog(len(self._pending), sum(path.stat().st_size for path in self._pending))

    async def _flush(self) -> None:
        async with self._lock:
            self._pending.extend(self._writer.take())
            while self._pending:
                path = self._pending[0]
                name = path.relative_to(self._writer.spool).as_posix()
                sealed = await asyncio.to_thread(_describe, name, path)
                await asyncio.to_thread(self._store.put_once, join(self._root, name), path)
                self._objects[name] = sealed
                self._pending.pop(0)
                self._uploaded += sealed.size
                path.unlink()
                self._taken.set()

    def _set_blocked(self, blocked: bool) -> None:
        if blocked != self._blocked:
            self._blocked = blocked
            if self._on_blocked is not None:
                self._on_blocked(blocked)


def _describe(name: str, data: bytes | Path) -> SealedObject:
    if isinstance(data, bytes):
        return SealedObject(path=name, sha256=hashlib.sha256(data).hexdigest(), size=len(data))
    with data.open("rb") as source:
        digest = hashlib.file_digest(source, "sha256").hexdigest()
    return SealedObject(path=name, sha256=digest, size=data.stat().st_size)
