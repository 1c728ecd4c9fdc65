"""Informer and lister against the cluster in memory: nothing lost, nothing stale, no relist without need."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from realcli_operator.kube.errors import ServerError, TooManyRequests
from realcli_operator.kube.fake import FakeCluster
from realcli_operator.kube.informer import Informer, WatchSettings
from realcli_operator.kube.lister import Happened, Lister, ResyncSettings
from realcli_operator.kube.metrics import Metrics
from realcli_operator.kube.names import Kind
from realcli_operator.kube.queue import Backoff
from realcli_operator.kube.store import Store
from realcli_operator.kube.views import View


class Rig:
    """One informer of pods with everything it touches."""

    def __init__(self, clock: Any, silence: float = 5.0, namespace: str | None = None, first_resync: float = 60.0) -> None:
        self.clock = clock
        self.cluster = FakeCluster()
        self.store = Store()
        self.metrics = Metrics()
        self.news: list[tuple[str, str]] = []
        self.lister = Lister(
            Kind.POD,
            namespace,
            self.cluster,
            self.store,
            self._sink,
            resync=ResyncSettings(first_resync, 600),
            backoff=Backoff(base=1.0, cap=30.0, jitter=0.0),
            clock=clock,
            metrics=self.metrics,
        )
        self.informer = Informer(self.lister, WatchSettings(silence=silence, pause=0.0))
        self._task: asyncio.Task[None] | None = None

    def _sink(self, view: View, happened: Happened) -> None:
        self.news.append((happened, view.name))

    @property
    def names(self) -> set[str]:
        return {view.name for view in self.store.all(Kind.POD)}

    def count(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, {"kind": "pod", **labels}) or 0.0

    async def start(self) -> None:
        await self.informer.seed()
        self._task = asyncio.create_task(self.informer.run())

    async def stop(self) -> None:
        if self._task is not None:
            assert not self._task.done(), "an informer never ends by itself"
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task


@pytest.fixture
async def rig(clock: Any) -> AsyncIterator[Rig]:
    made = Rig(clock)
    yield made
    await made.stop()


async def test_what_exists_before_start_is_seen(rig: Rig, pod_manifest: Callable[..., Any], until: Any) -> None:
    for name in ("a", "b"):
        rig.cluster.create(Kind.POD, pod_manifest(name))
    unmanaged = pod_manifest("not-ours")
    unmanaged["metadata"]["labels"] = {}
    rig.cluster.create(Kind.POD, unmanaged)
    await rig.start()
    assert rig.names == {"a", "b"}
    assert rig.news == [("changed", "a"), ("changed", "b")]


async def test_every_change_arrives_across_odd_chunks(rig: Rig, pod_manifest: Callable[..., Any], until: Any) -> None:
    rig.cluster.chunk_bytes = 7
    await rig.start()
    for number in range(20):
        rig.cluster.create(Kind.POD, pod_manifest(f"p{number}"))
        rig.cluster.set_status(Kind.POD, "one", f"p{number}", {"phase": "Running"})
    rig.cluster.delete(Kind.POD, "one", "p3")
    await until(lambda: len(rig.names) == 19)
    await until(lambda: all(pod.phase == "Running" for pod in rig.store.all(Kind.POD)))  # type: ignore[union-attr]
    assert ("gone", "p3") in rig.news


async def test_a_clean_end_resumes_without_a_list(rig: Rig, pod_manifest: Callable[..., Any], until: Any) -> None:
    await rig.start()
    for number in range(8):
        await until(lambda: rig.cluster.watches_opened > number)  # noqa: B023
        rig.cluster.create(Kind.POD, pod_manifest(f"p{number}"))
        rig.cluster.end_watches()
        rig.cluster.create(Kind.POD, pod_manifest(f"q{number}"))
        rig.clock.advance(1)
    await until(lambda: len(rig.names) == 16)
    assert rig.cluster.lists == 1
    assert rig.count("realcli_watch_ends_total", cause="clean") >= 8


async def test_a_watch_resumes_from_the_last_event_in_the_store(rig: Rig, pod_manifest: Callable[..., Any], until: Any) -> None:
    await rig.start()
    await until(lambda: rig.cluster.watches_opened == 1)
    put, failures = rig.store.put, [RuntimeError("no memory")]

    def put_or_fail(view: View) -> bool:
        if view.name == "second" and failures:
            raise failures.pop()
        return put(view)

    rig.store.put = put_or_fail  # type: ignore[method-assign]
    first = int(rig.cluster.create(Kind.POD, pod_manifest("first"))["metadata"]["resourceVersion"])
    second = int(rig.cluster.create(Kind.POD, pod_manifest("second"))["metadata"]["resourceVersion"])
    await until(lambda: rig.count("realcli_watch_ends_total", cause="error") == 1)
    rig.clock.advance(2)
    await until(lambda: rig.names == {"first", "second"})
    assert rig.cluster.watched_from[1] == first, "the event that did not reach the store comes again"
    rig.cluster.end_watches()
    await until(lambda: rig.cluster.watches_opened == 3)
    assert rig.cluster.watched_from[2] == second
    assert rig.news == [("changed", "first"), ("changed", "second")]


async def test_410_lists_again_and_prunes(rig: Rig, pod_manifest: Callable[..., Any], until: Any) -> None:
    for number in range(5):
        rig.cluster.create(Kind.POD, pod_manifest(f"p{number}"))
    await rig.start()
    await until(lambda: rig.cluster.watches_opened == 1)
    rig.cluster.mute_watches()
    rig.cluster.delete(Kind.POD, "one", "p1")
    rig.cluster.delete(Kind.POD, "one", "p2")
    rig.cluster.create(Kind.POD, pod_manifest("p2"))  # same name, another pod
    rig.cluster.create(Kind.POD, pod_manifest("late"))
    rig.cluster.compact()
    rig.cluster.mute_watches(False)
    await until(lambda: "late" in rig.names)
    assert rig.names == {"p0", "p2", "p3", "p4", "late"}
    assert ("gone", "p1") in rig.news
    assert rig.store.pod("one", "p2").uid == rig.cluster.get(Kind.POD, "one", "p2")["metadata"]["uid"]  # type: ignore[union-attr]
    assert rig.cluster.lists == 2
    assert rig.count("realcli_pruned_total") == 1
    rig.cluster.create(Kind.POD, pod_manifest("after"))
    await until(lambda: "after" in rig.names)


@pytest.mark.parametrize(
    "error",
    [
        TooManyRequests("storage is (re)initializing", status=429, retry_after=7.0),
        ServerError("connection refused"),
        ValueError("something nobody thought of"),
    ],
)
async def test_errors_are_waited_out_and_never_listed(
    clock: Any, error: Exception, pod_manifest: Callable[..., Any], until: Any
) -> None:
    rig = Rig(clock, first_resync=1e9)
    await rig.start()
    await until(lambda: rig.cluster.watches_opened == 1)
    rig.cluster.fail("watch", "pod", error, times=6)  # type: ignore[arg-type]
    rig.cluster.end_watches()
    rig.cluster.create(Kind.POD, pod_manifest("meanwhile"))
    pauses = []
    for _ in range(6):
        await until(lambda: rig.clock.sleeping[0] < 1e6)
        pauses.append(rig.clock.sleeping[0])
        rig.clock.advance(pauses[-1])
    await until(lambda: "meanwhile" in rig.names)
    least = getattr(error, "retry_after", None) or 0
    assert pauses == [max(pause, least) for pause in (1, 2, 4, 8, 16, 30)]
    assert rig.cluster.lists == 1
    await rig.stop()


async def test_a_silent_stream_is_dropped_and_resumed(clock: Any, pod_manifest: Callable[..., Any], until: Any) -> None:
    rig = Rig(clock, silence=0.01)
    await rig.start()
    rig.cluster.mute_watches()
    rig.cluster.create(Kind.POD, pod_manifest("unheard"))
    for _ in range(200):
        if rig.count("realcli_watch_ends_total", cause="silent") >= 1:
            break
        await asyncio.sleep(0.005)
    assert rig.count("realcli_watch_ends_total", cause="silent") >= 1
    assert rig.names == set()
    rig.cluster.mute_watches(False)
    for _ in range(200):
        rig.clock.advance(5)
        if rig.names:
            break
        await asyncio.sleep(0.005)
    assert rig.names == {"unheard"}
    await rig.stop()


async def test_an_expired_continue_token_restarts_the_list(rig: Rig, pod_manifest: Callable[..., Any], until: Any) -> None:
    rig.cluster.page_size = 2
    for number in range(7):
        rig.cluster.create(Kind.POD, pod_manifest(f"p{number}"))
    plain = rig.cluster.list_page
    calls: list[str] = []

    async def list_page(kind: Kind, namespace: str | None, token: str = "", selector: str | None = None) -> Any:
        calls.append(token)
        if len(calls) == 3:
            rig.cluster.delete(Kind.POD, "one", "p0")  # listed already, gone before the list starts again
            rig.cluster.expire_continue_tokens()
        return await plain(kind, namespace, token, selector)

    rig.lister.source = type("Source", (), {"list_page": staticmethod(list_page), "watch": rig.cluster.watch})()  # type: ignore[assignment]
    await rig.start()
    assert rig.names == {f"p{number}" for number in range(1, 7)}
    assert [token == "" for token in calls] == [True, False, False, True, False, False]


async def test_resync_comes_after_60_s_and_then_every_10_min(rig: Rig, pod_manifest: Callable[..., Any], until: Any) -> None:
    rig.cluster.create(Kind.POD, pod_manifest("ghost"))
    await rig.start()
    await until(lambda: rig.cluster.watches_opened == 1)
    rig.cluster.mute_watches()
    rig.cluster.delete(Kind.POD, "one", "ghost")
    rig.cluster.create(Kind.POD, pod_manifest("new"))
    rig.clock.advance(59)
    for _ in range(50):
        await asyncio.sleep(0)
    assert (rig.cluster.lists, rig.names) == (1, {"ghost"})
    rig.clock.advance(1)
    await until(lambda: rig.names == {"new"})
    assert ("gone", "ghost") in rig.news
    assert ("resync", "new") in rig.news
    assert rig.cluster.lists == 2
    rig.clock.advance(560)
    for _ in range(50):
        await asyncio.sleep(0)
    assert rig.cluster.lists == 2
    rig.clock.advance(80)
    await until(lambda: rig.cluster.lists == 3)


async def test_the_seed_waits_for_the_api_server(rig: Rig, pod_manifest: Callable[..., Any], until: Any) -> None:
    rig.cluster.create(Kind.POD, pod_manifest("p"))
    rig.cluster.fail("list", "pod", ServerError("connection refused"), times=3)
    seeding = asyncio.create_task(rig.informer.seed())
    for pause in (1.0, 2.0, 4.0):
        await until(lambda: rig.clock.sleeping == [pause])  # noqa: B023
        rig.clock.advance(pause)
    await seeding
    assert rig.names == {"p"}
    assert rig.count("realcli_list_errors_total", error="ServerError") == 3


async def test_an_unreadable_object_does_not_stop_the_others(rig: Rig, pod_manifest: Callable[..., Any], until: Any) -> None:
    await rig.start()
    rig.cluster.create(Kind.POD, pod_manifest("odd"))
    rig.cluster.set_status(Kind.POD, "one", "odd", {"startTime": "yesterday"})
    rig.cluster.create(Kind.POD, pod_manifest("fine"))
    await until(lambda: "fine" in rig.names)
    assert rig.count("realcli_unreadable_objects_total") == 1
    assert rig.count("realcli_watch_ends_total", cause="error") == 0


async def test_one_namespace_only(clock: Any, pod_manifest: Callable[..., Any], until: Any) -> None:
    rig = Rig(clock, namespace="two")
    rig.cluster.create(Kind.POD, pod_manifest("p", namespace="one"))
    rig.cluster.create(Kind.POD, pod_manifest("p", namespace="two"))
    await rig.start()
    rig.cluster.create(Kind.POD, pod_manifest("q", namespace="one"))
    rig.cluster.create(Kind.POD, pod_manifest("r", namespace="two"))
    await until(lambda: rig.names == {"p", "r"})
    assert {view.namespace for view in rig.store.all(Kind.POD)} == {"two"}
    await rig.stop()


async def test_age_is_the_time_since_the_last_sign_of_life(rig: Rig, pod_manifest: Callable[..., Any], until: Any) -> None:
    await rig.start()
    await until(lambda: rig.cluster.watches_opened == 1)
    rig.clock.advance(30)
    assert rig.informer.age == 30
    rig.cluster.create(Kind.POD, pod_manifest("p"))
    await until(lambda: rig.informer.age == 0)
