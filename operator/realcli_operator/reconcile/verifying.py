"""The verify pod of a trial: its verdict, or what no verdict means. Pure.

Like every step: an outcome is written down before its pod goes, and the next pod waits until the old one is terminal or gone.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

from realcli.api.base import seconds
from realcli.api.outcomes import Effect, Phase, effect_of
from realcli.api.termination import Result, Termination, parse_termination
from realcli.api.trial import TrialStatus
from realcli_operator.kube.views import PodView
from realcli_operator.reconcile.conditions import with_condition
from realcli_operator.reconcile.control import ControlStep, awaits, candidate, failed_on, told_to_end, worked
from realcli_operator.reconcile.endfacts import describe, facts_of, session_message, without_seal
from realcli_operator.reconcile.endmodel import Work
from realcli_operator.reconcile.ends import UNEXPLAINED, End, end_of, is_fault
from realcli_operator.reconcile.names import verify_pod
from realcli_operator.reconcile.outcome import MAX_MESSAGE, ended, placed, verdict_of
from realcli_operator.reconcile.plans import Note, PodIntent, TrialPlan
from realcli_operator.reconcile.policy import backoff
from realcli_operator.reconcile.sourced import lost


class VerifyStep(ControlStep):
    """Steps of a trial whose work is sealed, or may be."""

    @abstractmethod
    def _work_over(self, status: TrialStatus, end: End, seal: str | None) -> TrialPlan:
        """What follows from the end of a work pod; ``seal``: the digest it announced."""

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
        if message is None or message.phase != "Verify" or told_to_end(message):
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
        return replace(plan, events=(*plan.events, *gap(end)))

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
        waiting = self._alive(removals) or self._waiting(status, removals)
        if waiting is not None:
            return waiting
        plan = self._verify(status, None)
        return TrialPlan(plan.create, removals, plan.status)


def gap(end: End) -> tuple[Note, ...]:
    """What a person must see of an end that no row of the table explains."""
    return (Note("Warning", UNEXPLAINED, end.message),) if end.gap else ()
