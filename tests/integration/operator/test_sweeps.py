"""The operator as a process on a real API server and controller manager; pods are moved by a stub kubelet."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from realcli_operator.kube.errors import NotFound

pytestmark = pytest.mark.apiserver
FAULTS = ("after-trial", "after-pod", "after-status", "after-judge-job", "after-report")


class Cluster:
    """Reads and writes of a test in one namespace."""

    def __init__(self, admin: Any, tools: Any, wait_for: Any, namespace: str) -> None:
        self.admin, self.tools, self.wait_for, self.namespace = admin, tools, wait_for, namespace
        self.sweeps = f"{tools.group}/{namespace}/benchmarksweeps"
        self.trials = f"{tools.group}/{namespace}/trials"
        self.core = f"/api/v1/namespaces/{namespace}"

    async def apply(self, name: str, **spec: Any) -> None:
        await self.admin.send("POST", self.sweeps, self.tools.sweep(name, **spec))

    async def sweep(self, name: str) -> Any:
        return await self.admin.send("GET", f"{self.sweeps}/{name}")

    async def trials_of(self, name: str) -> list[Any]:
        selector = f"labelSelector=realcli.dev%2Fsweep%3D{name}"
        return list((await self.admin.send("GET", f"{self.trials}?{selector}"))["items"])

    async def pods_of(self, name: str) -> list[str]:
        selector = f"labelSelector=realcli.dev%2Fsweep%3D{name}"
        return [pod["metadata"]["name"] for pod in (await self.admin.send("GET", f"{self.core}/pods?{selector}"))["items"]]

    async def until(self, name: str, *states: str) -> Any:
        async def reached() -> Any:
            found = await self.sweep(name)
            return found if found.get("status", {}).get("state") in states else None

        return await self.wait_for(reached, f"sweep {name} is {' or '.join(states)}")

    async def condition(self, name: str, type_: str, reason: str) -> Any:
        async def reached() -> Any:
            conditions = (await self.sweep(name)).get("status", {}).get("conditions", [])
            return next((c for c in conditions if c["type"] == type_ and c["reason"] == reason), None)

        return await self.wait_for(reached, f"sweep {name} has {type_}/{reason}")


@pytest.fixture(scope="module")
def calm(kubelet: Any, new_operator: Any) -> Iterator[Any]:
    """An operator that nothing happens to, for the namespace ``one``."""
    kubelet.namespaces.add("one")
    operator = new_operator("one")
    operator.start()
    yield operator
    operator.end()
    text = operator.log.read_text()
    assert "Traceback" not in text, text[-6000:]


@pytest.fixture
def one(calm: Any, admin: Any, tools: Any, wait_for: Any) -> Cluster:
    return Cluster(admin, tools, wait_for, "one")


async def test_a_sweep_goes_from_apply_to_scores(one: Cluster, kubelet: Any) -> None:
    await one.apply("whole")
    sweep = await one.until("whole", "Complete", "Failed", "Incomplete")
    status = sweep["status"]
    assert status["state"] == "Complete"
    assert (status["trials"], status["counts"]["sealed"], status["counts"]["groupsJudged"]) == ("2/2", 2, 1)
    assert (status["rExec"], status["s"], status["reportURI"]) == ("1.000", "0.500~", "s3://evals/report/index.html")
    assert {c["type"]: c["status"] for c in status["conditions"]} == {"Complete": "True", "Planned": "True", "Ready": "True"}
    assert "annotations" not in sweep["metadata"]
    assert "finalizers" not in sweep["metadata"]
    for trial in await one.trials_of("whole"):
        ended = trial["status"]
        assert (ended["phase"], ended["reason"], ended["reward"], ended["attempt"]) == ("Sealed", "Completed", "1", 1)
        assert (ended["turns"], ended["checks"], ended["node"]) == (7, {"passed": 8, "total": 8}, "stub")
        assert ended["workSealDigest"] != ended["sealDigest"]
    assert not [name for name in await one.pods_of("whole") if "-a1" in name], "finished pods go when their outcome is recorded"
    plan = await one.admin.send("GET", f"{one.core}/configmaps/whole-plan")
    assert plan["immutable"] is True


async def test_another_sweep_s_runs_are_verified_and_judged_again(one: Cluster, kubelet: Any, tools: Any) -> None:
    def script(seen: Any) -> Any:
        if seen.role != "verify":
            return tools.happy(seen)
        values = {"reason": "Completed", "workEnd": "Completed", "reward": "1", "workSeal": seen.own_seal, "uri": "s3://evals/x"}
        return tools.Act(tools.say("Verify", "Verdict", seal=seen.own_seal, **values))

    async def anew(name: str, source: str, *phases: str) -> None:
        body = tools.sweep(name)
        body["spec"] = {"from": {"sweep": source, "phases": phases}, "storage": body["spec"]["storage"], "repeats": 1}
        await one.admin.send("POST", one.sweeps, body)

    kubelet.scripts["verified-anew"] = script
    await anew("judged-anew", "ran-once", "Judge")
    waits = await one.condition("judged-anew", "Ready", "SourceNotFound")
    assert "there is no sweep ran-once" in waits["message"]
    await anew("verified-anew", "ran-once", "Verify", "Judge")
    await one.apply("ran-once")
    await one.until("ran-once", "Complete")

    status = (await one.until("judged-anew", "Complete", "Failed", "Incomplete"))["status"]
    assert (status["state"], status["trials"], status["counts"]["created"], status["rExec"]) == ("Complete", "2/2", 0, "1.000")
    assert await one.trials_of("judged-anew") == []
    assert status["forecast"]["podHoursAtMost"] == "0.0"

    status = (await one.until("verified-anew", "Complete", "Failed", "Incomplete"))["status"]
    assert (status["state"], status["counts"]["sealed"]) == ("Complete", 2)
    for trial in await one.trials_of("verified-anew"):
        ended = trial["status"]
        assert (ended["phase"], ended["reward"], ended["ledgerURI"]) == ("Sealed", "1", "s3://evals/x/ledger")
    ran = [name for name in kubelet.history if name.startswith(("judged-anew-0", "verified-anew-0"))]
    assert sorted(ran) == ["verified-anew-00000-a1-v1", "verified-anew-00001-a1-v1"], "no agent runs"


async def test_an_invalid_attempt_is_followed_by_one_new_one(one: Cluster, kubelet: Any) -> None:
    def script(seen: Any) -> Any:
        if seen.role == "work" and seen.trial == "again-00000" and seen.attempt == "1":
            said = one.tools.say("Work", "WorkInvalid", reason="ProviderUnavailable", message="529 for ten minutes")
            return one.tools.Act(said)
        return one.tools.happy(seen)

    kubelet.scripts["again"] = script
    await one.apply("again")
    await one.until("again", "Complete")
    first, second = await one.trials_of("again")
    assert (first["status"]["phase"], first["status"]["attempt"], first["status"]["invalidAttempts"]) == ("Sealed", 2, 1)
    assert first["status"]["lastInvalidReason"] == "ProviderUnavailable"
    assert (second["status"]["attempt"], second["status"]["invalidAttempts"]) == (1, 0)
    ran = [name for name in kubelet.history if name.startswith("again-00000")]
    assert ran == ["again-00000-a1", "again-00000-a2", "again-00000-a2-v1"]


async def test_a_control_decides_what_tests_without_a_verdict_count_as(one: Cluster, kubelet: Any, tools: Any) -> None:
    """It passes: reward 0, the agent's doing. It fails: the task is withdrawn, as two trials met it."""

    def script(control: str) -> Any:
        def act(seen: Any) -> Any:
            if seen.role == "verify":
                said = {"reason": "VerifierTimeout", "message": "killed after 60 s", "workEnd": "Completed"}
                return tools.Act(tools.say("Verify", "NoVerdict", workSeal=seen.sealed, **said))
            if seen.role == "control" and control == "ControlFailed":
                return tools.Act(tools.say("Control", control, reason="NoReward", message="no reward file", seal=seen.own_seal))
            return tools.happy(seen)

        return act

    kubelet.scripts |= {name: script(said) for name, said in (("works", "ControlPassed"), ("spoilt", "ControlFailed"))}
    for name in ("works", "spoilt"):
        await one.apply(name, modes=["EXEC"], repeats=2, retry={"infrastructure": 0, "backoff": "1s"})

    status = (await one.until("works", "Complete", "Failed", "Incomplete"))["status"]
    assert (status["state"], [row["result"] for row in status["controls"]]) == ("Complete", ["Passed"])
    for trial in await one.trials_of("works"):
        ended = trial["status"]
        assert (ended["phase"], ended["reason"], ended["reward"]) == ("Sealed", "VerifierTimeout", "0")
        assert (ended["verifyAttempt"], ended["control"]["result"]) == (3, "Passed")
    (control,) = (name for name in kubelet.history if name.startswith("works-") and "-c" in name)
    assert {t["status"]["control"]["ordinal"] for t in await one.trials_of("works")} == {int(control.split("-")[1])}

    status = (await one.until("spoilt", "Complete", "Failed", "Incomplete"))["status"]
    assert (status["state"], status["withdrawn"][0]["task"]) == ("Incomplete", "log-triage")
    assert (status["counts"]["tasksWithdrawn"], status["counts"]["groupsWithdrawn"], status["counts"]["invalid"]) == (1, 1, 2)
    assert "scores" not in status or not status["scores"]
    assert {t["status"]["reason"] for t in await one.trials_of("spoilt")} == {"VerifierFault"}
    assert len([name for name in kubelet.history if name.startswith("spoilt-") and "-c" in name]) == 1


