"""Checks a sealed attempt from the outside: chain, segments, objects, identity, anchor.

Written apart from the writer on purpose: it shares the schema of events and seals and nothing else, so an error in the writer is
not repeated here. Every finding names what kind of corruption it is and where it lies.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple, Protocol

from pydantic import ValidationError

from realcli.ledger.events import EVENT, BlobRef, Snapshot
from realcli.ledger.seals import TrialIdentity, VerifySeal, WorkSeal

WORK_SEAL = "work-seal.json"
VERIFY_SEAL = "seal.json"
_VERIFIES = re.compile(r"(verify|control)-[1-9][0-9]*/")
"""Folders with a seal of their own. One without a seal is of a pod that was killed; it proves nothing and breaks nothing."""


class Kind(StrEnum):
    """What was done to the evidence."""

    CHANGED = "changed"
    MISSING = "missing"
    REORDERED = "reordered"
    ADDED = "added"
    TRUNCATED = "truncated"
    SWAPPED = "swapped"
    UNSEALED = "unsealed"
    ANCHOR = "anchor"


class Finding(NamedTuple):
    """One thing that is wrong."""

    kind: Kind
    where: str  # path, with :line where a line is meant
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}: {self.what}"


class Report(NamedTuple):
    """The result for one attempt."""

    root: str
    identity: TrialIdentity | None
    events: int
    objects: int
    seal: str | None  # digest of work-seal.json
    findings: list[Finding]

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
        return Report(root, None, 0, 0, None, [Finding(Kind.UNSEALED, WORK_SEAL, "there is no work seal")])
    digest = "sha256:" + hashlib.sha256(raw).hexdigest()
    findings: list[Finding] = []
    if anchor is not None and digest != anchor:
        findings.append(Finding(Kind.ANCHOR, WORK_SEAL, f"its digest is {digest}, the anchor says {anchor}"))
    try:
        seal = WorkSeal.model_validate_json(raw)
    except ValidationError as error:
        findings.append(Finding(Kind.CHANGED, WORK_SEAL, f"it is not a work seal: {error.errors()[0]['msg']}"))
        return Report(root, None, 0, 0, digest, findings)
    if _checksum(raw) != seal.checksum:
        findings.append(Finding(Kind.CHANGED, WORK_SEAL, "its checksum is not that of its content"))
    sealed = {item.path: (item.sha256, item.size) for item in seal.objects}
    segments = _segment_names(seal.ledger.segments)
    findings += _objects(reader, sealed, segments)
    findings += _named(seal, sealed)
    findings += _chain(reader, segments, seal)
    findings += _references(reader, segments, sealed)
    findings += _identity(reader, segments, seal, root)
    verdicts = set()
    for name in reader.names():
        if name.endswith("/" + VERIFY_SEAL):
            findings += _verify_seal(reader, name.removesuffix(VERIFY_SEAL), seal, digest)
            verdicts.add("sha256:" + hashlib.sha256(reader.read(name) or b"").hexdigest())
    if verdict is not None and verdict not in verdicts:
        findings.append(Finding(Kind.ANCHOR, "verify-*/" + VERIFY_SEAL, f"none has the digest {verdict}, which the anchor says"))
    return Report(root, seal.trial, seal.ledger.events, len(sealed), digest, findings)


def _checksum(raw: bytes) -> str:
    body = json.loads(raw)
    body.pop("checksum", None)
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _segment_names(count: int) -> list[str]:
    return [f"ledger/{number:06d}.jsonl" for number in range(1, count + 1)]


def _objects(reader: Reader, sealed: Mapping[str, tuple[str, int]], segments: list[str]) -> Iterator[Finding]:
    for segment in segments:
        if segment not in sealed:
            yield Finding(Kind.CHANGED, WORK_SEAL, f"it counts {segment} but does not cover it")
    for path, expected in sorted(sealed.items()):
        found = reader.sha256(path)
        if found is None:
            yield Finding(Kind.MISSING, path, "it is sealed but not there")
        elif found != expected and path not in segments:  # segments are named line by line
            yield Finding(
                Kind.CHANGED, path, f"it is {found[1]} bytes of sha256 {found[0]}, sealed were {expected[1]} of {expected[0]}"
            )
    for name in reader.names():
        if name != WORK_SEAL and name not in sealed and not _VERIFIES.match(name):
            yield Finding(Kind.ADDED, name, "no seal covers it")


def _named(seal: WorkSeal, sealed: Mapping[str, tuple[str, int]]) -> Iterator[Finding]:
    """The files the seal names by digest are the ones it covers: others read them by that digest."""
    for path, digest in (("run.json", seal.run), ("state.tar.zst", seal.state)):
        covered = "sha256:" + sealed[path][0] if path in sealed else None
        if digest is not None and covered != digest:
            yield Finding(Kind.CHANGED, WORK_SEAL, f"it names {path} as {digest}, but covers {covered or 'no such file'}")


def _references(reader: Reader, segments: list[str], sealed: Mapping[str, tuple[str, int]]) -> Iterator[Finding]:
    """Every blob and snapshot the ledger tells of is covered by the seal."""
    for segment in segments:
        for number, line in enumerate((reader.read(segment) or b"").split(b"\n"), start=1):
            for path, digest in _told(line):
                if path not in sealed:
                    yield Finding(Kind.MISSING, f"{segment}:{number}", f"it tells of {path}, which the seal does not cover")
                elif sealed[path][0] != digest:
                    yield Finding(Kind.CHANGED, path, f"it is sealed as {sealed[path][0]}, {segment}:{number} says {digest}")


def _told(line: bytes) -> Iterator[tuple[str, str]]:
    """(path, sha256) of the objects an event names; none for what this version cannot read."""
    try:
        event = EVENT.validate_json(line)
        data = event.typed()
    except ValidationError:
        return
    if isinstance(data, Snapshot):
        yield f"snapshots/{event.seq}.tar.zst", data.sha256
    for _, value in data or ():
        for ref in value if isinstance(value, list) else (value,):
            if isinstance(ref, BlobRef):
                yield f"blobs/{ref.blob}", ref.blob


def _chain(reader: Reader, segments: list[str], seal: WorkSeal) -> Iterator[Finding]:
    sealed = {item.path: (item.sha256, item.size) for item in seal.objects}
    previous, expected, broken = "0" * 64, 1, False
    for segment in segments:
        data = reader.read(segment)
        if data is None:
            broken = True
            continue  # named as missing by the object check
        before = broken
        if data and not data.endswith(b"\n"):
            yield Finding(Kind.TRUNCATED, segment, "its last line has no end")
            broken = True
        for number, line in enumerate(data.split(b"\n")[: -1 if data.endswith(b"\n") else None], start=1):
            where = f"{segment}:{number}"
            link = _link(line)
            if link is None:
                yield Finding(Kind.CHANGED, where, "the line is not an event")
                previous, expected, broken = hashlib.sha256(line).hexdigest(), expected + 1, True
                continue
            seq, prev = link
            if seq > expected:
                yield Finding(Kind.MISSING, where, f"event {expected} to {seq - 1} should stand before event {seq}")
                broken = True
            elif seq < expected:
                yield Finding(Kind.REORDERED, where, f"event {seq} stands where {expected} is expected")
                broken = True
            elif prev != previous and not broken:
                yield Finding(
                    Kind.CHANGED,
                    where,
                    f"event {seq} does not follow from event {seq - 1}: one of the two is not what was written",
                )
                broken = True
            previous, expected = hashlib.sha256(line).hexdigest(), seq + 1
        if broken == before and segment in sealed and reader.sha256(segment) != sealed[segment]:
            yield Finding(Kind.CHANGED, segment, "its lines are chained, but they are not the bytes that were sealed")
            broken = True
    if broken:
        return
    if expected - 1 != seal.ledger.events:
        yield Finding(Kind.TRUNCATED, "ledger", f"it has {expected - 1} events, sealed were {seal.ledger.events}")
    elif previous != seal.ledger.last_hash:
        yield Finding(Kind.CHANGED, "ledger", "its last event is not the one that was sealed")


def _link(line: bytes) -> tuple[int, str] | None:
    """(seq, prev) of a line; None if it is not an event, whatever else it is."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict):
        return None
    seq, prev = event.get("seq"), event.get("prev")
    return (seq, prev) if type(seq) is int and isinstance(prev, str) else None


