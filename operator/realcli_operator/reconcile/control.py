"""A verify that ended without a verdict, and the control that decides what it counts as (architecture.md 3). Pure.

The control is the same verifier on the reference solution. `decide_sweep` gives it to one trial of the task (`suspects.py`),
whose steps are here; every other trial of the task awaits that result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from realcli.api.base import seconds
from realcli.api.outcomes import BY_REASON, Effect, Phase, effect_of, is_valid
from realcli.api.sweepstatus import ControlEnd
from realcli.api.termination import Result, Termination, parse_termination
from realcli.api.trial import Awaiting, TrialStatus
from realcli_operator.kube.views import PodView
from realcli_operator.reconcile.endfacts import facts_of, facts_of_absent, session_message
from realcli_operator.reconcile.endmodel import Work
from realcli_operator.reconcile.ends import End, end_of, is_fault
from realcli_operator.reconcile.names import control_pod
from realcli_operator.reconcile.outcome import MAX_MESSAGE, carried, ended
from realcli_operator.reconcile.plans import Note, PodIntent, TrialPlan
from realcli_operator.reconcile.policy import backoff
from realcli_operator.reconcile.step import Step

NAMED: Final = frozenset({"VerifierTimeout", "NoReward", "AgentBrokeEnvironment"})
"""What a verify session calls an end that the agent may have caused."""
MAX_DETAIL: Final = 1024
MAX_CONTROL_DETAIL: Final = 200
MAX_NODES: Final = 10


def candidate(reason: str, before: str | None) -> str:
    """What verify pods that ended without a verdict count as if the control passes; ``before`` is what the earlier ones would.

    A session that died without a word died of what it restored. `VerifierFault` is what the agent cannot have caused: it stays
    invalid whatever the control says.
    """
    if reason in NAMED:
        return reason
    if before in NAMED:
        return str(before)
    return reason if reason == "VerifierFault" else "AgentBrokeEnvironment"


def told_to_end(message: Termination) -> bool:
    """Whether a verify or control session got SIGTERM before it was done. By whom, its pod shows when it is over."""
    return message.result is Result.NO_VERDICT and message.reason == "SessionLost"


def failed_on(status: TrialStatus, node: str | None) -> TrialStatus:
    """The next pod goes elsewhere, if it can."""
    if node is None or node in status.verify_nodes:
        return status
    return status.model_copy(update={"verify_nodes": [*status.verify_nodes, node][-MAX_NODES:]})


def awaits(status: TrialStatus, message: str) -> TrialStatus:
    """No more verify pods: the control decides. `reason` is the candidate already."""
    awaiting = Awaiting.model_validate({"reason": status.reason, "detail": message[:MAX_DETAIL]})
    text = f"{status.verify_faults} verify pods ended without a verdict; the control of the task decides what that counts as: "
    return status.model_copy(update={"awaiting": awaiting, "message": (text + message)[:MAX_MESSAGE], "retry_after": None})


def worked(status: TrialStatus, message: Termination) -> TrialStatus:
    """What a verify session without a verdict says of the work, for an operator that missed the work session's own words."""
    known = status.work_end if status.work_end is not None and is_valid(status.work_end) else None
    said = message.work_end if message.work_end in BY_REASON and is_valid(message.work_end) else None
    status = status.model_copy(
        update={
            "work_end": known or said or status.work_end,
            "work_seal_digest": status.work_seal_digest or message.work_seal,
        }
    )
    return status if status.turns is not None else carried(status, message.model_copy(update={"node": None}))


def where(end: ControlEnd) -> str:
    """The control's folder."""
    return f"trials/{end.ordinal:05d}/attempt-{end.attempt}/control-{end.number}"


