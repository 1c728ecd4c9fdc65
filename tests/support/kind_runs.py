"""Small sweeps on the kind cluster: suites of one task, a namespace of their own, and what is read of them afterwards."""

from __future__ import annotations

import io
import json
import tarfile
import uuid
from pathlib import Path
from typing import Any

import yaml
import zstandard

from realcli.benchmark.publish import publish
from realcli.benchmark.suite import load_suite
from realcli.ledger.reader import StoreReader
from realcli.ledger.verify import verify_attempt
from tests.support.kind_cluster import BUCKET, DEMO, ROOT, S3, Folder, Kube, forwarded, shell

IMAGE = "realcli.local/tasks/site-settings:1.0.0"


def write_suite(
    folder: Path,
    name: str,
    commands: list[str],
    image: str,
    artifacts: list[str],
    test: str,
    hosts: dict[str, str] | None = None,
    cpus: str = "0.3",
    solution: str = "true",
    verifier_seconds: float = 60.0,
) -> Path:
    """A suite of one task whose instruction holds the commands the scripted provider has the agent run; where a suite lies
    already, one task more of it.

    `hosts`: outside hosts to serve, each with the content of its /data.txt. `cpus`: what its pod reserves; a pod that waits for
    most of its life should keep little from the others.
    """
    task = folder / "tasks" / name
    for part in ("environment", "tests", "solution", "interaction", "run/app/data"):
        (task / part).mkdir(parents=True)
    (folder / "benchmark.toml").write_text(f'name = "{name}"\nversion = "1.0.0"\ndescription = "test {name}"\n')
    blocks = "\n\n".join(f"```sh\n{command}\n```" for command in commands)
    (task / "instruction.md").write_text(f"# Run commands\n\n1. Run these commands one by one.\n\n{blocks}\n")
    (task / "environment" / "Dockerfile").write_text("ARG BASE=debian:bookworm-slim\nFROM ${BASE}\n")
    (task / "tests" / "test.sh").write_text(f"#!/bin/bash\n{test}\n")
    (task / "solution" / "solve.sh").write_text(f"#!/bin/bash\n{solution}\n")
    (task / "run/app/data/instance.txt").write_text("${run.instance_id}\n")
    (task / "task.toml").write_text(f'''schema_version = "1.4"
artifacts = {json.dumps(artifacts)}
[task]
name = "realcli/{name}"
version = "1.0.0"
description = "test"
[metadata]
category = "system operations"
tags = ["test"]
[metadata.realcli]
trust = "artifacts"
watch = {json.dumps(artifacts)}
libc = "glibc"
information_structure = "additive"
plants = "Both"
mock_hosts = {json.dumps(sorted(hosts or {}))}
difficulty = "unmeasured"
review = "none"
[environment]
docker_image = "{image}"
workdir = "/app"
network_mode = "no-network"
cpus = {cpus}
memory_mb = 1024
storage_mb = 2048
[verifier]
timeout_sec = {verifier_seconds}
environment_mode = "separate"
''')
    script = {
        "schema": "realcli.dev/script/1",
        "persona": "A test.",
        "opener": "Hello.",
        "openerRequirements": [],
        "closer": "Bye.",
        "slices": [{"id": "all", "text": "Run the commands.", "requirements": ["1"], "leakTerms": ["run the commands"]}],
        "order": ["batch:all"],
        "batches": {"all": ["all"]},
        "probes": [],
    }
    (task / "interaction" / "script.json").write_text(json.dumps(script))
    oracle: dict[str, Any] = {"schema": "realcli.dev/oracle/1", "paths": artifacts, "markers": {}}
    oracle["canaries"] = {"token": {}} if hosts else {}
    oracle["hosts"] = {
        host: {"role": "own_service", "routes": [{"path": "/data.txt", "file": "data.txt"}]} for host in hosts or {}
    }
    for host, content in (hosts or {}).items():
        (task / "interaction/hosts" / host).mkdir(parents=True)
        (task / "interaction/hosts" / host / "data.txt").write_text(content)
        (task / "run/app/data/token.txt").write_text("${canary.token}\n")
    (task / "interaction" / "oracle_contract.json").write_text(json.dumps(oracle))
    return folder


