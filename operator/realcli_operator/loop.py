"""N workers: observe → decide → execute, generic over what is reconciled. A worker never dies of an error."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

import structlog

from realcli_operator.kube.clock import Clock, SystemClock
from realcli_operator.kube.errors import KubeError
from realcli_operator.kube.metrics import Metrics
from realcli_operator.kube.names import Key, Kind
from realcli_operator.kube.queue import KeyedQueue, ShutDown

log = structlog.get_logger(__name__)

Observed = TypeVar("Observed")
Plan = TypeVar("Plan")


@dataclass(frozen=True, slots=True)
class Done:
    """A step that went through. ``requeue_after`` seconds: look again then; None: when something changes."""

    requeue_after: float | None = None


class Reconciler(Protocol[Observed, Plan]):
    """One kind of key, in three parts of which the middle one is pure."""

    async def observe(self, key: Key) -> Observed | None:
        """What is known of the key (store, fresh reads on recovery paths); None: the object is gone or needs nothing more, until
        something changes."""
        ...

    def decide(self, observed: Observed, now: datetime) -> Plan:
        """What to do. Pure: no clock, no I/O."""
        ...

    async def execute(self, key: Key, observed: Observed, plan: Plan) -> Done:
        """Do it: children first, then at most one status write."""
        ...


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """``reconcile_timeout`` and ``drain`` in seconds: one step may not hold its key longer; patience at shutdown."""

    count: int = 32
    reconcile_timeout: float = 120.0
    drain: float = 20.0


class Workers:
    """Takes keys from the queue and runs the reconciler of their kind."""

    def __init__(
        self,
        queue: KeyedQueue[Key],
        reconcilers: Mapping[Kind, Reconciler[Any, Any]],
        settings: WorkerSettings | None = None,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._queue = queue
        self._reconcilers = reconcilers
        self._settings = settings or WorkerSettings()
        self._clock: Clock = clock or SystemClock()
        self._metrics = metrics or Metrics()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def alive(self) -> int:
        """Workers that run."""
        return sum(not task.done() for task in self._tasks)

    def start(self) -> None:
        """Start all workers."""
        for index in range(self._settings.count):
            worker = supervise(f"worker-{index}", self._work, self._clock, self._metrics)
            self._tasks.append(asyncio.create_task(worker, name=f"worker-{index}"))

    async def stop(self) -> None:
        """Take no more keys, let running steps finish for ``drain`` seconds, then cancel them."""
        self._queue.shut_down()
        try:
            async with asyncio.timeout(self._settings.drain):
                await self._queue.drain()
        except TimeoutError:
            log.warning("shutdown does not wait any longer", processing=self._queue.stats().processing)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _work(self) -> None:
        while True:
            try:
                key = await self._queue.get()
            except ShutDown:
                return
            await self._process(key)

    async def _process(self, key: Key) -> None:
        started = self._clock.monotonic()
        try:
            async with asyncio.timeout(self._settings.reconcile_timeout):
                await self._step(key)
        except BaseException as error:
            if is_own_end(error):
                raise
            self._failed(key, error)
        finally:
            self._queue.done(key)
            self._metrics.reconcile_seconds.labels(key.kind).observe(self._clock.monotonic() - started)

    async def _step(self, key: Key) -> None:
        reconciler = self._reconcilers[key.kind]
        observed = await reconciler.observe(key)
        if observed is None:
            self._queue.drop(key)
            return
        plan = reconciler.decide(observed, self._clock.now())
        done = await reconciler.execute(key, observed, plan)
        self._queue.forget(key)
        if done.requeue_after is not None:
            self._queue.add_after(key, done.requeue_after)

    def _failed(self, key: Key, error: BaseException) -> None:
        self._metrics.reconcile_errors.labels(key.kind, type(error).__name__).inc()
        delay = self._queue.add_failed(key, at_least=getattr(error, "retry_after", None) or 0.0)
        context = {"key": str(key), "error": repr(error), "failures": self._queue.failures(key), "retry_in": delay}
        if isinstance(error, KubeError):
            log.warning("reconcile failed", **context)
        else:
            log.error("reconcile failed", **context, exc_info=error)


def is_own_end(error: BaseException) -> bool:
    """Whether ``error`` ends this task on purpose; a CancelledError that nobody asked this task for is an error."""
    if isinstance(error, GeneratorExit):
        return True
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


async def supervise(name: str, run: Callable[[], Awaitable[None]], clock: Clock, metrics: Metrics, pause: float = 1.0) -> None:
    """Run until it returns or is cancelled; whatever it raises is logged and it is started again."""
    while True:
        try:
            await run()
            return
        except BaseException as error:
            if is_own_end(error):
                raise
            metrics.worker_restarts.labels(name.partition("-")[0]).inc()
            log.error("task ended by an error, starting it again", task=name, exc_info=error)
        await clock.sleep(pause)