class ControlStep(Step, ABC):
    """Steps of a trial that awaits a control."""

    @abstractmethod
    def _unfinished(self, status: TrialStatus, pod: PodView) -> TrialPlan:
        """A pod that has not ended."""

    def _controlling(self, known: TrialStatus) -> TrialPlan:
        row = self.facts.control
        end = known.control or (row.end if row is not None else None)
        if end is not None:
            return self._settled(known, end)
        if row is None or row.trial != self.name:
            removals = self._removals(self.facts.pods, doomed=True)
            return TrialPlan(delete=removals, requeue_after=self.policy.control_again)
        last = max((numbers.control for numbers in self._numbers() if numbers.attempt == known.attempt), default=0)
        status = self._control_began(known, last) if last > known.control_attempt else known
        plan = self._own_control(status)
        if plan.status is None and status != known:
            return TrialPlan(plan.create, plan.delete, status, plan.requeue_after, plan.events)
        return plan

    def _own_control(self, status: TrialStatus) -> TrialPlan:
        if not status.control_attempt or status.retry_after is not None:
            return self._next_control(status)
        name = control_pod(self.name, status.attempt, status.control_attempt)
        pod = self.facts.pod(name)
        if pod is None:
            if name not in self.facts.absent:
                return TrialPlan(requeue_after=1.0)
            return self._control_over(status, None, end_of(facts_of_absent(name, Work.VERIFY)))
        message = parse_termination(session_message(pod))
        if message is None or message.phase != "Control" or told_to_end(message):
            if not self._is_over(pod):
                return self._unfinished(status, pod)
        elif message.result in (Result.CONTROL_PASSED, Result.CONTROL_FAILED):
            return self._settled(status, self._end(status, message))
        return self._control_over(status, pod.node, end_of(facts_of(pod, Work.VERIFY)))

    def _next_control(self, status: TrialStatus) -> TrialPlan:
        removals = self._removals(self.facts.pods, doomed=True)
        waiting = self._alive(removals) or self._waiting(status, removals)
        if waiting is not None:
            return waiting
        if self.facts.sweep.suspend:  # the sweep wakes it
            return TrialPlan(delete=removals)
        number = status.control_attempt + 1
        intent = PodIntent(status.attempt, control=number, avoid=tuple(status.verify_nodes))
        return TrialPlan(intent, removals, self._control_began(status, number))

    def _control_began(self, status: TrialStatus, number: int) -> TrialStatus:
        name = control_pod(self.name, status.attempt, number)
        return status.model_copy(update={"control_attempt": number, "retry_after": None, "pod": name})

    def _control_over(self, status: TrialStatus, node: str | None, end: End) -> TrialPlan:
        """It said nothing: tried again like a verify pod. One that says nothing, again and again and not for the cluster's
        sake, has failed: there is no agent to blame."""
        reason, message = end.reason, end.message
        fault = is_fault(reason)
        status = failed_on(status, node).model_copy(
            update={"control_faults": status.control_faults + fault, "message": message[:MAX_MESSAGE]}
        )
        if status.control_faults >= self.policy.control_faults:
            text = f"{status.control_faults} control pods said nothing, the last: {message}"
            failed = {"result": "Failed", "detail": text[:MAX_CONTROL_DETAIL]}
            return self._settled(status, ControlEnd.model_validate(failed | self._place(status)))
        removals = self._removals(self.facts.pods, doomed=True)
        if status.control_attempt >= self.policy.verify_pods:
            why = reason if effect_of(reason) is not Effect.HELD else "PodLost"
            text = f"{status.control_attempt} control pods were taken back before they ended, the last: {message}"
            over = ended(status, Phase.INVALID, why, text, self.now, self.generation)
            return TrialPlan(delete=removals, status=over, events=(Note("Warning", why, text),))
        wait = backoff(seconds(self.facts.sweep.retry.backoff), status.control_attempt, self.policy.max_backoff)
        status = status.model_copy(update={"retry_after": self._at(wait)})
        note = Note("Warning", "ControlFailed", message)
        return TrialPlan(delete=removals, status=status, requeue_after=wait, events=(note,) if fault else ())

    def _end(self, status: TrialStatus, message: Termination) -> ControlEnd:
        passed = message.result is Result.CONTROL_PASSED
        said = f"{message.reason}: {message.message or ''}" if message.reason else message.message or ""
        end = {"result": "Passed" if passed else "Failed", "seal": message.seal, "detail": said[:MAX_CONTROL_DETAIL]}
        return ControlEnd.model_validate(end | self._place(status))

    def _place(self, status: TrialStatus) -> dict[str, int]:
        return {"ordinal": self.facts.spec.ordinal, "attempt": status.attempt, "number": status.control_attempt}

    def _settled(self, status: TrialStatus, end: ControlEnd) -> TrialPlan:
        """Passed: the agent's own doing, valid and worth nothing. Failed: the task's."""
        awaiting = status.awaiting
        reason, detail = (awaiting.reason, awaiting.detail) if awaiting is not None else ("VerifierFault", "")
        phase = Phase.INVALID
        if end.result == "Failed":
            reason = "VerifierFault"
            text = f"{detail}; the control failed too: the tests fail with the reference solution ({where(end)}: {end.detail})"
        elif reason == "VerifierFault":
            text = f"{detail}; the control passed ({where(end)}), but the agent cannot have caused this"
        else:
            phase = Phase.SEALED
            text = f"{detail}; the control passed: the same tests reward the reference solution ({where(end)})"
        status = status.model_copy(update={"control": end, "awaiting": None, "reward": "0"})
        over = ended(status, phase, reason, text, self.now, self.generation)
        note = Note("Warning", reason, text[:1000])
        return TrialPlan(delete=self._removals(self.facts.pods, doomed=True), status=over, events=(note,))
