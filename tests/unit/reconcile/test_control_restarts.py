"""A control, a withdrawal and a renewal, with the operator killed after every write: the end is that of one that never died."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from realcli.api.plan import PLAN_BEGIN, PLAN_END, encode_plan
from realcli.api.termination import Result
from realcli_operator.execute import Executor
from realcli_operator.handlers import SweepReconciler, TrialReconciler
from realcli_operator.kube.fake import FakeCluster
from realcli_operator.kube.fake_api import FakeKubeApi
from realcli_operator.kube.names import LABEL_ROLE, Kind, sweep_key, trial_key
from realcli_operator.kube.project import project
from realcli_operator.kube.queue import KeyedQueue
from realcli_operator.kube.store import Store
from realcli_operator.observe import Observer
from realcli_operator.reconcile.policy import Policy
from realcli_operator.settings import Settings

Script = Callable[[str, str], str | None]
"""(role, name of the pod) -> what its session says, None: that all went well."""
STEP = 700.0
"""Seconds between two rounds: longer than any back-off."""


class Killed(BaseException):
    """As by `kill -9`."""


class Clock:
    """Moved by hand."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime(2026, 12, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError


class Deadly(FakeCluster):
    """Ends the operator after its write number ``last``; whatever it still tries is not done."""

    last = 0
    writes = 0
    armed = False

    def _wrote(self) -> None:
        self.writes += self.armed
        if self.armed and self.last and self.writes >= self.last:
            raise Killed

    def _alive(self) -> None:
        if self.armed and self.last and self.writes >= self.last:
            raise Killed

    def create(self, kind: str, manifest: Any, *, dry_run: bool = False) -> dict[str, Any]:
        self._alive()
        made = super().create(kind, manifest, dry_run=dry_run)
        if not dry_run and kind != "event":
            self._wrote()
        return made

    def apply_status(self, *args: Any, **values: Any) -> dict[str, Any]:
        self._alive()
        made = super().apply_status(*args, **values)
        self._wrote()
        return made

    def delete(self, *args: Any, **values: Any) -> None:
        self._alive()
        super().delete(*args, **values)
        self._wrote()


