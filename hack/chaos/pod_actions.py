"""What is changed in the manifests of recorded pods, what is done to them, and what is set by hand afterwards."""

from __future__ import annotations

from datetime import UTC, datetime

from pod_kinds import (
    Cluster,
    Json,
    Kind,
    container,
    invalid,
    says,
    sealed,
    told,
    volume,
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
