"""What is known of a pod's end, as the table of ends reads it (`ends.py`): one projection from a pod, a termination message,
what storage holds and what was noted before the pod vanished. Pure.

Words of the kubelet and of the control plane are in this file and nowhere else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from realcli.api.outcomes import BY_REASON, is_valid
from realcli.api.termination import Result, Termination, parse_termination
from realcli_operator.kube.views import ContainerState, ContainerView, PodView
from realcli_operator.reconcile.endmodel import (
    ContainerFacts,
    EndFacts,
    Evicted,
    Overdue,
    Refused,
    Said,
    Seal,
    Stand,
    Taken,
    Vanished,
    Work,
)
from realcli_operator.reconcile.policy import Policy

SESSION: Final = "session"
AGENT_SIDE: Final = ("agent", "verifier")
SOCKET: Final = "socket"
AGENT_VOLUMES: Final = frozenset({SOCKET, "files-agent", "shm-agent", "files-verifier", "shm-verifier"})
"""Volumes that the agent (or what it left) writes; the rest belongs to the session."""


class Grace(StrEnum):
    """How long a container may wait for a reason."""

    NONE = "none"
    PULL = "pull"
    CONFIG = "config"

    def seconds(self, policy: Policy) -> float:
        """Under this policy."""
        return {Grace.NONE: 0.0, Grace.PULL: policy.pull_grace, Grace.CONFIG: policy.config_grace}[self]


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a pod does not start: the outcome it would be, the kubelet's word for it, for people, and the patience."""

    outcome: str
    waiting: str
    message: str
    grace: Grace


# -- the kubelet's words

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
_UNKNOWN: Final = frozenset(("ContainerStatusUnknown", "Unknown"))
"""The kubelet (or, after a restart of the node, the runtime) lost sight of a container that may have run for hours."""
_FORGOTTEN: Final = "PodInitializing"
"""Once it has evicted a pod, the kubelet may say so of containers that ran: of the agent's, the session's, or both."""
_DISRUPTIONS: Final = MappingProxyType(
    {
        "PreemptionByScheduler": Taken.SCHEDULER,
        "EvictionByEvictionAPI": Taken.EVICTION_API,
        "DeletionByTaintManager": Taken.TAINT_MANAGER,
        "DeletionByPodGC": Taken.POD_GC,
    }
)
_POD_REASONS: Final = MappingProxyType(
    {
        "Preempting": Taken.CRITICAL_POD,
        "Terminated": Taken.SHUTDOWN,
        "Shutdown": Taken.SHUTDOWN,
        "NodeShutdown": Taken.SHUTDOWN,
        "NodeLost": Taken.NODE_CONTROLLER,
    }
)
_STOPPED_BY_QUEUE: Final = "TerminationTarget"
"""Condition that Kueue sets on a plain pod before it deletes it."""
_OWN_LIMIT: Final = (
    re.compile(r"Pod ephemeral local storage usage exceeds the total limit of containers"),
    re.compile(r"Container (?P<container>\S+) exceeded its local ephemeral storage limit"),
    re.compile(r'Usage of EmptyDir volume "(?P<volume>[^"]+)" exceeds the limit'),
)
_DEADLINE: Final = "DeadlineExceeded"
_NODE_SHORTAGE: Final = re.compile(r"The node (was low on resource|had condition)")
_NODE_REFUSES: Final = frozenset(
    ("UnexpectedAdmissionError", "NodeAffinity", "NodePorts", "TopologyAffinityError", "SMTAlignmentError", "InvalidNodeInfo")
)
_NODE_IS_FULL: Final = "OutOf"
_ALL_REFUSE: Final = frozenset(("SysctlForbidden", "AppArmor", "PodOSNotSupported", "PodOSSelectorNodeLabelDoesNotMatch"))


# -- the projection


def facts_of(pod: PodView, work: Work, *, overdue: Overdue = Overdue.NO, noted: str | None = None, text: str = "") -> EndFacts:
    """The facts of a pod that is there; ``text`` instead of `describe`."""
    message = _message(pod, work)
    taken, refused, trouble = taken_of(pod), _refused(pod), trouble_of(pod)
    return EndFacts(
        work=work,
        finished=pod.finished,
        scheduled=scheduled_at(pod) is not None or pod.node is not None,
        deadline=pod.reason == _DEADLINE,
        evicted=_evicted(pod),
        taken=taken,
        refused=refused,
        strange=taken is Taken.OTHER or _is_strange(pod, refused),
        deleting=pod.deleting,
        untrusted=_container(pod, next((c for name in AGENT_SIDE if (c := pod.container(name)) is not None), None)),
        session=_container(pod, pod.container(SESSION)),
        init_failed=any(_failed(container) for container in pod.init_containers),
        trouble=None if trouble is None else trouble.outcome,
        said=_said(message, work),
        said_reason=None if message is None else message.reason,
        said_text="" if message is None else message.message or "",
        idle=_idle(parse_termination(session_message(pod))),
        noted=noted,
        overdue=overdue,
        text=text or describe(pod),
    )


def facts_of_absent(name: str, work: Work, *, noted: str | None = None, queued: bool = False, text: str = "") -> EndFacts:
    """The facts of a pod that a fresh read did not find; ``queued``: its gate had not been opened."""
    vanished = Vanished.QUEUED if queued else Vanished.YES
    said = text or f"pod {name} is gone and left no message"
    return EndFacts(work, vanished=vanished, finished=False, noted=noted, text=said)


