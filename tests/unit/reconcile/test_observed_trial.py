"""Which trials a step is worth: none that is sealed for good and whose pods are gone, as after a start are thousands."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from realcli.api.outcomes import Phase
from realcli_operator.kube.clock import SystemClock
from realcli_operator.kube.errors import NotFound
from realcli_operator.kube.fake import FakeCluster
from realcli_operator.kube.fake_api import FakeKubeApi
from realcli_operator.kube.names import trial_key
from realcli_operator.kube.store import Store
from realcli_operator.observe import Observer
from realcli_operator.reconcile.policy import Policy
from realcli_operator.settings import Settings


@pytest.fixture
def observer(a: Any) -> Observer:
    store = Store()
    sweep = a.sweep()
    store.put(sweep)
    observer = Observer(FakeKubeApi(FakeCluster()), store, Settings(images=a.platform().images), SystemClock(), Policy())
    observer.memory(sweep.uid).plan = a.plan(tasks=4, repeats=4)
    return observer


@pytest.mark.parametrize(
    ("phase", "with_pod", "looked_at"),
    [
        (Phase.SEALED, False, False),
        (Phase.SEALED, True, True),  # the pod is to go
        (Phase.INVALID, False, True),  # it may be renewed
        (Phase.PENDING, False, True),
    ],
)
async def test_what_is_over_takes_no_step(a: Any, observer: Observer, phase: Phase, with_pod: bool, looked_at: bool) -> None:
    trial = a.settled(0, phase) if phase.terminal else a.trial()
    observer.store.put(trial)
    if with_pod:
        pod = a.pod("first-00000-a1-v1")
        observer.store.put(a.replace(pod, owner_uid=trial.uid))
    seen = await observer.trial(trial_key("one", "first-00000"))
    assert (seen is not None) is looked_at


async def test_a_sweep_that_was_made_again_under_its_name_leaves_no_memory_of_the_first(a: Any, observer: Observer) -> None:
    first = a.sweep()
    second = a.replace(first, uid="another", resource_version=first.resource_version + 1)
    observer.store.put(second)  # the event of the deletion and that of the new one are one step
    observer.memory(second.uid)
    assert set(observer.memories) == {second.uid}


class SlowApi(FakeKubeApi):
    """Answers about the plan when it may."""

    def __init__(self, error: type[Exception]) -> None:
        super().__init__(FakeCluster())
        self.asked = 0
        self.may = asyncio.Event()
        self.error = error

    async def get_config_map(self, namespace: str, name: str) -> Any:
        self.asked += 1
        await self.may.wait()
        raise self.error(f"configmap {namespace}/{name}")


@pytest.mark.parametrize(("error", "times"), [(NotFound, 1), (TimeoutError, 8)])
async def test_all_who_want_the_plan_after_a_start_wait_for_one_answer(
    a: Any, observer: Observer, error: type[Exception], times: int
) -> None:
    """That there is none is an answer; a failure is none, and the next one asks."""
    api = SlowApi(error)
    slow = Observer(api, observer.store, Settings(images=a.platform().images), SystemClock(), Policy())
    sweep = a.replace(a.sweep(), status={})
    asking = [asyncio.create_task(slow.plan(sweep)) for _ in range(8)]
    await asyncio.sleep(0)
    assert api.asked == 1
    api.may.set()
    answers = await asyncio.gather(*asking, return_exceptions=True)
    assert api.asked == times
    assert all(answer is None for answer in answers) is (error is NotFound)
