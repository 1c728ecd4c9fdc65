"""The verifier against a sealed attempt made by the real writer and uploader, then corrupted."""

import asyncio
import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from realcli.api.base import sha256_digest
from realcli.api.trial import Tokens
from realcli.ledger.events import AgentMessage, Data, EpisodeEnd, LedgerOpen, RecordGap
from realcli.ledger.reader import StoreReader, attempts_below
from realcli.ledger.seals import Sealed, SealedObject, TrialIdentity, VerifySeal, WorkSeal
from realcli.ledger.uploader import Uploader
from realcli.ledger.verify import Kind, Report, verify_attempt
from realcli.ledger.writer import LedgerWriter
from realcli.storage.local import LocalStore

LOCK = "sha256:" + "1" * 64


def seal_attempt(store: Path, spool: Path, ordinal: int, text: str = "", turns: int = 0, told: Sequence[Data] = ()) -> Path:
    root = f"trials/{ordinal:05d}/attempt-1"
    identity = TrialIdentity(
        sweep_uid="u",
        sweep="s",
        namespace="n",
        ordinal=ordinal,
        attempt=1,
        configuration="a.m",
        task="t",
        mode="EXEC",
        repeat=1,
        lock_digest=LOCK,
    )
    writer = LedgerWriter(spool, segment_bytes=900)
    uploader = Uploader(writer, LocalStore(store), root)

    async def go() -> None:
        opened = identity.model_dump(exclude={"namespace"}) | {"session_version": "0"}
        writer.emit("session", LedgerOpen(**opened))
        for number in range(12):
            writer.emit("agent", AgentMessage(text=f"message {number} of {ordinal} {text}"))
        writer.emit("agent", AgentMessage(text="long " * 20_000))
        for data in told:
            writer.emit("session", data)
        writer.emit("session", EpisodeEnd(reason="Completed"))
        summary = writer.close()
        await uploader.drain(0)
        await uploader.put("run.json", b"{}", 0)
        seal = WorkSeal(
            objects=uploader.objects,
            trial=identity,
            reason="Completed",
            valid=True,
            state=None,
            run=sha256_digest(b"{}"),
            ledger=summary,
            turns=turns,
            tokens=Tokens(),
            working_seconds="1.0",
            started_at="x",
            ended_at="y",
        )
        raw = seal.seal()
        LocalStore(store).put_once(f"{root}/work-seal.json", raw)
        verdict = b'{"reward":"1"}'
        LocalStore(store).put_once(f"{root}/verify-1/verdict.json", verdict)
        verify = VerifySeal(
            objects=[SealedObject(path="verdict.json", sha256=hashlib.sha256(verdict).hexdigest(), size=len(verdict))],
            trial=identity,
            verify=1,
            work_seal=sha256_digest(raw),
            work_reason="Completed",
            reason="Completed",
            reward="1",
            verifier_version="1",
            image="i",
        )
        LocalStore(store).put_once(f"{root}/verify-1/seal.json", verify.seal())

    asyncio.run(go())
    return store / root


@pytest.fixture
def attempt(tmp_path: Path) -> Path:
    return seal_attempt(tmp_path / "store", tmp_path / "spool", 3)


def check(attempt: Path, anchor: str | None = None, verdict: str | None = None) -> Report:
    store = attempt.parents[2]
    root = attempt.relative_to(store).as_posix()
    return verify_attempt(StoreReader(LocalStore(store), root), root, anchor, verdict)


def anchor_of(attempt: Path) -> str:
    return sha256_digest((attempt / "work-seal.json").read_bytes())


def test_an_untouched_attempt_verifies(attempt: Path) -> None:
    report = check(attempt, anchor_of(attempt))
    assert report.findings == []
    assert report.events == 15
    assert attempts_below(LocalStore(attempt.parents[2]), "") == ["trials/00003/attempt-1"]


