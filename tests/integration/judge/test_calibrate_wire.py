"""`realcli judge calibrate` against the scripted provider as a process, whose judge answers in form and understands nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from realcli.known.gate import Gate
from realcli_cli.judge import app
from realcli_cli.local.provider import ScriptedProvider, scripted_provider

KEY = "sk-judge-0123456789abcdef"


@pytest.fixture(scope="module")
def provider() -> Iterator[ScriptedProvider]:
    with scripted_provider(key=KEY) as made:
        yield made


def calibrate(provider: ScriptedProvider, api: str, *words: str, key: str = KEY) -> tuple[int, str, str]:
    url = provider.url if api == "anthropic" else f"{provider.url}/v1"
    asked = ["calibrate", "--judge", "judge-1", "--api", api, "--url", url, "--votes", "1", "-o", "json", *words]
    found = CliRunner().invoke(app, asked, env={"REALCLI_KEY_JUDGE": key})
    return found.exit_code, found.stdout, str(found.exception)


@pytest.mark.parametrize("api", ["anthropic", pytest.param("chat", marks=pytest.mark.slow)])
def test_a_judge_without_understanding_is_scored_everywhere_and_fails_the_gate(
    provider: ScriptedProvider, tmp_path: Path, api: str
) -> None:
    status, printed, _ = calibrate(provider, api, "--only", "u.", "--record", str(tmp_path / "tape"))
    gate = Gate.model_validate(json.loads(printed))
    every = gate.of("all")
    assert (status, gate.passed, gate.identity.api) == (0, False, api)  # of a part the exit code says nothing
    assert every.unscored == 0
    assert every.misses.of > 0
    assert (every.misses.value or 0) > 0.5  # it takes any quote for good
    assert not any(KEY in path.read_text() for path in (tmp_path / "tape").iterdir())
    again = calibrate(provider, api, "--only", "u.", "--replay", str(tmp_path / "tape"))
    assert (again[0], json.loads(again[1])) == (0, json.loads(printed))


def test_a_key_that_is_refused_is_said(provider: ScriptedProvider) -> None:
    status, _, error = calibrate(provider, "anthropic", "--only", "u.plan", key="sk-wrong")
    assert status != 0
    assert "401" in error
    assert "sk-wrong" not in error