def _identity(reader: Reader, segments: list[str], seal: WorkSeal, root: str) -> Iterator[Finding]:
    first = reader.read(segments[0]) if segments else None
    try:
        data = json.loads(first.split(b"\n", 1)[0])["data"] if first else None
        opened = (data["ordinal"], data["attempt"], data["lockDigest"], data["sweepUid"]) if data else None
    except (ValueError, KeyError, TypeError, RecursionError):
        opened = None
    trial = seal.trial
    if opened != (trial.ordinal, trial.attempt, trial.lock_digest, trial.sweep_uid):
        yield Finding(Kind.SWAPPED, "ledger/000001.jsonl", "the ledger was opened for another attempt than the seal names")
    parts = [part for part in root.split("/") if part]
    if len(parts) >= 2 and parts[-1].startswith("attempt-") and parts[-2].isdigit():
        here = (int(parts[-2]), parts[-1])
        if here != (trial.ordinal, f"attempt-{trial.attempt}"):
            yield Finding(Kind.SWAPPED, root, f"it holds trial {trial.ordinal}, attempt {trial.attempt}")


def _verify_seal(reader: Reader, folder: str, work: WorkSeal, work_digest: str) -> Iterator[Finding]:
    name = folder + VERIFY_SEAL
    raw = reader.read(name) or b""
    try:
        seal = VerifySeal.model_validate_json(raw)
    except ValidationError as error:
        yield Finding(Kind.CHANGED, name, f"it is not a verify seal: {error.errors()[0]['msg']}")
        return
    if _checksum(raw) != seal.checksum:
        yield Finding(Kind.CHANGED, name, "its checksum is not that of its content")
    if seal.work_seal != work_digest or seal.trial != work.trial:
        yield Finding(Kind.SWAPPED, name, "it verified another work seal than the one beside it")
    if not folder.endswith(f"-{seal.verify}/"):
        yield Finding(Kind.SWAPPED, name, f"it is the seal of verify {seal.verify}")
    sealed = {item.path: (item.sha256, item.size) for item in seal.objects}
    for path, expected in sorted(sealed.items()):
        found = reader.sha256(folder + path)
        if found is None:
            yield Finding(Kind.MISSING, folder + path, "it is sealed but not there")
        elif found != expected:
            yield Finding(Kind.CHANGED, folder + path, "it is not what was sealed")
    for other in reader.names():
        if other.startswith(folder) and other != name and other.removeprefix(folder) not in sealed:
            yield Finding(Kind.ADDED, other, "no seal covers it")
