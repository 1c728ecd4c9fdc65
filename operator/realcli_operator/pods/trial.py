"""The work, verify and control pods of a trial: an untrusted container of the task's image beside the trusted session."""

from __future__ import annotations

from typing import Final

from realcli.api.base import seconds
from realcli.api.plan import Coordinates, PlanConfiguration, PlanTask, Resources
from realcli.api.plan import Plan as FrozenPlan
from realcli.api.trial import TrialSpec
from realcli.ledger.spool import SPOOL_FILE
from realcli_operator.kube.names import API_VERSION, Role
from realcli_operator.pods.budget import control_deadline, verify_deadline, work_deadline
from realcli_operator.pods.labels import pod_labels
from realcli_operator.pods.own import (
    KEYS,
    SETUP_SECRETS,
    agent_of,
    configuration_of,
    key_volume,
    setup_secrets,
    tool_copies,
    tool_mounts,
    tool_volumes,
)
from realcli_operator.pods.parts import (
    PREPARE_RESOURCES,
    SESSION_RESOURCES,
    BuildError,
    Manifest,
    SweepContext,
    agent_security,
    empty,
    mount,
    owner,
    place_env,
    pod_spec,
    prepare_container,
    private_mounts,
    private_volumes,
    storage_env,
    trusted_mounts,
    trusted_security,
    trusted_volumes,
    with_digest,
)
from realcli_operator.pods.placing import session_resources, trial_marks
from realcli_operator.pods.prepare import copy_command
from realcli_operator.reconcile.names import control_pod, verify_pod, work_pod
from realcli_operator.reconcile.plans import PodIntent

SOCKET_DIR: Final = "/run/realcli"
SOCKET: Final = f"{SOCKET_DIR}/session.sock"
TOOLKIT: Final = "/opt/realcli"
SPOOL: Final = "/spool"
SPOOL_SIZE: Final = "8Gi"
"""More than a session can be made to keep: a state of 4 GiB, 2 GiB of ledger that wait for storage, a gigabyte of snapshots, what
is kept for its end, the task's files. Nothing an agent does may have the session evicted."""
GRACE_SECONDS: Final = 120
"""For the session to flush its spool when the pod is told to end."""


def trial_pod(context: SweepContext, spec: TrialSpec, trial: str, trial_uid: str, intent: PodIntent) -> Manifest:
    """The pod an intent asks for."""
    if context.plan is None:
        raise BuildError(f"sweep {context.name} has no plan yet: no pod of {trial} can be built")
    if intent.verify or intent.control:
        return _verify_pod(context, context.plan, spec, trial, trial_uid, intent)
    return _work_pod(context, context.plan, spec, trial, trial_uid, intent)


def _work_pod(
    context: SweepContext, plan: FrozenPlan, spec: TrialSpec, trial: str, trial_uid: str, intent: PodIntent
) -> Manifest:
    task = _task(plan, spec.task)
    configuration = configuration_of(plan, spec.configuration)
    own = agent_of(context.spec, configuration.agent)
    image = _agent_image(context, configuration)
    arguments = ["work", *_place(plan, spec, intent), "--socket", SOCKET]
    session = _session(context, arguments)
    session["env"].append({"name": "REALCLI_KEYS", "value": KEYS})
    session["readinessProbe"] = waits_for_nothing()
    session["volumeMounts"] += [mount("keys", KEYS, read_only=True), mount("spool", SPOOL)]
    secrets = setup_secrets(own)
    if secrets is not None:
        session["volumeMounts"].append(mount(secrets["name"], SETUP_SECRETS, read_only=True))
    agent = _untrusted(context, "agent", task)
    agent["volumeMounts"] += tool_mounts(own)
    pod = _pod(context, spec, trial, trial_uid, intent, Role.WORK)
    body = pod["spec"]
    body["activeDeadlineSeconds"] = work_deadline(context.spec.limits, spec.mode)
    if task.mock_hosts:
        _mock_hosts(body)
    body["containers"] = [agent, session]
    body["volumes"] = [
        *_volumes(context, "agent", image),
        key_volume(context.spec, configuration, spec.mode),
        empty("spool", SPOOL_SIZE),
        *([] if secrets is None else [secrets]),
        *tool_volumes(context, own),
    ]
    _tools(context, body, image)
    body["initContainers"] += tool_copies(context, own)
    return with_digest(pod)


