"""A kubelet of one page and the operator as a process: `tests.support`, as fixtures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.operator_process import Operator, sweep
from tests.support.stub_kubelet import GROUP, Act, StubKubelet, happy, say


class Tools:
    """What the tests use of this file."""

    sweep = staticmethod(sweep)
    say = staticmethod(say)
    happy = staticmethod(happy)
    Act = Act
    group = GROUP


@pytest.fixture(scope="session")
def tools() -> Tools:
    return Tools()


@pytest.fixture(scope="module")
def kubeconfig(control_plane: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("operator") / "kubeconfig"
    path.write_text(yaml.safe_dump(control_plane.kubeconfig()))
    return path


@pytest.fixture(scope="module")
def kubelet(controllers: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StubKubelet]:
    """The stub kubelet; a test adds its namespaces and scripts."""
    stub = StubKubelet(controllers, tmp_path_factory.mktemp("kubelet"))
    stub.start()
    yield stub
    stub.stop()
    assert stub.errors == []


@pytest.fixture(scope="module")
def new_operator(kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Operator]]:
    """Makes operator processes and ends those that still run."""
    made: list[Operator] = []

    def make(*namespaces: str) -> Operator:
        log = tmp_path_factory.mktemp("operator-log") / f"{namespaces[0]}.log"
        made.append(Operator(kubeconfig, log, namespaces))
        return made[-1]

    yield make
    for operator in made:
        operator.end()
