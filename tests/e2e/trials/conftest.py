"""The kind cluster with operator, storage and provider as `make demo` sets them up, and small sweeps of one task each.

All sweeps of a run are applied at once (fixture `runs`) and each test waits for its own: on two cores waiting side by side is
what keeps this suite short.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
import subprocess
import tarfile
import time
import tomllib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import boto3
import pytest
import zstandard
from botocore.config import Config

ROOT = Path(__file__).resolve().parents[3]
CACHE = Path(os.environ.get("REALCLI_CACHE", str(Path.home() / ".cache" / "realcli")))
DEMO = "realcli-demo"
IMAGE = "realcli.local/tasks/site-settings:1.0.0"
KUBECTL = str(CACHE / "bin" / "kubectl")


def shell(script: str, *args: str, check: bool = True, stdin: str | None = None) -> str:
    """A bash script with hack/lib.sh sourced (kubeconfig, engine, binaries)."""
    command = ["bash", "-c", f". hack/lib.sh; docker_ready; {script}", "e2e", *args]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, input=stdin, check=False)
    if check and done.returncode != 0:
        raise AssertionError(f"{script!r} ended with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout


class Kube:
    """kubectl against the kind cluster."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.env = {**os.environ, "KUBECONFIG": str(CACHE / "kubeconfig"), "PATH": f"{CACHE / 'bin'}:{os.environ['PATH']}"}

    def run(self, *args: str, stdin: str | None = None, check: bool = True) -> str:
        command = [KUBECTL, "-n", self.namespace, *args]
        done = subprocess.run(command, capture_output=True, text=True, input=stdin, env=self.env, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(args)}: {done.stderr}")
        return done.stdout

    def get(self, kind: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run("get", kind, name, "-o", "json"))
        return found

    def secret(self, name: str, key: str) -> str:
        return base64.b64decode(self.get("secret", name)["data"][key]).decode()

    def list(self, kind: str, selector: str = "") -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = json.loads(self.run("get", kind, "-o", "json", *(["-l", selector] if selector else [])))[
            "items"
        ]
        return items

    def apply(self, *objects: dict[str, Any]) -> None:
        self.run("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def until(self, what: str, seconds: float, look: Callable[[], Any]) -> Any:
        """The first truthy answer of `look`; on time-out the state of everything."""
        deadline = time.monotonic() + seconds
        while not (found := look()):
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: not within {seconds} s\n{self.state()}")
            time.sleep(1)  # polling the API server; there is no event for "my test's condition"
        return found

    def state(self) -> str:
        said = self.run("get", "sweeps,trials,pods,jobs", check=False)
        statuses = [json.dumps(item.get("status"), indent=1) for item in self.list("sweeps") + self.list("trials")]
        log = Kube("realcli-system").run("logs", "deployment/realcli", "--tail=30", check=False)
        return said + "\n".join(statuses) + log

    def sweep_ended(self, name: str, seconds: float) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            sweep = self.get("sweep", name)
            return sweep if sweep.get("status", {}).get("state") in ("Complete", "Incomplete", "Failed") else None

        found: dict[str, Any] = self.until(f"sweep {name} to end", seconds, look)
        return found


class S3(NamedTuple):
    """The cluster's storage through a port-forward."""

    endpoint: str
    env: dict[str, str]

    def realcli(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [str(ROOT / ".venv/bin/realcli"), *args]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=self.env, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"realcli {' '.join(args)}: {done.stdout}\n{done.stderr}")
        return done


@pytest.fixture(scope="session")
def demo_kube() -> Kube:
    shell("hack/demo/demo storage operator benchmark provider")
    return Kube(DEMO)


@pytest.fixture(scope="session")
def s3(demo_kube: Kube) -> Iterator[S3]:
    with forwarded(demo_kube, "service/seaweedfs", 8333) as address:
        secret = demo_kube.get("secret", "evals-s3")["data"]
        keys = {key: base64.b64decode(value).decode() for key, value in secret.items()}
        yield S3(address, {**demo_kube.env, **keys, "AWS_ENDPOINT_URL": address})


class forwarded:
    """`kubectl port-forward` on a free port, ready when entered."""

    def __init__(self, kube: Kube, target: str, port: int) -> None:
        self._command = [KUBECTL, "-n", kube.namespace, "port-forward", target, f":{port}"]
        self._env = kube.env

    def __enter__(self) -> str:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self._env
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        match = re.search(r"127\.0\.0\.1:\d+", line)
        if match is None:
            self._process.kill()
            raise AssertionError(f"port-forward said {line!r}")
        return f"http://{match[0]}"

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def write_suite(
    folder: Path, name: str, commands: list[str], image: str, artifacts: list[str], test: str, hosts: dict[str, str] | None = None
) -> Path:
    """A suite of one task whose instruction holds the commands the scripted provider has the agent run.

    `hosts`: outside hosts to serve, each with the content of its /data.txt.
    """
    task = folder / "tasks" / name
    for part in ("environment", "tests", "solution", "interaction", "run/app/data"):
        (task / part).mkdir(parents=True)
    (folder / "benchmark.toml").write_text(f'name = "{name}"\nversion = "1.0.0"\ndescription = "test {name}"\n')
    blocks = "\n\n".join(f"```sh\n{command}\n```" for command in commands)
    (task / "instruction.md").write_text(f"# Run commands\n\n1. Run these commands one by one.\n\n{blocks}\n")
    (task / "environment" / "Dockerfile").write_text("ARG BASE=debian:bookworm-slim\nFROM ${BASE}\n")
    (task / "tests" / "test.sh").write_text(f"#!/bin/bash\n{test}\n")
    (task / "solution" / "solve.sh").write_text("#!/bin/bash\ntrue\n")
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
cpus = 0.5
memory_mb = 1024
storage_mb = 2048
[verifier]
timeout_sec = 60.0
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


@pytest.fixture(scope="session")
def forward() -> type[forwarded]:
    return forwarded


@pytest.fixture(scope="session")
def demo_images() -> dict[str, str]:
    found: dict[str, str] = json.loads((ROOT / "out/images.json").read_text())
    return found


@pytest.fixture(scope="session")
def make_runs(s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Runs]:
    return lambda: Runs(s3, tmp_path_factory.mktemp("suites"))


@pytest.fixture(scope="session")
def read_ledger(s3: S3) -> Callable[[str], list[dict[str, Any]]]:
    return lambda uri: read_events(s3, uri)


@pytest.fixture(scope="session")
def read_run(s3: S3) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda trial: json.loads(Bucket.of(s3, trial).read("run.json"))


class Bucket(NamedTuple):
    """The objects of one attempt."""

    client: Any
    bucket: str
    root: str

    @staticmethod
    def of(s3: S3, trial: dict[str, Any]) -> Bucket:
        return Bucket.at(s3, trial["status"]["ledgerURI"])

    @staticmethod
    def at(s3: S3, uri: str) -> Bucket:
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        client = boto3.client(
            "s3",
            endpoint_url=s3.endpoint,
            region_name="us-east-1",
            aws_access_key_id=s3.env["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=s3.env["AWS_SECRET_ACCESS_KEY"],
            config=Config(signature_version="s3v4", s3={"addressing_style": "path"}),
        )
        return Bucket(client, bucket, re.sub(r"/ledger/?$", "", key.rstrip("/")))

    def names(self) -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=f"{self.root}/")
        return sorted(item["Key"].removeprefix(f"{self.root}/") for page in pages for item in page.get("Contents", []))

    def read(self, name: str) -> bytes:
        found: bytes = self.client.get_object(Bucket=self.bucket, Key=f"{self.root}/{name}")["Body"].read()
        return found


class Runs:
    """Small sweeps in a namespace of their own, applied by `start` and awaited by tests."""

    def __init__(self, s3: S3, folder: Path) -> None:
        self.s3 = s3
        self.folder = folder
        self.kube = Kube(f"e2e-{uuid.uuid4().hex[:8]}")
        label = {"pod-security.kubernetes.io/enforce": "baseline"}
        self.kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.kube.namespace, "labels": label}})
        demo = Kube(DEMO)
        for name in ("evals-s3", "provider"):
            secret = demo.get("secret", name)
            self.kube.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": secret["data"]})
        wrong = {"AWS_ACCESS_KEY_ID": "demo", "AWS_SECRET_ACCESS_KEY": "wrong"}
        self.kube.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "wrong-s3"}, "stringData": wrong})

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
        endpoint: str = f"http://seaweedfs.{DEMO}.svc.cluster.local:8333",
        provider: str = f"http://provider.{DEMO}.svc.cluster.local:8080",
        attempts: int = 0,
        hosts: dict[str, str] | None = None,
    ) -> None:
        suite = write_suite(self.folder / name, name, commands, image, list(artifacts), test, hosts)
        self.s3.realcli("benchmark", "publish", str(suite), f"s3://evals/{self.kube.namespace}/benchmarks")
        model_endpoint = {
            "url": provider,
            "apiKey": {"secretRef": {"name": "provider", "key": "api-key"}},
            "insecureHttp": "InCluster",
        }
        spec = {
            "benchmark": {"source": f"s3://evals/{self.kube.namespace}/benchmarks/{name}/1.0.0"},
            "agents": [{"name": "claude-code", "version": "2.1.140"}],
            "models": [{"name": "sonnet", "model": "claude-sonnet-4-5", "endpoints": {"anthropic": model_endpoint}}],
            "modes": ["EXEC"],
            "repeats": 1,
            "limits": limits or {},
            "retry": {"infrastructure": attempts, "backoff": "1s"},
            "storage": {
                "bucket": "evals",
                "prefix": self.kube.namespace,
                "endpoint": endpoint,
                "credentials": {"secretRef": {"name": secret}},
            },
        }
        self.kube.apply(
            {"apiVersion": "realcli.dev/v1alpha1", "kind": "BenchmarkSweep", "metadata": {"name": name}, "spec": spec}
        )

    def start_suite(self, name: str, suite: Path, **spec: Any) -> None:
        """A sweep over a suite's folder with the demo's provider on all three wire APIs; `spec` replaces parts of it."""
        published = tomllib.loads((suite / "benchmark.toml").read_text())
        self.s3.realcli("benchmark", "publish", str(suite), f"s3://evals/{self.kube.namespace}/benchmarks")
        address = f"http://provider.{DEMO}.svc.cluster.local:8080"
        endpoint = {"apiKey": {"secretRef": {"name": "provider", "key": "api-key"}}, "insecureHttp": "InCluster"}
        model = {
            "name": "scripted",
            "model": "scripted-1",
            "endpoints": {
                "anthropic": endpoint | {"url": address},
                "responses": endpoint | {"url": f"{address}/v1"},
                "chat": endpoint | {"url": f"{address}/v1"},
            },
            "prices": {
                "inputPerMillion": "3",
                "cacheReadPerMillion": "0.3",
                "cacheWritePerMillion": "3",
                "outputPerMillion": "15",
            },
        }
        whole = {
            "benchmark": {"source": f"s3://evals/{self.kube.namespace}/benchmarks/{published['name']}/{published['version']}"},
            "models": [model],
            "repeats": 1,
            "limits": {"turns": 60, "exec": {"deadline": "10m"}, "collab": {"deadline": "10m"}},
            "parallelism": 3,
            "storage": {
                "bucket": "evals",
                "prefix": self.kube.namespace,
                "endpoint": f"http://seaweedfs.{DEMO}.svc.cluster.local:8333",
                "credentials": {"secretRef": {"name": "evals-s3"}},
            },
        }
        metadata = {"name": name}
        self.kube.apply(
            {"apiVersion": "realcli.dev/v1alpha1", "kind": "BenchmarkSweep", "metadata": metadata, "spec": whole | spec}
        )

    def trial(self, name: str) -> dict[str, Any]:
        """The one Trial of a sweep that has ended."""
        self.kube.sweep_ended(name, 420)
        (trial,) = self.kube.list("trials", f"realcli.dev/sweep={name}")
        return trial

    forward = forwarded

    def names(self, trial: dict[str, Any]) -> list[str]:
        return Bucket.of(self.s3, trial).names()

    def text(self, trial: dict[str, Any], value: Any) -> str:
        """A text of the ledger, wherever it lies."""
        return Bucket.of(self.s3, trial).read(f"blobs/{value['blob']}").decode() if isinstance(value, dict) else str(value)

    def state_file(self, trial: dict[str, Any], name: str) -> bytes:
        """A file of the sealed state."""
        raw = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(Bucket.of(self.s3, trial).read("state.tar.zst"))).read()
        with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
            found = tar.extractfile(name)
            assert found is not None
            return found.read()

    def lock(self, trial: dict[str, Any]) -> bytes:
        """sweep.json of a trial's sweep."""
        attempt = Bucket.of(self.s3, trial)
        return attempt._replace(root=attempt.root.partition("/trials/")[0]).read("sweep.json")

    def kill(self, pod: str, container: str) -> None:
        """SIGKILL to the first process of a container, from the node: nothing inside the pod could send it."""
        statuses = self.kube.get("pod", pod)["status"]["containerStatuses"]
        (identity,) = [item["containerID"].removeprefix("containerd://") for item in statuses if item["name"] == container]
        shell('docker exec realcli-control-plane ctr -n k8s.io task kill -s SIGKILL "$1"', identity)

    def events(self, trial: dict[str, Any]) -> list[dict[str, Any]]:
        """The ledger of a trial, verified against its anchor first."""
        uri = trial["status"]["ledgerURI"]
        self.s3.realcli("ledger", "verify", uri, "--anchor", trial["status"]["workSealDigest"])
        return read_events(self.s3, uri)


def read_events(s3: S3, uri: str) -> list[dict[str, Any]]:
    """Raw events of the attempt at an address."""
    bucket = Bucket.at(s3, uri)
    names = [name for name in bucket.names() if name.startswith("ledger/")]
    return [json.loads(line) for name in names for line in bucket.read(name).splitlines()]
