"""`realcli verify-report`: nothing in a report can be changed, nor in what it rests on, without the number being named."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from realcli_cli import main as command_line
from realcli_judge.__main__ import main as judge
from realcli_judge.inputs import Inputs
from realcli_judge.reporting import write_report
from tests.support.judged_sweep import write_judged
from tests.support.sealed_sweep import DEEDS, Deed, SealedSweep, write_sweep

Run = Callable[..., tuple[int, str, str]]


def reported(sweep: SealedSweep) -> SealedSweep:
    write_report(Inputs(sweep.config, sweep.store, sweep.root, sweep.lock, sweep.plan))
    return sweep


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> SealedSweep:
    return reported(write_judged(tmp_path_factory.mktemp("verified") / "store"))


@pytest.fixture
def sweep(whole: SealedSweep, tmp_path: Path) -> Path:
    """The folder of a copied sweep, free to be damaged."""
    copy = whole.copy(tmp_path / "store")
    return copy.directory / copy.root


@pytest.fixture
def realcli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`realcli …`: (exit status, standard output, standard error)."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["realcli", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            command_line.main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return run


@pytest.fixture(scope="session")
def judged_by_program(tmp_path_factory: pytest.TempPathFactory) -> SealedSweep:
    """With an invalid trial, one that left no seal, and one whose probe did not come."""
    folder = tmp_path_factory.mktemp("program")
    deeds = {**DEEDS, ("beta", "COLLAB", 1): Deed(sealed=False, reason="AgentDiskLimit")}
    sweep = write_sweep(folder / "store", deeds)
    for group in (0, 1, None):
        job = "report" if group is None else "judge"
        judge([job, "--root", sweep.root, "--lock-digest", sweep.lock_digest], sweep.environ(group, folder / "log"))
    return sweep


def report_of(sweep: Path) -> Path:
    return next((sweep / "reports").iterdir())


def edit(path: Path, change: Callable[[Any], None]) -> None:
    value = json.loads(path.read_bytes())
    change(value)
    path.unlink()
    path.write_text(json.dumps(value))


def test_a_sound_report_is_met_number_by_number(sweep: Path, realcli: Run) -> None:
    status, out, _ = realcli("verify-report", sweep)
    assert (status, out.count("WRONG")) == (0, 0)
    assert "23 sealed ledgers; all are what the report says" in out
    assert int(out.split()[0]) > 2000
    assert realcli("verify-report", report_of(sweep))[:2] == (status, out)
    assert realcli("verify-report", sweep.parents[3])[:2] == (status, out)  # a folder above it will do


def _set(*path: str | int, to: Any) -> Callable[[Any], None]:
    def change(value: Any) -> None:
        for step in path[:-1]:
            value = value[step]
        value[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_set("configurations", 1, "collab", "r", "exact", to="5/6"),
         "/configurations/1/collab/r: the report says 5/6, the evidence gives 2/3"),
        (_set("configurations", 1, "collab", "r", "text", to="0.767"), "/configurations/1/collab/r: the report says 2/3"),
        (_set("configurations", 1, "collab", "r", "value", to=0.7), "/configurations/1/collab/r: the report says 2/3"),
        (_set("configurations", 0, "sRate", "interval", "low", to=0.5), "/configurations/0/sRate/interval/low: the report says"),
        (_set("configurations", 0, "sRate", "interval", "text", to="0.9 to 1"), "/configurations/0/sRate/interval: its text"),
        (_set("configurations", 0, "spent", "EXEC", "usd", "text", to="$9"), "/configurations/0/spent/EXEC/usd: its text"),
        (_set("configurations", 0, "partial", to=False), "/configurations/0/partial: the report says False"),
        (_set("configurations", 1, "dimensions", "S", "exact", to="1"), "/configurations/1/dimensions/S: the report says 1"),
        (_set("scenarios", 0, "passes", to=99), "/scenarios/0/passes: the report says 99"),
        (_set("audits", 1, "contaminated", "S", to=0), "/audits/1/contaminated/S: the report says 0, the evidence gives 1"),
        (_set("trials", 5, "reward", to="0.9"), "/trials/5/reward: the report says 0.9"),
        (_set("judge", "byJudge", to=1), "/judge/byJudge: the report says 1, the evidence gives 60"),
        (_set("failures", 0, "runs", to=7), "/failures/0/runs: the report says 7"),
        (_set("taskList", 1, "passToFail", to=0), "/taskList/1/passToFail: the report says 0, the evidence gives 2"),
        (_set("analyses", 0, "rows", 0, 1, to=44), "/analyses/0/rows/0/1: the report says 44"),
        (_set("counts", "won", to=3), "/counts/won: the report says 3, and no evidence gives such a number"),
        (_set("inputDigest", to="sha256:" + "0" * 64), "/inputDigest: the report counts from sha256:000"),
    ],
)  # fmt: skip
def test_a_number_of_the_report_that_was_changed_is_named(sweep: Path, realcli: Run, change: Any, told: str) -> None:
    edit(report_of(sweep) / "summary.json", change)
    status, out, _ = realcli("verify-report", sweep)
    assert status == 1
    assert f"WRONG {told}" in out


def judgement(sweep: Path, kind: str = "repeat-1-*[0-9a-f].json") -> Path:
    return sorted((sweep / "judgements").glob(f"*/claude-code.opus/alpha/{kind}"))[0]


def test_a_verdict_that_was_changed_moves_numbers_and_the_digest(sweep: Path, realcli: Run) -> None:
    edit(judgement(sweep), _set("instances", 0, "checks", 0, "verdict", to="0"))
    status, out, _ = realcli("verify-report", sweep)
    assert status == 1
    assert "/inputDigest" in out
    assert "/configurations/0/sRate: the report says 1, the evidence gives " in out
    assert "tables/runs.json: claude-code.opus, alpha, COLLAB, 1 is another run than the evidence gives" in out


def test_an_audit_that_was_changed_moves_numbers(sweep: Path, realcli: Run) -> None:
    edit(judgement(sweep, "repeat-1-*.audit.json"), _set("contaminated", to={"wide": "said so"}))
    status, out, _ = realcli("verify-report", sweep)
    assert status == 1
    assert "/configurations/0/instances/contaminated: the report says 0, the evidence gives 1" in out


def test_a_reward_that_no_seal_gives_is_named(sweep: Path, realcli: Run) -> None:
    group = next((sweep / "judgements").glob("*/claude-code.sonnet/beta/group-1.json"))
    members = json.loads(group.read_bytes())["members"]
    at = next(i for i, m in enumerate(members) if (m["mode"], m["repeat"]) == ("COLLAB", 1))
    edit(group, _set("members", at, "reward", to="1"))
    edit(report_of(sweep) / "summary.json", _set("trials", members[at]["ordinal"], "reward", to="1"))
    status, out, _ = realcli("verify-report", sweep)
    assert status == 1
    assert f"/trials/{members[at]['ordinal']}/reward: the report says 1, the evidence gives 0" in out


def test_a_ledger_that_was_changed_is_named(sweep: Path, realcli: Run) -> None:
    segment = sweep / "trials" / "00004" / "attempt-1" / "ledger" / "000001.jsonl"
    data = segment.read_bytes()
    segment.unlink()
    segment.write_bytes(data.replace(b"plan", b"plot"))
    status, out, _ = realcli("verify-report", sweep)
    assert status == 1
    assert "WRONG trial 4: " in out


def test_a_record_that_is_gone_is_named(sweep: Path, realcli: Run) -> None:
    judgement(sweep).unlink()
    status, out, _ = realcli("verify-report", sweep)
    assert status == 1
    assert "repeat-1-" in out
    assert "does not exist" in out


def test_the_lock_is_held_against_its_digest(sweep: Path, realcli: Run) -> None:
    lock = sweep / "sweep.json"
    data = lock.read_bytes()
    lock.unlink()
    lock.write_bytes(data + b"\n")
    status, out, _ = realcli("verify-report", sweep)
    assert (status, "WRONG sweep.json has the digest" in out) == (1, True)


def test_a_program_judged_sweep_with_invalid_and_unsealed_trials(judged_by_program: SealedSweep, realcli: Run) -> None:
    status, out, _ = realcli("verify-report", judged_by_program.directory)
    assert (status, out.count("WRONG")) == (0, 0), out


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: None, "0 sweeps lie here; expected the folder of one"),
        (lambda path: (path / "sweep.json").write_text("{}"), "holds 0 reports; name the folder of one"),
        (
            lambda path: (path / "summary.json").write_text("{}"),
            "is a report, but its sweep is not above it; name it with --sweep",
        ),
    ],
)
def test_what_is_missing_is_said(tmp_path: Path, realcli: Run, make: Callable[[Path], Any], told: str) -> None:
    make(tmp_path)
    status, _, err = realcli("verify-report", tmp_path)
    assert (status, told in err) == (2, True), err
