"""The two reconcilers: observe → decide (pure) → execute."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from functools import partial
from typing import Any

from realcli.api.plan import Plan as FrozenPlan
from realcli.api.plan import Platform
from realcli.api.sweep import SweepSpec
from realcli_operator.execute import Executor, Refused, StillDeleting
from realcli_operator.faults import FaultPoint
from realcli_operator.kube.errors import PermanentError
from realcli_operator.kube.metrics import Metrics
from realcli_operator.kube.names import Key, trial_key
from realcli_operator.kube.queue import KeyedQueue
from realcli_operator.kube.views import ObjectView, SweepView
from realcli_operator.loop import Done
from realcli_operator.observe import Observer, TrialSeen
from realcli_operator.pods.jobs import plan_config_map, sweep_job, trial_manifest
from realcli_operator.pods.parts import BuildError, SweepContext
from realcli_operator.pods.placing import avoiding
from realcli_operator.pods.trial import trial_pod
from realcli_operator.reconcile.ends import UNEXPLAINED
from realcli_operator.reconcile.facts import SweepFacts, UnreadableObject
from realcli_operator.reconcile.outcome import refused
from realcli_operator.reconcile.plans import Note, SweepPlan, Task, TrialPlan
from realcli_operator.reconcile.sweep import decide_sweep
from realcli_operator.reconcile.sweepstatus import blocked, newly_unready
from realcli_operator.reconcile.trial import decide_trial

BLOCKED_AGAIN = 60.0
"""Seconds until a refused creation is tried again: a foreign object may have been deleted, a quota raised."""
DELETING_AGAIN = 10.0
"""Seconds until the garbage collector is looked after that has not removed what an earlier object of a name owned."""
AT_ONCE = 32
"""Creations of one step on their way at the same time; an answer of a busy API server takes a while."""
_JOB_FAULTS = {Task.JUDGE: FaultPoint.JUDGE_JOB, Task.REPORT: FaultPoint.REPORT}


async def at_once(calls: Iterable[Callable[[], Awaitable[Any]]]) -> None:
    """All calls, `AT_ONCE` of them at a time. The first error is raised after those that had begun have ended; none begins after
    it."""
    failed: list[BaseException] = []

    async def some(left: Iterable[Callable[[], Awaitable[Any]]]) -> None:
        for call in left:
            if failed:
                return
            try:
                await call()
            except Exception as error:
                failed.append(error)

    rest = iter(calls)
    await asyncio.gather(*(some(rest) for _ in range(AT_ONCE)))
    if failed:
        raise failed[0]


def _context(observer: Observer, view: SweepView, spec: SweepSpec, platform: Platform, plan: FrozenPlan | None) -> SweepContext:
    pull_policy = observer.settings.pull_policy
    return SweepContext(view.namespace, view.name, view.uid, spec, platform, pull_policy, plan)


async def _unreadable(executor: Executor, kind: str, view: ObjectView | None, error: UnreadableObject) -> PermanentError:
    """No decision is possible, so no status is: an event is all that a person will see of it."""
    if view is not None:
        await executor.tell(kind, view, (Note("Warning", "Unreadable", str(error)),))
    return PermanentError(str(error), reason="Unreadable")


class TrialReconciler:
    """One step of a trial."""

    def __init__(self, observer: Observer, executor: Executor, metrics: Metrics | None = None) -> None:
        self._observer = observer
        self._executor = executor
        self._metrics = metrics or Metrics()

    async def observe(self, key: Key) -> TrialSeen | None:
        """See `Observer.trial`."""
        try:
            return await self._observer.trial(key)
        except UnreadableObject as error:
            view = self._observer.store.trial(key.namespace, key.name)
            raise await _unreadable(self._executor, "Trial", view, error) from error

    def decide(self, observed: TrialSeen, now: datetime) -> TrialPlan:
        """See `decide_trial`."""
        return decide_trial(observed.facts, now, self._observer.policy)

    async def execute(self, key: Key, observed: TrialSeen, plan: TrialPlan) -> Done:
        """Pod, then status, then deletions: an outcome is written down before its pod goes."""
        facts, status, again = observed.facts, plan.status, plan.requeue_after
        if plan.create is not None:
            context = _context(self._observer, observed.sweep, facts.sweep, facts.plan.platform, facts.plan)
            try:
                manifest = trial_pod(context, facts.spec, facts.trial.name, facts.trial.uid, plan.create)
                avoid = self._observer.memory(observed.sweep.uid).avoid.union(plan.create.avoid)
                await self._executor.create_pod(avoiding(manifest, avoid))
            except (Refused, BuildError) as error:
                # What is sealed is not lost to a refusal, and nothing is lost to one that is meant for the operator, or for now.
                waits = plan.create.verify + plan.create.control > 0 or (isinstance(error, Refused) and error.passes)
                now, generation = self._observer.clock.now(), facts.trial.generation
                status = refused(facts.status, str(error), now, generation, final=not waits)
                status = status if status != facts.status else None
                again = BLOCKED_AGAIN if waits else None
        if status is not None and not await self._executor.write_trial_status(facts.trial, status):
            return Done()
        for removal in plan.delete:
            await self._executor.delete_pod(key.namespace, removal)
        self._metrics.unexplained_ends.inc(sum(note.reason == UNEXPLAINED for note in plan.events))
        await self._executor.tell("Trial", facts.trial, plan.events)
        return Done(again)


class SweepReconciler:
    """One step of a sweep. It is the only one that admits trials, so the window needs no lock."""

    def __init__(self, observer: Observer, executor: Executor, queue: KeyedQueue[Key]) -> None:
        self._observer = observer
        self._executor = executor
        self._queue = queue

    async def observe(self, key: Key) -> SweepFacts | None:
        """See `Observer.sweep`."""
        try:
            return await self._observer.sweep(key)
        except UnreadableObject as error:
            view = self._observer.store.sweep(key.namespace, key.name)
            raise await _unreadable(self._executor, "BenchmarkSweep", view, error) from error

    def decide(self, observed: SweepFacts, now: datetime) -> SweepPlan:
        """See `decide_sweep`."""
        return decide_sweep(observed, now, self._observer.policy)

    async def execute(self, key: Key, observed: SweepFacts, plan: SweepPlan) -> Done:
        """Jobs, plan, Trials, admission, then status."""
        if plan.delete_sweep:
            await self._executor.delete_sweep(observed.sweep)
            return Done()
        memory = self._observer.memory(observed.sweep.uid)
        status, again, events = plan.status, plan.requeue_after, plan.events
        known = observed.status
        if plan.delete_jobs and status is not None and status.reruns != known.reruns:
            known = known.model_copy(update={"reruns": status.reruns})
            if not await self._executor.write_sweep_status(observed.sweep, known):
                return Done()
        try:
            await self._write(key, observed, plan)
        except (Refused, BuildError, StillDeleting) as error:
            reason, text = "ConfigurationError", str(error)
            again = BLOCKED_AGAIN
            if isinstance(error, StillDeleting):
                reason, text, again = "StillDeleting", error.message, DELETING_AGAIN
            # Without a stored plan nothing that this step wanted to say is true yet; with it the counters are.
            told = known if observed.plan is None else status or known
            status = blocked(observed, told, reason, text, self._observer.clock.now())
            # The events of the step come with the step that goes through.
            events = () if isinstance(error, StillDeleting) else newly_unready(observed.status, status)
            status = status if status != observed.status else None
        memory.grants, memory.broken, memory.avoid = plan.grants, plan.broken, plan.avoid
        if observed.plan is not None and not memory.woken:
            # Trials that were looked at before their plan was loaded (at start, or it was lost) had to wait.
            memory.woken = True
            for row in observed.rows.values():
                self._queue.add(trial_key(key.namespace, row.name))
        if status is not None:
            if not await self._executor.write_sweep_status(observed.sweep, status):
                return Done()
            memory.last_write = self._observer.clock.now()
        for name in plan.wake:  # what they are woken for may stand in the status
            self._queue.add(trial_key(key.namespace, name))
        await self._executor.tell("BenchmarkSweep", observed.sweep, events)
        return Done(again)

    async def _write(self, key: Key, observed: SweepFacts, plan: SweepPlan) -> None:
        for removal in plan.delete_jobs:
            await self._executor.delete_job(key.namespace, removal)
        if not (plan.create_jobs or plan.store_plan or plan.create_trials):
            return
        frozen = observed.plan or plan.store_plan
        platform = frozen.platform if frozen is not None else await self._observer.platform(observed.sweep)
        context = _context(self._observer, observed.sweep, observed.spec, platform, frozen)
        jobs = [(sweep_job(context, intent), _JOB_FAULTS.get(intent.task)) for intent in plan.create_jobs]
        await at_once(partial(self._executor.create_job, job, fault) for job, fault in jobs)
        if plan.store_plan is not None:
            await self._executor.create_config_map(plan_config_map(context, plan.store_plan))
            self._observer.memory(observed.sweep.uid).plan = plan.store_plan
            self._queue.add(key)
        trials = [trial_manifest(context, ordinal) for ordinal in plan.create_trials]
        await at_once(partial(self._executor.create_trial, trial) for trial in trials)
