"""Both reconcilers on the cluster in memory: the whole flow, what it costs, and what overlapping writers meet."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from realcli.api.outcomes import Phase
from realcli.api.plan import PLAN_BEGIN, PLAN_END, encode_plan
from realcli.api.termination import Result
from realcli.api.trial import TrialStatus
from realcli_operator.execute import Executor
from realcli_operator.handlers import SweepReconciler, TrialReconciler
from realcli_operator.kube.errors import Forbidden, Invalid, ServerError, Stale
from realcli_operator.kube.fake import FakeCluster
from realcli_operator.kube.fake_api import FakeKubeApi
from realcli_operator.kube.names import LABEL_MANAGED_BY, LABEL_ROLE, LABEL_SWEEP, Kind, trial_key
from realcli_operator.kube.queue import Backoff
from realcli_operator.kube.route import Hint, route
from realcli_operator.kube.store import Store
from realcli_operator.kube.views import View
from realcli_operator.layer import LayerSettings, WatchLayer
from realcli_operator.observe import Observer
from realcli_operator.reconcile.policy import Policy
from realcli_operator.settings import Settings

TIMES = {"startTime": "2026-12-01T00:00:00Z", "completionTime": "2026-12-01T00:00:10Z"}


@dataclass
class Machine:
    """Kubelet and Job controller, moved by hand."""

    a: Any
    cluster: FakeCluster
    layer: WatchLayer
    observer: Observer

    def turn(self) -> None:
        """Every Job gets its pod, every pod ends well."""
        for job in self.cluster.objects(Kind.JOB):
            if not job.get("status"):
                self.run_job(job)
        for pod in self.cluster.objects(Kind.POD):
            if pod["status"]["phase"] == "Pending":
                self.end(pod)

    def run_job(self, job: Any) -> None:
        template = job["spec"]["template"]
        name, uid = job["metadata"]["name"], job["metadata"]["uid"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": True}
        metadata = template["metadata"] | {"name": f"{name}-x", "namespace": "one", "ownerReferences": [owner]}
        before = len(self.cluster.calls)
        self.cluster.create(Kind.POD, {"metadata": metadata, "spec": template["spec"]})
        del self.cluster.calls[before:]
        self.end(self.cluster.get(Kind.POD, "one", f"{name}-x"))
        del self.cluster.calls[before:]
        condition = {"type": "Complete", "status": "True", "lastTransitionTime": "2026-12-01T00:00:10Z"}
        self.cluster.set_status(Kind.JOB, "one", name, TIMES | {"succeeded": 1, "conditions": [condition]})

    def end(self, pod: Any) -> None:
        role = pod["metadata"]["labels"][LABEL_ROLE]
        state = {"exitCode": 0, "reason": "Completed", "startedAt": "2026-12-01T00:00:01Z", "finishedAt": "2026-12-01T00:00:09Z"}
        statuses = [
            {"name": container["name"], "state": {"terminated": state | {"message": self.message(role, pod)}}}
            for container in pod["spec"]["containers"]
        ]
        status = {"phase": "Succeeded", "containerStatuses": statuses}
        self.cluster.set_status(Kind.POD, "one", pod["metadata"]["name"], status)

    def message(self, role: str, pod: Any) -> str:
        a = self.a
        match role:
            case "plan":
                (sweep,) = self.cluster.objects(Kind.SWEEP)
                plan = a.plan(repeats=2, sweep_uid=sweep["metadata"]["uid"])
                log = "\n".join((PLAN_BEGIN, encode_plan(plan), PLAN_END)).encode()
                self.cluster.logs[("one", pod["metadata"]["name"], "plan")] = log
                return str(a.message("Plan", Result.PLANNED, seal=plan.content_digest()))
            case "work":
                return str(a.work_sealed())
            case "verify":
                return str(a.verdict())
            case "judge":
                return str(a.message("Judge", Result.JUDGED, seal=a.seal))
        row = {"configuration": "claude-code.sonnet", "rExec": "1.000"}
        return str(a.message("Report", Result.REPORTED, scores=[row], uri="s3://evals/r", seal=a.seal))

    @property
    def status(self) -> Any:
        (sweep,) = self.cluster.objects(Kind.SWEEP)
        return sweep.get("status", {})

    def trials(self) -> list[Any]:
        return [trial.get("status", {}) for trial in self.cluster.objects(Kind.TRIAL)]

    async def until(self, condition: Any, what: str) -> None:
        for _ in range(3000):
            if condition():
                return
            self.turn()
            await asyncio.sleep(0.005)
        raise AssertionError(f"{what}: {self.status} {self.trials()} {self.layer.problems()}")


def at_once(view: View) -> tuple[Hint, ...]:
    """The routes of the operator without the sweep's debounce."""
    return tuple(hint._replace(after=0.0) for hint in route(view))


