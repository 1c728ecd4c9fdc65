"""`decide_sweep`: plan Job → frozen plan → Trials in a window → judge Job per group → report Job → Complete.

The plan Job is the only thing that runs before the plan is stored; what it refuses starts nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from realcli.api.outcomes import Phase
from realcli.api.plan import Plan as FrozenPlan
from realcli_operator.reconcile.admission import missing
from realcli_operator.reconcile.admitting import Admitting
from realcli_operator.reconcile.conditions import find, is_true, without
from realcli_operator.reconcile.ending import NO_SCORES, is_hidden
from realcli_operator.reconcile.facts import SweepFacts
from realcli_operator.reconcile.judging import Judging
from realcli_operator.reconcile.planning import Planning
from realcli_operator.reconcile.plans import Note, SweepPlan
from realcli_operator.reconcile.policy import Policy
from realcli_operator.reconcile.recent import ACTIVE, Lane, Scope, owned_lanes
from realcli_operator.reconcile.renewal import round_of
from realcli_operator.reconcile.rows import Rows
from realcli_operator.reconcile.suspects import controls_of, told, withdrawn_of
from realcli_operator.reconcile.sweepstatus import finished, state_of


def decide_sweep(facts: SweepFacts, now: datetime, policy: Policy | None = None) -> SweepPlan:
    """The next step of a sweep."""
    return _Step(facts, now, policy or Policy()).decide()


class _Step(Planning, Admitting, Judging):
    """One decision."""

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
            return is_hidden(self.status, self.facts.spec, self.facts.sweep.generation)
        text = f"spec.retryInvalid is {self.facts.spec.retry_invalid}: {len(self.again)} trials that ended Invalid run again"
        if self.status.report_uri is not None:
            text += f"; the report until then: {self.status.report_uri}"
        self.condition("Complete", "False", "Renewed", text)
        self.status = self.status.model_copy(update={"report_uri": None, "report_digest": None, **NO_SCORES})
        self.draft.events.append(Note("Normal", "Renewed", text))
        return True

    def _suspended(self) -> None:
        if self.suspended:
            self.condition("Suspended", "True", "Asked", "spec.suspend is true: no new pods, running trials finish")
        elif find(self.status.conditions, "Suspended") is not None:
            self.condition("Suspended", "False", "Resumed", "")

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
            owned = owned_lanes(plan, self.facts.spec.models)
            self.draft.create_trials = missing(plan, rows, window, self.policy.creates_per_step, admission.full | gone, owned)
            if self.draft.create_trials:
                self.draft.delays.append(0.0)
        judged, kept = self._judging(plan, rows), self._kept(plan, rows)
        self._counted(plan, rows, [*judged, *kept])
        if self._everything_is(judged, plan):
            if judged:
                self._reporting(plan)
            else:
                self._all_withdrawn()
        elif self.cancelled and not rows.open and len(judged) == len(self._due(plan, rows)):
            if judged or kept:
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
