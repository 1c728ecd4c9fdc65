"""The control plane of `tests.support.control_plane` as fixtures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import structlog

from tests.support.control_plane import Admin, ControlPlane, prepare, wait_for


@pytest.fixture(name="wait_for", scope="session")
def _wait_for() -> Callable[..., Any]:
    return wait_for


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """etcd and kube-apiserver with the CRDs and the namespaces ``one`` and ``two``; shared by all tests."""
    structlog.configure(processors=[structlog.processors.format_exc_info, structlog.processors.KeyValueRenderer()])
    plane = ControlPlane(tmp_path_factory.mktemp("control-plane"))
    try:
        plane.start()
        # In a thread of its own: the fixture may be asked for while an event loop runs.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(lambda: asyncio.run(prepare(plane))).result()
        yield plane
    finally:
        plane.stop()


@pytest.fixture(scope="session")
def controllers(control_plane: ControlPlane) -> ControlPlane:
    """The control plane with kube-controller-manager: Jobs make pods, owners take their children with them."""
    control_plane.controllers.start()
    control_plane.controllers.check()
    return control_plane


@pytest.fixture
async def admin(control_plane: ControlPlane) -> AsyncIterator[Admin]:
    """A patient client without a write limit."""
    made = Admin(control_plane)
    yield made
    await made.transport.close()
