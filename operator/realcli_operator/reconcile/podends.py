"""Reading a pod: why it does not start, and how it ended when its session left no message. Pure.

Facts of the kubelet and the control plane (messages, reasons) are in this file and nowhere else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from realcli.api.outcomes import Effect, effect_of
from realcli.api.termination import parse_termination
from realcli_operator.kube.views import ContainerState, ContainerView, PodView
from realcli_operator.reconcile.policy import Policy

SESSION: Final = "session"
AGENT_SIDE: Final = ("agent", "verifier")
AGENT_VOLUMES: Final = frozenset({"socket", "files-agent", "shm-agent"})
"""Volumes that the agent writes; the rest belongs to the session."""


class Grace(StrEnum):
    """How long a container may wait for a reason."""

    NONE = "none"
    PULL = "pull"
    CONFIG = "config"

    def seconds(self, policy: Policy) -> float:
        """Under this policy."""
        return {Grace.NONE: 0.0, Grace.PULL: policy.pull_grace, Grace.CONFIG: policy.config_grace}[self]


_WAITING: Final = MappingProxyType(
    {
        "ErrImageNeverPull": ("ImageUnavailable", Grace.NONE),
        "InvalidImageName": ("ImageUnavailable", Grace.NONE),
        "ErrImagePull": ("ImageUnavailable", Grace.PULL),
        "ImagePullBackOff": ("ImageUnavailable", Grace.PULL),
        "ImageInspectError": ("ImageUnavailable", Grace.PULL),
        "RegistryUnavailable": ("ImageUnavailable", Grace.PULL),
        "SignatureValidationFailed": ("ImageUnavailable", Grace.PULL),
        "CreateContainerConfigError": ("ConfigurationError", Grace.CONFIG),
    }
)

_NOT_STARTED: Final = frozenset(("StartError", "ContainerCannotRun"))
_UNKNOWN: Final = "ContainerStatusUnknown"
"""The kubelet lost sight of a container that may have run for hours; such an end has no times."""
_FORGOTTEN: Final = "PodInitializing"
"""Once it has evicted a pod, the kubelet may say so of containers that ran: of the agent's, the session's, or both."""

_DISRUPTIONS: Final = MappingProxyType(
    {
        "PreemptionByScheduler": "Preempted",
        "EvictionByEvictionAPI": "Drained",
        "DeletionByTaintManager": "NodeLost",
        "DeletionByPodGC": "NodeLost",
    }
)

_STOPPED_BY_QUEUE: Final = "TerminationTarget"
"""Condition that Kueue sets on a plain pod before it deletes it."""

_OWN_LIMIT: Final = (
    re.compile(r"Pod ephemeral local storage usage exceeds the total limit of containers"),
    re.compile(r"Container (?P<container>\S+) exceeded its local ephemeral storage limit"),
    re.compile(r'Usage of EmptyDir volume "(?P<volume>[^"]+)" exceeds the limit'),
)

_REJECTED: Final = frozenset(
    ("OutOfcpu", "OutOfmemory", "OutOfpods", "OutOfephemeral-storage", "UnexpectedAdmissionError", "NodeAffinity", "NodePorts")
)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a pod does not start: the outcome it would be, the kubelet's word for it, for people, and the patience."""

    outcome: str
    waiting: str
    message: str
    grace: Grace


@dataclass(frozen=True, slots=True)
class End:
    """How a pod ended by the facts alone: a reason of the table, and the facts in a sentence."""

    reason: str
    message: str


def session_message(pod: PodView) -> str:
    """The session's termination message, "" if there is none."""
    session = pod.container(SESSION)
    return session.message if session is not None and session.state is ContainerState.TERMINATED else ""


def is_fault(reason: str) -> bool:
    """Whether a verify pod that ended so may be the verifier's, the task's or the state's fault: all but what the cluster
    or storage did to it. A session that died is: it may die of what it restores."""
    effect = effect_of(reason)
    return effect in (Effect.VERIFIED, Effect.AGENT) or reason in {"SessionLost", "VerifierFault"}


def has_started(container: ContainerView | None) -> bool:
    """Whether it runs or ran. A container that the runtime could not start has ended, with a start in 1970."""
    return container is not None and container.started_at is not None and container.started_at.year > 1970


def all_started(pod: PodView) -> bool:
    """Whether both containers run or ran."""
    return len(pod.containers) > 1 and all(has_started(container) for container in pod.containers)


def may_have_sealed(pod: PodView) -> bool:
    """Whether there may be a seal: the session ran, or may have run, beside the agent."""

    def may_have_run(name: str) -> bool:
        container = pod.container(name)
        if container is None or has_started(container):
            return container is not None
        return container.reason == _UNKNOWN or (container.reason == _FORGOTTEN and pod.reason == "Evicted")

    return may_have_run(SESSION) and any(may_have_run(name) for name in AGENT_SIDE)


