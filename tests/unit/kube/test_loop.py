"""Workers: no error ends one, none is swallowed, keys come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Any

import pytest

from realcli_operator.kube.errors import Invalid, TooManyRequests
from realcli_operator.kube.metrics import Metrics
from realcli_operator.kube.names import Key, Kind, trial_key
from realcli_operator.kube.queue import Backoff, KeyedQueue
from realcli_operator.loop import Done, Workers, WorkerSettings, supervise


class Scripted:
    """Does for each key what its script says, one entry a time; an empty script is success."""

    def __init__(self) -> None:
        self.script: dict[str, list[Any]] = {}
        self.steps: list[tuple[str, str]] = []
        self.gate: asyncio.Event | None = None

    async def observe(self, key: Key) -> str | None:
        self.steps.append(("observe", key.name))
        todo = self.script.get(key.name) or [None]
        what = todo.pop(0)
        if isinstance(what, BaseException):
            raise what
        if self.gate is not None:
            await self.gate.wait()
        return None if what == "gone" else key.name

    def decide(self, observed: str, now: datetime) -> str:
        self.steps.append(("decide", observed))
        return f"plan of {observed} at {now:%Y}"

    async def execute(self, key: Key, observed: str, plan: str) -> Done:
        self.steps.append(("execute", observed))
        assert plan == f"plan of {key.name} at 2026"
        return Done(requeue_after=40.0 if key.name == "deadline" else None)


class Rig:
    def __init__(self, clock: Any, **settings: Any) -> None:
        self.clock = clock
        self.metrics = Metrics()
        self.queue: KeyedQueue[Key] = KeyedQueue(clock, Backoff(base=1, cap=60, jitter=0))
        self.reconciler = Scripted()
        settings = {"count": 3} | settings
        self.workers = Workers(self.queue, {Kind.TRIAL: self.reconciler}, WorkerSettings(**settings), clock, self.metrics)
        self.workers.start()

    def add(self, name: str, *script: Any) -> None:
        self.reconciler.script[name] = list(script)
        self.queue.add(trial_key("one", name))

    def executed(self, name: str) -> bool:
        return ("execute", name) in self.reconciler.steps

    def errors(self, error: str) -> float:
        labels = {"kind": "trial", "error": error}
        return self.metrics.registry.get_sample_value("realcli_reconcile_errors_total", labels) or 0.0


@pytest.fixture
async def rig(clock: Any) -> AsyncIterator[Rig]:
    made = Rig(clock)
    yield made
    await made.workers.stop()


async def test_observe_decide_execute(rig: Rig, until: Any) -> None:
    rig.add("t")
    await until(lambda: rig.executed("t"))
    assert rig.reconciler.steps == [("observe", "t"), ("decide", "t"), ("execute", "t")]


async def test_a_gone_object_ends_its_key(rig: Rig, until: Any) -> None:
    rig.add("t", ValueError("x"), "gone")
    await until(lambda: rig.clock.sleeping == [1.0])
    rig.clock.advance(1)
    await until(lambda: rig.reconciler.steps == [("observe", "t"), ("observe", "t")])
    await until(lambda: rig.queue.stats().processing == 0)
    assert rig.queue.stats().delayed == 0
    assert rig.queue.failures(trial_key("one", "t")) == 0


async def test_a_deadline_comes_back_without_an_event(rig: Rig, until: Any) -> None:
    rig.add("deadline")
    await until(lambda: rig.clock.sleeping == [40.0])
    rig.clock.advance(40)
    await until(lambda: rig.reconciler.steps.count(("execute", "deadline")) == 2)


async def test_an_object_that_is_over_is_not_looked_at_when_its_deadline_comes(rig: Rig, until: Any) -> None:
    rig.add("deadline", None, "gone")
    await until(lambda: rig.queue.stats().delayed == 1)
    await until(lambda: rig.queue.stats().processing == 0)
    rig.queue.add(trial_key("one", "deadline"))
    await until(lambda: rig.reconciler.steps.count(("observe", "deadline")) == 2)
    await until(lambda: rig.queue.stats().processing == 0)
    assert rig.queue.stats().delayed == 0


class Odd(BaseException):
    """Neither an Exception nor a cancellation."""


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), KeyError(), Odd(), SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError(), TimeoutError(),
     StopAsyncIteration(), ExceptionGroup("many", [ValueError()]), BaseExceptionGroup("odd", [Odd()]), Invalid("no", status=422)],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
async def test_no_error_ends_a_worker(rig: Rig, error: BaseException, until: Any) -> None:
    rig.add("bad", *[error] * 4)
    for pause in (1.0, 2.0, 4.0, 8.0):
        await until(lambda: rig.clock.sleeping == [pause])  # noqa: B023
        rig.add("good")
        rig.reconciler.steps.clear()
        await until(lambda: rig.executed("good"))
        rig.clock.advance(pause)
    await until(lambda: rig.executed("bad"))
    assert rig.errors(type(error).__name__) == 4
    assert rig.queue.failures(trial_key("one", "bad")) == 0, "success resets the back-off"
    assert rig.workers.alive == 3


async def test_retry_after_is_obeyed(rig: Rig, until: Any) -> None:
    rig.add("t", TooManyRequests("slow down", status=429, retry_after=17.0))
    await until(lambda: rig.clock.sleeping == [17.0])


async def test_a_step_that_hangs_gives_its_key_back(clock: Any, until: Any) -> None:
    rig = Rig(clock, reconcile_timeout=0.01)
    rig.reconciler.gate = asyncio.Event()
    rig.add("hangs")
    for _ in range(200):
        if rig.errors("TimeoutError"):
            break
        await asyncio.sleep(0.005)
    assert rig.errors("TimeoutError") == 1
    rig.reconciler.gate = None
    clock.advance(1)
    await until(lambda: rig.executed("hangs"))
    await rig.workers.stop()


async def test_stop_lets_running_steps_finish(clock: Any, until: Any) -> None:
    rig = Rig(clock)
    rig.reconciler.gate = asyncio.Event()
    rig.add("running")
    await until(lambda: rig.queue.stats().processing == 1)
    stopping = asyncio.create_task(rig.workers.stop())
    await asyncio.sleep(0)
    rig.add("too late")
    rig.reconciler.gate.set()
    await stopping
    assert rig.executed("running")
    assert not rig.executed("too late")
    assert rig.workers.alive == 0


async def test_stop_does_not_wait_for_ever(clock: Any, until: Any) -> None:
    rig = Rig(clock, drain=0.01)
    rig.reconciler.gate = asyncio.Event()
    rig.add("stuck")
    await until(lambda: rig.queue.stats().processing == 1)
    await rig.workers.stop()
    assert rig.workers.alive == 0
    assert not rig.executed("stuck")


async def test_a_supervised_task_is_started_again(clock: Any, until: Callable[..., Any]) -> None:
    runs: list[int] = []

    async def run() -> None:
        runs.append(1)
        if len(runs) < 3:
            raise Odd
        await asyncio.Event().wait()

    metrics = Metrics()
    task = asyncio.create_task(supervise("informer-pod", run, clock, metrics))
    for _ in range(2):
        await until(lambda: clock.sleeping == [1.0])
        clock.advance(1)
    await until(lambda: len(runs) == 3)
    assert metrics.registry.get_sample_value("realcli_task_restarts_total", {"task": "informer"}) == 2
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
