"""The facts that decide about the end of a pod, each with few values, so that every combination can be tried."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from realcli.api.outcomes import is_valid


class Work(StrEnum):
    """What the pod was for."""

    WORK = "work"
    VERIFY = "verify"


class Stand(StrEnum):
    """How a container stood at the end."""

    ABSENT = "absent"  # the kubelet never reported it
    WAITING = "waiting"  # it never ran
    NOT_STARTED = "not started"  # the runtime could not start it
    RUNNING = "running"
    ENDED = "ended"
    UNSEEN = "unseen"  # the kubelet lost sight of it: it may have run for hours

    @property
    def may_have_run(self) -> bool:
        """Whether something of it may have happened."""
        return self in (Stand.RUNNING, Stand.ENDED, Stand.UNSEEN)


class Evicted(StrEnum):
    """Whose limit or shortage the kubelet names."""

    NO = "no"
    AGENT_LIMIT = "agent's limit"
    SESSION_LIMIT = "session's limit"
    NODE = "node"
    OTHER = "other words"


class Taken(StrEnum):
    """Who takes (or took) the pod, as its conditions or its reason say."""

    NO = "no"
    SCHEDULER = "scheduler"
    QUEUE = "queue"
    EVICTION_API = "eviction API"
    TAINT_MANAGER = "taint manager"
    POD_GC = "pod garbage collector"
    SHUTDOWN = "node shutdown"
    CRITICAL_POD = "critical pod"
    NODE_CONTROLLER = "node controller"
    OTHER = "unknown"


class Refused(StrEnum):
    """Why the kubelet refused the pod that the scheduler had given to its node."""

    NO = "no"
    NODE = "node"  # full, or the pod does not fit this node
    CONFIGURATION = "configuration"  # no node will have it


class Said(StrEnum):
    """What the session's termination message says."""

    NOTHING = "nothing"  # none, cut, empty, or one that contradicts the table of outcomes
    SEALED = "sealed"
    INVALID = "invalid"
    NO_VERDICT = "no verdict"


class Seal(StrEnum):
    """What a verify pod found in storage."""

    UNREAD = "unread"
    NONE = "none"
    INVALID = "invalid"


class Overdue(StrEnum):
    """Which of our clocks ran out."""

    NO = "no"
    PENDING = "limits.pending"
    SETUP = "limits.setup"
    DELETION = "deletion"  # the node does not confirm it


class Vanished(StrEnum):
    """Whether a pod is there."""

    NO = "no"
    QUEUED = "while queued"
    YES = "yes"


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """A container at the end. ``reason`` is the kubelet's."""

    stand: Stand = Stand.ABSENT
    reason: str = ""
    exit_code: int | None = None

    @property
    def out_of_memory(self) -> bool:
        """Killed for memory; on cgroup v1 also said of a container in which one process was."""
        return self.reason == "OOMKilled"


@dataclass(frozen=True, slots=True)
class EndFacts:
    """Everything that decides about an end. ``text`` is for people alone."""

    work: Work = Work.WORK
    vanished: Vanished = Vanished.NO
    finished: bool = True
    scheduled: bool = True
    deadline: bool = False
    """The pod's activeDeadlineSeconds fired."""
    evicted: Evicted = Evicted.NO
    taken: Taken = Taken.NO
    refused: Refused = Refused.NO
    deleting: bool = False
    untrusted: ContainerFacts = ContainerFacts()
    session: ContainerFacts = ContainerFacts()
    init_failed: bool = False
    trouble: str | None = None
    """The outcome that keeps it from starting."""
    strange: bool = False
    """The pod's own reason is none that is known."""
    said: Said = Said.NOTHING
    said_reason: str | None = None
    said_text: str = ""
    idle: bool = False
    """The session says that the agent had asked nothing yet."""
    seal: Seal = Seal.UNREAD
    sealed_as: str | None = None
    anchor: str | None = None
    """Digest of the work seal, where one was announced."""
    noted: str | None = None
    """How its end was seen before the pod vanished (`status.workEnd`)."""
    overdue: Overdue = Overdue.NO
    text: str = ""

    @property
    def may_have_sealed(self) -> bool:
        """Whether storage may hold a seal: the session ran, or may have run, beside the agent (or has said so before)."""
        said = self.noted is not None and is_valid(self.noted)
        ran = self.session.stand.may_have_run and self.untrusted.stand.may_have_run
        return ran or said or self.vanished is not Vanished.NO
