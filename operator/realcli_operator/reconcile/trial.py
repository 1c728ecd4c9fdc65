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
from realcli.api.termination import Result, Termination, parse_termination
from realcli.api.trial import TrialStatus
from realcli_operator.kube.views import ContainerState, PodView
from realcli_operator.reconcile.conditions import find, rfc3339, with_condition
from realcli_operator.reconcile.control import ControlStep, awaits, candidate, failed_on, worked
from realcli_operator.reconcile.endfacts import (
    SESSION,
    all_started,
    describe,
    facts_of,
    facts_of_absent,
    scheduled_at,
    session_message,
    taken_of,
    trouble_of,
    unscheduled_because,
    without_seal,
    work_message,
)
from realcli_operator.reconcile.endmodel import Overdue, Taken, Work
from realcli_operator.reconcile.ends import UNEXPLAINED, End, end_of, is_fault
from realcli_operator.reconcile.facts import TrialFacts
from realcli_operator.reconcile.names import verify_pod, work_pod
from realcli_operator.reconcile.outcome import (
    MAX_MESSAGE,
    began,
    carried,
    ended,
    placed,
    troubled,
    verdict_of,
    work_ended,
)
from realcli_operator.reconcile.plans import Note, PodIntent, Removal, TrialPlan, earliest
from realcli_operator.reconcile.policy import Policy, backoff
from realcli_operator.reconcile.queued import admitted, queued, ungated_since
from realcli_operator.reconcile.recent import HELD_BACK, NOT_THE_NODE
from realcli_operator.reconcile.renewal import is_renewable, renewed
from realcli_operator.reconcile.sourced import lost, settled, sourced
from realcli_operator.reconcile.storage import storage_back, storage_seen


def decide_trial(facts: TrialFacts, now: datetime, policy: Policy | None = None) -> TrialPlan:
    """The next step of a trial."""
    return _Step(facts, now, policy or Policy()).decide()


