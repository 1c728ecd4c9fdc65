"""The kind cluster that hack/ made, as tests of trials use it: kubectl, port-forwards, and what lies in its storage."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from realcli.storage import StorageConfig
from realcli.storage.opening import open_store
from realcli.storage.port import ObjectStore

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("REALCLI_CACHE", str(Path.home() / ".cache" / "realcli")))
DEMO = "realcli-demo"
BUCKET = "evals"
LIMIT = 900.0
"""Seconds until something that has to happen counts as lost; all sweeps run side by side, so the first wait is the longest."""
PATIENCE = 300.0
"""Seconds for which an API server that does not answer, as on a node that is restarted or starved, is asked again."""
UNREACHED = re.compile(
    r"Unable to connect to the server|TLS handshake timeout|connection refused|connection reset by peer|i/o timeout|: EOF"
    r"|Client\.Timeout exceeded|context deadline exceeded|request timed out|server is currently unable to handle the request"
    r"|error validating data: unknown|http2: |the server was unable to return a response in the time allotted"
    r'|is forbidden: User "kubernetes-admin"'  # who may do everything, once the server has read its rules
)
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
        """What a command prints. One that did not reach the API server, which is slow on a busy machine, is given again."""
        command = [KUBECTL, "-n", self.namespace, *args]
        deadline = time.monotonic() + PATIENCE
        while True:
            done = subprocess.run(command, capture_output=True, text=True, input=stdin, env=self.env, check=False)
            if done.returncode == 0 or time.monotonic() > deadline or UNREACHED.search(done.stderr) is None:
                break
            time.sleep(2)
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

    def sweep_ended(self, name: str, seconds: float = LIMIT) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            sweep = self.get("sweep", name)
            return sweep if sweep.get("status", {}).get("state") in ("Complete", "Incomplete", "Failed") else None

        found: dict[str, Any] = self.until(f"sweep {name} to end", seconds, look)
        return found


class S3(NamedTuple):
    """The cluster's storage through a port-forward."""

    env: dict[str, str]
    store: ObjectStore  # of the bucket everything lies in

    @staticmethod
    def open(endpoint: str, env: dict[str, str]) -> S3:
        """The storage at an address; its keys are those of this process's environment."""
        return S3(env | {"AWS_ENDPOINT_URL": endpoint}, open_store(StorageConfig(bucket=BUCKET, endpoint=endpoint)))

    def realcli(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [str(ROOT / ".venv/bin/realcli"), *args]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=self.env, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"realcli {' '.join(args)}: {done.stdout}\n{done.stderr}")
        return done

    def below(self, uri: str) -> Folder:
        """What lies below an address of the storage."""
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        assert bucket == BUCKET, uri
        return Folder(self.store, key.rstrip("/"))

    def attempt(self, trial: dict[str, Any]) -> Folder:
        """What the current attempt of a trial left."""
        return self.below(trial["status"]["ledgerURI"].rstrip("/").removesuffix("/ledger"))


class Folder(NamedTuple):
    """Objects below one key."""

    store: ObjectStore
    root: str

    def names(self) -> list[str]:
        return sorted(item.key.removeprefix(f"{self.root}/") for item in self.store.list(f"{self.root}/"))

    def read(self, name: str) -> bytes:
        return self.store.get(f"{self.root}/{name}")

    def json(self, name: str) -> Any:
        return json.loads(self.read(name))

    def events(self) -> list[dict[str, Any]]:
        """Raw events of the attempt that lies here."""
        segments = [name for name in self.names() if name.startswith("ledger/")]
        return [json.loads(line) for name in segments for line in self.read(name).splitlines()]


def ask(url: str, body: bytes | None = None) -> Any:
    """JSON of an address; POST where there is a body."""
    with urllib.request.urlopen(url, body, timeout=10) as answer:
        return json.loads(answer.read())


class forwarded:
    """`kubectl port-forward` on a free port, ready when entered; one that breaks off is begun again on the same port."""

    def __init__(self, kube: Kube, target: str, port: int) -> None:
        self._command = [KUBECTL, "-n", kube.namespace, "port-forward", target]
        self._port = port
        self._env = kube.env
        self._left = threading.Event()

    def __enter__(self) -> str:
        deadline = time.monotonic() + PATIENCE
        while (begun := self._begin(""))[1] is None:
            begun[0].kill()
            if time.monotonic() > deadline:
                raise AssertionError(f"{' '.join(self._command)} does not begin")
            time.sleep(1)
        self._process, found = begun
        assert found is not None
        self._keeper = threading.Thread(target=self._keep, args=(found.rpartition(":")[2],), daemon=True)
        self._keeper.start()
        return f"http://{found}"

    def __exit__(self, *_: object) -> None:
        self._left.set()
        self._process.kill()
        self._keeper.join()

    def _begin(self, local: str) -> tuple[subprocess.Popen[str], str | None]:
        """The process, and the address it listens on."""
        command = [*self._command, f"{local}:{self._port}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self._env)
        assert process.stdout is not None
        match = re.match(r"Forwarding from (127\.0\.0\.1:\d+) ", process.stdout.readline())
        return process, None if match is None else match[1]

    def _keep(self, local: str) -> None:
        while True:
            assert self._process.stdout is not None
            with self._process.stdout as said:
                for _ in said:  # a line for each connection, which nobody else reads
                    pass
            self._process.wait()
            if self._left.wait(1.0):
                return
            self._process, _ = self._begin(local)
            if self._left.is_set():
                self._process.kill()
