"""Long faults, drawn by a seed. Run by `make chaos` (hack/chaos/run), never by the other targets.

REALCLI_CHAOS_SEED: another seed, another run; the same one, the same faults in the same order.
REALCLI_CHAOS_MINUTES: how long what happens at random goes on.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.conftest import admin, control_plane, controllers
from tests.integration.operator.conftest import kubeconfig, kubelet, new_operator
from tests.integration.operator.faults.conftest import place

__all__ = ["admin", "control_plane", "controllers", "kubeconfig", "kubelet", "new_operator", "place"]

SEED = int(os.environ.get("REALCLI_CHAOS_SEED", "1"))
MINUTES = float(os.environ.get("REALCLI_CHAOS_MINUTES", "20"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.chaos)


@pytest.fixture(scope="session")
def minutes() -> float:
    return MINUTES


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """One for each test, so that a test alone draws what it draws among the others."""
    return random.Random(f"{SEED}/{request.node.name}")


@pytest.fixture
def tell(record_property: Callable[[str, Any], None]) -> Callable[..., None]:
    """`tell(kills=143)`: what happened, for the table of results."""

    def said(**facts: Any) -> None:
        for name, value in facts.items():
            record_property(name, str(value))

    return said
