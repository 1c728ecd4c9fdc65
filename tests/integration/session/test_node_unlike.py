"""A sweep does not mix nodes that kill a process for memory and nodes that kill the whole container."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from realcli.api.plan import Cgroup
from realcli.api.termination import Result, Termination
from realcli_cli.local.pods import Ended
from realcli_cli.local.provider import ScriptedProvider
from tests.integration.session.harness import plan_sweep

REWARD = "/logs/verifier/reward.txt"


def node(place: Path, version: str) -> str:
    """A cgroup file system as a container of such a node sees it."""
    place.mkdir()
    if version == "2":
        (place / "cgroup.controllers").write_text("cpu memory pids\n")
        (place / "memory.oom.group").write_text("1\n")
    else:
        (place / "memory").mkdir()
    return str(place)


def said(ended: Ended) -> Termination:
    assert ended.termination is not None, ended.stderr
    return ended.termination


@pytest.mark.slow
def test_neither_work_nor_verify_begins_there(
    provider: ScriptedProvider, toolkit: Path, agent: Path, mini: Callable[..., Path], tmp_path: Path
) -> None:
    old, new = node(tmp_path / "v1", "1"), node(tmp_path / "v2", "2")
    suite = mini(f"echo 1 > {REWARD}", "echo done > /app/out")
    sweep = plan_sweep(tmp_path / "store", suite, provider.url, toolkit, agent, environment={"REALCLI_CGROUP": new})
    assert sweep.lock.cgroup == sweep.plan.cgroup == Cgroup(version="2", kills="Container")
    ordinal = sweep.ordinal("mini", "EXEC")

    there = said(sweep.work(ordinal, 1, REALCLI_CGROUP=old, REALCLI_NODE="old-1"))
    assert (there.result, there.reason, there.turns) == (Result.WORK_INVALID, "SetupTimeout", 0)
    assert "node old-1" in str(there.message)
    assert "spec.pods.nodeSelector" in str(there.message)

    assert said(sweep.work(ordinal, 2, REALCLI_CGROUP=new)).result is Result.WORK_SEALED
    unlike = said(sweep.verify(ordinal, 1, 2, REALCLI_CGROUP=old))
    assert (unlike.result, unlike.reason) == (Result.NO_VERDICT, "SetupTimeout")
    assert said(sweep.verify(ordinal, 2, 2, REALCLI_CGROUP=new)).reward == "1"
