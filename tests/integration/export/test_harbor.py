"""Real runs, exported, in the hands of the real Harbor: its models, its validator, its counts and its viewer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from realcli.api.agents import PROGRAMS
from realcli.api.termination import Result
from realcli_cli.local.programs import agent_folder
from realcli_cli.local.programs import toolkit as made_toolkit
from realcli_cli.local.provider import ScriptedProvider, scripted_provider
from tests.integration.session.harness import KEY, REPOSITORY, Sweep, plan_sweep
from tests.support.sealed_sweep import write_sweep
from tests.support.terminus import words_folder

pytestmark = pytest.mark.slow
STARTER = REPOSITORY / "benchmark" / "starter"
TASK = "site-settings"
Loaded = Callable[[Path], dict[str, Any]]


def export(*arguments: object) -> str:
    command = [sys.executable, "-m", "realcli_cli", "export", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def planned(folder: Path, provider: ScriptedProvider, program: str, **limits: Any) -> Sweep:
    words = {"REALCLI_TERMINUS_TEMPLATES": str(words_folder())} if program == "terminus-2" else {}
    return plan_sweep(
        folder, STARTER, provider.url, made_toolkit(None), agent_folder(program, None), program=program, environment=words,
        limits=limits,
    )  # fmt: skip


def run(sweep: Sweep, mode: Any) -> str:
    """Work, then verify; how the trial ended."""
    ordinal = sweep.ordinal(TASK, mode)
    worked = sweep.work(ordinal)
    assert worked.termination is not None, worked.stderr
    if worked.termination.result is Result.WORK_SEALED:
        verified = sweep.verify(ordinal)
        assert verified.termination is not None, verified.stderr
    return str(worked.termination.reason)


@pytest.mark.parametrize("program", ["claude-code", "codex", "terminus-2"])
def test_real_runs_of_an_agent_load(tmp_path: Path, loaded: Loaded, program: str) -> None:
    with scripted_provider(key=KEY) as provider:
        sweep = planned(tmp_path / "store", provider, program)
        assert [run(sweep, mode) for mode in ("EXEC", "COLLAB")] == ["Completed", "Completed"]
    job = tmp_path / "jobs" / "night"
    assert export("harbor", sweep.store_dir / sweep.plan.root, "--out", job) == f"2 of {sweep.plan.size} trials in {job}\n"
    found = loaded(job)
    assert found["miscounted"] == []
    assert found["total"] == sweep.plan.size
    for trial, mode in zip(found["trials"], ("COLLAB", "EXEC"), strict=True):
        seal = sweep.work_seal(sweep.ordinal(TASK, mode))
        assert trial["source"] == f"starter-{sweep.lock.benchmark.version}-{mode.lower()}"
        assert trial["agent"] == [program, PROGRAMS[program].version]
        assert (trial["reward_valid"], trial["failed"]) == (True, None)
        assert found["shown"][trial["trial"]] == trial["rewards"]["reward"] == float(sweep.verify_seal(seal.trial.ordinal).reward)
        counted = seal.tokens
        tokens = [counted.input + counted.cache_read + counted.cache_write, counted.cache_read, counted.output]
        assert trial["totals"][:3] == tokens
        assert trial["usage"] == {"claude-sonnet-4-5": tokens}
        assert trial["steps"].count("agent") == seal.turns
        assert trial["steps"].count("user") == sum(
            event.kind == "user_message" and event.data["delivered"] for event in sweep.events(seal.trial.ordinal)
        )
        assert trial["calls"] == sum(event.kind == "tool_call" for event in sweep.events(seal.trial.ordinal)) > 0
        assert "reasoning_content" not in trial["fields"]
        assert {"config.json", "result.json", "agent/trajectory.json", "verifier/reward.json"} <= set(trial["files"])
        assert found["outputs"][trial["trial"]]["stdout"] is not None, "what the tests printed"
    attempt = sweep.place(sweep.ordinal(TASK, "EXEC"))
    export("atif", attempt, "--out", tmp_path / "one.json")
    (name,) = [one["trial"] for one in found["trials"] if one["source"].endswith("exec")]
    assert (tmp_path / "one.json").read_bytes() == (job / name / "agent" / "trajectory.json").read_bytes()


def test_failed_runs_load_and_say_how_they_failed(tmp_path: Path, loaded: Loaded) -> None:
    """EXEC is stopped by the turn limit, which counts; COLLAB is answered by another model, which does not."""
    with scripted_provider(key=KEY, control=True) as provider:
        sweep = planned(tmp_path / "store", provider, "claude-code", turns=2)
        assert run(sweep, "EXEC") == "TurnLimit"
        provider.set_control(model="another-model")
        assert run(sweep, "COLLAB") == "ModelMismatch"
    job = tmp_path / "job"
    export("harbor", sweep.store_dir, "--out", job)
    found = loaded(job)
    assert found["miscounted"] == []
    invalid, limited = found["trials"]
    assert (limited["failed"], limited["rewards"], limited["reward_valid"]) == (
        ["TurnLimit", False, True],
        {"reward": 0},
        True,
    )
    assert (invalid["failed"], invalid["rewards"], invalid["reward_valid"]) == (["ModelMismatch", False, False], None, False)
    assert "verifier/reward.json" not in invalid["files"], "no reward is not a reward of 0"
    assert "exception.txt" in invalid["files"]
    assert found["shown"][invalid["trial"]] is None


def test_a_written_sweep_of_every_kind_of_end_loads(tmp_path: Path, loaded: Loaded) -> None:
    sweep = write_sweep(tmp_path / "store")
    told = export("harbor", sweep.directory / sweep.root, "--out", tmp_path / "job")
    found = loaded(tmp_path / "job")
    assert found["miscounted"] == [], told
    assert sorted(json.dumps(trial["rewards"]) for trial in found["trials"] if trial["reward_valid"]) == sorted(
        [*['{"reward": 1}'] * 6, *['{"reward": 0}'] * 4, '{"reward": 0.5}']
    )
