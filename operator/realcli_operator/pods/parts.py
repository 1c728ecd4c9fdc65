"""Parts that pods share: security contexts, environment, volumes, the init container. Pure, plain JSON."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final

from realcli.api.base import canonical_json
from realcli.api.handed import parts
from realcli.api.models import Endpoint
from realcli.api.plan import Plan as FrozenPlan
from realcli.api.plan import Platform
from realcli.api.sweep import Storage, SweepSpec
from realcli_operator.kube.names import ANNOTATION_SPEC_DIGEST, API_VERSION
from realcli_operator.pods.placing import placement
from realcli_operator.pods.prepare import CA_BUNDLE, CA_SECRET, COPIES, PREPARED, SHARED_FILES, prepare_command

Manifest = dict[str, Any]

SESSION_UID: Final = 10001
AGENT_CAPABILITIES: Final = (
    "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETUID", "SETGID", "SYS_CHROOT", "NET_BIND_SERVICE",
)  # fmt: skip
SECCOMP: Final = {"type": "RuntimeDefault"}
NODE_SELECTOR: Final = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}  # the toolkit's and the CLIs'
SESSION_RESOURCES: Final = {
    "requests": {"cpu": "100m", "memory": "256Mi", "ephemeral-storage": "256Mi"},
    "limits": {"memory": "2Gi", "ephemeral-storage": "9Gi"},
}
"""The storage limit counts for the pod's sum: without one, the spool would be charged to the agent's limit. Spool and logs."""
PREPARE_RESOURCES: Final = {
    "requests": {"cpu": "50m", "memory": "64Mi", "ephemeral-storage": "64Mi"},
    "limits": {"memory": "512Mi", "ephemeral-storage": "2Gi"},
}


class BuildError(ValueError):
    """A pod that cannot be built from this plan; names what is missing."""


@dataclass(frozen=True, slots=True)
class SweepContext:
    """What every builder needs of a sweep. ``platform`` is the plan's once there is a plan."""

    namespace: str
    name: str
    uid: str
    spec: SweepSpec
    platform: Platform
    pull_policy: str = "IfNotPresent"
    plan: FrozenPlan | None = None


def owner(api_version: str, kind: str, name: str, uid: str) -> list[Manifest]:
    """The controlling owner: deletion needs nothing else."""
    reference = {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}
    return [reference | {"controller": True, "blockOwnerDeletion": True}]


def sweep_owner(context: SweepContext) -> list[Manifest]:
    """Owned by the sweep."""
    return owner(API_VERSION, "BenchmarkSweep", context.name, context.uid)


def with_digest(manifest: Manifest) -> Manifest:
    """The manifest with the digest of all it asks for, which a second creator compares after a 409."""
    digest = "sha256:" + hashlib.sha256(canonical_json(manifest)).hexdigest()
    metadata = manifest["metadata"]
    annotations = metadata.get("annotations", {}) | {ANNOTATION_SPEC_DIGEST: digest}
    return manifest | {"metadata": metadata | {"annotations": annotations}}


def agent_security(*, setuid: bool = False) -> Manifest:
    """The task's image runs as root, with what a root of a build container needs and no more.

    `setuid`: the task has sudo or setuid programs, which no_new_privs would break.
    """
    return {
        "runAsUser": 0,
        "runAsGroup": 0,
        "privileged": False,
        "allowPrivilegeEscalation": setuid,
        "capabilities": {"drop": ["ALL"], "add": list(AGENT_CAPABILITIES)},
        "seccompProfile": dict(SECCOMP),
    }


def trusted_security() -> Manifest:
    """Our own containers."""
    return {
        "runAsUser": SESSION_UID,
        "runAsGroup": SESSION_UID,
        "runAsNonRoot": True,
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": dict(SECCOMP),
    }


def pod_spec(context: SweepContext, *, untrusted: bool) -> Manifest:
    """What all pods have in common. ``untrusted``: a work or verify pod, which gets a user namespace where there are any."""
    spec: Manifest = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        **placement(context.spec.pods, context.name, NODE_SELECTOR, untrusted=untrusted),
        # The group of the volumes: the session (not root) reads its keys and serves its socket.
        "securityContext": {
            "fsGroup": SESSION_UID,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": dict(SECCOMP),
        },
    }
    if untrusted and context.platform.user_namespaces:
        spec["hostUsers"] = False
    return spec


def plain_env(name: str, text: str) -> list[Manifest]:
    """A text as it is: in a value the kubelet reads `$(NAME)` as a reference and `$$` as one `$`."""
    return [{"name": part, "value": value.replace("$", "$$")} for part, value in parts(name, text).items()]


