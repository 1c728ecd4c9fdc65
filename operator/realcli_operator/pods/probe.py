"""Does this cluster have user namespaces and image volumes? A pod is created with dryRun=All and read back.

An API server whose feature gate is off drops the field or refuses the pod; a field that survives is no proof that every
node can do it, which is why the settings know Always and Never.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from realcli_operator.pods.labels import sweep_labels
from realcli_operator.pods.parts import Manifest, trusted_security


def probe_pod(namespace: str, sweep: str, image: str, *, user_namespaces: bool, image_volumes: bool) -> Manifest:
    """The smallest pod that asks for them."""
    spec: Manifest = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "containers": [{"name": "probe", "image": image, "securityContext": trusted_security()}],
    }
    if user_namespaces:
        spec["hostUsers"] = False
    if image_volumes:
        spec["volumes"] = [{"name": "probe", "image": {"reference": image, "pullPolicy": "IfNotPresent"}}]
        spec["containers"][0]["volumeMounts"] = [{"name": "probe", "mountPath": "/probe", "readOnly": True}]
    name = f"{sweep}-probe"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": sweep_labels(sweep)},
        "spec": spec,
    }


def user_namespaces_survived(pod: Mapping[str, Any]) -> bool:
    """Whether the answer still asks for a user namespace."""
    return pod.get("spec", {}).get("hostUsers") is False


def image_volumes_survived(pod: Mapping[str, Any]) -> bool:
    """Whether the answer still has the image volume."""
    return any(volume.get("image") for volume in pod.get("spec", {}).get("volumes") or ())