async def test_raised_retry_invalid_renews_what_ended_invalid_and_nothing_else(one: Cluster, kubelet: Any, tools: Any) -> None:
    away = asyncio.Event()

    def script(seen: Any) -> Any:
        if seen.role == "work" and seen.trial == "renewed-00001" and not away.is_set():
            return tools.Act(tools.say("Work", "WorkInvalid", reason="ProviderUnavailable", message="529 for ten minutes"))
        return tools.happy(seen)

    kubelet.scripts["renewed"] = script
    await one.apply("renewed", modes=["EXEC"], repeats=2, retry={"infrastructure": 0, "backoff": "1s"})
    status = (await one.until("renewed", "Complete", "Failed", "Incomplete"))["status"]
    assert (status["state"], status["counts"]["invalid"], status["counts"]["groupsIncomplete"]) == ("Incomplete", 1, 1)
    assert "rExec" not in status
    sealed = next(t["status"] for t in await one.trials_of("renewed") if t["metadata"]["name"] == "renewed-00000")

    path = f"{one.sweeps}/renewed"
    await one.admin.merge(path, {"spec": {"allowIncomplete": True}})

    async def shown() -> Any:
        return (await one.sweep("renewed"))["status"].get("rExec")

    assert await one.wait_for(shown, "the scores of the part are shown") == "1.000"
    away.set()
    await one.admin.merge(path, {"spec": {"retryInvalid": 1}})
    status = (await one.until("renewed", "Complete", "Failed"))["status"]
    first, second = (t["status"] for t in await one.trials_of("renewed"))
    assert first == sealed, "what is sealed is not touched"
    assert (second["phase"], second["attempt"], second["round"], second["invalidAttempts"]) == ("Sealed", 2, 2, 1)
    assert (status["round"], status["counts"]["invalid"]) == (2, 0)
    jobs = (await one.admin.send("GET", "/apis/batch/v1/namespaces/one/jobs?labelSelector=realcli.dev%2Fsweep%3Drenewed"))[
        "items"
    ]
    names = sorted(job["metadata"]["name"] for job in jobs)
    assert names == ["renewed-j0000", "renewed-j0000-r2", "renewed-plan", "renewed-report", "renewed-report-r2"]


