"""Of a sweep's step: judge Jobs, the report Job, and the end. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from realcli.api.plan import Plan as FrozenPlan
from realcli.api.termination import Result, Termination
from realcli_operator.reconcile.conditions import find
from realcli_operator.reconcile.ending import completion, shown_scores
from realcli_operator.reconcile.facts import JobFacts
from realcli_operator.reconcile.jobs import Done, Gone, Lost, Running, job_state
from realcli_operator.reconcile.names import judge_job, report_job
from realcli_operator.reconcile.plans import Note, Task
from realcli_operator.reconcile.rows import Rows
from realcli_operator.reconcile.sweepstatus import passes, said
from realcli_operator.reconcile.sweepstep import SweepStep
from realcli_operator.reconcile.tally import complete_groups, rounds_of


class Judging(SweepStep):
    """A sweep whose groups are complete, one after the other."""

    def _everything_is(self, judged: Collection[int], plan: FrozenPlan) -> bool:
        """Whether all groups are judged that are to be, and nothing of a withdrawn task still runs."""
        left = plan.groups - len(self.withdrawn) * len(plan.configurations)
        running = bool(self.withdrawn) and any(row.task in self.withdrawn for row in self.rows.open.values())
        return len(judged) == left and not running and not self.again

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
        rounds, known = rounds_of(plan, rows), self.facts.judged
        for group in self._due(plan, rows):
            if group in known.groups and group not in rounds:
                judged.append(group)
                continue
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
                if group not in rounds:
                    known.note(group, job.job.name)
            else:
                running += 1
                self._unresolved(job, Task.JUDGE, state, group, bounded="JudgeFailed")
        if not self.suspended:
            for group in new[: max(0, self.policy.judges - running)]:
                name = judge_job(self.name, group, rounds.get(group, 1))
                self.draft.create_jobs.append(self._intent(Task.JUDGE, self._run_of(name), group))
        return judged

    def _kept(self, plan: FrozenPlan, rows: Rows) -> list[int]:
        """Of a sweep that was cancelled while it renewed: groups that were judged before and are not to be judged anew. What
        was said of them stays said, and is in the report."""
        if not self.cancelled:
            return []
        due = set(self._due(plan, rows))
        rounds = {group: n for group, n in rounds_of(plan, rows).items() if group not in due}
        tasks = {group: plan.tasks[group % len(plan.tasks)].name for group in rounds}
        return sorted(
            group
            for group, n in rounds.items()
            if tasks[group] not in self.withdrawn and any(self._was_judged(group, earlier) for earlier in range(1, n))
        )

    def _was_judged(self, group: int, n: int) -> bool:
        job = self.facts.jobs.get(judge_job(self.name, group, n))
        state = None if job is None else job_state(job, Task.JUDGE, self.now, self.policy)
        return isinstance(state, Gone) or (isinstance(state, Done) and state.message.result is Result.JUDGED)

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
                self.draft.create_jobs.append(replace(intent, attempt=self._run_of(report_job(self.name, intent.n))))
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

    def _all_withdrawn(self) -> None:
        """Nothing is left to judge."""
        text = "every task is withdrawn: their own tests fail with the reference solutions; there is no report"
        self.condition("Complete", "True", "Incomplete", text)
        self.draft.grants = frozenset()
        self.draft.events.append(Note("Warning", "Complete", text))

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
