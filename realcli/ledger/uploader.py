"""Carries complete files of the spool to storage while the trial runs; an outage spools to disk and catches up."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import deque
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Literal, NamedTuple

from realcli.ledger.follow import FOLLOWED_SECONDS, Follower
from realcli.ledger.seals import SealedObject
from realcli.ledger.writer import SEGMENT_SECONDS, LedgerWriter
from realcli.storage.paths import join
from realcli.storage.port import ObjectStore, StorageError, StorageUnavailable

_MAX_BACKOFF = 30.0
MAX_WAITING = 1 << 30
"""Bytes that may wait for storage before `room` holds who writes more; the spool's volume is larger."""
STALL_SECONDS = 30.0
STALL_RATE = 1 << 20
"""A file that is not stored after `STALL_SECONDS` and a second for each `STALL_RATE` bytes counts as an
outage, though the try goes on."""


class Outage(NamedTuple):
    """Storage went away, or came back."""

    state: Literal["blocked", "back"]
    seconds: float  # since it went away
    waiting: int  # bytes in the spool that storage does not have
    message: str  # what storage said


class Backlog(NamedTuple):
    """What waits for storage."""

    files: int
    bytes: int


class Uploader:
    """Uploads below `root` (the attempt's key). Every uploaded object is remembered for the seal.

    Run `run()` as a task while work goes on; `drain()` at the end uploads everything left, retrying transient failures until
    `give_up` seconds have passed since the first of them. `StorageRefused` and `AlreadyStored` are raised at once.
    `on_outage` is told when storage goes away and when it is back; `follower` knows whether somebody follows the trial live.
    """

    def __init__(
        self,
        writer: LedgerWriter,
        store: ObjectStore,
        root: str,
        *,
        interval: float = SEGMENT_SECONDS,
        on_outage: Callable[[Outage], None] | None = None,
        max_waiting: int = MAX_WAITING,
        stall: float = STALL_SECONDS,
        follower: Follower | None = None,
    ) -> None:
        self._writer = writer
        self._store = store
        self._root = root
        self._interval = interval
        self.on_outage = on_outage
        self._pending: deque[Path] = deque()
        self._objects: dict[str, SealedObject] = {}
        self._since: float | None = None  # when storage went away
        self._message = ""
        self._lock = asyncio.Lock()
        self._max_waiting = max_waiting
        self._stall = stall
        self._follower = follower
        self._uploaded = 0
        self._full = asyncio.Event()
        self._taken = asyncio.Event()

    async def room(self) -> None:
        """Wait while too much waits for storage. Nobody may fill the spool's volume by writing faster than storage takes."""
        while self.waiting >= self._max_waiting:
            self._full.set()
            self._taken.clear()
            await self._taken.wait()

    async def run(self) -> None:
        """Upload for ever; cancel to stop. Transient failures back off, others end the task with their error."""
        backoff = 1.0
        while True:
            if self.blocked:
                await asyncio.sleep(backoff)
            else:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._full.wait(), min(self._interval, FOLLOWED_SECONDS))
            self._writer.roll_if_old(0.0 if self._full.is_set() else await self._age())
            self._full.clear()
            try:
                await self._flush()
            except StorageUnavailable as error:
                self._went(str(error))
                backoff = min(backoff * 2, _MAX_BACKOFF)
            else:
                self._came_back()
                backoff = 1.0

    async def drain(self, give_up: float) -> None:
        """Upload all that is complete. Raises `StorageUnavailable` once `give_up` seconds of failing are over."""
        await self._patiently(self._flush, give_up)

    async def put(self, name: str, data: bytes | Path, give_up: float) -> SealedObject:
        """Upload one more object below the attempt (`run.json`, `state.tar.zst`, snapshots), with the retries of `drain`."""
        sealed = await asyncio.to_thread(_describe, name, data)

        async def once() -> None:
            await self._store_one(sealed, data)

        await self._patiently(once, give_up)
        self._objects[name] = sealed
        return sealed

    @property
    def place(self) -> str:
        """Where it uploads to, for people."""
        return f"{self._root} in {self._store.describe()}"

    @property
    def waiting(self) -> int:
        """Bytes in the spool that storage does not have: lines and blobs."""
        return self._writer.written - self._uploaded

    @property
    def blocked(self) -> bool:
        """Whether storage is away."""
        return self._since is not None

    @property
    def message(self) -> str:
        """What storage said when it went away the last time."""
        return self._message

    @property
    def objects(self) -> list[SealedObject]:
        """Everything uploaded, by path."""
        return [self._objects[name] for name in sorted(self._objects)]

    @property
    def backlog(self) -> Backlog:
        """Files taken from the writer that are not in storage yet."""
        return Backlog(len(self._pending), sum(path.stat().st_size for path in self._pending))

    async def _patiently(self, call: Callable[[], Coroutine[None, None, None]], give_up: float) -> None:
        deadline = asyncio.get_running_loop().time() + give_up
        backoff = 0.5
        while True:
            try:
                await call()
            except StorageUnavailable as error:
                self._went(str(error))
                if asyncio.get_running_loop().time() + backoff > deadline:
                    raise
                await asyncio.sleep(backoff)
                backoff = min(backoff * 2, _MAX_BACKOFF)
            else:
                self._came_back()
                return

    async def _age(self) -> float:
        """How old an open segment may become: less while somebody follows."""
        if self._follower is None:
            return self._interval
        try:
            followed = await asyncio.to_thread(self._follower.followed)
        except StorageError:  # whoever may not list cannot be asked to hurry; a store that is away shows when it is written to
            return self._interval
        return min(self._interval, FOLLOWED_SECONDS) if followed else self._interval

    async def _flush(self) -> None:
        async with self._lock:
            self._pending.extend(self._writer.take())
            while self._pending:
                path = self._pending[0]
                name = path.relative_to(self._writer.spool).as_posix()
                sealed = await asyncio.to_thread(_describe, name, path)
                await self._store_one(sealed, path)
                self._objects[name] = sealed
                self._pending.popleft()
                self._uploaded += sealed.size
                path.unlink()
                self._taken.set()

    async def _store_one(self, sealed: SealedObject, data: bytes | Path) -> None:
        storing = asyncio.ensure_future(asyncio.to_thread(self._store.put_once, join(self._root, sealed.path), data))
        allowed = self._stall + sealed.size / STALL_RATE
        try:
            done, _ = await asyncio.wait({storing}, timeout=allowed)
            if not done:
                self._went(f"no answer within {allowed:.0f} s")
            await storing
        finally:
            storing.cancel()

    def _went(self, message: str) -> None:
        if self._since is None:
            self._since, self._message = asyncio.get_running_loop().time(), message
            self._tell("blocked", 0.0, message)

    def _came_back(self) -> None:
        if self._since is not None:
            seconds = asyncio.get_running_loop().time() - self._since
            self._since = None
            self._tell("back", seconds, "")

    def _tell(self, state: Literal["blocked", "back"], seconds: float, message: str) -> None:
        if self.on_outage is not None:
            self.on_outage(Outage(state, round(seconds, 3), self.waiting, message))


def _describe(name: str, data: bytes | Path) -> SealedObject:
    if isinstance(data, bytes):
        return SealedObject(path=name, sha256=hashlib.sha256(data).hexdigest(), size=len(data))
    with data.open("rb") as source:
        digest = hashlib.file_digest(source, "sha256").hexdigest()
    return SealedObject(path=name, sha256=digest, size=data.stat().st_size)