async def test_what_breaks_is_stopped_cancelled_and_gone(one: Cluster, kubelet: Any, tools: Any) -> None:
    def refused(seen: Any) -> Any:
        if seen.role != "work":
            return tools.happy(seen)
        said = {"reason": "ProviderUnavailable", "message": "401 invalid x-api-key", "tokens": {"input": 9}, "throttled": "0.25"}
        return tools.Act(tools.say("Work", "WorkInvalid", **said))

    kubelet.scripts["broken"] = refused
    retry = {"infrastructure": 9, "backoff": "1s"}
    await one.apply("broken", repeats=8, modes=["EXEC"], retry=retry, budget={"tokens": 10**9})
    found = await one.condition("broken", "Degraded", "BreakerOpen")
    assert "configuration claude-code.sonnet" in found["message"]
    assert "401 invalid x-api-key" in found["message"]

    async def held() -> Any:
        trials = [trial.get("status", {}) for trial in await one.trials_of("broken")]
        return trials if [t for t in trials if t.get("reason") == "BreakerOpen"] else None

    trials = await one.wait_for(held, "trials say that the breaker holds them")
    assert len([name for name in kubelet.history if name.startswith("broken-0")]) <= 10
    assert {trial["throttled"] for trial in trials if trial.get("attempt")} == {"0.25"}
    assert (await one.sweep("broken"))["status"]["tokens"]["input"] >= 9

    path = f"{one.sweeps}/broken"
    await one.admin.merge(path, {"spec": {"cancel": True}})
    await one.condition("broken", "Complete", "Cancelled")
    assert {trial["status"]["reason"] for trial in await one.trials_of("broken")} == {"Cancelled"}
    await one.admin.merge(path, {"spec": {"ttlAfterFinished": "1s"}})

    async def gone() -> Any:
        try:
            await one.sweep("broken")
        except NotFound:
            return True
        return None

    await one.wait_for(gone, "the sweep is deleted")