def gap(count: int | None, record: str = "ledger") -> RecordGap:
    return RecordGap(record=record, count=count, reason="no space left")


@pytest.mark.parametrize(
    ("told", "turns", "finding"),
    [
        ((gap(2),), 2, None),
        ((gap(1), gap(1)), 2, None),
        ((gap(None),), 500, None),
        ((gap(2),), 3, "it counts 3 turns, the ledger 0 and a gap of 2 events"),
        ((gap(9, "file"),), 1, "it counts 1 turns, the ledger 0"),
        ((), 1, "it counts 1 turns, the ledger 0"),
    ],
)
def test_turns_that_the_disk_refused_to_record(tmp_path: Path, told: tuple[Data, ...], turns: int, finding: str | None) -> None:
    attempt = seal_attempt(tmp_path / "store", tmp_path / "spool", 3, turns=turns, told=told)
    assert [found.what for found in check(attempt).findings] == ([] if finding is None else [finding])


def segments(attempt: Path) -> list[Path]:
    return sorted((attempt / "ledger").iterdir())


def edit_lines(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path.write_bytes(b"".join(line + b"\n" for line in change(path.read_bytes().splitlines())))


def sealed(attempt: Path) -> WorkSeal:
    return WorkSeal.model_validate_json((attempt / "work-seal.json").read_bytes())


def reseal(attempt: Path, change: dict[str, object]) -> None:
    """A work seal that says something else and is whole."""
    (attempt / "work-seal.json").write_bytes(sealed(attempt).model_copy(update=change).seal())


CORRUPTIONS: dict[str, tuple[Callable[[Path], object], Kind, str]] = {
    "a changed text": (
        lambda a: segments(a)[1].write_bytes(segments(a)[1].read_bytes().replace(b"message", b"massage", 1)),
        Kind.CHANGED,
        "000002",
    ),
    "a changed last line": (
        lambda a: segments(a)[-1].write_bytes(segments(a)[-1].read_bytes().replace(b"Completed", b"TurnLimit")),
        Kind.CHANGED,
        "ledger",
    ),
    "a dropped line": (lambda a: edit_lines(segments(a)[1], lambda lines: lines[:1] + lines[2:]), Kind.MISSING, "000002.jsonl:2"),
    "two lines exchanged": (
        lambda a: edit_lines(segments(a)[1], lambda lines: [lines[1], lines[0], *lines[2:]]),
        Kind.REORDERED,
        "000002",
    ),
    "a line twice": (lambda a: edit_lines(segments(a)[1], lambda lines: [lines[0], *lines]), Kind.ADDED, "000002.jsonl:2"),
    "a line that is no event": (
        lambda a: edit_lines(segments(a)[1], lambda lines: [b"hello", *lines]),
        Kind.ADDED,
        "000002.jsonl:1",
    ),
    "a cut last line": (lambda a: segments(a)[-1].write_bytes(segments(a)[-1].read_bytes()[:-5]), Kind.TRUNCATED, "ledger/"),
    "the last segment dropped": (lambda a: segments(a)[-1].unlink(), Kind.TRUNCATED, "ledger/"),
    "a middle segment dropped": (lambda a: segments(a)[1].unlink(), Kind.MISSING, "000002"),
    "a blob changed": (lambda a: next((a / "blobs").iterdir()).write_bytes(b"x"), Kind.CHANGED, "blobs/"),
    "a blob dropped": (lambda a: next((a / "blobs").iterdir()).unlink(), Kind.MISSING, "blobs/"),
    "a file added": (lambda a: (a / "blobs" / "extra").write_bytes(b"x"), Kind.ADDED, "blobs/extra"),
    "a segment added": (lambda a: shutil.copy(segments(a)[0], a / "ledger" / "000099.jsonl"), Kind.ADDED, "000099"),
    "run.json changed": (lambda a: (a / "run.json").write_bytes(b"[]"), Kind.CHANGED, "run.json"),
    "the seal changed": (
        lambda a: (a / "work-seal.json").write_bytes((a / "work-seal.json").read_bytes().replace(b"Completed", b"Deadline")),
        Kind.CHANGED,
        "work-seal.json",
    ),
    "the seal cut": (lambda a: (a / "work-seal.json").write_bytes(b'{"schema"'), Kind.CHANGED, "work-seal.json"),
    "the seal gone": (lambda a: (a / "work-seal.json").unlink(), Kind.UNSEALED, "work-seal.json"),
    "the verdict changed": (
        lambda a: (a / "verify-1" / "verdict.json").write_bytes(b'{"reward":"0"}'),
        Kind.CHANGED,
        "verify-1/verdict",
    ),
    "the reward in the seal changed": (
        lambda a: (a / "verify-1" / "seal.json").write_bytes(
            (a / "verify-1" / "seal.json").read_bytes().replace(b'"reward":"1"', b'"reward":"0"')
        ),
        Kind.CHANGED,
        "verify-1/seal.json",
    ),
    "a line with another number than a number": (
        lambda a: segments(a)[1].write_bytes(
            segments(a)[1].read_bytes().replace(b'"seq":', b'"seq":"', 1).replace(b',"t":', b'","t":', 1)
        ),
        Kind.CHANGED,
        "000002.jsonl:1",
    ),
    "a line nested without end": (
        lambda a: edit_lines(segments(a)[1], lambda lines: [b"[" * 200_000, *lines]),
        Kind.ADDED,
        "000002.jsonl:1",
    ),
    "a first line nested without end": (
        lambda a: edit_lines(segments(a)[0], lambda lines: [b"[" * 200_000, *lines]),
        Kind.ADDED,
        "000001.jsonl:1",
    ),
    "a state of another digest than the one covered": (
        lambda a: reseal(a, {"state": "sha256:" + "5" * 64}),
        Kind.CHANGED,
        "work-seal.json",
    ),
    "a run.json of another digest than the one covered": (
        lambda a: reseal(a, {"run": "sha256:" + "5" * 64}),
        Kind.CHANGED,
        "work-seal.json",
    ),
    "a blob the ledger tells of left out of the seal": (
        lambda a: [
            reseal(a, {"objects": [o for o in sealed(a).objects if not o.path.startswith("blobs/")]}),
            shutil.rmtree(a / "blobs"),
        ],
        Kind.MISSING,
        "ledger/",
    ),
    "a file that only begins like a verify": (lambda a: (a / "verify-notes.json").write_bytes(b"x"), Kind.ADDED, "verify-notes"),
    "a verify under another number": (lambda a: shutil.copytree(a / "verify-1", a / "verify-2"), Kind.SWAPPED, "verify-2/seal"),
    "a file beside the verdict": (lambda a: (a / "verify-1" / "x").write_bytes(b""), Kind.ADDED, "verify-1/x"),
}


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_corruption_is_named(attempt: Path, name: str) -> None:
    corrupt, kind, where = CORRUPTIONS[name]
    corrupt(attempt)
    report = check(attempt)
    assert any(finding.kind is kind and where in finding.where for finding in report.findings), report.findings


def test_attempts_exchanged_are_swapped(tmp_path: Path) -> None:
    first = seal_attempt(tmp_path / "store", tmp_path / "a", 3)
    second = seal_attempt(tmp_path / "store", tmp_path / "b", 4)
    first.rename(tmp_path / "held")
    second.rename(first)
    assert [finding.kind for finding in check(first).findings] == [Kind.SWAPPED]


@pytest.mark.parametrize(
    ("place", "what"),
    [
        ("p/sweeps/n/s-u", None),
        ("sweeps/m/s-u", "of sweep s in namespace n"),
        ("sweeps/n/t-u", "sweep s"),
        ("sweeps/n/s-v", "s-u"),
    ],
)
def test_the_same_attempt_of_another_sweep_is_swapped(attempt: Path, tmp_path: Path, place: str, what: str | None) -> None:
    """Ordinals and attempts of two sweeps are the same numbers: only the folder says which sweep it is."""
    shutil.copytree(attempt, tmp_path / place / "trials/00003/attempt-1")
    root = f"{place}/trials/00003/attempt-1"
    findings = verify_attempt(StoreReader(LocalStore(tmp_path), root), root).findings
    assert [finding.kind for finding in findings] == ([] if what is None else [Kind.SWAPPED])
    assert what is None or what in findings[0].what


def test_a_ledger_of_another_attempt_under_a_recomputed_seal_is_swapped(tmp_path: Path) -> None:
    first = seal_attempt(tmp_path / "store", tmp_path / "a", 3)
    second = seal_attempt(tmp_path / "store", tmp_path / "b", 4)
    seal = WorkSeal.model_validate_json((second / "work-seal.json").read_bytes())
    (first / "work-seal.json").write_bytes(seal.model_copy(update={"trial": identity_of(first)}).seal())
    for folder in ("ledger", "blobs"):
        shutil.rmtree(first / folder)
        shutil.copytree(second / folder, first / folder)
    assert Kind.SWAPPED in {finding.kind for finding in check(first).findings}


def identity_of(attempt: Path) -> TrialIdentity:
    return WorkSeal.model_validate_json((attempt / "work-seal.json").read_bytes()).trial


def test_everything_recomputed_fails_against_the_anchor(tmp_path: Path) -> None:
    anchor = anchor_of(seal_attempt(tmp_path / "store", tmp_path / "a", 3))
    forged = seal_attempt(tmp_path / "forged", tmp_path / "b", 3, text="forged")
    assert check(forged).ok
    assert [finding.kind for finding in check(forged, anchor).findings] == [Kind.ANCHOR]


def test_a_verdict_recomputed_fails_against_its_anchor(attempt: Path) -> None:
    """Whoever can write to the bucket can make a whole verify seal with another reward; the trial's status knows better."""
    path = attempt / "verify-1" / "seal.json"
    work, verdict = anchor_of(attempt), sha256_digest(path.read_bytes())
    assert check(attempt, work, verdict).ok
    path.write_bytes(VerifySeal.model_validate_json(path.read_bytes()).model_copy(update={"reward": "0"}).seal())
    assert check(attempt, work).ok
    assert [finding.kind for finding in check(attempt, work, verdict).findings] == [Kind.ANCHOR]


def test_a_verify_that_was_killed_is_no_damage(attempt: Path) -> None:
    (attempt / "verify-2").mkdir()
    (attempt / "verify-2" / "verdict.json").write_bytes(b"{}")
    assert check(attempt).ok


@pytest.mark.parametrize("folder", ["sweeps/ledger/first-1", "ledger", "sweeps/ns/s-1/judgements/12345678/a.m/ledger"])
def test_names_that_are_called_ledger_are_no_ledgers(tmp_path: Path, folder: str) -> None:
    store = LocalStore(tmp_path)
    for name in (
        "sweep.json",
        "group-1.json",
        "trials/00000/attempt-1/ledger/000001.jsonl",
        "trials/00001/attempt-2/work-seal.json",
    ):
        store.put_once(f"{folder}/{name}", b"{}\n")
    found = [f"{folder}/trials/00000/attempt-1", f"{folder}/trials/00001/attempt-2"]
    assert attempts_below(store, "") == attempts_below(store, folder + "/trials") == found
    assert attempts_below(store, found[0] + "/ledger") == found[:1]


def test_the_checksum_is_the_one_the_seal_model_makes() -> None:
    sealed = Sealed(objects=[SealedObject(path="ä", sha256="0" * 64, size=1)])
    again = Sealed.model_validate_json(sealed.seal())
    assert again.intact()
    assert not again.model_copy(update={"objects": []}).intact()
    assert json.loads(sealed.seal())["checksum"].startswith("sha256:")
