"""Every kind of end that `record_pods.py` records. Names are those of the files below tests/data/pods."""

from __future__ import annotations

from datetime import UTC, datetime

from pod_kinds import (
    AWAIT,
    EAT,
    OBEDIENT,
    SLEEP,
    TOUCH,
    Cluster,
    Json,
    Kind,
    both,
    container,
    deleting,
    exits,
    invalid,
    limit,
    no_verdict,
    phase,
    runs,
    says,
    sealed,
    terminated,
    told,
    unschedulable,
    verdict,
    volume,
    waits,
    when_running,
    writes,
)

SEALED = says(sealed("Completed"))
LOST = told(invalid("SessionLost", "told to end (SIGTERM)"))
GONE_NODE = "ends-gone"
"""A node without a kubelet."""

# -- changes of manifests


def image(made: Json, name: str, reference: str, policy: str = "IfNotPresent") -> None:
    container(made, name).update({"image": reference, "imagePullPolicy": policy})


def with_env(made: Json, source: Json) -> None:
    container(made, "session").setdefault("env", []).append({"name": "MISSING", "valueFrom": source})


def deadline(seconds: int):
    def change(made: Json) -> None:
        made["spec"]["activeDeadlineSeconds"] = seconds

    return change


def on_node(made: Json, **spec: object) -> None:
    """Past the scheduler, as if it had chosen this node."""
    made["spec"].update({"nodeName": "ends-control-plane"} | spec)


def pod_sum(made: Json) -> None:
    """Small limits everywhere, and a volume of the agent without one: only the sum is exceeded."""
    for one in (*made["spec"]["initContainers"], *made["spec"]["containers"]):
        one["resources"]["limits"]["ephemeral-storage"] = "8Mi"
    volume(made, "socket")["emptyDir"] = {}


def cpu(made: Json, name: str, amount: str) -> None:
    container(made, name)["resources"]["requests"]["cpu"] = amount
    container(made, name)["resources"]["limits"]["cpu"] = amount


def does(*steps):
    def change(made: Json) -> None:
        for step in steps:
            step(made)

    return change


# -- what is done to pods


def kill_sandbox(cluster: Cluster, name: str) -> None:
    cluster.node("ctr", "-n", "k8s.io", "task", "kill", "-s", "SIGKILL", cluster.containers(name)["sandbox"])


def remove_containers(cluster: Cluster, name: str) -> None:
    """Behind the kubelet's back while it is stopped: it finds nothing of what it started."""
    found = cluster.containers(name)
    cluster.node("systemctl", "stop", "kubelet")
    for one in ("agent", "session"):
        cluster.node("ctr", "-n", "k8s.io", "task", "kill", "-s", "SIGKILL", found[one])
    cluster.node("sh", "-c", "sleep 3")
    for one in ("agent", "session"):
        cluster.node("sh", "-c", f"ctr -n k8s.io task rm -f {found[one]}; ctr -n k8s.io containers rm {found[one]}")
    cluster.node("systemctl", "start", "kubelet")


def restart_kubelet(cluster: Cluster, name: str) -> None:
    cluster.node("systemctl", "restart", "kubelet")
    cluster.node("sh", "-c", "sleep 20")
    cluster.patch(name, {"metadata": {"annotations": {"recorded": "after the kubelet's restart"}}})


def preempt(cluster: Cluster, name: str) -> None:
    """A pod of higher priority that fits only in this one's place."""
    stronger = cluster.manifest(f"{name}-stronger", Kind("stronger", "", change=lambda m: cpu(m, "agent", "1100m")))
    stronger["spec"]["priorityClassName"] = "ends-high"
    cluster.create(stronger)


def preempt_by_kubelet(cluster: Cluster, name: str) -> None:
    critical = cluster.manifest(f"{name}-critical", Kind("critical", "", change=lambda m: cpu(m, "agent", "1200m")))
    critical["spec"].update({"priorityClassName": "system-node-critical", "nodeName": "ends-control-plane"})
    cluster.create(critical)


