"""`python -m realcli_operator`: the process. Settings come from the environment (`realcli_operator.settings`)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import structlog
import uvloop
from prometheus_client import start_http_server

from realcli_operator.execute import Executor
from realcli_operator.faults import Faults
from realcli_operator.handlers import AT_ONCE, SweepReconciler, TrialReconciler
from realcli_operator.kopf_shell import Shell, run
from realcli_operator.kube.client import KubeClient
from realcli_operator.kube.metrics import Metrics
from realcli_operator.kube.names import Kind
from realcli_operator.kube.source import HttpSource
from realcli_operator.kube.transport import ClientSettings, Transport, load_configuration
from realcli_operator.layer import LayerSettings, WatchLayer
from realcli_operator.loop import Reconciler, WorkerSettings
from realcli_operator.observe import Observer
from realcli_operator.reconcile.policy import Policy
from realcli_operator.settings import Settings, SettingsError


def configure_logging(level: str) -> None:
    """JSON lines on stdout; kopf's own logger at the same level."""
    number = logging.getLevelNamesMapping()[level]
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
    )
    logging.basicConfig(level=number, stream=sys.stdout, format='{"level": "%(levelname)s", "event": "%(name)s: %(message)s"}')


class Wired(NamedTuple):
    """The operator's parts without a shell: what `WatchLayer.start` is given, and the layer itself."""

    layer: WatchLayer
    reconcilers: dict[Kind, Reconciler[Any, Any]]


def wired(
    settings: Settings,
    transport: Transport,
    metrics: Metrics,
    layers: LayerSettings,
    policy: Policy | None = None,
    faults: Faults | None = None,
) -> Wired:
    """Store, queue, reconcilers and the client they write with."""
    source = HttpSource(transport)
    layer = WatchLayer(source, layers, metrics=metrics)
    api = KubeClient(transport, source)
    policy = policy or Policy(
        keep_failed_pods=settings.keep_failed_pods, judges=settings.judges, confirm_above=settings.confirm_above
    )
    observer = Observer(api, layer.store, settings, layer.clock, policy)
    executor = Executor(api, layer.store, layer.sink, faults)
    return Wired(
        layer,
        {
            Kind.TRIAL: TrialReconciler(observer, executor, metrics),
            Kind.SWEEP: SweepReconciler(observer, executor, layer.queue),
        },
    )


async def operate(settings: Settings, *, stop_flag: asyncio.Event | None = None, ready_flag: asyncio.Event | None = None) -> None:
    """Run the operator until a signal or ``stop_flag``."""
    metrics = Metrics()
    configuration = await load_configuration(settings.kubeconfig)
    burst = max(1, int(settings.writes_per_second))
    # A request that waits for a connection has less time for its answer: one for each that can be on its way, and the watches.
    connections = settings.workers + AT_ONCE + 16
    client = ClientSettings(writes_per_second=settings.writes_per_second, write_burst=burst, max_connections=connections)
    faults = Faults(settings.fault, settings.fault_write)
    transport = Transport(configuration, client, metrics, wrote=faults.wrote)
    layers = LayerSettings(namespaces=settings.namespaces, workers=WorkerSettings(count=settings.workers))
    layer, reconcilers = wired(settings, transport, metrics, layers, faults=faults)

    async def start() -> None:
        await layer.start(reconcilers)

    async def stop() -> None:
        await layer.stop()
        await transport.close()

    shell = Shell(layer, configuration, start, stop, settings.namespaces, settings.liveness)
    with served(metrics, settings.metrics_port):
        await run(shell, stop_flag=stop_flag, ready_flag=ready_flag)


@contextlib.contextmanager
def served(metrics: Metrics, port: int) -> Iterator[None]:
    """The metrics at ``http://:<port>/metrics`` as long as the block runs; not at all for port 0."""
    if not port:
        yield
        return
    server, thread = start_http_server(port, registry=metrics.registry)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def main() -> int:
    """Entry point; exit code 2 for settings that cannot be used."""
    try:
        settings = Settings.from_environment()
    except SettingsError as error:
        print(f"realcli-operator: {error}", file=sys.stderr)
        return 2
    configure_logging(settings.log_level)
    uvloop.run(operate(settings))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
