"""The cluster of the benchmark as plain processes: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok.

Every client has a user of its own, so that the audit log says who asked for what. All are in `system:masters`: the API server's
own fairness limits hold nobody back, only its CPU does. etcd does not sync to its disk, whose speed is not the question here.
"""

from __future__ import annotations

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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
USERS = ("admin", "operator", "controller-manager", "scheduler", "kwok", "stand-in", "jobs")
NODES = 20
NAMESPACE = "bench"
QPS, BURST = 1000, 2000
JOB_SYNCS, GC_SYNCS = 50, 50
READY_WITHIN = 120.0


def binary(name: str) -> str:
    """Where a server's binary is: of `hack/cluster/build-binaries`."""
    cache = Path(os.environ.get("REALCLI_CACHE", Path.home() / ".cache" / "realcli"))
    folders = [Path(os.environ["REALCLI_BIN"])] if "REALCLI_BIN" in os.environ else []
    for folder in (*folders, cache / "bin", cache / "node"):
        if os.access(folder / name, os.X_OK):
            return str(folder / name)
    raise SystemExit(f"{name} is neither in REALCLI_BIN nor in {cache}/bin or {cache}/node: make bench-operator builds it")


def free_ports(count: int) -> list[int]:
    """Different ports of 127.0.0.1 that nobody listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in sockets]
    for server in sockets:
        server.close()
    return ports


@dataclass
class Server:
    """One process with its log."""

    name: str
    command: list[str]
    log: Path
    environment: dict[str, str] = field(default_factory=dict)
    popen: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Of the running process."""
        if self.popen is None:
            raise RuntimeError(f"{self.name} was not started")
        return self.popen.pid

    def start(self) -> None:
        """Start it; its output goes to ``log``. A session of its own is a share of the CPU of its own where the kernel groups by
        session, as a container's is: without one a program of one thread starves beside one of twenty."""
        with self.log.open("ab") as log:
            self.popen = subprocess.Popen(
                self.command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
                env=os.environ | self.environment,
            )  # fmt: skip

    def check(self) -> None:
        """RuntimeError if it has ended."""
        if self.popen is not None and self.popen.poll() is not None:
            raise RuntimeError(f"{self.name} ended with {self.popen.returncode}:\n{self.log.read_text(errors='replace')[-3000:]}")

    def end(self, how: signal.Signals = signal.SIGTERM, patience: float = 40.0) -> None:
        """End it and wait until it is gone."""
        if self.popen is None:
            return
        if self.popen.poll() is None:
            self.popen.send_signal(how)
            try:
                self.popen.wait(patience)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait()
        self.popen = None