def run_on_gone_node(cluster: Cluster, name: str) -> None:
    """Nobody runs it there: the state is written by hand, what follows is the control plane's own."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    running = [
        {
            "name": one, "ready": True, "started": True, "restartCount": 0, "image": "stand-in", "imageID": "stand-in",
            "state": {"running": {"startedAt": now}},
        }
        for one in ("agent", "session")
    ]  # fmt: skip
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": now}
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    status = {"phase": "Running", "startTime": now, "containerStatuses": running, "conditions": conditions}
    cluster.patch(name, {"status": status}, "status")


def tolerate(seconds: int):
    def change(made: Json) -> None:
        keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        made["spec"]["tolerations"] = [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds} for key in keys
        ] + [{"operator": "Exists", "effect": "NoSchedule"}]
        made["spec"]["nodeName"] = GONE_NODE

    return change


def lose_node(cluster: Cluster, name: str) -> None:
    run_on_gone_node(cluster, name)


def delete_node(cluster: Cluster, name: str) -> None:
    run_on_gone_node(cluster, name)
    cluster.node("kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "delete", "node", GONE_NODE)


def soft(signal: str) -> Json:
    """A kubelet that finds its node short of this all the time. Soft, as a hard threshold is also reserved."""
    return {
        "evictionHard": {"imagefs.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%"},
        "evictionSoft": {signal: "99.9%"},
        "evictionSoftGracePeriod": {signal: "1s"},
        "evictionMaxPodGracePeriod": 5,
        "evictionPressureTransitionPeriod": "5s",
    }


def low_memory(cluster: Cluster, name: str) -> None:
    cluster.kubelet(soft("memory.available"))


def disk_pressure(cluster: Cluster) -> None:
    """Until the node says so itself: only then the kubelet refuses."""
    cluster.kubelet(soft("nodefs.available"))
    ready = "kubectl --kubeconfig=/etc/kubernetes/admin.conf get node ends-control-plane -o jsonpath='{.spec.taints}'"
    cluster.node("sh", "-c", f"for i in $(seq 60); do {ready} | grep -q disk-pressure && exit 0; sleep 2; done; exit 1")


# -- changes by hand of what was recorded


def condition(made: Json, kind: str, reason: str, text: str) -> None:
    made["status"].setdefault("conditions", []).append(
        {"type": kind, "status": "True", "reason": reason, "message": text, "lastTransitionTime": "2026-11-30T18:00:00Z"}
    )


def by_queue(made: Json) -> None:
    condition(made, "TerminationTarget", "WorkloadEvictedDueToPreempted", "Preempted to accommodate a workload (prioritization)")


def shut_down(made: Json) -> None:
    made["status"].update({"reason": "Terminated", "message": "Pod was terminated in response to imminent node shutdown."})
    condition(made, "DisruptionTarget", "TerminationByKubelet", "Pod was terminated in response to imminent node shutdown.")


def new_disruption(made: Json) -> None:
    condition(made, "DisruptionTarget", "DeletionBySomethingNew", "something that this version does not know")


def node_silent(made: Json) -> None:
    made["metadata"]["deletionGracePeriodSeconds"] = 120
    made["metadata"]["deletionTimestamp"] = "2026-11-30T18:00:00Z"


def whole_container(made: Json) -> None:
    """As memory.oom.group does: the container is gone with its first process."""
    for entry in made["status"]["containerStatuses"]:
        if entry["name"] == "agent":
            entry["state"]["terminated"].update({"exitCode": 137, "reason": "OOMKilled"})
    made["status"]["phase"] = "Failed"


def queue_gate(made: Json) -> None:
    made["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "audits"


KINDS: tuple[Kind, ...] = (
    # -- ends that the session tells of
    Kind("work-completed", "both containers end by themselves, the session seals Completed", exits(0), SEALED),
    Kind("work-agent-exit-1", "the agent's container ends with 1, sealed AgentCrashed", exits(1), says(sealed("AgentCrashed"))),
    Kind("work-agent-exit-137", "the agent's container ends with 137, sealed RunnerLost", exits(137), says(sealed("RunnerLost"))),
    Kind("work-agent-exit-143", "the agent's container ends with 143, sealed RunnerLost", exits(143), says(sealed("RunnerLost"))),
    Kind(
        "work-provider-unavailable",
        "the session says ProviderUnavailable and exits 0",
        exits(0),
        says(invalid("ProviderUnavailable", "529 for 10 minutes")),
    ),
    Kind("work-storage-unavailable", "the session says StorageUnavailable", exits(0), says(invalid("StorageUnavailable"))),
    Kind("work-configuration-error", "the session says ConfigurationError", exits(0), says(invalid("ConfigurationError"))),
    Kind("session-exit-0-silent", "the session ends with 0 and writes no message", exits(0), exits(0)),
    Kind("session-exit-1", "the session ends with 1 and writes no message", exits(0), exits(1)),
    Kind("session-exit-137", "the session ends with 137 and writes no message", exits(0), exits(137)),
    Kind("session-exit-143", "the session ends with 143 and writes no message", exits(0), exits(143)),
    Kind("session-sealed-exit-1", "the session seals, then ends with 1", exits(0), says(sealed("Completed"), 1)),
    Kind(
        "message-too-long",
        "the session writes a message of 6000 bytes; the kubelet keeps its end, cut",
        exits(0),
        says(sealed("Completed")[:-1] + "x" * 6000),
    ),
    Kind(
        "message-cut",
        "a readable message of more bytes than a container's share of what the kubelet keeps of a pod: cut in the middle",
        exits(0),
        says(" " * 2950 + sealed("Completed")),
    ),
    Kind("message-half", "the session is gone in the middle of its message", exits(0), says(sealed("Completed")[:80], 137)),
    Kind("message-binary", "the message is no text", exits(0), says("\x00\x01\udcff".encode("utf-8", "replace").decode() * 20)),
    Kind(
        "message-of-the-agent",
        "the agent writes a seal into the termination message of its own container, the session none",
        says(sealed("Completed"), 0),
        exits(1),
    ),
    Kind(
        "session-ended-agent-runs",
        "the session seals and ends, the agent's container goes on",
        SLEEP,
        SEALED,
        until=terminated("session"),
    ),
    # -- memory
    Kind(
        "oom-agent-sealed",
        "the agent takes more memory than its limit; the session seals RunnerLost",
        TOUCH + EAT,
        AWAIT + says(sealed("RunnerLost")),
        change=limit("agent", memory="64Mi"),
    ),
    Kind(
        "oom-agent-silent",
        "the agent takes more memory than its limit; the session dies without a message",
        TOUCH + EAT,
        AWAIT + exits(1),
        change=limit("agent", memory="64Mi"),
    ),
    Kind(
        "oom-process",
        "a child of the agent takes more memory than the container's limit, the agent goes on and ends with 0",
        "import subprocess, sys\n" + f"subprocess.run(['python3', '-c', {EAT!r}])\n" + TOUCH + exits(0),
        AWAIT + SEALED,
        change=limit("agent", memory="64Mi"),
    ),
    Kind(
        "oom-process-crashed",
        "a child of the agent is killed for memory and the agent's program ends; sealed AgentCrashed",
        "import subprocess, sys\n" + f"subprocess.run(['python3', '-c', {EAT!r}])\n" + TOUCH + exits(1),
        AWAIT + says(sealed("AgentCrashed")),
        change=limit("agent", memory="64Mi"),
    ),
    Kind(
        "oom-process-group",
        "as cgroup v2 ends it: the whole container is killed with the child",
        "import subprocess, sys\n" + f"subprocess.run(['python3', '-c', {EAT!r}])\n" + TOUCH + exits(0),
        AWAIT + says(sealed("RunnerLost")),
        change=limit("agent", memory="64Mi"),
        constructed=True,
        then=(whole_container, "phase, exit code and reason of the agent set by hand"),
    ),
    Kind("oom-session", "the session takes more memory than its limit", exits(0), EAT, change=limit("session", memory="64Mi")),
    Kind(
        "oom-both",
        "agent and session take more memory than their limits",
        EAT,
        EAT,
        change=does(limit("agent", memory="64Mi"), limit("session", memory="64Mi")),
    ),
    Kind("oom-init", "the init container takes more memory than its limit", prepare=EAT, change=limit("prepare", memory="64Mi")),
    Kind(
        "oom-verifier",
        "the verifier takes more memory than its limit; its session says NoReward",
        TOUCH + EAT,
        AWAIT + says(no_verdict("NoReward")),
        verify=True,
        change=limit("verifier", memory="64Mi"),
    ),
    Kind("init-exit-1", "the init container ends with 1", prepare=exits(1)),
    # -- disk
    Kind(
        "disk-agent-container",
        "the agent writes more than its ephemeral-storage limit into its root",
        writes("/tmp/big", 64),
        LOST,
        change=limit("agent", ephemeral_storage="16Mi"),
    ),
    Kind(
        "disk-agent-container-silent",
        "the same, and the session dies without a message",
        writes("/tmp/big", 64),
        OBEDIENT,
        change=limit("agent", ephemeral_storage="16Mi"),
    ),
    Kind(
        "disk-agent-volume",
        "the agent writes more than the sizeLimit into the volume of the socket",
        writes("/run/realcli/big", 64),
        LOST,
    ),
    Kind(
        "disk-session-volume",
        "the session writes more than the sizeLimit of its spool",
        OBEDIENT,
        writes("/spool/big", 64),
        change=lambda made: volume(made, "spool").update({"emptyDir": {"sizeLimit": "8Mi"}}),
    ),
    Kind(
        "disk-session-container",
        "the session's log takes more than its ephemeral-storage limit",
        OBEDIENT,
        "import sys, time\nfor _ in range(40000): sys.stdout.write('x' * 1023 + chr(10))\nsys.stdout.flush()\ntime.sleep(3600)",
        change=limit("session", ephemeral_storage="8Mi"),
    ),
    Kind("disk-pod-sum", "only the sum of all limits is exceeded", writes("/run/realcli/big", 128), LOST, change=pod_sum),
    Kind(
        "disk-verifier",
        "the verifier writes more than its ephemeral-storage limit",
        writes("/tmp/big", 64),
        OBEDIENT,
        verify=True,
        change=limit("verifier", ephemeral_storage="16Mi"),
    ),
    # -- time
    Kind("deadline-told", "activeDeadlineSeconds; the session says that it was told to end", OBEDIENT, LOST, change=deadline(60)),
    Kind("deadline-silent", "activeDeadlineSeconds; the session ignores the signal and is killed", change=deadline(60)),
    Kind(
        "deadline-never-started",
        "activeDeadlineSeconds while the image cannot be pulled",
        change=does(deadline(20), lambda made: image(made, "agent", "registry.invalid/none:1")),
    ),
    # -- images and configuration
    Kind(
        "image-pull-error",
        "an image of a registry that does not exist, the first failure",
        change=lambda made: image(made, "agent", "registry.invalid/none:1"),
        until=waits("agent", "ErrImagePull"),
    ),
    Kind(
        "image-pull-backoff",
        "an image of a registry that does not exist, later",
        change=lambda made: image(made, "agent", "registry.invalid/none:1"),
        until=waits("agent", "ImagePullBackOff"),
    ),
    Kind(
        "image-pull-backoff-init",
        "the image of an init container cannot be pulled",
        change=lambda made: image(made, "toolkit", "registry.invalid/none:1"),
        until=waits("toolkit", "ImagePullBackOff"),
    ),
    Kind(
        "image-never-pull",
        "imagePullPolicy Never and no such image on the node",
        change=lambda made: image(made, "agent", "registry.invalid/none:1", "Never"),
        until=waits("agent", "ErrImageNeverPull"),
    ),
    Kind(
        "image-invalid-name",
        "an image name that is none",
        change=lambda made: image(made, "agent", "UPPER//bad:::"),
        until=waits("agent", "InvalidImageName"),
    ),
    Kind(
        "secret-missing",
        "an environment variable of a Secret that does not exist",
        change=lambda made: with_env(made, {"secretKeyRef": {"name": "nowhere", "key": "key"}}),
        until=waits("session", "CreateContainerConfigError"),
    ),
    Kind(
        "config-map-key-missing",
        "an environment variable of a ConfigMap that lacks the key",
        change=lambda made: with_env(made, {"configMapKeyRef": {"name": "kube-root-ca.crt", "key": "nothing"}}),
        until=waits("session", "CreateContainerConfigError"),
    ),
    Kind(
        "start-error",
        "a command that is not in the image",
        change=lambda made: container(made, "agent").update({"command": ["/no/such/program"]}),
        until=terminated("agent"),
    ),
    Kind(
        "start-error-init",
        "an init container with a command that is not in its image",
        change=lambda made: container(made, "prepare").update({"command": ["/no/such/program"]}),
    ),
    Kind(
        "volume-missing",
        "a volume of a Secret that does not exist",
        change=lambda made: (
            made["spec"]["volumes"].append({"name": "lost", "secret": {"secretName": "nowhere"}})
            or container(made, "session")["volumeMounts"].append({"name": "lost", "mountPath": "/lost"})
        ),
        until=waits("session", "PodInitializing", "ContainerCreating"),
    ),
    # -- scheduling
    Kind("unschedulable", "no node has that many CPUs", change=lambda made: cpu(made, "agent", "500"), until=unschedulable),
    Kind("gated", "held by the scheduling gate of Kueue (no Kueue is there)", change=queue_gate, until=unschedulable),
    Kind(
        "out-of-cpu",
        "bound to a node that is full, past the scheduler",
        change=does(on_node, lambda made: cpu(made, "agent", "500")),
    ),
    Kind(
        "out-of-memory-admission",
        "the same, memory",
        change=does(
            on_node,
            lambda made: container(made, "agent")["resources"]["requests"].update({"memory": "4Ti"}),
            limit("agent", memory="4Ti"),
        ),
    ),
    Kind(
        "node-affinity",
        "bound to a node that its nodeSelector excludes",
        change=lambda made: on_node(made, nodeSelector={"pool": "elsewhere"}),
    ),
    Kind(
        "sysctl-forbidden",
        "asks for a sysctl that the kubelet does not allow",
        change=lambda made: made["spec"]["securityContext"].update({"sysctls": [{"name": "kernel.msgmax", "value": "65536"}]}),
    ),
    Kind(
        "preempted-by-scheduler",
        "a pod of higher priority fits only in its place; the session says that it was told to end",
        OBEDIENT,
        LOST,
        change=lambda made: cpu(made, "agent", "1100m"),
        act=when_running(preempt),
        until=both(phase("Succeeded", "Failed"), deleting),
        alone=True,
    ),
    Kind(
        "preempted-by-kubelet",
        "a critical pod is bound to the full node",
        OBEDIENT,
        LOST,
        change=lambda made: cpu(made, "agent", "1100m"),
        act=when_running(preempt_by_kubelet),
        alone=True,
    ),
    # -- taken or deleted
    Kind(
        "drained",
        "eviction API; the session says that it was told to end",
        OBEDIENT,
        LOST,
        act=when_running(lambda cluster, name: cluster.evict(name)),
        until=both(phase("Succeeded", "Failed"), deleting),
    ),
    Kind(
        "drained-silent",
        "eviction API; the session is killed",
        OBEDIENT,
        SLEEP,
        act=when_running(lambda cluster, name: cluster.evict(name)),
        until=both(phase("Succeeded", "Failed"), deleting),
    ),
    Kind(
        "drained-verify",
        "eviction API of a verify pod; its session sees only that the runner is gone",
        OBEDIENT,
        told(no_verdict("NoReward")),
        verify=True,
        act=when_running(lambda cluster, name: cluster.evict(name)),
        until=both(phase("Succeeded", "Failed"), deleting),
    ),
    Kind(
        "deleted",
        "kubectl delete; the session says that it was told to end",
        OBEDIENT,
        LOST,
        act=when_running(lambda cluster, name: cluster.delete(name)),
        until=both(phase("Succeeded", "Failed"), deleting),
    ),
    Kind(
        "deleted-going",
        "kubectl delete, while it terminates",
        SLEEP,
        SLEEP,
        act=when_running(lambda cluster, name: cluster.delete(name)),
        until=both(phase("Running"), deleting),
    ),
    Kind(
        "deleted-by-force",
        "kubectl delete --force: its last state",
        SLEEP,
        SLEEP,
        act=when_running(lambda cluster, name: cluster.delete(name, 0)),
        until=deleting,
    ),
    Kind(
        "ephemeral-container",
        "an ephemeral container ran in it; sealed",
        "import time; time.sleep(25)",
        "import time; time.sleep(25)\n" + SEALED,
        act=when_running(lambda cluster, name: cluster.ephemeral(name)),
    ),
    Kind(
        "stopped-by-queue",
        "as Kueue ends a plain pod: condition TerminationTarget, then deletion",
        OBEDIENT,
        LOST,
        act=when_running(lambda cluster, name: cluster.delete(name)),
        until=both(phase("Succeeded", "Failed"), deleting),
        constructed=True,
        then=(by_queue, "the condition set by hand"),
    ),
    Kind(
        "node-shut-down",
        "graceful node shutdown",
        OBEDIENT,
        LOST,
        act=when_running(lambda cluster, name: cluster.delete(name)),
        until=both(phase("Succeeded", "Failed"), deleting),
        constructed=True,
        then=(shut_down, "reason and condition set by hand"),
    ),
    Kind(
        "disrupted-by-something-new",
        "a disruption that no version knows",
        OBEDIENT,
        SLEEP,
        act=when_running(lambda cluster, name: cluster.delete(name)),
        until=both(phase("Succeeded", "Failed"), deleting),
        constructed=True,
        then=(new_disruption, "the condition set by hand"),
    ),
    # -- verify
    Kind("verify-completed", "the session says the verdict", exits(0), says(verdict()), verify=True),
    Kind("verify-no-reward", "the session says NoReward", exits(0), says(no_verdict("NoReward")), verify=True),
    Kind(
        "verify-verifier-exit-137",
        "the verifier's container ends with 137, the session says NoReward",
        exits(137),
        says(no_verdict("NoReward")),
        verify=True,
    ),
    Kind("verify-session-exit-1", "the session of a verify pod ends with 1 and no message", exits(0), exits(1), verify=True),
    # -- nodes; one at a time
    Kind(
        "sandbox-killed",
        "the sandbox (pause) of a running pod is killed",
        OBEDIENT,
        OBEDIENT,
        act=when_running(kill_sandbox),
        alone=True,
    ),
    Kind(
        "containers-removed",
        "the containers are removed behind the kubelet's back while it is stopped",
        SLEEP,
        SLEEP,
        act=when_running(remove_containers),
        alone=True,
    ),
    Kind(
        "kubelet-restarted",
        "the kubelet is restarted; the pod goes on",
        SLEEP,
        SLEEP,
        act=when_running(restart_kubelet),
        until=both(runs, lambda pod: "recorded" in pod["metadata"].get("annotations", {})),
        alone=True,
    ),
    Kind(
        "node-tainted",
        "a node without kubelet becomes unreachable; the taint manager deletes the pod",
        change=tolerate(1),
        before=lambda cluster: cluster.add_gone_node(),
        act=lose_node,
        until=deleting,
        constructed=True,
        alone=True,
    ),
    Kind(
        "node-silent",
        "the same, long after: no kubelet confirms the deletion",
        change=tolerate(1),
        before=lambda cluster: cluster.add_gone_node(),
        act=lose_node,
        until=deleting,
        constructed=True,
        alone=True,
        then=(node_silent, "deletion time set by hand"),
    ),
    Kind(
        "node-gone",
        "the Node object is deleted; the pod garbage collector fails and deletes the pod",
        change=tolerate(3600),
        before=lambda cluster: cluster.add_gone_node(),
        act=delete_node,
        until=lambda pod: any(c.get("reason") == "DeletionByPodGC" for c in pod["status"].get("conditions", ())),
        constructed=True,
        alone=True,
    ),
    Kind(
        "node-restarted",
        "the node is restarted under a running pod",
        OBEDIENT,
        OBEDIENT,
        alone=True,
        act=when_running(lambda cluster, name: cluster.restart_node()),
    ),
    Kind(
        "node-pressure-memory",
        "the kubelet's threshold for memory is set above what the node has",
        OBEDIENT,
        LOST,
        act=when_running(low_memory),
        alone=True,
    ),
    Kind(
        "node-pressure-admission",
        "bound to a node under disk pressure, past the scheduler",
        change=on_node,
        before=disk_pressure,
        alone=True,
    ),
)
