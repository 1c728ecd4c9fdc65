"""The watch layer on a real API server: everything arrives, whatever happens to the connection."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from realcli_operator.kube.informer import WatchSettings
from realcli_operator.kube.names import LABEL_MANAGED_BY, MANAGER, Key, Kind, trial_key

pytestmark = pytest.mark.apiserver


async def _burst(running: Any, plane: Any, people: Any, rounds: int, wait_for: Any, patience: float) -> dict[str, float]:
    """All pods are updated ``rounds`` times while the operator runs; returns measured times."""
    clock = time.monotonic
    begin = clock()
    await people.create()
    created = clock()
    async with running(plane) as operator:
        seeded = clock()
        await wait_for(people.converged, "the pods from before the start are in the statuses", patience)
        first = clock()
        for number in range(rounds):
            await people.update("Running", f"update {number}")
        updated = clock()
        await wait_for(people.converged, "all updates are in the statuses", patience)
        done = clock()
        assert operator.count("realcli_lists_total", kind="pod", cause="relist") == 0
        assert operator.count("realcli_reconcile_errors_total", kind="trial", error="KeyError") == 0
        assert operator.layer.problems() == []
        writes = operator.count("realcli_api_writes_total", verb="PATCH", resource="trials/status", code="200")
        strangers = operator.layer.store.size(Kind.TRIAL) - len(people.members)
    count = len(people.members)
    assert writes <= count * (rounds + 1) + strangers, "a status was written more often than its pod changed"
    return {
        "created/s": 2 * count / (created - begin),
        "seed s": seeded - created,
        "first statuses s": first - seeded,
        "updates/s": count * rounds / (updated - first),
        "last status after last update s": done - updated,
        "status writes": writes,
    }


async def test_2000_pod_updates_all_reach_their_trials(control_plane: Any, running: Any, population: Any, wait_for: Any) -> None:
    await _burst(running, control_plane, population("burst", 500, ("one", "two")), 4, wait_for, 120)


@pytest.mark.slow
async def test_20000_pod_updates_all_reach_their_trials(
    control_plane: Any, running: Any, population: Any, wait_for: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = await _burst(running, control_plane, population("flood", 20_000, ("one", "two")), 1, wait_for, 900)
    with capsys.disabled():
        print("\n20,000 pods:", ", ".join(f"{name} {value:.1f}" for name, value in figures.items()))
    if "REALCLI_FIGURES" in os.environ:  # of `make bench-operator`
        Path(os.environ["REALCLI_FIGURES"]).write_text(json.dumps(figures))  # noqa: ASYNC240


async def test_only_its_namespaces(control_plane: Any, running: Any, population: Any, wait_for: Any) -> None:
    people = population("spaces", 6, ("one", "two"))
    await people.create()
    async with running(control_plane, namespaces=("two",)) as operator:
        await people.update("Running", "x")
        theirs = {member: text for member, text in people.expected.items() if member[0] == "two"}

        async def converged() -> bool:
            return {m: text for m, text in (await people.messages()).items() if m[0] == "two"} == theirs

        await wait_for(converged, "namespace two converged")
        assert {view.namespace for kind in Kind for view in operator.layer.store.all(kind)} == {"two"}
        assert set((await people.messages()).items()) - set(theirs.items()) == {
            (member, "") for member in people.members if member[0] == "one"
        }


async def test_foreign_pods_are_not_seen(control_plane: Any, running: Any, admin: Any, population: Any) -> None:
    pod = {"metadata": {"name": "foreign"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    await admin.send("POST", "/api/v1/namespaces/one/pods", pod)
    async with running(control_plane) as operator:
        assert operator.layer.store.pod("one", "foreign") is None
    await admin.send("DELETE", "/api/v1/namespaces/one/pods/foreign?gracePeriodSeconds=0")


async def test_a_pod_that_loses_its_label_and_gets_it_again_is_seen_again(
    control_plane: Any, running: Any, admin: Any, wait_for: Any
) -> None:
    path = "/api/v1/namespaces/one/pods"
    ours = {LABEL_MANAGED_BY: MANAGER}
    pod = {"metadata": {"name": "astray", "labels": ours}, "spec": {"containers": [{"name": "c", "image": "x"}]}}

    async def label(value: str | None) -> None:
        await admin.merge(f"{path}/astray", {"metadata": {"labels": {LABEL_MANAGED_BY: value}}})

    await admin.send("POST", path, pod)
    async with running(control_plane) as operator:

        async def seen() -> bool:
            return operator.layer.store.pod("one", "astray") is not None

        async def unseen() -> bool:
            return not await seen()

        assert await seen()
        await label(None)
        await wait_for(unseen, "the pod is not ours without its label")
        await label(MANAGER)
        await wait_for(seen, "the pod is ours again")
    await admin.send("DELETE", f"{path}/astray?gracePeriodSeconds=0")


async def test_deletions_missed_during_a_410_are_pruned(
    control_plane: Any, running: Any, population: Any, proxy: Any, wait_for: Any
) -> None:
    people = population("gap", 40)
    await people.create()
    async with running(control_plane, proxy.url) as operator:
        await wait_for(people.converged, "converged before the gap")
        proxy.cut()
        await people.delete("pods", people.members[:15])
        await people.delete("trials", people.members[5:15])  # after their pods: a controller manager would collect those
        await people.update("Running", "in the gap", people.members[20:])
        # A restarted server has no watch history: the old resourceVersion is answered with 410.
        await asyncio.to_thread(_restart, control_plane)
        proxy.heal()
        await wait_for(people.converged, "converged after the gap", 120)
        store = operator.layer.store

        async def pruned() -> bool:
            trials = {trial.name for trial in store.trials_of_sweep("one", "gap")}
            pods = {pod.name for pod in store.pods_of_sweep("one", "gap")}
            return (trials, pods) == ({name for _, name in people.expected}, {f"{name}-a1" for _, name in people.members[15:]})

        await wait_for(pruned, "all that was deleted in the gap is gone from the store")
        assert operator.count("realcli_pruned_total", kind="pod") == 15
        assert operator.count("realcli_pruned_total", kind="trial") == 10
        assert operator.count("realcli_watch_ends_total", kind="pod", cause="gone") == 1

        async def looked_at() -> bool:
            return "trial/one/gap-00007" in operator.toy.observed

        await wait_for(looked_at, "the key of a deleted trial")
        store.check()


async def test_broken_connections_are_resumed_without_a_list(
    control_plane: Any, running: Any, population: Any, proxy: Any, wait_for: Any
) -> None:
    people = population("breaks", 20)
    await people.create()
    async with running(control_plane, proxy.url) as operator:
        for number in range(5):
            await wait_for(people.converged, f"converged before break {number}")
            proxy.drop()
            await people.update("Running", f"break {number}")
        await wait_for(people.converged, "converged after the breaks")
        for kind in ("pod", "trial", "job"):
            assert operator.count("realcli_lists_total", kind=kind, cause="relist") == 0
        assert operator.count("realcli_watch_ends_total", kind="pod", cause="error") >= 3


async def test_a_silent_stream_is_dropped_and_resumed(
    control_plane: Any, running: Any, population: Any, proxy: Any, wait_for: Any
) -> None:
    people = population("silent", 5)
    await people.create()
    async with running(control_plane, proxy.url, request_timeout=2.0, watch=WatchSettings(silence=2.0)) as operator:
        await wait_for(people.converged, "converged before the silence")
        proxy.stall()
        await people.update("Running", "unheard")
        await wait_for(people.converged, "converged after the silence")
        assert operator.count("realcli_watch_ends_total", kind="pod", cause="silent") >= 1
        assert operator.count("realcli_lists_total", kind="pod", cause="relist") == 0


async def test_clean_ends_of_stream_are_resumed_without_a_list(
    control_plane: Any, running: Any, population: Any, wait_for: Any
) -> None:
    people = population("ends", 20)
    await people.create()
    # The server ends every watch after one second.
    async with running(control_plane, watch=WatchSettings(server_timeout=1)) as operator:

        def ends() -> float:
            return operator.count("realcli_watch_ends_total", kind="pod", cause="clean")

        for number in range(4):
            before = ends()
            await people.update("Running", f"end {number}")
            await wait_for(lambda before=before: ends() > before, "the server ended a watch")
        await wait_for(people.converged, "converged")
        for kind in ("pod", "trial", "job"):
            assert operator.count("realcli_lists_total", kind=kind, cause="relist") == 0
            assert operator.count("realcli_watch_ends_total", kind=kind, cause="error") == 0


async def test_an_api_server_restart_in_the_middle_loses_nothing(
    control_plane: Any, running: Any, population: Any, wait_for: Any
) -> None:
    people = population("restart", 200)
    await people.create()
    async with running(control_plane) as operator:
        await wait_for(people.converged, "converged before the restart")
        updates = asyncio.create_task(people.update("Running", "over the restart"))
        await wait_for(
            lambda: sum("over the restart" in str(operator.status("one", name)) for _, name in people.members) > 20,
            "some updates have arrived",
        )
        assert not updates.done(), "the server is to be killed while updates are on their way"
        await asyncio.to_thread(_restart, control_plane)
        await updates
        await wait_for(people.converged, "converged after the restart")
        await people.update("Succeeded", "after it")
        await wait_for(people.converged, "converged again")
        for kind in ("pod", "trial", "job"):
            assert operator.count("realcli_lists_total", kind=kind, cause="relist") <= 1, "one relist for one restart"
        assert operator.layer.problems() == []


async def test_a_worker_never_dies(control_plane: Any, running: Any, population: Any, wait_for: Any) -> None:
    people = population("poison", 12)
    await people.create()
    errors: list[BaseException] = [ValueError("x"), KeyError("y"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()]
    async with running(control_plane, start=False) as operator:
        for error, (_, name) in zip(errors, people.members, strict=False):
            operator.toy.broken[name] = error
        await operator.layer.start({Kind.TRIAL: operator.toy})
        healthy = {member: text for member, text in people.expected.items() if member[1] not in operator.toy.broken}

        async def converged() -> bool:
            found = await people.messages()
            return {member: found[member] for member in healthy} == healthy

        await wait_for(converged, "the healthy ones converge")
        await wait_for(
            lambda: all(operator.layer.queue.failures(_key(name)) >= 3 for name in operator.toy.broken), "all are retried"
        )
        assert operator.layer.problems() == []
        operator.toy.broken.clear()
        await wait_for(people.converged, "the broken ones converge once they can")


def _restart(plane: Any) -> None:
    plane.api.end(signal.SIGKILL)
    plane.start_api()


def _key(name: str) -> Key:
    return trial_key("one", name)
