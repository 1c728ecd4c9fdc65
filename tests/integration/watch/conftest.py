"""A toy operator on the real API server: it writes the phase of a trial's pod into the trial's status."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from realcli_operator.kube.api import KubeApi
from realcli_operator.kube.client import KubeClient
from realcli_operator.kube.lister import ResyncSettings
from realcli_operator.kube.metrics import Metrics
from realcli_operator.kube.names import LABEL_MANAGED_BY, LABEL_SWEEP, LABEL_TRIAL, MANAGER, Key, Kind
from realcli_operator.kube.queue import Backoff
from realcli_operator.kube.source import HttpSource
from realcli_operator.kube.transport import ClientSettings, Transport
from realcli_operator.kube.views import PodView, TrialView
from realcli_operator.layer import LayerSettings, WatchLayer
from realcli_operator.loop import Done

PHASES = {"Pending": "Pending", "Running": "Working", "Succeeded": "Sealed", "Failed": "Invalid"}


@dataclass(frozen=True)
class Seen:
    trial: TrialView
    pods: tuple[PodView, ...]


class ToyReconciler:
    """``status.message`` = name and message of the trial's pods; ``broken`` keys raise."""

    def __init__(self, layer: WatchLayer, api: KubeApi) -> None:
        self.layer = layer
        self.api = api
        self.broken: dict[str, BaseException] = {}
        self.observed: set[str] = set()

    async def observe(self, key: Key) -> Seen | None:
        self.observed.add(str(key))
        if key.name in self.broken:
            raise self.broken[key.name]
        trial = self.layer.store.trial(key.namespace, key.name)
        if trial is None:
            return None
        pods = self.layer.store.pods_of_trial(key.namespace, key.name)
        return Seen(trial, tuple(pod for pod in pods if pod.owner_uid == trial.uid))

    def decide(self, observed: Seen, now: datetime) -> dict[str, Any]:
        if not observed.pods:
            return {"phase": "Pending", "message": "no pod"}
        text = ", ".join(f"{pod.name} {pod.phase} {pod.message}" for pod in observed.pods)
        return {"phase": PHASES[observed.pods[-1].phase], "message": text}

    async def execute(self, key: Key, observed: Seen, plan: dict[str, Any]) -> Done:
        trial = observed.trial
        stored = {name: trial.status.get(name) for name in plan}
        if stored != plan:
            self.layer.store.put(await self.api.apply_trial_status(trial, plan))
        return Done()


class Nothing:
    """Sweeps are not reconciled here."""

    async def observe(self, key: Key) -> None:
        return None

    def decide(self, observed: None, now: datetime) -> None:
        return None

    async def execute(self, key: Key, observed: None, plan: None) -> Done:
        return Done()


@dataclass
class Operator:
    """The toy operator with everything a test looks at."""

    layer: WatchLayer
    toy: ToyReconciler
    api: KubeClient
    metrics: Metrics

    def count(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels) or 0.0

    def status(self, namespace: str, name: str) -> Any:
        trial = self.layer.store.trial(namespace, name)
        return trial.status if trial else None


@asynccontextmanager
async def running(
    plane: Any, url: str | None = None, *, start: bool = True, request_timeout: float = 30.0, **settings: Any
) -> AsyncIterator[Operator]:
    metrics = Metrics()
    client = ClientSettings(writes_per_second=2000, write_burst=100, request_timeout=request_timeout)
    transport = Transport(plane.configuration(url), client, metrics)
    defaults: dict[str, Any] = {
        "resync": ResyncSettings(first=3600, period=3600),  # what a test shows is not the resync's work
        "sweep_resync": ResyncSettings(first=3600, period=3600),
        "list_backoff": Backoff(base=0.1, cap=2.0),
        "key_backoff": Backoff(base=0.1, cap=2.0),
    }
    layer = WatchLayer(HttpSource(transport), LayerSettings(**(defaults | settings)), metrics=metrics)
    api = KubeClient(transport)
    toy = ToyReconciler(layer, api)
    operator = Operator(layer, toy, api, metrics)
    try:
        if start:
            await layer.start({Kind.TRIAL: toy, Kind.SWEEP: Nothing()})
        yield operator
    finally:
        await layer.stop()
        await transport.close()


@pytest.fixture(name="running")
def _running() -> Callable[..., Any]:
    return running


class Proxy:
    """A TCP proxy whose cable can be pulled."""

    def __init__(self, port: int) -> None:
        self._upstream = port
        self._writers: set[asyncio.StreamWriter] = set()
        self._stalled: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.up = True
        self.url = ""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        """Break all connections and refuse new ones."""
        self.up = False
        self.drop()

    def drop(self) -> None:
        """Break all connections, once."""
        for writer in self._writers:
            writer.transport.abort()

    def heal(self) -> None:
        self.up = True

    def stall(self) -> None:
        """What is connected now stays connected and says nothing any more, as behind a firewall that forgot it."""
        self._stalled |= self._writers

    async def stop(self) -> None:
        self.cut()
        if self._server is not None:
            self._server.close()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.up:
            writer.transport.abort()
            return
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self._upstream)
        except OSError:
            writer.transport.abort()
            return
        for ends in ((reader, upstream_writer), (upstream_reader, writer)):
            self._writers.add(ends[1])
            pump = asyncio.create_task(self._pump(*ends))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(2**16):
                if writer not in self._stalled:
                    writer.write(data)
                    await writer.drain()
        writer.transport.abort()
        self._writers.discard(writer)


