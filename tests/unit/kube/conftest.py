from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog

from realcli_operator.kube.names import LABEL_MANAGED_BY, LABEL_SWEEP, LABEL_TRIAL, MANAGER


@pytest.fixture(autouse=True, scope="session")
def _plain_log() -> None:
    """Without this structlog renders the local variables of every frame of a logged traceback."""
    structlog.configure(processors=[structlog.processors.format_exc_info, structlog.processors.KeyValueRenderer()])


class ManualClock:
    """Time stands still until `advance`; sleepers wake in order."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.seconds + seconds, next(self._order), future))
        await future

    @property
    def sleeping(self) -> list[float]:
        """Seconds until each sleeper that still waits is due."""
        return sorted(due - self.seconds for due, _, future in self._sleepers if not future.done())

    def advance(self, seconds: float) -> None:
        self.seconds += seconds
        while self._sleepers and self._sleepers[0][0] <= self.seconds:
            future = heapq.heappop(self._sleepers)[2]
            if not future.done():
                future.set_result(None)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def until(condition: Callable[[], Any], what: str = "condition") -> None:
    """Let other tasks run until ``condition`` holds; fails after many turns of the loop instead of hanging."""
    for _ in range(5000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError(f"never happened: {what}")


@pytest.fixture(name="until")
def _until() -> Callable[..., Any]:
    return until


def pod_manifest(name: str, trial: str | None = "s-00000", namespace: str = "one", **metadata: Any) -> dict[str, Any]:
    labels = {LABEL_MANAGED_BY: MANAGER, LABEL_SWEEP: "s"} | ({LABEL_TRIAL: trial} if trial else {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels, **metadata},
        "spec": {"containers": [{"name": "agent", "image": "x"}]},
    }


def trial_manifest(name: str, namespace: str = "one", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "realcli.dev/v1alpha1",
        "kind": "Trial",
        "metadata": {"name": name, "namespace": namespace, "labels": {LABEL_SWEEP: "s"}, **metadata},
        "spec": {"sweep": "s", "ordinal": 0},
    }


@pytest.fixture(name="pod_manifest")
def _pod_manifest() -> Callable[..., dict[str, Any]]:
    return pod_manifest


@pytest.fixture(name="trial_manifest")
def _trial_manifest() -> Callable[..., dict[str, Any]]:
    return trial_manifest
