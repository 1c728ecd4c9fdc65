"""The plan, judge and report Jobs of a sweep, the ConfigMap of the frozen plan, and Trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from realcli.api.base import canonical_json
from realcli.api.plan import Plan as FrozenPlan
from realcli.api.plan import SweepIdentity, encode_plan, trial_name
from realcli.api.trial import TrialSpec
from realcli_operator.kube.names import API_VERSION, LABEL_ATTEMPT, Role
from realcli_operator.pods.labels import cell_labels, sweep_labels, trial_labels
from realcli_operator.pods.own import setup_file_volumes, user_endpoint
from realcli_operator.pods.parts import (
    BuildError,
    Manifest,
    SweepContext,
    judge_key_env,
    key_env,
    mount,
    place_env,
    plain_env,
    pod_spec,
    prepare_container,
    storage_env,
    sweep_owner,
    trusted_mounts,
    trusted_security,
    trusted_volumes,
    with_digest,
)
from realcli_operator.reconcile.names import judge_job, plan_job, report_job
from realcli_operator.reconcile.plans import JobIntent, Task

PLAN_KEY: Final = "plan"
BACKOFF_LIMIT: Final = 2
"""Pods that may fail before the Job does: three tries."""
RESOURCES: Final = {
    "requests": {"cpu": "100m", "memory": "256Mi", "ephemeral-storage": "256Mi"},
    "limits": {"memory": "2Gi", "ephemeral-storage": "4Gi"},
}


def sweep_job(context: SweepContext, intent: JobIntent) -> Manifest:
    """The Job an intent asks for."""
    match intent.task:
        case Task.PLAN:
            return _plan_job(context, intent)
        case Task.JUDGE:
            return _judge_job(context, intent)
        case Task.REPORT:
            plan = _plan(context)
            arguments = ["report", "--root", plan.root, "--lock-digest", plan.lock_digest]
            container = _container(context, intent, "realcli_judge", arguments, _withdrawn(intent))
            return _job(context, intent, report_job(context.name, intent.n), Role.REPORT, container, {})


def _plan_job(context: SweepContext, intent: JobIntent) -> Manifest:
    identity = SweepIdentity(namespace=context.namespace, name=context.name, uid=context.uid)
    body = {"sweep": identity.dump(), "spec": context.spec.dump(), "platform": context.platform.dump()}
    if intent.source is not None:
        body["source"] = intent.source.dump()
    env = plain_env("REALCLI_SWEEP", canonical_json(body).decode())
    env += key_env(context.spec, user_endpoint(context.spec))
    container = _container(context, intent, "realcli_session", ["plan"], env)
    files = setup_file_volumes(context.spec)
    container["volumeMounts"] += [at for _, at in files]
    return _job(context, intent, plan_job(context.name), Role.PLAN, container, {}, [volume for volume, _ in files])


def _judge_job(context: SweepContext, intent: JobIntent) -> Manifest:
    if intent.input is None:
        raise BuildError(f"judge Job of group {intent.group} without its members")
    plan = _plan(context)
    env = [*plain_env("REALCLI_GROUP", intent.input.canonical().decode()), *judge_key_env(context.spec)]
    arguments = ["judge", "--root", plan.root, "--lock-digest", plan.lock_digest]
    container = _container(context, intent, "realcli_judge", arguments, env)
    labels = cell_labels(intent.input.configuration, intent.input.task)
    return _job(context, intent, judge_job(context.name, intent.group, intent.n), Role.JUDGE, container, labels)


def _withdrawn(intent: JobIntent) -> list[Manifest]:
    """What the report leaves out, for all configurations."""
    if not intent.withdrawn:
        return []
    return plain_env("REALCLI_WITHDRAWN", canonical_json([one.dump() for one in intent.withdrawn]).decode())


def _plan(context: SweepContext) -> FrozenPlan:
    if context.plan is None:
        raise BuildError(f"sweep {context.name} has no plan yet")
    return context.plan


def _container(context: SweepContext, intent: JobIntent, module: str, arguments: list[str], env: list[Manifest]) -> Manifest:
    images = context.platform.images
    return {
        "name": intent.task.value,
        "image": images.session if intent.task is Task.PLAN else images.judge,
        "imagePullPolicy": context.pull_policy,
        "command": ["python", "-m", module],
        "args": arguments,
        "env": [*env, *storage_env(context.spec.storage), *place_env()],
        "resources": RESOURCES,
        "securityContext": trusted_security(),
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [*trusted_mounts(), mount("shm", "/dev/shm")],
    }


def _job(
    context: SweepContext,
    intent: JobIntent,
    name: str,
    role: Role,
    container: Manifest,
    labels: Manifest,
    volumes: Sequence[Manifest] = (),
) -> Manifest:
    """A Job with one container. What the cluster takes back (drain, preemption) is no failure of the Job."""
    labels = {**context.spec.pods.labels, **sweep_labels(context.name, role), **labels}
    annotations = {"annotations": context.spec.pods.annotations} if context.spec.pods.annotations else {}
    body = pod_spec(context, untrusted=False)
    body["initContainers"] = [prepare_container(context, container["image"])]
    body["containers"] = [container]
    body["volumes"] = [
        *trusted_volumes(context.spec.storage),
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
        *volumes,
    ]
    job = with_digest(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": name,
                "namespace": context.namespace,
                "labels": labels,
                "ownerReferences": sweep_owner(context),
            },
            "spec": {
                "backoffLimit": BACKOFF_LIMIT,
                "completions": 1,
                "parallelism": 1,
                "podFailurePolicy": {
                    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
                },
                "template": {"metadata": {"labels": labels, **annotations}, "spec": body},
            },
        }
    )
    # Not part of the digest: a run again is the same Job.
    job["metadata"]["labels"] = labels | {LABEL_ATTEMPT: str(intent.attempt)}
    return job


def plan_config_map(context: SweepContext, plan: FrozenPlan) -> Manifest:
    """The immutable ConfigMap `<sweep>-plan` with the plan's line."""
    return with_digest(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "immutable": True,
            "metadata": {
                "name": plan_job(context.name),
                "namespace": context.namespace,
                "labels": sweep_labels(context.name),
                "ownerReferences": sweep_owner(context),
            },
            "data": {PLAN_KEY: encode_plan(plan)},
        }
    )


def trial_manifest(context: SweepContext, ordinal: int) -> Manifest:
    """The Trial of a cell of the plan."""
    plan = _plan(context)
    cell = plan.coordinates(ordinal)
    spec = TrialSpec(
        sweep=context.name,
        plan_digest=plan.content_digest(),
        ordinal=ordinal,
        configuration=cell.configuration,
        task=cell.task,
        mode=cell.mode,
        repeat=cell.repeat,
    )
    return with_digest(
        {
            "apiVersion": API_VERSION,
            "kind": "Trial",
            "metadata": {
                "name": trial_name(context.name, ordinal),
                "namespace": context.namespace,
                "labels": trial_labels(context.name, cell),
                "ownerReferences": sweep_owner(context),
            },
            "spec": spec.dump(),
        }
    )