def without_seal(noted: str | None, *, sealed_as: str | None, anchor: str | None, said: str, text: str) -> EndFacts:
    """The facts of a work pod of which storage holds no valid seal; ``sealed_as``: what its invalid seal says, ``said``: the
    verify pod's words."""
    known = sealed_as if sealed_as in BY_REASON and not is_valid(sealed_as) else None
    seal = Seal.NONE if known is None else Seal.INVALID
    return EndFacts(
        vanished=Vanished.YES, finished=False, noted=noted, seal=seal, sealed_as=known, anchor=anchor, said_text=said, text=text
    )


def session_message(pod: PodView) -> str:
    """The session's termination message, "" if there is none."""
    session = pod.container(SESSION)
    return session.message if session is not None and session.state is ContainerState.TERMINATED else ""


def work_message(pod: PodView) -> Termination | None:
    """The work session's message if it is one: its result and reason agree with the table of outcomes."""
    message = parse_termination(session_message(pod))
    if message is None or message.phase != "Work" or message.reason not in BY_REASON:
        return None
    sealed, invalid = message.result is Result.WORK_SEALED, message.result is Result.WORK_INVALID
    valid = is_valid(message.reason)
    return message if (sealed and valid and message.seal is not None) or (invalid and not valid) else None


def has_started(container: ContainerView | None) -> bool:
    """Whether it runs or ran. A container that the runtime could not start has ended, with a start in 1970."""
    return container is not None and container.started_at is not None and container.started_at.year > 1970


def all_started(pod: PodView) -> bool:
    """Whether both containers run or ran."""
    return len(pod.containers) > 1 and all(has_started(container) for container in pod.containers)


def failed_while_running(pod: PodView) -> datetime | None:
    """Since when the kubelet calls a pod Failed whose session, by its status, still runs; None: it does not, or nothing says."""
    session = pod.container(SESSION)
    if not pod.finished or session is None or session.state is not ContainerState.RUNNING:
        return None
    condition = pod.condition("ContainersReady")
    return condition.last_transition_time if condition is not None and condition.status == "False" else None


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


def taken_of(pod: PodView) -> Taken:
    """Who takes the pod, or took it."""
    queue = pod.condition(_STOPPED_BY_QUEUE)
    if queue is not None and queue.status == "True":
        return Taken.QUEUE
    by_reason = _POD_REASONS.get(pod.reason, Taken.NO)
    condition = pod.condition("DisruptionTarget")
    if condition is None or condition.status != "True":
        return by_reason
    if condition.reason == "TerminationByKubelet":
        return Taken.NO if pod.reason == "Evicted" else by_reason if by_reason is not Taken.NO else Taken.OTHER
    return _DISRUPTIONS.get(condition.reason, Taken.OTHER)


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


def _container(pod: PodView, container: ContainerView | None) -> ContainerFacts:
    if container is None:
        return ContainerFacts()
    return ContainerFacts(_stand(pod, container), container.reason, container.exit_code)


def _stand(pod: PodView, container: ContainerView) -> Stand:
    if container.reason in _UNKNOWN:
        return Stand.UNSEEN
    if container.state is ContainerState.RUNNING:
        return Stand.RUNNING
    if container.state is ContainerState.TERMINATED:
        return Stand.ENDED if has_started(container) else Stand.NOT_STARTED
    if container.reason == _FORGOTTEN and pod.reason == "Evicted" and _is_initialized(pod):
        return Stand.UNSEEN
    return Stand.WAITING


def _is_initialized(pod: PodView) -> bool:
    """Whether its init containers are through, as far as anything says."""
    condition = pod.condition("Initialized")
    return condition is None or condition.status == "True"


def _failed(container: ContainerView) -> bool:
    return container.state is ContainerState.TERMINATED and (container.exit_code != 0 or container.reason == "OOMKilled")


def _evicted(pod: PodView) -> Evicted:
    """The kubelet's word for what was exceeded: its own limit (of the agent's side or the session's), or the node's sake."""
    if pod.reason != "Evicted":
        return Evicted.NO
    for pattern in _OWN_LIMIT:
        match = pattern.search(pod.message)
        if match is None:
            continue
        named = match.groupdict()
        ours = named.get("container", AGENT_SIDE[0]) not in AGENT_SIDE or named.get("volume", SOCKET) not in AGENT_VOLUMES
        return Evicted.SESSION_LIMIT if ours else Evicted.AGENT_LIMIT
    return Evicted.NODE if _NODE_SHORTAGE.search(pod.message) else Evicted.OTHER


def _refused(pod: PodView) -> Refused:
    if pod.reason in _ALL_REFUSE:
        return Refused.CONFIGURATION
    return Refused.NODE if pod.reason in _NODE_REFUSES or pod.reason.startswith(_NODE_IS_FULL) else Refused.NO


def _is_strange(pod: PodView, refused: Refused) -> bool:
    known = ("", _DEADLINE, "Evicted")
    return refused is Refused.NO and pod.reason not in known and pod.reason not in _POD_REASONS


def _message(pod: PodView, work: Work) -> Termination | None:
    if work is Work.WORK:
        return work_message(pod)
    message = parse_termination(session_message(pod))
    return message if message is not None and message.phase != "Work" else None


def _said(message: Termination | None, work: Work) -> Said:
    if message is None:
        return Said.NOTHING
    if work is Work.WORK:
        return Said.SEALED if message.result is Result.WORK_SEALED else Said.INVALID
    return Said.NO_VERDICT


def _idle(message: Termination | None) -> bool:
    """Whether the session says that the agent had asked nothing yet: what was written then, the session had put there."""
    return message is not None and message.phase == "Work" and not message.turns
