"""`decide_sweep`: plan Job → frozen plan → Trials in a window → judge Job per group → report Job → Complete.

The plan Job is the only thing that runs before the plan is stored; what it refuses starts nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from realcli.api.base import seconds
from realcli.api.forecasting import forecast
from realcli.api.outcomes import Phase
from realcli.api.plan import Plan as FrozenPlan
from realcli.api.sweep import Resolved, SweepStatus
from realcli.api.termination import Result, Termination
from realcli_operator.reconcile.admission import Admission, Bounds, admit, missing
from realcli_operator.reconcile.breaker import Breaker, breaker_of
from realcli_operator.reconcile.concurrency import asked_caps, shown, throttled_caps
from realcli_operator.reconcile.conditions import find, is_true, with_condition, without
from realcli_operator.reconcile.confirming import confirmation
from realcli_operator.reconcile.ending import NO_SCORES, completion, is_hidden, shown_scores
from realcli_operator.reconcile.facts import JobFacts, SweepFacts
from realcli_operator.reconcile.jobs import Done, Gone, Lost, Running, job_state
from realcli_operator.reconcile.measured import due, measured
from realcli_operator.reconcile.names import judge_job, plan_job, report_job
from realcli_operator.reconcile.origin import AGAIN, Waiting, source_ref
from realcli_operator.reconcile.plans import JobIntent, Note, Removal, SweepPlan, Task, earliest
from realcli_operator.reconcile.policy import Policy, backoff
from realcli_operator.reconcile.recent import ACTIVE, HELD_BACK, Lane, Row, Scope, parsed
from realcli_operator.reconcile.renewal import is_renewable, round_of
from realcli_operator.reconcile.rows import Rows
from realcli_operator.reconcile.spending import spending
from realcli_operator.reconcile.suspects import controls_of, left_out, told, withdrawn_of
from realcli_operator.reconcile.sweepstatus import (
    STARTING,
    finished,
    newly_unready,
    of_cluster,
    only_counts,
    passes,
    said,
    state_of,
)
from realcli_operator.reconcile.tally import complete_groups, count, group_input, rounds_of, rows_of


def decide_sweep(facts: SweepFacts, now: datetime, policy: Policy | None = None) -> SweepPlan:
    """The next step of a sweep."""
    return _Step(facts, now, policy or Policy()).decide()


@dataclass
class _Draft:
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


class _Step:
    """One decision."""

    def __init__(self, facts: SweepFacts, now: datetime, policy: Policy) -> None:
        self.facts = facts
        self.now = now
        self.policy = policy
        self.name = facts.sweep.name
        self.status = facts.status
        self.draft = _Draft(grants=facts.granted)
        self.blocked: tuple[str, str] | None = None  # why a judge or report pod does not start
        self.rows = rows_of(facts.trials) if facts.rows is None else facts.rows
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

    def decide(self) -> SweepPlan:
        if self.facts.sweep.deleting:
            return SweepPlan()
        known = self.facts.status.conditions
        if self.facts.plan is None and (is_true(known, "Complete") or is_true(known, "Failed")):
            return finished(self.facts, self.now)
        if is_true(known, "Complete") and not self._reopened():
            over = finished(self.facts, self.now)
            caught_up = self.status.model_copy(update={"round": round_of(self.facts.spec)})
            return over if over.delete_sweep or caught_up == self.status else replace(over, status=caught_up)
        self._suspended()
        if self.facts.plan is None:
            self._planning()
        else:
            self._running(self.facts.plan)
        self.status = self.status.model_copy(
            update={"state": state_of(self.status, self.facts.spec), "observed_generation": self.facts.sweep.generation}
        )
        return self._freeze()

    def _reopened(self) -> bool:
        """Whether a sweep that was complete has something to do: repeats to renew, scores to show or to hide."""
        if not self.again:
            return is_hidden(self.status, self.facts.spec)
        text = f"spec.retryInvalid is {self.facts.spec.retry_invalid}: {len(self.again)} trials that ended Invalid run again"
        if self.status.report_uri is not None:
            text += f"; the report until then: {self.status.report_uri}"
        self.condition("Complete", "False", "Renewed", text)
        self.status = self.status.model_copy(update={"report_uri": None, "report_digest": None, **NO_SCORES})
        self.draft.events.append(Note("Normal", "Renewed", text))
        return True

    # -- planning

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
        """The first run of the plan Job, once there is something to plan from."""
        try:
            self.draft.create_jobs.append(self._intent(Task.PLAN, 1, 0))
        except Waiting as waiting:
            self._waits(waiting)

    def _waits(self, waiting: Waiting) -> None:
        self.condition("Ready", "False", waiting.reason, str(waiting))
        self.draft.delays.append(AGAIN)

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
            self.draft.delete_jobs.append(Removal(job.job.name, job.job.uid))
            self.draft.create_jobs.append(intent)

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

    # -- running

    def _running(self, plan: FrozenPlan) -> None:
        rows = self.rows
        self._forecast(plan, rows)
        self._suspects(plan, rows)
        admission = self._admission(plan, rows)
        self.draft.wake = tuple(dict.fromkeys((*admission.new, *self._mismatched(rows, admission), *self._to_look(rows))))
        if self.cancelled:
            self.draft.wake = tuple(row.name for row in rows.open.values())
        elif not (self.suspended or self.spent or self.unconfirmed or plan.judged_only):
            window = self.policy.look_ahead * self.facts.spec.parallelism
            gone = {Lane(Scope.TASK, task) for task in self.withdrawn}
            self.draft.create_trials = missing(plan, rows, window, self.policy.creates_per_step, admission.full | gone)
            if self.draft.create_trials:
                self.draft.delays.append(0.0)
        judged = self._judging(plan, rows)
        self._counted(plan, rows, judged)
        if self._everything_is(judged, plan):
            if judged:
                self._reporting(plan)
            else:
                self._all_withdrawn()
        elif self.cancelled and not rows.open and len(judged) == len(self._due(plan, rows)):
            if judged:
                self._reporting(plan)
            else:
                self._cancelled_unjudged()
        if not self.failing:  # whoever deletes a failed Job lets it run again
            self.status = self.status.model_copy(update={"conditions": without(self.status.conditions, "Failed")})
        self._show_plan(plan)

    def _suspects(self, plan: FrozenPlan, rows: Rows) -> None:
        """Who runs the control of a task, and which tasks are withdrawn."""
        spec, known = self.facts.spec, self.status
        holders = {row.trial for row in known.controls if row.end is None}
        busy = sum(row.phase in ACTIVE and (not row.awaiting or row.name in holders) for row in rows.open.values())
        free = 0 if self.suspended or self.cancelled else spec.parallelism - busy
        controls = controls_of(plan, rows, known.controls, self.name, free)
        withdrawn = withdrawn_of(plan, rows, controls, known.withdrawn)
        self.status = known.model_copy(update={"controls": controls, "withdrawn": withdrawn, "round": round_of(spec)})
        for one in withdrawn:
            if one.task not in self.withdrawn:
                self.draft.events.append(Note("Warning", "TaskWithdrawn", f"{one.task} is left out for all configurations"))
        self.withdrawn = frozenset(one.task for one in withdrawn)
        self.again = self._renewable()
        text = told(rows, controls, withdrawn)
        if text:
            self.condition("TasksSuspect", "True", "VerifierFault", text[:32768])

    def _to_look(self, rows: Rows) -> Iterator[str]:
        """Trials that a control, a withdrawal or a renewal concerns and that have not seen it."""
        controls = {row.task: row for row in self.status.controls}
        for row in rows.open.values():
            if row.awaiting:
                control = controls.get(row.task)
                mine = control is not None and control.trial == row.name and not self.suspended
                if control is not None and (control.end is not None or (mine and not row.runs_control)):
                    yield row.name
            elif row.phase is Phase.PENDING and row.task in self.withdrawn:
                yield row.name
        yield from (row.name for row in self.again.values())

    def _everything_is(self, judged: Collection[int], plan: FrozenPlan) -> bool:
        """Whether all groups are judged that are to be, and nothing of a withdrawn task still runs."""
        left = plan.groups - len(self.withdrawn) * len(plan.configurations)
        running = bool(self.withdrawn) and any(row.task in self.withdrawn for row in self.rows.open.values())
        return len(judged) == left and not running and not self.again

    def _all_withdrawn(self) -> None:
        """Nothing is left to judge."""
        text = "every task is withdrawn: their own tests fail with the reference solutions; there is no report"
        self.condition("Complete", "True", "Incomplete", text)
        self.draft.grants = frozenset()
        self.draft.events.append(Note("Warning", "Complete", text))

    def _admission(self, plan: FrozenPlan, rows: Rows) -> Admission:
        """Who may start, and why not more."""
        spec = self.facts.spec
        ends = rows.newest_ends(self.policy.recent_ends)
        breaker = breaker_of(plan, rows.open.values(), ends, self.now, self.policy, +rows.sealed)
        throttled = throttled_caps(plan, rows, rows.throttle_ends(self.policy.throttle_window), spec, self.policy)
        self.spent = self._spending(rows)
        held = self.suspended or self.cancelled or self.spent or self.unconfirmed
        holders = frozenset(row.trial for row in self.status.controls if row.end is None)
        caps = {**asked_caps(plan, spec), **throttled}
        bounds = Bounds(spec.parallelism, caps, breaker, held=held, holders=holders, withdrawn=self.withdrawn)
        admission = admit(plan, rows, self.facts.granted, bounds, self.now, self.policy)
        self.draft.grants, self.draft.broken, self.draft.avoid = admission.grants, admission.broken, breaker.nodes
        self.draft.delays += [admission.next_due, breaker.again]
        self._degraded(breaker)
        resolved = Resolved(parallelism=spec.parallelism, concurrency=shown(throttled), **of_cluster(plan))
        self.status = self.status.model_copy(update={"resolved": resolved})
        return admission

    def _spending(self, rows: Rows) -> bool:
        """Whether the budget is spent; the status says what is."""
        if self.facts.spec.from_ is not None:  # what its trials cost was counted where they ran
            return False
        found = spending(rows.spent, self.facts.spec)
        self.status = self.status.model_copy(
            update={
                "cost": found.column,
                "cost_usd": None if found.usd is None else format(found.usd, "f"),
                "tokens": found.tokens,
                "uncounted_attempts": found.uncounted,
            }
        )
        over = found.exhausted(self.facts.spec)
        known = is_true(self.status.conditions, "BudgetExhausted")
        if over is not None:
            reason, text = over[0], f"{over[1]}: nothing new starts, what runs finishes; raise spec.budget to go on"
            if not known:
                self.draft.events.append(Note("Warning", "BudgetExhausted", text))
            self.condition("BudgetExhausted", "True", reason, text)
        elif known:
            self.condition("BudgetExhausted", "False", "Raised", "")
        return over is not None

    def _mismatched(self, rows: Rows, admission: Admission) -> Iterator[str]:
        """Waiting trials whose status says something else than what keeps them."""
        for row in rows.open.values():
            if row.phase is not Phase.PENDING or (row.retry_after and parsed(row.retry_after) > self.now):
                continue
            shown = row.reason if row.reason in HELD_BACK else None
            held = "Suspended" if self.suspended else "BreakerOpen" if row.name in admission.broken else None
            if shown != held:
                yield row.name

    def _degraded(self, breaker: Breaker) -> None:
        """The condition says where nothing starts, and why."""
        known = find(self.status.conditions, "Degraded")
        if breaker.open:
            lanes = [breaker.open[lane].describe(self.policy.probe_interval) for lane in sorted(breaker.open)]
            text = "; ".join(lanes)
            if known is None or known.status != "True":
                self.draft.events.append(Note("Warning", "BreakerOpen", text[:1000]))
            self.condition("Degraded", "True", "BreakerOpen", text)
        elif known is not None and known.status == "True":
            self.draft.events.append(Note("Normal", "BreakerClosed", "attempts go well again; everything may start"))
            self.condition("Degraded", "False", "Recovered", "")

    def _forecast(self, plan: FrozenPlan, rows: Rows) -> None:
        """What it takes, as far as that is known; where that is much, a person has to say yes."""
        ended = sum(rows.phases[(mode, Phase.SEALED)] for mode in plan.modes)
        known = self.status.forecast
        edited = self.facts.status.observed_generation != self.facts.sweep.generation  # a budget, parallelism
        if known is None or edited or (not plan.judged_only and due(known.basis, ended, plan.size)):
            known = forecast(plan, self.facts.spec, measured(rows), ended)
            self.status = self.status.model_copy(update={"forecast": known})
        if not self.policy.confirm_above.asks:  # any more
            self.status = self.status.model_copy(update={"conditions": without(self.status.conditions, "Confirmed")})
            return
        begun = bool(rows) or any(name != plan_job(self.name) for name in self.facts.jobs)
        place = self.facts.sweep.namespace, self.name
        asked = confirmation(known, self.policy.confirm_above, self.facts.spec, plan.content_digest(), *place, begun=begun)
        if asked is None:
            return
        self.unconfirmed = not asked.given
        before = find(self.status.conditions, "Confirmed")
        if self.unconfirmed and (before is None or before.status != "False"):
            self.draft.events.append(Note("Warning", "ConfirmationNeeded", asked.message[:1000]))
        self.condition("Confirmed", "False" if self.unconfirmed else "True", asked.reason, asked.message)

    def _due(self, plan: FrozenPlan, rows: Rows) -> list[int]:
        """Groups that are judged or to be judged. Of those that another sweep ran, nothing new is begun while nobody has said
        yes or after a cancel."""
        groups = complete_groups(plan, rows, self.withdrawn, self.again)
        if not (plan.judged_only and (self.cancelled or self.unconfirmed)):
            return groups
        return [group for group in groups if judge_job(self.name, group) in self.facts.jobs]

    def _judging(self, plan: FrozenPlan, rows: Rows) -> list[int]:
        """Start and read judge Jobs; returns the groups judged."""
        judged: list[int] = []
        running = 0
        new: list[int] = []
        rounds = rounds_of(plan, rows)
        for group in self._due(plan, rows):
            job = self.facts.jobs.get(judge_job(self.name, group, rounds.get(group, 1)))
            if job is None:
                new.append(group)
                continue
            state = job_state(job, Task.JUDGE, self.now, self.policy, limit=self.policy.job_limit)
            if isinstance(state, Running):
                running += 1
                self.draft.delays.append(state.again)
                self.blocked = state.blocked or self.blocked
            elif isinstance(state, Gone) or (isinstance(state, Done) and state.message.result is Result.JUDGED):
                judged.append(group)  # a kept Job without a pod was read before: a refused one would have been replaced
            else:
                running += 1
                self._unresolved(job, Task.JUDGE, state, group, bounded="JudgeFailed")
        if not self.suspended:
            for group in new[: max(0, self.policy.judges - running)]:
                self.draft.create_jobs.append(self._intent(Task.JUDGE, 1, group))
        return judged

    def _unresolved(self, job: JobFacts, task: Task, state: Done | Lost, group: int, *, bounded: str) -> None:
        if isinstance(state, Lost):
            self._again(job, task, state.why, state.since, group=group, bounded=bounded)
            return
        reason, text = said(state.message)
        if passes(reason):
            self._again(job, task, f"{reason}: {text}", state.since, group=group)
        else:
            self._failed(bounded, f"Job {job.job.name}: {reason}: {text}")

    def _reporting(self, plan: FrozenPlan) -> None:
        intent = self._intent(Task.REPORT, 1, 0)
        job = self.facts.jobs.get(report_job(self.name, intent.n))
        if job is None:
            if not self.suspended:
                self.draft.create_jobs.append(intent)
            return
        state = job_state(job, Task.REPORT, self.now, self.policy, limit=self.policy.job_limit)
        if isinstance(state, Running):
            self.draft.delays.append(state.again)
            self.blocked = state.blocked
        elif isinstance(state, Done) and state.message.result is Result.REPORTED:
            self._complete(plan, state.message)
        elif isinstance(state, Gone):
            why = f"the pod of Job {job.job.name} is gone, and with it the scores"
            self._again(job, Task.REPORT, why, job.job.completion_time, bounded="ReportFailed")
        else:
            self._unresolved(job, Task.REPORT, state, 0, bounded="ReportFailed")

    def _cancelled_unjudged(self) -> None:
        """Cancelled before anything could be judged: there is nothing to report."""
        text = "spec.cancel is true; no group was complete, so there is no report"
        self.condition("Complete", "True", "Cancelled", text)
        self.draft.grants = frozenset()
        self.draft.events.append(Note("Normal", "Cancelled", text))

    def _complete(self, plan: FrozenPlan, message: Termination) -> None:
        counts, spec = self.status.counts, self.facts.spec
        partial = message.reason == "Incomplete"
        reason, text = completion(plan, spec, counts, message.message, report_is_partial=partial)
        before = find(self.facts.status.conditions, "Complete")
        self.condition("Complete", "True", reason, text)
        self.status = self.status.model_copy(
            update={"report_uri": message.uri, "report_digest": message.seal, **shown_scores(reason, spec, message.scores)}
        )
        self.draft.grants = frozenset()
        if before is None or before.status != "True":
            self.draft.events.append(Note("Normal", "Complete", f"{text}; report: {message.uri}"))

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

    def _suspended(self) -> None:
        if self.suspended:
            self.condition("Suspended", "True", "Asked", "spec.suspend is true: no new pods, running trials finish")
        elif find(self.status.conditions, "Suspended") is not None:
            self.condition("Suspended", "False", "Resumed", "")

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