@asynccontextmanager
async def running(a: Any, **spec: Any) -> AsyncIterator[Machine]:
    cluster = FakeCluster()
    body = a.spec(**({"retry": {"backoff": "10ms"}} | spec)).dump()
    cluster.create(Kind.SWEEP, {"metadata": {"namespace": "one", "name": "first"}, "spec": body})
    cluster.calls.clear()
    layer = WatchLayer(cluster, LayerSettings(key_backoff=Backoff(base=0.01, cap=0.05)), router=at_once)
    api = FakeKubeApi(cluster)
    settings = Settings(images=a.platform().images)
    observer = Observer(api, layer.store, settings, layer.clock, Policy())
    executor = Executor(api, layer.store, layer.sink)
    await layer.start(
        {Kind.TRIAL: TrialReconciler(observer, executor), Kind.SWEEP: SweepReconciler(observer, executor, layer.queue)}
    )
    try:
        yield Machine(a, cluster, layer, observer)
    finally:
        await layer.stop()


async def test_a_trial_costs_eight_writes_and_no_read(a: Any) -> None:
    async with running(a) as machine:
        await machine.until(lambda: machine.status.get("state") == "Complete", "complete")
        await machine.until(lambda: len(machine.cluster.objects(Kind.POD)) == 3, "only pods of Jobs are left")
        calls = Counter((call.verb, call.kind) for call in machine.cluster.calls)
    assert {(t["phase"], t["reason"], t["reward"]) for t in machine.trials()} == {("Sealed", "Completed", "1")}
    trials = 4
    assert calls[("create", "trial")] == trials
    assert calls[("create", "pod")] == 2 * trials + 2, "and two dry runs of the probe"
    assert calls[("apply_status", "trial")] == 3 * trials
    assert calls[("delete", "pod")] == 2 * trials
    assert calls[("get", "pod")] == calls[("get", "trial")] == calls[("get", "job")] == 0
    assert calls[("get", "configmap")] == 1, "looked for once"
    assert calls[("create", "job")] == 3
    assert calls[("apply_status", "sweep")] <= 8


async def test_an_api_server_that_stumbles_changes_nothing(a: Any) -> None:
    async with running(a) as machine:
        for verb, kind in (("create", "trial"), ("create", "pod"), ("create", "job"), ("create", "configmap")):
            machine.cluster.fail(verb, kind, ServerError("etcd is away", status=503), times=2)
        for kind in ("trial", "sweep"):
            machine.cluster.fail("apply_status", kind, ServerError("etcd is away", status=503), times=2)
        machine.cluster.fail("delete", "pod", ServerError("etcd is away", status=503), times=2)
        machine.cluster.fail("read_log", "pod", ServerError("kubelet is away", status=502), times=2)
        machine.cluster.fail("create", "event", ServerError("events are away", status=503), times=99)
        await machine.until(lambda: machine.status.get("state") == "Complete", "complete")
    assert {t["attempt"] for t in machine.trials()} == {1}


async def test_a_refused_work_pod_is_a_configuration_error(a: Any) -> None:
    async with running(a) as machine:

        def admit(kind: str, manifest: Any) -> None:
            if kind == Kind.POD and manifest["metadata"]["name"].endswith("00000-a1"):
                raise Forbidden('pods "x" is forbidden: violates PodSecurity', status=403, reason="Forbidden")

        machine.cluster.admit = admit
        await machine.until(lambda: machine.status.get("state") == "Incomplete", "incomplete")
    first = machine.trials()[0]
    assert (first["phase"], first["reason"]) == ("Invalid", "ConfigurationError")
    assert "violates PodSecurity" in first["message"]
    assert "reward" not in first