@dataclass
class World:
    """A cluster whose kubelet follows a script, and operators that live on it one after the other."""

    a: Any
    plan: Any
    script: Script
    spec: dict[str, Any]
    cluster: Deadly = field(default_factory=Deadly)
    clock: Clock = field(default_factory=Clock)
    controls: set[str] = field(default_factory=set)
    runs: Counter[str] = field(default_factory=Counter)
    """By name of the Job: how often one ran."""

    def __post_init__(self) -> None:
        (model,) = self.a.spec().dump()["models"]
        models = [model, model | {"name": "opus"}]
        body = self.a.spec(**({"retry": {"backoff": "1s", "infrastructure": 1}, "models": models} | self.spec)).dump()
        self.cluster.clock = self.clock
        self.cluster.create(Kind.SWEEP, {"metadata": {"namespace": "one", "name": "first"}, "spec": body})
        self.boot()

    def boot(self) -> None:
        """An operator that remembers nothing."""
        api, store = FakeKubeApi(self.cluster), Store()
        observer = Observer(api, store, Settings(images=self.a.platform().images), self.clock, Policy())
        executor = Executor(api, store, lambda view, happened: None)
        self.store = store
        self.trials = TrialReconciler(observer, executor)
        self.sweeps = SweepReconciler(observer, executor, KeyedQueue(self.clock))

    def see(self) -> None:
        """The watches bring everything."""
        for kind in Kind:
            raws = self.cluster.objects(kind)
            for raw in raws:
                self.store.put(project(kind, raw))
            uids = {raw["metadata"]["uid"] for raw in raws}
            for view in self.store.all(kind):
                if view.uid not in uids:
                    self.store.delete(view)

    async def round(self) -> None:
        """Everything is looked at once; a death in between starts the next operator."""
        self.cluster.armed = True
        try:
            for key in (sweep_key("one", "first"), *(trial_key("one", t["metadata"]["name"]) for t in self.objects(Kind.TRIAL))):
                self.see()
                reconciler: Any = self.sweeps if key.kind is Kind.SWEEP else self.trials
                seen = await reconciler.observe(key)
                if seen is not None:
                    await reconciler.execute(key, seen, reconciler.decide(seen, self.clock.now()))
        except Killed:
            self.cluster.writes = 0
            self.boot()
        self.cluster.armed = False
        self.clock.seconds += STEP
        self.kubelet()

    def objects(self, kind: Kind) -> list[Any]:
        return self.cluster.objects(kind)

    def kubelet(self) -> None:
        for job in self.objects(Kind.JOB):
            if not job.get("status"):
                self.run_job(job)
        for pod in self.objects(Kind.POD):
            if pod["status"]["phase"] == "Pending":
                self.end(pod)

    def run_job(self, job: Any) -> None:
        name, template = job["metadata"]["name"], job["spec"]["template"]
        self.runs[name] += 1
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job["metadata"]["uid"], "controller": True}
        metadata = template["metadata"] | {"name": f"{name}-x", "namespace": "one", "ownerReferences": [owner]}
        self.cluster.create(Kind.POD, {"metadata": metadata, "spec": template["spec"]})
        at = self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        done = {"type": "Complete", "status": "True", "lastTransitionTime": at}
        status = {"startTime": at, "completionTime": at, "succeeded": 1, "conditions": [done]}
        self.cluster.set_status(Kind.JOB, "one", name, status)

    def end(self, pod: Any) -> None:
        name, role = pod["metadata"]["name"], pod["metadata"]["labels"][LABEL_ROLE]
        if role == "control":
            self.controls.add(name)
        at = self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        over = {"exitCode": 0, "reason": "Completed", "startedAt": at, "finishedAt": at, "message": self.said(role, name)}
        statuses = [{"name": container["name"], "state": {"terminated": over}} for container in pod["spec"]["containers"]]
        self.cluster.set_status(Kind.POD, "one", name, {"phase": "Succeeded", "containerStatuses": statuses})

    def said(self, role: str, name: str) -> str:
        a = self.a
        found = self.script(role, name)
        if found is not None:
            return found
        if role == "plan":
            (sweep,) = self.objects(Kind.SWEEP)
            frozen = self.plan.model_copy(update={"sweep_uid": sweep["metadata"]["uid"]})
            self.cluster.logs[("one", name, "plan")] = "\n".join((PLAN_BEGIN, encode_plan(frozen), PLAN_END)).encode()
            return str(a.message("Plan", Result.PLANNED, seal=frozen.content_digest()))
        row = {"configuration": "claude-code.sonnet", "rExec": "1.000"}
        return str(
            {
                "work": a.work_sealed,
                "verify": a.verdict,
                "control": lambda: a.message("Control", Result.CONTROL_PASSED, reward="1", seal=a.seal),
                "judge": lambda: a.message("Judge", Result.JUDGED, seal=a.seal),
                "report": lambda: a.message("Report", Result.REPORTED, scores=[row], uri=f"s3://evals/{name}", seal=a.seal),
            }[role]()
        )

    @property
    def status(self) -> dict[str, Any]:
        return dict(self.objects(Kind.SWEEP)[0].get("status", {}))

    def condition(self, type_: str) -> dict[str, Any]:
        return next((c for c in self.status.get("conditions", ()) if c["type"] == type_), {})

    async def until_complete(self, rounds: int = 400) -> None:
        for _ in range(rounds):
            await self.round()
            if self.condition("Complete").get("status") == "True":
                return
        raise AssertionError(f"not complete: {self.status} {self.ends()}")

    def ends(self) -> dict[str, Any]:
        """What must be the same: of every trial how it ended, in which attempt, and the control it names."""
        kept = ("phase", "reason", "reward", "attempt", "invalidAttempts", "round", "verifyAttempt", "control")
        return {t["metadata"]["name"]: {k: t["status"].get(k) for k in kept} for t in self.objects(Kind.TRIAL)}

    def end_state(self) -> Any:
        status = self.status
        kept = {k: status.get(k) for k in ("state", "trials", "counts", "controls", "withdrawn", "round", "scores", "reportURI")}
        jobs = sorted(job["metadata"]["name"] for job in self.objects(Kind.JOB))
        return (
            kept,
            self.ends(),
            jobs,
            self.controls,
            self.condition("Complete")["reason"],
            self.condition("TasksSuspect").get("message"),
        )


async def settled(world: World, kill: int) -> Any:
    world.cluster.last = kill
    await world.until_complete()
    return world.end_state()


def wide(a: Any) -> Any:
    return a.wide("claude-code.sonnet", "claude-code.opus", tasks=2, repeats=1, modes=("EXEC",))


def task_of(a: Any, name: str) -> str:
    return str(wide(a).coordinates(int(name.split("-")[1])).task)


def hangs(a: Any, task: str, control: str | None = None) -> Script:
    """The tests of the task end without a verdict; `control` is what its control says."""

    def say(role: str, name: str) -> str | None:
        if role not in ("verify", "control") or task_of(a, name) != task:
            return None
        return str(a.no_verdict("VerifierTimeout")) if role == "verify" else control

    return say


