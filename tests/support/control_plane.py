"""A real etcd + kube-apiserver (and, when asked for, kube-controller-manager) as plain processes on free loopback ports.

Binaries: ``REALCLI_BIN``, else ``${REALCLI_CACHE:-~/.cache/realcli}/bin``. Everything a server writes lies in a
temporary directory; processes are ended by pid.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.aio import client as kube_client

from realcli_operator.kube.transport import ClientSettings, Transport

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = float(os.environ.get("REALCLI_PATIENCE", "1"))
"""Ways out of waiting are this many times as long: on a machine that has other things to do."""
READY_TIMEOUT = 120.0 * PATIENCE
NAMESPACES = ("one", "two")
AUDIT_POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create]
  resources: [{group: "", resources: [pods]}, {group: batch, resources: [jobs]}, {group: realcli.dev, resources: [trials]}]
- level: None
"""


def binary(name: str) -> Path:
    """Where a control plane binary is; skips the test with instructions if it is nowhere."""
    cache = Path(os.environ.get("REALCLI_CACHE", Path.home() / ".cache" / "realcli"))
    folder = Path(os.environ["REALCLI_BIN"]) if "REALCLI_BIN" in os.environ else cache / "bin"
    path = folder / name
    if not os.access(path, os.X_OK):
        pytest.skip(f"{path} is missing: build the control plane binaries or set REALCLI_BIN to their folder")
    return path


def free_ports(count: int) -> list[int]:
    """Different ports of 127.0.0.1 that nobody listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


@dataclass
class Process:
    """One server with its log file."""

    command: list[str]
    log: Path
    popen: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.popen = subprocess.Popen(self.command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.popen is None:
            return
        if self.popen.poll() is None:
            self.popen.send_signal(how)
            try:
                self.popen.wait(20)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait()
        self.popen = None

    def check(self) -> None:
        assert self.popen is not None
        if self.popen.poll() is not None:
            raise RuntimeError(f"{self.command[0]} ended with {self.popen.returncode}:\n{self.log.read_text()[-4000:]}")


@dataclass
class ControlPlane:
    """A running API server. ``url`` and ``token`` are what a client needs; its certificate is self-signed."""

    folder: Path
    token: str = field(default_factory=lambda: secrets.token_hex(16))

    def __post_init__(self) -> None:
        etcd_client, etcd_peer, self.port = free_ports(3)
        self.url = f"https://127.0.0.1:{self.port}"
        etcd_url, peer_url = f"http://127.0.0.1:{etcd_client}", f"http://127.0.0.1:{etcd_peer}"
        key = self.folder / "sa.key"
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
        policy = self.folder / "audit.yaml"
        policy.write_text(AUDIT_POLICY)
        tokens = self.folder / "tokens.csv"
        tokens.write_text(f'{self.token},admin,admin,"system:masters"\n')
        self.etcd = Process(
            [
                str(binary("etcd")), f"--data-dir={self.folder}/etcd", "--unsafe-no-fsync", "--log-level=error",
                f"--listen-client-urls={etcd_url}", f"--advertise-client-urls={etcd_url}",
                f"--listen-peer-urls={peer_url}", f"--initial-advertise-peer-urls={peer_url}",
                f"--initial-cluster=default={peer_url}",
            ],
            self.folder / "etcd.log",
        )  # fmt: skip
        self.api = Process(
            [
                str(binary("kube-apiserver")), f"--etcd-servers={etcd_url}", "--bind-address=127.0.0.1",
                f"--secure-port={self.port}", f"--cert-dir={self.folder}/certs", f"--token-auth-file={tokens}",
                "--authorization-mode=AlwaysAllow", "--service-cluster-ip-range=10.0.0.0/24",
                "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={key}",
                f"--service-account-signing-key-file={key}", "--disable-admission-plugins=ServiceAccount",
                "--allow-privileged=true", "--v=1",
                f"--audit-policy-file={policy}", f"--audit-log-path={self.folder}/audit.log",
            ],
            self.folder / "kube-apiserver.log",
        )  # fmt: skip
        kubeconfig = self.folder / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(self.kubeconfig()))
        self.controllers = Process(
            [
                str(binary("kube-controller-manager")), f"--kubeconfig={kubeconfig}", "--leader-elect=false",
                "--secure-port=0", "--controllers=job-controller,garbage-collector-controller,namespace-controller",
                f"--service-account-private-key-file={key}", "--use-service-account-credentials=false", "--v=1",
            ],
            self.folder / "kube-controller-manager.log",
        )  # fmt: skip

    def kubeconfig(self) -> dict[str, Any]:
        """A kubeconfig document with the admin token."""
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": self.url, "insecure-skip-tls-verify": True}}],
            "users": [{"name": "admin", "user": {"token": self.token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        }

    def start(self) -> None:
        self.etcd.start()
        self.start_api()

    def start_api(self) -> None:
        self.api.start()
        deadline = time.monotonic() + READY_TIMEOUT
        while not self.ready():
            self.etcd.check()
            self.api.check()
            if time.monotonic() > deadline:
                raise RuntimeError(f"not ready after {READY_TIMEOUT} s:\n{self.api.log.read_text()[-4000:]}")
            time.sleep(0.1)

    def created(self, namespace: str, resource: str = "pods") -> Counter[str]:
        """How often an object of that name was created in the namespace, by the API server's own audit log."""
        found: Counter[str] = Counter()
        for line in (self.folder / "audit.log").read_text().splitlines():
            event = json.loads(line)
            about = event["objectRef"]
            if "dryRun=" in event["requestURI"]:
                continue
            if (about.get("namespace"), about["resource"]) == (namespace, resource) and event["responseStatus"]["code"] == 201:
                found[about.get("name", "")] += 1
        return found

    def ready(self) -> bool:
        # Anonymous requests are off under AlwaysAllow: /readyz needs the token.
        request = urllib.request.Request(f"{self.url}/readyz", headers={"Authorization": f"Bearer {self.token}"})
        try:
            with urllib.request.urlopen(request, timeout=5, context=_no_verify()) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def stop(self) -> None:
        for process in (self.controllers, self.api, self.etcd):
            process.end(signal.SIGKILL)  # nothing here outlives the temporary directory

    def configuration(self, url: str | None = None) -> kube_client.Configuration:
        """Credentials for a client of this server, or of a proxy in front of it."""
        configuration = kube_client.Configuration(host=url or self.url)
        configuration.verify_ssl = False
        configuration.api_key = {"BearerToken": f"Bearer {self.token}"}
        return configuration


