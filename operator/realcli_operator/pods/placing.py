"""`spec.pods` and `spec.queueName` in a manifest. What the operator needs of a pod wins over what a sweep says."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from realcli.api.pods import Pods
from realcli.api.sweep import SweepSpec
from realcli_operator.kube.names import LABEL_SWEEP

Manifest = dict[str, Any]

QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
MAX_AVOIDED: Final = 50
DO_NOT_DISRUPT: Final = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}
"""A work pod may run for ten hours: a node that is only half used is no reason to lose them."""


def placement(pods: Pods, sweep: str, node_selector: Manifest, *, untrusted: bool) -> Manifest:
    """Fields of a pod's spec. ``untrusted``: a work or verify pod."""
    spec: Manifest = {"nodeSelector": {**pods.node_selector, **node_selector}}
    if untrusted and pods.runtime_class_name is not None:
        spec["runtimeClassName"] = pods.runtime_class_name
    if pods.priority_class_name is not None:
        spec["priorityClassName"] = pods.priority_class_name
    if pods.scheduler_name is not None:
        spec["schedulerName"] = pods.scheduler_name
    if pods.tolerations:
        spec["tolerations"] = [toleration.dump() for toleration in pods.tolerations]
    if pods.image_pull_secrets:
        spec["imagePullSecrets"] = [secret.dump() for secret in pods.image_pull_secrets]
    if untrusted and pods.topology_spread:
        selector = {"matchLabels": {LABEL_SWEEP: sweep}}
        spec["topologySpreadConstraints"] = [spread.dump() | {"labelSelector": selector} for spread in pods.topology_spread]
    return spec


def session_resources(pods: Pods, default: Manifest) -> Manifest:
    """Resources of the session."""
    return default | {"requests": default["requests"] | pods.session.resources.requests.dump()}


def trial_marks(spec: SweepSpec, labels: Manifest, *, disruptable: bool) -> Manifest:
    """Labels and annotations of a trial's pod."""
    queue = {QUEUE_LABEL: spec.queue_name} if spec.queue_name else {}
    annotations = spec.pods.annotations | ({} if disruptable else DO_NOT_DISRUPT)
    return {"labels": {**spec.pods.labels, **queue, **labels}} | ({"annotations": annotations} if annotations else {})


def avoiding(manifest: Manifest, nodes: Collection[str]) -> Manifest:
    """The pod, kept away from nodes on which attempts break as long as there are others. Not part of the digest: which nodes
    those are changes while the pod is the same. A preference, so that a cluster of one broken node still tries."""
    if not nodes:
        return manifest
    fields = [{"key": "metadata.name", "operator": "NotIn", "values": [node]} for node in sorted(nodes)[:MAX_AVOIDED]]
    preferred = [{"weight": 100, "preference": {"matchFields": fields}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return manifest | {"spec": manifest["spec"] | {"affinity": affinity}}