@pytest.fixture
async def proxy(control_plane: Any) -> AsyncIterator[Proxy]:
    made = Proxy(control_plane.port)
    await made.start()
    yield made
    await made.stop()


class Population:
    """Trials with one owned pod each, spread over namespaces; names carry ``prefix`` so that tests share a server."""

    def __init__(self, admin: Any, prefix: str, count: int, namespaces: tuple[str, ...] = ("one",)) -> None:
        self.admin = admin
        self.prefix = prefix
        self.members = [(namespaces[i % len(namespaces)], f"{prefix}-{i:05d}") for i in range(count)]
        self.expected: dict[tuple[str, str], str] = {}

    async def create(self) -> None:
        await self.admin.each(*(self._create(i, *member) for i, member in enumerate(self.members)))

    async def _create(self, ordinal: int, namespace: str, name: str) -> None:
        labels = {LABEL_SWEEP: self.prefix, LABEL_MANAGED_BY: MANAGER}
        spec = {
            "sweep": self.prefix, "planDigest": "sha256:" + "0" * 64, "ordinal": ordinal, "configuration": "toy.toy",
            "task": "toy", "mode": "EXEC", "repeat": 1,
        }  # fmt: skip
        trial = await self.admin.send(
            "POST",
            f"/apis/realcli.dev/v1alpha1/namespaces/{namespace}/trials",
            {
                "apiVersion": "realcli.dev/v1alpha1",
                "kind": "Trial",
                "metadata": {"name": name, "labels": labels},
                "spec": spec,
            },
        )
        owner = {"apiVersion": "realcli.dev/v1alpha1", "kind": "Trial", "name": name, "uid": trial["metadata"]["uid"]}
        await self.admin.send(
            "POST",
            f"/api/v1/namespaces/{namespace}/pods",
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"{name}-a1",
                    "labels": labels | {LABEL_TRIAL: name},
                    "ownerReferences": [owner | {"controller": True}],
                },
                "spec": {"containers": [{"name": "c", "image": "x"}], "restartPolicy": "Never"},
            },
        )
        self.expected[(namespace, name)] = f"{name}-a1 Pending "

    async def update(self, phase: str, message: str, members: list[tuple[str, str]] | None = None) -> None:
        """One status update of every pod, as a kubelet writes it."""
        await self.admin.each(*(self._update(*member, phase, message) for member in members or self.members))

    async def _update(self, namespace: str, name: str, phase: str, message: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/pods/{name}-a1/status"
        await self.admin.merge(path, {"status": {"phase": phase, "message": message}})
        self.expected[(namespace, name)] = f"{name}-a1 {phase} {message}"

    async def messages(self) -> dict[tuple[str, str], str]:
        """``status.message`` of every trial of this population as the API server has it."""
        found: dict[tuple[str, str], str] = {}
        token = ""
        while True:
            path = f"/apis/realcli.dev/v1alpha1/trials?limit=500&labelSelector={LABEL_SWEEP}%3D{self.prefix}"
            page = await self.admin.send("GET", path + (f"&continue={token}" if token else ""))
            for item in page["items"]:
                key = (item["metadata"]["namespace"], item["metadata"]["name"])
                found[key] = item.get("status", {}).get("message", "")
            token = page["metadata"].get("continue", "")
            if not token:
                return found

    async def converged(self) -> bool:
        """Whether every trial says what was last written to its pod."""
        return await self.messages() == self.expected

    async def delete(self, kind: str, members: list[tuple[str, str]]) -> None:
        group, suffix = {"pods": ("/api/v1", "-a1"), "trials": ("/apis/realcli.dev/v1alpha1", "")}[kind]
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "propagationPolicy": "Background"}
        await self.admin.each(
            *(
                self.admin.send("DELETE", f"{group}/namespaces/{namespace}/{kind}/{name}{suffix}", body)
                for namespace, name in members
            )
        )
        for member in members:
            if kind == "trials":
                self.expected.pop(member, None)
            elif member in self.expected:
                self.expected[member] = "no pod"


@pytest.fixture
async def population(admin: Any) -> AsyncIterator[Callable[..., Population]]:
    """Makes populations; what they made is deleted at the end."""
    made: list[Population] = []

    def make(prefix: str, count: int, namespaces: tuple[str, ...] = ("one",)) -> Population:
        made.append(Population(admin, prefix, count, namespaces))
        return made[-1]

    yield make
    for people in made:
        for path in ("/api/v1/namespaces/{}/pods", "/apis/realcli.dev/v1alpha1/namespaces/{}/trials"):
            for namespace in {namespace for namespace, _ in people.members}:
                selector = f"?labelSelector={LABEL_SWEEP}%3D{people.prefix}&gracePeriodSeconds=0"
                await admin.send("DELETE", path.format(namespace) + selector)