async def test_a_quota_that_is_full_for_now_costs_no_trial(a: Any) -> None:
    """A sweep that may have more pods than its namespace lost a trial with each that did not fit."""
    full = 'pods "x" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=3, limited: pods=3'
    async with running(a) as machine:

        def admit(kind: str, manifest: Any) -> None:
            if kind == Kind.POD and manifest["metadata"]["name"].endswith("00000-a1"):
                raise Forbidden(full, status=403, reason="Forbidden")

        machine.cluster.admit = admit

        def ready() -> Any:
            return next((c for c in machine.status.get("conditions", ()) if c["type"] == "Ready"), {})

        await machine.until(lambda: full in ready().get("message", ""), "the sweep says so")
        assert (ready()["status"], ready()["reason"]) == ("False", "ConfigurationError")
        await machine.until(lambda: sum(t.get("phase") == "Sealed" for t in machine.trials()) == 3, "the others go on")
        first = machine.trials()[0]
        assert (first["phase"], "exceeded quota" in first["message"]) == ("Pending", True)
        machine.cluster.admit = None
        machine.layer.queue.add(trial_key("one", "first-00000"))
        await machine.until(lambda: machine.status.get("state") == "Complete", "complete")
        assert ready()["status"] == "True"
    assert {t["attempt"] for t in machine.trials()} == {1}


async def test_a_refused_verify_pod_keeps_the_work_and_says_so(a: Any) -> None:
    async with running(a) as machine:

        def admit(kind: str, manifest: Any) -> None:
            if kind == Kind.POD and manifest["metadata"]["name"].endswith("-v1"):
                raise Forbidden('pods "x" is forbidden: exceeded quota', status=403, reason="Forbidden")

        machine.cluster.admit = admit
        await machine.until(lambda: any("exceeded quota" in t.get("message", "") for t in machine.trials()), "it says so")
        await machine.until(lambda: all(t.get("phase") == "Working" for t in machine.trials()[:2]), "the work is not lost")


async def test_a_foreign_job_blocks_with_its_name(a: Any) -> None:
    async with running(a, suspend=True) as machine:
        await machine.until(lambda: machine.status.get("state") == "Suspended", "suspended")
        foreign = {"metadata": {"namespace": "one", "name": "first-plan"}, "spec": {"template": {"metadata": {}, "spec": {}}}}
        machine.cluster.create(Kind.JOB, foreign)
        raw = machine.cluster.update(Kind.SWEEP, "one", "first", lambda sweep: sweep["spec"].update(suspend=False))
        machine.turn = lambda: None  # type: ignore[method-assign]
        machine.layer.take_sweep_event("MODIFIED", raw)

        def blocked() -> bool:
            conditions = {c["type"]: c for c in machine.status["conditions"]}
            return "Job one/first-plan exists and is not ours" in conditions.get("Ready", {}).get("message", "")

        await machine.until(blocked, "the condition names it")
        assert machine.cluster.objects(Kind.TRIAL) == []


async def resume(machine: Machine) -> None:
    raw = machine.cluster.update(Kind.SWEEP, "one", "first", lambda sweep: sweep["spec"].update(suspend=False))
    machine.layer.take_sweep_event("MODIFIED", raw)


def owned(name: str, kind: str, owner: str) -> dict[str, Any]:
    """What an earlier object ``owner`` owned, and the garbage collector has not come for yet."""
    reference = {"apiVersion": "realcli.dev/v1alpha1", "kind": kind, "name": owner, "uid": "of-the-earlier-one"}
    metadata = {"namespace": "one", "name": name, "ownerReferences": [reference | {"controller": True}]}
    return {"metadata": metadata, "spec": {}, "status": {"phase": "Running"}}


async def test_the_pod_of_an_earlier_trial_of_that_name_is_waited_for(a: Any) -> None:
    """Trials come back under their names: after a deletion by hand, or with a new sweep of the same name."""
    async with running(a, suspend=True) as machine:
        machine.cluster.create(Kind.POD, owned("first-00000-a1", "Trial", "first-00000"))
        await resume(machine)
        await machine.until(lambda: sum(t.get("phase") == "Sealed" for t in machine.trials()) == 3, "the others go on")
        first = machine.trials()[0]
        assert first.get("phase") not in ("Sealed", "Invalid")
        machine.cluster.delete(Kind.POD, "one", "first-00000-a1")
        await machine.until(lambda: machine.status.get("state") == "Complete", "complete")
    assert {t["attempt"] for t in machine.trials()} == {1}


async def test_a_trial_of_an_earlier_sweep_of_that_name_is_waited_for_and_shown(a: Any) -> None:
    async with running(a, suspend=True) as machine:
        machine.cluster.create(Kind.TRIAL, owned("first-00002", "BenchmarkSweep", "first"))
        await resume(machine)

        def ready() -> Any:
            return next((c for c in machine.status.get("conditions", ()) if c["type"] == "Ready"), {})

        await machine.until(lambda: ready().get("reason") == "StillDeleting", "it says so")
        assert "one/first-00002" in ready()["message"]
        await machine.until(lambda: sum(t.get("phase") == "Sealed" for t in machine.trials()) == 2, "what is there goes on")


