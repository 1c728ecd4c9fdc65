"""The kind cluster that hack/ made, the images loaded into it, and a namespace of its own for each test."""

from __future__ import annotations

import json
import os
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("REALCLI_CACHE", str(Path.home() / ".cache" / "realcli")))
CONTEXT = "kind-realcli"  # no other cluster is ever touched


class Kubectl(NamedTuple):
    """kubectl against the kind cluster, in one namespace."""

    namespace: str

    def run(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        command = [str(CACHE / "bin/kubectl"), "--kubeconfig", str(CACHE / "kubeconfig"), "--context", CONTEXT]
        done = subprocess.run([*command, "-n", self.namespace, *arguments], input=stdin, capture_output=True, text=True)
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def apply(self, *objects: dict[str, Any]) -> None:
        self.run("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def get(self, *arguments: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run("get", *arguments, "-o", "json"))
        return found

    def until(self, what: str, holds: Callable[[dict[str, Any]], bool], *arguments: str, seconds: float = 60) -> dict[str, Any]:
        """The object once `holds` is true of it; asks again until then."""
        limit = time.monotonic() + seconds
        while True:
            found = self.get(*arguments)
            if holds(found):
                return found
            assert time.monotonic() < limit, f"not {what} after {seconds} s: {json.dumps(found.get('status'))}"
            time.sleep(0.3)

    def ended(self, pod: str, seconds: float = 60) -> str:
        """The phase a pod ends in."""
        done = self.until("ended", lambda p: p["status"].get("phase") in ("Succeeded", "Failed"), "pod", pod, seconds=seconds)
        return str(done["status"]["phase"])


@pytest.fixture(scope="session")
def cache() -> Path:
    """Where hack/ keeps the binaries."""
    return CACHE


@pytest.fixture(scope="session")
def images() -> dict[str, Any]:
    """Name -> tag of every image in the node."""
    listed = ROOT / "out/images.json"
    if not listed.exists():
        raise FileNotFoundError(f"{listed} is missing: run `make images`")
    found: dict[str, Any] = json.loads(listed.read_text())
    return found


@pytest.fixture
def kubectl() -> Iterator[Kubectl]:
    """A namespace of the test's own, as trials have it: pod security baseline."""
    here = Kubectl(f"t-{uuid.uuid4().hex[:8]}")
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    here.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": here.namespace, "labels": labels}})
    _await_account(here)  # pods are refused before the namespace has one
    yield here
    here.run("delete", "namespace", here.namespace, "--wait=false")


def _await_account(here: Kubectl) -> None:
    limit = time.monotonic() + 30
    while here.run("get", "serviceaccount", "default", "--ignore-not-found", "-o", "name") == "":
        assert time.monotonic() < limit, "the namespace got no service account"
        time.sleep(0.2)
