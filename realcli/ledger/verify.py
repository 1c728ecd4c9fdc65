"""Checks a sealed attempt from the outside: chain, segments, objects, identity, anchor.

Written apart from the writer on purpose: it shares the schema of events and seals and nothing else (import-linter holds it to
that), so an error in the writer is not repeated here. Every finding names what kind of corruption it is and where it lies.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from pydantic import ValidationError

from realcli.ledger.findings import Finding, Kind
from realcli.ledger.seals import ControlSeal, SealedObject, TrialIdentity, VerifySeal, WorkSeal
from realcli.ledger.segments import Sealed, Segments, sha256
from realcli.ledger.spool import SPOOL_FILE, Spool

__all__ = ["Finding", "Kind", "Reader", "Report", "verify_attempt"]

WORK_SEAL = "work-seal.json"
VERIFY_SEAL = "seal.json"
_VERIFIES = re.compile(r"(verify|control)-[1-9][0-9]*/")
"""Folders with a seal of their own. One without a seal is of a pod that was killed; it proves nothing and breaks nothing."""


class Report(NamedTuple):
    """The result for one attempt."""

    root: str
    identity: TrialIdentity | None
    events: int
    objects: int
    seal: str | None  # digest of work-seal.json
    findings: list[Finding]
    recovered: bool = False  # the copy of a spool: whole as far as it goes, but nothing seals it

    @property
    def ok(self) -> bool:
        """True if nothing is wrong."""
        return not self.findings


class Reader(Protocol):
    """Read access to one attempt's files, by path relative to the attempt."""

    def names(self) -> list[str]:
        """Every file."""

    def read(self, name: str) -> bytes | None:
        """Content, None if there is none."""

    def sha256(self, name: str) -> tuple[str, int] | None:
        """(hex digest, size), None if there is none."""


def verify_attempt(reader: Reader, root: str = "", anchor: str | None = None, verdict: str | None = None) -> Report:
    """Check one attempt; `anchor` and `verdict` are the digests of its work seal and verify seal as Trial.status holds them."""
    raw = reader.read(WORK_SEAL)
    if raw is None:
        return _unsealed(reader, root, anchor)
    digest = "sha256:" + sha256(raw)
    findings: list[Finding] = []
    if anchor is not None and digest != anchor:
        findings.append(Finding(Kind.ANCHOR, WORK_SEAL, f"its digest is {digest}, the anchor says {anchor}"))
    seal: WorkSeal | None = None
    try:
        seal = WorkSeal.model_validate_json(raw)
        why = None if _checksum(raw) == seal.checksum else "its checksum is not that of its content"
    except (ValidationError, RecursionError) as error:
        why = f"it is not a work seal: {_first(error)}"
    if seal is None or why is not None:  # nothing can be compared with what it says: the ledger is checked by itself
        findings.append(Finding(Kind.CHANGED, WORK_SEAL, str(why)))
        segments = Segments(reader, [], {}, None)
        findings += segments.findings()
        return Report(root, None, segments.events, 0, digest, findings)
    sealed = {item.path: (item.sha256, item.size) for item in seal.objects}
    count = min(seal.ledger.segments, len(sealed) + 1)  # one that counts more than it covers is told by the first of them
    names = [f"ledger/{number:06d}.jsonl" for number in range(1, count + 1)]
    segments = Segments(reader, names, sealed, seal)
    findings += _objects(reader, sealed, names)
    findings += _named(seal, sealed)
    findings += segments.findings()
    findings += _place(seal, root)
    verdicts = set()
    for name in reader.names():
        if name.endswith("/" + VERIFY_SEAL) and _VERIFIES.match(name):
            findings += _verify_seal(reader, name.removesuffix(VERIFY_SEAL), seal, digest)
            verdicts.add("sha256:" + sha256(reader.read(name) or b""))
    if verdict is not None and verdict not in verdicts:
        findings.append(Finding(Kind.ANCHOR, "verify-*/" + VERIFY_SEAL, f"none has the digest {verdict}, which the anchor says"))
    return Report(root, seal.trial, seal.ledger.events, len(sealed), digest, findings)


def _unsealed(reader: Reader, root: str, anchor: str | None) -> Report:
    """A ledger without a seal: of a trial that runs, of one that was lost, or the copy of a spool."""
    raw = reader.read(SPOOL_FILE)
    recovered: Spool | None = None
    findings = []
    if raw is not None:
        try:
            recovered = Spool.model_validate_json(raw)
        except (ValidationError, RecursionError) as error:
            findings.append(Finding(Kind.CHANGED, SPOOL_FILE, f"it is not what a session writes: {_first(error)}"))
    if recovered is None or anchor is not None:
        findings.append(Finding(Kind.UNSEALED, WORK_SEAL, "there is no work seal"))
    stored = {item.path: (item.sha256, item.size) for item in recovered.stored} if recovered is not None else {}
    segments = Segments(reader, [], stored, None)
    findings += segments.findings()
    for name in reader.names():
        found = reader.sha256(name) if name.startswith("blobs/") else None
        if found is not None and name != f"blobs/{found[0]}":
            findings.append(Finding(Kind.CHANGED, name, f"it is {found[1]} bytes of sha256 {found[0]}"))
    findings += _kept(reader, segments, stored, whole=recovered is not None)
    trial = recovered.trial if recovered is not None else None
    return Report(root, trial, segments.events, len(reader.names()), None, findings, recovered is not None)


