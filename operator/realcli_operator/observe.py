"""What is known of a sweep or trial: the store, what this process remembers, and fresh reads where absence must be proven."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from realcli.api.outcomes import Phase
from realcli.api.plan import Plan as FrozenPlan
from realcli.api.plan import Platform, decode_plan, plan_in_log, trial_name
from realcli.api.sweep import SweepSpec
from realcli.api.sweepstatus import ControlRow
from realcli.api.termination import Result
from realcli.api.trial import TrialStatus
from realcli_operator.execute import Refused
from realcli_operator.kube.api import KubeApi
from realcli_operator.kube.changes import Changes
from realcli_operator.kube.clock import Clock
from realcli_operator.kube.errors import Forbidden, Invalid, NotFound, PermanentError
from realcli_operator.kube.names import Key
from realcli_operator.kube.store import Store
from realcli_operator.kube.views import Json, PodView, SweepView, TrialView
from realcli_operator.pods.jobs import PLAN_KEY
from realcli_operator.pods.probe import image_volumes_survived, probe_pod, user_namespaces_survived
from realcli_operator.reconcile.facts import (
    JobFacts,
    Judged,
    PlanLog,
    SweepFacts,
    TrialFacts,
    UnreadableObject,
    sweep_spec,
    sweep_status,
    trial_spec,
    trial_status,
)
from realcli_operator.reconcile.jobs import Done, job_state
from realcli_operator.reconcile.names import control_pod, plan_job, verify_pod, work_pod
from realcli_operator.reconcile.plans import Task
from realcli_operator.reconcile.policy import Policy
from realcli_operator.reconcile.recent import ACTIVE, HELD_BACK
from realcli_operator.reconcile.rows import Rows
from realcli_operator.settings import Settings, Use

LOG_LIMIT = 2 << 20
"""Bytes of the plan Job's log; the plan has at most 900 kB."""