class _Step(ControlStep):
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
        alive = [pod for pod in self.facts.pods if not pod.finished]
        if alive:
            return TrialPlan(delete=removals, requeue_after=min(self._until_lost(pod) for pod in alive))
        as_there = settled(self.facts, self.now)
        if as_there is not None:
            return TrialPlan(delete=removals, status=as_there)
        wait = self._until(status.retry_after)
        if wait > 0:
            return TrialPlan(delete=removals, requeue_after=wait)
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
        return replace(plan, events=(*plan.events, *_gap(end)))

    # -- verifying

    def _verify(self, status: TrialStatus, seal: str | None) -> TrialPlan:
        """Start the next verify pod. The agent is gone: its pod is terminal or absent."""
        number = status.verify_attempt + 1
        status = self._verifying_began(status, number)
        if seal is not None:
            status = status.model_copy(update={"work_seal_digest": seal})
        there = self.facts.pod(verify_pod(self.name, status.attempt, number))  # created just before a crash
        intent = PodIntent(status.attempt, number, status.work_seal_digest, avoid=tuple(status.verify_nodes))
        # It may have ended meanwhile; what it says is read in the next step, so it is not among the pods that go.
        removals = self._removals(pod for pod in self.facts.pods if pod is not there)
        return TrialPlan(intent if there is None else None, removals, status)

    def _verifying_began(self, status: TrialStatus, number: int) -> TrialStatus:
        conditions = with_condition(status.conditions, "Running", "True", "Verifying", "", self.now, self.generation)
        task = next(task for task in self.facts.plan.tasks if task.name == self.facts.spec.task)
        return status.model_copy(
            update={
                "phase": Phase.VERIFYING,
                "verify_attempt": number,
                "retry_after": None,
                "pod": verify_pod(self.name, status.attempt, number),
                "verifier_trust": task.trust,
                "conditions": conditions,
            }
        )

    def _verifying(self, status: TrialStatus) -> TrialPlan:
        if status.awaiting is not None:
            return self._controlling(status)
        name = verify_pod(self.name, status.attempt, status.verify_attempt)
        pod = self.facts.pod(name)
        if status.retry_after is not None:  # this verify pod has failed; the next one waits
            return self._between_verifies(status)
        if pod is None:
            if name not in self.facts.absent:
                return TrialPlan(requeue_after=1.0)
            return self._verify_failed(status, None, "PodLost", f"verify pod {name} is gone and left no message")
        message = parse_termination(session_message(pod))
        if message is None or message.phase != "Verify":
            if not self._is_over(pod):
                return self._unfinished(status, pod)
            return self._verify_over(status, pod, end_of(facts_of(pod, Work.VERIFY)))
        # It has spoken: what still runs in the pod does not matter.
        if message.result is Result.VERDICT:
            return self._verdict(status, pod, message)
        if message.result in (Result.NO_WORK_SEAL, Result.WORK_INVALID):
            return self._no_work_seal(status, message)
        # If the pod was taken back, verifier and session end at once, and the session sees only the first: the table knows.
        return self._verify_over(worked(status, message), pod, end_of(facts_of(pod, Work.VERIFY)))

    def _verdict(self, status: TrialStatus, pod: PodView, message: Termination) -> TrialPlan:
        judged = verdict_of(status, message)
        if isinstance(judged, str):
            return self._verify_failed(status, pod.node, "VerifierFault", f"{judged}; {describe(pod)}")
        reason = judged.reason or ""
        if self.facts.plan.source is not None:  # there was no work pod to say it
            judged = placed(judged, pod)
        over = ended(judged, Phase.SEALED, reason, message.message or "", self.now, self.generation)
        return TrialPlan(delete=self._removals(self.facts.pods, doomed=True), status=over)

    def _no_work_seal(self, status: TrialStatus, message: Termination) -> TrialPlan:
        """There is nothing (valid) to verify: the attempt ends as its pod did, or as its invalid seal says."""
        if self.facts.plan.source is not None:
            over = lost(self.facts, status, message.message or "", self.now)
            note = Note("Warning", over.reason or "", over.message or "")
            return TrialPlan(delete=self._removals(self.facts.pods, doomed=True), status=over, events=(note,))
        sealed_as = (message.work_end or message.reason) if message.result is Result.WORK_INVALID else None
        anchor, said, text = status.work_seal_digest, message.message or "", status.message or message.message or ""
        # A session that was told to end (SessionLost) cannot say why; the pod's end, if it was seen, does.
        found = without_seal(status.work_end, sealed_as=sealed_as, anchor=anchor, said=said, text=text)
        return self._work_over(status, end_of(found), None)

    def _verify_over(self, status: TrialStatus, pod: PodView, end: End) -> TrialPlan:
        """What follows from the end of a verify or control pod that said nothing of use."""
        if status.awaiting is not None:
            plan = self._control_over(status, pod.node, end)
        else:
            plan = self._verify_failed(status, pod.node, end.reason, end.message)
        return replace(plan, events=(*plan.events, *_gap(end)))

    def _verify_failed(self, status: TrialStatus, node: str | None, reason: str, message: str) -> TrialPlan:
        """No verdict from this pod. What neither task nor verifier can help (storage or the node away, the pod taken
        back) is no fault of the verifier and is waited for: the work is sealed and must not be lost to it."""
        fault = is_fault(reason)
        status = failed_on(status, node).model_copy(
            update={"verify_faults": status.verify_faults + fault, "message": message[:MAX_MESSAGE]}
        )
        if fault:
            status = status.model_copy(update={"reason": candidate(reason, status.reason)})
        removals = self._removals(self.facts.pods, doomed=True)
        if status.verify_faults >= self.policy.verify_faults and self.facts.plan.platform.control:
            status = awaits(status, message)
            note = Note("Warning", "AwaitsControl", f"{status.message}"[:1000])
            return TrialPlan(delete=removals, status=status, requeue_after=self.policy.control_again, events=(note,))
        if status.verify_faults >= self.policy.verify_faults or status.verify_attempt >= self.policy.verify_pods:
            why = "VerifierFault" if fault else reason if effect_of(reason) is not Effect.HELD else "PodLost"
            text = f"{status.verify_attempt} verify pods ended without a verdict, the last: {message}"
            over = ended(status, Phase.INVALID, why, text, self.now, self.generation)
            return TrialPlan(delete=removals, status=over, events=(Note("Warning", why, text),))
        wait = backoff(seconds(self.facts.sweep.retry.backoff), status.verify_attempt, self.policy.max_backoff)
        status = status.model_copy(update={"retry_after": self._at(wait)})
        note = Note("Warning", "VerifyFailed", message)
        return TrialPlan(delete=removals, status=status, requeue_after=wait, events=(note,) if fault else ())

    def _between_verifies(self, status: TrialStatus) -> TrialPlan:
        removals = self._removals(self.facts.pods, doomed=True)
        alive = [pod for pod in self.facts.pods if not pod.finished]
        if alive:
            return TrialPlan(delete=removals, requeue_after=min(self._until_lost(pod) for pod in alive))
        wait = self._until(status.retry_after)
        if wait > 0:
            return TrialPlan(delete=removals, requeue_after=wait)
        plan = self._verify(status, None)
        return TrialPlan(plan.create, removals, plan.status)

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


def _gap(end: End) -> tuple[Note, ...]:
    """What a person must see of an end that no row of the table explains."""
    return (Note("Warning", UNEXPLAINED, end.message),) if end.gap else ()