def _no_verify() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def crds() -> list[dict[str, Any]]:
    """The project's CRDs, or stand-ins with the same names while they are not generated."""
    files = sorted((ROOT / "crds").glob("*.yaml"))
    found = [document for file in files for document in yaml.safe_load_all(file.read_text()) if document]
    if {crd["spec"]["names"]["kind"] for crd in found} >= {"BenchmarkSweep", "Trial"}:
        return found
    return [_stand_in("BenchmarkSweep", "benchmarksweeps"), _stand_in("Trial", "trials")]


def _stand_in(kind: str, plural: str) -> dict[str, Any]:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    version = {
        "name": "v1alpha1", "served": True, "storage": True, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }  # fmt: skip
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.realcli.dev"},
        "spec": {
            "group": "realcli.dev", "scope": "Namespaced", "versions": [version],
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
        },
    }  # fmt: skip


class Admin:
    """A second client for what users, kubelets and attackers do in a test; without a write limit, very patient."""

    def __init__(self, plane: ControlPlane) -> None:
        settings = ClientSettings(writes_per_second=1e6, write_burst=1000, tries=30, retry_cap=2.0)
        self.transport = Transport(plane.configuration(), settings)
        self._slots = asyncio.Semaphore(16)

    async def send(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        async with self._slots:
            raw = await self.transport.request(method, path, resource="test", body=body, content_type=content_type)
        return json.loads(raw)

    async def merge(self, path: str, body: Any) -> Any:
        return await self.send("PATCH", path, body, "application/merge-patch+json")

    async def each(self, *calls: Any) -> list[Any]:
        """All at once, at most 16 in flight; the first error is raised after all have ended."""
        results = await asyncio.gather(*calls, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return list(results)


async def prepare(plane: ControlPlane) -> None:
    """Namespaces and CRDs."""
    admin = Admin(plane)
    try:
        for namespace in NAMESPACES:
            await admin.send("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        for crd in crds():
            await admin.send("POST", path, crd)
        for crd in crds():
            name = crd["metadata"]["name"]

            async def established(name: str = name) -> bool:
                found = await admin.send("GET", f"{path}/{name}")
                conditions = found.get("status", {}).get("conditions", [])
                return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

            await wait_for(established, f"CRD {name} established")
    finally:
        await admin.transport.close()


async def wait_for(condition: Callable[[], Any], what: str, timeout: float = 120.0) -> Any:  # noqa: ASYNC109
    """Wait until ``condition`` (plain or async) is true; its value. The timeout is a way out, not a claim."""
    deadline = time.monotonic() + timeout * PATIENCE
    while True:
        value = condition()
        if asyncio.iscoroutine(value):
            value = await value
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout * PATIENCE:.0f} s: {what}")
        await asyncio.sleep(0.05)