async def test_what_may_be_changed_acts_at_once(one: Cluster, kubelet: Any, tools: Any) -> None:
    """Parallelism, the concurrency of a model, and the budget, each while it keeps trials from starting."""
    free: list[bool] = []
    kubelet.scripts["wider"] = lambda seen: tools.happy(seen) if free or seen.role != "work" else None
    path = f"{one.sweeps}/wider"

    async def running(number: int) -> None:
        async def reached() -> bool:
            return len([name for name in await one.pods_of("wider") if "-a1" in name]) == number

        await one.wait_for(reached, f"{number} pods")
        trials = await one.trials_of("wider")
        assert len([trial for trial in trials if trial.get("status", {}).get("phase") == "Working"]) <= number

    async def model(most: int | None) -> None:
        spec = (await one.sweep("wider"))["spec"]
        await one.admin.merge(path, {"spec": {"models": [spec["models"][0] | {"maxConcurrentTrials": most}]}})

    await one.apply("wider", modes=["EXEC"], repeats=4, parallelism=1, budget={"tokens": 100})
    await running(1)
    await model(2)
    await one.admin.merge(path, {"spec": {"parallelism": 4}})
    await running(2)
    await model(3)
    await running(3)
    free.append(True)
    found = await one.condition("wider", "BudgetExhausted", "Tokens")
    assert found["status"] == "True"
    await model(None)

    async def over() -> Any:
        status = (await one.sweep("wider"))["status"]
        return status if status["counts"]["sealed"] == 3 and status["state"] == "Suspended" else None

    status = await one.wait_for(over, "what ran has finished and nothing new starts")
    assert status["trials"] == "3/4"
    await one.admin.merge(path, {"spec": {"budget": {"tokens": 10**6}}})
    assert (await one.until("wider", "Complete"))["status"]["trials"] == "4/4"


async def test_what_a_sweep_owns_goes_with_it_without_a_finalizer(one: Cluster, kubelet: Any) -> None:
    await one.apply("passing")
    sweep = await one.until("passing", "Complete")
    owned = [f"{one.core}/configmaps/passing-plan", f"{one.trials}/passing-00000"]
    jobs = f"/apis/batch/v1/namespaces/{one.namespace}/jobs"
    owned += [f"{jobs}/passing-{name}" for name in ("plan", "j0000", "report")]
    for path in owned:
        metadata = (await one.admin.send("GET", path))["metadata"]
        owner = metadata["ownerReferences"][0]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("BenchmarkSweep", sweep["metadata"]["uid"], True)
        assert not [name for name in metadata.get("finalizers", []) if "realcli" in name]
    await one.admin.send("DELETE", f"{one.sweeps}/passing")

    async def gone(path: str) -> bool:
        try:
            await one.admin.send("GET", path)
        except NotFound:
            return True
        return False

    for path in (f"{one.sweeps}/passing", *owned):
        await one.wait_for(lambda path=path: gone(path), f"{path} is gone")

    async def no_pods() -> bool:
        return await one.pods_of("passing") == []

    await one.wait_for(no_pods, "its pods are gone")