def _verify_pod(
    context: SweepContext, plan: FrozenPlan, spec: TrialSpec, trial: str, trial_uid: str, intent: PodIntent
) -> Manifest:
    """Also the control's: the same containers, with another program in the session."""
    task = _task(plan, spec.task)
    limits = context.spec.limits
    if intent.control:
        arguments = ["control", *_place(plan, spec, intent), "--control", str(intent.control)]
        role, deadline = Role.CONTROL, control_deadline(limits, task.verifier_seconds)
    else:
        arguments = ["verify", *_place(plan, spec, intent), "--verify", str(intent.verify)]
        arguments += [] if intent.work_seal is None else ["--work-seal", intent.work_seal]
        role, deadline = Role.VERIFY, verify_deadline(limits, task.verifier_seconds)
    session = _session(context, arguments)
    session["volumeMounts"] += [mount("spool", SPOOL)]
    pod = _pod(context, spec, trial, trial_uid, intent, role)
    body = pod["spec"]
    body["activeDeadlineSeconds"] = deadline
    if intent.control and task.mock_hosts:
        _mock_hosts(body)
    body["containers"] = [_untrusted(context, "verifier", task), session]
    body["volumes"] = [*_volumes(context, "verifier", context.platform.images.toolkit), empty("spool", SPOOL_SIZE)]
    _tools(context, body, context.platform.images.toolkit)
    return with_digest(pod)


def _mock_hosts(body: Manifest) -> None:
    """The session is no root, and 80 and 443 are the ports that the task's programs know; "safe" for every pod security level."""
    body["securityContext"]["sysctls"] = [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]


def _pod(context: SweepContext, spec: TrialSpec, trial: str, trial_uid: str, intent: PodIntent, role: Role) -> Manifest:
    cell = Coordinates(spec.ordinal, spec.task, spec.repeat, spec.configuration, spec.mode)
    untrusted = "agent" if role is Role.WORK else "verifier"
    spec_ = pod_spec(context, untrusted=True)
    spec_["terminationGracePeriodSeconds"] = GRACE_SECONDS
    spec_["initContainers"] = [prepare_container(context, context.platform.images.session, (untrusted, "session"))]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name_of(trial, intent),
            "namespace": context.namespace,
            **trial_marks(
                context.spec, dict(pod_labels(context.name, trial, cell, role, intent.attempt)), disruptable=_of_0_1(context)
            ),
            "ownerReferences": owner(API_VERSION, "Trial", trial, trial_uid),
        },
        "spec": spec_,
    }


def name_of(trial: str, intent: PodIntent) -> str:
    """The pod's name."""
    if intent.control:
        return control_pod(trial, intent.attempt, intent.control)
    return verify_pod(trial, intent.attempt, intent.verify) if intent.verify else work_pod(trial, intent.attempt)


def _untrusted(context: SweepContext, name: str, task: PlanTask) -> Manifest:
    """The container of the task's image; its PID 1 is the runner, started by the toolkit's own loader."""
    setup = context.spec.limits.setup
    return {
        "name": name,
        "image": task.image,
        "imagePullPolicy": context.pull_policy,
        "command": runner_command(setup, exec_record=not task.needs_setuid, clean=not _of_0_1(context)),
        "resources": task_resources(task.resources),
        "securityContext": agent_security(setuid=task.needs_setuid),
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [
            mount("socket", SOCKET_DIR),
            mount("toolkit", TOOLKIT, read_only=True),
            *private_mounts(name, read_only=False),
        ],
    }


