"""LIST, then watch, for ever: every change of one kind reaches the store once, whatever the connection does.

Rules, each learnt from a real API server: a clean end of the stream is normal (resume from the last resourceVersion);
410 means list again and prune; 429 and 5xx mean wait and resume, never list; a stream without a byte is dead; the
resourceVersion is taken over only after the event is in the store.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson
import structlog

from realcli_operator.kube.errors import Gone, ServerError
from realcli_operator.kube.lines import LineBuffer
from realcli_operator.kube.lister import Cause, Happened, Lister
from realcli_operator.kube.project import ProjectionError, project
from realcli_operator.kube.transport import status_error

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """Seconds. The server sends a bookmark about once a minute, so ``silence`` must be above that."""

    silence: float = 80.0
    server_timeout: int = 270
    pause: float = 0.1
    """Before resuming after a clean end, so that a server that ends at once is not hammered."""


class End(StrEnum):
    """How a watch ended without an error."""

    CLEAN = "clean"
    SILENT = "silent"


class Informer:
    """Seed with `seed`, then `run` until cancelled. Owns no task; never raises but for cancellation."""

    def __init__(self, lister: Lister, settings: WatchSettings | None = None) -> None:
        self.lister = lister
        self._settings = settings or WatchSettings()
        self._clock = lister.clock
        self._metrics = lister.metrics
        self._version: str | None = None
        self._progress = False
        self._last_alive = self._clock.monotonic()
        self._log = log.bind(kind=str(lister.kind), namespace=lister.namespace or "*")
        self._metrics.watch_age.labels(lister.kind, lister.namespace or "").set_function(lambda: self.age)

    @property
    def age(self) -> float:
        """Seconds since the API server last gave a sign of life (bytes of the watch, or a complete LIST)."""
        return self._clock.monotonic() - max(self._last_alive, self.lister.last_list or 0.0)

    async def seed(self) -> None:
        """The first complete LIST; retried until it goes through."""
        self._version = await self.lister.list_until_done(Cause.SEED)

    async def run(self) -> None:
        """Watch for ever, with the periodic resync beside it."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.lister.resync_forever(), name=f"resync-{self.lister.kind}")
            group.create_task(self._watch_forever(), name=f"watch-{self.lister.kind}")

    async def _watch_forever(self) -> None:
        failures = 0
        while True:
            self._progress = False
            try:
                end = await self._watch_from_last()
            except Gone as error:
                failures = 1 if self._progress else failures + 1
                self._version = None
                self._ended("gone", error)
                if failures > 1:  # the fresh list was refused as well: do not list in a tight loop
                    await self._pause(failures, error)
            except Exception as error:
                failures = 1 if self._progress else failures + 1
                self._ended("error", error)
                await self._pause(failures, error)
            else:
                failures = 0 if self._progress else failures + 1
                self._ended(end, None)
                if self._progress:
                    await self._clock.sleep(self._settings.pause)
                else:
                    await self._pause(failures, None)

    async def _watch_from_last(self) -> End:
        if self._version is None:
            self._version = await self.lister.list_until_done(Cause.RELIST)
        settings = self._settings
        buffer = LineBuffer()
        source = self.lister.source
        async with contextlib.AsyncExitStack() as stack:
            watch = source.watch(self.lister.kind, self.lister.namespace, self._version, settings.server_timeout)
            try:
                async with asyncio.timeout(settings.silence):
                    chunks = await stack.enter_async_context(watch)
            except TimeoutError:
                return End.SILENT
            self._last_alive = self._clock.monotonic()
            while True:
                try:
                    chunk = await _next(chunks, settings.silence)
                except TimeoutError:
                    return End.SILENT
                if chunk is None:
                    return End.CLEAN
                self._last_alive = self._clock.monotonic()
                for line in buffer.feed(chunk):
                    self._take(orjson.loads(line))
                    self._progress = True

    def _take(self, event: dict[str, Any]) -> None:
        """One event into the store; only then its resourceVersion is the one to resume from."""
        kind, raw = event["type"], event["object"]
        self._metrics.watch_events.labels(self.lister.kind, kind).inc()
        if kind == "ERROR":
            raise status_error(raw)
        if kind == "DELETED":
            self._take_deleted(raw)
        elif kind != "BOOKMARK":
            self.lister.take(raw)
        self._version = raw["metadata"]["resourceVersion"]

    def _take_deleted(self, raw: dict[str, Any]) -> None:
        try:
            view = project(self.lister.kind, raw)
        except ProjectionError as error:
            self.lister.unreadable(error)
            return
        self.lister.store.delete(view)
        self.lister.sink(view, Happened.GONE)

    def _ended(self, cause: str, error: Exception | None) -> None:
        self._metrics.watch_ends.labels(self.lister.kind, cause).inc()
        if error is not None and not isinstance(error, Gone | ServerError):
            self._log.warning("watch broken", cause=cause, error=str(error), exc_info=error)
        else:
            self._log.debug("watch ended", cause=cause, error=str(error) if error else None)

    async def _pause(self, failures: int, error: Exception | None) -> None:
        wanted = getattr(error, "retry_after", None) or 0.0
        await self._clock.sleep(max(self.lister.backoff.delay(max(failures, 1)), wanted))


async def _next(chunks: AsyncIterator[bytes], silence: float) -> bytes | None:
    """The next chunk, None at the end; TimeoutError after ``silence`` seconds without a byte."""
    async with asyncio.timeout(silence):
        with contextlib.suppress(StopAsyncIteration):
            return await anext(chunks)
    return None
