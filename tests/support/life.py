"""The operator in this process, without kopf: the same wiring as the real process, and a way to die like `kill -9`.

A life that dies sends no request any more from that moment on; requests on their way may still arrive, as with a killed process.
Everything it knew (store, queue, grants, plans) is dropped with it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from realcli.api.plan import Images
from realcli_operator.__main__ import wired
from realcli_operator.kube.informer import WatchSettings
from realcli_operator.kube.lister import ResyncSettings
from realcli_operator.kube.metrics import Metrics
from realcli_operator.kube.queue import Backoff
from realcli_operator.kube.transport import ClientSettings, Transport
from realcli_operator.layer import LayerSettings, WatchLayer
from realcli_operator.loop import WorkerSettings
from realcli_operator.reconcile.policy import Policy
from realcli_operator.settings import Settings, Use
from tests.support.control_plane import ControlPlane

IMAGES = Images(
    session="example/session:1",
    judge="example/judge:1",
    toolkit="example/toolkit:1",
    agents={"claude-code/2.1.140": "example/agent:1"},
)
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
NEVER = 10**9


class MortalTransport(Transport):
    """Dies when ``fatal`` says so of a write that has just been answered: from then on nothing is sent and nothing returns."""

    def __init__(self, *args: Any, fatal: Callable[[str], bool], one_by_one: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._turn: asyncio.Semaphore | None = asyncio.Semaphore(1) if one_by_one else None
        self.died = asyncio.Event()
        self.writes: list[str] = []
        self.requests: list[str] = []
        """Every try of every request: verb, path."""
        self._fatal = fatal

    async def _once(self, method: str, path: str, resource: str, query: Mapping[str, str] | None, body: Any, *form: str) -> bytes:
        if self._turn is None or method not in WRITES:
            return await self._alive(method, path, resource, query, body, *form)
        async with self._turn:  # never left by the write after which it dies
            return await self._alive(method, path, resource, query, body, *form)

    async def _alive(
        self, method: str, path: str, resource: str, query: Mapping[str, str] | None, body: Any, *form: str
    ) -> bytes:
        if self.died.is_set():
            await asyncio.Event().wait()
        self.requests.append(f"{method} {path}")
        answer = await super()._once(method, path, resource, query, body, *form)
        if self.died.is_set():
            await asyncio.Event().wait()
        if method in WRITES and "dryRun" not in (query or {}):
            what = f"{method} {path}"
            if method == "POST":
                what += f"/{body['metadata']['name']}"
            self.writes.append(what)
            if self._fatal(what):
                self.died.set()
                await asyncio.Event().wait()
        return answer


@dataclass
class Life:
    """One life of the operator."""

    transport: MortalTransport
    layer: WatchLayer
    metrics: Metrics

    def count(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels) or 0.0


def settings_for(namespace: str, **changes: Any) -> Settings:
    """As the chart would give them; what the cluster can do is not probed."""
    given: dict[str, Any] = {
        "images": IMAGES,
        "namespaces": (namespace,),
        "user_namespaces": Use.ALWAYS,
        "image_volumes": Use.NEVER,
    }
    return Settings(**(given | changes))


@asynccontextmanager
async def living(
    plane: ControlPlane,
    namespace: str,
    *,
    url: str | None = None,
    fatal: Callable[[str], bool] = lambda _: False,
    policy: Policy | None = None,
    client: ClientSettings | None = None,
    settings: Settings | None = None,
    wait: bool = True,
    one_by_one: bool = False,
    **layers: Any,
) -> AsyncIterator[Life]:
    """A life for one namespace, ended as by `kill -9` with the block. ``wait`` False: it may still be starting.

    ``one_by_one``: a write is sent when the one before it has been answered, so none is on its way when it dies.
    """
    metrics = Metrics()
    client = client or ClientSettings(writes_per_second=1000, write_burst=100, retry_base=0.05)
    transport = MortalTransport(plane.configuration(url), client, metrics, fatal=fatal, one_by_one=one_by_one)
    defaults: dict[str, Any] = {
        "namespaces": (namespace,),
        # without kopf's watch, sweeps are seen by their LIST alone
        "sweep_resync": ResyncSettings(first=0.3, period=0.3),
        "resync": ResyncSettings(first=NEVER, period=NEVER),  # what a test shows is not the resync's work
        "list_backoff": Backoff(base=0.05, cap=1.0),
        "key_backoff": Backoff(base=0.05, cap=1.0),
        "workers": WorkerSettings(count=8, drain=0.0),
        "watch": WatchSettings(pause=0.02),
    }
    given = settings or settings_for(namespace)
    layer, reconcilers = wired(given, transport, metrics, LayerSettings(**(defaults | layers)), policy or Policy())
    start = asyncio.create_task(layer.start(reconcilers))
    try:
        if wait:
            await start
        yield Life(transport, layer, metrics)
    finally:
        transport.died.set()  # nothing that the end of its tasks brings about reaches the API server
        start.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await start
        await layer.stop()
        await transport.close()


@dataclass
class Lives:
    """Lives one after the other, each ended by ``fatal`` of the number of writes of its own and of all before it, or after a
    write that has ``at`` in its path."""

    plane: ControlPlane
    namespace: str
    fatal: Callable[[int, int], bool]
    at: str = ""
    positions: list[str] = field(default_factory=list)
    """The writes after which one died."""
    writes: list[str] = field(default_factory=list)
    """All writes of all lives."""

    async def run(self, over: Callable[[], Any], **options: Any) -> None:
        """Until ``over`` (async) is true while one lives."""
        while True:
            before = len(self.writes)
            own = 0

            def fatal(what: str, before: int = before) -> bool:
                nonlocal own
                own += 1
                self.writes.append(what)
                return self.fatal(own, before + own) or (bool(self.at) and self.at in what)

            async with living(self.plane, self.namespace, fatal=fatal, **options) as life:
                ended = asyncio.create_task(life.transport.died.wait())
                try:
                    while not ended.done():
                        if await over():
                            return
                        await asyncio.wait({ended}, timeout=0.1)
                finally:
                    ended.cancel()
                self.positions.append(self.writes[-1])
