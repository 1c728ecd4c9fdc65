"""Hours of a sweep in a second: both reconcilers on the cluster in memory, with a clock turned by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from realcli.api.plan import Plan
from realcli.api.termination import Result
from realcli_operator.execute import Executor
from realcli_operator.handlers import SweepReconciler, TrialReconciler
from realcli_operator.kube.fake import FakeCluster
from realcli_operator.kube.fake_api import FakeKubeApi
from realcli_operator.kube.names import LABEL_ROLE, Key, Kind, sweep_key, trial_key
from realcli_operator.kube.project import pod_view, project, sweep_view
from realcli_operator.kube.queue import KeyedQueue
from realcli_operator.kube.store import Store
from realcli_operator.kube.views import PodView
from realcli_operator.observe import Memory, Observer
from realcli_operator.reconcile.policy import Policy
from realcli_operator.settings import Settings

Ends = Callable[[str, PodView], "tuple[float, str] | None"]
"""(configuration, pod) → how long a work pod works (seconds) and what it says then; None: it works on."""


@dataclass
class Hand:
    """A clock."""

    time: datetime

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing waits here")


def _with_spec(spec: dict[str, Any], raw: dict[str, Any]) -> None:
    raw["spec"].update(spec)


def models(a: Any, plan: Plan, secret: Callable[[str], str]) -> list[dict[str, Any]]:
    """The plan's models, each with the key of its Secret."""
    found = []
    for name in sorted({configuration.model for configuration in plan.configurations}):
        model = a.spec().models[0].dump() | {"name": name}
        model["endpoints"]["anthropic"]["apiKey"]["secretRef"]["name"] = secret(name)
        found.append(model)
    return found


@dataclass
class Hours:
    """A planned sweep. Work ends as `ends` says, verify pods pass after half a minute, judge Jobs never run."""

    a: Any
    plan: Plan
    ends: Ends
    spec: dict[str, Any] = field(default_factory=dict)
    node: Callable[[str], str] = lambda pod: "n1"
    began: dict[str, list[float]] = field(default_factory=dict)
    """Configuration → when its work pods began, in seconds of the sweep."""

    def __post_init__(self) -> None:
        self.clock = Hand(self.a.now)
        self.cluster = FakeCluster(clock=self.clock)
        self.api = FakeKubeApi(self.cluster)
        agents = sorted({configuration.agent for configuration in self.plan.configurations})
        given = {
            "agents": [{"name": name, "program": "claude-code"} for name in agents],
            "models": models(self.a, self.plan, lambda name: name),
        }
        body = self.a.spec(**(given | self.spec)).dump()
        raw = self.cluster.create(Kind.SWEEP, {"metadata": {"namespace": "one", "name": "first"}, "spec": body})
        self.restart()
        self.memory(raw["metadata"]["uid"])
        self.seen: set[str] = set()

    def restart(self) -> None:
        """A new operator: it knows what the API server knows."""
        self.store = Store()
        self.store.put(sweep_view(self.cluster.objects(Kind.SWEEP)[0]))
        for kind in (Kind.TRIAL, Kind.POD, Kind.JOB):
            for raw in self.cluster.objects(kind):
                self.store.put(project(kind, raw))
        self.observer = Observer(self.api, self.store, Settings(images=self.a.platform().images), self.clock, Policy())
        executor = Executor(self.api, self.store, lambda *_: None)
        queue: KeyedQueue[Key] = KeyedQueue(self.clock)
        self.sweeps = SweepReconciler(self.observer, executor, queue)
        self.trials = TrialReconciler(self.observer, executor)
        (sweep,) = self.store.sweeps()
        self.memory(sweep.uid)

    def memory(self, uid: str) -> None:
        self.observer.memories[uid] = Memory(plan=self.plan.model_copy(update={"sweep_uid": uid}))

    @property
    def age(self) -> float:
        return (self.clock.time - self.a.now).total_seconds()

    def change(self, **spec: Any) -> None:
        """A person edits the sweep."""
        self.store.put(sweep_view(self.cluster.update(Kind.SWEEP, "one", "first", lambda raw: raw["spec"].update(spec))))

    async def run(self, seconds: float, tick: float = 10) -> None:
        for _ in range(int(seconds / tick)):
            await self.once()
            self.clock.time += timedelta(seconds=tick)

    async def once(self) -> None:
        self.kubelet()
        await self._step(self.sweeps, sweep_key("one", "first"))
        for trial in self.store.trials_of_sweep("one", "first"):
            if trial.phase not in {"Sealed", "Invalid"}:
                await self._step(self.trials, trial_key("one", trial.name))

    async def _step(self, reconciler: Any, key: Key) -> None:
        observed = await reconciler.observe(key)
        if observed is not None:
            await reconciler.execute(key, observed, reconciler.decide(observed, self.clock.now()))

    def kubelet(self) -> None:
        for pod in self.store.pods_of_sweep("one", "first"):
            if pod.trial is None or pod.finished or pod.creation_timestamp is None:
                continue
            born = pod.creation_timestamp
            end = self._end(pod, born)
            over = end is not None and (self.clock.time - born).total_seconds() >= end[0]
            if pod.phase == "Running" and not over:
                continue
            since = born.strftime("%Y-%m-%dT%H:%M:%SZ")
            state: dict[str, Any] = {"running": {"startedAt": since}}
            if over and end is not None:
                at = (born + timedelta(seconds=end[0])).strftime("%Y-%m-%dT%H:%M:%SZ")
                done = {"exitCode": 0, "reason": "Completed", "message": end[1]}
                state = {"terminated": {"startedAt": since, "finishedAt": at} | done}
            names = ("verifier" if pod.labels[LABEL_ROLE] == "verify" else "agent", "session")
            statuses = [{"name": name, "state": state} for name in names]
            status = {"phase": "Succeeded" if over else "Running", "startTime": since, "containerStatuses": statuses}
            spec = {"nodeName": self.node(pod.name)}
            self.cluster.update(Kind.POD, "one", pod.name, partial(_with_spec, spec))
            self.store.put(pod_view(self.cluster.set_status(Kind.POD, "one", pod.name, status)))

    def _end(self, pod: PodView, born: datetime) -> tuple[float, str] | None:
        if pod.labels[LABEL_ROLE] == "verify":
            return 30, self.a.verdict()
        trial = self.store.trial("one", pod.trial or "")
        assert trial is not None
        configuration = str(trial.spec["configuration"])
        if pod.uid not in self.seen:
            self.seen.add(pod.uid)
            self.began.setdefault(configuration, []).append((born - self.a.now).total_seconds())
        return self.ends(configuration, pod)

    # -- what is seen

    @property
    def status(self) -> Any:
        return self.cluster.objects(Kind.SWEEP)[0].get("status", {})

    def condition(self, type_: str) -> tuple[str, str] | None:
        found = next((c for c in self.status.get("conditions", ()) if c["type"] == type_), None)
        return None if found is None else (found["status"], found["reason"])

    def trials_by_name(self) -> dict[str, Any]:
        return {trial["metadata"]["name"]: trial.get("status", {}) for trial in self.cluster.objects(Kind.TRIAL)}

    def of(self, configuration: str) -> list[Any]:
        found = [t for t in self.cluster.objects(Kind.TRIAL) if t["spec"]["configuration"] == configuration]
        return [trial.get("status", {}) for trial in found]


