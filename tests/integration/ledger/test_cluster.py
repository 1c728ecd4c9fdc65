"""`realcli ledger` with the name of a Trial: by kubectl, on a real API server."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from realcli.storage.local import LocalStore
from tests.conftest import tool
from tests.support.attempts import finish, make_attempt, tell

pytestmark = pytest.mark.apiserver
TRIALS = "/apis/realcli.dev/v1alpha1/namespaces/two/trials"
GOLDEN = Path(__file__).resolve().parents[2] / "unit" / "pods" / "golden" / "trial.yaml"
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def realcli(control_plane: Any, tmp_path: Path) -> Run:
    """`realcli ledger …` as a process: (exit status, all it said)."""
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(control_plane.kubeconfig()))
    environ = os.environ | {"KUBECONFIG": str(tmp_path / "kubeconfig"), "PATH": f"{tool('kubectl').parent}:{os.environ['PATH']}"}

    def run(*arguments: object) -> tuple[int, str]:
        command = [sys.executable, "-m", "realcli_cli", "ledger", *map(str, arguments)]
        done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.fixture
async def trial(admin: Any) -> AsyncIterator[Callable[..., Any]]:
    """`await trial(**status)`: the Trial first-00001 of namespace two."""
    document = yaml.safe_load(GOLDEN.read_text())
    document["metadata"] = {"name": "first-00001", "namespace": "two"}
    await admin.send("POST", TRIALS, document)

    async def put(**status: Any) -> None:
        await admin.merge(f"{TRIALS}/first-00001/status", {"status": status})

    yield put
    await admin.send("DELETE", f"{TRIALS}/first-00001")


async def test_a_trial_s_ledger_is_found_and_held_to_its_anchor(realcli: Run, trial: Callable[..., Any], tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "store")
    attempt = make_attempt(tmp_path / "spool", store)
    tell(attempt, random.Random(1), turns=3)
    digest = await finish(attempt, store)
    uri = f"file://{tmp_path}/store/{attempt.trial.paths.ledger}"
    await trial(phase="Sealed", attempt=1, ledgerURI=uri, workSealDigest=digest)
    code, said = await asyncio.to_thread(realcli, "verify", "first-00001", "-n", "two")
    assert (code, said.splitlines()[-1]) == (0, "1 of 1 attempts verify against the work anchor")
    await trial(workSealDigest="sha256:" + "1" * 64)
    code, said = await asyncio.to_thread(realcli, "verify", "first-00001", "-n", "two")
    assert code == 1
    assert "anchor: work-seal.json" in said
    code, said = await asyncio.to_thread(realcli, "tail", "first-00001", "-n", "two")
    assert (code, said.splitlines()[-1].startswith("sealed: Completed")) == (0, True)


async def test_what_cannot_be_recovered_is_said(realcli: Run, trial: Callable[..., Any], tmp_path: Path) -> None:
    code, said = await asyncio.to_thread(realcli, "recover", "first-00002", "-n", "two")
    assert (code, 'trials.realcli.dev "first-00002" not found' in said) == (2, True)
    await trial(phase="Working", attempt=1, pod="first-00001-a1")
    code, said = await asyncio.to_thread(realcli, "recover", "first-00001", "-n", "two")
    assert code == 2
    assert "there is no pod first-00001-a1 (any more)" in said
    assert not any(name.startswith("first-") for name in os.listdir(tmp_path))
