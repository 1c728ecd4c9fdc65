"""What went wrong in other operators: each test is a published bug report of one, held against ours.

All of them begin together and each test waits for its own: mostly they wait for an API server and a kubelet. Elsewhere in this
suite: a worker that never dies and probes that answer 500 (`watch/`), repeated and random faults (beside).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
import pytest_asyncio

from realcli.api.termination import Result
from realcli_operator.kube.errors import NotFound
from realcli_operator.kube.informer import WatchSettings
from realcli_operator.kube.lister import ResyncSettings
from realcli_operator.kube.names import sweep_key, trial_key
from realcli_operator.kube.transport import ClientSettings
from realcli_operator.reconcile.policy import Policy
from tests.integration.operator.faults.conftest import places
from tests.support.control_plane import Admin, wait_for
from tests.support.fault_proxy import Asked, Fault, only
from tests.support.life import NEVER, settings_for
from tests.support.stub_kubelet import Act, Seen, happy, say

pytestmark = [pytest.mark.apiserver, pytest.mark.asyncio(loop_scope="module")]
NewPlace = Callable[[str], Any]
Report = Callable[[NewPlace], Coroutine[Any, Any, None]]
REPORTS: dict[str, Report] = {}


def report(name: str, *arguments: Any) -> Callable[[Callable[..., Coroutine[Any, Any, None]]], Any]:
    """Registers a report under its name; ``arguments`` follow the factory of namespaces."""

    def register(function: Callable[..., Coroutine[Any, Any, None]]) -> Any:
        REPORTS[name] = lambda place: function(place, *arguments)
        return function

    return register


class Gate:
    """A script whose pods of one role run until `open`."""

    def __init__(self, role: str = "work") -> None:
        self.role = role
        self._open = asyncio.Event()

    def open(self) -> None:
        self._open.set()

    def __call__(self, seen: Seen) -> Act | None:
        return None if seen.role == self.role and not self._open.is_set() else happy(seen)


async def running(here: Any, *pods: str) -> None:
    await wait_for(lambda: all(here.ran(pod) for pod in pods), f"{pods} run")


@report("01-events-in-any-order-converge-pods", "pods")
@report("01-events-in-any-order-converge-jobs", "jobs")
@report("01-events-in-any-order-converge-trials", "trials")
async def report_01_events_in_any_order_converge(place: NewPlace, kind: str) -> None:
    """dask-kubernetes 968: the event of a child raced with the creation of its parent, which stayed Pending for ever.

    The events of one kind come after everything else has happened, twice.
    """
    here = await place(f"report-01-{kind}")
    late = asyncio.Event()
    plan_job = f"/apis/batch/v1/namespaces/{here.namespace}/jobs/order-plan"

    async def planned() -> bool:
        try:
            return bool((await here.admin.send("GET", plan_job))["status"].get("completionTime"))
        except NotFound:
            return False

    async def worked() -> bool:
        return any(pod["status"]["phase"] == "Succeeded" for name, pod in (await here.pods()).items() if name.endswith("-a1"))

    mine = only(lambda asked: asked.is_watch and asked.path.endswith(f"/{kind}"), Fault(held=late))
    async with here.proxied(mine) as proxy, here.living(url=proxy.url) as life:
        await here.apply("order")
        await wait_for(planned, "the plan Job has ended")
        late.set()
        await wait_for(lambda: life.layer.store.trials_of_sweep(here.namespace, "order"), "trials")
        late.clear()
        if kind == "pods":
            await wait_for(worked, "a work pod has ended unseen")
        late.set()
        await here.until_over("order")
    assert await here.findings() == []
    assert {trial["attempt"] for trial in await here.statuses()} == {1}


@report("02-what-is-gone-is-not-retried")
async def report_02_what_is_gone_is_not_retried(place: NewPlace) -> None:
    """dask-kubernetes 810: a task was retried 40,000 times after its parent had been deleted."""
    here = await place("report-02")
    release = asyncio.Event()
    working = only(lambda asked: asked.path.endswith("/status") and "/trials/" in asked.path, Fault(held=release))
    async with here.proxied(working) as proxy, here.living(url=proxy.url) as life:
        await here.apply("gone", Gate())
        await running(here, "gone-00000-a1", "gone-00001-a1")  # and the status that says so is on its way
        await here.admin.send("DELETE", f"{here.sweeps}/gone")

        async def collected() -> bool:
            return not await here.statuses() and await here.tidy()

        await wait_for(collected, "the garbage collector has taken trials and pods")
        release.set()

        def quiet() -> bool:
            stats = life.layer.queue.stats()
            return (stats.ready, stats.processing, stats.delayed) == (0, 0, 0)

        await wait_for(quiet, "nothing is waiting for another try")
        keys = (sweep_key(here.namespace, "gone"), *(trial_key(here.namespace, f"gone-0000{n}") for n in range(2)))
        assert [life.layer.queue.failures(key) for key in keys] == [0, 0, 0]
        assert life.layer.problems() == []


@report("03-an-operator-that-gets-nothing-done-says-so")
async def report_03_an_operator_that_gets_nothing_done_says_so(place: NewPlace) -> None:
    """dask-kubernetes 620: dead after an hour, and its health check went well. (What is said here is a 500 of the probe.)"""
    here = await place("report-03")
    answered = asyncio.Event()
    client = ClientSettings(writes_per_second=1000, write_burst=100, request_timeout=600)
    stuck = only(lambda asked: asked.is_write, Fault(held=answered))
    async with here.proxied(stuck) as proxy, here.living(url=proxy.url, client=client, stalled=0.5) as life:
        assert life.layer.problems() == []
        await here.apply("stuck")
        found = await wait_for(life.layer.problems, "it says that nothing goes on")
        assert "no key finished" in found[0]
        answered.set()
        await here.until_over("stuck")
        await wait_for(lambda: life.layer.problems() == [], "it is well again")


@report("04-a-pod-that-cannot-start-is-shown-and-given-up")
async def report_04_a_pod_that_cannot_start_is_shown_and_given_up(place: NewPlace) -> None:
    """dask-kubernetes 655: a child that crashed again and again never showed in its parent."""
    here = await place("report-04")

    def script(seen: Seen) -> Act:
        return Act(waiting=("ImagePullBackOff", "Back-off pulling image")) if seen.role == "work" else happy(seen)

    async with here.living(policy=Policy(pull_grace=0.5)):
        await here.apply("never", script)

        async def shown() -> Any:
            found = [c for status in await here.statuses() for c in status.get("conditions", ()) if c["type"] == "Running"]
            return [c for c in found if c["reason"] in {"ImagePullBackOff", "ImageUnavailable"}]

        conditions = await wait_for(shown, "the trial says why it does not run")
        assert "Back-off pulling image" in conditions[0]["message"]
        await here.until_over("never", "Incomplete")
    assert {(s["phase"], s["reason"], s["attempt"]) for s in await here.statuses()} == {("Invalid", "ImageUnavailable", 2)}
    assert await here.findings() == []


@report("05-a-namespace-goes-while-no-operator-runs")
async def report_05_a_namespace_goes_while_no_operator_runs(place: NewPlace) -> None:
    """ray 21684: a namespace with a custom resource stayed Terminating for ever, for its operator was gone before it."""
    here = await place("report-05")
    async with here.living():
        await here.apply("left", Gate())
        await running(here, "left-00000-a1", "left-00001-a1")
    await here.admin.send("DELETE", f"/api/v1/namespaces/{here.namespace}")

    async def gone() -> bool:
        try:
            await here.admin.send("GET", f"/api/v1/namespaces/{here.namespace}")
        except NotFound:
            return True
        return False

    await wait_for(gone, "the namespace is gone")
    async with here.living() as life:
        assert life.layer.problems() == []
    assert life.transport.writes == [], "one that starts after it has nothing to do there"


@report("06-what-was-there-before-and-while-it-started")
async def report_06_what_was_there_before_and_while_it_started(place: NewPlace) -> None:
    """ray 15744: a resource made before, or just while, the operator started was never seen."""
    here = await place("report-06")
    listed = asyncio.Event()
    start = only(lambda asked: asked.is_list and asked.path.endswith("/pods"), Fault(held=listed))
    await here.apply("before")
    async with here.proxied(start) as proxy, here.living(url=proxy.url, wait=False) as life:
        await wait_for(lambda: any(request.endswith("/pods") for request in life.transport.requests), "it has listed sweeps")
        await here.apply("while")
        listed.set()
        await wait_for(lambda: life.layer.started, "it has started")
        await here.apply("after")
        for name in ("before", "while", "after"):
            await here.until_over(name)
    assert await here.findings() == []


@report("07-an-api-server-that-was-away")
async def report_07_an_api_server_that_was_away(place: NewPlace) -> None:
    """ray 22514: an operator whose connections had been refused for a while never worked again."""
    here = await place("report-07")
    gate = Gate()
    client = ClientSettings(writes_per_second=1000, write_burst=100, tries=2, retry_base=0.02, retry_cap=0.1)
    async with here.proxied() as proxy, here.living(url=proxy.url, client=client) as life:
        await here.apply("away", gate)
        await running(here, "away-00000-a1", "away-00001-a1")
        proxy.rules.append(only(lambda asked: True, Fault(refused=True)))
        proxy.drop()
        gate.open()
        await wait_for(lambda: proxy.seen["refused"] >= 20, "it is refused again and again")
        proxy.rules.clear()
        await here.until_over("away")
        assert life.layer.problems() == []
    assert await here.findings() == []
    assert {trial["attempt"] for trial in await here.statuses()} == {1}


@report("08-pods-deleted-while-no-operator-ran")
async def report_08_pods_deleted_while_no_operator_ran(place: NewPlace) -> None:
    """Twingate 161: a pod deleted while the operator was down was never replaced."""
    here = await place("report-08")
    work, verify = Gate("work"), Gate("verify")

    def script(seen: Seen) -> Act | None:
        return work(seen) if seen.trial == "down-00000" else verify(seen)

    async with here.living():
        await here.apply("down", script)
        await running(here, "down-00000-a1", "down-00001-a1-v1")
    for name in ("down-00000-a1", "down-00001-a1-v1"):
        await here.admin.send("DELETE", f"{here.core}/pods/{name}")

    async def deleted() -> bool:
        return not {"down-00000-a1", "down-00001-a1-v1"} & (await here.pods()).keys()

    await wait_for(deleted, "the kubelet has confirmed both")
    work.open()
    verify.open()
    async with here.living():
        await here.until_over("down")
    first, second = await here.statuses()
    assert (first["attempt"], first["lastInvalidReason"]) == (2, "PodLost")
    assert (second["attempt"], second["invalidAttempts"], second["verifyAttempt"]) == (1, 0, 2), "what was sealed is not lost"
    assert await here.findings() == []


@report("09-an-upgrade-is-a-plain-start")
async def report_09_an_upgrade_is_a_plain_start(place: NewPlace) -> None:
    """Twingate 673: an upgrade deleted all pods, and new ones came after a person had edited something."""
    here = await place("report-09")
    gate = Gate()
    async with here.living():
        await here.apply("same", gate)
        await running(here, "same-00000-a1", "same-00001-a1")
    before = {name: pod["metadata"]["uid"] for name, pod in (await here.pods()).items()}
    settings = settings_for(here.namespace)
    images = settings.images.model_copy(update={"session": "example/session:2", "toolkit": "example/toolkit:2"})
    newer = settings_for(here.namespace, version="99.0.0", images=images)
    async with here.living(settings=newer) as life:
        await wait_for(lambda: life.layer.queue.stats().done >= 3, "it has looked at everything")
        assert {name: pod["metadata"]["uid"] for name, pod in (await here.pods()).items()} == before
        gate.open()
        await here.until_over("same")
        assert not any(write.startswith("DELETE") and "jobs" in write for write in life.transport.writes)
    assert {trial["attempt"] for trial in await here.statuses()} == {1}
    assert await here.findings() == []


@report("10-what-stays-away-ends-with-a-reason")
async def report_10_what_stays_away_ends_with_a_reason(place: NewPlace) -> None:
    """Twingate 596: the thing outside was gone for good, and the operator updated its object every minute for ever."""
    here = await place("report-10")

    def script(seen: Seen) -> Act:
        if seen.role == "verify":
            return Act(say("Verify", Result.REFUSED, reason="StorageUnavailable", message="503 from the bucket"))
        return happy(seen)

    async with here.living(policy=Policy(verify_pods=4, max_backoff=0.5)) as life:
        await here.apply("outside", script)
        await here.until_over("outside", "Incomplete")
        verifies = [write for write in life.transport.writes if write.startswith("POST") and "-v" in write.rsplit("/", 1)[-1]]
        assert len([write for write in verifies if "/pods/" in write]) == 8, "four of each trial"
    assert {(s["phase"], s["reason"]) for s in await here.statuses()} == {("Invalid", "StorageUnavailable")}
    assert all("503 from the bucket" in status["message"] for status in await here.statuses())


@report("11-and-15-no-finalizer-is-added-and-none-removed")
async def report_11_and_15_no_finalizer_is_added_and_none_removed(place: NewPlace) -> None:
    """remove-empty-ns-operator 5: namespaces stayed Terminating by a finalizer of the operator. kopf 664: an operator made with
    kopf removed that of another one. Here kopf runs, as it does in a cluster."""
    here = await place("report-11")
    theirs = ["example.com/other", "kopf.zalando.org/KopfFinalizerMarker"]
    gate = Gate()
    operator = here.process()
    operator.start()
    await here.apply("kept", gate)
    await here.admin.merge(f"{here.sweeps}/kept", {"metadata": {"finalizers": theirs}})
    await running(here, "kept-00000-a1", "kept-00001-a1")
    for path in (here.trials, f"{here.core}/pods", f"/apis/batch/v1/namespaces/{here.namespace}/jobs"):
        for item in (await here.admin.send("GET", path))["items"]:
            ours = [f for f in item["metadata"].get("finalizers", ()) if not f.startswith("batch.kubernetes.io/")]
            assert ours == [], item["metadata"]["name"]
            assert not [a for a in item["metadata"].get("annotations", ()) if "kopf" in a]
    gate.open()
    await here.until_over("kept")
    assert (await here.sweep("kept"))["metadata"]["finalizers"] == theirs
    await here.admin.send("DELETE", f"{here.sweeps}/kept")

    async def doomed() -> bool:
        return "deletionTimestamp" in (await here.sweep("kept"))["metadata"]

    await wait_for(doomed, "it is deleted, and waits for the others")
    assert (await here.sweep("kept"))["metadata"]["finalizers"] == theirs
    await here.admin.merge(f"{here.sweeps}/kept", {"metadata": {"finalizers": []}})
    operator.end()
    assert "Traceback" not in operator.log.read_text(), str(operator)


@report("12-what-is-refused-is-not-tried-without-end-pods", "pods")
@report("12-what-is-refused-is-not-tried-without-end-jobs", "jobs")
async def report_12_what_is_refused_is_not_tried_without_end(place: NewPlace, plural: str) -> None:
    """amalthea 8: a creation that the API server refused was tried again without limit."""
    here = await place(f"report-12-{plural}")
    quota = only(lambda asked: asked.is_write and asked.method == "POST" and asked.path.endswith(f"/{plural}"), Fault(status=403))
    await here.apply("quota")
    once = ResyncSettings(first=NEVER, period=NEVER)  # each look at the sweep may try again, and one comes every minute
    async with here.proxied(quota) as proxy, here.living(url=proxy.url, sweep_resync=once) as life:
        if plural == "pods":
            await here.until_over("quota", "Incomplete")
            assert {(s["phase"], s["reason"]) for s in await here.statuses()} == {("Invalid", "ConfigurationError")}
        else:

            async def told() -> bool:
                conditions = (await here.sweep("quota")).get("status", {}).get("conditions", [])
                return any(c["type"] == "Ready" and c["reason"] == "ConfigurationError" for c in conditions)

            await wait_for(told, "the sweep says that its Job is refused")
        tries = [request for request in life.transport.requests if request.startswith("POST") and request.endswith(f"/{plural}")]
        assert len(tries) == {"pods": 2, "jobs": 1}[plural]


@report("13-a-deadline-needs-no-event")
async def report_13_a_deadline_needs_no_event(place: NewPlace) -> None:
    """anarchy 53: what was to run later never ran, for nothing changed that would have woken it."""
    here = await place("report-13")

    def script(seen: Seen) -> Act:
        return Act(unscheduled=True) if seen.role == "work" else happy(seen)

    async with here.living():
        await here.apply("full", script, limits={"pending": "1s"})
        await here.until_over("full", "Incomplete")
    assert {(s["phase"], s["reason"], s["attempt"]) for s in await here.statuses()} == {("Invalid", "SetupTimeout", 2)}
    assert all("limits.pending (1s)" in status["message"] for status in await here.statuses())


@report("14-a-watch-without-a-byte-is-replaced")
async def report_14_a_watch_without_a_byte_is_replaced(place: NewPlace) -> None:
    """nuvolaris-operator 84: a load balancer forgot idle watches, whose streams stayed open and silent."""
    here = await place("report-14")
    silent: set[str] = set()

    def forgotten(asked: Asked) -> Fault | None:
        if not asked.is_watch or asked.path in silent:
            return None
        silent.add(asked.path)
        return Fault(silent=True)

    watch = WatchSettings(silence=1.0, pause=0.02)
    async with here.proxied(forgotten) as proxy, here.living(url=proxy.url, watch=watch) as life:
        await here.apply("silent")
        await here.until_over("silent")
        assert len(silent) == 3
        assert life.count("realcli_watch_ends_total", kind="pod", cause="silent") >= 1
        assert life.count("realcli_lists_total", kind="pod", cause="relist") == 0
    assert await here.findings() == []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def begun(
    request: pytest.FixtureRequest, kubelet: Any, control_plane: Any, new_operator: Any
) -> AsyncIterator[dict[str, asyncio.Task[None]]]:
    """Name of a report -> its task; those that were selected."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function) and item.path == request.path]
    admin = Admin(control_plane)
    async with places(kubelet, control_plane, admin, new_operator) as place:
        names = [str(item.callspec.params["name"]) for item in items]
        tasks = {name: asyncio.create_task(REPORTS[name](place), name=name) for name in names}
        yield tasks
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
    await admin.transport.close()


@pytest.mark.parametrize("name", REPORTS)
async def test_report(begun: dict[str, asyncio.Task[None]], name: str) -> None:
    await begun[name]
