"""`spec.from` with phases [Judge]: planned from a judged sweep, judged and reported again, counted again offline."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from realcli.api.base import sha256_digest
from realcli.api.outcomes import Phase
from realcli.api.source import SourceRef
from realcli.api.termination import Result, Termination
from realcli.checks.digest import digest8
from realcli.judging.identity import identity_of
from realcli.scoring.records import Group
from realcli_cli.main import UserError
from realcli_cli.verify_report import verify_report
from realcli_session.inputs import trial_of, with_source
from realcli_session.plan import job as plan_job
from realcli_session.plan.probing import Finding, Target
from realcli_session.verify.session import _told
from tests.support.from_sweep import FromSweep, plan_from, planned, publish_mended
from tests.support.sealed_sweep import SealedSweep

ARCHIVE = "audits/first"


@pytest.fixture
def again(judged: SealedSweep) -> FromSweep:
    return plan_from(judged, ["Judge"])


class Reported(NamedTuple):
    """Judged and reported again, beside its source. Not to be changed: `copied` is."""

    source: SealedSweep
    sweep: FromSweep
    summary: Any
    folder: Path

    def copied(self, directory: Path) -> Path:
        """The report's folder in a copy of the whole store."""
        shutil.copytree(self.source.directory, directory)
        return directory / self.folder.relative_to(self.source.directory)


@pytest.fixture(scope="module")
def reported(judged_once: SealedSweep, tmp_path_factory: pytest.TempPathFactory) -> Reported:
    folder = tmp_path_factory.mktemp("from")
    source = judged_once.copy(folder / "store")
    sweep = plan_from(source, ["Judge"])
    return Reported(source, sweep, *report(sweep, folder / "log"))


def group_of(sweep: FromSweep, group: int) -> Group:
    cell = sweep.planned.coordinates(sweep.planned.ordinals_of_group(group)[0])
    judge8 = digest8(identity_of(sweep.lock.spec.judge).content_digest())
    return Group.model_validate_json(sweep.store.get(sweep.paths.group(judge8, cell.configuration, cell.task)))


def report(sweep: FromSweep, log: Path) -> tuple[Any, Path]:
    """(summary.json, its folder) after everything was judged."""
    for group in range(sweep.planned.groups):
        said = sweep.job(log, "judge", group)
        assert said.result is Result.JUDGED, said.message
    said = sweep.job(log, "report")
    assert said.result is Result.REPORTED, said.message
    folder = Path(str(said.uri).removeprefix("file://"))
    return json.loads((folder / "summary.json").read_bytes()), folder


def test_the_lock_is_the_source_s_with_what_it_counted(judged: SealedSweep, again: FromSweep) -> None:
    lock, plan = again.lock, again.planned
    assert lock.source is not None
    assert plan.source is not None
    assert (lock.source.sweep, lock.source.root) == (judged.lock.sweep, judged.root)
    assert (lock.tasks, lock.configurations, lock.repeats) == (judged.lock.tasks, judged.lock.configurations, 3)
    assert lock.spec.models == judged.lock.spec.models, "who reads the report sees what ran"
    assert lock.platform.operator_version == "0.4.0"
    assert any("no agent ran" in warning for warning in lock.warnings)
    assert (plan.judged_only, plan.source.sweep, plan.source.settled) == (True, ARCHIVE, [])
    assert (plan.source.exec.sealed, plan.source.collab.sealed, plan.source.collab.invalid) == (6, 5, 1)
    (lost,) = (ordinal for ordinal, member in judged.members.items() if member.phase is Phase.INVALID)
    assert plan.source.incomplete == [plan.group_of(lost)]
    for ordinal, member in judged.members.items():
        source = again.source(ordinal)
        assert source.member == member
        assert source.attempt == judged.paths.attempt(ordinal, member.attempt).root


