"""A keyed work queue with client-go semantics: a key is queued once and never processed twice at once."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from realcli_operator.kube.clock import Clock, SystemClock

K = TypeVar("K")
SUPERSEDED = 64
"""Delays that an earlier one has superseded may be this many more than those that count, before they are thrown away."""


class ShutDown(Exception):
    """The queue takes and gives nothing any more."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delay after the n-th failure in a row: ``base * 2**(n-1)`` up to ``cap``, times 1 ± ``jitter``. Seconds."""

    base: float = 0.5
    cap: float = 300.0
    jitter: float = 0.2

    def delay(self, failures: int, rng: Callable[[], float] = random.random) -> float:
        """Seconds to wait after ``failures`` >= 1 failures in a row."""
        plain = min(self.cap, self.base * 2.0 ** min(failures - 1, 60))
        return plain * (1 + self.jitter * (2 * rng() - 1))


@dataclass(frozen=True, slots=True)
class QueueStats:
    """Sizes now, high-water marks since start, and the age of the oldest key that waits for a worker (seconds)."""

    ready: int
    processing: int
    delayed: int
    max_ready: int
    max_processing: int
    oldest_age: float
    added: int
    done: int
    idle: float
    """Seconds since a key was last handed out or finished."""


class KeyedQueue(Generic[K]):
    """Keys wait in order of arrival, urgent ones before the others but never two of them in a row while others wait; adding a
    waiting key does nothing, adding one in process queues it once more after `done`. One event loop, any number of workers."""

    def __init__(
        self,
        clock: Clock | None = None,
        backoff: Backoff | None = None,
        rng: Callable[[], float] = random.random,
        urgent: Callable[[K], bool] = lambda key: False,
    ) -> None:
        self._clock: Clock = clock or SystemClock()
        self._urgent = urgent
        self._backoff = backoff or Backoff()
        self._rng = rng
        self._ready: dict[bool, OrderedDict[K, float]] = {True: OrderedDict(), False: OrderedDict()}
        """By whether they are urgent: key → since when it waits."""
        self._last_was_urgent = False
        self._dirty: dict[K, float] = {}  # added again while in process
        self._processing: set[K] = set()
        self._delayed: dict[K, float] = {}  # key -> due, the earliest asked for
        self._heap: list[tuple[float, int, K]] = []
        self._order = itertools.count()
        self._failures: dict[K, int] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._pump: asyncio.Task[None] | None = None
        self._heap_changed = asyncio.Event()
        self._drained = asyncio.Event()
        self._closed = False
        self._max_ready = self._max_processing = self._added = self._done = 0
        self._last_progress = self._clock.monotonic()

    def add(self, key: K) -> None:
        """Ask for ``key`` to be processed (again). Ignored after `shut_down`."""
        if self._closed:
            return
        self._added += 1
        if key in self._processing:
            self._dirty.setdefault(key, self._clock.monotonic())
        elif key not in self._ready[self._urgent(key)]:
            self._enqueue(key, self._clock.monotonic())

    def add_after(self, key: K, seconds: float) -> None:
        """`add` after a delay; of several delays of one key the earliest counts."""
        if self._closed:
            return
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.monotonic() + seconds
        known = self._delayed.get(key)
        if known is not None and known <= due:
            return
        self._delayed[key] = due
        heapq.heappush(self._heap, (due, next(self._order), key))
        if len(self._heap) > 2 * len(self._delayed) + SUPERSEDED:
            self._heap = [(due, next(self._order), key) for key, due in self._delayed.items()]
            heapq.heapify(self._heap)
        if self._heap[0][2] == key:
            self._heap_changed.set()

    def add_failed(self, key: K, at_least: float = 0.0) -> float:
        """`add_after` with the key's exponential back-off (not less than ``at_least``); returns the delay."""
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        delay = max(at_least, self._backoff.delay(failures, self._rng))
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """Success: the next failure starts with the shortest delay again."""
        self._failures.pop(key, None)

    def drop(self, key: K) -> None:
        """Its object is gone or over: its delays and failures are forgotten. What is added from now on counts."""
        self.forget(key)
        self._delayed.pop(key, None)

    def failures(self, key: K) -> int:
        """Failures in a row."""
        return self._failures.get(key, 0)

    def try_get(self) -> K | None:
        """The key whose turn it is, now in process until `done`; None when none is ready."""
        self.promote()
        urgent, others = self._ready[True], self._ready[False]
        if not urgent and not others:
            return None
        self._last_was_urgent = bool(urgent) and not (others and self._last_was_urgent)
        key, _ = self._ready[self._last_was_urgent].popitem(last=False)
        self._processing.add(key)
        self._max_processing = max(self._max_processing, len(self._processing))
        self._last_progress = self._clock.monotonic()
        return key

    async def get(self) -> K:
        """`try_get`, waiting for a key if there is none. Raises `ShutDown`."""
        while True:
            if self._closed:
                raise ShutDown
            key = self.try_get()
            if key is not None:
                return key
            if self._pump is None:
                self._pump = asyncio.create_task(self._run_pump(), name="queue-delays")
            getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except BaseException:
                if getter.done() and not getter.cancelled():
                    self._wake_one()  # this worker was woken but will not come: pass it on
                else:
                    self._getters.remove(getter)
                raise

    def done(self, key: K) -> None:
        """The worker has finished with ``key``; if it was added meanwhile it is queued now."""
        self._processing.discard(key)
        self._done += 1
        self._last_progress = self._clock.monotonic()
        since = self._dirty.pop(key, None)
        if since is not None and not self._closed:
            self._enqueue(key, since)
        if not self._processing:
            self._drained.set()

    def promote(self) -> float | None:
        """Move due keys from the delay heap to the queue; returns seconds until the next one is due."""
        now = self._clock.monotonic()
        while self._heap:
            due, _, key = self._heap[0]
            if self._delayed.get(key) != due:  # superseded by an earlier delay
                heapq.heappop(self._heap)
                continue
            if due > now:
                return due - now
            heapq.heappop(self._heap)
            del self._delayed[key]
            self.add(key)
        return None

    def shut_down(self) -> None:
        """Take no more keys and wake all workers; keys in process may finish."""
        self._closed = True
        while self._getters:
            self._wake_one()
        if self._pump is not None:
            self._pump.cancel()

    async def drain(self) -> None:
        """Return when nothing is in process (after `shut_down`)."""
        while self._processing:
            self._drained.clear()
            await self._drained.wait()

    def stats(self) -> QueueStats:
        """Sizes, high-water marks, ages."""
        now = self._clock.monotonic()
        first = (next(iter(ready.values())) for ready in self._ready.values() if ready)
        oldest = min((*self._dirty.values(), *first), default=now)
        return QueueStats(
            ready=self._waiting(),
            processing=len(self._processing),
            delayed=len(self._delayed),
            max_ready=self._max_ready,
            max_processing=self._max_processing,
            oldest_age=now - oldest,
            added=self._added,
            done=self._done,
            idle=now - self._last_progress,
        )

    def _enqueue(self, key: K, since: float) -> None:
        self._ready[self._urgent(key)][key] = since
        self._max_ready = max(self._max_ready, self._waiting())
        self._wake_one()

    def _waiting(self) -> int:
        return sum(map(len, self._ready.values()))

    def _wake_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    async def _run_pump(self) -> None:
        """Turns due delays into waiting keys while all workers sleep."""
        while not self._closed:
            self._heap_changed.clear()
            until = self.promote()
            waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._heap_changed.wait())]
            if until is not None:
                waits.append(asyncio.ensure_future(self._clock.sleep(until)))
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