class Servers:
    """The cluster; everything it writes lies in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tokens = {user: secrets.token_hex(16) for user in USERS}
        self.port, client, peers, self.kubelet_port = free_ports(4)
        self.url = f"https://127.0.0.1:{self.port}"
        etcd, peer = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peers}"
        key = folder / "sa.key"
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
        tokens = (f'{token},{user},{user},"system:masters"\n' for user, token in self.tokens.items())
        (folder / "tokens.csv").write_text("".join(tokens))
        (folder / "audit.yaml").write_text(yaml.safe_dump(audit_policy()))
        stages = (Path(__file__).parent / "stages.yaml").read_text()
        (folder / "stages.yaml").write_text(stages.replace("KUBELET_PORT", str(self.kubelet_port)))
        (folder / "scheduler.yaml").write_text(yaml.safe_dump(self._scheduler_configuration()))
        self.etcd = self._server("etcd", [
            f"--data-dir={folder}/etcd", "--unsafe-no-fsync", "--log-level=error", "--quota-backend-bytes=8589934592",
            f"--listen-client-urls={etcd}", f"--advertise-client-urls={etcd}", f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}",
        ])  # fmt: skip
        self.api = self._server("kube-apiserver", [
            f"--etcd-servers={etcd}", "--bind-address=127.0.0.1", f"--secure-port={self.port}", f"--cert-dir={folder}/certs",
            f"--token-auth-file={folder}/tokens.csv", "--authorization-mode=AlwaysAllow", "--allow-privileged=true",
            "--service-cluster-ip-range=10.0.0.0/24", "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
            "--disable-admission-plugins=ServiceAccount", "--kubelet-preferred-address-types=InternalIP",
            f"--audit-policy-file={folder}/audit.yaml", f"--audit-log-path={folder}/audit.log",
            "--audit-log-mode=blocking", "--v=1",
        ])  # fmt: skip
        self.controllers = self._server("kube-controller-manager", [
            f"--kubeconfig={self.kubeconfig('controller-manager')}", "--leader-elect=false", "--secure-port=0",
            f"--service-account-private-key-file={key}", "--use-service-account-credentials=false", f"--kube-api-qps={QPS}",
            f"--kube-api-burst={BURST}", f"--concurrent-job-syncs={JOB_SYNCS}", f"--concurrent-gc-syncs={GC_SYNCS}", "--v=1",
        ])  # fmt: skip
        self.scheduler = self._server("kube-scheduler", [f"--config={folder}/scheduler.yaml", "--secure-port=0", "--v=1"])
        self.kwok = self._server("kwok", [
            f"--kubeconfig={self.kubeconfig('kwok')}", f"--config={folder}/stages.yaml",
            "--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            "--node-ip=127.0.0.1", "--node-lease-duration-seconds=40", "-v=ERROR",
        ])  # fmt: skip
        self.all = (self.etcd, self.api, self.controllers, self.scheduler, self.kwok)

    def start(self) -> None:
        """Start everything but the workload; returns when the nodes are Ready."""
        self.etcd.start()
        self.api.start()
        self._until(self._ready, "the API server is ready")
        self._prepare()
        for server in (self.controllers, self.scheduler, self.kwok):
            server.start()
        self._until(self._nodes_ready, f"{NODES} nodes are Ready")

    def stop(self) -> None:
        """End everything; nothing here outlives its folder."""
        for server in reversed(self.all):
            server.end(signal.SIGKILL)

    def check(self) -> None:
        """RuntimeError if a server has ended."""
        for server in self.all:
            server.check()

    def kubeconfig(self, user: str) -> Path:
        """A kubeconfig file of ``user``."""
        path = self.folder / f"kubeconfig-{user}"
        document = {
            "apiVersion": "v1", "kind": "Config", "current-context": "bench",
            "clusters": [{"name": "bench", "cluster": {"server": self.url, "insecure-skip-tls-verify": True}}],
            "users": [{"name": user, "user": {"token": self.tokens[user]}}],
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": user}}],
        }  # fmt: skip
        path.write_text(yaml.safe_dump(document))
        return path

    def ask(self, method: str, path: str, body: Any = None, *, user: str = "admin", patch: str | None = None) -> Any:
        """One request; HTTPError."""
        headers = {"Authorization": f"Bearer {self.tokens[user]}", "Content-Type": patch or "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data=data, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=60, context=_no_verify()) as answer:
            raw = answer.read()
        return json.loads(raw) if raw.startswith(b"{") else raw

    def listed(self, path: str) -> list[Any]:
        """All objects of a collection."""
        found: list[Any] = []
        token = ""
        while True:
            page = self.ask("GET", f"{path}?limit=500" + (f"&continue={token}" if token else ""))
            found += page["items"]
            token = page["metadata"].get("continue", "")
            if not token:
                return found

    def _server(self, name: str, options: list[str]) -> Server:
        return Server(name, [binary(name), *options], self.folder / f"{name}.log")

    def _scheduler_configuration(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(self.kubeconfig("scheduler")), "qps": QPS, "burst": BURST},
        }

    def _ready(self) -> bool:
        return bool(self.ask("GET", "/readyz") == b"ok")

    def _nodes_ready(self) -> bool:
        nodes = self.ask("GET", "/api/v1/nodes")["items"]
        return sum(_has(node, "Ready") for node in nodes) >= NODES

    def _prepare(self) -> None:
        self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        crds = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "crds").glob("*.yaml"))]
        where = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        for crd in crds:
            self.ask("POST", where, crd)

        def established() -> bool:
            found = self.ask("GET", where)["items"]
            return len(found) == len(crds) and all(_has(crd, "Established") for crd in found)

        self._until(established, "the CRDs are established")
        for index in range(NODES):
            labels = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
            metadata = {"name": f"node-{index:02d}", "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
            self.ask("POST", "/api/v1/nodes", {"metadata": metadata})

    def _until(self, condition: Any, what: str) -> None:
        deadline = time.monotonic() + READY_WITHIN
        last = ""
        while True:
            try:
                if condition():
                    return
            except (urllib.error.URLError, OSError) as error:
                last = str(error)
            self.check()
            if time.monotonic() > deadline:
                raise RuntimeError(f"not within {READY_WITHIN:.0f} s: {what} {last}")
            time.sleep(0.2)


def audit_policy() -> dict[str, Any]:
    """Metadata of every request but leases, and what only a server's own informers read."""
    quiet = ["controller-manager", "scheduler", "kwok", "stand-in", "jobs", "admin", "system:apiserver"]
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "None", "resources": [{"group": "coordination.k8s.io"}]},
            {"level": "None", "users": quiet, "verbs": ["get", "list", "watch"]},
            {"level": "None", "nonResourceURLs": ["*"]},
            {"level": "Metadata"},
        ],
    }


def _has(thing: Any, condition: str) -> bool:
    conditions = thing.get("status", {}).get("conditions") or ()  # null while nothing has been written
    return any(c["type"] == condition and c["status"] == "True" for c in conditions)


def _no_verify() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