def test_judged_again_it_says_what_the_source_said(reported: Reported, job: Any) -> None:
    summary, again = reported.summary, reported.sweep
    _, said = job("report", reported.source)
    before = json.loads((Path(str(said.uri).removeprefix("file://")) / "summary.json").read_bytes())
    for name in ("counts", "state", "taskList", "scenarios", "benchmark"):
        assert summary[name] == before[name], name
    rows = [{k: c[k] for k in ("exec", "collab", "sRate", "instances")} for c in summary["configurations"]]
    assert rows == [{k: c[k] for k in ("exec", "collab", "sRate", "instances")} for c in before["configurations"]]
    assert summary["source"]["sweep"]["name"] == "first"
    assert "source" not in before
    group = group_of(again, 0)
    assert (group.sweep_uid, group.lock_digest) == (again.lock.sweep.uid, again.planned.lock_digest)


def test_another_judge_is_asked_whether_it_answers_and_no_other_model_is(
    judged: SealedSweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def answers(targets: list[Target], *_: object) -> list[Finding]:
        asked.extend(target.where for target in targets)
        return [Finding("claude-judge-1", None, passing=False) for _ in targets]

    monkeypatch.setattr(plan_job, "_ask", answers)
    endpoint = {"url": "https://judge.example/v1", "apiKey": {"secretRef": {"name": "judge", "key": "key"}}}
    judge = {"model": {"model": "claude-judge", "endpoints": {"chat": endpoint}}}
    ref = SourceRef(uri=f"s3://evals/{judged.root}", lock_digest=judged.lock_digest)
    environ = {**judged.environ(), "REALCLI_KEY_JUDGE": "sk-judge-0123456789"}
    lock = planned(judged.store, environ, ref, ["Judge"], judge=judge).lock
    assert asked == ["spec.judge.model"]
    assert lock.judge_model == "claude-judge-1"
    assert [c.resolved_model for c in lock.configurations] == [c.resolved_model for c in judged.lock.configurations]
    assert any("of its own family" in warning for warning in lock.warnings)


def test_the_report_is_counted_again_beside_its_source(reported: Reported, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as done:
        verify_report(str(reported.folder))
    told = capsys.readouterr().out
    assert done.value.exit_code == 0, told
    assert "11 sealed ledgers; all are what the report says" in told


def test_a_report_without_its_source_says_what_is_missing(reported: Reported, tmp_path: Path) -> None:
    folder = reported.copied(tmp_path / "store")
    (tmp_path / "store" / reported.source.root).rename(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="copy that folder beside"):
        verify_report(str(folder))


def test_what_was_exchanged_since_the_plan_is_not_judged(judged: SealedSweep, again: FromSweep, tmp_path: Path) -> None:
    ordinal = again.planned.ordinals_of_group(0)[0]
    source = again.source(ordinal)
    better = source.model_copy(update={"member": source.member.model_copy(update={"reward": "0.5"})})
    (Path(judged.directory) / again.paths.source(ordinal)).write_bytes(better.canonical())
    said = again.job(tmp_path / "log", "judge", 0)
    assert (said.result, said.reason) == (Result.REFUSED, "EvidenceChanged")
    assert "changed since the sweep was planned" in str(said.message)


def test_of_a_sweep_that_was_made_the_same_way(reported: Reported, tmp_path: Path) -> None:
    """from of from: the runs are still where they were made."""
    source, again = reported.source.copy(tmp_path / "store"), reported.sweep
    ref = SourceRef(uri=f"s3://evals/{again.root}", lock_digest=again.planned.lock_digest)
    third = plan_from(source, ["Judge"], name="third", ref=ref)
    assert third.said.result is Result.PLANNED, third.said.message
    assert third.source(0).attempt == source.paths.attempt(0, 1).root
    assert third.job(tmp_path / "log", "judge", 0).result is Result.JUDGED


def test_fewer_tasks_have_their_own_ordinals(judged: SealedSweep, tmp_path: Path) -> None:
    made = plan_from(judged, ["Judge"], benchmark={"tasks": {"exclude": ["alpha"]}})
    plan = made.planned
    assert [task.name for task in plan.tasks] == ["beta"]
    first = made.source(0)
    assert (first.member.ordinal, first.trial.task) == (judged.plan.ordinals_of_group(1)[0], "beta")
    assert made.job(tmp_path / "log", "judge", 0).result is Result.JUDGED
    group = group_of(made, 0)
    assert [member.ordinal for member in group.members] == list(range(6))
    assert any("1 of the 2 tasks" in warning for warning in made.lock.warnings)


def test_a_withdrawn_task_is_not_taken_over(judged: SealedSweep) -> None:
    ref = SourceRef(uri=f"s3://evals/{judged.root}", lock_digest=judged.lock_digest, withdrawn=["beta"])
    made = plan_from(judged, ["Judge"], ref=ref)
    assert [task.name for task in made.planned.tasks] == ["alpha"]
    assert any("beta: withdrawn by the source" in warning for warning in made.lock.warnings)


def test_a_withdrawn_task_is_verified_again(judged: SealedSweep) -> None:
    """It was never judged, so there is no group file: its seals say which attempt it is. Its tests may be mended."""
    for path in Path(judged.directory, judged.root).glob("judgements/*/*/beta/group-1.json"):
        path.unlink()
    ref = SourceRef(uri=f"s3://evals/{judged.root}", lock_digest=judged.lock_digest, withdrawn=["beta"])
    made = plan_from(judged, ["Verify", "Judge"], ref=ref, benchmark={"source": publish_mended(judged)})
    plan = made.planned
    assert [task.name for task in plan.tasks] == ["alpha", "beta"]
    for ordinal in plan.ordinals_of_group(1):
        source, there = made.source(ordinal), judged.members[ordinal]
        assert (source.group, source.member.reason, source.member.work_seal) == (None, "VerifierFault", there.work_seal)
        assert source.attempt == judged.paths.attempt(ordinal, there.attempt if there.work_seal else 1).root
        assert source.verifiable is (there.work_seal is not None)
    assert plan.source is not None
    assert [one.reason for one in plan.source.settled] == ["VerifierFault"], "the one that left no state"
    assert any("beta: withdrawn by the source, what its runs sealed is verified again" in text for text in made.lock.warnings)


def test_to_verify_again_what_left_no_state_is_settled(judged: SealedSweep) -> None:
    made = plan_from(judged, ["Verify", "Judge"], benchmark={"source": publish_mended(judged)})
    source = made.planned.source
    assert source is not None
    lost = [(ordinal, m.reason) for ordinal, m in judged.members.items() if m.phase is Phase.INVALID]
    assert [(one.ordinal, one.reason) for one in source.settled] == lost
    assert source.verify
    assert made.lock.benchmark.version == "1.1.0"
    assert {task.verifier_seconds for task in made.lock.tasks} == {90.0}
    assert {task.private_bundle for task in made.lock.tasks} != {task.private_bundle for task in judged.lock.tasks}


GROUP = "judgements/*/claude-code.sonnet/alpha/group-1.json"


def test_a_source_that_is_not_complete(judged: SealedSweep) -> None:
    next(Path(judged.directory, judged.root).glob(GROUP)).unlink()
    said = plan_from(judged, ["Judge"]).said
    assert (said.result, said.reason) == (Result.REFUSED, "SourceIncomplete")
    assert "1 of 2 groups of audits/first are not judged (the first: claude-code.sonnet, alpha)" in str(said.message)


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("work seal gone", "work-seal.json does not exist"),
        ("work seal changed", "work-seal.json has the digest"),
        ("verify seal changed", "verify-1/seal.json has the digest"),
        ("lock changed", "sweep.json has the digest"),
        ("group of another sweep", "is of another sweep or group"),
    ],
)
def test_what_is_not_as_it_was_sealed(judged: SealedSweep, what: str, told: str) -> None:
    folder = Path(judged.directory)
    paths = judged.paths.attempt(0, 1)
    ref = None
    match what:
        case "work seal gone":
            (folder / paths.work_seal).unlink()
        case "work seal changed":
            _append(folder / paths.work_seal)
        case "verify seal changed":
            _append(folder / paths.verify(1).seal)
        case "lock changed":
            ref = SourceRef(uri=f"s3://evals/{judged.root}", lock_digest=sha256_digest(b"another"))
        case _:
            path = next((folder / judged.root).glob(GROUP))
            group = Group.model_validate_json(path.read_bytes())
            path.write_bytes(group.model_copy(update={"sweep_uid": "another"}).canonical())
    said = plan_from(judged, ["Judge"], ref=ref).said
    assert (said.result, said.reason) == (Result.REFUSED, "SourceChanged")
    assert told in str(said.message)


