"""Of a sweep's step: the plan Job, its result and what it refuses. Pure."""

from __future__ import annotations

from realcli.api.plan import Plan as FrozenPlan
from realcli.api.termination import Result
from realcli_operator.reconcile.conditions import find, is_true, without
from realcli_operator.reconcile.facts import JobFacts
from realcli_operator.reconcile.jobs import Done, Lost, Running, job_state
from realcli_operator.reconcile.names import plan_job
from realcli_operator.reconcile.origin import Waiting
from realcli_operator.reconcile.plans import Note, Removal, Task
from realcli_operator.reconcile.sweepstatus import STARTING, passes, said
from realcli_operator.reconcile.sweepstep import SweepStep


class Planning(SweepStep):
    """A sweep that has no plan yet."""

    def _planning(self) -> None:
        log = self.facts.plan_log
        name = plan_job(self.name)
        job = self.facts.jobs.get(name)
        if self.cancelled:
            self.draft.delete_jobs += [] if job is None else [Removal(job.job.name, job.job.uid)]
            self._cancelled_unjudged()
            return
        if log is not None and log.plan is not None:
            self._planned(log.plan)
            return
        if job is None:
            if not self.suspended:
                self._plan_anew()
            return
        state = job_state(job, Task.PLAN, self.now, self.policy, limit=self.policy.plan_limit)
        if isinstance(state, Running):
            self.draft.delays.append(state.again)
            if state.blocked is not None:
                reason, text = state.blocked
                self.condition("Ready", "False", reason, text + (self._mounts() if reason == "PodNotStarted" else ""))
            elif (ready := find(self.status.conditions, "Ready")) is not None and ready.reason in STARTING:
                self.status = self.status.model_copy(update={"conditions": without(self.status.conditions, "Ready")})
        elif isinstance(state, Done) and state.message.result is Result.REFUSED:
            self._refused(job, state)
        else:
            since = job.job.completion_time
            if isinstance(state, Lost):
                why, since = state.why, state.since
            elif log is not None:
                why = log.error
            else:
                why = f"the pod of Job {name} is gone, and with it the plan"
            self._again(job, Task.PLAN, why, since, bounded="PlanFailed")

    def _plan_anew(self) -> None:
        """The plan Job, once there is something to plan from."""
        try:
            self.draft.create_jobs.append(self._intent(Task.PLAN, self._run_of(plan_job(self.name)), 0))
        except Waiting as waiting:
            self._waits(waiting)

    def _mounts(self) -> str:
        """What the plan Job's pod needs from the sweep's namespace: of one that is missing the pod's status says nothing."""
        spec = self.facts.spec
        maps = sorted({a.files.config_map_ref.name for a in spec.agents if a.files is not None and a.files.config_map_ref})
        return (
            f". It mounts {', '.join([f'Secret {spec.storage.credentials.secret_ref.name}', *(f'ConfigMap {m}' for m in maps)])}"
        )

    def _planned(self, plan: FrozenPlan) -> None:
        known = self.status.plan_digest
        digest = plan.content_digest()
        if known is not None and known != digest:
            text = f"the plan was {known} and is {digest} now: sweep.json in storage was replaced; make a new sweep"
            self._failed("DigestMismatch", text)
            return
        if plan.sweep_uid != self.facts.sweep.uid:
            self._failed("DigestMismatch", f"the plan is that of a sweep with uid {plan.sweep_uid}; make a new sweep")
            return
        self.draft.store_plan = plan
        if not is_true(self.status.conditions, "Planned"):
            self.draft.events.append(Note("Normal", "Planned", f"{plan.size} trials in {plan.groups} groups"))
        self._show_plan(plan)
        self._counted(plan, self.rows, ())

    def _refused(self, job: JobFacts, state: Done) -> None:
        """The plan Job said no. What passes is tried again; everything else is for a person, and starts nothing."""
        reason, text = said(state.message)
        if passes(reason):
            self.condition("Ready", "False", reason, f"{text}; it is tried again by itself")
            self._again(job, Task.PLAN, text, state.since)
            return
        self.condition("Planned", "False", reason, text)
        self.condition("Ready", "False", reason, text)
        self._failed(reason, f"{text}; nothing was started. The spec is immutable: make a new sweep")