async def test_one_bad_key_costs_few_pods_and_the_others_go_on(a: Any) -> None:
    mended = 50 * 60

    def ends(configuration: str, pod: Any) -> tuple[float, str]:
        if configuration == "bad.x" and hours.age < mended:
            return 20, a.work_invalid("ProviderUnavailable", "401 invalid x-api-key")
        return 400, a.work_sealed()

    plan = a.wide("bad.x", "good.y", "good.z", tasks=4, repeats=3, modes=("EXEC",))
    hours = Hours(a, plan, ends, {"parallelism": 30})
    await hours.run(15 * 60)
    assert len(hours.began["bad.x"]) <= 10
    assert hours.condition("Degraded") == ("True", "BreakerOpen")
    assert hours.status["state"] == "Degraded"
    held = [status for status in hours.of("bad.x") if status.get("reason") == "BreakerOpen"]
    assert len(held) >= 3
    assert all(status["phase"] == "Pending" for status in held)
    assert sum(status.get("invalidAttempts", 0) for status in hours.of("bad.x")) == len(hours.began["bad.x"]), (
        "held is no attempt"
    )

    await hours.run(20 * 60)
    for good in ("good.y", "good.z"):
        assert [status["phase"] for status in hours.of(good)] == ["Sealed"] * 12
    before = len(hours.began["bad.x"])
    hours.restart()
    await hours.run(10 * 60)
    assert len(hours.began["bad.x"]) - before <= 2, "a new operator knows what the old one knew"
    assert hours.condition("Degraded") == ("True", "BreakerOpen")

    await hours.run(3600)
    assert hours.condition("Degraded") == ("False", "Recovered")
    assert [status["phase"] for status in hours.of("bad.x")] == ["Sealed"] * 12
    told = [event["reason"] for event in hours.cluster.objects("event") if event["reason"].startswith("Breaker")]
    assert sorted(told) == ["BreakerClosed", "BreakerOpen"]


