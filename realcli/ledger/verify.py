"""Checks a sealed attempt from the outside: chain, segments, objects, identity, anchor.

Written apart from the writer on purpose: it shares the schema of events and seals and nothing else, so an error in the writer is
not repeated here. Every finding names what kind of corruption it is and where it lies.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple, Protocol

from pydantic import ValidationError

from realcli.ledger.seals import TrialIdentity, VerifySeal, WorkSeal

WORK_SEAL = "work-seal.json"
VERIFY_SEAL = "seal.json"


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


def verify_attempt(reader: Reader, root: str = "", anchor: str | None = None) -> Report:
    """Check one attempt; `anchor` is the digest of its work seal as Trial.status holds it."""
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
    chain = list(_chain(reader, segments, seal))
    findings += chain
    findings += _identity(reader, segments, seal, root)
    for name in reader.names():
        if name.endswith("/" + VERIFY_SEAL):
            findings += _verify_seal(reader, name.removesuffix(VERIFY_SEAL), seal, digest)
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
        if name != WORK_SEAL and name not in sealed and not name.startswith(("verify-", "control-")):
            yield Finding(Kind.ADDED, name, "no seal covers it")


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
            try:
                event = json.loads(line)
                seq, prev = event["seq"], event["prev"]
            except (ValueError, KeyError, TypeError):
                yield Finding(Kind.CHANGED, where, "the line is not an event")
                previous, expected, broken = hashlib.sha256(line).hexdigest(), expected + 1, True
                continue
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


def _identity(reader: Reader, segments: list[str], seal: WorkSeal, root: str) -> Iterator[Finding]:
    first = reader.read(segments[0]) if segments else None
    try:
        data = json.loads(first.split(b"\n", 1)[0])["data"] if first else None
        opened = (data["ordinal"], data["attempt"], data["lockDigest"], data["sweepUid"]) if data else None
    except (ValueError, KeyError, TypeError):
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
