"""What the answer to an own write tells is taken over, and whom it concerns is woken: the event that comes later is no news."""

from __future__ import annotations

from typing import Any

from realcli.api.sweep import SweepStatus
from realcli_operator.execute import Executor
from realcli_operator.kube.fake import FakeCluster
from realcli_operator.kube.fake_api import FakeKubeApi
from realcli_operator.kube.lister import Happened
from realcli_operator.kube.names import Kind
from realcli_operator.kube.project import sweep_view
from realcli_operator.kube.store import Store


async def test_an_edit_that_an_own_status_write_overtakes_wakes_its_sweep() -> None:
    cluster, store, told = FakeCluster(), Store(), list[tuple[str, bool | None]]()
    manifest = {
        "apiVersion": "realcli.dev/v1alpha1",
        "kind": "BenchmarkSweep",
        "metadata": {"name": "s", "namespace": "one"},
        "spec": {},
    }

    def sink(view: Any, happened: Happened) -> None:
        told.append((happened, view.spec.get("suspend")))

    executor = Executor(FakeKubeApi(cluster), store, sink)
    decided_of = sweep_view(cluster.create(Kind.SWEEP, manifest))
    store.put(decided_of)
    assert await executor.write_sweep_status(decided_of, SweepStatus(trials="1/2"))
    assert told == [], "nothing follows from the status alone"
    edited = cluster.update(Kind.SWEEP, "one", "s", lambda raw: raw["spec"].update(suspend=True))
    assert await executor.write_sweep_status(decided_of, SweepStatus(trials="2/2"))
    assert told == [("changed", True)]
    assert not store.put(sweep_view(edited)), "the event of the edit comes too late to be news"