async def test_one_bad_key_of_three_configurations_costs_as_few(a: Any) -> None:
    """A configuration that asks the same model at its other API goes on at once."""

    def ends(configuration: str, pod: Any) -> tuple[float, str]:
        if configuration in ("p.x", "q.x", "r.x"):
            return 20, a.work_invalid("ProviderUnavailable", "401 invalid x-api-key")
        return 3600, a.work_sealed()

    plan = a.wide("p.x", "q.x", "r.x", "other.x", tasks=8, repeats=2, modes=("EXEC",))
    others = [c.model_copy(update={"api": "responses"}) if c.name == "other.x" else c for c in plan.configurations]
    model = a.spec().models[0].dump() | {"name": "x"}
    other = {"secretRef": {"name": "another", "key": "api-key"}}
    model["endpoints"] |= {"responses": model["endpoints"]["anthropic"] | {"apiKey": other}}
    hours = Hours(a, plan.model_copy(update={"configurations": others}), ends, {"parallelism": 60, "models": [model]})
    await hours.run(15 * 60)
    assert sum(len(began) for name, began in hours.began.items() if name != "other.x") <= 10
    assert len(hours.began["other.x"]) == 16, "all of them"
    degraded = next(c for c in hours.status["conditions"] if c["type"] == "Degraded")
    assert "endpoint x/anthropic: " in degraded["message"]


async def test_one_bad_key_of_eleven_models_costs_as_few_and_the_rest_goes_on(a: Any) -> None:
    """A gateway's key, say: each model would find out for itself."""

    def ends(configuration: str, pod: Any) -> tuple[float, str]:
        if configuration != "good.other":
            return 20, a.work_invalid("ProviderUnavailable", "401 invalid x-api-key")
        return 3600, a.work_sealed()

    bad = [f"{agent}.m{model}" for agent in ("p", "q", "r") for model in range(11)]
    plan = a.wide(*bad, "good.other", tasks=8, repeats=2, modes=("EXEC",))
    hours = Hours(
        a, plan, ends, {"parallelism": 200, "models": models(a, plan, lambda name: "own" if name == "other" else "shared")}
    )
    await hours.run(15 * 60)
    assert sum(len(began) for name, began in hours.began.items() if name != "good.other") <= 10
    assert len(hours.began["good.other"]) == 16, "all of them"
    degraded = next(c for c in hours.status["conditions"] if c["type"] == "Degraded")
    assert "key shared/api-key at api.anthropic.com: " in degraded["message"]


async def test_one_bad_model_of_a_key_leaves_the_others_alone(a: Any) -> None:
    def ends(configuration: str, pod: Any) -> tuple[float, str]:
        if configuration.endswith(".away"):
            return 20, a.work_invalid("ProviderUnavailable", "503 no such deployment")
        return 3600, a.work_sealed()

    plan = a.wide("p.away", "q.away", "p.here", "q.here", tasks=8, repeats=2, modes=("EXEC",))
    hours = Hours(a, plan, ends, {"parallelism": 60, "models": models(a, plan, lambda name: "shared")})
    await hours.run(20 * 60)
    assert [len(hours.began[name]) for name in ("p.here", "q.here")] == [16, 16]
    assert sum(len(hours.began[name]) for name in ("p.away", "q.away")) <= 14


