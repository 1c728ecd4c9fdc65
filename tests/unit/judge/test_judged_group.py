"""The judge Job with a model: what it writes, that it resumes after every write, and what ends it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from realcli.api.outcomes import Phase
from realcli.audit.model import AuditRecord
from realcli.checks.digest import digest8
from realcli.judging.identity import identity_of
from realcli.judging.model import Exchange, JudgeReply, JudgeRequest
from realcli.judging.port import BackendUnavailable, RequestTooLarge
from realcli.scoring.records import Failures, Group, RepeatJudgement
from realcli.storage.port import ObjectInfo, ObjectStore
from realcli_judge.inputs import Inputs, Refused
from realcli_judge.judging import failed, judge_group
from tests.support.sealed_sweep import SealedSweep, write_sweep
from tests.support.stand_in import JUDGE, StandIn

KEY = {"REALCLI_KEY_JUDGE": "k"}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> SealedSweep:
    return write_sweep(tmp_path_factory.mktemp("with-judge") / "store", judge=JUDGE)


@pytest.fixture
def sweep(written: SealedSweep, tmp_path: Path) -> SealedSweep:
    return written.copy(tmp_path / "store")


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    made = StandIn()
    monkeypatch.setattr("realcli_judge.asking.open_backend", lambda model, environ: made)
    return made


def inputs(sweep: SealedSweep, store: ObjectStore | None = None) -> Inputs:
    return Inputs(sweep.config, store or sweep.store, sweep.root, sweep.lock, sweep.plan)


def folder(sweep: SealedSweep) -> str:
    return sweep.paths.judgements(digest8(identity_of(sweep.lock.spec.judge).content_digest()), "claude-code.sonnet", "alpha")


def files(sweep: SealedSweep) -> dict[str, bytes]:
    base = folder(sweep) + "/"
    return {item.key.removeprefix(base): sweep.store.get(item.key) for item in sweep.store.list(base)}


def judge(sweep: SealedSweep, store: ObjectStore | None = None) -> tuple[Group, str]:
    return judge_group(inputs(sweep, store), sweep.group_input(0), KEY)


def test_what_is_written(sweep: SealedSweep, stand_in: StandIn) -> None:
    group, _ = judge(sweep)
    found = files(sweep)
    exchanges = {name for name in found if name.startswith("exchanges/")}
    assert {f"exchanges/{request.key}.json" for request in stand_in.asked} == exchanges
    assert set(found) - exchanges == {"group-1.json", "failures-1.json", *group.judgements.values(), *group.audits.values()}
    assert sorted(group.judgements) == sorted(group.audits) == ["1", "2", "3"]
    assert group.identity == identity_of(sweep.lock.spec.judge)
    assert group.cost is not None
    assert group.cost.requests == len(stand_in.asked)
    assert group.cost.cost_usd is not None
    assert sorted(group.facts) == ["0", "1", "2", "3", "4", "5"]
    assert group.facts["1"].turns is not None
    judgement = RepeatJudgement.model_validate_json(found[group.judgements["1"]])
    assert judgement.work_seal == sweep.members[0].work_seal
    assert {c.by for i in judgement.generic for c in i.checks} == {"judge", "program"}
    assert all(c.verdict != "unscored" for i in (*judgement.instances, *judgement.generic) for c in i.checks)
    assert all(AuditRecord.model_validate_json(found[name]).judge == group.judge for name in group.audits.values())
    labels = Failures.model_validate_json(found["failures-1.json"]).failures
    assert [(one.ordinal, one.label, one.by) for one in labels] == [
        (2, "functional-or-boundary", "judge"), (5, "functional-or-boundary", "judge"),
    ]  # fmt: skip


def test_every_answer_leads_to_the_exchange_it_came_from(sweep: SealedSweep, stand_in: StandIn) -> None:
    group, _ = judge(sweep)
    found = files(sweep)
    judgement = RepeatJudgement.model_validate_json(found[group.judgements["2"]])
    answers = [a for i in (*judgement.instances, *judgement.generic) for c in i.checks for a in c.answers]
    assert answers
    for answer in answers:
        exchange = Exchange.model_validate_json(found[f"exchanges/{answer.exchanges[0]}.json"])
        assert answer.check_id in exchange.request.about
        assert exchange.request.vote == answer.vote
        assert any(use.name == "answer" for use in exchange.reply.message.uses)


def test_part_a_sees_neither_reward_nor_audit(sweep: SealedSweep, stand_in: StandIn) -> None:
    judge(sweep)
    for request in stand_in.asked:
        if request.purpose in ("checks", "claims"):
            text = "".join(message.canonical().decode() for message in request.messages)
            assert "reward" not in text
            assert "checks passed" not in text
            assert "sim_" not in text


def test_again_asks_nothing_and_changes_nothing(sweep: SealedSweep, stand_in: StandIn) -> None:
    first, before = judge(sweep), files(sweep)
    stand_in.asked.clear()
    assert judge(sweep) == first
    assert (stand_in.asked, files(sweep)) == ([], before)


class Killed(BaseException):
    """The pod is gone."""


class Killing:
    """A store whose program is killed right after its n-th write."""

    def __init__(self, store: ObjectStore, at: int) -> None:
        self._store, self._left = store, at

    def put_once(self, key: str, data: bytes | Path) -> None:
        if self._left <= 0:
            raise Killed
        self._store.put_once(key, data)
        self._left -= 1
        if self._left == 0:
            raise Killed

    def get(self, key: str) -> bytes:
        return self._store.get(key)

    def download(self, key: str, path: Path) -> None:
        self._store.download(key, path)

    def exists(self, key: str) -> bool:
        return self._store.exists(key)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        return self._store.list(prefix)

    def describe(self) -> str:
        return self._store.describe()


@pytest.fixture(scope="module")
def whole(written: SealedSweep, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    sweep = written.copy(tmp_path_factory.mktemp("whole") / "store")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("realcli_judge.asking.open_backend", lambda model, environ: StandIn())
        judge(sweep)
    return files(sweep)


def resumes(sweep: SealedSweep, whole: dict[str, bytes], at: int, stand_in: StandIn) -> None:
    with pytest.raises(Killed):
        judge(sweep, Killing(sweep.store, at))
    held = set(files(sweep))
    assert len(held) == at
    stand_in.asked.clear()
    judge(sweep)
    assert files(sweep) == whole
    stored = {name for name in held if name.startswith("exchanges/")}
    assert not {f"exchanges/{request.key}.json" for request in stand_in.asked} & stored  # nothing stored is asked again


@pytest.mark.parametrize("part", [0.0, 0.9, 1.0])
def test_a_killed_job_resumes(
    sweep: SealedSweep, whole: dict[str, bytes], stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, part: float
) -> None:
    monkeypatch.setattr("realcli_judge.asking.in_threads", lambda jobs: [job() for job in jobs])
    resumes(sweep, whole, max(1, round(part * len(whole))), stand_in)


@pytest.mark.slow
def test_a_job_killed_after_any_write_resumes(
    written: SealedSweep, whole: dict[str, bytes], stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("realcli_judge.asking.in_threads", lambda jobs: [job() for job in jobs])
    for at in range(1, len(whole) + 1):
        resumes(written.copy(tmp_path / str(at)), whole, at, stand_in)


def test_an_unequal_judgement_of_this_seal_is_an_error(sweep: SealedSweep, stand_in: StandIn, job: Any) -> None:
    group, _ = judge(sweep)
    path = Path(sweep.directory) / folder(sweep) / group.judgements["1"]
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data.replace(b'"verdict":"1"', b'"verdict":"0"'))
    status, message = job("judge", sweep, 0, **KEY)
    assert (status, message.result, message.reason) == (0, "Refused", "AlreadyStored")


def test_a_new_seal_has_a_new_judgement(sweep: SealedSweep, stand_in: StandIn) -> None:
    group, _ = judge(sweep)
    assert {name.split("-")[2] for name in group.judgements.values()} == {
        f"{digest8(sweep.members[o].work_seal or '')}.json" for o in (0, 2, 4)
    }


def test_a_model_that_is_away_is_tried_by_the_next_pod(
    sweep: SealedSweep, job: Any, monkeypatch: pytest.MonkeyPatch, whole: dict[str, bytes]
) -> None:
    class Away(StandIn):
        def complete(self, request: JudgeRequest) -> JudgeReply:
            if len(self.asked) >= 7:
                raise BackendUnavailable("https://judge: HTTP 529: overloaded, after 6 attempts")
            return super().complete(request)

    monkeypatch.setattr("realcli_judge.asking.open_backend", lambda model, environ: Away())
    status, message = job("judge", sweep, 0, **KEY)
    assert (status, message.result, message.reason) == (1, "Refused", "JudgeUnavailable")
    assert "HTTP 529" in (message.message or "")
    assert not any(name.startswith("group-") for name in files(sweep))
    monkeypatch.setattr("realcli_judge.asking.open_backend", lambda model, environ: StandIn())
    assert job("judge", sweep, 0, **KEY)[0] == 0
    assert files(sweep) == whole


def test_another_model_than_the_plan_found_judges_nothing(sweep: SealedSweep, stand_in: StandIn) -> None:
    asked = inputs(sweep)
    changed = replace(asked, lock=asked.lock.model_copy(update={"judge_model": "judge-of-yesterday"}))
    with pytest.raises(Refused, match="the answers before it by judge-of-yesterday") as raised:
        judge_group(changed, sweep.group_input(0), KEY)
    assert raised.value.reason == "JudgeModelChanged"
    assert files(sweep) == {}


def test_without_a_key_the_job_is_refused(sweep: SealedSweep, job: Any) -> None:
    status, message = job("judge", sweep, 0)
    assert (status, message.result, message.reason) == (0, "Refused", "ConfigurationError")
    assert "does key key of Secret judge exist" in (message.message or "")


def test_a_replay_miss_ends_with_3(sweep: SealedSweep, job: Any, tmp_path: Path) -> None:
    (tmp_path / "recordings").mkdir()
    status, message = job("judge", sweep, 0, REALCLI_JUDGE_BACKEND=f"replay:{tmp_path / 'recordings'}")
    assert (status, message.reason) == (3, "ReplayMiss")
    assert "no recording of claims" in (message.message or "")


@pytest.mark.parametrize("tokens", [None, 60_000, 300_000])
def test_a_group_that_grows_keeps_the_judgements_it_has(tmp_path: Path, stand_in: StandIn, tokens: int | None) -> None:
    """A repeat was invalid and ran again: the shares of a budget are others now, the judgements of the others are not."""
    sweep = write_sweep(tmp_path / "store", judge=JUDGE | ({"budget": {"tokens": tokens}} if tokens else {}))
    asked = sweep.group_input(0)
    nothing: dict[str, Any] = {"phase": Phase.INVALID, "reason": "SimulatorFailed"}
    nothing |= dict.fromkeys(("work_seal", "seal", "reward", "verify_attempt"))
    fewer = [member.model_copy(update=nothing) if member.ordinal == 2 else member for member in asked.members]
    first, _ = judge_group(inputs(sweep), asked.model_copy(update={"members": fewer}), KEY)
    before = files(sweep)
    second, _ = judge_group(inputs(sweep), asked.model_copy(update={"n": 2}), KEY)
    assert set(second.judgements) == set(second.audits) == {"1", "2", "3"}
    assert second.judgements.items() > first.judgements.items()
    assert second.audits.items() > first.audits.items()
    assert {name: files(sweep)[name] for name in before} == before
    assert first.cost is not None
    assert second.cost is not None
    assert second.cost.requests >= first.cost.requests
    assert second.cost.exhausted >= first.cost.exhausted
    again = len(stand_in.asked)
    assert judge_group(inputs(sweep), asked.model_copy(update={"n": 2}), KEY)[0] == second
    assert len(stand_in.asked) == again


def test_a_group_that_grows_keeps_the_labels_it_has(sweep: SealedSweep, stand_in: StandIn) -> None:
    """Why a run failed was said once; only what ran anew is asked about."""
    asked = sweep.group_input(0)
    nothing: dict[str, Any] = {"phase": Phase.INVALID, "reason": "SimulatorFailed"}
    nothing |= dict.fromkeys(("work_seal", "seal", "reward", "verify_attempt"))
    fewer = [member.model_copy(update=nothing) if member.ordinal == 2 else member for member in asked.members]
    judge_group(inputs(sweep), asked.model_copy(update={"members": fewer}), KEY)
    for path in (Path(sweep.directory) / folder(sweep) / "exchanges").iterdir():
        path.unlink()  # so that whatever is asked again reaches the model
    stand_in.asked.clear()
    judge_group(inputs(sweep), asked.model_copy(update={"n": 2}), KEY)
    assert len([request for request in stand_in.asked if request.purpose == "failure"]) == 1
    first, second = (Failures.model_validate_json(files(sweep)[f"failures-{n}.json"]).failures for n in (1, 2))
    assert [one.ordinal for one in first] == [5]
    assert [one.ordinal for one in second] == [2, 5]
    assert second[1] == first[0]


@pytest.mark.parametrize(
    ("reward", "is_failed"), [("1", False), ("1.000", False), ("0.999", True), ("0", True), ("1.5", True), (None, True)]
)
def test_what_is_no_success_is_a_failure(sweep: SealedSweep, reward: str | None, is_failed: bool) -> None:
    member = sweep.members[0].model_copy(update={"reward": reward})
    assert failed(member) is is_failed
    assert not failed(member.model_copy(update={"phase": Phase.INVALID}))


def test_a_run_whose_reward_nobody_knows_is_listed_and_not_asked_about(sweep: SealedSweep, stand_in: StandIn) -> None:
    asked = sweep.group_input(0)
    unknown = [m.model_copy(update={"reward": None}) if m.ordinal == 2 else m for m in asked.members]
    judge_group(inputs(sweep), asked.model_copy(update={"members": unknown}), KEY)
    found = Failures.model_validate_json(files(sweep)["failures-1.json"]).failures
    assert [(one.ordinal, one.label, one.by) for one in found] == [(2, None, "none"), (5, "functional-or-boundary", "judge")]
    assert len([request for request in stand_in.asked if request.purpose == "failure"]) == 1


@pytest.mark.parametrize("again", ["other words", "taken"])
def test_a_job_that_was_told_too_large_and_killed_writes_the_same(
    sweep: SealedSweep, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, again: str
) -> None:
    class Narrow(StandIn):
        def __init__(self, words: str) -> None:
            super().__init__()
            self._words = words

        def complete(self, request: JudgeRequest) -> JudgeReply:
            if request.purpose == "failure":
                raise RequestTooLarge(f"https://judge: HTTP 400: prompt is too long, {self._words}")
            return super().complete(request)

    monkeypatch.setattr("realcli_judge.asking.in_threads", lambda jobs: [job() for job in jobs])
    other = sweep.copy(tmp_path / "other")
    monkeypatch.setattr("realcli_judge.asking.open_backend", lambda model, environ: Narrow("request 1"))
    judge(other)
    whole = files(other)
    with pytest.raises(Killed):
        judge(sweep, Killing(sweep.store, len(whole) - 2))  # neither failures-1.json nor group-1.json
    later = StandIn() if again == "taken" else Narrow("request 2")
    monkeypatch.setattr("realcli_judge.asking.open_backend", lambda model, environ: later)
    judge(sweep)
    assert files(sweep) == whole


def test_a_budget_that_is_spent_is_said_and_nothing_becomes_0(written: SealedSweep, tmp_path: Path, stand_in: StandIn) -> None:
    sweep = write_sweep(tmp_path / "poor", judge={**JUDGE, "budget": {"tokens": 60_000}})
    group, _ = judge(sweep)
    assert group.cost is not None
    assert group.cost.exhausted
    found = [RepeatJudgement.model_validate_json(files(sweep)[name]) for name in group.judgements.values()]
    checks = [c for judgement in found for i in judgement.generic for c in i.checks]
    assert any("the judge's budget for this group is spent" in c.reason for c in checks if c.verdict == "unscored")
    assert all(c.verdict != "0" for c in checks if c.by != "program")
    again = replace(sweep)
    assert judge(again)[0] == group