def _append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


UNLIKE: dict[str, tuple[dict[str, Any], dict[str, bytes] | None, str]] = {
    "another image": ({"image": "other:2"}, None, "image is 'other:2', the runs were made with 'demo:1'"),
    "another script": ({}, {"interaction/script.json": b"{}"}, "interaction/script.json of its private files differ"),
    "data of the run": ({}, {"run/app/id": b"${run.nonce}"}, "run/app/id of its private files differ"),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_a_benchmark_whose_tasks_are_others(judged: SealedSweep, name: str) -> None:
    fields, change, told = UNLIKE[name]
    said = plan_from(judged, ["Verify", "Judge"], benchmark={"source": publish_mended(judged, change=change, **fields)}).said
    assert (said.result, said.reason) == (Result.REFUSED, "SourceUnlike")
    assert told in str(said.message)


def test_to_judge_again_the_benchmark_is_the_same(judged: SealedSweep) -> None:
    said = plan_from(judged, ["Judge"], benchmark={"source": publish_mended(judged)}).said
    assert (said.result, said.reason) == (Result.REFUSED, "SourceUnlike")
    assert "leave benchmark out, or add Verify" in str(said.message)


SAID: dict[str, tuple[dict[str, Any], str]] = {
    "modes": ({"modes": ["EXEC"]}, "spec.modes: EXEC; the source ran COLLAB, EXEC: leave it out"),
    "repeats": ({"repeats": 5}, "spec.repeats: 5; the source has 3: leave it out"),
    "turns": ({"limits": {"turns": 9}}, "spec.limits.turns: another than the source's"),
    "deadline": ({"limits": {"exec": {"deadline": "9h"}}}, "spec.limits.exec: another than the source's"),
    "bucket": ({"storage": {"bucket": "other", "credentials": {"secretRef": {"name": "s"}}}}, "but the source lies in evals"),
}


@pytest.mark.parametrize("name", SAID)
def test_what_ran_is_not_asked_for_again(judged: SealedSweep, name: str) -> None:
    spec, told = SAID[name]
    said = plan_from(judged, ["Judge"], **spec).said
    assert (said.result, said.reason) == (Result.REFUSED, "ConfigurationError")
    assert told in str(said.message)


VERIFIABLE = [
    (Phase.SEALED, "Completed", True, True),
    (Phase.SEALED, "AgentOutOfMemory", False, False),
    (Phase.INVALID, "VerifierFault", True, True),  # a mended verifier is what it waits for
    (Phase.INVALID, "VerifierFault", False, False),
    (Phase.INVALID, "SessionLost", True, False),
]


@pytest.mark.parametrize(("phase", "reason", "sealed", "expected"), VERIFIABLE)
def test_which_runs_can_be_verified_again(reported: Reported, phase: Phase, reason: str, sealed: bool, expected: bool) -> None:
    source = reported.sweep.source(0)
    digest = source.member.work_seal if sealed else None
    member = source.member.model_copy(update={"phase": phase, "reason": reason, "work_seal": digest})
    assert source.model_copy(update={"member": member}).verifiable is expected


def test_the_session_reads_the_run_where_it_was_made_and_seals_in_its_own_place(reported: Reported) -> None:
    sweep = reported.sweep
    digest = sweep.planned.lock_digest
    trial = with_source(sweep.store, trial_of(sweep.lock, sweep.root, digest, 0, 1), sweep.root, digest)
    source = sweep.source(0)
    assert (trial.work.root, trial.sealed_as) == (source.attempt, source.trial)
    assert trial.paths.root == f"{sweep.root}/trials/00000/attempt-1"
    assert trial.identity.sweep == "again"
    message = Termination(phase="Verify", result=Result.VERDICT, reason="RunnerLost", reward="0")
    assert _told(trial, message).reason == "RunnerLost"
    seen = source.model_copy(update={"member": source.member.model_copy(update={"reason": "AgentOutOfMemory"})})
    told = _told(replace(trial, source=seen), message)
    assert (told.reason, told.uri) == ("AgentOutOfMemory", source.uri), "only the source's operator saw why"


def test_planned_twice_it_is_the_same_plan(judged: SealedSweep, again: FromSweep) -> None:
    assert plan_from(judged, ["Judge"]).said == again.said