async def test_a_foreign_pod_of_the_same_name_is_named_and_left_alone(one: Cluster, kubelet: Any) -> None:
    foreign = {"metadata": {"name": "clash-00000-a1"}, "spec": {"containers": [{"name": "x", "image": "example/x:1"}]}}
    await one.admin.send("POST", f"{one.core}/pods", foreign)
    await one.apply("clash")
    sweep = await one.until("clash", "Incomplete")
    hit, other = await one.trials_of("clash")
    assert (hit["status"]["phase"], hit["status"]["reason"]) == ("Invalid", "ConfigurationError")
    assert "Pod one/clash-00000-a1 exists and is not ours" in hit["status"]["message"]
    assert "reward" not in hit["status"]
    assert other["status"]["phase"] == "Sealed"
    assert (sweep["status"]["counts"]["invalid"], sweep["status"]["trials"]) == (1, "2/2")
    await one.admin.send("GET", f"{one.core}/pods/clash-00000-a1")


async def test_storage_that_refuses_starts_nothing(one: Cluster, kubelet: Any) -> None:
    said = one.tools.say("Plan", "Refused", reason="StorageRefused", message="s3://evals: the access key is unknown")
    kubelet.scripts["refused"] = lambda seen: one.tools.Act(said)
    await one.apply("refused")
    await one.until("refused", "Failed")
    condition = await one.condition("refused", "Ready", "StorageRefused")
    assert condition["status"] == "False"
    assert "the access key is unknown" in condition["message"]
    assert await one.trials_of("refused") == []
    assert [name for name in kubelet.history if name.startswith("refused")] == [
        name for name in kubelet.history if name.startswith("refused-plan-")
    ]


async def test_a_missing_secret_shows_and_the_sweep_goes_on_when_it_appears(one: Cluster, kubelet: Any) -> None:
    there = asyncio.Event()

    def script(seen: Any) -> Any:
        if seen.role == "plan" and not there.is_set():
            return one.tools.Act(waiting=("CreateContainerConfigError", 'secret "evals-s3" not found'))
        return one.tools.happy(seen)

    kubelet.scripts["secret"] = script
    await one.apply("secret")
    condition = await one.condition("secret", "Ready", "ConfigurationError")
    assert 'secret "evals-s3" not found' in condition["message"]
    assert await one.trials_of("secret") == []

    async def warned() -> bool:
        events = (await one.admin.send("GET", f"{one.core}/events"))["items"]
        about = [(e["type"], e["reason"]) for e in events if e["involvedObject"]["name"] == "secret"]
        return about == [("Warning", "ConfigurationError")]

    await one.wait_for(warned, "it is told as an event, once")
    there.set()
    await one.until("secret", "Complete")


async def test_a_trial_whose_session_waits_for_storage_says_so(one: Cluster, kubelet: Any) -> None:
    work_may_end = asyncio.Event()

    def script(seen: Any) -> Any:
        return None if seen.role == "work" and not work_may_end.is_set() else one.tools.happy(seen)

    async def blocked(status: str) -> Any:
        first = (await one.trials_of("away"))[0].get("status", {})
        found = (c for c in first.get("conditions", []) if c["type"] == "StorageBlocked")
        return next((c for c in found if c["status"] == status), None)

    kubelet.scripts["away"] = script
    await one.apply("away", parallelism=1)
    await one.wait_for(lambda: "away-00000-a1" in kubelet.history, "the first trial runs")
    pod = await one.admin.send("GET", f"{one.core}/pods/away-00000-a1")
    assert pod["spec"]["containers"][1]["readinessProbe"]["exec"]["command"] == ["test", "!", "-e", "/spool/spool.json"]
    statuses = pod["status"]["containerStatuses"]
    for container in statuses:
        container["state"] = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
        container["ready"] = container["name"] != "session"
    await one.admin.merge(f"{one.core}/pods/away-00000-a1/status", {"status": {"containerStatuses": statuses}})
    condition = await one.wait_for(lambda: blocked("True"), "the trial says that storage is away")
    assert "realcli ledger recover away-00000 -n one" in condition["message"]
    assert (await one.sweep("away"))["status"]["state"] == "Running"
    work_may_end.set()
    await one.until("away", "Complete")
    assert await blocked("False")


