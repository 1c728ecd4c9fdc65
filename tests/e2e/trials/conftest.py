"""The kind cluster with operator, storage and provider as `make demo` sets them up, and every sweep of the collected tests.

A module that runs sweeps has a function `start(cluster)`: it applies them and returns what its tests read, as the fixture
`started`. All of them, and the demo's, are applied before the first test (fixture `begun`) and each test waits for its own: side
by side they mostly wait, and that is what keeps this suite short.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.kind_cluster import DEMO, ROOT, S3, Kube, forwarded, shell
from tests.support.kind_runs import Runs, begin_demo, hurry_demo

REPORT = ROOT / "out" / "report"


class Cluster(NamedTuple):
    """What `start` of a module is given."""

    demo: Kube
    s3: S3
    runs: Runs  # the namespace of all sweeps but the demo's
    images: dict[str, Any]
    folder: Callable[[str], Path]  # a fresh folder


class Demo(NamedTuple):
    """The demo's sweep once it has ended, and its report."""

    kube: Kube
    sweep: dict[str, Any]
    report: Path
    said: str


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What holds something back until its test is there comes first: held pods keep their processors from the others."""
    last = ["test_runs", "test_agents", "test_control", "test_demo", "test_judged"]
    items.sort(key=lambda item: last.index(item.path.stem) if item.path.stem in last else -1)


@pytest.fixture(scope="session")
def demo_kube() -> Kube:
    shell("hack/demo/demo storage operator benchmark provider")
    return Kube(DEMO)


@pytest.fixture(scope="session")
def s3(demo_kube: Kube) -> Iterator[S3]:
    secret = demo_kube.get("secret", "evals-s3")["data"]
    keys = {key: base64.b64decode(value).decode() for key, value in secret.items()}
    with forwarded(demo_kube, "service/seaweedfs", 8333) as address, pytest.MonkeyPatch.context() as patch:
        for name, value in keys.items():
            patch.setenv(name, value)
        yield S3.open(address, {**demo_kube.env, **keys})


@pytest.fixture(scope="session")
def demo_images() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "out/images.json").read_text())
    return found


@pytest.fixture(scope="session")
def cluster(demo_kube: Kube, s3: S3, demo_images: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    runs = Runs(s3, tmp_path_factory.mktemp("suites"))
    yield Cluster(demo_kube, s3, runs, demo_images, tmp_path_factory.mktemp)
    runs.kube.run("delete", "namespace", runs.kube.namespace, "--wait=false")


@pytest.fixture(scope="session")
def begun(request: pytest.FixtureRequest, cluster: Cluster) -> dict[str, Any]:
    """Module -> what its `start` returned; "demo": whether its sweep is there."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    modules = dict.fromkeys(item.module for item in items if hasattr(item.module, "start"))
    states = {module.__name__: module.start(cluster) for module in modules}
    states["demo"] = any("demo" in item.fixturenames for item in items)
    if states["demo"]:
        begin_demo(cluster.demo)
    return states


@pytest.fixture(scope="session")
def hurried(begun: dict[str, Any], cluster: Cluster) -> None:
    """From here on the demo may have the room: for whoever is left with little to wait for."""
    if begun["demo"]:
        hurry_demo(cluster.demo)


@pytest.fixture(scope="module")
def started(request: pytest.FixtureRequest, begun: dict[str, Any]) -> Any:
    return begun[request.module.__name__]


@pytest.fixture(scope="session")
def demo(hurried: None, cluster: Cluster) -> Demo:
    """The demo's own steps after `kubectl apply`."""
    said = shell("hack/demo/demo watch report ledgers")
    return Demo(cluster.demo, cluster.demo.get("sweep", "first"), REPORT, said)


@pytest.fixture(scope="session")
def forward() -> type[forwarded]:
    return forwarded
