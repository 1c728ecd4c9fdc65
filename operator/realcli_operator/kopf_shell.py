"""kopf as the process shell: login, start-up and clean-up, liveness probe, and the watch of sweeps, which only enqueues.

kopf writes nothing to the API here: no stateful handler, no timer, no finalizer, no annotation.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any

import kopf
from kopf._core.engines.peering import Identity
from kubernetes.aio import client as kube_client

from realcli_operator.kube.names import GROUP, RESOURCES, VERSION, Kind
from realcli_operator.layer import WatchLayer


@dataclass(frozen=True, slots=True)
class Shell:
    """What kopf is given. ``start`` seeds and starts the layer (with its reconcilers), ``stop`` drains it; both are
    called once. ``namespaces`` empty: the whole cluster. ``liveness``: where the probe listens, None for none."""

    layer: WatchLayer
    configuration: kube_client.Configuration
    start: Callable[[], Awaitable[None]]
    stop: Callable[[], Awaitable[None]]
    namespaces: Collection[str] = ()
    liveness: str | None = "http://0.0.0.0:8080/healthz"


def build_settings() -> kopf.OperatorSettings:
    """kopf's settings; the reasons are in its facts: unique prefixes, bounded memory, dead streams dropped."""
    settings = kopf.OperatorSettings()
    settings.persistence.finalizer = f"{GROUP}/operator"  # never added; unique so that nobody else's is removed
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP, v1=False)
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=GROUP, v1=False)
    settings.queueing.worker_limit = None
    settings.queueing.idle_timeout = 0.2
    settings.watching.chunk_size = 500
    settings.watching.server_timeout = 240
    settings.watching.client_timeout = 250
    settings.watching.connect_timeout = 30
    settings.watching.reconnect_backoff = 1.0
    settings.networking.request_timeout = 30
    settings.scanning.disabled = True
    settings.posting.enabled = True
    settings.posting.loggers = False
    settings.posting.worker_limit = 8
    return settings


def build_registry(shell: Shell) -> kopf.OperatorRegistry:
    """The handlers, on a registry of their own."""
    registry = kopf.OperatorRegistry()
    sweeps = RESOURCES[Kind.SWEEP]

    async def login(**_: Any) -> kopf.ConnectionInfo:
        return await connection_info(shell.configuration)

    async def startup(**_: Any) -> None:
        await shell.start()

    async def cleanup(**_: Any) -> None:
        await shell.stop()

    async def progress(**_: Any) -> str:
        found = shell.layer.problems()
        if found:
            # A permanent error answers 500 at once; any other is retried inside the probe, which then hangs.
            raise kopf.PermanentError("; ".join(found))
        return "ok"

    async def sweep_event(event: Any, **_: Any) -> None:
        shell.layer.take_sweep_event(event["type"], event["object"])

    kopf.on.login(registry=registry)(login)
    kopf.on.startup(registry=registry)(startup)
    kopf.on.cleanup(registry=registry)(cleanup)
    kopf.on.probe(registry=registry, id="progress")(progress)
    kopf.on.event(GROUP, VERSION, sweeps.plural, registry=registry, id="sweep")(sweep_event)
    return registry


async def connection_info(configuration: kube_client.Configuration) -> kopf.ConnectionInfo:
    """The same credentials for kopf as for our own client; asked for again when the token is refused."""
    token = await configuration.get_api_key_with_prefix("BearerToken")
    return kopf.ConnectionInfo(
        server=configuration.host,
        ca_path=configuration.ssl_ca_cert,
        insecure=not configuration.verify_ssl,
        scheme="Bearer" if token else None,
        token=token.split(maxsplit=1)[-1] if token else None,
        certificate_path=configuration.cert_file,
        private_key_path=configuration.key_file,
    )


async def run(shell: Shell, *, stop_flag: asyncio.Event | None = None, ready_flag: asyncio.Event | None = None) -> None:
    """Run until a signal or ``stop_flag``; ``ready_flag`` is set when the layer has started."""
    quiet_kopf()
    await kopf.operator(
        registry=build_registry(shell),
        settings=build_settings(),
        # kopf's own guess asks for the user's name, which a container's uid does not have; peering is off anyway
        identity=Identity(socket.gethostname()),
        standalone=True,
        clusterwide=not shell.namespaces,
        namespaces=tuple(shell.namespaces),
        liveness_endpoint=shell.liveness,
        stop_flag=stop_flag,
        ready_flag=ready_flag,
    )


def quiet_kopf() -> None:
    """kopf says "Handler succeeded" for every event of every object."""
    for noisy in ("kopf.objects", "kopf.activities.probe", "aiohttp.access"):  # a line per event, per probe
        logging.getLogger(noisy).setLevel(logging.WARNING)
