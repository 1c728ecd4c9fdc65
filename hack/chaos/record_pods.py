#!/usr/bin/env python3
"""Records how pods end: tests/data/pods, from a kind cluster of its own that it makes and deletes.

    record_pods.py [--keep] [--reuse] [--only NAME ...] [--out FOLDER]

Each kind of `pod_catalogue.py` is one pod with the shape of a real work or verify pod; what the API server held of it is written
without managedFields as `<kind>.json`, and `index.yaml` says how each came about. Kinds that a cluster of one node cannot make
are marked `constructed`: the API server held them, and what was set by hand is said. Needs an engine (`make engine`).
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import copy
import json
import os
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
for folder in ("", "operator"):
    sys.path.insert(0, str(ROOT / folder))

import pod_actions  # noqa: E402
import pod_catalogue  # noqa: E402
from pod_kinds import NAMESPACE, TRIAL, Json, Kind, dumped, pod, trial  # noqa: E402

CLUSTER = "ends"
NODE = f"{CLUSTER}-control-plane"
CACHE = Path(os.environ.get("REALCLI_CACHE") or Path.home() / ".cache" / "realcli")
OUT = ROOT / "tests/data/pods"
TOGETHER = 6
"""Pods that are there at the same time."""
HEADER = (
    "# Written by hack/chaos/record_pods.py; do not edit. recorded: as a real kubelet and control plane left it;\n"
    "# constructed: held by a real API server, with what `how` says set by hand.\n"
)


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


# -- recording


def record(recorder: Recorder, kind: Kind) -> Json:
    manifest = recorder.manifest("", kind)
    name = manifest["metadata"]["name"]
    if kind.before is not None:
        kind.before(recorder)
    recorder.create(manifest)
    try:
        if kind.act is not None:
            kind.act(recorder, name)
        found = copy.deepcopy(recorder.wait(name, kind.until, "its end"))
    finally:
        for one in [one for one in recorder.states if one == name or one.startswith(f"{name}-")]:  # its helpers too
            recorder.delete(one, 0)
    if kind.then is not None:
        kind.then[0](found)
    return found


def entry(kind: Kind) -> Json:
    how = kind.how + (f"; {kind.then[1]}" if kind.then else "")
    return {"made": "constructed" if kind.constructed else "recorded", "how": how}


def record_all(recorder: Recorder, kinds: list[Kind], out: Path) -> dict[str, str]:
    """Failures by kind; the files are written one by one."""
    failed: dict[str, str] = {}
    slots = threading.Semaphore(TOGETHER)

    def one(kind: Kind) -> None:
        try:
            (out / f"{kind.name}.json").write_text(dumped(record(recorder, kind)))
            say(f"recorded {kind.name}")
        except Exception as error:  # the others go on; what failed is told at the end
            failed[kind.name] = f"{type(error).__name__}: {error}"
            say(f"FAILED {kind.name}: {error}"[:600])

    def slot(kind: Kind) -> None:
        with slots:
            one(kind)

    threads = [threading.Thread(target=slot, args=(kind,)) for kind in kinds if not kind.alone]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for kind in kinds:
        if kind.alone:
            one(kind)
    return failed


def refusals(recorder: Recorder, out: Path) -> dict[str, Json]:
    """Answers of the API server to pods that it will not have."""
    index: dict[str, Json] = {}

    def keep(name: str, how: str, status: Json) -> None:
        status.get("metadata", {}).clear()
        (out / f"{name}.json").write_text(dumped(status))
        index[name] = {"made": "recorded", "how": how, "object": "Status"}
        say(f"recorded {name}")

    def plain() -> Json:
        return recorder.manifest("", Kind("refused", ""))

    label = "pod-security.kubernetes.io/enforce"
    recorder.api.call(
        "PATCH",
        f"/api/v1/namespaces/{NAMESPACE}",
        {"metadata": {"labels": {label: "restricted"}}},
        "application/merge-patch+json",
    )
    keep("refused-pod-security", "a namespace that enforces the restricted pod security", recorder.refuse(plain()))
    recorder.api.call(
        "PATCH", f"/api/v1/namespaces/{NAMESPACE}", {"metadata": {"labels": {label: None}}}, "application/merge-patch+json"
    )
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    recorder.api.call("POST", f"/api/v1/namespaces/{NAMESPACE}/resourcequotas", quota)
    time.sleep(3)  # the quota controller has to see it
    keep("refused-quota", "a ResourceQuota of no pods", recorder.refuse(plain()))
    recorder.api.call("DELETE", f"/api/v1/namespaces/{NAMESPACE}/resourcequotas/none")
    ranged = {"metadata": {"name": "small"}, "spec": {"limits": [{"type": "Container", "max": {"memory": "64Mi"}}]}}
    recorder.api.call("POST", f"/api/v1/namespaces/{NAMESPACE}/limitranges", ranged)
    keep("refused-limit-range", "a LimitRange below the pod's limits", recorder.refuse(plain()))
    recorder.api.call("DELETE", f"/api/v1/namespaces/{NAMESPACE}/limitranges/small")
    missing = plain()
    missing["spec"]["priorityClassName"] = "nowhere"
    keep("refused-priority-class", "a priority class that does not exist", recorder.refuse(missing))
    return index


# -- the cluster


@contextlib.contextmanager
def cluster(*, keep: bool, reuse: bool) -> Iterator[tuple[Path, str]]:
    """(kubeconfig, image of the stand-ins)."""
    run(str(ROOT / "hack/cluster/node-image"))
    if not (CACHE / "kind.yaml").exists():
        sys.exit("record_pods.py: there is no configuration of a cluster yet; run: make cluster")
    image = json.loads(run(sys.executable, str(ROOT / "hack/images.py"), "--only", "base"))["base"]
    folder = Path(tempfile.mkdtemp(prefix="ends-")) if not reuse else CACHE / "ends"
    folder.mkdir(exist_ok=True)
    kubeconfig = folder / "kubeconfig"
    try:
        there = NODE in run("docker", "ps", "--format", "{{.Names}}").split()
        if not (reuse and there):
            run("kind", "delete", "cluster", "--name", CLUSTER, "--kubeconfig", str(kubeconfig))
            config = (CACHE / "kind.yaml").read_text().replace("name: realcli", f"name: {CLUSTER}", 1)
            say(f"creating cluster {CLUSTER}")
            where = ("--name", CLUSTER, "--config", "-", "--wait", "300s", "--kubeconfig", str(kubeconfig))
            run("kind", "create", "cluster", *where, stdin=config.encode())
            saved = subprocess.run(["docker", "save", image], check=True, capture_output=True).stdout
            run("docker", "exec", "-i", NODE, "ctr", "-n", "k8s.io", "images", "import", "--digests", "-", stdin=saved)
        run("kind", "export", "kubeconfig", "--name", CLUSTER, "--kubeconfig", str(kubeconfig))
        yield kubeconfig, image
    finally:
        if not (keep or reuse):
            run("kind", "delete", "cluster", "--name", CLUSTER, "--kubeconfig", str(kubeconfig))
            kubeconfig.unlink(missing_ok=True)
            folder.rmdir()


def facts(recorder: Recorder) -> Json:
    info = recorder.api.call("GET", f"/api/v1/nodes/{NODE}")["status"]["nodeInfo"]
    version = "2" if recorder.node("stat", "-fc", "%T", "/sys/fs/cgroup").strip() == "cgroup2fs" else "1"
    return {"kubernetes": info["kubeletVersion"], "runtime": info["containerRuntimeVersion"], "cgroup": version}


def find_engine() -> None:
    """The engine that answers, else the one that `make engine` starts; and the programs of the cache."""
    os.environ["PATH"] = f"{CACHE / 'bin'}:{os.environ['PATH']}"
    if subprocess.run(["docker", "version"], capture_output=True).returncode != 0:
        os.environ["DOCKER_HOST"] = f"unix://{CACHE / 'docker/docker.sock'}"
    run("docker", "version")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="leave the cluster")
    parser.add_argument("--reuse", action="store_true", help="use a cluster that was kept, and keep it")
    parser.add_argument("--only", nargs="+", help="these kinds; the index keeps the others")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    kinds = [kind for kind in pod_catalogue.KINDS if not options.only or kind.name in options.only]
    options.out.mkdir(parents=True, exist_ok=True)
    find_engine()
    with cluster(keep=options.keep, reuse=options.reuse) as (kubeconfig, image):
        recorder = Recorder(kubeconfig, image)
        recorder.prepare()
        index_file = options.out / "index.yaml"
        known = yaml.safe_load(index_file.read_text())["pods"] if options.only and index_file.exists() else {}
        if options.only is None or "refusals" in options.only:
            known |= refusals(recorder, options.out)
        failed = record_all(recorder, kinds, options.out)
        known |= {kind.name: entry(kind) for kind in kinds if kind.name not in failed}
        index = {"cluster": facts(recorder), "pods": dict(sorted(known.items()))}
        index_file.write_text(HEADER + yaml.safe_dump(index, sort_keys=False, width=130, allow_unicode=True))
    for name, why in failed.items():
        say(f"failed: {name}: {why}"[:400])
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