def scheduled_at(pod: PodView) -> datetime | None:
    """When a node was chosen."""
    condition = pod.condition("PodScheduled")
    if condition is not None and condition.status == "True" and condition.last_transition_time is not None:
        return condition.last_transition_time
    return pod.start_time


def unscheduled_because(pod: PodView) -> str:
    """The scheduler's words."""
    condition = pod.condition("PodScheduled")
    return condition.message if condition is not None and condition.message else "no node was chosen"


def trouble_of(pod: PodView) -> Trouble | None:
    """What keeps a scheduled pod from starting; None if nothing is known to."""
    for container in (*pod.init_containers, *pod.containers):
        if container.state is ContainerState.WAITING and container.reason in _WAITING:
            outcome, grace = _WAITING[container.reason]
            message = f"container {container.name}: {container.reason}: {container.message}"
            return Trouble(outcome, container.reason, message, grace)
        if container.state is ContainerState.TERMINATED and container.reason in _NOT_STARTED:
            message = f"container {container.name} could not be started: {container.reason}: {container.message}"
            return Trouble("SetupTimeout", container.reason, message, Grace.NONE)
    return None


def out_of_memory(pod: PodView) -> bool:
    """Whether the agent's (or verifier's) container was killed for memory."""
    return any((c := pod.container(name)) is not None and c.reason == "OOMKilled" for name in AGENT_SIDE)


def disruption(pod: PodView) -> str | None:
    """The reason of the table if the cluster is taking (or took) the pod; None if not."""
    queue = pod.condition(_STOPPED_BY_QUEUE)
    if queue is not None and queue.status == "True":
        return "Preempted"
    condition = pod.condition("DisruptionTarget")
    if condition is None or condition.status != "True":
        return None
    if condition.reason == "TerminationByKubelet":
        return _by_kubelet(pod)
    return _DISRUPTIONS.get(condition.reason, "Drained")


def end_of(pod: PodView) -> End:
    """How a finished pod ended that left no readable message."""
    facts = describe(pod)
    if pod.reason == "Evicted":
        return End(_eviction(pod), facts)
    taken = disruption(pod)
    if taken is not None:
        return End(taken, facts)
    if pod.reason == "Preempting":
        return End("Preempted", facts)
    if pod.reason in {"Terminated", "Shutdown", "NodeShutdown"}:
        return End("Drained", facts)
    if pod.reason == "NodeLost":
        return End("NodeLost", facts)
    if pod.reason in _REJECTED:
        return End("NodePressure", facts)
    session = pod.container(SESSION)
    if session is None or not has_started(session):
        trouble = trouble_of(pod)
        if trouble is not None:
            return End(trouble.outcome, facts)
        return End("SessionLost" if pod.containers else "PodLost", facts)
    if out_of_memory(pod) and session.reason != "OOMKilled":  # both at once is the node's shortage, not the agent's doing
        return End("AgentOutOfMemory", facts)
    return End("SessionLost", facts)


def verify_end(pod: PodView) -> str:
    """How a verify pod ended by the facts alone; one that was being deleted (by hand, as we do so only after its end is
    written down) was taken back."""
    reason = end_of(pod).reason
    return "PodLost" if pod.deleting and is_fault(reason) else reason


def describe(pod: PodView) -> str:
    """The facts in a line: pod, node, reasons, every container's end."""
    parts = [f"pod {pod.name} {pod.phase or 'Unknown'}"]
    if pod.node:
        parts.append(f"on {pod.node}")
    if pod.reason or pod.message:
        parts.append(f"({pod.reason}: {pod.message})" if pod.reason else f"({pod.message})")
    condition = pod.condition("DisruptionTarget")
    if condition is not None and condition.status == "True":
        parts.append(f"disrupted: {condition.reason}")
    for container in (*pod.init_containers, *pod.containers):
        if container.state is ContainerState.TERMINATED and (container.exit_code or container.reason not in {"", "Completed"}):
            parts.append(f"{container.name} exited {container.exit_code} {container.reason}".rstrip())
        elif container.state is ContainerState.WAITING and container.reason:
            parts.append(f"{container.name} waits: {container.reason}")
    return "; ".join([" ".join(parts[:2]), *parts[2:]])


def _eviction(pod: PodView) -> str:
    """Own limit (of the agent's side or the session's), or the node's sake."""
    for pattern in _OWN_LIMIT:
        match = pattern.search(pod.message)
        if match is None:
            continue
        named = match.groupdict()
        if named.get("container") == SESSION:
            return "SessionLost"
        if "volume" in named and named["volume"] not in AGENT_VOLUMES:
            return "SessionLost"
        return "SessionLost" if _idle(pod) else "AgentDiskLimit"
    return "NodePressure"


def _idle(pod: PodView) -> bool:
    """Whether the session says that the agent had asked nothing yet: what was written then, the session had put there."""
    message = parse_termination(session_message(pod))
    return message is not None and message.phase == "Work" and not message.turns


def _by_kubelet(pod: PodView) -> str:
    if pod.reason == "Evicted":
        return _eviction(pod)
    return "Preempted" if pod.reason == "Preempting" else "Drained"
