"""What the steps of a trial share: its facts, the time, and the questions that every rule asks of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from realcli.api.trial import TrialStatus
from realcli_operator.kube.views import PodView
from realcli_operator.reconcile.conditions import rfc3339
from realcli_operator.reconcile.endfacts import failed_while_running
from realcli_operator.reconcile.facts import TrialFacts
from realcli_operator.reconcile.names import PodNumbers, pod_numbers
from realcli_operator.reconcile.outcome import ended_well
from realcli_operator.reconcile.plans import Removal, TrialPlan
from realcli_operator.reconcile.policy import Policy
from realcli_operator.reconcile.recent import left_until, time_of


class Step:
    """One decision about a trial."""

    def __init__(self, facts: TrialFacts, now: datetime, policy: Policy) -> None:
        self.facts = facts
        self.now = now
        self.policy = policy
        self.name = facts.trial.name
        self.generation = facts.trial.generation

    def _numbers(self) -> list[PodNumbers]:
        found = (pod_numbers(self.name, pod.name) for pod in self.facts.pods)
        return [numbers for numbers in found if numbers is not None]

    def _removals(self, pods: Iterable[PodView], *, doomed: bool = False) -> tuple[Removal, ...]:
        """Pods whose outcome this step has written down. A pod that still runs goes only if it is ``doomed``."""
        result = []
        for pod in pods:
            if pod.finished:
                if not (self.policy.keep_failed_pods and not ended_well(pod)):
                    result.append(Removal(pod.name, pod.uid))
            elif pod.deleting:
                if self._until_lost(pod) <= 0:
                    result.append(Removal(pod.name, pod.uid, 0))
            elif doomed:
                result.append(Removal(pod.name, pod.uid))
        return tuple(result)

    def _alive(self, removals: tuple[Removal, ...]) -> TrialPlan | None:
        """No pod is made while an earlier one is neither terminal nor gone: wait for it."""
        alive = [pod for pod in self.facts.pods if not pod.finished]
        return TrialPlan(delete=removals, requeue_after=min(self._until_lost(pod) for pod in alive)) if alive else None

    def _waiting(self, status: TrialStatus, removals: tuple[Removal, ...]) -> TrialPlan | None:
        """No pod is made before `retryAfter`."""
        wait = self._until(status.retry_after)
        return TrialPlan(delete=removals, requeue_after=wait) if wait > 0 else None

    def _is_over(self, pod: PodView) -> bool:
        """Whether it is terminal, and what its session left can be read: a kubelet that evicts says Failed while the containers
        still run, and their ends a moment later."""
        return pod.finished and self._until_settled(pod) <= 0

    def _until_settled(self, pod: PodView) -> float:
        """Seconds for which the ends of a terminal pod's containers may still come."""
        since = failed_while_running(pod)
        return 0.0 if since is None else self.policy.session_exit_grace - (self.now - since).total_seconds()

    def _changed(self, status: TrialStatus) -> TrialStatus | None:
        return status if status != self.facts.status else None

    def _until(self, time: str | None) -> float:
        return left_until(time_of(time), self.now, self.policy.max_backoff)

    def _at(self, wait: float) -> str:
        # Rounded up: whole seconds are what the API keeps.
        return rfc3339(self.now + timedelta(seconds=wait, milliseconds=999))

    def _until_lost(self, pod: PodView) -> float:
        """Seconds until a terminating pod counts as lost with its node."""
        if pod.deletion_timestamp is None:
            return 60.0
        return self.policy.node_lost_grace - (self.now - pod.deletion_timestamp).total_seconds()
