"""A report that leaves a task out for all configurations: its numbers by hand, and counted again."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from realcli.api.base import sha256_digest
from realcli.api.sweepstatus import ControlEnd
from realcli.ledger.seals import ControlSeal, SealedObject
from realcli.scoring.records import WithdrawnTask
from realcli_cli.recount.evidence import read_sweep
from realcli_cli.verify_report import _counted, _document, _said
from realcli_judge.group import trial_of
from realcli_judge.inputs import Inputs
from realcli_judge.reporting import write_report
from tests.support.judged_sweep import OPUS, SONNET, write_judged
from tests.support.sealed_sweep import SealedSweep


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """To be read alone."""
    return withdrawn(write_judged(tmp_path_factory.mktemp("withdrawn") / "store"))


def withdrawn(sweep: SealedSweep) -> tuple[Path, dict[str, Any]]:
    """(folder of the sweep, summary.json) of a report that leaves beta out; its control is sealed and failed."""
    inputs = Inputs(sweep.config, sweep.store, sweep.root, sweep.lock, sweep.plan)
    member = next(m for m in sweep.members.values() if sweep.plan.coordinates(m.ordinal).task == "beta")
    paths = sweep.paths.attempt(member.ordinal, 1).control(1)
    verdict = b'{"passed":false}'
    sweep.store.put_once(paths.verdict, verdict)
    covered = SealedObject(path="verdict.json", sha256=sha256_digest(verdict).removeprefix("sha256:"), size=len(verdict))
    seal = ControlSeal(
        trial=trial_of(inputs, member.model_copy(update={"attempt": 1})), control=1, run="sha256:" + "0" * 64, passed=False,
        reason="NoReward", verifier_version="1", image="beta:1", objects=[covered],
    ).seal()  # fmt: skip
    sweep.store.put_once(paths.seal, seal)
    end = ControlEnd(
        result="Failed", ordinal=member.ordinal, attempt=1, number=1, seal=sha256_digest(seal), detail="no reward file"
    )
    task = WithdrawnTask(task="beta", reason="VerifierFault", configurations=[OPUS, SONNET], control=end)
    _, _, folder = write_report(inputs, [task])
    return sweep.directory / sweep.root, json.loads((sweep.directory / folder / "summary.json").read_bytes())


def counted(root: Path, summary: dict[str, Any]) -> list[str]:
    """What is wrong."""
    (report,) = (root / "reports").iterdir()
    return _counted(read_sweep(root, summary), root, report, summary)[1]


def test_a_withdrawn_task_is_in_no_number_of_any_configuration(reported: tuple[Path, dict[str, Any]]) -> None:
    root, summary = reported
    # Of alpha: opus solves all; sonnet fails EXEC 1 and 2 and solves the rest. Half of the 24 trials are beta's.
    assert summary["counts"] == {
        "trials": 24, "valid": 12, "invalid": 0, "missing": 0, "groups": 4, "groupsJudged": 2, "groupsIncomplete": 0,
        "groupsWithdrawn": 2, "tasksWithdrawn": 1, "withdrawn": 12,
    }  # fmt: skip
    assert summary["state"] == "Incomplete"
    rates = {c["name"]: (c["exec"]["r"]["exact"], c["collab"]["r"]["exact"]) for c in summary["configurations"]}
    assert rates == {OPUS: ("1", "1"), SONNET: ("1/3", "1")}
    assert [(c["exec"]["valid"], c["exec"]["invalid"], c["exec"]["missing"]) for c in summary["configurations"]] == [
        (3, 0, 0)
    ] * 2
    assert {t["task"] for t in summary["trials"] if t["phase"] == "Withdrawn"} == {"beta"}
    beta = next(t for t in summary["taskList"] if t["name"] == "beta")
    assert beta["withdrawn"] == f"its own tests fail with the reference solution (no reward file); met by {OPUS}, {SONNET}"
    assert "suspect" not in beta
    assert "rExec" not in beta
    flag = next(f for f in summary["flags"] if f["code"] == "withdrawn")
    assert flag["text"].startswith("12 of 24 trials are left out, for all configurations: the tests of beta fail")
    runs = json.loads(next((root / "reports").glob("*/tables/runs.json")).read_bytes())
    assert {run["task"] for run in runs["runs"]} == {"alpha"}
    page = next((root / "reports").glob("*/index.html")).read_text()
    assert "withdrawn" in page
    assert counted(root, summary) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda s: s["counts"].update(withdrawn=11), "/counts/withdrawn"),
        (lambda s: s["trials"][-1].update(phase="Missing"), "/phase: the report says Missing"),
        (lambda s: s["withdrawn"].clear(), "beta"),
        (lambda s: s["withdrawn"][0].update(configurations=[]), "/withdrawn: no withdrawn-<digest>.json"),
        (lambda s: s.update(flags=[f for f in s["flags"] if f["code"] != "withdrawn"]), "the evidence asks for withdrawn"),
    ],
    ids=["a count", "a phase", "no list", "another list", "no flag"],
)
def test_what_a_report_says_of_withdrawn_tasks_is_held_against_what_was_written_down(
    reported: tuple[Path, dict[str, Any]], change: Any, told: str
) -> None:
    root, summary = reported
    changed = copy.deepcopy(summary)
    change(changed)
    found = read_sweep(root, changed)
    _, about, wrong = _said(found, root, changed, _document(found, changed))
    assert any(told in line for line in (*found.wrong, *about, *wrong))


def test_a_control_that_is_not_there_or_passed_is_told(reported: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    sound, summary = reported
    root = shutil.copytree(sound, tmp_path / "sweep")
    (seal,) = root.glob("trials/*/attempt-1/control-1/seal.json")
    shutil.move(seal, seal.with_name("gone"))
    assert any("is not the seal" in line for line in counted(root, summary))
