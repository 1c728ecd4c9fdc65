"""The operator's metrics over HTTP."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request

import pytest

from realcli_operator.__main__ import served
from realcli_operator.kube.metrics import Metrics
from realcli_operator.settings import Settings, SettingsError

IMAGES = {"REALCLI_IMAGE_SESSION": "s", "REALCLI_IMAGE_JUDGE": "j", "REALCLI_IMAGE_TOOLKIT": "t", "REALCLI_AGENT_IMAGES": "{}"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_metrics_are_served_while_the_operator_runs() -> None:
    metrics, port = Metrics(), free_port()
    metrics.worker_restarts.labels(task="worker-1").inc()
    with served(metrics, port), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        assert 'realcli_task_restarts_total{task="worker-1"} 1.0' in answer.read().decode()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics")


def test_port_0_serves_nothing() -> None:
    with served(Metrics(), 0):
        pass


@pytest.mark.parametrize("text", ["-1", "65536", "http"])
def test_a_port_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=r"REALCLI_METRICS_PORT.*a port, or 0"):
        Settings.from_environment({**IMAGES, "REALCLI_METRICS_PORT": text})
