"""The cluster on which ends are recorded, as the kinds see it: its API server, its node, and every state of its pods."""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pod_actions
import yaml
from pod_kinds import NAMESPACE, TRIAL, Json, Kind, pod, trial

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = "ends"
NODE = f"{CLUSTER}-control-plane"


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def run(*command: str, stdin: bytes | None = None, check: bool = True) -> str:
    done = subprocess.run(command, input=stdin, capture_output=True)
    if check and done.returncode != 0:
        sys.exit(f"record_pods.py: {' '.join(command[:6])} ... failed:\n{(done.stdout + done.stderr).decode()[-3000:]}")
    return done.stdout.decode()


class Refusal(Exception):
    """The API server's Status object."""

    def __init__(self, status: Json) -> None:
        super().__init__(status.get("message"))
        self.status = status


class Api:
    """The API server by HTTPS, with the certificate of the kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.server = cluster["server"]
        self.tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile() as both:
            both.write(base64.b64decode(user["client-certificate-data"]) + b"\n" + base64.b64decode(user["client-key-data"]))
            both.flush()
            self.tls.load_cert_chain(both.name)

    def open(self, method: str, path: str, body: Json | None = None, kind: str = "application/json", timeout: float = 30):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.server + path, data, {"Content-Type": kind}, method=method)
        try:
            return urllib.request.urlopen(request, context=self.tls, timeout=timeout)
        except urllib.error.HTTPError as error:
            raise Refusal(json.loads(error.read())) from error

    def call(self, method: str, path: str, body: Json | None = None, kind: str = "application/json") -> Json:
        with self.open(method, path, body, kind) as answer:
            return json.loads(answer.read())


PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


class Recorder:
    """The cluster as the kinds see it, and every state that the watch showed of their pods."""

    def __init__(self, kubeconfig: Path, image: str) -> None:
        self.kubeconfig = kubeconfig
        self.image = image
        self.api = Api(kubeconfig)
        self.states: dict[str, list[Json]] = {}
        self.changed = threading.Condition()
        self.trial_uid = ""
        self.attempt = 0
        self.started = time.strftime("%m%d%H%M%S")

    # -- set-up

    def prepare(self) -> None:
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for crd in sorted((ROOT / "crds").glob("*.yaml")):
            self.apply(yaml.safe_load(crd.read_text()))
        for name, value in (("ends-high", 1000),):
            body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
            self.apply(body | {"preemptionPolicy": "PreemptLowerPriority"})
        keys = {"api-key": "k", "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "k"}
        for name in ("keys", "storage"):
            self.apply(
                {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE}, "stringData": keys}
            )
        deadline = time.monotonic() + 60
        while True:  # until the CRD is served
            try:
                made = self.api.call("POST", f"/apis/realcli.dev/v1alpha1/namespaces/{NAMESPACE}/trials", trial(self.image))
            except Refusal as error:
                if error.status.get("reason") == "AlreadyExists":
                    made = self.api.call("GET", f"/apis/realcli.dev/v1alpha1/namespaces/{NAMESPACE}/trials/{TRIAL}")
                elif time.monotonic() < deadline:
                    time.sleep(0.5)
                    continue
                else:
                    raise
            break
        self.trial_uid = made["metadata"]["uid"]
        self.api.call("DELETE", PODS, {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0})
        threading.Thread(target=self._watch, daemon=True).start()

    def apply(self, manifest: Json) -> None:
        run(
            "kubectl", f"--kubeconfig={self.kubeconfig}", "apply", "--server-side", "-f", "-", stdin=json.dumps(manifest).encode()
        )

    def _watch(self) -> None:
        version = "0"
        while True:
            try:
                path = f"{PODS}?watch=1&allowWatchBookmarks=true&resourceVersion={version}"
                with self.api.open("GET", path, timeout=3600) as stream:
                    for line in stream:
                        event = json.loads(line)
                        if event["type"] == "ERROR":
                            version = "0"
                            break
                        version = event["object"]["metadata"]["resourceVersion"]
                        if event["type"] != "BOOKMARK":
                            self._saw(event)
            except (OSError, Refusal, ValueError):
                time.sleep(0.5)

    def _saw(self, event: Json) -> None:
        found = event["object"]
        found = {"apiVersion": "v1", "kind": "Pod"} | found
        found["metadata"].pop("managedFields", None)
        with self.changed:
            self.states.setdefault(found["metadata"]["name"], []).append(found)
            self.changed.notify_all()

    # -- what kinds may do

    def manifest(self, name: str, kind: Kind) -> Json:
        self.attempt += 1
        made = pod(self.image, self.trial_uid, kind, self.attempt)
        if name:
            made["metadata"]["name"] = name
        return made

    def create(self, manifest: Json) -> None:
        self.api.call("POST", PODS, manifest)

    def refuse(self, manifest: Json) -> Json:
        try:
            self.create(manifest)
        except Refusal as refusal:
            return refusal.status
        sys.exit(f"record_pods.py: {manifest['metadata']['name']} was expected to be refused")

    def delete(self, name: str, grace: int | None = None) -> None:
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        with contextlib.suppress(Refusal):
            self.api.call("DELETE", f"{PODS}/{name}", options)

    def evict(self, name: str) -> None:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": NAMESPACE}}
        self.api.call("POST", f"{PODS}/{name}/eviction", body)

    def patch(self, name: str, patch: Json, subresource: str | None = None) -> None:
        path = f"{PODS}/{name}" + (f"/{subresource}" if subresource else "")
        self.api.call("PATCH", path, patch, "application/strategic-merge-patch+json")

    def ephemeral(self, name: str) -> None:
        body = {"name": "debugger", "image": self.image, "command": ["python3", "-c", "import time; time.sleep(5)"]}
        self.patch(name, {"spec": {"ephemeralContainers": [body]}}, "ephemeralcontainers")

    def wait(self, name: str, until: Callable[[Json], bool], what: str, seconds: float = 240) -> Json:
        end = time.monotonic() + seconds
        with self.changed:
            while True:
                for state in reversed(self.states.get(name, ())):
                    if until(state):
                        return state
                if not self.changed.wait(end - time.monotonic()):
                    last = self.states.get(name, [{}])[-1].get("status", {})
                    raise TimeoutError(f"{name}: {what} did not happen in {seconds:.0f} s; last: {json.dumps(last)[:1500]}")

    def node(self, *command: str) -> str:
        return run("docker", "exec", NODE, *command)

    def restart_node(self) -> None:
        run("docker", "restart", "-t", "1", NODE)
        self.until_ready()

    def until_ready(self) -> None:
        end = time.monotonic() + 240
        while time.monotonic() < end:
            with contextlib.suppress(OSError, Refusal):
                status = self.api.call("GET", f"/api/v1/nodes/{NODE}")["status"]
                if any(c["type"] == "Ready" and c["status"] == "True" for c in status["conditions"]):
                    return
            time.sleep(1)
        sys.exit("record_pods.py: the node is not ready again")

    def containers(self, name: str) -> dict[str, str]:
        """Ids of the pod's containers, and of its sandbox."""
        status = self.api.call("GET", f"{PODS}/{name}")
        uid = status["metadata"]["uid"]
        found = {one["name"]: one["containerID"].rpartition("/")[2] for one in status["status"]["containerStatuses"]}
        labels = f'labels."io.kubernetes.pod.uid"=={uid},labels."io.cri-containerd.kind"==sandbox'
        return found | {"sandbox": self.node("ctr", "-n", "k8s.io", "containers", "ls", "-q", labels).split()[0]}

    def kubelet(self, changes: Json) -> None:
        """Restart the kubelet with these fields of its configuration."""
        place = "/var/lib/kubelet/config.yaml"
        config = yaml.safe_load(self.node("cat", place)) | changes
        run("docker", "exec", "-i", NODE, "sh", "-c", f"cat >{place}", stdin=yaml.safe_dump(config).encode())
        self.node("systemctl", "restart", "kubelet")

    def add_gone_node(self) -> None:
        name = pod_actions.GONE_NODE
        labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "kubernetes.io/hostname": name}
        body: Json = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        with contextlib.suppress(Refusal):
            self.api.call("POST", "/api/v1/nodes", body)