def runner_command(setup: str, *, exec_record: bool = True, clean: bool = True) -> list[str]:
    """PID 1 of the untrusted container. A task with setuid programs has no record of executed commands."""
    cleaner = [f"{TOOLKIT}/bin/clean"] if clean else []  # the image's LD_PRELOAD is for its own programs
    loader = [*cleaner, f"{TOOLKIT}/lib/ld-linux-x86-64.so.2", "--argv0", f"{TOOLKIT}/bin/python3", "--library-path"]
    loader.append(f"{TOOLKIT}/lib")
    start = [f"{TOOLKIT}/bin/python3.real", "-I", f"{TOOLKIT}/runner/start.py"]
    options = [] if exec_record else ["--no-exec-record"]
    return [*loader, *start, "--socket", SOCKET, "--setup-seconds", f"{seconds(setup):.0f}", *options]


def _of_0_1(context: SweepContext) -> bool:
    """Whether the sweep was planned with images of 0.1, whose toolkit has no bin/clean: its pods stay what they were."""
    return context.platform.operator_version.startswith("0.1.")


def task_resources(resources: Resources) -> Manifest:
    """Requests equal limits: what a run may use must not depend on its neighbours. Disk is bounded, not reserved."""
    limits = {"cpu": resources.cpu, "memory": resources.memory}
    return {
        "requests": limits | {"ephemeral-storage": "64Mi"},
        "limits": limits | {"ephemeral-storage": resources.storage},
    }


def _session(context: SweepContext, arguments: list[str]) -> Manifest:
    return {
        "name": "session",
        "image": context.platform.images.session,
        "imagePullPolicy": context.pull_policy,
        "command": ["python", "-m", "realcli_session"],
        "args": arguments,
        "env": [*storage_env(context.spec.storage), *place_env()],
        "resources": session_resources(context.spec.pods, SESSION_RESOURCES),
        "securityContext": trusted_security(),
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [
            mount("socket", SOCKET_DIR),
            *trusted_mounts(),
            *private_mounts("session", read_only=True),
        ],
    }


def waits_for_nothing() -> Manifest:
    """Readiness of a work session: it is not ready while it waits for storage. By a file, because nothing of the session
    listens where the kubelet could ask it."""
    command = ["test", "!", "-e", f"{SPOOL}/{SPOOL_FILE}"]
    return {"exec": {"command": command}, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 3}


def _place(plan: FrozenPlan, spec: TrialSpec, intent: PodIntent) -> list[str]:
    lock = ["--root", plan.root, "--lock-digest", plan.lock_digest]
    return [*lock, "--ordinal", str(spec.ordinal), "--attempt", str(intent.attempt)]


def _volumes(context: SweepContext, untrusted: str, image: str) -> list[Manifest]:
    tree: Manifest = empty("toolkit", "2Gi")
    if context.platform.image_volumes:
        tree = {"name": "toolkit", "image": {"reference": image, "pullPolicy": context.pull_policy}}
    return [
        empty("socket", "16Mi"),
        tree,
        *private_volumes(untrusted),
        *private_volumes("session"),
        *trusted_volumes(context.spec.storage),
    ]


def _tools(context: SweepContext, body: Manifest, image: str) -> None:
    """Without image volumes an init container copies the tree."""
    if context.platform.image_volumes:
        return
    body["initContainers"].append(
        {
            "name": "toolkit",
            "image": image,
            "imagePullPolicy": context.pull_policy,
            "command": copy_command(),
            "resources": PREPARE_RESOURCES,
            "securityContext": trusted_security(),
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [mount("toolkit", "/target")],
        }
    )


def _task(plan: FrozenPlan, name: str) -> PlanTask:
    task = next((task for task in plan.tasks if task.name == name), None)
    if task is None:
        raise BuildError(f"task {name} is not in the frozen plan of sweep uid {plan.sweep_uid}")
    return task


def _agent_image(context: SweepContext, found: PlanConfiguration) -> str:
    key = f"{found.program}/{found.agent_version}"
    image = context.platform.images.agents.get(key)
    if image is None:
        known = ", ".join(sorted(context.platform.images.agents)) or "none"
        raise BuildError(f"no image for agent {key}; the operator has: {known} (chart value images.agents)")
    return image
