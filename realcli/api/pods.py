"""What a person may say of the pods of a sweep: an allow-list, nothing else reaches a pod."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from realcli.api.base import Frozen
from realcli.api.models import SecretNameRef

Text = Annotated[str, StringConstraints(max_length=253)]
LabelValue = Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$", max_length=63)]
Quantity = Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$", max_length=16)]
Labels = Annotated[dict[str, LabelValue], Field(max_length=32)]
Annotations = Annotated[dict[str, Annotated[str, StringConstraints(max_length=1024)]], Field(max_length=32)]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", min_length=1, max_length=253)]


class UserNamespaces(StrEnum):
    """Whether work and verify pods get a user namespace of their own."""

    AUTO = "Auto"
    ALWAYS = "Always"
    NEVER = "Never"


class Toleration(Frozen):
    """As of a pod."""

    key: Text | None = Field(default=None, description="Key of the taint; absent: every taint.")
    operator: Literal["Exists", "Equal"] = Field(default="Equal", description="Equal compares the value too.")
    value: Text | None = Field(default=None, description="Value of the taint.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        default=None, description="Absent: all effects."
    )
    toleration_seconds: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="How long NoExecute is borne; absent: for ever."
    )


class TopologySpread(Frozen):
    """As of a pod; what is spread are the pods of this sweep."""

    max_skew: int = Field(default=1, ge=1, description="By how many pods two domains may differ.")
    topology_key: Text = Field(description="Label of nodes, such as topology.kubernetes.io/zone.")
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = Field(
        default="ScheduleAnyway", description="What the scheduler does where it cannot."
    )


class Requests(Frozen):
    """What a container asks for."""

    cpu: Quantity | None = Field(default=None, description="CPU; default 100m.")
    memory: Quantity | None = Field(default=None, description="Memory, at most 2Gi; default 256Mi.")


class SessionResources(Frozen):
    """Resources of the session; its limits are fixed."""

    requests: Requests = Field(default=Requests(), description="What it asks for.")


class SessionPod(Frozen):
    """The session's container."""

    resources: SessionResources = Field(default=SessionResources(), description="Its resources.")


class Pods(Frozen):
    """How pods are placed and marked. The runtime class and user namespaces are of work and verify pods, the rest of Jobs too."""

    user_namespaces: UserNamespaces = Field(
        default=UserNamespaces.AUTO,
        description="hostUsers: false. Auto: as the operator was told, or where the cluster has it.",
    )
    runtime_class_name: Name | None = Field(default=None, description="Runtime class of work and verify pods, such as gvisor.")
    node_selector: Labels = Field(default={}, description="Labels a node must have, beside linux and amd64.")
    tolerations: Annotated[list[Toleration], Field(max_length=32)] = Field(default=[], description="Taints that are borne.")
    topology_spread: Annotated[list[TopologySpread], Field(max_length=8)] = Field(
        default=[], description="How the pods of the sweep are spread over nodes."
    )
    priority_class_name: Name | None = Field(default=None, description="Priority class.")
    scheduler_name: Name | None = Field(default=None, description="Scheduler; absent: the cluster's default.")
    image_pull_secrets: Annotated[list[SecretNameRef], Field(max_length=16)] = Field(
        default=[], description="Secrets of registries, in the sweep's namespace."
    )
    labels: Labels = Field(default={}, description="Labels of pods and Jobs; those of the operator cannot be given.")
    annotations: Annotations = Field(default={}, description="Annotations of pods.")
    session: SessionPod = Field(default=SessionPod(), description="The session's container.")
