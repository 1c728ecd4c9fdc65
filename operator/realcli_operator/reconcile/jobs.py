"""Reading a Job of a sweep: running, done with a message, or lost. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from realcli.api.termination import Result, Termination, parse_termination
from realcli_operator.kube.views import ContainerState, PodView
from realcli_operator.reconcile.endfacts import Trouble, describe, scheduled_at, trouble_of, unscheduled_because
from realcli_operator.reconcile.facts import JobFacts
from realcli_operator.reconcile.policy import Policy


@dataclass(frozen=True, slots=True)
class Running:
    """Not over; ``blocked`` says what a person may have to do; ``again`` seconds until it should be looked at."""

    blocked: tuple[str, str] | None = None
    """Reason and message."""
    again: float | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """It left a readable message, or failed with a readable refusal."""

    message: Termination
    pod: str
    since: datetime | None
    """When it ended; for the back-off of what is tried again."""


@dataclass(frozen=True, slots=True)
class Gone:
    """It completed, and its pod is not there any more (deleted by the cluster's garbage collection)."""


@dataclass(frozen=True, slots=True)
class Lost:
    """It failed, hangs, or its message cannot be read. ``since``: for the back-off."""

    why: str
    since: datetime | None


JobState = Running | Done | Gone | Lost


def job_state(facts: JobFacts, container: str, now: datetime, policy: Policy, *, limit: float | None = None) -> JobState:
    """What became of the Job whose (only) main container is ``container``; ``limit`` on its run time, seconds."""
    if facts.read:
        known: Done = facts.read[0]
        return known
    state = _state(facts, container, now, policy, limit)
    if isinstance(state, Done):
        facts.read.append(state)
    return state


def _state(facts: JobFacts, container: str, now: datetime, policy: Policy, limit: float | None) -> JobState:
    job = facts.job
    pods = sorted(facts.pods, key=lambda pod: (pod.creation_timestamp or now, pod.name))
    if job.complete:
        return _completed(facts, [pod for pod in pods if pod.phase == "Succeeded"], container, now, policy)
    if job.is_failed:
        condition = job.condition("Failed")
        since = condition.last_transition_time if condition is not None else None
        last = describe(pods[-1]) if pods else "no pod is left to say why"
        said = _message(pods[-1], container) if pods else None
        if said is not None and said.result is Result.REFUSED:
            return Done(said, pods[-1].name, since)
        reason = f"{condition.reason}: {condition.message}" if condition is not None else "failed"
        return Lost(f"Job {job.name} {reason}; {last}", since)
    if not pods:
        return _without_pod(facts, now, policy)
    return _running(pods[-1], container, now, policy, limit)


def _completed(facts: JobFacts, pods: list[PodView], container: str, now: datetime, policy: Policy) -> JobState:
    job = facts.job
    ended = job.completion_time
    if not pods:
        left = policy.job_pod_grace - (now - ended).total_seconds() if ended is not None else policy.job_pod_grace
        return Running(again=left) if left > 0 else Gone()
    message = _message(pods[-1], container)
    if message is None:
        return Lost(f"Job {job.name} left no readable termination message", ended)
    return Done(message, pods[-1].name, ended)


def _without_pod(facts: JobFacts, now: datetime, policy: Policy) -> JobState:
    created = facts.job.creation_timestamp
    left = policy.job_start_grace - (now - created).total_seconds() if created is not None else policy.job_start_grace
    if left > 0:
        return Running(again=left)
    text = f"Job {facts.job.name} has no pod: kubectl describe job {facts.job.name} says why (quota, admission)"
    return Running(blocked=("PodNotCreated", text))


def _running(pod: PodView, container: str, now: datetime, policy: Policy, limit: float | None) -> JobState:
    if pod.deletion_timestamp is not None and not pod.finished:
        return _going(pod, pod.deletion_timestamp, now, policy)
    scheduled = scheduled_at(pod)
    if scheduled is None and not pod.finished:
        condition = pod.condition("PodScheduled")
        blocked = condition is not None and condition.reason == "Unschedulable"
        return Running(("Unschedulable", f"pod {pod.name}: {unscheduled_because(pod)}") if blocked else None)
    trouble = trouble_of(pod)
    if trouble is not None:
        return Running(_blocked(pod, trouble))
    main = pod.container(container)
    if scheduled is not None and not pod.finished and (main is None or main.state is ContainerState.WAITING):
        return _starting(pod, scheduled, now, policy)
    if limit is None or main is None or main.state is not ContainerState.RUNNING or main.started_at is None:
        return Running()
    left = limit - (now - main.started_at).total_seconds()
    if left > 0:
        return Running(again=left)
    return Lost(f"pod {pod.name} ran for more than {limit:.0f} s", main.started_at)


def _going(pod: PodView, deleted: datetime, now: datetime, policy: Policy) -> JobState:
    """A pod that was deleted. Its Job makes another once it has ended, which a node that is lost never says."""
    lost = deleted + timedelta(seconds=policy.node_lost_grace)
    if now < lost:
        return Running(again=(lost - now).total_seconds())
    return Lost(f"pod {pod.name} was deleted, and its node {pod.node} does not confirm it", lost)


def _starting(pod: PodView, scheduled: datetime, now: datetime, policy: Policy) -> Running:
    """Of a volume that cannot be mounted the pod's status says nothing, and the kubelet waits for ever."""
    left = policy.job_setup_grace - (now - scheduled).total_seconds()
    if left > 0:
        return Running(again=left)
    text = f"pod {pod.name} has not started {policy.job_setup_grace:.0f} s after it was scheduled"
    return Running(
        (
            "PodNotStarted",
            f"{text}: kubectl describe pod {pod.name} says why (a ConfigMap or Secret that is missing, a slow pull)",
        )
    )


def _blocked(pod: PodView, trouble: Trouble) -> tuple[str, str]:
    return trouble.outcome, f"pod {pod.name}: {trouble.message}; once that is mended it goes on by itself"


def _message(pod: PodView, container: str) -> Termination | None:
    main = pod.container(container)
    return _parsed(main.message) if main is not None and main.state is ContainerState.TERMINATED else None


@lru_cache(maxsize=8192)
def _parsed(text: str) -> Termination | None:
    """Each step looks at every judge Job again: thousands of messages that never change."""
    return parse_termination(text)
