#!/usr/bin/env python3
"""Records how pods end: tests/data/pods, from a kind cluster of its own that it makes and deletes.

    record_pods.py [--keep] [--reuse] [--only NAME ...] [--out FOLDER]

Each kind of `pod_catalogue.py` is one pod with the shape of a real work or verify pod; what the API server held of it is written
without managedFields as `<kind>.json`, and `index.yaml` says how each came about. Kinds that a cluster of one node cannot make
are marked `constructed`: the API server held them, and what was set by hand is said. Needs an engine (`make engine`).
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
for folder in ("", "operator"):
    sys.path.insert(0, str(ROOT / folder))

import pod_catalogue  # noqa: E402
from pod_kinds import NAMESPACE, Json, Kind, dumped  # noqa: E402
from pod_recorder import CLUSTER, NODE, Recorder, run, say  # noqa: E402

CACHE = Path(os.environ.get("REALCLI_CACHE") or Path.home() / ".cache" / "realcli")
OUT = ROOT / "tests/data/pods"
TOGETHER = 6
"""Pods that are there at the same time."""
HEADER = (
    "# Written by hack/chaos/record_pods.py; do not edit. recorded: as a real kubelet and control plane left it;\n"
    "# constructed: held by a real API server, with what `how` says set by hand.\n"
)


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
