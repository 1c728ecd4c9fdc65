"""A scripted provider, the toolkit and the agent, once per session; a planned sweep of the starter suite per test."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from realcli_cli.local.programs import agent_folder
from realcli_cli.local.programs import toolkit as made_toolkit
from realcli_cli.local.provider import ScriptedProvider, scripted_provider
from tests.integration.session.harness import KEY, REPOSITORY, Sweep, plan_sweep

STARTER = REPOSITORY / "benchmark" / "starter"


@pytest.fixture(scope="session")
def toolkit() -> Path:
    return made_toolkit(None)


@pytest.fixture(scope="session")
def agent() -> Path:
    return agent_folder("claude-code", None)


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with scripted_provider(control=True, key=KEY) as made:
        yield made


@pytest.fixture
def plan(tmp_path: Path, provider: ScriptedProvider, toolkit: Path, agent: Path) -> Callable[..., Sweep]:
    """`plan(limit=…)`: a sweep of the starter suite, both modes, one repeat; `plan(suite=…)`: of another suite."""

    def make(suite: Path = STARTER, **limits: Any) -> Sweep:
        return plan_sweep(tmp_path / "store", suite, provider.url, toolkit, agent, limits=limits)

    return make


@pytest.fixture
def mini(tmp_path: Path) -> Callable[..., Path]:
    """`mini(tests, *commands)`: a suite of one task whose agent runs the commands and whose test.sh is `tests`.

    `solution` is its solve.sh, `user` a table of task.toml."""

    def make(
        tests: str, *commands: str, verifier_seconds: int = 60, artifacts: str = "/app/out", solution: str = "", user: str = ""
    ) -> Path:
        return _write(tmp_path / "suite", tests, commands, verifier_seconds, artifacts, solution, user)

    return make


def _write(
    root: Path, tests: str, commands: tuple[str, ...], verifier_seconds: int, artifacts: str, solution: str, user: str
) -> Path:
    blocks = "".join(f"\n```sh\n{command}\n```\n" for command in commands)
    files = {
        "benchmark.toml": 'name = "mini"\nversion = "1.0.0"\n',
        "tasks/mini/instruction.md": f"# Mini\n\n1. Run the commands.\n{blocks}",
        "tasks/mini/environment/Dockerfile": "FROM scratch\nCOPY app/ /app/\n",
        "tasks/mini/environment/app/given.txt": "given\n",
        "tasks/mini/tests/test.sh": f"#!/bin/bash\n{tests}\n",
        "tasks/mini/solution/solve.sh": f"#!/bin/bash\n{solution}\n",
        "tasks/mini/interaction/oracle_contract.json": json.dumps({"paths": ["/app/out"]}),
        "tasks/mini/interaction/script.json": json.dumps(
            {
                "persona": "Brief.", "opener": "Hello.", "closer": "Thanks.", "order": ["batch:all"], "batches": {"all": ["run"]},
                "slices": [{"id": "run", "text": "Run the commands.", "requirements": ["1"], "leakTerms": ["commands"]}],
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
{user}
""",
    }  # fmt: skip
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
        (root / name).chmod(0o755 if name.endswith(".sh") else 0o644)
    return root
