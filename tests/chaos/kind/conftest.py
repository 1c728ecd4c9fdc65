"""The kind cluster as the end-to-end tests have it, with storage behind a door that can be shut."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.trials.conftest import cluster, demo_images, demo_kube, s3
from tests.support.kind_cluster import CACHE, ROOT, Kube
from tests.support.kind_runs import STORAGE, Runs, proxied

__all__ = ["cluster", "demo_images", "demo_kube", "s3"]

SYSTEM = Kube("realcli-system")


class Door:
    """A Deployment that passes everything on to the storage: open, gone (nobody listens) or broken (answers 500)."""

    name = "door"

    def __init__(self, runs: Runs, image: str) -> None:
        self.runs = runs
        self._image = image
        self._apply(STORAGE)

    @property
    def address(self) -> str:
        return self.runs.address(self.name, 8333)

    def gone(self) -> None:
        self.runs.kube.run("scale", f"deployment/{self.name}", "--replicas=0")
        self.runs.kube.run("wait", "pod", "-l", f"app={self.name}", "--for=delete", "--timeout=300s")

    def broken(self) -> None:
        self._apply("http://127.0.0.1:9")

    def open(self) -> None:
        self._apply(STORAGE)

    def _apply(self, upstream: str) -> None:
        objects = proxied(self.name, self._image, upstream, 8333, ["PUT", "^$"])
        objects[-1]["spec"] |= {"replicas": 1, "strategy": {"type": "Recreate"}}
        self.runs.kube.apply(*objects)
        self.runs.kube.run("rollout", "status", f"deployment/{self.name}", "--timeout=600s")


@pytest.fixture(scope="session")
def door(cluster: Any) -> Door:
    return Door(cluster.runs, cluster.images["provider"])


class OutsideOperator:
    """The operator as a process on this machine, in place of the one in the cluster, for one namespace."""

    def __init__(self, namespace: str, log: Path) -> None:
        images = json.loads((ROOT / "out/values.images.json").read_text())["images"]
        self._environment = os.environ | {
            "REALCLI_KUBECONFIG": str(CACHE / "kubeconfig"),
            "REALCLI_WATCH_NAMESPACES": namespace,
            "REALCLI_IMAGE_SESSION": images["session"],
            "REALCLI_IMAGE_JUDGE": images["judge"],
            "REALCLI_IMAGE_TOOLKIT": images["toolkit"],
            "REALCLI_AGENT_IMAGES": json.dumps(images["agents"]),
            "REALCLI_LIVENESS": "",
            "REALCLI_METRICS_PORT": "0",
        }
        self.log = log

    def live(self, over: Callable[[], bool], write: int | None = None) -> bool:
        """One life, ended when ``over`` holds (True) or by its own death after the ``write``-th write (False)."""
        fault = {} if write is None else {"REALCLI_ALLOW_FAULTS": "1", "REALCLI_FAULT_WRITE": str(write)}
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "realcli_operator"]
            process = subprocess.Popen(command, env=self._environment | fault, cwd=ROOT, stdout=log, stderr=log)
        try:
            while process.poll() is None:
                if over():
                    return True
                time.sleep(1)  # polling the API server; there is no event for "my test's condition"
            assert process.returncode == -9, self.log.read_text()[-4000:]
            return False
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def instead(cluster: Any, tmp_path: Path) -> Iterator[OutsideOperator]:
    """The cluster's own operator is stopped meanwhile."""
    SYSTEM.run("scale", "deployment/realcli", "--replicas=0")
    SYSTEM.run("wait", "pod", "-l", "app.kubernetes.io/name=realcli-operator", "--for=delete", "--timeout=300s", check=False)
    yield OutsideOperator(cluster.runs.kube.namespace, tmp_path / "operator.log")
    SYSTEM.run("scale", "deployment/realcli", "--replicas=1")
    SYSTEM.run("rollout", "status", "deployment/realcli", "--timeout=600s")
