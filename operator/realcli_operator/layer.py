"""The watch layer put together: listers and informers → store → queue → workers, started and stopped in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import structlog

from realcli.api.outcomes import Phase
from realcli_operator.kube.clock import Clock, SystemClock
from realcli_operator.kube.informer import Informer, WatchSettings
from realcli_operator.kube.lister import Cause, Happened, Lister, ResyncSettings
from realcli_operator.kube.metrics import Metrics
from realcli_operator.kube.names import Key, Kind
from realcli_operator.kube.project import ProjectionError, project
from realcli_operator.kube.queue import Backoff, KeyedQueue
from realcli_operator.kube.route import Hint, route
from realcli_operator.kube.source import WatchSource
from realcli_operator.kube.store import Store
from realcli_operator.kube.views import TrialView, View
from realcli_operator.loop import Reconciler, Workers, WorkerSettings, supervise

log = structlog.get_logger(__name__)

INFORMED: Final = (Kind.POD, Kind.JOB, Kind.TRIAL)
"""Watched by our own informer, in the order in which they are seeded; sweeps come through kopf."""


SETTLED: Final = frozenset(phase.value for phase in Phase if phase.terminal)


def is_settled(view: View) -> bool:
    """Whether the periodic second look may skip the object: a trial in a terminal phase."""
    return isinstance(view, TrialView) and view.phase in SETTLED


@dataclass(frozen=True, slots=True)
class LayerSettings:
    """``namespaces`` empty: all. ``stalled`` and ``deaf`` (seconds) are the limits of `WatchLayer.problems`."""

    namespaces: tuple[str, ...] = ()
    workers: WorkerSettings = field(default_factory=WorkerSettings)
    watch: WatchSettings = field(default_factory=WatchSettings)
    resync: ResyncSettings = field(default_factory=ResyncSettings)
    sweep_resync: ResyncSettings = field(default_factory=lambda: ResyncSettings(first=60.0, period=60.0))
    list_backoff: Backoff = field(default_factory=lambda: Backoff(base=0.2, cap=30.0))
    key_backoff: Backoff = field(default_factory=lambda: Backoff(cap=120.0))
    stalled: float = 180.0
    deaf: float = 900.0


class WatchLayer:
    """``store`` and ``queue`` are for the reconcilers; `start` gives them their keys."""

    def __init__(
        self,
        source: WatchSource,
        settings: LayerSettings | None = None,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
        router: Callable[[View], tuple[Hint, ...]] = route,
    ) -> None:
        self.settings = settings or LayerSettings()
        self.clock: Clock = clock or SystemClock()
        self.metrics = metrics or Metrics()
        self.store = Store()
        # A sweep behind thousands of its trials would let none of them start while it waits.
        self.queue: KeyedQueue[Key] = KeyedQueue(self.clock, self.settings.key_backoff, urgent=lambda key: key.kind is Kind.SWEEP)
        self.started = False
        self._created = self.clock.monotonic()
        self._router = router
        self._source = source
        namespaces: tuple[str | None, ...] = self.settings.namespaces or (None,)
        self._sweep_listers = [self._lister(Kind.SWEEP, ns, self.settings.sweep_resync) for ns in namespaces]
        self.informers = [
            Informer(self._lister(kind, ns, self.settings.resync), self.settings.watch) for kind in INFORMED for ns in namespaces
        ]
        self._workers: Workers | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._bind_gauges()

    async def start(self, reconcilers: Mapping[Kind, Reconciler[Any, Any]]) -> None:
        """Seed the store, then watch, then work: no decision is made on half a picture. Waits for the API server as
        long as it takes."""
        for lister in self._sweep_listers:
            await lister.list_until_done(Cause.SEED)
        for informer in self.informers:
            await informer.seed()
        log.info("store seeded", **{str(kind): self.store.size(kind) for kind in Kind})
        for lister in self._sweep_listers:
            self._spawn(f"lister-{lister.kind}", lister.resync_forever)
        for informer in self.informers:
            self._spawn(f"informer-{informer.lister.kind}", informer.run)
        self._workers = Workers(self.queue, reconcilers, self.settings.workers, self.clock, self.metrics)
        self._workers.start()
        self.started = True

    async def stop(self) -> None:
        """Stop the intake, let running steps finish, cancel the rest."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._workers is not None:
            await self._workers.stop()
        self.queue.shut_down()

    def sink(self, view: View, happened: Happened) -> None:
        """Turn news into keys."""
        if happened is Happened.RESYNC and is_settled(view):
            return
        for hint in self._router(view):
            self.queue.add_after(hint.key, hint.after)

    def take_sweep_event(self, type_: str | None, raw: Mapping[str, Any]) -> None:
        """A raw event of a sweep's watch (None: from its initial list)."""
        try:
            view = project(Kind.SWEEP, raw)
        except ProjectionError as error:
            self.metrics.unreadable.labels(Kind.SWEEP).inc()
            log.error("unreadable object skipped", error=str(error))
            return
        if type_ == "DELETED":
            self.store.delete(view)
            self.sink(view, Happened.GONE)
        elif self.store.put(view):
            self.sink(view, Happened.CHANGED)

    def problems(self) -> list[str]:
        """Why this process should be restarted; empty while there is progress (or nothing to do)."""
        if not self.started:
            waited = self.clock.monotonic() - self._created
            return [f"no complete LIST within {waited:.0f} s of the start"] if waited > self.settings.deaf else []
        found: list[str] = []
        stats = self.queue.stats()
        if (stats.ready or stats.processing) and stats.idle > self.settings.stalled:
            found.append(f"no key finished for {stats.idle:.0f} s with {stats.ready} waiting and {stats.processing} in process")
        for informer in self.informers:
            if informer.age > self.settings.deaf:
                found.append(f"watch of {informer.lister.kind} silent for {informer.age:.0f} s")
        found.extend(f"task {task.get_name()} has ended" for task in self._tasks if task.done())
        if self._workers is not None and self._workers.alive < self.settings.workers.count:
            found.append(f"{self._workers.alive} of {self.settings.workers.count} workers alive")
        return found

    def _lister(self, kind: Kind, namespace: str | None, resync: ResyncSettings) -> Lister:
        return Lister(
            kind,
            namespace,
            self._source,
            self.store,
            self.sink,
            resync=resync,
            backoff=self.settings.list_backoff,
            clock=self.clock,
            metrics=self.metrics,
        )

    def _spawn(self, name: str, run: Callable[[], Any]) -> None:
        self._tasks.append(asyncio.create_task(supervise(name, run, self.clock, self.metrics), name=name))

    def _bind_gauges(self) -> None:
        self.metrics.queue_depth.set_function(lambda: self.queue.stats().ready)
        self.metrics.queue_delayed.set_function(lambda: self.queue.stats().delayed)
        self.metrics.queue_oldest_age.set_function(lambda: self.queue.stats().oldest_age)
        for kind in Kind:
            self.metrics.store_size.labels(kind).set_function(partial(self.store.size, kind))