async def test_a_trial_deleted_by_hand_comes_back_and_counts_once(a: Any) -> None:
    async with running(a) as machine:
        await machine.until(lambda: any(t.get("phase") == "Sealed" for t in machine.trials()), "one is sealed")
        machine.cluster.delete(Kind.TRIAL, "one", "first-00000")
        await machine.until(lambda: machine.status.get("state") == "Complete", "complete")
    assert machine.status["counts"]["sealed"] == machine.status["counts"]["created"] == 4
    assert len(machine.trials()) == 4


@pytest.mark.parametrize(
    "error",
    [
        Forbidden('pods is forbidden: User "operator" cannot create resource "pods" in API group ""', status=403),
        Forbidden("Unauthorized", status=401),
    ],
)
async def test_a_permission_that_the_operator_lacks_costs_no_trial(a: Any, error: Forbidden) -> None:
    async with running(a) as machine:

        def admit(kind: str, manifest: Any) -> None:
            if kind == Kind.POD and manifest["metadata"]["name"].endswith("-a1"):
                raise error

        machine.cluster.admit = admit
        await machine.until(lambda: all("refuses" in t.get("message", "") for t in machine.trials() or [{}]), "they say so")
        assert {t["phase"] for t in machine.trials()} == {"Pending"}


async def test_a_cluster_that_takes_no_pod_now_is_not_a_cluster_without_features(a: Any) -> None:
    """The answer is kept for the whole sweep: user namespaces must not be lost to a quota, or to a namespace a second old."""
    async with running(a) as machine:

        def admit(kind: str, manifest: Any) -> None:
            if kind == Kind.POD:
                raise Forbidden('error looking up service account one/default: serviceaccount "default" not found', status=403)

        machine.cluster.admit = admit

        def ready() -> Any:
            return next((c for c in machine.status.get("conditions", ()) if c["type"] == "Ready"), {})

        await machine.until(lambda: "serviceaccount" in ready().get("message", ""), "it says why")
        assert machine.cluster.objects(Kind.JOB) == []
        (sweep,) = machine.layer.store.sweeps()
        machine.cluster.admit = None
        platform = await machine.observer.platform(sweep)
        assert (platform.user_namespaces, platform.image_volumes) == (True, True)


async def test_a_cluster_that_refuses_the_feature_alone_is_used_without(a: Any) -> None:
    async with running(a, suspend=True) as machine:

        def admit(kind: str, manifest: Any) -> None:
            if kind == Kind.POD and manifest["spec"].get("volumes"):
                raise Invalid("spec.volumes[0].image: Forbidden: may not be used", status=422)

        machine.cluster.admit = admit
        (sweep,) = machine.layer.store.sweeps()
        platform = await machine.observer.platform(sweep)
    assert (platform.user_namespaces, platform.image_volumes) == (True, False)


@pytest.mark.parametrize(("kind", "what"), [("trial", "Trial one/first-00000: status.attempt"), ("sweep", "spec.colour")])
async def test_an_object_that_cannot_be_read_says_so(a: Any, kind: str, what: str) -> None:
    """Of a newer version's CRD, say. No decision is possible, so an event is all that can be shown."""
    async with running(a) as machine:
        await machine.until(lambda: len(machine.trials()) == 4, "trials")
        if kind == "trial":
            machine.cluster.update(Kind.TRIAL, "one", "first-00000", lambda t: t.update(status={"attempt": "two"}))
        else:
            raw = machine.cluster.update(Kind.SWEEP, "one", "first", lambda sweep: sweep["spec"].update(colour="red"))
            machine.layer.take_sweep_event("MODIFIED", raw)
        await machine.until(lambda: any(what in e["message"] for e in machine.cluster.objects("event")), "an event")


