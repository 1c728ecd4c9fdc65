"""`decide_trial`: Pending → work pod → Working → verify pod → Verifying → Sealed or Invalid, and every way it can go wrong.

An outcome is written down before the pod that brought it is deleted, and a new pod is made only when the old one is
terminal or gone. `status.attempt` and the pods' names are the only memory: a pod whose number is higher than the status
knows was created just before a crash and is taken over.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from realcli.api.base import seconds
from realcli.api.outcomes import Effect, Phase, effect_of
from realcli.api.termination import Result
from realcli.api.trial import TrialStatus
from realcli_operator.kube.views import ContainerState, PodView
from realcli_operator.reconcile.conditions import find, rfc3339, with_condition
from realcli_operator.reconcile.endfacts import (
    SESSION,
    all_started,
    describe,
    facts_of,
    facts_of_absent,
    scheduled_at,
    taken_of,
    trouble_of,
    unscheduled_because,
    work_message,
)
from realcli_operator.reconcile.endmodel import Overdue, Taken, Work
from realcli_operator.reconcile.ends import End, end_of
from realcli_operator.reconcile.facts import TrialFacts
from realcli_operator.reconcile.names import work_pod
from realcli_operator.reconcile.outcome import (
    MAX_MESSAGE,
    began,
    carried,
    ended,
    placed,
    troubled,
    work_ended,
)
from realcli_operator.reconcile.plans import Note, PodIntent, Removal, TrialPlan, earliest
from realcli_operator.reconcile.policy import Policy, backoff
from realcli_operator.reconcile.queued import admitted, queued, ungated_since
from realcli_operator.reconcile.recent import HELD_BACK, NOT_THE_NODE
from realcli_operator.reconcile.renewal import is_renewable, renewed
from realcli_operator.reconcile.sourced import settled, sourced
from realcli_operator.reconcile.storage import storage_back, storage_seen
from realcli_operator.reconcile.verifying import VerifyStep, gap


def decide_trial(facts: TrialFacts, now: datetime, policy: Policy | None = None) -> TrialPlan:
    """The next step of a trial."""
    return _Step(facts, now, policy or Policy()).decide()


class _Step(VerifyStep):
    """The rules."""

    def decide(self) -> TrialPlan:
        if self.facts.trial.deleting:
            return TrialPlan()
        status = self.facts.status
        if status.phase.terminal:
            return TrialPlan(delete=self._removals(self.facts.pods, doomed=True), status=self._renewed(status))
        plan = self._next(status)
        return self._cancelled(plan) if self.facts.sweep.cancel else plan

    def _cancelled(self, plan: TrialPlan) -> TrialPlan:
        """`spec.cancel`: what has ended is read, everything else ends now."""
        status = plan.status or self.facts.status
        if status.phase.terminal:
            return plan
        text = f"spec.cancel is true; it was {status.phase}"
        over = ended(status, Phase.INVALID, "Cancelled", text, self.now, self.generation)
        return TrialPlan(delete=self._removals(self.facts.pods, doomed=True), status=over)

    def _renewed(self, status: TrialStatus) -> TrialStatus | None:
        """`spec.retryInvalid`: an Invalid trial runs again, once the sweep knows what its control said."""
        spec, row = self.facts.sweep, self.facts.control
        if not is_renewable(spec, status.phase, status.reason or "", status.round, withdrawn=self.facts.withdrawn):
            return None
        mine = row is not None and row.trial == self.name and row.end is None
        return None if mine else renewed(status, spec, self.generation)

    def _next(self, status: TrialStatus) -> TrialPlan:
        newest = max((numbers.attempt for numbers in self._numbers()), default=0)
        if newest > status.attempt:
            begin = began if self.facts.plan.source is None else sourced
            status = begin(self.facts, newest, self.now)
        elif status.phase is Phase.PENDING:
            return self._between_attempts(status)
        last = max((n.verify for n in self._numbers() if n.attempt == status.attempt), default=0)
        if last > status.verify_attempt and not self._work_unread(status):
            status = self._verifying_began(status, last)
        plan = self._verifying(status) if status.verify_attempt else self._working(status)
        if plan.status is None and status != self.facts.status:
            plan = TrialPlan(plan.create, plan.delete, status, plan.requeue_after, plan.events)
        return plan

    def _work_unread(self, status: TrialStatus) -> bool:
        """A verify pod is there, but the status does not hold yet how the work ended: take that step again."""
        pod = self.facts.pod(work_pod(self.name, status.attempt))
        return status.verify_attempt == 0 and pod is not None and pod.finished

    # -- between attempts

    def _between_attempts(self, status: TrialStatus) -> TrialPlan:
        removals = self._removals(self.facts.pods, doomed=True)
        if self.facts.withdrawn:
            text = f"task {self.facts.spec.task} is withdrawn from the sweep: its own tests fail with the reference solution"
            over = ended(status, Phase.INVALID, "VerifierFault", text, self.now, self.generation)
            return TrialPlan(delete=removals, status=over)
        alive = self._alive(removals)
        if alive is not None:
            return alive
        as_there = settled(self.facts, self.now)
        if as_there is not None:
            return TrialPlan(delete=removals, status=as_there)
        waiting = self._waiting(status, removals)
        if waiting is not None:
            return waiting
        if self.facts.sweep.suspend:
            held = status.model_copy(update={"reason": "Suspended", "observed_generation": self.generation})
            return TrialPlan(delete=removals, status=held if status.reason != "Suspended" else None)
        if not self.facts.granted:
            shown = status.reason if status.reason in HELD_BACK else None
            told = status.model_copy(update={"reason": self.facts.held}) if self.facts.held != shown else None
            return TrialPlan(delete=removals, status=told)
        attempt = status.attempt + 1
        if self.facts.plan.source is not None:
            plan = self._verify(sourced(self.facts, attempt, self.now), None)
            return TrialPlan(plan.create, removals, plan.status)
        broke = status.last_invalid_reason is not None and status.last_invalid_reason not in NOT_THE_NODE
        avoid = (status.last_invalid_node,) if broke and status.last_invalid_node is not None else ()
        return TrialPlan(PodIntent(attempt, avoid=avoid), removals, began(self.facts, attempt, self.now))

    # -- working

    def _working(self, status: TrialStatus) -> TrialPlan:
        name = work_pod(self.name, status.attempt)
        pod = self.facts.pod(name)
        if pod is None:
            if name not in self.facts.absent:
                return TrialPlan(requeue_after=1.0)
            status = storage_back(status, self.now, self.generation)
            queued = status.phase is Phase.QUEUED
            gone = facts_of_absent(name, Work.WORK, noted=status.work_end, queued=queued, text=status.message or "")
            return self._work_over(status, end_of(gone), None)
        seen = storage_seen(status, pod, self.facts.sweep.limits, self.now, self.generation, self.policy)
        if self._is_over(pod):
            return self._work_done(placed(seen.status, pod), pod)
        plan = self._unfinished(seen.status, pod)
        return replace(plan, requeue_after=earliest(plan.requeue_after, seen.again), events=(*plan.events, *seen.events))

    def _work_done(self, status: TrialStatus, pod: PodView) -> TrialPlan:
        message = work_message(pod)
        seal = None
        if message is not None and message.reason != "StorageUnavailable":  # its counts may be another's, see `ends.py`
            status = carried(status, message)
            seal = message.seal if message.result is Result.WORK_SEALED else None
        return self._work_over(status, end_of(facts_of(pod, Work.WORK, noted=status.work_end)), seal)

    def _work_over(self, status: TrialStatus, end: End, seal: str | None) -> TrialPlan:
        """What follows from the end of a work pod; ``seal``: the digest it announced."""
        if end.phase is Phase.VERIFYING:
            plan = self._verify(work_ended(status, end.reason, end.message), seal)
        else:
            plan = self._attempt_over(status, end.reason, end.message)
        return replace(plan, events=(*plan.events, *gap(end)))

    # -- a pod that has not finished

    def _unfinished(self, status: TrialStatus, pod: PodView) -> TrialPlan:
        if pod.finished:
            return TrialPlan(status=self._changed(status), requeue_after=max(1.0, self._until_settled(pod)))
        working = status.verify_attempt == 0
        if working and (taken_of(pod) is not Taken.NO or pod.deleting) and status.work_end is None:
            # The pod may vanish before its end is seen: remember why.
            end = end_of(facts_of(pod, Work.WORK))
            status = work_ended(status, end.reason, f"{describe(pod)}; its deletion was asked for")
        if pod.deleting:
            left = self._until_lost(pod)
            if left > 0:
                return TrialPlan(status=self._changed(status), requeue_after=left)
            if working:
                text = f"{describe(pod)}; its node does not confirm the deletion"
                end = end_of(facts_of(pod, Work.WORK, overdue=Overdue.DELETION, text=text))
                status = work_ended(status, end.reason, end.message)
            return TrialPlan(delete=(Removal(pod.name, pod.uid, 0),), status=self._changed(status), requeue_after=5.0)
        if not all_started(pod):
            return self._not_started(status, pod)
        status = admitted(status, self.now, self.generation)
        running = find(status.conditions, "Running")
        if running is not None and running.status == "False":
            word = status.phase.value
            conditions = with_condition(status.conditions, "Running", "True", word, "", self.now, self.generation)
            reason = status.reason if status.verify_faults else None  # what earlier verify pods count as
            status = status.model_copy(update={"conditions": conditions, "reason": reason, "message": None})
        session = pod.container(SESSION)
        if session is None or session.state is not ContainerState.TERMINATED or session.finished_at is None:
            return TrialPlan(status=self._changed(status))
        left = self.policy.session_exit_grace - (self.now - session.finished_at).total_seconds()
        if left > 0:
            return TrialPlan(status=self._changed(status), requeue_after=left)
        # The session ended and the rest of the pod does not: keep what it said, then make the pod terminal.
        message = work_message(pod)
        if working and message is not None and message.reason is not None:
            status = work_ended(carried(status, message), message.reason, message.message)
            if message.result is Result.WORK_SEALED:
                status = status.model_copy(update={"work_seal_digest": message.seal})
        elif working and status.work_end is None:
            end = end_of(facts_of(pod, Work.WORK))
            status = work_ended(status, end.reason, end.message)
        elif not working:
            text = f"the session left no message: {describe(pod)}"
            return self._verify_over(status, pod, end_of(facts_of(pod, Work.VERIFY, text=text)))
        return TrialPlan(delete=(Removal(pod.name, pod.uid),), status=self._changed(status), requeue_after=60.0)

    def _not_started(self, status: TrialStatus, pod: PodView) -> TrialPlan:
        limits = self.facts.sweep.limits
        scheduled = scheduled_at(pod)
        if scheduled is None:
            if pod.scheduling_gates:
                return TrialPlan(status=self._changed(queued(status, pod, self.now, self.generation)))
            status = admitted(status, self.now, self.generation)
            if pod.creation_timestamp is None:
                return TrialPlan(status=self._changed(status))
            left = seconds(limits.pending) - (self.now - ungated_since(status, pod.creation_timestamp)).total_seconds()
            if left <= 0:
                text = f"pod {pod.name} was not scheduled within limits.pending ({limits.pending}): {unscheduled_because(pod)}"
                return self._give_up(status, pod, Overdue.PENDING, text)
            return TrialPlan(status=self._changed(status), requeue_after=left)
        status = admitted(status, self.now, self.generation)
        left = seconds(limits.setup) - (self.now - scheduled).total_seconds()
        trouble = trouble_of(pod)
        patience: float | None = None
        if trouble is not None:
            status = troubled(status, trouble, self.now, self.generation)
            running = find(status.conditions, "Running")
            since = datetime.fromisoformat(running.last_transition_time) if running is not None else self.now
            patience = trouble.grace.seconds(self.policy) - (self.now - since).total_seconds()
            if patience <= 0:
                return self._give_up(status, pod, Overdue.NO, f"pod {pod.name}: {trouble.message}")
        if left <= 0:
            text = f"pod {pod.name} did not start within limits.setup ({limits.setup}) of scheduling: {describe(pod)}; "
            text += "kubectl describe pod shows more (a Secret or volume that is missing, a slow pull)"
            return self._give_up(status, pod, Overdue.SETUP, text)
        return TrialPlan(status=self._changed(status), requeue_after=earliest(left, patience))

    def _give_up(self, status: TrialStatus, pod: PodView, overdue: Overdue, text: str) -> TrialPlan:
        """A pod that never ran the agent (or the verifier) beside its session."""
        if status.verify_attempt:
            return self._verify_over(status, pod, end_of(facts_of(pod, Work.VERIFY, overdue=overdue, text=text)))
        end = end_of(facts_of(pod, Work.WORK, overdue=overdue, text=text))
        return self._work_over(placed(status, pod), end, None)

    # -- ends

    def _attempt_over(self, status: TrialStatus, reason: str, message: str) -> TrialPlan:
        """The attempt ended without a seal (or with an invalid one): a new one, or the end of the trial."""
        effect = effect_of(reason)
        removals = self._removals(self.facts.pods, doomed=True)
        if effect in (Effect.VERIFIED, Effect.AGENT):
            # The agent spoilt it and nothing could be sealed: valid, and nothing to reward.
            status = status.model_copy(update={"work_end": reason, "reward": "0"})
            over = ended(status, Phase.SEALED, reason, message, self.now, self.generation)
            return TrialPlan(delete=removals, status=over, events=(Note("Warning", reason, message),))
        base = seconds(self.facts.sweep.retry.backoff)
        invalid = status.invalid_attempts + (effect is not Effect.HELD)
        status = status.model_copy(update={"work_end": reason, "invalid_attempts": invalid})
        if effect is not Effect.HELD:
            last = {"reason": reason, "at": rfc3339(self.now), "began": status.started_at, "node": status.node}
            last["throttled"] = status.throttled
            status = status.model_copy(update={f"last_invalid_{name}": value for name, value in last.items()})
        allowed = self.facts.sweep.retry.infrastructure
        now_invalid = invalid - status.earlier_invalid  # since it was renewed
        if effect is Effect.FINAL or (effect is Effect.RETRY and now_invalid > allowed):
            text = message if effect is Effect.FINAL else f"{message} (attempt {now_invalid} of {allowed + 1}, the last)"
            over = ended(status, Phase.INVALID, reason, text, self.now, self.generation)
            return TrialPlan(delete=removals, status=over, events=(Note("Warning", reason, text),))
        times = status.attempt - invalid if effect is Effect.HELD else now_invalid  # what is held is not bounded: it slows down
        wait = backoff(base, times, self.policy.max_backoff)
        conditions = with_condition(status.conditions, "Running", "False", reason, message, self.now, self.generation)
        waiting = status.model_copy(
            update={
                "phase": Phase.PENDING,
                "reason": reason,
                "message": message[:MAX_MESSAGE] or None,
                "conditions": conditions,
                "retry_after": self._at(wait),
                "observed_generation": self.generation,
            }
        )
        note = Note("Warning", reason, f"attempt {status.attempt}: {message}")
        return TrialPlan(delete=removals, status=waiting, requeue_after=wait, events=(note,))
