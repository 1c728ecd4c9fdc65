"""The verifier against a sealed attempt made by the real writer and uploader, then corrupted."""

import asyncio
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from realcli.api.base import sha256_digest
from realcli.api.trial import Tokens
from realcli.ledger.events import AgentMessage, EpisodeEnd, LedgerOpen
from realcli.ledger.reader import StoreReader, attempts_below
from realcli.ledger.seals import Sealed, SealedObject, TrialIdentity, VerifySeal, WorkSeal
from realcli.ledger.uploader import Uploader
from realcli.ledger.verify import Kind, Report, verify_attempt
from realcli.ledger.writer import LedgerWriter
from realcli.storage.local import LocalStore

LOCK = "sha256:" + "1" * 64


def seal_attempt(store: Path, spool: Path, ordinal: int, text: str = "") -> Path:
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
            turns=1,
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


def check(attempt: Path, anchor: str | None = None) -> Report:
    store = attempt.parents[2]
    root = attempt.relative_to(store).as_posix()
    return verify_attempt(StoreReader(LocalStore(store), root), root, anchor)


def anchor_of(attempt: Path) -> str:
    return sha256_digest((attempt / "work-seal.json").read_bytes())


def test_an_untouched_attempt_verifies(attempt: Path) -> None:
    report = check(attempt, anchor_of(attempt))
    assert report.findings == []
    assert report.events == 15
    assert attempts_below(LocalStore(attempt.parents[2]), "") == ["trials/00003/attempt-1"]


def segments(attempt: Path) -> list[Path]:
    return sorted((attempt / "ledger").iterdir())


def edit_lines(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path.write_bytes(b"".join(line + b"\n" for line in change(path.read_bytes().splitlines())))


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
    "a line twice": (lambda a: edit_lines(segments(a)[1], lambda lines: [lines[0], *lines]), Kind.REORDERED, "000002.jsonl:2"),
    "a line that is no event": (
        lambda a: edit_lines(segments(a)[1], lambda lines: [b"hello", *lines]),
        Kind.CHANGED,
        "000002.jsonl:1",
    ),
    "a cut last line": (lambda a: segments(a)[-1].write_bytes(segments(a)[-1].read_bytes()[:-5]), Kind.TRUNCATED, "ledger/"),
    "the last segment dropped": (lambda a: segments(a)[-1].unlink(), Kind.MISSING, "ledger/"),
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


def test_the_checksum_is_the_one_the_seal_model_makes() -> None:
    sealed = Sealed(objects=[SealedObject(path="ä", sha256="0" * 64, size=1)])
    again = Sealed.model_validate_json(sealed.seal())
    assert again.intact()
    assert not again.model_copy(update={"objects": []}).intact()
    assert json.loads(sealed.seal())["checksum"].startswith("sha256:")
