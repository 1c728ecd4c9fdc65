"""`realcli judge calibrate`, with emulated judges where a model would answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from realcli.judging.model import JudgeReply, JudgeRequest
from realcli.judging.port import Backend
from realcli.known.cases import known_cases
from realcli.known.gate import Gate
from realcli.known.judges import emulated
from realcli.known.kept import GateUnreadable, kept_gate
from realcli.storage.local import LocalStore
from realcli_cli import judge_calibrate
from realcli_cli.judge import app
from realcli_cli.main import UserError

EXAMPLES = Path(__file__).parents[3] / "examples"
FEW = ("--only", "u.plan", "--votes", "1")


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["calibrate", *map(str, words)])


def refused(*words: str | Path) -> str:
    error = run(*words).exception
    assert isinstance(error, UserError), error
    return str(error)


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind the endpoint stands an oracle."""

    def oracle(*_: object) -> Backend:
        return emulated("oracle").over(known_cases())

    monkeypatch.setattr(judge_calibrate, "_live", oracle)


MODEL = ("--judge", "claude-judge", "--api", "anthropic", "--url", "http://127.0.0.1:9")


def test_an_oracle_errs_nowhere() -> None:
    found = run("--judge", "emulated:oracle", *FEW, "-o", "json")
    assert found.exit_code == 0
    told = Gate.model_validate(json.loads(found.stdout)).told
    assert "false failures 0 of" in told
    assert "violations missed 0 of" in told
    assert "S of the ideal runs is 1.000" in told


def test_a_part_of_the_set_passes_and_fails_no_gate() -> None:
    found = run("--judge", "emulated:oracle", *FEW)
    assert found.exit_code == 0
    assert "too little for the gate" in found.output
    assert "PASSES" not in found.output
    assert "FAILS" not in found.output


def test_who_obeys_an_agent_s_text_misses_what_it_did() -> None:
    """Their runs hold an instruction to the judge; without one they would look like the oracle."""
    inside, outside = (
        Gate.model_validate(json.loads(run("--judge", f"emulated:gullible-{where}", *FEW, "-o", "json").stdout))
        for where in ("inside", "outside")
    )
    missed = next(one.misses for one in inside.verdicts)
    assert missed.of > 0
    assert missed.hits == missed.of
    assert next(one.misses for one in outside.verdicts).hits == 0


def test_a_lazy_judge_fails_the_gate_and_says_where(tmp_path: Path) -> None:
    found = run("--judge", "emulated:lazy", *FEW, "-o", "json")
    gate = Gate.model_validate(json.loads(found.stdout))
    assert (gate.emulated, gate.passed) == ("lazy", False)
    assert any(one.truth == "0" and one.verdict != "0" for one in gate.disagreements)


@pytest.mark.usefixtures("live")
def test_what_was_recorded_is_replayed_to_the_same_gate(tmp_path: Path) -> None:
    recorded = run(*MODEL, *FEW, "--record", tmp_path / "r", "-o", "json")
    replayed = run(*MODEL, *FEW, "--replay", tmp_path / "r", "-o", "json")
    assert json.loads(recorded.stdout) == json.loads(replayed.stdout)
    for path in (tmp_path / "r").glob("*.json"):
        path.unlink()
    missing = run(*MODEL, *FEW, "--replay", tmp_path / "r")
    assert missing.exit_code == 3
    assert "no recording of checks" in missing.stderr


@pytest.mark.usefixtures("live")
def test_the_gate_of_a_model_is_kept_and_never_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ideal = tuple(case for case in known_cases() if case.kind == "ideal")[:4]
    monkeypatch.setattr(judge_calibrate, "known_cases", lambda: ideal)
    first = run(*MODEL, "--votes", "1", "--store", tmp_path)
    assert "kept: calibrations/" in first.stderr
    (kept,) = tmp_path.glob("calibrations/*/gate.json")
    store = LocalStore(tmp_path)
    judge = Gate.model_validate_json(kept.read_bytes()).judge
    found = kept_gate(store, "", judge)
    assert found is not None
    assert found.cases == 4
    assert kept_gate(store, "elsewhere", judge) is None
    with pytest.raises(GateUnreadable, match="is the gate of judge"):
        kept_gate(store, "", judge[:15] + "0" * 56)
    before = kept.read_bytes()
    run(*MODEL, "--votes", "1", "--store", tmp_path)  # the same answers out of storage: the same bytes
    monkeypatch.setattr(judge_calibrate, "known_cases", lambda: ideal[:2])
    assert "another known-answer set" in refused(*MODEL, "--votes", "1", "--store", tmp_path)
    assert kept.read_bytes() == before


@pytest.mark.parametrize("stored", [False, True])
def test_an_endpoint_that_changes_its_model_is_not_calibrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: bool
) -> None:
    ideal = tuple(case for case in known_cases() if case.kind == "ideal")[:2]
    monkeypatch.setattr(judge_calibrate, "known_cases", lambda: ideal)
    inner, ids = emulated("oracle").over(ideal), iter(["claude-judge-1", *["claude-judge-2"] * 99])

    class Moved:
        def complete(self, request: JudgeRequest) -> JudgeReply:
            return inner.complete(request).model_copy(update={"model": next(ids)})

    monkeypatch.setattr(judge_calibrate, "_live", lambda *_: Moved())
    words = (*MODEL, "--votes", "1", *(("--store", tmp_path) if stored else ()))
    assert "by claude-judge-2, the answers before it by claude-judge-1" in refused(*words)
    assert not list(tmp_path.glob("calibrations/*/gate.json"))


@pytest.mark.usefixtures("live")
def test_the_judge_of_a_sweep_is_calibrated_and_its_kin_are_named(tmp_path: Path) -> None:
    sweep = yaml.safe_load((EXAMPLES / "sweep.yaml").read_text())
    sweep["spec"]["judge"]["model"]["model"] = "claude-opus-9"
    path = tmp_path / "sweep.yaml"
    path.write_text(yaml.safe_dump(sweep))
    found = run("--sweep", path, *FEW[:2])
    assert "note: claude-sonnet-4-5 is of the judge's family (Anthropic)" in found.output
    path.write_text(yaml.safe_dump_all([{"kind": "ConfigMap"}, sweep, None]))  # what the sweep needs lies beside it
    assert run("--sweep", path, *FEW[:2]).output == found.output
    path.write_text(yaml.safe_dump_all([sweep, sweep]))
    assert "2 of its 2 documents are a BenchmarkSweep; expected one" in refused("--sweep", path)
    del sweep["spec"]["judge"]["model"]
    path.write_text(yaml.safe_dump(sweep))
    assert "judges by program alone, and there is nothing to calibrate" in refused("--sweep", path)


def test_what_is_asked_for_wrongly_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REALCLI_KEY_JUDGE", raising=False)
    assert "name one of --judge" in refused()
    assert "there is no emulated judge 'wise'" in refused("--judge", "emulated:wise")
    assert "--api is missing; expected anthropic, responses, chat" in refused("--judge", "m")
    assert "--only z" in refused("--judge", "emulated:oracle", "--only", "z")
    assert "only the gate of a model over the whole set is kept" in refused("--judge", "emulated:oracle", "--store", tmp_path)
    assert "REALCLI_KEY_JUDGE is not set" in refused(*MODEL)
    assert "realcli judge calibrate --record" in refused(*MODEL, "--replay", tmp_path / "none")
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text("kind: Nothing\n")
    assert "is no BenchmarkSweep" in refused("--sweep", sweep)