@pytest.mark.parametrize("kill", [0, 1, 2, 3, 5, 7])
async def test_a_control_that_passes_makes_its_trials_valid_and_worth_nothing(a: Any, kill: int) -> None:
    world = World(a, wide(a), hangs(a, "task-0"), {"parallelism": 2})
    kept, ends, jobs, controls, complete, suspect = await settled(world, kill)
    assert (kept["state"], complete, suspect) == ("Complete", "Scored", None)
    assert controls == {"first-00000-a1-c1"}, "once for the task, by the trial that asked first"
    assert [(row["task"], row["result"], row["trial"]) for row in kept["controls"]] == [("task-0", "Passed", "first-00000")]
    assert kept.get("withdrawn") in (None, [])
    hung = [end for name, end in ends.items() if task_of(a, name) == "task-0"]
    assert {(e["phase"], e["reason"], e["reward"], e["attempt"]) for e in hung} == {("Sealed", "VerifierTimeout", "0", 1)}
    assert {e["control"]["ordinal"] for e in hung} == {0}, "all name the one control"
    assert {e["reason"] for name, e in ends.items() if task_of(a, name) == "task-1"} == {"Completed"}
    assert jobs == ["first-j0000", "first-j0001", "first-j0002", "first-j0003", "first-plan", "first-report"]


@pytest.mark.parametrize("kill", [0, 1, 2, 3, 5, 7])
async def test_a_control_that_fails_withdraws_the_task_from_all_configurations(a: Any, kill: int) -> None:
    failed = a.message("Control", Result.CONTROL_FAILED, reason="NoReward", message="no reward file", seal=a.seal)
    world = World(a, wide(a), hangs(a, "task-0", failed), {})
    kept, ends, jobs, controls, complete, suspect = await settled(world, kill)
    assert (kept["state"], complete) == ("Incomplete", "Incomplete")
    assert controls == {"first-00000-a1-c1"}
    (gone,) = kept["withdrawn"]
    assert (gone["task"], gone["reason"]) == ("task-0", "VerifierFault")
    assert gone["configurations"] == ["claude-code.opus", "claude-code.sonnet"]
    assert {(e["phase"], e["reason"], e["reward"]) for n, e in ends.items() if task_of(a, n) == "task-0"} == {
        ("Invalid", "VerifierFault", None)
    }
    assert suspect.startswith("task-0 is withdrawn for all configurations (met by claude-code.opus, claude-code.sonnet)")
    gone_groups = {"first-j0000", "first-j0002"}  # one may have been judged before anybody else had met it: it is left out
    assert [job for job in jobs if job not in gone_groups] == ["first-j0001", "first-j0003", "first-plan", "first-report"]
    counts = kept["counts"]
    assert (counts["tasksWithdrawn"], counts["groupsWithdrawn"], counts["groupsJudged"], counts["sealed"]) == (1, 2, 2, 2)
    assert not kept["scores"], "without allowIncomplete the status shows no score"
    report = next(job for job in world.objects(Kind.JOB) if job["metadata"]["name"] == "first-report")
    env = report["spec"]["template"]["spec"]["containers"][0]["env"]
    assert '"task":"task-0"' in next(e["value"] for e in env if e["name"] == "REALCLI_WITHDRAWN")


@pytest.mark.parametrize("kill", [0, 1, 2, 3, 5, 7])
async def test_only_what_ended_invalid_is_renewed(a: Any, kill: int) -> None:
    """The provider was away for one trial; after retryInvalid its attempts go on, and its group alone is judged again."""
    away = {"is": True}

    def script(role: str, name: str) -> str | None:
        broken = role == "work" and name.startswith("first-00001") and away["is"]
        return str(a.work_invalid("ProviderUnavailable")) if broken else None

    world = World(a, wide(a), script, {})
    kept, ends, jobs, _, complete, _ = await settled(world, kill)
    assert (complete, kept["counts"]["groupsIncomplete"], kept["scores"]) == ("Incomplete", 1, [])
    assert (ends["first-00001"]["phase"], ends["first-00001"]["attempt"]) == ("Invalid", 2)
    before = {name: end for name, end in ends.items() if name != "first-00001"}

    away["is"] = False
    world.cluster.update(Kind.SWEEP, "one", "first", lambda sweep: sweep["spec"].update(retryInvalid=1))
    world.cluster.last = 0
    await world.round()
    reopened = world.condition("Complete")
    assert (reopened["status"], reopened["reason"]) == ("False", "Renewed")
    assert "s3://evals/first-report-x" in reopened["message"]
    assert "reportURI" not in world.status
    kept, ends, after, _, complete, _ = await settled(world, kill)
    assert (kept["state"], complete, kept["round"]) == ("Complete", "Scored", 2)
    renewed = ends.pop("first-00001")
    assert (renewed["phase"], renewed["attempt"], renewed["invalidAttempts"], renewed["round"]) == ("Sealed", 3, 2, 2)
    assert ends == before, "what was sealed is untouched"
    assert set(after) - set(jobs) == {f"first-j{wide(a).group_of(1):04d}-r2", "first-report-r2"}
    assert [row["rExec"] for row in kept["scores"]] == ["1.000"]


