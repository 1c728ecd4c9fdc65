"""`spec.from` with phases [Judge] of runs that a control decided: it lies at the source, under the source's ordinal."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from realcli.api.base import sha256_digest
from realcli.api.outcomes import Phase
from realcli.api.source import SourceRef
from realcli.api.sweepstatus import ControlEnd
from realcli.api.termination import Result
from realcli.ledger.seals import ControlSeal, SealedObject
from realcli_cli.verify_report import verify_report
from realcli_judge.group import trial_of
from realcli_judge.inputs import Inputs
from tests.support.from_sweep import FromSweep, plan_from
from tests.support.sealed_sweep import SealedSweep


def control(sweep: SealedSweep, ordinal: int, *, passed: bool) -> ControlEnd:
    """A sealed control of the trial's task."""
    inputs = Inputs(sweep.config, sweep.store, sweep.root, sweep.lock, sweep.plan)
    member = sweep.members[ordinal]
    paths = sweep.paths.attempt(ordinal, member.attempt).control(1)
    verdict = json.dumps({"passed": passed}).encode()
    sweep.store.put_once(paths.verdict, verdict)
    covered = SealedObject(path="verdict.json", sha256=sha256_digest(verdict).removeprefix("sha256:"), size=len(verdict))
    seal = ControlSeal(
        trial=trial_of(inputs, member), control=1, run="sha256:" + "0" * 64, passed=passed,
        reason=None if passed else "NoReward", verifier_version="1", image="beta:1", objects=[covered],
    ).seal()  # fmt: skip
    sweep.store.put_once(paths.seal, seal)
    result = "Passed" if passed else "Failed"
    return ControlEnd.model_validate(
        {"result": result, "ordinal": ordinal, "attempt": member.attempt, "number": 1, "seal": sha256_digest(seal)}
    )


@dataclass(frozen=True)
class Controlled:
    """The source, a sweep of its runs of beta, one of that sweep's runs, and what the report of the last says."""

    store: Path
    source: SealedSweep
    first: FromSweep
    second: FromSweep
    folder: Path
    summary: Any


@pytest.fixture(scope="module")
def made(sealed_once: SealedSweep, job_in: Any, tmp_path_factory: pytest.TempPathFactory) -> Controlled:
    folder = tmp_path_factory.mktemp("controls")
    source = sealed_once.copy(folder / "store")
    of_beta = [o for o in source.plan.ordinals_of_group(1) if source.members[o].mode == "EXEC"]
    hung, other = of_beta[0], of_beta[1]
    end = control(source, hung, passed=True)
    gone: dict[str, Any] = {"verify_attempt": None, "seal": None, "control": end}
    source.members[hung] = source.members[hung].model_copy(update={**gone, "reason": "VerifierTimeout", "reward": "0"})
    source.members[other] = source.members[other].model_copy(
        update={**gone, "reason": "VerifierFault", "reward": None, "phase": Phase.INVALID}
    )
    for group in range(source.plan.groups):
        assert job_in(folder)("judge", source, group)[1].result is Result.JUDGED
    first = plan_from(source, ["Judge"], benchmark={"tasks": {"exclude": ["alpha"]}})
    judged(first, folder / "log")
    ref = SourceRef(uri=f"s3://evals/{first.root}", lock_digest=first.planned.lock_digest)
    second = plan_from(source, ["Judge"], name="third", ref=ref)
    return Controlled(folder / "store", source, first, second, *judged(second, folder / "log"))


def judged(sweep: FromSweep, log: Path) -> tuple[Path, Any]:
    """(folder of the report, its summary), after every group was judged."""
    for group in range(sweep.planned.groups):
        said = sweep.job(log, "judge", group)
        assert said.result is Result.JUDGED, said.message
    said = sweep.job(log, "report")
    assert said.result is Result.REPORTED, said.message
    folder = Path(str(said.uri).removeprefix("file://"))
    return folder, json.loads((folder / "summary.json").read_bytes())


def test_what_it_decided_is_taken_over(made: Controlled) -> None:
    ended = {(t["reason"], t["phase"], t.get("reward")): t for t in made.summary["trials"] if "control" in t}
    assert set(ended) == {("VerifierTimeout", "Sealed", "0"), ("VerifierFault", "Invalid", None)}
    (hung,) = (o for o, m in made.source.members.items() if m.reason == "VerifierTimeout")
    for trial in ended.values():
        assert trial["control"]["ordinal"] == hung, "where it lies, which is no ordinal of this sweep"
        assert trial["ordinal"] < made.second.planned.size <= hung + 1
    assert made.summary["counts"]["invalid"] == 2, "that one, and one that its provider ended"


def test_it_is_counted_again_from_the_seal_at_the_source(made: Controlled, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as done:
        verify_report(str(made.folder))
    told = capsys.readouterr().out
    assert done.value.exit_code == 0, told
    (seal,) = made.store.glob(f"{made.source.root}/trials/*/attempt-*/control-1/seal.json")
    moved = seal.rename(seal.with_name("elsewhere"))
    with pytest.raises(typer.Exit) as done:
        verify_report(str(made.folder))
    moved.rename(seal)
    assert done.value.exit_code == 1
    assert "is not the seal" in capsys.readouterr().out
