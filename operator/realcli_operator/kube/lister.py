"""Complete LISTs into the store: seed, relist after 410, periodic resync. The only place that notices missed deletions."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import structlog

from realcli_operator.kube.clock import Clock, SystemClock
from realcli_operator.kube.errors import Gone, KubeError
from realcli_operator.kube.metrics import Metrics
from realcli_operator.kube.names import Kind
from realcli_operator.kube.project import ProjectionError, project
from realcli_operator.kube.queue import Backoff
from realcli_operator.kube.source import WatchSource
from realcli_operator.kube.store import Store
from realcli_operator.kube.views import View

log = structlog.get_logger(__name__)


class Cause(StrEnum):
    """Why a LIST is made."""

    SEED = "seed"
    RELIST = "relist"
    RESYNC = "resync"


class Happened(StrEnum):
    """What a sink is told about a view."""

    CHANGED = "changed"
    GONE = "gone"
    RESYNC = "resync"
    """Nothing new: the periodic second look at what is there."""


Sink = Callable[[View, Happened], None]


@dataclass(frozen=True, slots=True)
class ResyncSettings:
    """Seconds: first resync after the seed (what was deleted during the seed), then the period."""

    first: float = 60.0
    period: float = 600.0


class Lister:
    """One kind in one namespace (None: all), listed into the store."""

    def __init__(
        self,
        kind: Kind,
        namespace: str | None,
        source: WatchSource,
        store: Store,
        sink: Sink,
        *,
        resync: ResyncSettings | None = None,
        backoff: Backoff | None = None,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self.kind = kind
        self.namespace = namespace
        self.source = source
        self.store = store
        self.sink = sink
        self.clock: Clock = clock or SystemClock()
        self.metrics = metrics or Metrics()
        self.backoff = backoff or Backoff(base=0.2, cap=30.0)
        self.last_list: float | None = None
        """Monotonic time of the last complete LIST."""
        self._resync = resync or ResyncSettings()
        self._lock = asyncio.Lock()
        self._log = log.bind(kind=str(kind), namespace=namespace or "*")

    async def list_once(self, cause: Cause) -> str:
        """One complete LIST: take over, prune, tell the sink. Returns the resourceVersion to watch from."""
        async with self._lock:
            self.metrics.lists.labels(self.kind, cause).inc()
            seen, version = await self._pages(cause)
            for ghost in self.store.prune(self.kind, seen, int(version), self.namespace):
                self.metrics.pruned.labels(self.kind).inc()
                self._log.info("deletion missed by the watch", name=ghost.name, uid=ghost.uid)
                self.sink(ghost, Happened.GONE)
            self.metrics.list_size.labels(self.kind, self.namespace or "").set(len(seen))
            self.last_list = self.clock.monotonic()
            return version

    async def list_until_done(self, cause: Cause) -> str:
        """`list_once`, again and again with back-off until it goes through."""
        failures = 0
        while True:
            try:
                return await self.list_once(cause)
            except Exception as error:
                failures += 1
                await self.failed("list failed", error, failures)

    async def failed(self, what: str, error: Exception, failures: int) -> None:
        """Count, log and pause."""
        delay = max(self.backoff.delay(failures), getattr(error, "retry_after", None) or 0.0)
        self.metrics.list_errors.labels(self.kind, type(error).__name__).inc()
        expected = isinstance(error, KubeError)
        self._log.warning(what, error=str(error), failures=failures, delay=delay, exc_info=not expected)
        await self.clock.sleep(delay)

    async def resync_forever(self) -> None:
        """The periodic LIST; an error is retried with back-off, never raised."""
        await self.clock.sleep(self._resync.first)
        while True:
            await self.list_until_done(Cause.RESYNC)
            await self.clock.sleep(self._resync.period * random.uniform(0.95, 1.05))

    def take(self, raw: object) -> View | None:
        """Project and put; tells the sink of news. None (counted, logged) if the object has an unexpected shape."""
        try:
            if not isinstance(raw, dict):
                raise ProjectionError(f"{self.kind}: expected an object, got {type(raw).__name__}")
            view = project(self.kind, raw)
        except ProjectionError as error:
            self.unreadable(error)
            return None
        if self.store.put(view):
            self.sink(view, Happened.CHANGED)
        return view

    def unreadable(self, error: ProjectionError) -> None:
        """Count and log an object that could not be read."""
        self.metrics.unreadable.labels(self.kind).inc()
        self._log.error("unreadable object skipped", error=str(error))

    async def _pages(self, cause: Cause) -> tuple[set[str], str]:
        """All uids of the list and its resourceVersion; starts over when the continue token expires."""
        seen: set[str] = set()
        token = ""
        while True:
            try:
                page = await self.source.list_page(self.kind, self.namespace, token)
            except Gone:
                if not token:
                    raise
                self._log.info("list restarted: continue token expired", listed=len(seen))
                seen.clear()
                token = ""
                continue
            for raw in page.items:
                uid = raw["metadata"]["uid"]
                seen.add(uid)
                view = self.take(raw)
                if view is not None and cause is Cause.RESYNC:
                    self.sink(view, Happened.RESYNC)
            token = page.continue_token
            if not token:
                return seen, page.resource_version
