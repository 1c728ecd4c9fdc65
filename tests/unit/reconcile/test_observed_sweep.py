"""A sweep's step sees what changed, and decides as if it had looked at everything."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from realcli.api.plan import trial_name
from realcli.api.termination import Result
from realcli_operator.kube.clock import SystemClock
from realcli_operator.kube.fake import FakeCluster
from realcli_operator.kube.fake_api import FakeKubeApi
from realcli_operator.kube.names import LABEL_ATTEMPT, Kind, sweep_key
from realcli_operator.kube.store import Store
from realcli_operator.kube.views import SweepView, TrialView, View
from realcli_operator.observe import Observer
from realcli_operator.reconcile.facts import JobFacts, Judged, SweepFacts
from realcli_operator.reconcile.names import judge_job
from realcli_operator.reconcile.policy import Policy
from realcli_operator.reconcile.rows import Rows
from realcli_operator.reconcile.sweep import decide_sweep
from realcli_operator.settings import Settings
from tests.unit.reconcile.conftest import A
from tests.unit.reconcile.test_rows import STATUSES, seen

KEY = sweep_key("one", "first")
BAD = {"phase": "Sealed", "tokens": "many"}


def now(made: Coroutine[Any, Any, Any]) -> Any:
    """The result of what waits for nothing."""
    try:
        made.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")


def outcome(call: Any) -> Any:
    """What a call gives, or the error it ends with."""
    try:
        return call()
    except Exception as error:
        return repr(error)


class Steps(RuleBasedStateMachine):
    """Any changes, by watch, list and deletion, with steps between them: each step is that of an operator that begins now."""

    @initialize()
    def start(self) -> None:
        self.a = A()
        self.plan = self.a.wide("claude-code.one", "claude-code.two", tasks=2)
        self.store = Store()
        self.version = 0
        self.known = False
        self.put(self.a.sweep())
        self.restart()

    def put(self, view: View, **changes: Any) -> None:
        self.version += 1
        self.store.put(replace(view, resource_version=self.version, **changes))

    @property
    def sweep(self) -> SweepView:
        (found,) = self.store.sweeps()
        return found

    def new(self) -> Observer:
        """An operator that begins now."""
        observer = Observer(
            FakeKubeApi(FakeCluster()), self.store, Settings(images=self.a.platform().images), SystemClock(), Policy()
        )
        self.plan_of(observer)
        return observer

    def plan_of(self, observer: Observer) -> None:
        memory = observer.memory(self.sweep.uid)
        memory.looked, memory.plan = True, self.plan if self.known else None

    def restart(self) -> None:
        self.observer = self.new()

    @rule(
        ordinal=st.integers(0, 11),
        name=st.one_of(st.none(), st.integers(0, 11)),
        owner=st.sampled_from(["mine", "mine", "mine", "foreign"]),
        label=st.sampled_from(["first", "first", "first", "second"]),
        status=st.one_of(STATUSES, STATUSES, STATUSES, st.just(BAD)),
        again=st.booleans(),
    )
    def trial(self, ordinal: int, name: int | None, owner: str, label: str, status: dict[str, Any], again: bool) -> None:
        """One is new, or says something else, or is another object of that name. One in four of the whole is odd."""
        view = self.a.trial(ordinal=ordinal % 8, plan=self.plan)
        called = trial_name("first", ordinal if name is None else name)
        uid = self.sweep.uid if owner == "mine" else "foreign"
        before = self.store.trial("one", called)
        made = f"{called}-{self.version}" if again or before is None else before.uid
        spec = {**view.spec, "ordinal": ordinal, "sweep": label}
        self.put(view, name=called, uid=made, owner_uid=uid, spec=spec, status=status)

    @rule(group=st.integers(0, 3), n=st.integers(1, 2))
    def whole(self, group: int, n: int) -> None:
        """A group is complete, and its Job has judged it; or it was renewed, which says nothing of the Job."""
        status = {"phase": "Sealed", "reason": "Completed", "attempt": 1, "round": n}
        for ordinal in self.plan.ordinals_of_group(group):
            self.trial(ordinal, None, "mine", "first", status, again=False)
        if n == 1:
            self.job(group, done=True, pod=True, run=1, result=Result.JUDGED)

    @rule(times=st.integers(0, 5))
    def rival(self, times: int) -> None:
        """Now and then another operator reads the same store, which the first has to notice, or it begins anew."""
        if times == 0:
            outcome(lambda: now(self.new().sweep(KEY)))
        elif times == 1:
            self.restart()

    @rule(number=st.integers(0, 11))
    def delete(self, number: int) -> None:
        found = self.store.trial("one", trial_name("first", number))
        if found is not None:
            self.store.delete(found)

    @rule(kept=st.sets(st.integers(0, 11)))
    def listed(self, kept: set[int]) -> None:
        """A LIST that has only these."""
        names = {trial_name("first", number) for number in kept}
        self.store.prune(Kind.TRIAL, [view.uid for view in self.store.all(Kind.TRIAL) if view.name in names], self.version)

    @rule()
    def mended(self) -> None:
        for view in self.store.all(Kind.TRIAL):
            if isinstance(view, TrialView) and view.status == BAD:
                self.put(view, status={"phase": "Invalid", "reason": "NodeLost"})

    @rule()
    def planned(self) -> None:
        self.known = True
        self.plan_of(self.observer)

    @rule(uid=st.sampled_from(["another", "a third"]))
    def made_again(self, uid: str) -> None:
        """The sweep, under its name; what the first one owned is not its own."""
        self.store.delete(self.sweep)
        self.put(self.a.sweep(), uid=f"{uid}-{self.version}")
        self.plan_of(self.observer)

    @rule(
        group=st.integers(0, 3),
        done=st.booleans(),
        pod=st.booleans(),
        run=st.integers(1, 2),
        result=st.sampled_from([Result.JUDGED, Result.REFUSED]),
    )
    def job(self, group: int, done: bool, pod: bool, run: int, result: Result) -> None:
        name, uid = judge_job("first", group), self.sweep.uid
        before = self.store.job("one", name)
        made = before.uid if before is not None and before.labels[LABEL_ATTEMPT] == str(run) else f"{name}-{self.version}"
        job = self.a.job(name, done=done, attempt=run, owner_uid=uid, uid=made)
        said = self.a.message("Judge", result, reason=None if result is Result.JUDGED else "StorageUnavailable")
        self.put(job)
        if pod:
            pod = self.a.job_pod("judge", said if done else "", uid=f"{made}-x{self.version}")
            self.put(pod, name=f"{name}-x", owner_uid=made, owner_name=name)

    @rule(group=st.integers(0, 3), of=st.sampled_from(["job", "pod"]))
    def delete_job(self, group: int, of: str) -> None:
        name = judge_job("first", group)
        found = self.store.job("one", name) if of == "job" else self.store.pod("one", f"{name}-x")
        if found is not None:
            self.store.delete(found)

    @invariant()
    def step(self) -> None:
        """After most changes, or after several. One that fails is tried again."""
        for _ in range(self.version % 4 if hasattr(self, "store") else 0):
            mine, fresh = (outcome(lambda o=o: now(o.sweep(KEY))) for o in (self.observer, self.fresh()))
            if not isinstance(fresh, SweepFacts):
                assert mine == fresh
                continue
            assert seen(mine.rows, self.plan) == seen(fresh.rows, self.plan) == seen(self.at_once(), self.plan)
            assert {name: (job.job, list(job.pods)) for name, job in mine.jobs.items()} == self.jobs_at_once()
            assert outcome(lambda f=mine: decide_sweep(f, self.a.now)) == outcome(lambda f=fresh: decide_sweep(f, self.a.now))
        getattr(self, "store", Store()).check()

    def fresh(self) -> Observer:
        """An operator that begins now, and reads a copy: it takes nothing from the other."""
        observer = self.new()
        observer.store = Store()
        for kind in Kind:
            for view in self.store.all(kind):
                observer.store.put(view)
        return observer

    def at_once(self) -> Rows:
        size = self.plan.size if self.known else 10**6
        sweep = self.sweep
        return Rows(
            view
            for view in self.store.trials_of_sweep("one", "first")
            if view.owner_uid == sweep.uid
            and view.name == trial_name("first", view.spec["ordinal"])
            and view.spec["ordinal"] < size
        )

    def jobs_at_once(self) -> dict[str, Any]:
        pods = [pod for pod in self.store.pods_of_sweep("one", "first") if pod.trial is None]
        jobs = [job for job in self.store.jobs_of_sweep("one", "first") if job.owner_uid == self.sweep.uid]
        return {job.name: (job, [pod for pod in pods if pod.owner_uid == job.uid]) for job in jobs}


TestSteps = Steps.TestCase
TestSteps.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)


class Looks(Store):
    """Counts who is asked about."""

    def __init__(self) -> None:
        super().__init__()
        self.trials = self.jobs = self.wholes = 0

    def trial(self, namespace: str, name: str) -> TrialView | None:
        self.trials += 1
        return super().trial(namespace, name)

    def job(self, namespace: str, name: str) -> Any:
        self.jobs += 1
        return super().job(namespace, name)

    def trials_of_sweep(self, namespace: str, sweep: str) -> tuple[TrialView, ...]:
        self.wholes += 1
        return super().trials_of_sweep(namespace, sweep)


@pytest.fixture
def store(a: Any) -> Looks:
    found = Looks()
    found.put(a.sweep())
    for ordinal in range(8):
        found.put(replace(a.settled(ordinal), resource_version=2 + ordinal))
    for group in range(4):
        found.put(a.job(judge_job("first", group), done=True))
    return found


async def test_a_step_looks_only_at_what_has_changed(a: Any, store: Looks) -> None:
    observer = Observer(FakeKubeApi(FakeCluster()), store, Settings(images=a.platform().images), SystemClock(), Policy())
    observer.memory(a.sweep().uid).plan = a.plan(tasks=2, repeats=2)
    facts = await observer.sweep(KEY)
    assert facts is not None
    assert (len(facts.rows), len(facts.jobs), store.wholes) == (8, 4, 1)
    store.trials = store.jobs = 0
    await observer.sweep(KEY)
    assert (store.trials, store.jobs, store.wholes) == (0, 0, 1)
    store.put(replace(a.settled(3), resource_version=50))
    store.put(replace(a.job(judge_job("first", 2)), resource_version=51))
    await observer.sweep(KEY)
    assert (store.trials, store.jobs, store.wholes) == (1, 1, 1)


async def test_what_a_sweep_that_is_gone_leaves_does_not_grow(a: Any, store: Looks) -> None:
    observer = Observer(FakeKubeApi(FakeCluster()), store, Settings(images=a.platform().images), SystemClock(), Policy())
    observer.memory(a.sweep().uid).plan = a.plan(tasks=2, repeats=2)
    await observer.sweep(KEY)
    changes = observer.memory(a.sweep().uid).trials
    for ordinal in range(8):
        store.delete(a.settled(ordinal), for_good=True)
        assert len(changes.names) <= 5
    assert changes.lost
    for group in range(4):
        store.delete(a.job(judge_job("first", group), done=True), for_good=True)
    facts = await observer.sweep(KEY)
    assert facts is not None
    assert not facts.rows
    assert not facts.jobs


async def test_the_plan_says_which_trials_are_the_sweeps_own(a: Any, store: Looks) -> None:
    observer = Observer(FakeKubeApi(FakeCluster()), store, Settings(images=a.platform().images), SystemClock(), Policy())
    memory = observer.memory(a.sweep().uid)
    memory.looked = True
    facts = await observer.sweep(KEY)
    assert facts is not None
    assert len(facts.rows) == 8
    memory.plan = a.plan(tasks=1, repeats=2)
    facts = await observer.sweep(KEY)
    assert facts is not None
    assert set(facts.rows) == set(range(4))


def test_what_was_judged_is_read_again_when_its_job_changes() -> None:
    judged = Judged()
    judged.note(3, "first-j0003")
    judged.forget("first-j0004")
    assert judged.groups == {3}
    judged.forget("first-j0003")
    assert not judged.groups
    assert not judged.jobs


def test_facts_of_a_job_keep_what_was_read_of_it(a: Any) -> None:
    job, pod = a.job(), a.job_pod("plan")
    facts = JobFacts(job, (pod,))
    assert facts.of(job, (pod,)) is facts
    assert facts.of(job, ()) is not facts