async def test_throttling_halves_what_runs_of_that_model(a: Any) -> None:
    throttled = True

    def ends(configuration: str, pod: Any) -> tuple[float, str]:
        share = "0.4" if configuration == "hot.x" and throttled else "0"
        return 600, a.work_sealed(throttled=share)

    plan = a.wide("hot.x", "cool.y", tasks=20, repeats=3, modes=("EXEC",))
    hours = Hours(a, plan, ends, {"parallelism": 40})
    await hours.run(900, tick=30)
    rows = {(row["scope"], row["name"]): row["limit"] for row in hours.status["resolved"]["concurrency"]}
    in_flight = 20  # five at first, fifteen more once they worked for five minutes; the five ended throttled
    assert rows == {("Configuration", "hot.x"): in_flight // 2, ("Model", "x"): in_flight // 2}
    await hours.run(600, tick=30)
    assert len([status for status in hours.of("hot.x") if status.get("phase") == "Working"]) == in_flight // 2
    throttled = False
    await hours.run(3000, tick=30)
    (row, _) = hours.status["resolved"]["concurrency"]
    assert row["limit"] > in_flight // 2, "restored"


PRICES = {"inputPerMillion": "1", "outputPerMillion": "1"}


def priced(a: Any, name: str) -> dict[str, Any]:
    return a.spec().models[0].dump() | {"name": name, "prices": PRICES}


async def test_a_spent_budget_stops_what_is_new_and_more_of_it_goes_on(a: Any) -> None:
    used = {"tokens": {"input": 1000, "output": 10}, "workingSeconds": "60"}
    failed: set[str] = set()

    def ends(_: str, pod: Any) -> tuple[float, str]:
        if pod.name.endswith("-a1") and (pod.name in failed or not failed):
            failed.add(pod.name)
            broken = {"reason": "ProviderUnavailable", "cost_usd": "0.50", **used}
            return 60, a.message("Work", Result.WORK_INVALID, **broken)
        return 60, a.work_sealed(**used)  # 0.25 USD

    plan = a.wide("one.x", tasks=10, repeats=2, modes=("EXEC",))
    hours = Hours(a, plan, ends, {"parallelism": 2, "budget": {"usd": "2"}, "models": [priced(a, "x")]})
    await hours.run(3000)
    assert hours.condition("BudgetExhausted") == ("True", "Usd")
    done = [status for status in hours.of("one.x") if status.get("phase") == "Sealed"]
    assert 6 <= len(done) <= 8, "0.50 for the attempt that failed, 0.25 for each of the others; what ran finished"
    assert hours.status["costUSD"] == f"{0.5 + 0.25 * len(done):.2f}"
    assert hours.status["cost"] == f"${0.5 + 0.25 * len(done):.2f}"
    assert hours.status["tokens"]["input"] == 1000 * (len(done) + 1)
    assert (hours.status["uncountedAttempts"], hours.status["state"]) == (0, "Suspended")
    assert [status.get("phase") for status in hours.of("one.x") if status.get("phase") not in {"Sealed", "Pending", None}] == []

    hours.change(budget={"usd": "100"})
    await hours.run(3000)
    assert hours.condition("BudgetExhausted") == ("False", "Raised")
    assert {status["phase"] for status in hours.of("one.x")} == {"Sealed"}
    assert hours.status["costUSD"] == "5.50"


async def test_a_cancelled_sweep_ends_what_runs_and_reports_what_is_complete(a: Any) -> None:
    def ends(_: str, pod: PodView) -> tuple[float, str] | None:
        return (60, a.work_sealed()) if hours.age < 200 else None

    plan = a.wide("one.x", tasks=8, repeats=2, modes=("EXEC",))
    hours = Hours(a, plan, ends, {"parallelism": 3, "suspend": False})
    await hours.run(300)
    before = {name: status for name, status in hours.trials_by_name().items() if status.get("phase") == "Sealed"}
    alive = [pod.name for pod in hours.store.pods_of_sweep("one", "first") if pod.trial]
    assert len(before) >= 3
    assert len(alive) == 3
    hours.change(cancel=True, suspend=True)
    await hours.run(60)
    after = hours.trials_by_name()
    assert {name: status for name, status in after.items() if status["phase"] == "Sealed"} == before
    assert {status["reason"] for name, status in after.items() if name not in before} == {"Cancelled"}
    assert [pod for pod in hours.cluster.objects(Kind.POD) if pod["metadata"]["name"] in alive] == []
    jobs = [job["metadata"]["name"] for job in hours.cluster.objects(Kind.JOB)]
    sealed = {int(name.rpartition("-")[2]) for name in before}
    complete = [group for group in range(plan.groups) if sealed.issuperset(plan.ordinals_of_group(group))]
    assert complete
    assert sorted(jobs) == [f"first-j{group:04d}" for group in complete], "groups with a cancelled repeat are not judged"


async def test_pods_keep_away_from_a_node_that_breaks_them(a: Any) -> None:
    names = ("a.w", "b.x", "c.y", "d.z")
    plan = a.wide(*names, tasks=4, repeats=1, modes=("EXEC",))
    unlucky = {f"first-{index * 4 + index:05d}-a1" for index in range(4)}  # another task of each configuration

    def ends(_: str, pod: PodView) -> tuple[float, str] | None:
        return (20, a.work_invalid("NodePressure", "evicted")) if pod.name in unlucky else None

    hours = Hours(a, plan, ends, {"parallelism": 20}, node=lambda pod: "n1" if pod in unlucky else "n2")
    await hours.run(120)
    degraded = next(c for c in hours.status["conditions"] if c["type"] == "Degraded")
    assert degraded["message"].startswith("node n1: 4 of the last 4 attempts ended NodePressure")
    later = [pod for pod in hours.cluster.objects(Kind.POD) if pod["metadata"]["name"].endswith("-a2")]
    assert len(later) == 4
    for pod in later:
        (preferred,) = pod["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
        assert preferred["preference"]["matchFields"][0]["values"] == ["n1"]