def storage_env(storage: Storage) -> list[Manifest]:
    """Where storage is, and the credentials by reference: the operator reads no Secret."""
    config = {"bucket": storage.bucket, "region": storage.region}
    if storage.endpoint is not None:
        config["endpoint"] = storage.endpoint
    secret = storage.credentials.secret_ref.name
    return [
        *plain_env("REALCLI_STORAGE", json.dumps(config, sort_keys=True)),
        _from_secret("AWS_ACCESS_KEY_ID", secret, "AWS_ACCESS_KEY_ID"),
        _from_secret("AWS_SECRET_ACCESS_KEY", secret, "AWS_SECRET_ACCESS_KEY"),
        _from_secret("AWS_SESSION_TOKEN", secret, "AWS_SESSION_TOKEN", optional=True),
        {"name": "AWS_CA_BUNDLE", "value": CA_BUNDLE},
    ]


def key_env(spec: SweepSpec, user: Endpoint | None) -> list[Manifest]:
    """Every model key, for the plan Job: a Secret that is missing shows before anything runs."""
    result = []
    for index, model in enumerate(spec.models):
        for api, endpoint in model.endpoints.given:
            reference = endpoint.api_key.secret_ref
            result.append(_from_secret(f"REALCLI_KEY_{index}_{api.upper()}", reference.name, reference.key))
    if user is not None:
        result.append(_from_secret("REALCLI_KEY_USER", user.api_key.secret_ref.name, user.api_key.secret_ref.key))
    return [*result, *judge_key_env(spec)]


def judge_key_env(spec: SweepSpec) -> list[Manifest]:
    """The judge's key, for plan and judge Jobs alone; nothing without a model that judges. Failed runs of EXEC are judged too."""
    found = None if spec.judge.model is None else spec.judge.model.endpoint
    if found is None:
        return []
    reference = found[1].api_key.secret_ref
    return [_from_secret("REALCLI_KEY_JUDGE", reference.name, reference.key)]


def _from_secret(name: str, secret: str, key: str, *, optional: bool = False) -> Manifest:
    reference: Manifest = {"name": secret, "key": key}
    if optional:
        reference["optional"] = True
    return {"name": name, "valueFrom": {"secretKeyRef": reference}}


def place_env() -> list[Manifest]:
    """The pod's and the node's name."""
    fields = (("REALCLI_POD", "metadata.name"), ("REALCLI_NODE", "spec.nodeName"))
    return [{"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}} for name, path in fields]


def empty(name: str, size: str, *, memory: bool = False) -> Manifest:
    """A bounded emptyDir."""
    return {"name": name, "emptyDir": {"sizeLimit": size} | ({"medium": "Memory"} if memory else {})}


def mount(name: str, path: str, *, sub_path: str | None = None, read_only: bool = False) -> Manifest:
    """A volume mount."""
    result: Manifest = {"name": name, "mountPath": path}
    if sub_path is not None:
        result["subPath"] = sub_path
    if read_only:
        result["readOnly"] = True
    return result


def trusted_volumes(storage: Storage) -> list[Manifest]:
    """Volumes of every trusted container: its /tmp, the authorities."""
    secret: Manifest = {
        "secretName": storage.credentials.secret_ref.name,
        "items": [{"key": "ca.crt", "path": "ca.crt"}],
        "optional": True,
        "defaultMode": 0o440,
    }
    return [empty("tmp", "1Gi"), empty("prepared", "8Mi"), {"name": "ca-secret", "secret": secret}]


def trusted_mounts() -> list[Manifest]:
    """Mounts of `trusted_volumes` in the container that uses them."""
    return [mount("tmp", "/tmp"), mount("prepared", PREPARED, read_only=True)]


def prepare_container(context: SweepContext, image: str, copies: tuple[str, ...] = ()) -> Manifest:
    """The init container; ``copies`` are the containers that get their own `/etc/hosts` and `/etc/resolv.conf`."""
    mounts = [mount("prepared", PREPARED), mount("ca-secret", CA_SECRET, read_only=True)]
    mounts += [mount(f"files-{name}", f"{COPIES}/{name}") for name in copies]
    return {
        "name": "prepare",
        "image": image,
        "imagePullPolicy": context.pull_policy,
        "command": prepare_command(),
        "resources": PREPARE_RESOURCES,
        "securityContext": trusted_security(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def private_volumes(container: str) -> list[Manifest]:
    """The copies of the shared files and the memory of one container."""
    return [empty(f"files-{container}", "1Mi"), empty(f"shm-{container}", "64Mi", memory=True)]


def private_mounts(container: str, *, read_only: bool) -> list[Manifest]:
    """`private_volumes` over `/etc/hosts`, `/etc/resolv.conf` and `/dev/shm`."""
    files = [mount(f"files-{container}", f"/etc/{name}", sub_path=name, read_only=read_only) for name in SHARED_FILES]
    return [*files, mount(f"shm-{container}", "/dev/shm")]
