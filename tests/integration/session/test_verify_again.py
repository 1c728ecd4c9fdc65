"""`spec.from` with phases [Verify, Judge]: a sealed state verified again by mended tests, by the real programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer

from realcli.api.outcomes import Phase
from realcli.api.source import SourceRef
from realcli.api.termination import Result, Termination
from realcli.benchmark.publish import publish
from realcli.benchmark.suite import load_suite
from realcli.scoring.records import GroupInput, GroupMember
from realcli_cli.verify_report import verify_report
from realcli_judge.__main__ import main as judge
from tests.integration.session.harness import Sweep
from tests.support.from_sweep import FromSweep, planned

Plan = Callable[..., Sweep]
Mini = Callable[..., Path]
REWARD = "/logs/verifier/reward.txt"
BROKEN = f"echo 0 > {REWARD}"
MENDED = f'test "$(cat /app/out)" = done && test "$(cat /app/given.txt)" = given && echo 1 > {REWARD} || echo 0 > {REWARD}'
DONE = "echo done > /app/out; echo changed > /app/given.txt"
LOST = {"phase": Phase.INVALID, "reason": "ProviderUnavailable", "attempt": 4, "invalid_attempts": 4}


def said(ended: Any) -> Termination:
    assert ended.termination is not None, ended.stderr
    return ended.termination


def member(sweep: Sweep, ordinal: int, end: Termination, number: int = 1) -> GroupMember:
    """As the operator hands it to the judge Job."""
    cell = sweep.plan.coordinates(ordinal)
    return GroupMember(
        ordinal=ordinal, mode=cell.mode, repeat=cell.repeat, phase=Phase.SEALED, reason=str(end.reason), attempt=1,
        reward=end.reward, verify_attempt=number, work_seal=end.work_seal, seal=end.seal,
    )  # fmt: skip


@pytest.fixture
def source(plan: Plan, mini: Mini, tmp_path: Path) -> tuple[Sweep, Path]:
    """A judged sweep whose EXEC trial has the reward 0 by broken tests, and whose COLLAB trial was lost; and its suite."""
    suite = mini(BROKEN, DONE)
    sweep = plan(suite=suite)
    ordinal, lost = sweep.ordinal("mini", "EXEC"), sweep.ordinal("mini", "COLLAB")
    assert said(sweep.work(ordinal)).result is Result.WORK_SEALED
    end = said(sweep.verify(ordinal))
    assert end.reward == "0"
    members = [member(sweep, ordinal, end), GroupMember.model_validate({"ordinal": lost, "mode": "COLLAB", "repeat": 1, **LOST})]
    asked = GroupInput(configuration="claude-code.model", task="mini", members=members)
    log = tmp_path / "judged"
    environ = {**sweep.environment, "REALCLI_GROUP": asked.canonical().decode(), "REALCLI_TERMINATION_LOG": str(log)}
    assert judge(["judge", "--root", sweep.plan.root, "--lock-digest", sweep.plan.lock_digest], environ) == 0
    return sweep, suite


def mended(sweep: Sweep, suite: Path, tests: str) -> str:
    """A newer version of the suite with other tests, published beside the old one."""
    test = suite / "tasks/mini/tests/test.sh"
    test.write_text(f"#!/bin/bash\n{tests}\n")
    toml = suite / "benchmark.toml"
    toml.write_text(toml.read_text().replace("1.0.0", "1.1.0"))
    return f"s3://local/{publish(load_suite(suite), sweep.store, 'benchmarks').key}"


def again(sweep: Sweep, **spec: Any) -> tuple[FromSweep, Sweep]:
    """Planned from it; and as the harness runs its verify pods."""
    ref = SourceRef(uri=f"s3://local/{sweep.plan.root}", lock_digest=sweep.plan.lock_digest)
    storage = {"bucket": "local", "credentials": {"secretRef": {"name": "local"}}}
    made = planned(sweep.store, sweep.environment, ref, ["Verify", "Judge"], storage=storage, **spec)
    return made, replace(sweep, plan=made.planned, lock=made.lock)


def test_a_sealed_state_is_verified_by_mended_tests(
    source: tuple[Sweep, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep, suite = source
    made, pods = again(sweep, benchmark={"source": mended(sweep, suite, MENDED)})
    ordinal, lost = pods.ordinal("mini", "EXEC"), pods.ordinal("mini", "COLLAB")
    origin = made.planned.source
    assert origin is not None
    assert [(one.ordinal, one.phase, one.reason) for one in origin.settled] == [(lost, Phase.INVALID, "ProviderUnavailable")]

    end = said(pods.verify(ordinal))
    assert (end.result, end.reason, end.reward) == (Result.VERDICT, "Completed", "1")
    assert end.uri == f"s3://local/{sweep.attempt(ordinal).root}"
    seal = pods.verify_seal(ordinal)
    assert (seal.trial.sweep, seal.trial.ordinal, seal.work_seal) == ("again", ordinal, end.work_seal)
    assert sweep.verify_seal(ordinal).reward == "0", "the source keeps its verdict"
    assert said(pods.verify(ordinal, 2)) == end, "the sealed result is reported again and nothing runs"
    nothing = said(pods.verify(lost))
    assert nothing.result is Result.NO_WORK_SEAL
    assert said(pods.work(ordinal)).reason == "ConfigurationError", "no agent runs for it"

    made.members = {
        ordinal: member(pods, ordinal, end),
        lost: GroupMember.model_validate({"ordinal": lost, "mode": "COLLAB", "repeat": 1, **LOST, "attempt": 1}),
    }
    log = tmp_path / "log"
    assert made.job(log, "judge", 0).result is Result.JUDGED
    told = made.job(log, "report")
    assert told.result is Result.REPORTED, told.message
    folder = Path(str(told.uri).removeprefix("file://"))
    summary = json.loads((folder / "summary.json").read_bytes())
    assert summary["configurations"][0]["exec"]["r"]["exact"] == "1"
    assert (summary["source"]["phases"], summary["source"]["benchmark"]["version"]) == (["Verify", "Judge"], "1.0.0")
    assert summary["benchmark"]["version"] == "1.1.0"
    with pytest.raises(typer.Exit) as done:
        verify_report(str(folder))
    assert done.value.exit_code == 0, capsys.readouterr().out


@pytest.mark.slow
def test_a_changed_state_or_source_gives_no_verdict(source: tuple[Sweep, Path]) -> None:
    sweep, suite = source
    made, pods = again(sweep, benchmark={"source": mended(sweep, suite, MENDED)})
    ordinal = pods.ordinal("mini", "EXEC")
    paths = sweep.attempt(ordinal)
    state = sweep.store_dir / paths.state
    whole = state.read_bytes()
    state.write_bytes(whole + b"\n")
    found = said(pods.verify(ordinal))
    assert (found.result, found.reason) == (Result.NO_VERDICT, "VerifierFault")
    state.write_bytes(whole)
    place = sweep.store_dir / made.paths.source(ordinal)
    place.write_bytes(place.read_bytes().replace(b'"attempt":1', b'"attempt":2'))
    found = said(pods.verify(ordinal, 2))
    assert found.result is Result.NO_WORK_SEAL
    assert "changed since the sweep was planned" in str(found.message)
