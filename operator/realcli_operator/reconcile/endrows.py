"""The rows of the table of ends: how an end is recognised, its reason, who caused it, what is said of it. Pure.

In order, the first that matches decides (`ends.py`); docs/outcomes.md is generated from them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Final

from realcli.api.outcomes import BY_REASON, Cause, Effect, effect_of
from realcli_operator.reconcile.endmodel import (
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

KILLED: Final = frozenset({"AgentOutOfMemory", "AgentDiskLimit"})
"""Ends that only the operator sees (OOMKilled, the kubelet's eviction message) …"""
SEEN_AS: Final = frozenset({"RunnerLost", "AgentCrashed"})
"""… and what the session, which cannot see why, calls them."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row. ``seen``: how it is recognised, for people; ``cause`` None: as the table of outcomes has it."""

    name: str
    seen: str
    when: Callable[[EndFacts], bool]
    reason: str | Callable[[EndFacts], str]
    cause: Cause | None = None
    tell: Callable[[EndFacts], str] = lambda facts: facts.text

    def reason_of(self, facts: EndFacts) -> str:
        """The reason for these facts."""
        return self.reason if isinstance(self.reason, str) else self.reason(facts)


# -- predicates and words of rows


def _work(facts: EndFacts) -> bool:
    return facts.work is Work.WORK


def _known(facts: EndFacts) -> bool:
    return not facts.strange


def _said_reason(facts: EndFacts) -> str:
    reason = facts.said_reason
    return reason if reason is not None and reason in BY_REASON else "VerifierFault"


def _noted(facts: EndFacts) -> str:
    return facts.noted or "PodLost"


def _sealed_as(facts: EndFacts) -> str:
    return facts.sealed_as or "PodLost"


def _trouble(facts: EndFacts) -> str:
    return facts.trouble or "SetupTimeout"


def _words(facts: EndFacts) -> str:
    return facts.said_text or facts.text


def _said_only(facts: EndFacts) -> str:
    return facts.said_text


def _verdictless(facts: EndFacts) -> str:
    return f"{_said_reason(facts)}: {_words(facts)}"


def _unexplained(facts: EndFacts) -> str:
    """All facts that are not as they are by default."""
    told = [
        f"{field.name}={getattr(facts, field.name)}"
        for field in fields(facts)
        if field.name not in ("text", "said_text") and getattr(facts, field.name) != field.default
    ]
    return f"no rule explains this end: {facts.text} [{', '.join(told)}]"


def _killed_as(facts: EndFacts, why: bool) -> bool:
    return _work(facts) and facts.said is Said.SEALED and why and facts.said_reason in SEEN_AS


def _has_begun(facts: EndFacts) -> bool:
    """Whether the agent may have done anything: before it asks a model nothing in the pod is its work."""
    return facts.untrusted.stand.may_have_run and not facts.idle


def _own_limit(facts: EndFacts) -> bool:
    return facts.evicted is Evicted.AGENT_LIMIT and _has_begun(facts)


def _noted_in(facts: EndFacts, *effects: Effect) -> bool:
    return facts.noted is not None and effect_of(facts.noted) in effects


GAP: Final = "unexplained"

_SESSION_SAYS: Final = (
    Row(
        "sealed, killed for memory",
        "the session sealed RunnerLost or AgentCrashed, and the agent's container is OOMKilled",
        lambda f: _killed_as(f, f.untrusted.out_of_memory),
        "AgentOutOfMemory",
        tell=_said_only,
    ),
    Row(
        "sealed, evicted for its own disk",
        "the session sealed RunnerLost or AgentCrashed, and the kubelet evicted the pod for the agent's own limit",
        lambda f: _killed_as(f, _own_limit(f)),
        "AgentDiskLimit",
        tell=_said_only,
    ),
    Row(
        "sealed",
        "the session's message says that the work is sealed",
        lambda f: _work(f) and f.said is Said.SEALED,
        _said_reason,
        tell=_said_only,
    ),
    Row(
        "session says why",
        "the session's message says that the attempt is invalid, and why (any word but SessionLost)",
        lambda f: _work(f) and f.said is Said.INVALID and f.said_reason != "SessionLost",
        _said_reason,
        tell=_words,
    ),
)

_STORAGE_SAYS: Final = (
    Row(
        "invalid seal",
        "storage holds a seal that says why the attempt is invalid (any word but SessionLost)",
        lambda f: f.seal is Seal.INVALID and f.sealed_as != "SessionLost" and f.noted not in KILLED,
        _sealed_as,
        tell=_words,
    ),
    Row(
        "announced seal is missing",
        "the session announced a seal, and storage has none",
        lambda f: f.seal is Seal.NONE and f.anchor is not None,
        "StorageUnavailable",
        tell=lambda f: f"the work seal {f.anchor} was announced, but storage has none: {f.said_text}",
    ),
    Row(
        "no seal of a valid end",
        "how the work ended is known, and storage has no seal of it",
        lambda f: f.seal is not Seal.UNREAD and _noted_in(f, Effect.VERIFIED),
        "SessionLost",
        tell=lambda f: f"the work ended as {f.noted}, but storage has no seal of it",
    ),
    Row(
        "no seal, pod explained",
        "storage has no valid seal; how the pod ended was seen before it went",
        lambda f: f.seal is not Seal.UNREAD and f.noted is not None,
        _noted,
    ),
    Row(
        "invalid seal of a lost session",
        "nobody saw the pod's end, and its seal says SessionLost",
        lambda f: f.seal is Seal.INVALID,
        _sealed_as,
    ),
    Row("no seal, pod gone", "nobody saw the pod's end, and storage has no seal", lambda f: f.seal is Seal.NONE, "PodLost"),
)

_GONE: Final = (
    Row(
        "gone, explained",
        "the pod is gone; why it went was seen before (its deletion, its condition)",
        lambda f: _work(f) and f.vanished is not Vanished.NO and f.noted is not None,
        _noted,
    ),
    Row(
        "gone while queued",
        "the pod is gone before its scheduling gate was opened: the queue took it back",
        lambda f: f.vanished is Vanished.QUEUED,
        "Preempted",
    ),
    Row(
        "gone",
        "a fresh read does not find the pod, and nobody saw why (deleted by force, node or pod garbage)",
        lambda f: f.vanished is Vanished.YES,
        "PodLost",
    ),
    Row(
        "node does not answer",
        "the pod was deleted, and its node does not confirm it for ten minutes beyond the pod's grace period",
        lambda f: f.overdue is Overdue.DELETION,
        "NodeLost",
    ),
)

_EVICTED: Final = (
    Row(
        "session's disk limit",
        "evicted; the kubelet names the session's container, an init container or a volume of ours, or the agent had not begun",
        lambda f: _work(f) and (f.evicted is Evicted.SESSION_LIMIT or (f.evicted is Evicted.AGENT_LIMIT and not _has_begun(f))),
        "SessionLost",
    ),
    Row(
        "agent's disk limit",
        "evicted; the kubelet names the agent's container, a volume that the agent writes, or the pod's sum",
        lambda f: _work(f) and f.evicted is Evicted.AGENT_LIMIT,
        "AgentDiskLimit",
    ),
    Row(
        "node pressure",
        "evicted for the node's sake (it was low on memory, disk, inodes or pids), or in other words than a limit's",
        lambda f: f.evicted in (Evicted.NODE, Evicted.OTHER),
        "NodePressure",
    ),
)

_TAKEN: Final = (
    Row("stopped by the queue", "condition TerminationTarget (Kueue)", lambda f: f.taken is Taken.QUEUE, "Preempted"),
    Row(
        "preempted",
        "DisruptionTarget PreemptionByScheduler: a pod of higher priority took its place",
        lambda f: f.taken is Taken.SCHEDULER,
        "Preempted",
    ),
    Row(
        "preempted by a critical pod",
        "pod reason Preempting: the kubelet made room for a critical pod",
        lambda f: f.taken is Taken.CRITICAL_POD,
        "Preempted",
    ),
    Row(
        "drained",
        "DisruptionTarget EvictionByEvictionAPI (kubectl drain, autoscaler)",
        lambda f: f.taken is Taken.EVICTION_API,
        "Drained",
    ),
    Row("node shut down", "pod reason Terminated or NodeShutdown", lambda f: f.taken is Taken.SHUTDOWN, "Drained"),
    Row(
        "tainted node",
        "DisruptionTarget DeletionByTaintManager: not ready or unreachable for too long",
        lambda f: f.taken is Taken.TAINT_MANAGER,
        "NodeLost",
    ),
    Row(
        "node gone",
        "DisruptionTarget DeletionByPodGC, or pod reason NodeLost: there is no such node any more",
        lambda f: f.taken in (Taken.POD_GC, Taken.NODE_CONTROLLER) and f.scheduled,
        "NodeLost",
    ),
    Row(
        "collected before it had a node",
        "DisruptionTarget DeletionByPodGC of a pod that was deleted before it was scheduled",
        lambda f: f.taken in (Taken.POD_GC, Taken.NODE_CONTROLLER),
        "PodLost",
        Cause.PERSON,
    ),
    Row(
        "refused by the node",
        "pod reason OutOfcpu, OutOfpods …, NodeAffinity, UnexpectedAdmissionError: the kubelet would not have it",
        lambda f: f.refused is Refused.NODE,
        "NodePressure",
    ),
    Row(
        "refused by every node",
        "pod reason SysctlForbidden, AppArmor, PodOSNotSupported",
        lambda f: f.refused is Refused.CONFIGURATION,
        "ConfigurationError",
    ),
    Row(
        "deleted, explained",
        "the pod was deleted, and why was seen before (its session had ended and the rest of it had not)",
        lambda f: _work(f) and f.deleting and f.noted is not None,
        _noted,
    ),
    Row(
        "deleted",
        "the pod was deleted, by nobody who says why (kubectl delete)",
        lambda f: _known(f) and f.deleting,
        "PodLost",
        Cause.PERSON,
    ),
)

_VERIFIER: Final = (
    Row(
        "verify says why",
        "the session of a verify pod says why there is no verdict (any word but SessionLost)",
        lambda f: f.said is Said.NO_VERDICT and f.said_reason != "SessionLost",
        _said_reason,
        tell=_verdictless,
    ),
    Row(
        "verify over a disk limit",
        "a verify pod was evicted, and the kubelet names a limit of its own",
        lambda f: f.evicted is Evicted.AGENT_LIMIT,
        "AgentDiskLimit",
    ),
    Row(
        "verify over the session's disk limit",
        "a verify pod was evicted, and the kubelet names the session's container or a volume of it",
        lambda f: f.evicted is Evicted.SESSION_LIMIT,
        "SessionLost",
    ),
)

_CONTAINERS: Final = (
    Row("not scheduled", "no node within limits.pending", lambda f: f.overdue is Overdue.PENDING, "SetupTimeout"),
    Row(
        "cannot start",
        "a container waits for its image (ImageUnavailable) or a Secret or ConfigMap (ConfigurationError) beyond its patience, "
        "or the runtime could not start it (StartError: SetupTimeout)",
        lambda f: _known(f) and f.trouble is not None and not f.may_have_sealed,
        _trouble,
    ),
    Row(
        "init container failed",
        "an init container ended with an error or was killed for memory",
        lambda f: _known(f) and f.init_failed and not f.session.stand.may_have_run,
        "SetupTimeout",
        Cause.OPERATOR,
    ),
    Row(
        "not started",
        "not running within limits.setup, or (nobody looked) within the pod's deadline",
        lambda f: f.overdue is Overdue.SETUP or (f.deadline and not f.session.stand.may_have_run),
        "SetupTimeout",
    ),
    Row(
        "memory of the node",
        "agent and session are OOMKilled, both: a shortage of the node, not of the agent",
        lambda f: _known(f) and f.untrusted.out_of_memory and f.session.out_of_memory,
        "SessionLost",
        Cause.CLUSTER,
    ),
    Row(
        "agent's memory limit",
        "the agent's (or verifier's) container is OOMKilled, the session is not",
        lambda f: _known(f) and f.untrusted.out_of_memory and f.session.stand.may_have_run and not f.idle,
        "AgentOutOfMemory",
    ),
    Row("session's memory limit", "the session is OOMKilled", lambda f: _known(f) and f.session.out_of_memory, "SessionLost"),
    Row(
        "pod deadline",
        "pod reason DeadlineExceeded: the last resort, above all limits that the session keeps",
        lambda f: f.deadline,
        "SessionLost",
    ),
    Row(
        "verify out of sight",
        "ContainerStatusUnknown or Unknown (255) of the session of a verify pod: the node was restarted under it",
        lambda f: not _work(f) and _known(f) and f.session.stand is Stand.UNSEEN,
        "NodeLost",
    ),
    Row(
        "verify told to end",
        "the session of a verify pod says that it was told to end (SessionLost), and nothing shows by whom: its node went down",
        lambda f: _known(f) and f.said is Said.NO_VERDICT,
        "NodeLost",
        tell=_words,
    ),
    Row(
        "session out of sight",
        "ContainerStatusUnknown or Unknown (255) of the session: the node was restarted under it",
        lambda f: _known(f) and f.session.stand is Stand.UNSEEN,
        "SessionLost",
        Cause.CLUSTER,
    ),
    Row(
        "session ended",
        "the session ended without a message that can be read (none, cut, too long), or says that it was told to end",
        lambda f: _known(f) and f.session.stand is Stand.ENDED,
        "SessionLost",
    ),
)

_LAST: Final = (Row(GAP, "everything else", lambda _: True, "PodLost", Cause.UNKNOWN, tell=_unexplained),)

SECTIONS: Final = (
    ("The session says", _SESSION_SAYS),
    ("Storage says", _STORAGE_SAYS),
    ("The pod is gone", _GONE),
    ("The kubelet evicted it", _EVICTED),
    ("The cluster or a person took it", _TAKEN),
    ("A verify pod without a verdict", _VERIFIER),
    ("The containers show", _CONTAINERS),
    ("Nothing explains it", _LAST),
)
ROWS: Final = tuple(row for _, rows in SECTIONS for row in rows)