async def test_suspended_nothing_starts_and_what_runs_finishes(one: Cluster, kubelet: Any) -> None:
    work_may_end = asyncio.Event()

    def script(seen: Any) -> Any:
        return None if seen.role == "work" and not work_may_end.is_set() else one.tools.happy(seen)

    kubelet.scripts["pause"] = script
    await one.apply("pause", suspend=True, parallelism=1)
    await one.condition("pause", "Suspended", "Asked")
    assert await one.pods_of("pause") == []
    await one.admin.merge(f"{one.sweeps}/pause", {"spec": {"suspend": False}})
    await one.wait_for(lambda: "pause-00000-a1" in kubelet.history, "the first trial runs")
    await one.admin.merge(f"{one.sweeps}/pause", {"spec": {"suspend": True}})
    await one.until("pause", "Suspended")
    work_may_end.set()

    async def held() -> bool:
        first, second = await one.trials_of("pause")
        return first["status"]["phase"] == "Sealed" and second["status"].get("reason") == "Suspended"

    await one.wait_for(held, "the running trial finishes, the other says that it is held")
    assert not [name for name in kubelet.history if name.startswith(("pause-00001", "pause-j"))]
    await one.admin.merge(f"{one.sweeps}/pause", {"spec": {"suspend": False}})
    await one.until("pause", "Complete")


VOLATILE = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z|[0-9a-f]{8}-[0-9a-f-]{27}|sha256:[0-9a-f]{64}")
DROPPED = ("resourceVersion", "managedFields", "creationTimestamp", "generation", "uid", "selfLink")


def normalised(value: Any) -> Any:
    """Without what differs between two runs of the same thing: uids, times, digests that hold uids, names of Job pods."""
    if isinstance(value, dict):
        return {key: normalised(child) for key, child in sorted(value.items()) if key not in DROPPED}
    if isinstance(value, list):
        return [normalised(child) for child in value]
    if isinstance(value, str):
        return VOLATILE.sub("*", value).replace("unbroken", "NS").replace("broken", "NS")
    return value


async def everything(admin: Any, namespace: str, tools: Any) -> dict[str, Any]:
    """All objects of the sweep but events."""
    paths = {
        "sweeps": f"{tools.group}/{namespace}/benchmarksweeps",
        "trials": f"{tools.group}/{namespace}/trials",
        "jobs": f"/apis/batch/v1/namespaces/{namespace}/jobs",
        "pods": f"/api/v1/namespaces/{namespace}/pods",
        "plans": f"/api/v1/namespaces/{namespace}/configmaps",
    }
    found: dict[str, Any] = {}
    for kind, path in paths.items():
        items = (await admin.send("GET", path))["items"]
        if kind == "jobs":
            items = [{"name": item["metadata"]["name"], "conditions": item["status"]["conditions"]} for item in items]
            for item in items:
                for condition in item["conditions"]:
                    del condition["lastProbeTime"], condition["lastTransitionTime"]
        elif kind == "pods":
            items = [re.sub(r"-[a-z0-9]{5}$", "", item["metadata"]["name"]) for item in items]
        elif kind == "plans":
            items = [item["metadata"]["name"] for item in items]
        found[kind] = normalised(items)
    return found


async def test_killed_at_five_points_it_ends_as_if_nothing_had_been(
    kubelet: Any, new_operator: Callable[..., Any], admin: Any, tools: Any, wait_for: Any
) -> None:
    clusters = {name: Cluster(admin, tools, wait_for, name) for name in ("unbroken", "broken")}
    for name, cluster in clusters.items():
        await admin.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        kubelet.namespaces.add(name)
        await cluster.apply("same")
    whole = new_operator("unbroken")
    whole.start()
    broken = new_operator("broken")
    for fault in FAULTS:
        broken.start(fault)
        await wait_for(lambda: broken.ended, f"the operator dies {fault}")
        assert broken.process.returncode == -9, str(broken)
    broken.start()
    for cluster in clusters.values():
        await cluster.until("same", "Complete")
    await wait_for(lambda: kubelet.history.count("same-00001-a1-v1") >= 2, "both ran")
    for cluster in clusters.values():

        async def tidy(cluster: Cluster = cluster) -> bool:
            return not [name for name in await cluster.pods_of("same") if "-a1" in name]

        await wait_for(tidy, "finished pods are gone")
    assert await everything(admin, "broken", tools) == await everything(admin, "unbroken", tools)
    for name in ("same-00000-a1", "same-00000-a1-v1", "same-00001-a1", "same-00001-a1-v1"):
        assert kubelet.history.count(name) == 2, "once in each namespace"
