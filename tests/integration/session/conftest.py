"""A scripted provider, the toolkit and the agent, once per session; a planned sweep of the starter suite per test."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration.session.harness import KEY, REPOSITORY, Sweep, build_toolkit, plan_sweep
from tests.support.claude_code import claude_code_dir

STARTER = REPOSITORY / "benchmark" / "starter"


@pytest.fixture(scope="session")
def toolkit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_toolkit(tmp_path_factory.mktemp("toolkit") / "opt")


@pytest.fixture(scope="session")
def agent() -> Path:
    return claude_code_dir()


@dataclass
class Provider:
    """The scripted provider process."""

    url: str
    process: subprocess.Popen[bytes]

    def control(self, **wanted: Any) -> None:
        request = urllib.request.Request(f"{self.url}/control", json.dumps(wanted).encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert answer.status == 200

    def seen(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/requests", timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
            return found


@pytest.fixture
def provider() -> Iterator[Provider]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {"PATH": os.environ["PATH"], "PROVIDER_API_KEY": KEY}
    command = [sys.executable, "-m", "realcli_provider", "--host", "127.0.0.1", "--port", str(port), "--control"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    made = Provider(f"http://127.0.0.1:{port}", process)
    try:
        _wait_ready(made)
        yield made
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _wait_ready(provider: Provider) -> None:
    end = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(f"{provider.url}/healthz", timeout=5):
                return
        except OSError:
            if provider.process.poll() is not None or time.monotonic() > end:
                raise
            time.sleep(0.05)  # a server that starts has no other way to say it is ready


@pytest.fixture
def plan(tmp_path: Path, provider: Provider, toolkit: Path, agent: Path) -> Callable[..., Sweep]:
    """`plan(limit=…)`: a sweep of the starter suite, both modes, one repeat; `plan(suite=…)`: of another suite."""

    def make(suite: Path = STARTER, **limits: Any) -> Sweep:
        return plan_sweep(tmp_path / "store", suite, provider.url, toolkit, agent, limits=limits)

    return make


@pytest.fixture
def mini(tmp_path: Path) -> Callable[..., Path]:
    """`mini(tests, *commands)`: a suite of one task whose agent runs the commands and whose test.sh is `tests`."""

    def make(tests: str, *commands: str, verifier_seconds: int = 60, artifacts: str = "/app/out") -> Path:
        return _write(tmp_path / "suite", tests, commands, verifier_seconds, artifacts)

    return make


def _write(root: Path, tests: str, commands: tuple[str, ...], verifier_seconds: int, artifacts: str) -> Path:
    blocks = "".join(f"\n```sh\n{command}\n```\n" for command in commands)
    files = {
        "benchmark.toml": 'name = "mini"\nversion = "1.0.0"\n',
        "tasks/mini/instruction.md": f"# Mini\n\n1. Run the commands.\n{blocks}",
        "tasks/mini/environment/Dockerfile": "FROM scratch\nCOPY app/ /app/\n",
        "tasks/mini/environment/app/given.txt": "given\n",
        "tasks/mini/tests/test.sh": f"#!/bin/bash\n{tests}\n",
        "tasks/mini/solution/solve.sh": "#!/bin/bash\n",
        "tasks/mini/interaction/oracle_contract.json": json.dumps({"paths": ["/app/out"]}),
        "tasks/mini/interaction/script.json": json.dumps(
            {
                "persona": "Brief.", "opener": "Hello.", "closer": "Thanks.", "order": ["batch:all"], "batches": {"all": ["run"]},
                "slices": [{"id": "run", "text": "Run the commands.", "requirements": ["1"]}],
            }
        ),
        "tasks/mini/task.toml": f"""
schema_version = "1.4"
artifacts = ["{artifacts}"]
[metadata]
category = "system operations"
[metadata.realcli]
watch = ["/app/out"]
information_structure = "additive"
[environment]
docker_image = "registry.example/mini:1"
workdir = "/app"
network_mode = "no-network"
[verifier]
timeout_sec = {verifier_seconds}
environment_mode = "separate"
""",
    }  # fmt: skip
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
        (root / name).chmod(0o755 if name.endswith(".sh") else 0o644)
    return root