def _kept(reader: Reader, segments: Segments, stored: Sealed, *, whole: bool) -> Iterator[Finding]:
    """What the ledger tells of is there, as it tells: blobs always (they go up first), the rest in a copy that is `whole`.

    The content of blobs that lie here was compared with their names before."""
    seen: dict[str, tuple[str, int] | None] = {}
    for told in segments.told():
        if told.path not in seen:
            seen[told.path] = stored.get(told.path) or reader.sha256(told.path)
            found = seen[told.path]
            if found is None and (whole or told.path.startswith("blobs/")):
                yield Finding(Kind.MISSING, told.path, f"{told.where} tells of it")
            elif found is None or (told.path.startswith("blobs/") and told.path not in stored):
                continue
            elif found[0] != told.digest or told.size not in (None, found[1]):
                what = f"it is {found[1]} bytes of sha256 {found[0]}, {told.where} says {told.digest}"
                yield Finding(Kind.CHANGED, told.path, what)


def _first(error: ValidationError | RecursionError) -> str:
    return error.errors()[0]["msg"] if isinstance(error, ValidationError) else "it is nested without end"


def _checksum(raw: bytes) -> str:
    body = json.loads(raw)
    body.pop("checksum", None)
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _objects(reader: Reader, sealed: Sealed, segments: list[str]) -> Iterator[Finding]:
    """The files; segments are named line by line elsewhere."""
    for path, expected in sorted(sealed.items()):
        found = reader.sha256(path) if path not in segments else expected
        if found is None:
            yield Finding(Kind.MISSING, path, "it is sealed but not there")
        elif found != expected:
            told = f"it is {found[1]} bytes of sha256 {found[0]}, sealed were {expected[1]} of {expected[0]}"
            yield Finding(Kind.CHANGED, path, told)
    for name in reader.names():
        if name != WORK_SEAL and name not in sealed and name not in segments and not _VERIFIES.match(name):
            yield Finding(Kind.ADDED, name, "no seal covers it")


def _named(seal: WorkSeal, sealed: Sealed) -> Iterator[Finding]:
    """The files the seal names by digest are the ones it covers: others read them by that digest."""
    for path, digest in (("run.json", seal.run), ("state.tar.zst", seal.state)):
        covered = "sha256:" + sealed[path][0] if path in sealed else None
        if digest is not None and covered != digest:
            yield Finding(Kind.CHANGED, WORK_SEAL, f"it names {path} as {digest}, but covers {covered or 'no such file'}")
    for path, (digest, _) in sorted(sealed.items()):
        if path.startswith("blobs/") and path != f"blobs/{digest}":
            yield Finding(Kind.CHANGED, WORK_SEAL, f"it covers {path} as {digest}")


def _place(seal: WorkSeal, root: str) -> Iterator[Finding]:
    trial = seal.trial
    parts = [part for part in root.split("/") if part]
    if len(parts) >= 2 and parts[-1].startswith("attempt-") and parts[-2].isdigit():
        here = (int(parts[-2]), parts[-1])
        if here != (trial.ordinal, f"attempt-{trial.attempt}"):
            yield Finding(Kind.SWAPPED, root, f"it holds trial {trial.ordinal}, attempt {trial.attempt}")
    if len(parts) >= 6 and (parts[-6], parts[-3]) == ("sweeps", "trials"):
        folder = f"{trial.sweep}-{trial.sweep_uid.replace('-', '')[:8]}"
        if (parts[-5], parts[-4]) != (trial.namespace, folder):
            told = f"it holds a trial of sweep {trial.sweep} in namespace {trial.namespace}, whose folder is {folder}"
            yield Finding(Kind.SWAPPED, root, told)


def _verify_seal(reader: Reader, folder: str, work: WorkSeal, work_digest: str) -> Iterator[Finding]:
    name = folder + VERIFY_SEAL
    raw = reader.read(name) or b""
    what = folder.partition("-")[0]
    model = ControlSeal if what == "control" else VerifySeal
    try:
        seal = model.model_validate_json(raw)
    except (ValidationError, RecursionError) as error:
        yield Finding(Kind.CHANGED, name, f"it is not a {what} seal: {_first(error)}")
        return
    if _checksum(raw) != seal.checksum:
        yield Finding(Kind.CHANGED, name, "its checksum is not that of its content")
        return
    if seal.trial != work.trial or (isinstance(seal, VerifySeal) and seal.work_seal != work_digest):
        yield Finding(Kind.SWAPPED, name, "it is of another attempt or work seal than the one beside it")
    number = seal.verify if isinstance(seal, VerifySeal) else seal.control
    if not folder.endswith(f"-{number}/"):
        yield Finding(Kind.SWAPPED, name, f"it is the seal of {what} {number}")
    yield from _sealed_files(reader, folder, name, seal.objects)


def _sealed_files(reader: Reader, folder: str, name: str, objects: list[SealedObject]) -> Iterator[Finding]:
    sealed = {item.path: (item.sha256, item.size) for item in objects}
    for path, expected in sorted(sealed.items()):
        found = reader.sha256(folder + path)
        if found is None:
            yield Finding(Kind.MISSING, folder + path, "it is sealed but not there")
        elif found != expected:
            yield Finding(Kind.CHANGED, folder + path, "it is not what was sealed")
    for other in reader.names():
        if other.startswith(folder) and other != name and other.removeprefix(folder) not in sealed:
            yield Finding(Kind.ADDED, other, "no seal covers it")
