"""A report from before a group grew, or before its judge was calibrated, is held against what there was then."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from realcli.api.sweepstatus import ControlEnd
from realcli.checks.digest import digest8
from realcli.known.gate import KNOWN_SET, Gate, Share, Stratum
from realcli.scoring.records import Group, WithdrawnTask
from realcli.storage.paths import calibration
from realcli_cli import main as command_line
from realcli_judge.inputs import Inputs
from realcli_judge.reporting import write_report
from tests.support.judged_sweep import OPUS, write_judged
from tests.support.sealed_sweep import SealedSweep

Run = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> SealedSweep:
    return write_judged(tmp_path_factory.mktemp("superseded") / "store", (OPUS,))


@pytest.fixture
def sweep(judged: SealedSweep, tmp_path: Path) -> SealedSweep:
    return judged.copy(tmp_path / "store")


@pytest.fixture
def verify(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`realcli verify-report FOLDER`: (exit status, what it says)."""

    def run(folder: Path) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["realcli", "verify-report", str(folder)])
        with pytest.raises(SystemExit) as ended:
            command_line.main()
        return int(ended.value.code or 0), capsys.readouterr().out

    return run


def report(sweep: SealedSweep, *withdrawn: WithdrawnTask) -> Path:
    """Its folder."""
    inputs = Inputs(sweep.config, sweep.store, sweep.root, sweep.lock, sweep.plan)
    return sweep.directory / write_report(inputs, list(withdrawn))[2]


def grow(sweep: SealedSweep) -> None:
    """The group of alpha, judged once more under the next number, with no failure labelled."""
    inputs = Inputs(sweep.config, sweep.store, sweep.root, sweep.lock, sweep.plan)
    judge8 = digest8(inputs.judge.content_digest())
    first = Group.model_validate_json(sweep.store.get(sweep.paths.group(judge8, OPUS, "alpha", 1)))
    grown = first.model_copy(update={"n": 2, "failures": None})
    sweep.store.put_once(sweep.paths.group(judge8, OPUS, "alpha", 2), grown.canonical())


def calibrate(sweep: SealedSweep) -> None:
    identity = Inputs(sweep.config, sweep.store, sweep.root, sweep.lock, sweep.plan).judge
    few, none = Share(hits=0, of=100), Share(hits=0, of=9)
    gate = Gate(
        judge=identity.content_digest(), identity=identity, known=KNOWN_SET, cases=3, answers=[], disagreements=[], s_ideal="1",
        verdicts=[Stratum(name="all", false_failures=few, misses=none, unscored=0)], passed=True, told="S is 1.",
    )  # fmt: skip
    sweep.store.put_once(calibration("p", digest8(gate.judge)), gate.canonical())


@pytest.mark.parametrize(
    ("later", "told"),
    [
        ((grow,), f"{OPUS}/alpha/group-2.json came after this report"),
        ((calibrate,), "/gate.json came after this report"),
        ((grow, calibrate), f"{OPUS}/alpha/group-2.json and 1 more came after this report"),
    ],
    ids=["a group grew", "the judge was calibrated", "both"],
)
def test_an_older_report_is_superseded_and_still_counted(
    sweep: SealedSweep, verify: Run, later: tuple[Callable[[SealedSweep], None], ...], told: str
) -> None:
    older = report(sweep)
    for change in later:
        change(sweep)
    newer = report(sweep)
    assert newer != older
    status, out = verify(older)
    assert (status, out.startswith("SUPERSEDED "), told in out, "WRONG" in out) == (0, True, True, False)
    status, out = verify(newer)
    assert (status, "SUPERSEDED" in out) == (0, False)
    path = older / "summary.json"
    summary: Any = json.loads(path.read_bytes())
    summary["counts"]["valid"] += 1
    path.write_text(json.dumps(summary))
    status, out = verify(older)
    assert (status, "SUPERSEDED" in out, "WRONG /counts/valid" in out) == (1, True, True)


def test_a_report_of_no_round_is_wrong(sweep: SealedSweep, verify: Run) -> None:
    older = report(sweep)
    grow(sweep)
    path = next((sweep.directory / sweep.root / "judgements").glob(f"*/{OPUS}/alpha/group-1.json"))
    path.write_bytes(path.read_bytes().replace(b'"attempt":1', b'"attempt":2', 1))
    status, out = verify(older)
    assert (status, "SUPERSEDED" in out, "WRONG /inputDigest" in out) == (1, False, True)


def test_a_failed_control_without_a_seal_is_the_operators_word(sweep: SealedSweep, verify: Run) -> None:
    end = ControlEnd(result="Failed", ordinal=6, attempt=1, number=2, detail="2 control pods said nothing")
    folder = report(sweep, WithdrawnTask(task="beta", reason="VerifierFault", configurations=[OPUS], control=end))
    status, out = verify(folder)
    note = "NOTE withdrawn task beta: no control of it left a seal (2 control pods said nothing); that it failed is the"
    assert (status, out.startswith(note)) == (0, True)
    sweep.store.put_once(sweep.paths.attempt(6, 1).control(1).seal, b"{}")
    status, out = verify(folder)
    assert status == 1
    assert "WRONG withdrawn task beta: its control names no seal, although trials/00006/attempt-1/control-1/seal.json lies" in out
