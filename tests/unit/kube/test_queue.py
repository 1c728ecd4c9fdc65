"""KeyedQueue: never lost, never twice at once, delays and back-off."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from realcli_operator.kube.queue import Backoff, KeyedQueue, ShutDown

KEYS = st.sampled_from("abcde")


class _Hands:
    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> Any:
        raise NotImplementedError

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError


class QueueMachine(RuleBasedStateMachine):
    """Against a model: ``owed`` keys must still be handed out, ``due`` are the earliest delays asked for."""

    @initialize()
    def start(self) -> None:
        self.clock = _Hands()
        self.queue: KeyedQueue[str] = KeyedQueue(self.clock, Backoff(base=1, cap=8, jitter=0.0))
        self.owed: set[str] = set()
        self.due: dict[str, float] = {}
        self.running: set[str] = set()
        self.failed: dict[str, int] = {}

    def _promote(self) -> None:
        for key in [key for key, due in self.due.items() if due <= self.clock.seconds]:
            del self.due[key]
            self.owed.add(key)

    @rule(key=KEYS)
    def add(self, key: str) -> None:
        self.queue.add(key)
        self.owed.add(key)

    @rule(key=KEYS, seconds=st.integers(0, 10))
    def add_after(self, key: str, seconds: int) -> None:
        self.queue.add_after(key, seconds)
        if seconds == 0:
            self.owed.add(key)
        else:
            self.due[key] = min(self.due.get(key, float("inf")), self.clock.seconds + seconds)

    @rule(key=KEYS)
    def fail(self, key: str) -> None:
        self.failed[key] = self.failed.get(key, 0) + 1
        delay = self.queue.add_failed(key)
        assert delay == min(8, 2 ** (self.failed[key] - 1))
        self.due[key] = min(self.due.get(key, float("inf")), self.clock.seconds + delay)

    @rule(key=KEYS)
    def succeed(self, key: str) -> None:
        self.queue.forget(key)
        self.failed.pop(key, None)

    @rule(seconds=st.integers(1, 12))
    def time_passes(self, seconds: int) -> None:
        self.clock.seconds += seconds

    @rule()
    def get(self) -> None:
        self._promote()
        key = self.queue.try_get()
        if key is None:
            assert self.owed <= self.running, "a key that waits was not handed out"
            return
        assert key not in self.running, "a key was handed out twice at once"
        assert key in self.owed, "a key was handed out that nobody asked for"
        self.owed.discard(key)
        self.running.add(key)

    @precondition(lambda self: bool(self.running))
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.running)))
        self.running.discard(key)
        self.queue.done(key)

    @invariant()
    def counted(self) -> None:
        stats = self.queue.stats()
        assert stats.processing == len(self.running)
        assert stats.delayed <= 5
        assert stats.max_ready >= stats.ready
        assert stats.oldest_age >= 0

    def teardown(self) -> None:
        """Everything asked for comes out in the end, once each time."""
        if not hasattr(self, "queue"):
            return
        for key in sorted(self.running):
            self.queue.done(key)
        self.running.clear()
        self.clock.seconds += 1000
        self._promote()
        handed = []
        while (key := self.queue.try_get()) is not None:
            handed.append(key)
            self.queue.done(key)
        assert sorted(handed) == sorted(self.owed)


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


async def test_workers_never_share_a_key_and_lose_none(clock: Any, until: Any) -> None:
    queue: KeyedQueue[int] = KeyedQueue(clock)
    running: set[int] = set()
    handled: list[int] = []

    async def worker() -> None:
        while True:
            try:
                key = await queue.get()
            except ShutDown:
                return
            assert key not in running
            running.add(key)
            await asyncio.sleep(0)
            if handled.count(key) == 0 and key % 3 == 0:
                queue.add(key)  # changed while in process
            handled.append(key)
            running.discard(key)
            queue.done(key)

    workers = [asyncio.create_task(worker()) for _ in range(8)]
    for key in range(100):
        queue.add(key)
        if key % 7 == 0:
            await asyncio.sleep(0)
    await until(lambda: len(handled) == 134)
    queue.shut_down()
    await asyncio.gather(*workers)
    assert {key: handled.count(key) for key in range(100)} == {key: 2 if key % 3 == 0 else 1 for key in range(100)}


async def test_a_delay_wakes_a_sleeping_worker(clock: Any, until: Any) -> None:
    queue: KeyedQueue[str] = KeyedQueue(clock)
    getter = asyncio.create_task(queue.get())
    queue.add_after("late", 60)
    queue.add_after("soon", 5)
    await until(lambda: clock.sleeping == [5.0])
    clock.advance(4)
    await asyncio.sleep(0)
    assert not getter.done()
    clock.advance(1)
    assert await getter == "soon"
    second = asyncio.create_task(queue.get())
    await until(lambda: 55.0 in clock.sleeping)
    clock.advance(55)
    assert await second == "late"
    queue.shut_down()


async def test_a_cancelled_worker_passes_its_wake_up_on(clock: Any) -> None:
    queue: KeyedQueue[str] = KeyedQueue(clock)
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("k")  # wakes the first, which is cancelled before it runs
    first.cancel()
    assert await second == "k"
    assert first.cancelled()
    queue.shut_down()


async def test_shutdown_wakes_everybody_and_drain_waits_for_the_running(clock: Any) -> None:
    queue: KeyedQueue[str] = KeyedQueue(clock)
    queue.add("running")
    assert await queue.get() == "running"
    waiting = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.shut_down()
    assert [type(error) for error in await asyncio.gather(*waiting, return_exceptions=True)] == [ShutDown] * 3
    drained = asyncio.create_task(queue.drain())
    await asyncio.sleep(0)
    assert not drained.done()
    queue.add("ignored")
    queue.done("running")
    await drained
    with pytest.raises(ShutDown):
        await queue.get()


@pytest.mark.parametrize(("failures", "expected"), [(1, 0.5), (2, 1.0), (3, 2.0), (10, 256.0), (11, 300.0), (10_000, 300.0)])
def test_backoff_doubles_up_to_its_cap(failures: int, expected: float) -> None:
    assert Backoff().delay(failures, rng=lambda: 0.5) == expected
    assert Backoff().delay(failures, rng=lambda: 0.0) == pytest.approx(expected * 0.8)
    assert Backoff().delay(failures, rng=lambda: 1.0) == pytest.approx(expected * 1.2)


def test_retry_after_is_a_minimum(clock: Any) -> None:
    queue: KeyedQueue[str] = KeyedQueue(clock, Backoff(base=1, jitter=0))
    assert queue.add_failed("k", at_least=30) == 30
    assert queue.add_failed("k", at_least=0.5) == 2
    assert queue.failures("k") == 2
    queue.forget("k")
    assert queue.add_failed("k") == 1


def test_oldest_age_counts_from_the_first_request(clock: Any) -> None:
    queue: KeyedQueue[str] = KeyedQueue(clock)
    queue.add("a")
    clock.advance(3)
    queue.add("a")
    queue.add("b")
    clock.advance(1)
    assert queue.stats().oldest_age == 4
    assert queue.try_get() == "a"
    assert queue.stats().oldest_age == 1
    assert queue.stats().idle == 0
    clock.advance(9)
    assert queue.stats().idle == 9


def test_urgent_keys_go_before_others_in_their_own_order(clock: Any) -> None:
    queue: KeyedQueue[str] = KeyedQueue(clock, urgent=str.isupper)
    for key in ("a", "b"):
        queue.add(key)
    clock.advance(5)
    for key in ("S", "T", "a", "c"):
        queue.add(key)
    assert queue.stats().oldest_age == 5, "an urgent key does not hide that another waits longer"
    assert [queue.try_get() for _ in range(6)] == ["S", "a", "T", "b", "c", None]
    queue.add("S")  # in process: queued once more after it
    queue.add("d")
    queue.done("S")
    assert [queue.try_get() for _ in range(2)] == ["S", "d"]


def test_no_urgent_key_waits_for_ever_behind_another_and_no_other_behind_them(clock: Any) -> None:
    queue: KeyedQueue[str] = KeyedQueue(clock, urgent=str.isupper)
    for key in ("T", "a", "b", "S"):
        queue.add(key)
    handed = []
    for _ in range(8):  # T and S want to be looked at again as soon as they were
        turn = queue.try_get()
        assert turn is not None
        handed.append(turn)
        queue.done(turn)
        if turn.isupper():
            queue.add(turn)
    assert handed == ["T", "a", "S", "b", "T", "S", "T", "S"]


def test_a_delay_that_is_superseded_again_and_again_leaves_nothing_behind(clock: Any) -> None:
    queue: KeyedQueue[int] = KeyedQueue(clock)
    for key in range(100):
        for shorter in range(50):
            queue.add_after(key, 36_000.0 - shorter)
    assert queue.stats().delayed == 100
    assert len(queue._heap) <= 300, "what is superseded goes before its time has come"
    clock.advance(36_000)
    handed = {queue.try_get() for _ in range(101)}
    assert handed == {*range(100), None}


def test_a_key_that_is_over_has_no_delay_left(clock: Any) -> None:
    queue: KeyedQueue[str] = KeyedQueue(clock)
    queue.add_after("over", 100)
    queue.add_after("other", 50)
    queue.add_failed("over", at_least=200)
    queue.drop("over")
    assert (queue.stats().delayed, queue.failures("over")) == (1, 0)
    clock.advance(1000)
    assert [queue.try_get(), queue.try_get()] == ["other", None]
    queue.add_after("over", 10)
    clock.advance(10)
    assert queue.try_get() == "over", "a key of that name may come again"
