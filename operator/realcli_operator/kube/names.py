"""Names on the wire: API group, watched resources, labels and annotations of everything the operator owns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

GROUP: Final = "realcli.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
MANAGER: Final = "realcli"
FIELD_MANAGER: Final = "realcli-operator"

LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
LABEL_SWEEP: Final = f"{GROUP}/sweep"
LABEL_TRIAL: Final = f"{GROUP}/trial"
LABEL_ROLE: Final = f"{GROUP}/role"
LABEL_CONFIGURATION: Final = f"{GROUP}/configuration"
LABEL_TASK: Final = f"{GROUP}/task"
LABEL_MODE: Final = f"{GROUP}/mode"
LABEL_REPEAT: Final = f"{GROUP}/repeat"
LABEL_ATTEMPT: Final = f"{GROUP}/attempt"
ANNOTATION_SPEC_DIGEST: Final = f"{GROUP}/spec-digest"

MANAGED_SELECTOR: Final = f"{LABEL_MANAGED_BY}={MANAGER}"


class Role(StrEnum):
    """What a pod does: the values of the role label."""

    WORK = "work"
    VERIFY = "verify"
    CONTROL = "control"
    PLAN = "plan"
    JUDGE = "judge"
    REPORT = "report"


class Kind(StrEnum):
    """The four kinds the store holds."""

    SWEEP = "sweep"
    TRIAL = "trial"
    POD = "pod"
    JOB = "job"


@dataclass(frozen=True, slots=True)
class Resource:
    """Where a kind lives in the API and which of its objects are ours."""

    kind: Kind
    api_version: str
    api_kind: str
    plural: str
    selector: str | None

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """URL path; without a namespace the collection over all namespaces."""
        base = f"/api/{self.api_version}" if "/" not in self.api_version else f"/apis/{self.api_version}"
        parts = [base]
        if namespace is not None:
            parts.append(f"namespaces/{namespace}")
        parts.append(self.plural)
        parts.extend(part for part in (name, subresource) if part is not None)
        return "/".join(parts)


RESOURCES: Final = MappingProxyType(
    {
        Kind.SWEEP: Resource(Kind.SWEEP, API_VERSION, "BenchmarkSweep", "benchmarksweeps", None),
        Kind.TRIAL: Resource(Kind.TRIAL, API_VERSION, "Trial", "trials", None),
        Kind.POD: Resource(Kind.POD, "v1", "Pod", "pods", MANAGED_SELECTOR),
        Kind.JOB: Resource(Kind.JOB, "batch/v1", "Job", "jobs", MANAGED_SELECTOR),
    }
)


class Key(NamedTuple):
    """What the queue holds: one reconciled object. Only sweeps and trials are reconciled."""

    kind: Kind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"


def sweep_key(namespace: str, name: str) -> Key:
    """Key of a BenchmarkSweep."""
    return Key(Kind.SWEEP, namespace, name)


def trial_key(namespace: str, name: str) -> Key:
    """Key of a Trial."""
    return Key(Kind.TRIAL, namespace, name)
