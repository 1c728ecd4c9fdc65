"""The operator as a process, and the sweeps that tests give it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]


@dataclass
class Operator:
    """`python -m realcli_operator` as a process that watches some namespaces; ``folder`` is where that module is imported from,
    as another release has its own."""

    kubeconfig: Path
    log: Path
    namespaces: tuple[str, ...]
    process: subprocess.Popen[bytes] | None = None
    python: Path = Path(sys.executable)
    folder: Path = Path(__file__).resolve().parents[2]

    def start(self, fault: str = "") -> None:
        environment = os.environ | {
            "REALCLI_KUBECONFIG": str(self.kubeconfig),
            "REALCLI_WATCH_NAMESPACES": ",".join(self.namespaces),
            "REALCLI_IMAGE_SESSION": "example/session:1",
            "REALCLI_IMAGE_JUDGE": "example/judge:1",
            "REALCLI_IMAGE_TOOLKIT": "example/toolkit:1",
            "REALCLI_AGENT_IMAGES": '{"claude-code": {"2.1.140": "example/agent:1"}}',
            "REALCLI_LIVENESS": "",
            "REALCLI_METRICS_PORT": "0",
            "REALCLI_ALLOW_FAULTS": "1" if fault else "",
            "REALCLI_FAULT_POINT": fault,
        }
        with self.log.open("ab") as log:
            command = [str(self.python), "-m", "realcli_operator"]
            self.process = subprocess.Popen(command, env=environment, cwd=self.folder, stdout=log, stderr=log)

    def kill(self) -> None:
        """As by `kill -9`, whatever it was doing."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    @property
    def ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(40)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def __str__(self) -> str:
        return self.log.read_text()[-6000:]


def sweep(name: str, **spec: Any) -> Json:
    """A sweep of one task, one repeat, both modes: two trials."""
    body = {
        "benchmark": {"source": "s3://evals/benchmarks/starter/1.0.0"},
        "agents": [{"name": "claude-code"}],
        "models": [
            {
                "name": "sonnet",
                "model": "claude-sonnet-4-5",
                "endpoints": {
                    "anthropic": {
                        "url": "https://api.anthropic.com",
                        "apiKey": {"secretRef": {"name": "anthropic", "key": "api-key"}},
                    }
                },
            }
        ],
        "repeats": 1,
        "retry": {"infrastructure": 1, "backoff": "100ms"},
        "storage": {"bucket": "evals", "credentials": {"secretRef": {"name": "evals-s3"}}},
    }
    return {
        "apiVersion": "realcli.dev/v1alpha1",
        "kind": "BenchmarkSweep",
        "metadata": {"name": name},
        "spec": body | spec,
    }
