"""The scripted provider as a process of its own, for the time of a run."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from realcli_cli.local.children import ours
from realcli_cli.main import UserError

READY_SECONDS = 60.0


@dataclass
class ScriptedProvider:
    """The process. It keeps no conversation, so it may be killed and started again at any time: the port stays."""

    script: Path | None
    port: int
    control: bool = False
    key: str = field(default_factory=lambda: f"sk-local-{secrets.token_hex(16)}", repr=False)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Base URL without /v1."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start and wait until it answers. UserError: what is wrong with the script."""
        command = [sys.executable, "-m", "realcli_provider", "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--script", str(self.script)] if self.script else []
        command += ["--control"] if self.control else []
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        with tempfile.TemporaryFile() as errors:
            self.process = subprocess.Popen(
                command,
                env=kept | {"PROVIDER_API_KEY": self.key},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                **ours(signal.SIGKILL),
            )
            end = time.monotonic() + READY_SECONDS
            while not self._answers():
                if self.process.poll() is not None or time.monotonic() > end:
                    self.kill()
                    errors.seek(0)
                    said = errors.read().decode("utf-8", "replace").strip()
                    if "No module named" in said:
                        raise UserError(
                            f"the scripted provider is not installed: pip install 'realcli[provider]' ({said[-200:]})"
                        )
                    raise UserError(said[-2000:] or "the scripted provider did not start")
                time.sleep(0.05)  # a server that starts has no other way to say it is ready

    def kill(self) -> None:
        """SIGKILL, as a crash."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def pause(self, paused: bool) -> None:
        """SIGSTOP or SIGCONT."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP if paused else signal.SIGCONT)

    def set_control(self, **wanted: Any) -> None:
        """POST /control."""
        request = urllib.request.Request(f"{self.url}/control", json.dumps(wanted).encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=10):
            pass

    def seen(self) -> dict[str, Any]:
        """GET /requests."""
        found: dict[str, Any] = self._get("/requests")
        return found

    def requests(self) -> list[dict[str, Any]]:
        """GET /control/requests."""
        found: list[dict[str, Any]] = self._get("/control/requests")
        return found

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=10) as answer:
            return json.load(answer)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def scripted_provider(script: Path | None = None, *, control: bool = False, key: str | None = None) -> Iterator[ScriptedProvider]:
    """A running provider; `script` None: the demo's."""
    made = ScriptedProvider(script, free_port(), control)
    made.key = key or made.key
    made.start()
    try:
        yield made
    finally:
        made.kill()
