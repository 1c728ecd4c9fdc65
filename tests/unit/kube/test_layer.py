"""The assembled layer on the cluster in memory: order of start, resync, the probe."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pytest

from realcli_operator.kube.errors import Forbidden, ServerError
from realcli_operator.kube.fake import FakeCluster
from realcli_operator.kube.names import Key, Kind, sweep_key, trial_key
from realcli_operator.kube.views import PodView
from realcli_operator.layer import LayerSettings, WatchLayer
from realcli_operator.loop import Done


class Recorder:
    """Notes which keys come and what the store held then."""

    def __init__(self, layer: WatchLayer) -> None:
        self.layer = layer
        self.keys: list[Key] = []
        self.pods: dict[Key, int] = {}
        self.gate: asyncio.Event | None = None

    async def observe(self, key: Key) -> Key:
        self.keys.append(key)
        self.pods.setdefault(key, len(self.layer.store.pods_of_trial(key.namespace, key.name)))
        if self.gate is not None:
            await self.gate.wait()
        return key

    def decide(self, observed: Key, now: datetime) -> None:
        return None

    async def execute(self, key: Key, observed: Key, plan: None) -> Done:
        return Done()


class Rig:
    def __init__(self, clock: Any, **settings: Any) -> None:
        self.clock = clock
        self.cluster = FakeCluster(clock=clock)
        self.layer = WatchLayer(self.cluster, LayerSettings(**settings), clock)
        self.recorder = Recorder(self.layer)

    async def start(self) -> None:
        await self.layer.start({Kind.TRIAL: self.recorder, Kind.SWEEP: self.recorder})

    def metric(self, name: str, **labels: str) -> float | None:
        return self.layer.metrics.registry.get_sample_value(name, labels)


@pytest.fixture
async def rig(clock: Any) -> AsyncIterator[Rig]:
    made = Rig(clock)
    yield made
    await made.layer.stop()


def sweep(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "realcli.dev/v1alpha1",
        "kind": "BenchmarkSweep",
        "metadata": {"name": name, "namespace": "one"},
        "spec": {},
    }


async def test_no_decision_before_the_store_is_whole(rig: Rig, trial_manifest: Any, pod_manifest: Any, until: Any) -> None:
    rig.cluster.create(Kind.SWEEP, sweep("s"))
    for number in range(5):
        rig.cluster.create(Kind.TRIAL, trial_manifest(f"s-{number}"))
        rig.cluster.create(Kind.POD, pod_manifest(f"s-{number}-a1", f"s-{number}"))
    rig.cluster.fail("list", "trial", ServerError("not yet"), times=2)
    starting = asyncio.create_task(rig.start())
    for _ in range(2):
        await until(lambda: rig.clock.sleeping != [])
        assert rig.recorder.keys == []
        rig.clock.advance(30)
    await starting
    trials = {trial_key("one", f"s-{number}") for number in range(5)}
    await until(lambda: set(rig.recorder.keys) == trials | {sweep_key("one", "s")})
    assert {rig.recorder.pods[key] for key in trials} == {1}
    assert rig.layer.store.sweep("one", "s") is not None
    assert rig.metric("realcli_store_objects", kind="trial") == 5
    assert rig.metric("realcli_queue_depth") == 0


async def test_a_burst_of_trials_is_one_look_at_the_sweep(rig: Rig, trial_manifest: Any, until: Any) -> None:
    await rig.start()
    for number in range(50):
        rig.cluster.create(Kind.TRIAL, trial_manifest(f"s-{number}"))
    await until(lambda: len(rig.recorder.keys) == 50)
    rig.clock.advance(1)
    await until(lambda: rig.recorder.keys.count(sweep_key("one", "s")) == 1)
    rig.clock.advance(5)
    for _ in range(50):
        await asyncio.sleep(0)
    assert rig.recorder.keys.count(sweep_key("one", "s")) == 1


async def test_the_resync_looks_again_at_what_is_not_settled(rig: Rig, trial_manifest: Any, until: Any) -> None:
    for name, phase in (("open", "Working"), ("sealed", "Sealed"), ("invalid", "Invalid")):
        rig.cluster.create(Kind.TRIAL, trial_manifest(name))
        rig.cluster.set_status(Kind.TRIAL, "one", name, {"phase": phase})
    await rig.start()
    await until(lambda: len({key for key in rig.recorder.keys if key.kind is Kind.TRIAL}) == 3)
    await until(lambda: rig.cluster.watches_opened == 3)
    rig.recorder.keys.clear()
    rig.clock.advance(60)
    await until(lambda: trial_key("one", "open") in rig.recorder.keys)
    for _ in range(100):
        await asyncio.sleep(0)
    assert {key.name for key in rig.recorder.keys if key.kind is Kind.TRIAL} == {"open"}


async def test_sweeps_come_from_events_and_their_missed_deletions_from_lists(rig: Rig, until: Any) -> None:
    raw = rig.cluster.create(Kind.SWEEP, sweep("s"))
    await rig.start()
    rig.cluster.update(Kind.SWEEP, "one", "s", lambda raw: raw["spec"].update(suspend=True))
    rig.recorder.keys.clear()
    rig.layer.take_sweep_event("MODIFIED", rig.cluster.get(Kind.SWEEP, "one", "s"))
    assert rig.layer.store.sweep("one", "s").spec == {"suspend": True}  # type: ignore[union-attr]
    await until(lambda: rig.recorder.keys == [sweep_key("one", "s")])
    rig.layer.take_sweep_event(None, raw)  # a late list of kopf's
    assert rig.layer.store.sweep("one", "s").spec == {"suspend": True}  # type: ignore[union-attr]
    rig.layer.take_sweep_event("MODIFIED", {"metadata": {"name": "broken"}})
    assert rig.metric("realcli_unreadable_objects_total", kind="sweep") == 1
    rig.cluster.delete(Kind.SWEEP, "one", "s")  # kopf never says so after a gap
    rig.recorder.keys.clear()
    await until(lambda: rig.cluster.watches_opened == 3)
    rig.clock.advance(60)
    await until(lambda: rig.layer.store.sweep("one", "s") is None)
    await until(lambda: sweep_key("one", "s") in rig.recorder.keys)
    again = rig.cluster.create(Kind.SWEEP, sweep("s"))
    rig.layer.take_sweep_event("ADDED", again)
    rig.layer.take_sweep_event("DELETED", again)
    assert rig.layer.store.size(Kind.SWEEP) == 0


async def test_the_probe_sees_a_queue_without_progress(rig: Rig, trial_manifest: Any, until: Any) -> None:
    await rig.start()
    rig.recorder.gate = asyncio.Event()
    for number in range(40):
        rig.cluster.create(Kind.TRIAL, trial_manifest(f"s-{number}"))
    await until(lambda: rig.layer.queue.stats().processing == 32)
    await until(lambda: rig.layer.queue.stats().ready == 8)
    assert rig.layer.problems() == []
    rig.clock.advance(181)
    (problem,) = rig.layer.problems()
    assert "no key finished for 181 s with 8 waiting and 32 in process" in problem
    rig.recorder.gate.set()
    await until(lambda: rig.layer.queue.stats().processing == 0)
    assert rig.layer.problems() == []


async def test_the_probe_sees_a_deaf_watch(rig: Rig, until: Any) -> None:
    await rig.start()
    await until(lambda: rig.cluster.watches_opened == 3)
    rig.cluster.fail("list", "pod", ServerError("down"), times=10_000)
    rig.cluster.mute_watches()
    for _ in range(100):
        rig.clock.advance(10)
        for _ in range(20):
            await asyncio.sleep(0)
    assert any("watch of pod silent for" in problem for problem in rig.layer.problems())
    assert not any("watch of trial" in problem for problem in rig.layer.problems()), "its resync is a sign of life"


async def test_the_probe_sees_a_seed_that_never_ends(rig: Rig, until: Any) -> None:
    rig.cluster.fail("list", "trial", Forbidden("trials is forbidden", status=403), times=10_000)
    starting = asyncio.create_task(rig.start())
    for _ in range(100):
        assert rig.recorder.keys == []
        rig.clock.advance(10)
        for _ in range(20):
            await asyncio.sleep(0)
    assert rig.layer.problems() == ["no complete LIST within 1000 s of the start"]
    starting.cancel()


async def test_nothing_to_do_is_no_problem(rig: Rig, until: Any) -> None:
    assert rig.layer.problems() == []
    await rig.start()
    for _ in range(40):
        rig.clock.advance(30)
        for _ in range(50):
            await asyncio.sleep(0)
    assert rig.layer.problems() == []


async def test_two_namespaces(clock: Any, trial_manifest: Any, until: Any) -> None:
    rig = Rig(clock, namespaces=("one", "two"))
    for namespace in ("one", "two", "three"):
        rig.cluster.create(Kind.TRIAL, trial_manifest("t", namespace))
    await rig.start()
    assert len(rig.layer.informers) == 6
    await until(lambda: len(rig.recorder.keys) >= 2)
    assert {key.namespace for key in rig.recorder.keys} == {"one", "two"}
    assert [view for view in rig.layer.store.all(Kind.POD) if isinstance(view, PodView)] == []
    await rig.layer.stop()