async def test_a_pod_that_vanished_before_any_status_knew_it_costs_an_attempt_not_the_trial(a: Any) -> None:
    """Its name is used again, its successor finds the storage taken and no seal in it: a new attempt has a new number."""
    async with running(a) as machine:
        plain = machine.message

        def message(role: str, pod: Any) -> str:
            name = pod["metadata"]["name"]
            if name == "first-00000-a1":
                return str(a.work_invalid("StorageUnavailable", "run.json holds other bytes; nothing was written"))
            return str(a.no_work_seal()) if name == "first-00000-a1-v1" else plain(role, pod)

        machine.message = message  # type: ignore[method-assign]
        await machine.until(lambda: machine.status.get("state") == "Complete", "complete")
    first = machine.trials()[0]
    assert (first["phase"], first["attempt"], first["invalidAttempts"]) == ("Sealed", 2, 1)
    assert first["lastInvalidReason"] == "StorageUnavailable"


async def test_an_operator_that_is_behind_overwrites_nothing(a: Any) -> None:
    """Two at once: the one that still sees Verifying, and not the pod that is deleted already, must not take the end back."""
    cluster = FakeCluster()
    uid = cluster.create(Kind.TRIAL, {"metadata": {"namespace": "one", "name": "first-00000"}, "spec": {}})["metadata"]["uid"]
    api = FakeKubeApi(cluster)
    seen = await api.get_trial("one", "first-00000")
    store = Store()
    store.put(seen)
    told: list[View] = []
    executor = Executor(api, store, lambda view, _: told.append(view))
    sealed = TrialStatus(phase=Phase.SEALED, reason="Completed", reward="1")
    cluster.apply_status(Kind.TRIAL, "one", "first-00000", uid, sealed.dump())
    with pytest.raises(Stale):
        await executor.write_trial_status(seen, TrialStatus(phase=Phase.VERIFYING, attempt=1, verify_attempt=1, verify_faults=1))
    assert cluster.objects(Kind.TRIAL)[0]["status"] == sealed.dump()
    known = store.trial("one", "first-00000")
    assert known is not None
    assert known.phase == "Sealed", "the next decision is made on what is true"
    assert told == [known]
    assert await executor.write_trial_status(seen, sealed), "the same again is no conflict"


async def test_a_sweep_goes_after_its_time(a: Any) -> None:
    async with running(a, ttlAfterFinished="1s") as machine:
        for _ in range(3000):
            if not machine.cluster.objects(Kind.SWEEP):
                break
            machine.turn()
            await asyncio.sleep(0.005)
        assert machine.cluster.objects(Kind.SWEEP) == []
        assert [call.name for call in machine.cluster.calls if (call.verb, call.kind) == ("delete", "sweep")] == ["first"]


@pytest.mark.parametrize(("asked", "used"), [("Auto", True), ("Always", True), ("Never", False)])
async def test_a_sweep_may_say_whether_its_pods_get_user_namespaces(a: Any, asked: str, used: bool) -> None:
    async with running(a, suspend=True, pods={"userNamespaces": asked}) as machine:
        (sweep,) = machine.layer.store.sweeps()
        assert (await machine.observer.platform(sweep)).user_namespaces is used


async def test_a_trial_without_its_labels_is_still_the_sweep_s(a: Any) -> None:
    """Somebody took them away: what the trial belongs to its spec says, which nobody can change."""
    async with running(a) as machine:
        await machine.until(machine.trials, "there are trials")
        before = len(machine.cluster.calls)
        machine.cluster.update(Kind.TRIAL, "one", "first-00001", lambda trial: trial["metadata"].update(labels={}))
        await machine.until(lambda: machine.status.get("state") == "Complete", "complete")
        made = Counter((call.verb, call.kind) for call in machine.cluster.calls[before:])
    assert made[("create", "trial")] <= 4
    assert [t["phase"] for t in machine.trials()] == ["Sealed"] * 4


@pytest.mark.parametrize("label", [LABEL_SWEEP, LABEL_MANAGED_BY])
async def test_a_job_without_a_label_of_ours_is_named_and_not_waited_for_in_silence(a: Any, label: str) -> None:
    async with running(a, suspend=True) as machine:

        def unlabelled(kind: str, manifest: Any) -> None:
            if kind == Kind.JOB and manifest["metadata"]["name"] == "first-j0000":
                machine.cluster.admit = None
                metadata = manifest["metadata"] | {
                    "labels": {k: v for k, v in manifest["metadata"]["labels"].items() if k != label}
                }
                machine.cluster.create(Kind.JOB, {**manifest, "metadata": metadata})

        machine.cluster.admit = unlabelled
        await resume(machine)

        def told() -> bool:
            ready = next((c for c in machine.status.get("conditions", ()) if c["type"] == "Ready"), {})
            return f"Job one/first-j0000 has lost its label {label}" in ready.get("message", "")

        await machine.until(told, "the condition names job and label")