@dataclass(slots=True)
class Memory:
    """What the process remembers of a sweep between steps. Losing it is safe."""

    plan: FrozenPlan | None = None
    spec: tuple[Json, SweepSpec] | None = None
    """As it was read last: every step of every trial asks for it."""
    platform: Platform | None = None
    rows: Rows = field(default_factory=Rows)
    """Its trials, as they were before `trials` …"""
    rows_of: FrozenPlan | None = None
    """… and that plan, which says which are its own."""
    trials: Changes = field(default_factory=lambda: Changes(lost=True))
    jobs: dict[str, JobFacts] = field(default_factory=dict)
    """By name, as they were before `job_changes`."""
    job_changes: Changes = field(default_factory=lambda: Changes(lost=True))
    judged: Judged = field(default_factory=Judged)
    grants: frozenset[str] = frozenset()
    broken: frozenset[str] | None = None
    """Trials that the breaker holds; None before the first step of the sweep."""
    avoid: frozenset[str] = frozenset()
    """Nodes that new pods should not go to."""
    last_write: datetime | None = None
    looked: bool = False
    """Whether the plan's ConfigMap was looked for."""
    woken: bool = False
    """Whether the trials were looked at once with the plan at hand."""
    looking: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the plan is read."""

    def looked_up(self, sweep: SweepView) -> bool:
        """Whether there is nothing to read: the plan is known, or it is known that there is none yet."""
        return self.plan is not None or (self.looked and "planDigest" not in sweep.status)


@dataclass(frozen=True, slots=True)
class TrialSeen:
    """A trial's facts and the sweep's view."""

    facts: TrialFacts
    sweep: SweepView


@dataclass(slots=True)
class Observer:
    """Reads for both reconcilers."""

    api: KubeApi
    store: Store
    settings: Settings
    clock: Clock
    policy: Policy
    memories: dict[str, Memory] = field(default_factory=dict)

    def memory(self, uid: str) -> Memory:
        """What is remembered of the sweep ``uid``. With a new one those that are gone are forgotten: of a sweep that was made
        again under its name no step says that it was gone."""
        if uid not in self.memories:
            self.forget_others()
            self.memories[uid] = Memory()
        return self.memories[uid]

    def forget_others(self) -> None:
        """Drop memories of sweeps that are gone."""
        alive = {sweep.uid for sweep in self.store.sweeps()}
        for uid in [uid for uid in self.memories if uid not in alive]:
            del self.memories[uid]

    def spec(self, sweep: SweepView) -> SweepSpec:
        """The spec of a sweep; `UnreadableObject`."""
        memory = self.memory(sweep.uid)
        if memory.spec is None or (memory.spec[0] is not sweep.spec and memory.spec[0] != sweep.spec):
            memory.spec = (sweep.spec, sweep_spec(sweep))
        return memory.spec[1]

    # -- trials

    async def trial(self, key: Key) -> TrialSeen | None:
        """None: gone, or an orphan (its sweep is gone), or its sweep has no plan yet and will wake it, or it is over: sealed for
        good, and its pods are gone."""
        view = self.store.trial(key.namespace, key.name)
        if view is None or view.sweep is None:
            return None
        pods = [pod for pod in self.store.pods_of_trial(key.namespace, key.name) if pod.owner_uid == view.uid]
        if view.phase == Phase.SEALED and not pods:
            return None
        sweep = self.store.sweep(key.namespace, view.sweep)
        if sweep is None or sweep.uid != view.owner_uid:
            return None
        plan = await self.plan(sweep)
        if plan is None or not _is_cell(view, sweep, plan):
            return None
        memory = self.memory(sweep.uid)
        status = trial_status(view)
        facts = TrialFacts(
            trial=view,
            spec=trial_spec(view),
            status=status,
            pods=tuple(pods),
            sweep=self.spec(sweep),
            plan=plan,
            granted=view.name in memory.grants,
            held=_held(memory, view.name, status),
            control=_control(sweep, view) if status.awaiting is not None or status.control is not None else None,
            withdrawn=_is_withdrawn(sweep, view),
        )
        return TrialSeen(await self._with_expected_pod(view, facts), sweep)

    async def _with_expected_pod(self, view: TrialView, facts: TrialFacts) -> TrialFacts:
        """The store never proves absence: a pod that should be there and is not seen is read afresh."""
        status = facts.status
        if status.phase not in ACTIVE or status.retry_after is not None:
            return facts
        if status.awaiting is not None and not status.control_attempt:
            return facts
        name = work_pod(view.name, status.attempt)
        if status.awaiting is not None:
            name = control_pod(view.name, status.attempt, status.control_attempt)
        elif status.verify_attempt:
            name = verify_pod(view.name, status.attempt, status.verify_attempt)
        if facts.pod(name) is not None:
            return facts
        try:
            pod = await self.api.get_pod(view.namespace, name)
        except NotFound:
            return _replaced(facts, facts.pods, frozenset({name}))
        if pod.owner_uid != view.uid:
            return _replaced(facts, facts.pods, frozenset({name}))
        self.store.put(pod)
        return _replaced(facts, (*facts.pods, pod), frozenset())

    # -- sweeps

    async def sweep(self, key: Key) -> SweepFacts | None:
        """None: gone."""
        view = self.store.sweep(key.namespace, key.name)
        if view is None:
            self.forget_others()
            return None
        memory = self.memory(view.uid)
        plan = await self.plan(view)
        jobs = self._jobs(view, memory)
        log = await self._plan_log(view, jobs) if plan is None else None
        self._move_rows(view, memory, plan)
        spec = self.spec(view)
        named = spec.from_.sweep if spec.from_ is not None and plan is None else None
        return SweepFacts(
            sweep=view,
            spec=spec,
            status=sweep_status(view),
            plan=plan,
            plan_log=log,
            jobs=jobs,
            judged=memory.judged,
            rows=memory.rows,
            granted=memory.grants,
            source=None if named is None else self.store.sweep(key.namespace, named),
            last_write=memory.last_write,
        )

    def _move_rows(self, sweep: SweepView, memory: Memory, plan: FrozenPlan | None) -> None:
        """Bring the rows to what the store has. Only what has changed is looked at; all of it the first time, when the plan comes
        to be known, and when the changes are lost."""
        if memory.trials.lost or memory.rows_of is not plan:
            trials = self.store.trials_of_sweep(sweep.namespace, sweep.name)
            rows = Rows([trial for trial in trials if _is_cell(trial, sweep, plan)])
            memory.rows, memory.rows_of = rows, plan
            memory.trials = self.store.follow_trials(sweep.namespace, sweep.name)
            return
        put, gone = list[TrialView](), list[str]()
        for name in memory.trials.names:
            trial = self.store.trial(sweep.namespace, name)
            if trial is not None and trial.sweep == sweep.name and _is_cell(trial, sweep, plan):
                put.append(trial)
            else:
                gone.append(name)
        memory.rows.move(put, gone)
        memory.trials.taken()

    def _jobs(self, sweep: SweepView, memory: Memory) -> Mapping[str, JobFacts]:
        """Its Jobs with the pods they own, by name. Only those that have changed are looked at."""
        if memory.job_changes.lost:
            jobs = self.store.jobs_of_sweep(sweep.namespace, sweep.name)
            memory.job_changes = self.store.follow_jobs(sweep.namespace, sweep.name)
            names = dict.fromkeys((*memory.jobs, *(job.name for job in jobs)))
        else:
            names = memory.job_changes.names
        for name in names:
            job = self.store.job(sweep.namespace, name)
            if job is None or job.owner_uid != sweep.uid or job.sweep != sweep.name:
                memory.jobs.pop(name, None)
                memory.judged.forget(name)
                continue
            pods = self.store.pods_of_job(sweep.namespace, name)
            mine = tuple(pod for pod in pods if pod.owner_uid == job.uid and pod.sweep == sweep.name)
            before = memory.jobs.get(name)
            found = JobFacts(job, mine) if before is None else before.of(job, mine)
            if found is not before:
                memory.jobs[name] = found
                memory.judged.forget(name)
        memory.job_changes.taken()
        return memory.jobs

    async def plan(self, sweep: SweepView) -> FrozenPlan | None:
        """The frozen plan: remembered, or from its ConfigMap (looked for once, or whenever the status says there is one)."""
        memory = self.memory(sweep.uid)
        if memory.looked_up(sweep):
            return memory.plan
        async with memory.looking:  # after a start all workers want it at once
            return memory.plan if memory.looked_up(sweep) else await self._read_plan(sweep, memory)

    async def _read_plan(self, sweep: SweepView, memory: Memory) -> FrozenPlan | None:
        try:
            found = await self.api.get_config_map(sweep.namespace, plan_job(sweep.name))
        except NotFound:
            memory.looked = True
            return None
        memory.looked = True
        if found.owner_uid != sweep.uid or PLAN_KEY not in found.data:
            return None  # somebody else's: creating ours will say so
        try:
            memory.plan = decode_plan(found.data[PLAN_KEY], sweep.status.get("planDigest"))
        except ValueError as error:
            raise UnreadableObject(f"ConfigMap {sweep.namespace}/{found.name}: {error}; make a new sweep") from error
        return memory.plan

    async def _plan_log(self, sweep: SweepView, jobs: Mapping[str, JobFacts]) -> PlanLog | None:
        job = jobs.get(plan_job(sweep.name))
        if job is None:
            return None
        state = job_state(job, Task.PLAN, self.clock.now(), self.policy)
        if not isinstance(state, Done) or state.message.result is not Result.PLANNED:
            return None
        if state.message.seal is None:
            return PlanLog(None, f"Job {job.job.name} says it planned, but not which plan (no digest)")
        try:
            raw = await self.api.read_log(sweep.namespace, state.pod, Task.PLAN, limit_bytes=LOG_LIMIT)
            return PlanLog(plan_in_log(raw.decode(errors="replace"), state.message.seal))
        except (NotFound, PermanentError) as error:
            return PlanLog(None, f"the log of pod {state.pod} cannot be read: {error.message}")
        except ValueError as error:
            return PlanLog(None, f"pod {state.pod}: {error}")

    # -- platform

    async def platform(self, sweep: SweepView) -> Platform:
        """What the cluster can do, asked once per sweep; the plan keeps it."""
        memory = self.memory(sweep.uid)
        if memory.plan is not None:
            return memory.plan.platform
        if memory.platform is None:
            memory.platform = Platform(
                operator_version=self.settings.version,
                images=self.settings.images,
                user_namespaces=await self._survives(sweep, self._user_namespaces(sweep), user_namespaces=True),
                image_volumes=await self._survives(sweep, self.settings.image_volumes, user_namespaces=False),
                control=True,
                cluster_domain=self.settings.cluster_domain,
            )
        return memory.platform

    def _user_namespaces(self, sweep: SweepView) -> Use:
        """What the sweep says, else what the operator was told."""
        asked = Use(self.spec(sweep).pods.user_namespaces)
        return self.settings.user_namespaces if asked is Use.AUTO else asked

    async def _survives(self, sweep: SweepView, use: Use, *, user_namespaces: bool) -> bool:
        if use is not Use.AUTO:
            return use is Use.ALWAYS
        image = self.settings.images.session
        probe = probe_pod(sweep.namespace, sweep.name, image, user_namespaces=user_namespaces, image_volumes=not user_namespaces)
        try:
            kept = await self.api.dry_run_create_pod(probe)
        except (Invalid, Forbidden):
            plain = probe_pod(sweep.namespace, sweep.name, image, user_namespaces=False, image_volumes=False)
            try:
                await self.api.dry_run_create_pod(plain)
            except (Invalid, Forbidden) as error:
                # No pod at all may be made now (quota, permission, a namespace a second old): that is no answer, and the
                # plan would keep it for the whole sweep.
                raise Refused(f"whether the cluster has the feature cannot be found out: {error.message}") from error
            return False
        return user_namespaces_survived(kept) if user_namespaces else image_volumes_survived(kept)


def _replaced(facts: TrialFacts, pods: tuple[PodView, ...], absent: frozenset[str]) -> TrialFacts:
    return replace(facts, pods=pods, absent=absent)


def _held(memory: Memory, name: str, status: TrialStatus) -> str | None:
    """Before the sweep has decided what holds, what the status says does."""
    if memory.broken is None:
        return status.reason if status.reason in HELD_BACK else None
    return "BreakerOpen" if name in memory.broken else None


def _rows_for(sweep: SweepView, trial: TrialView, field_name: str) -> Iterator[Any]:
    """Entries of a list of the sweep's status that are about the trial's task. Raw: a sweep's whole status is not parsed for
    each step of a trial."""
    rows = sweep.status.get(field_name)
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, Mapping) and row.get("task") == trial.spec.get("task"):
            yield row


def _control(sweep: SweepView, trial: TrialView) -> ControlRow | None:
    """The control of a trial's task."""
    for row in _rows_for(sweep, trial, "controls"):
        try:
            return ControlRow.model_validate(dict(row), extra="ignore")
        except ValidationError as error:
            raise UnreadableObject(f"BenchmarkSweep {sweep.namespace}/{sweep.name}: status.controls: {error}") from error
    return None


def _is_withdrawn(sweep: SweepView, trial: TrialView) -> bool:
    return next(_rows_for(sweep, trial, "withdrawn"), None) is not None


def _is_cell(trial: TrialView, sweep: SweepView, plan: FrozenPlan | None) -> bool:
    """Whether a trial is the sweep's own: it has the name of its ordinal, and the plan has that ordinal. One that somebody
    made by hand may say anything, and is neither counted nor moved."""
    ordinal = trial.spec.get("ordinal")
    if trial.owner_uid != sweep.uid or not isinstance(ordinal, int) or trial.name != trial_name(sweep.name, ordinal):
        return False
    return plan is None or ordinal < plan.size
