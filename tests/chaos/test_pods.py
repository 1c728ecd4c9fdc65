"""Pods deleted in each phase; nodes lost and drained."""

from __future__ import annotations

import asyncio
import random
import re
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


WORK = re.compile(r".+-\d{5}-a\d+")


def attempts(statuses: list[Any], phase: str, victims: int, *, invalid: int) -> None:
    """A work pod that was taken is a new attempt (``invalid``: one that counts as such); any other costs the trial nothing."""
    again = [status for status in statuses if status["attempt"] == 2]
    assert len(again) == (victims if phase == "work" else 0), statuses
    assert sum(status["invalidAttempts"] for status in statuses) == (invalid * victims if phase == "work" else 0), statuses
    assert {status["attempt"] for status in statuses} <= {1, 2}


@pytest.mark.parametrize("how", ["graceful", "forced"])
@pytest.mark.parametrize("phase", PHASES)
async def test_pod_deleted(place: Callable[[str], Any], phase: str, how: str, tell: Any) -> None:
    """A running pod deleted by hand, in each phase, with its grace period and without."""
    here = await place(f"deleted-{phase}-{how}")
    held = Held(phase)
    async with here.living(policy=Policy(job_start_grace=5.0)):
        await here.apply("cut", held, retry={"infrastructure": 2, "backoff": "100ms"})
        victims = await running(here, held)
        body = {"gracePeriodSeconds": 0} if how == "forced" else {}
        for name in victims:
            await here.admin.send("DELETE", f"{here.core}/pods/{name}", body)
        await replaced(here, held, victims)
        await here.until_over("cut")
    attempts(await here.statuses(), phase, len(victims), invalid=1)
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
    kubelet.dead.clear()
    await admin.send("DELETE", f"/api/v1/nodes/{name}")


async def running(here: Any, held: Held, many: int = 1) -> list[str]:
    """Names of pods of the role that run."""

    def names() -> list[str]:
        return sorted(name for name in held.names if here.ran(name))

    await wait_for(lambda: len(names()) >= many, f"{many} pods run in phase {held.role}")
    return names()


async def on_one_node(here: Any, held: Held) -> tuple[str, list[str]]:
    """A node on which pods of the role run, and their names."""
    names = await running(here, held, 5 if held.role in ("work", "verify") else 1)
    pods = await here.pods()
    node = pods[names[-1]]["spec"]["nodeName"]
    return node, [name for name in names if pods[name]["spec"]["nodeName"] == node]


async def replaced(here: Any, held: Held, victims: list[str]) -> None:
    """Let the role end once another pod runs in the place of each victim: none of these ends by itself."""
    before = len([name for name in held.names if here.ran(name)])
    await running(here, held, before + len(victims))
    held.open = True


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.usefixtures("second_node")
async def test_node_drained(place: Callable[[str], Any], phase: str, tell: Any) -> None:
    """One of two nodes: all its pods evicted through the API in each phase. They run elsewhere, and no attempt is used up."""
    here = await place(f"drained-{phase}")
    held = Held(phase)
    async with here.living():
        await here.apply("drain", held, repeats=5, parallelism=10)
        _, victims = await on_one_node(here, held)
        for name in victims:
            meta = {"metadata": {"name": name, "namespace": here.namespace}}
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", **meta}
            await here.admin.send("POST", f"{here.core}/pods/{name}/eviction", eviction)
        await replaced(here, held, victims)
        await here.until_over("drain")
    attempts(await here.statuses(), phase, len(victims), invalid=0)
    assert await here.findings() == []
    tell(evicted=len(victims))


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.usefixtures("second_node")
async def test_node_lost(place: Callable[[str], Any], phase: str, kubelet: Any, tell: Any) -> None:
    """One of two nodes answers no more, in each phase: the cluster marks and deletes its pods, and nobody confirms it."""
    here = await place(f"lost-{phase}")
    held = Held(phase)
    async with here.living(policy=Policy(node_lost_grace=3.0)):
        await here.apply("lost", held, repeats=5, parallelism=10)
        node, _ = await on_one_node(here, held)
        kubelet.dead.add(node)
        pods = await here.pods()
        victims = [name for name in held.names if name in pods and pods[name]["spec"].get("nodeName") == node]
        for name in victims:  # as the taint manager does
            pod = await here.admin.send("GET", f"{here.core}/pods/{name}")
            conditions = [*pod["status"]["conditions"], TAINTED]
            await here.admin.merge(f"{here.core}/pods/{name}/status", {"status": {"conditions": conditions}})
            # that it waits for the pod's own grace period as well is not what is tried here
            await here.admin.send("DELETE", f"{here.core}/pods/{name}", {"gracePeriodSeconds": 1})
        held.open = True  # before that the breaker lets nothing begin: all ends that there are would be those of the node
        await here.until_over("lost")
    statuses = await here.statuses()
    attempts(statuses, phase, len(victims), invalid=1)
    assert {status["lastInvalidReason"] for status in statuses if status["attempt"] == 2} <= {"NodeLost"}
    assert await here.findings() == []
    tell(lost=len(victims))


async def test_pods_deleted_at_random(place: Callable[[str], Any], rng: random.Random, tell: Any) -> None:
    """Any pod, at any time, up to 30 in all, while a sweep of 40 trials runs: no seal is lost, nothing runs again needlessly."""
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
    extra = sum(status["attempt"] - 1 for status in await here.statuses())
    assert extra <= sum(WORK.fullmatch(name) is not None for name in deleted), "each new attempt is one that was deleted"
    assert len(deleted) >= 15
    assert await here.findings(cut=True) == []
    tell(deleted=len(deleted), extra_attempts=extra)