@pytest.mark.parametrize("kill", [0, 1])
async def test_a_renewal_that_is_cancelled_leaves_what_was_judged_before(a: Any, kill: int) -> None:
    """The group of the trial that was to run again keeps its judgement, and the sweep a report."""

    def script(role: str, name: str) -> str | None:
        return str(a.work_invalid("ModelMismatch")) if role == "work" else None

    world = World(a, a.plan(modes=("EXEC",)), script, {})
    kept, *_ = await settled(world, kill)
    assert (kept["counts"]["groupsJudged"], kept["reportURI"]) == (1, "s3://evals/first-report-x")
    world.cluster.update(Kind.SWEEP, "one", "first", lambda sweep: sweep["spec"].update(retryInvalid=1))
    world.cluster.last = 0
    while world.objects(Kind.TRIAL)[0]["status"]["phase"] != "Pending":
        await world.round()
    world.cluster.update(Kind.SWEEP, "one", "first", lambda sweep: sweep["spec"].update(cancel=True))
    kept, ends, jobs, _, complete, _ = await settled(world, kill)
    assert (complete, ends["first-00000"]["reason"], ends["first-00000"]["round"]) == ("Cancelled", "Cancelled", 2)
    assert (kept["counts"]["groupsJudged"], kept["counts"]["groupsIncomplete"]) == (1, 1)
    assert kept["reportURI"] == "s3://evals/first-report-r2-x"
    assert jobs == ["first-j0000", "first-plan", "first-report", "first-report-r2"], "nothing is judged anew"


async def test_scores_of_an_incomplete_sweep_come_and_go_with_allow_incomplete(a: Any) -> None:
    def script(role: str, name: str) -> str | None:
        return str(a.work_invalid("ModelMismatch")) if role == "work" and name.startswith("first-00001") else None

    world = World(a, wide(a), script, {})
    await world.until_complete()
    assert not world.status.get("scores")
    assert "allowIncomplete: true shows them here" in world.condition("Complete")["message"]
    jobs = len(world.objects(Kind.JOB))
    for allowed in (True, False, True):
        world.cluster.update(Kind.SWEEP, "one", "first", lambda s, allowed=allowed: s["spec"].update(allowIncomplete=allowed))
        await world.round()
        await world.round()
        assert bool(world.status.get("scores")) is allowed
        assert world.status.get("rExec") == ("1.000" if allowed else None)
        assert (world.status["state"], world.condition("Complete")["reason"]) == ("Incomplete", "Incomplete")
    assert len(world.objects(Kind.JOB)) == jobs


async def test_nothing_of_a_control_begins_while_suspended_or_cancelled(a: Any) -> None:
    world = World(a, wide(a), hangs(a, "task-0"), {})
    while not any((t.get("status") or {}).get("awaiting") for t in world.objects(Kind.TRIAL)):
        await world.round()
    world.cluster.update(Kind.SWEEP, "one", "first", lambda sweep: sweep["spec"].update(suspend=True))
    for _ in range(8):
        await world.round()
    assert world.controls == set()
    world.cluster.update(Kind.SWEEP, "one", "first", lambda sweep: sweep["spec"].update(suspend=False, cancel=True))
    await world.until_complete()
    assert world.controls == set()
    assert world.condition("Complete")["reason"] == "Cancelled"


async def test_a_control_whose_trial_goes_is_given_to_another(a: Any) -> None:
    world = World(a, wide(a), hangs(a, "task-0"), {})
    while not any((t.get("status") or {}).get("controlAttempt") for t in world.objects(Kind.TRIAL)):
        await world.round()
    world.cluster.delete(Kind.TRIAL, "one", "first-00000")  # with its pods, before its end was read
    await world.until_complete()
    assert world.condition("Complete")["reason"] == "Scored"
    (row,) = world.status["controls"]
    assert row["result"] == "Passed"


@pytest.mark.parametrize("role", ["plan", "judge", "report"])
@pytest.mark.parametrize("kill", [0, 1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
async def test_a_job_whose_results_are_lost_is_run_three_times_and_not_for_ever(a: Any, role: str, kill: int) -> None:
    """Also where each operator dies between the end of one run and the beginning of the next."""
    world = World(a, a.plan(modes=("EXEC",)), lambda seen, _: "cut" if seen == role else None, {})
    world.cluster.last = kill
    for _ in range(120):
        await world.round()
        if world.condition("Failed").get("status") == "True":
            break
    assert world.condition("Failed")["reason"] == f"{role.capitalize()}Failed"
    of_role = [number for name, number in world.runs.items() if role == ("judge" if "-j0" in name else name.split("-")[1])]
    assert of_role
    assert set(of_role) == {3}
    assert "reruns" not in world.status or not world.status["reruns"]
