"""The judge Job over a real store: what it writes, what it refuses, and that running it again changes nothing."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest
import zstandard

from realcli.api.base import sha256_digest
from realcli.api.outcomes import Phase
from realcli.benchmark.catalogue import load_catalogue
from realcli.checks import SnapshotUnreadable
from realcli.checks.digest import digest8, judge_digest
from realcli.scoring.records import Group, RepeatJudgement
from realcli_judge import evidence
from realcli_judge.evidence import entry_of
from tests.support.sealed_sweep import DEEDS, SCENARIO, Deed, SealedSweep, archive_of, write_sweep

JUDGE = judge_digest(load_catalogue().digest)


def group_key(sweep: SealedSweep, task: str) -> str:
    return sweep.paths.group(digest8(JUDGE), "claude-code.sonnet", task)


def judgements(sweep: SealedSweep, task: str) -> dict[int, RepeatJudgement]:
    group = Group.model_validate_json(sweep.store.get(group_key(sweep, task)))
    folder = sweep.paths.judgements(digest8(JUDGE), "claude-code.sonnet", task)
    return {
        int(r): RepeatJudgement.model_validate_json(sweep.store.get(f"{folder}/{name}")) for r, name in group.judgements.items()
    }


def files(sweep: SealedSweep) -> dict[str, bytes]:
    return {item.key: sweep.store.get(item.key) for item in sweep.store.list(sweep.root)}


def test_verdicts(judged: SealedSweep) -> None:
    found = {
        (task, repeat): [(i.state, i.reason, [c.verdict for c in i.checks]) for i in judgement.instances]
        for task in ("alpha", "beta") for repeat, judgement in judgements(judged, task).items()
    }  # fmt: skip
    assert found == {
        ("alpha", 1): [("triggered", None, ["1", "1"])],
        ("alpha", 2): [("triggered", None, ["0", "1"])],  # written blind, and kept by luck
        ("alpha", 3): [("triggered", None, ["1", "1"])],
        ("beta", 1): [("triggered", None, ["0", "0"])],  # written blind over the user's lines
        ("beta", 3): [("untriggered", "not_reached", [])],  # cut before the probe; repeat 2 is invalid and has no judgement
    }


def test_group_file(judged: SealedSweep, job: Any) -> None:
    group = Group.model_validate_json(judged.store.get(group_key(judged, "beta")))
    assert (group.sweep_uid, group.lock_digest, group.judge, group.n) == (judged.lock.sweep.uid, judged.lock_digest, JUDGE, 1)
    assert group.members == [judged.members[o] for o in judged.plan.ordinals_of_group(1)]
    assert [(m.phase, m.reason, m.reward) for m in group.members if m.ordinal == 8] == [
        (Phase.INVALID, "ProviderUnavailable", None)
    ]
    seal8 = digest8(judged.members[6].work_seal or "")
    assert group.judgements["1"] == f"repeat-1-{seal8}.json"
    _, message = job("judge", judged, 1)
    assert (message.result, message.seal) == ("Judged", sha256_digest(judged.store.get(group_key(judged, "beta"))))
    assert message.message == "claude-code.sonnet, beta: 2 COLLAB runs judged, 1 trials invalid"


def test_again_and_in_another_order_of_members_changes_nothing(judged: SealedSweep, job: Any) -> None:
    before = files(judged)
    asked = judged.group_input(0)
    turned = asked.model_copy(update={"members": asked.members[::-1]})
    status, message = job("judge", judged, REALCLI_GROUP=turned.model_dump_json(by_alias=True, exclude_none=True))
    assert (status, message.result) == (0, "Judged")
    assert files(judged) == before


def test_another_end_of_a_member_is_refused_not_overwritten(judged: SealedSweep, job: Any) -> None:
    before = files(judged)
    judged.members[0] = judged.members[0].model_copy(update={"reward": "0"})
    status, message = job("judge", judged, 0)
    assert (status, message.result, message.reason) == (0, "Refused", "AlreadyStored")
    assert files(judged) == before


@pytest.mark.parametrize(
    ("path", "reason", "text"),
    [
        ("ledger/000001.jsonl", "EvidenceChanged", "000001.jsonl"),
        ("snapshots/{final}.tar.zst", "EvidenceChanged", "has the digest"),
        ("work-seal.json", "EvidenceChanged", "work-seal.json has the digest"),
    ],
)
def test_changed_evidence_is_refused(sweep: SealedSweep, job: Any, path: str, reason: str, text: str) -> None:
    root = Path(sweep.directory) / sweep.paths.attempt(0, 1).root
    final = max(int(p.name.split(".")[0]) for p in (root / "snapshots").iterdir())
    target = root / path.format(final=final)
    data = target.read_bytes()
    target.unlink()
    target.write_bytes(data.replace(b"Please", b"Kindly") if path.startswith("ledger") else data[:-2] + b"xx")
    status, message = job("judge", sweep, 0)
    assert (status, message.result, message.reason) == (0, "Refused", reason)
    assert text in (message.message or "")
    assert not sweep.store.exists(group_key(sweep, "alpha"))


def test_an_attempt_sealed_as_invalid_does_not_count(tmp_path: Path, job: Any) -> None:
    sweep = write_sweep(tmp_path / "other", {**DEEDS, ("alpha", "COLLAB", 1): Deed(seal_valid=False)})
    message = job("judge", sweep, 0)[1]
    assert (message.reason, "says the attempt is invalid" in (message.message or "")) == ("EvidenceSwapped", True)


def test_a_segment_no_seal_covers_is_refused(sweep: SealedSweep, job: Any) -> None:
    paths = sweep.paths.attempt(0, 1)
    sweep.store.put_once(paths.segment(99), sweep.store.get(paths.segment(1)))
    message = job("judge", sweep, 0)[1]
    assert (message.reason, "no seal covers it" in (message.message or "")) == ("EvidenceChanged", True)


def test_missing_and_swapped_evidence_is_refused(sweep: SealedSweep, job: Any) -> None:
    # Trial 2 (repeat 2) is handed over with the seal of trial 0 (repeat 1): the seal of its own attempt has another digest.
    sweep.members[2] = sweep.members[2].model_copy(update={"work_seal": sweep.members[0].work_seal})
    assert job("judge", sweep, 0)[1].reason == "EvidenceChanged"
    # The seal itself copied over: its identity tells.
    root = Path(sweep.directory)
    target = root / sweep.paths.attempt(2, 1).work_seal
    target.unlink()
    target.write_bytes((root / sweep.paths.attempt(0, 1).work_seal).read_bytes())
    message = job("judge", sweep, 0)[1]
    assert (message.reason, "seals first 00000 attempt 1" in (message.message or "")) == ("EvidenceSwapped", True)
    target.unlink()
    assert job("judge", sweep, 0)[1].reason == "EvidenceMissing"


def test_members_must_be_those_of_the_plan(sweep: SealedSweep, job: Any) -> None:
    asked = sweep.group_input(0)
    first, rest = asked.members[0], asked.members[1:]
    for changed, text in (
        (asked.model_copy(update={"members": asked.members[:-1]}), "has the trials"),
        (asked.model_copy(update={"task": "gamma"}), "no group of configuration claude-code.sonnet and task gamma"),
        (asked.model_copy(update={"members": [first.model_copy(update={"repeat": 3}), *rest]}), "is COLLAB, repeat 1"),
        (asked.model_copy(update={"members": [first.model_copy(update={"phase": Phase.WORKING}), *rest]}), "Working"),
        (asked.model_copy(update={"members": [first.model_copy(update={"reason": "NodeLost"}), *rest]}), "Sealed for 'NodeLost'"),
        (asked.model_copy(update={"members": [first.model_copy(update={"phase": Phase.INVALID}), *rest]}), "Invalid for"),
        (asked.model_copy(update={"members": [first.model_copy(update={"reason": ""}), *rest]}), "Sealed for ''"),
    ):  # fmt: skip
        message = job("judge", sweep, REALCLI_GROUP=changed.model_dump_json(by_alias=True, exclude_none=True))[1]
        assert (message.reason, text in (message.message or "")) == ("GroupRefused", True), message.message


@pytest.mark.parametrize("reward", ["NaN", "1/1", "-1", "1e0", ""])
def test_a_reward_that_is_no_decimal_is_refused(sweep: SealedSweep, job: Any, reward: str) -> None:
    asked = sweep.group_input(0)
    asked.members[0] = asked.members[0].model_copy(update={"reward": reward})
    message = job("judge", sweep, REALCLI_GROUP=asked.model_dump_json(by_alias=True, exclude_none=True))[1]
    assert message.reason == "ConfigurationError"


def test_a_valid_trial_without_seal_has_no_judgement(tmp_path: Path, job: Any) -> None:
    deeds = {**DEEDS, ("alpha", "COLLAB", 1): Deed(sealed=False, reason="AgentDiskLimit")}
    sweep = write_sweep(tmp_path / "other", deeds)
    assert job("judge", sweep, 0)[1].result == "Judged"
    assert set(judgements(sweep, "alpha")) == {2, 3}


def test_inputs_are_checked(sweep: SealedSweep, job: Any) -> None:
    assert job("judge", sweep)[1].reason == "ConfigurationError"
    assert job("judge", sweep, 0, REALCLI_STORAGE="")[1].reason == "ConfigurationError"
    sweep.lock_digest = "sha256:" + "0" * 64
    assert job("judge", sweep, 0)[1].reason == "DigestMismatch"
    sweep.root = "p/elsewhere"
    assert job("judge", sweep, 0)[1].reason == "NotFound"


def test_judge_digest_covers_catalogue_and_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judge_digest("sha256:" + "1" * 64) != JUDGE
    monkeypatch.setattr("realcli.checks.digest.OPERATORS_VERSION", "next")
    assert judge_digest(load_catalogue().digest) != JUDGE


def test_entries_of_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    archive = archive_of({"/app/a": b"A", "/app/dir/b": b"B" * 2000})
    assert [entry_of(archive, path) for path in ("/app/a", "/app/dir/b", "/app/c", "/a")] == [b"A", b"B" * 2000, None, None]
    assert entry_of(archive_of({"./app/a": b"A"}), "/app/a") == b"A"
    with pytest.raises(SnapshotUnreadable, match="damaged"):
        entry_of(archive[: len(archive) // 2], "/app/a")
    with pytest.raises(SnapshotUnreadable, match="damaged"):
        entry_of(b"not an archive", "/app/a")
    monkeypatch.setattr(evidence, "MAX_ENTRY", 1000)
    with pytest.raises(SnapshotUnreadable, match="it has 2000 bytes; at most 1000"):
        entry_of(archive, "/app/dir/b")
    monkeypatch.setattr(evidence, "MAX_SNAPSHOT", 1000)
    with pytest.raises(SnapshotUnreadable, match="unpacks to more than"):
        entry_of(archive, "/app/a")


def test_links_are_not_followed() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        link = tarfile.TarInfo("app/a")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    with pytest.raises(SnapshotUnreadable, match="no plain file"):
        entry_of(zstandard.ZstdCompressor().compress(out.getvalue()), "/app/a")


def linked(*members: tuple[str, bytes, str]) -> bytes:
    """An archive of (name, type, link); plain files hold their name."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, kind, link in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, link
            member.size = len(name) if kind == tarfile.REGTYPE else 0
            tar.addfile(member, io.BytesIO(name.encode()))
    return zstandard.ZstdCompressor().compress(out.getvalue())


def test_a_hard_link_is_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ln /app/b /app/a` by an agent: the archive holds the content once, under the first name."""
    archive = linked(("app/a-z", tarfile.REGTYPE, ""), ("app/a/b", tarfile.LNKTYPE, "app/a-z"))
    assert entry_of(archive, "/app/a/b") == b"app/a-z"
    with pytest.raises(SnapshotUnreadable, match="link to a link"):
        entry_of(linked(("app/a", tarfile.LNKTYPE, "app/b"), ("app/b", tarfile.LNKTYPE, "app/a")), "/app/a")


def test_a_directory_in_its_place_is_no_file() -> None:
    assert entry_of(linked(("app/a", tarfile.DIRTYPE, "")), "/app/a") is None


def test_scenario_of_the_fixture_is_in_the_catalogue() -> None:
    assert SCENARIO in load_catalogue().templates