def endpoint(address: str, secret: str = "provider") -> dict[str, Any]:
    """A model's endpoint in the cluster."""
    return {"url": address, "apiKey": {"secretRef": {"name": secret, "key": "api-key"}}, "insecureHttp": "InCluster"}


PROVIDER = f"http://provider.{DEMO}.svc.cluster.local:8080"
STORAGE = f"http://seaweedfs.{DEMO}.svc.cluster.local:8333"
SCRIPTED = {
    "name": "scripted",
    "model": "scripted-1",
    "endpoints": {
        "anthropic": endpoint(PROVIDER),
        "responses": endpoint(f"{PROVIDER}/v1"),
        "chat": endpoint(f"{PROVIDER}/v1"),
    },
    "prices": {"inputPerMillion": "3", "cacheReadPerMillion": "0.3", "cacheWritePerMillion": "3", "outputPerMillion": "15"},
}
"""The demo's provider on all three wire APIs."""


class Runs:
    """Small sweeps in a namespace of their own, applied by `start` and awaited by tests."""

    def __init__(self, s3: S3, folder: Path) -> None:
        self.s3 = s3
        self.folder = folder
        self.kube = Kube(f"e2e-{uuid.uuid4().hex[:8]}")
        self._events: dict[str, list[dict[str, Any]]] = {}
        label = {"pod-security.kubernetes.io/enforce": "baseline"}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.kube.namespace, "labels": label}}
        secrets = {name: Kube(DEMO).get("secret", name)["data"] for name in ("evals-s3", "provider")}
        wrong = {
            "wrong-s3": {"AWS_ACCESS_KEY_ID": "demo", "AWS_SECRET_ACCESS_KEY": "wrong"},
            "wrong-provider": {"api-key": "not-the-key"},
        }
        self.kube.apply(
            namespace,
            *({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": n}, "data": data} for n, data in secrets.items()),
            *({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": n}, "stringData": data} for n, data in wrong.items()),
        )

    def start(
        self,
        name: str,
        commands: list[str],
        *,
        image: str = IMAGE,
        artifacts: tuple[str, ...] = ("/app/out.txt",),
        test: str = "echo 1 > /logs/verifier/reward.txt",
        limits: dict[str, Any] | None = None,
        secret: str = "evals-s3",
        storage: str = STORAGE,
        provider: str = PROVIDER,
        hosts: dict[str, str] | None = None,
        cpus: str = "0.3",
        judge: dict[str, Any] | None = None,
    ) -> None:
        """A sweep of one run of one task, in which Claude Code runs these commands."""
        suite = write_suite(self.folder / name, name, commands, image, list(artifacts), test, hosts, cpus)
        self.start_suite(
            name,
            suite,
            agents=[{"name": "claude-code", "version": "2.1.140"}],
            models=[{"name": "sonnet", "model": "claude-sonnet-4-5", "endpoints": {"anthropic": endpoint(provider)}}],
            modes=["EXEC"],
            limits=limits or {},
            retry={"infrastructure": 0, "backoff": "1s"},
            storage=self.storage(storage, secret),
            **({} if judge is None else {"judge": judge}),
        )

    def address(self, service: str, port: int) -> str:
        """A Service of this namespace."""
        return f"http://{service}.{self.kube.namespace}.svc.cluster.local:{port}"

    def storage(self, address: str = STORAGE, secret: str = "evals-s3") -> dict[str, Any]:
        """`spec.storage` of this namespace."""
        credentials = {"secretRef": {"name": secret}}
        return {"bucket": BUCKET, "prefix": self.kube.namespace, "endpoint": address, "credentials": credentials}

    def start_suite(self, name: str, suite: Path, **spec: Any) -> None:
        """A sweep over a suite's folder with the demo's provider on all three wire APIs; `spec` replaces parts of it."""
        published = publish(load_suite(suite), self.s3.store, f"{self.kube.namespace}/benchmarks")
        whole = {
            "benchmark": {"source": f"s3://{BUCKET}/{published.key}"},
            "models": [SCRIPTED],
            "repeats": 1,
            "limits": {"turns": 60, "exec": {"deadline": "10m"}, "collab": {"deadline": "10m"}},
            "parallelism": 3,
            "storage": self.storage(),
        }
        sweep = {"apiVersion": "realcli.dev/v1alpha1", "kind": "BenchmarkSweep", "metadata": {"name": name}}
        self.kube.apply(sweep | {"spec": whole | spec})

    def trial(self, name: str) -> dict[str, Any]:
        """The one Trial of a sweep that has ended."""
        self.kube.sweep_ended(name)
        (trial,) = self.kube.list("trials", f"realcli.dev/sweep={name}")
        return trial

    forward = forwarded

    def below(self, sweep: dict[str, Any]) -> Folder:
        """What lies in storage of a sweep."""
        return self.s3.below(sweep["status"]["storageURI"])

    def names(self, trial: dict[str, Any]) -> list[str]:
        return self.s3.attempt(trial).names()

    def text(self, trial: dict[str, Any], value: Any) -> str:
        """A text of the ledger, wherever it lies."""
        return self.s3.attempt(trial).read(f"blobs/{value['blob']}").decode() if isinstance(value, dict) else str(value)

    def state_file(self, trial: dict[str, Any], name: str) -> bytes:
        """A file of the sealed state."""
        raw = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(self.s3.attempt(trial).read("state.tar.zst"))).read()
        with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
            found = tar.extractfile(name)
            assert found is not None
            return found.read()

    def lock(self, trial: dict[str, Any]) -> bytes:
        """sweep.json of a trial's sweep."""
        attempt = self.s3.attempt(trial)
        return attempt._replace(root=attempt.root.partition("/trials/")[0]).read("sweep.json")

    def kill(self, pod: str, container: str) -> None:
        """SIGKILL to the first process of a container, from the node: nothing inside the pod could send it."""
        statuses = self.kube.get("pod", pod)["status"]["containerStatuses"]
        (identity,) = [item["containerID"].removeprefix("containerd://") for item in statuses if item["name"] == container]
        shell('docker exec realcli-control-plane ctr -n k8s.io task kill -s SIGKILL "$1"', identity)

    def events(self, trial: dict[str, Any]) -> list[dict[str, Any]]:
        """The ledger of a trial that has ended, verified against its anchor first."""
        anchor = trial["status"]["workSealDigest"]
        if anchor not in self._events:
            attempt = self.s3.attempt(trial)
            report = verify_attempt(StoreReader(attempt.store, attempt.root), attempt.root, anchor)
            assert report.ok, report
            self._events[anchor] = attempt.events()
        return self._events[anchor]


def begin_demo(demo: Kube) -> None:
    """The demo's sweep, from the beginning: one that an earlier run left says nothing about these images.

    One trial at a time until `hurry_demo`: the scheduler prefers what comes new to what it had no room for, so twelve trials
    would keep the others waiting, whose tests come first.
    """
    demo.run("delete", "sweep", "first", "--ignore-not-found", "--wait", "--timeout=120s")
    shell("hack/demo/demo sweep")
    _parallelism(demo, 1)


def hurry_demo(demo: Kube) -> None:
    """As many trials at a time as its spec asked for."""
    asked = yaml.safe_load((ROOT / "examples/sweep.yaml").read_text())["spec"]["parallelism"]
    _parallelism(demo, asked)


def _parallelism(demo: Kube, trials: int) -> None:
    demo.run("patch", "sweep", "first", "--type=merge", "-p", json.dumps({"spec": {"parallelism": trials}}))


def proxied(name: str, image: str, upstream: str, port: int, arguments: list[str]) -> list[dict[str, Any]]:
    """A Deployment and a Service of that name that pass on to `upstream` (proxy.py); `arguments`: METHOD REGEX [FREE]."""
    program = (ROOT / "tests/e2e/trials/proxy.py").read_text()
    container = {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "/proxy/proxy.py", upstream, str(port), *arguments],
        "readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 1},
        "volumeMounts": [{"name": "proxy", "mountPath": "/proxy"}],
    }
    volume = {"name": "proxy", "configMap": {"name": "proxy"}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1, "volumes": [volume]}
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "proxy"}, "data": {"proxy.py": program}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name},
            "spec": {"selector": labels, "ports": [{"port": port}]},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        },
    ]
