"""Pods deleted in each phase; nodes lost and drained."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from realcli_operator.kube.errors import Conflict, NotFound
from realcli_operator.reconcile.policy import Policy
from tests.support.control_plane import wait_for
from tests.support.stub_kubelet import Act, Seen, happy

pytestmark = pytest.mark.apiserver
TAINTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByTaintManager",
    "message": "Taint manager: deleting due to NoExecute taint",
}
PHASES = ("plan", "work", "verify", "judge", "report")


class Held:
    """Pods of one role run until they were deleted once; ``names`` are those that wait for it."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.names: set[str] = set()
        self.open = False

    def __call__(self, seen: Seen) -> Act | None:
        if seen.role != self.role or self.open:
            return happy(seen)
        self.names.add(seen.name)
        return None


def on_node(pods: dict[str, Any], node: str) -> list[str]:
    """Work pods of first attempts."""
    return [name for name, pod in pods.items() if pod["spec"].get("nodeName") == node and name.endswith("-a1")]


@pytest.mark.parametrize("how", ["graceful", "forced"])
@pytest.mark.parametrize("phase", PHASES)
async def test_pod_deleted(place: Callable[[str], Any], phase: str, how: str, tell: Any) -> None:
    """A running pod deleted by hand, in each phase, with its grace period and without."""
    here = await place(f"deleted-{phase}-{how}")
    held = Held(phase)
    async with here.living(policy=Policy(job_start_grace=5.0)):
        await here.apply("cut", held, retry={"infrastructure": 2, "backoff": "100ms"})
        await wait_for(lambda: held.names, f"a pod runs in phase {phase}")
        victims = sorted(held.names)
        body = {"gracePeriodSeconds": 0} if how == "forced" else {}
        for name in victims:
            await here.admin.send("DELETE", f"{here.core}/pods/{name}", body)
        held.open = True
        await here.until_over("cut")
    statuses = await here.statuses()
    if phase == "work":
        assert sum(status["attempt"] == 2 for status in statuses) == len(victims)
    if phase == "verify":
        assert {(s["attempt"], s["invalidAttempts"]) for s in statuses} == {(1, 0)}, "what was sealed is not lost"
    assert await here.findings() == []
    tell(deleted=len(victims))


@pytest.fixture
async def second_node(kubelet: Any, admin: Any) -> Any:
    """A second node, as an object."""
    name = "second"
    await kubelet.register(admin, name)
    kubelet.nodes.append(name)
    yield name
    kubelet.nodes.remove(name)
    kubelet.dead.discard(name)
    await admin.send("DELETE", f"/api/v1/nodes/{name}")


async def test_second_node_drained(place: Callable[[str], Any], second_node: str, tell: Any) -> None:
    """All its pods evicted through the API: they run elsewhere, and no attempt is used up."""
    here = await place("drained")
    held = Held("work")
    async with here.living():
        await here.apply("drain", held, repeats=5, parallelism=10)
        await wait_for(lambda: len(held.names) >= 5, "pods run on both nodes")
        victims = [
            name for name, pod in (await here.pods()).items() if pod["spec"].get("nodeName") == second_node and "-a1" in name
        ]
        assert victims
        for name in victims:
            meta = {"metadata": {"name": name, "namespace": here.namespace}}
            await here.admin.send(
                "POST", f"{here.core}/pods/{name}/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", **meta}
            )
        held.open = True
        await here.until_over("drain")
    statuses = {status["pod"].rpartition("-a")[0].removesuffix("-v1"): status for status in await here.statuses()}
    assert {status["invalidAttempts"] for status in statuses.values()} == {0}, "a drain is no attempt"
    assert sum(status["attempt"] == 2 for status in statuses.values()) == len(victims)
    assert await here.findings() == []
    tell(evicted=len(victims))


async def test_second_node_lost(place: Callable[[str], Any], second_node: str, kubelet: Any, tell: Any) -> None:
    """The node answers nothing any more: the cluster marks and deletes its pods, and nobody confirms it."""
    here = await place("node-lost")
    held = Held("work")
    async with here.living(policy=Policy(node_lost_grace=3.0)):
        await here.apply("lost", held, repeats=5, parallelism=10)
        await wait_for(lambda: len(held.names) >= 5, "pods run on both nodes")
        kubelet.dead.add(second_node)
        victims = [
            name for name, pod in (await here.pods()).items() if pod["spec"].get("nodeName") == second_node and "-a1" in name
        ]
        assert victims
        for name in victims:  # as the taint manager does
            pod = await here.admin.send("GET", f"{here.core}/pods/{name}")
            conditions = [*pod["status"]["conditions"], TAINTED]
            await here.admin.merge(f"{here.core}/pods/{name}/status", {"status": {"conditions": conditions}})
            # that it waits for the pod's own grace period as well is not what is tried here
            await here.admin.send("DELETE", f"{here.core}/pods/{name}", {"gracePeriodSeconds": 1})
        held.open = True
        await here.until_over("lost")
    ended = await here.statuses()
    again = [status for status in ended if status["attempt"] == 2]
    assert len(again) == len(victims)
    assert {status["lastInvalidReason"] for status in again} == {"NodeLost"}
    assert await here.findings() == []
    tell(lost=len(victims))


async def test_pods_deleted_at_random(place: Callable[[str], Any], rng: random.Random, tell: Any) -> None:
    """Any pod, at any time, 30 in all, while a sweep of 40 trials runs: no seal is lost, nothing runs again without need."""
    here = await place("random-deletions")
    deleted: list[str] = []
    async with here.living():
        await here.apply("holes", repeats=20, parallelism=8, retry={"infrastructure": 10, "backoff": "100ms"})
        while not await here.over("holes"):
            living = sorted(
                name for name, pod in (await here.pods()).items() if pod["status"].get("phase") in {"Pending", "Running"}
            )
            if living and len(deleted) < 30:
                name = rng.choice(living)
                try:
                    await here.admin.send("DELETE", f"{here.core}/pods/{name}", rng.choice([{}, {"gracePeriodSeconds": 0}]))
                    deleted.append(name)
                except (NotFound, Conflict):
                    continue
            await asyncio.sleep(rng.uniform(0.0, 0.4))  # the fault's own pace
    assert (await here.sweep("holes"))["status"]["state"] == "Complete"
    attempts = sum(status["attempt"] - 1 for status in await here.statuses())
    assert attempts <= sum("-v" not in name for name in deleted)
    assert await here.findings() == []
    tell(deleted=len(deleted), extra_attempts=attempts)
