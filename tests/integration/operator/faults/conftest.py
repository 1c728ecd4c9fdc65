"""Namespaces of a test's own, with everything a test of faults looks at."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

import pytest

from realcli_operator.kube.errors import NotFound
from tests.support.control_plane import Admin, ControlPlane, wait_for
from tests.support.end_audit import findings
from tests.support.fault_proxy import FaultProxy, Rule, proxied
from tests.support.life import Life, living
from tests.support.operator_process import Operator, sweep
from tests.support.stub_kubelet import GROUP, Script, StubKubelet

ENDED = ("Complete", "Incomplete", "Failed")


@dataclass
class Place:
    """One namespace: what a user does there, and what is asked of it."""

    namespace: str
    admin: Admin
    plane: ControlPlane
    kubelet: StubKubelet
    operators: Callable[..., Operator]

    def process(self) -> Operator:
        """The operator as a process for this namespace, kopf and all; not started."""
        return self.operators(self.namespace)

    @property
    def sweeps(self) -> str:
        return f"{GROUP}/{self.namespace}/benchmarksweeps"

    @property
    def core(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}"

    @property
    def trials(self) -> str:
        return f"{GROUP}/{self.namespace}/trials"

    async def apply(self, name: str, script: Script | None = None, **spec: Any) -> Any:
        if script is not None:
            self.kubelet.scripts[name] = script
        return await self.admin.send("POST", self.sweeps, sweep(name, **spec))

    async def sweep(self, name: str) -> Any:
        return await self.admin.send("GET", f"{self.sweeps}/{name}")

    async def trial(self, name: str) -> Any:
        return (await self.admin.send("GET", f"{self.trials}/{name}")).get("status", {})

    async def statuses(self) -> list[Any]:
        return [trial.get("status", {}) for trial in (await self.admin.send("GET", self.trials))["items"]]

    async def pods(self) -> dict[str, Any]:
        return {pod["metadata"]["name"]: pod for pod in (await self.admin.send("GET", f"{self.core}/pods"))["items"]}

    async def tidy(self) -> bool:
        """No pod of a trial is left."""
        return not any("realcli.dev/trial" in pod["metadata"].get("labels", {}) for pod in (await self.pods()).values())

    async def over(self, name: str, *states: str) -> bool:
        """The sweep has ended and its trials' pods are gone."""
        return (await self.sweep(name)).get("status", {}).get("state") in (states or ENDED) and await self.tidy()

    async def until_over(self, name: str, *states: str) -> Any:
        await wait_for(lambda: self.over(name), f"sweep {name} in {self.namespace} has ended")
        found = (await self.sweep(name))["status"]
        assert found["state"] in (states or ("Complete",)), found
        return found

    def ran(self, pod: str) -> bool:
        return any((self.namespace, pod) == (place, name) for place, name, _ in self.kubelet.ran)

    async def findings(self, **options: Any) -> list[str]:
        """See `tests.support.end_audit.findings`."""
        return await findings(self.admin, self.plane, self.kubelet, self.namespace, **options)

    def living(self, **options: Any) -> AbstractAsyncContextManager[Life]:
        """An operator of this namespace, in this process."""
        return living(self.plane, self.namespace, **options)

    def proxied(self, *rules: Rule) -> AbstractAsyncContextManager[FaultProxy]:
        """A proxy in front of the API server."""
        return proxied(self.plane.url, *rules)


NewPlace = Callable[[str], Awaitable[Place]]


@contextlib.asynccontextmanager
async def places(
    kubelet: StubKubelet, control_plane: ControlPlane, admin: Admin, new_operator: Callable[..., Operator]
) -> AsyncIterator[NewPlace]:
    """`await place(name)` makes a namespace; those that are left are deleted with the block."""
    made: list[Place] = []

    async def make(name: str) -> Place:
        await admin.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        kubelet.namespaces.add(name)
        made.append(Place(name, admin, control_plane, kubelet, new_operator))
        return made[-1]

    yield make
    for here in made:
        with contextlib.suppress(NotFound):
            await admin.send("DELETE", f"/api/v1/namespaces/{here.namespace}")


@pytest.fixture
async def place(
    kubelet: StubKubelet, control_plane: ControlPlane, admin: Admin, new_operator: Callable[..., Operator]
) -> AsyncIterator[NewPlace]:
    """See `places`."""
    async with places(kubelet, control_plane, admin, new_operator) as make:
        yield make
