"""One step of a sweep: what it is made from, what it asks for, and what every part of it may do. Pure.

`decide_sweep` (`sweep.py`) puts the parts together: planning (`planning.py`), admission (`admitting.py`), judging and reporting
(`judging.py`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from realcli.api.base import seconds
from realcli.api.plan import Plan as FrozenPlan
from realcli.api.sweepstatus import Rerun, SweepStatus
from realcli_operator.reconcile.conditions import is_true, with_condition
from realcli_operator.reconcile.facts import JobFacts, SweepFacts
from realcli_operator.reconcile.origin import AGAIN, Waiting, source_ref
from realcli_operator.reconcile.plans import JobIntent, Note, Removal, SweepPlan, Task, earliest
from realcli_operator.reconcile.policy import Policy, backoff
from realcli_operator.reconcile.recent import Row
from realcli_operator.reconcile.renewal import is_renewable
from realcli_operator.reconcile.rows import Rows
from realcli_operator.reconcile.suspects import left_out
from realcli_operator.reconcile.sweepstatus import newly_unready, only_counts
from realcli_operator.reconcile.tally import count, group_input, rounds_of

MAX_RERUNS = 100


@dataclass
class Draft:
    """What the step will ask for; frozen into a `SweepPlan` at the end."""

    delete_jobs: list[Removal] = field(default_factory=list)
    create_jobs: list[JobIntent] = field(default_factory=list)
    store_plan: FrozenPlan | None = None
    create_trials: tuple[int, ...] = ()
    grants: frozenset[str] = frozenset()
    broken: frozenset[str] = frozenset()
    avoid: frozenset[str] = frozenset()
    wake: tuple[str, ...] = ()
    delays: list[float | None] = field(default_factory=list)
    events: list[Note] = field(default_factory=list)


class SweepStep:
    """One decision about a sweep."""

    def __init__(self, facts: SweepFacts, now: datetime, policy: Policy) -> None:
        self.facts = facts
        self.now = now
        self.policy = policy
        self.name = facts.sweep.name
        self.status = facts.status.model_copy(update={"reruns": [one for one in facts.status.reruns if not self._is_there(one)]})
        self.draft = Draft(grants=facts.granted)
        self.blocked: tuple[str, str] | None = None  # why a judge or report pod does not start
        self.rows = facts.rows
        self.spent = False  # the budget
        self.unconfirmed = False  # whether a person has to say yes first
        self.cancelled = facts.spec.cancel
        self.suspended = facts.spec.suspend and not self.cancelled
        self.failing = False  # whether something of this step cannot go on without a person
        self.withdrawn = frozenset(one.task for one in facts.status.withdrawn)
        self.again = self._renewable()

    def _renewable(self) -> dict[int, Row]:
        """Trials that `retryInvalid` renews, and that have not seen it."""
        spec = self.facts.spec
        if not spec.retry_invalid:
            return {}
        return {
            ordinal: row
            for ordinal, row in self.rows.invalid.items()
            if is_renewable(spec, row.phase, row.reason, row.round, withdrawn=row.task in self.withdrawn)
        }

    # -- Jobs

    def _waits(self, waiting: Waiting) -> None:
        self.condition("Ready", "False", waiting.reason, str(waiting))
        self.draft.delays.append(AGAIN)

    def _again(
        self, job: JobFacts, task: Task, why: str, since: datetime | None, *, group: int = 0, bounded: str | None = None
    ) -> None:
        """Delete the Job and run it again after a back-off; `Failed` with reason ``bounded`` when that was tried enough."""
        tries = job.attempt
        if bounded is not None and tries >= self.policy.job_tries:
            self._failed(bounded, f"{why} (run {tries} of {self.policy.job_tries})")
            return
        if job.job.deleting:
            self.draft.delays.append(2.0)
            return
        if bounded is not None and task is Task.PLAN:
            self.condition("Ready", "Unknown", "PlanLost", f"{why}; it is run again")
        wait = backoff(seconds(self.facts.spec.retry.backoff), tries, self.policy.max_backoff)
        left = wait - (self.now - since).total_seconds() if since is not None else 0.0
        if left > 0:
            self.draft.delays.append(left)
        elif not self.suspended:
            try:
                intent = self._intent(task, tries + 1, group)
            except Waiting as waiting:  # the source is gone since
                self._waits(waiting)
                return
            # Said before the old one goes: an operator that dies before there is the next must not count from 1.
            others = [one for one in self.status.reruns if one.job != job.job.name]
            reruns = [*others, Rerun(job=job.job.name, run=tries + 1)][-MAX_RERUNS:]
            self.status = self.status.model_copy(update={"reruns": reruns})
            self.draft.delete_jobs.append(Removal(job.job.name, job.job.uid))
            self.draft.create_jobs.append(intent)

    def _is_there(self, rerun: Rerun) -> bool:
        """Whether the Job has been replaced: its label says which run it is."""
        job = self.facts.jobs.get(rerun.job)
        return job is not None and not job.job.deleting and job.attempt >= rerun.run

    def _run_of(self, name: str) -> int:
        """Which run a Job is that is not there: the first, or the one that was to replace it."""
        return next((one.run for one in self.status.reruns if one.job == name), 1)

    def _intent(self, task: Task, attempt: int, group: int) -> JobIntent:
        plan = self.facts.plan
        if task is Task.PLAN or plan is None:
            asked = self.facts.spec.from_
            source = None if asked is None else source_ref(asked, self.facts.source, self.facts.sweep.namespace)
            return JobIntent(task, attempt, group, source=source)
        rounds = rounds_of(plan, self.rows)
        if task is Task.REPORT:
            gone = left_out(self.status.controls, self.status.withdrawn)
            return JobIntent(task, attempt, n=max(rounds.values(), default=1), withdrawn=gone)
        n = rounds.get(group, 1)
        return JobIntent(task, attempt, group, group_input(plan, self.rows, group, n), n=n)

    # -- status

    def condition(self, type_: str, status: Literal["True", "False", "Unknown"], reason: str, message: str) -> None:
        """Set a condition of the status in the making."""
        generation = self.facts.sweep.generation
        conditions = with_condition(self.status.conditions, type_, status, reason, message, self.now, generation)
        self.status = self.status.model_copy(update={"conditions": conditions})

    def _failed(self, reason: str, message: str) -> None:
        self.failing = True
        if not is_true(self.status.conditions, "Failed"):
            self.draft.events.append(Note("Warning", reason, message))
        self.condition("Failed", "True", reason, message)

    def _show_plan(self, plan: FrozenPlan) -> None:
        text = f"{plan.size} trials in {plan.groups} groups"
        if plan.warnings:
            text += f"; warnings: {'; '.join(plan.warnings)}"
        self.condition("Planned", "True", "Planned", text)
        if self.blocked is not None:
            self.condition("Ready", "False", *self.blocked)
        else:
            self.condition("Ready", "True", "Proven", "benchmark read, storage written and read")
        self.status = self.status.model_copy(
            update={
                "plan_digest": plan.content_digest(),
                "lock_digest": plan.lock_digest,
                "egress": plan.egress,
                "storage_uri": f"s3://{self.facts.spec.storage.bucket}/{plan.root}",
            }
        )

    def _cancelled_unjudged(self) -> None:
        """Cancelled before anything could be judged: there is nothing to report."""
        text = "spec.cancel is true; no group was complete, so there is no report"
        self.condition("Complete", "True", "Cancelled", text)
        self.draft.grants = frozenset()
        self.draft.events.append(Note("Normal", "Cancelled", text))

    def _counted(self, plan: FrozenPlan, rows: Rows, judged: Collection[int]) -> None:
        counts = count(plan, rows, judged, self.withdrawn)
        text = f"{counts.sealed + counts.invalid}/{counts.total}"
        self.status = self.status.model_copy(update={"counts": counts, "trials": text})

    def _freeze(self) -> SweepPlan:
        status: SweepStatus | None = self.status if self.status != self.facts.status else None
        if status is not None and only_counts(status, self.facts.status) and self.facts.last_write is not None:
            left = self.policy.status_interval - (self.now - self.facts.last_write).total_seconds()
            if left > 0:
                status = None
                self.draft.delays.append(left)
        draft = self.draft
        if not self.failing:  # that is told already
            draft.events += newly_unready(self.facts.status, self.status)
        return SweepPlan(
            delete_jobs=tuple(draft.delete_jobs),
            create_jobs=tuple(draft.create_jobs),
            store_plan=draft.store_plan,
            create_trials=draft.create_trials,
            grants=draft.grants,
            broken=draft.broken,
            avoid=draft.avoid,
            wake=draft.wake,
            status=status,
            requeue_after=earliest(*draft.delays),
            events=tuple(draft.events),
        )
