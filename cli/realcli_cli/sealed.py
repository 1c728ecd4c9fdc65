"""Sealed attempts behind what a person names, each checked against its seals before anything is read out of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from pydantic import ValidationError

from realcli.api.base import Frozen, sha256_digest
from realcli.api.faults import first_fault
from realcli.api.plan import Lock
from realcli.ledger.events import BlobRef
from realcli.ledger.findings import Kind
from realcli.ledger.reader import FileTooLong, StoreReader, attempts_below, get_bounded
from realcli.ledger.seals import Verdict, VerifySeal, WorkSeal
from realcli.ledger.show import visible
from realcli.ledger.verify import WORK_SEAL, verify_attempt
from realcli.scoring.records import Group, GroupMember
from realcli.storage.paths import SweepPaths, join
from realcli.storage.port import NotFound, StorageConfig
from realcli.trajectory import Trajectory
from realcli_cli.main import UserError
from realcli_cli.places import Place, nothing_at, place_of_uri

_ATTEMPT = re.compile(r"(?:(?P<sweep>.*)/)?trials/(?P<ordinal>[0-9]{5,9})/attempt-(?P<attempt>[1-9][0-9]{0,8})")
_VERIFY = re.compile(r"verify-([1-9][0-9]{0,8})/seal\.json")
Model = TypeVar("Model", bound=Frozen)
_GROUP = re.compile(r".*/group-([1-9][0-9]{0,8})\.json")


@dataclass(frozen=True)
class Attempt:
    """One sealed attempt that was found sound."""

    root: str
    uri: str
    reader: StoreReader
    seal: WorkSeal
    digest: str  # of the work seal

    @property
    def name(self) -> str:
        """As its pod was called: `<trial>-a<k>`."""
        return f"{self.seal.trial.sweep}-{self.seal.trial.ordinal:05d}-a{self.seal.trial.attempt}"

    @property
    def sweep(self) -> str | None:
        """Key of the sweep's root; None for an attempt's folder that lies by itself."""
        where = where_of(self.root)
        return None if where is None else where.sweep

    def trajectory(self) -> Trajectory:
        """Of its ledger, which the seal covers."""
        return Trajectory.from_events(self.reader.events())

    def read(self, ref: BlobRef) -> bytes | None:
        """A blob (`realcli.trajectory.Blobs`)."""
        return self.reader.read(f"blobs/{ref.blob}")

    def verifies(self) -> Iterator[tuple[str, VerifySeal]]:
        """Verify seals of this work seal with their folders, in the order of their numbers; none of a control."""
        found = [match for name in self.reader.names() if (match := _VERIFY.fullmatch(name))]
        for match in sorted(found, key=lambda match: int(match[1])):
            seal = VerifySeal.model_validate_json(self.reader.read(match.string) or b"")
            if seal.work_seal == self.digest:
                yield match.string.removesuffix("/seal.json"), seal

    def verify(self, digest: str | None) -> tuple[str, VerifySeal] | None:
        """The verify seal that counts: the one of that digest, else the first."""
        for folder, seal in self.verifies():
            if digest is None or sha256_digest(self.reader.read(f"{folder}/seal.json") or b"") == digest:
                return folder, seal
        return None

    def verdict(self, folder: str) -> Verdict | None:
        """verdict.json beside a verify seal, which covers it; None where nothing ran."""
        raw = self.reader.read(f"{folder}/verdict.json")
        return None if raw is None else Verdict.model_validate_json(raw)


class Where(NamedTuple):
    """What the place of an attempt says."""

    sweep: str  # key of the sweep's root
    ordinal: int
    attempt: int


def where_of(root: str) -> Where | None:
    """Of `…/trials/<ordinal>/attempt-<k>`; None for any other key."""
    found = _ATTEMPT.fullmatch(root)
    return None if found is None else Where(found["sweep"] or "", int(found["ordinal"]), int(found["attempt"]))


class Source:
    """All attempts behind a name. What lies beside them is read once."""

    def __init__(self, place: Place, sealed: Sequence[Attempt], unsealed: Sequence[str]) -> None:
        self.place = place
        self.sealed = tuple(sealed)
        self.unsealed = tuple(unsealed)  # roots of attempts that run, or were lost
        self._members: dict[str, dict[int, GroupMember]] = {}
        self._locks: dict[str, bytes | None] = {}

    @property
    def shown(self) -> str:
        """As the person named it."""
        return visible(self.place.shown)

    def members(self, sweep: str) -> dict[int, GroupMember]:
        """Trials of judged groups as the operator saw them end; of a group that was judged again the latest."""
        if sweep not in self._members:
            found: dict[int, tuple[int, GroupMember]] = {}
            for item in self.place.store.list(join(sweep, "judgements") + "/"):
                if match := _GROUP.fullmatch(item.key):
                    for member in _parsed(Group, get_bounded(self.place.store, item.key), item.key).members:
                        if found.get(member.ordinal, (0, None))[0] < int(match[1]):
                            found[member.ordinal] = (int(match[1]), member)
            self._members[sweep] = {ordinal: member for ordinal, (_, member) in found.items()}
        return self._members[sweep]

    def member(self, attempt: Attempt) -> GroupMember | None:
        """How the operator saw the trial of an attempt end, if that attempt is the one that counts."""
        if attempt.sweep is None:
            return None
        member = self.members(attempt.sweep).get(attempt.seal.trial.ordinal)
        if member is None or member.attempt != attempt.seal.trial.attempt:
            return None
        if member.work_seal not in (None, attempt.digest):
            raise UserError(
                f"{visible(attempt.root)}: its work seal is {attempt.digest}, its group was judged by {member.work_seal}; "
                "one of them was replaced"
            )
        return member

    def lock(self, attempt: Attempt) -> Lock | None:
        """The sweep.json an attempt was run by, None where it does not lie above; UserError for another."""
        if attempt.sweep is None:
            return None
        key, wanted = SweepPaths(attempt.sweep).lock, attempt.seal.trial.lock_digest
        if key not in self._locks:
            try:
                self._locks[key] = get_bounded(self.place.store, key)
            except NotFound:
                self._locks[key] = None
        raw = self._locks[key]
        if raw is not None and sha256_digest(raw) != wanted:
            raise UserError(f"{visible(key)}: its digest is {sha256_digest(raw)}, but the seals name the lock {wanted}")
        return None if raw is None else _parsed(Lock, raw, key)


def source_of(place: Place, what: str, endpoint: str | None) -> Source:
    """Everything sealed at or below a place. UserError where nothing is, or where evidence is not what was sealed."""
    place, config = _widened(place, what, endpoint)
    roots = attempts_below(place.store, place.key)
    if not roots:
        raise UserError(
            f"{nothing_at(place)}; expected an attempt (…/trials/<ordinal>/attempt-<k>) or a folder "
            "above some, as `realcli trial run` writes"
        )
    if len(roots) > 1 and (place.anchor or place.verdict_anchor):
        raise UserError(f"{place.shown}: {len(roots)} attempts lie here, but a Trial's address is one attempt's")
    sealed, unsealed = [], []
    for root in roots:
        found = _attempt(place, root, config)
        if found is None:
            unsealed.append(root or ".")
        else:
            sealed.append(found)
    if not sealed:
        raise UserError(f"{place.shown}: nothing is sealed here yet; a trial is exported once it has ended (work-seal.json)")
    return Source(place, sealed, unsealed)


def _attempt(place: Place, root: str, config: StorageConfig) -> Attempt | None:
    reader = StoreReader(place.store, root)
    try:
        report = verify_attempt(reader, root, place.anchor, place.verdict_anchor)
    except FileTooLong as error:
        raise UserError(f"{visible(root or place.shown)}: {visible(str(error))}") from error
    kinds = {finding.kind for finding in report.findings}
    if report.recovered or kinds == {Kind.UNSEALED}:
        return None
    if report.findings:
        more = f" (and {len(report.findings) - 1} more)" if len(report.findings) > 1 else ""
        raise UserError(
            f"{visible(root or place.shown)} is not what was sealed, so nothing was exported: {visible(str(report.findings[0]))}"
            f"{more}; `realcli ledger verify` names every damage"
        )
    raw = reader.read(WORK_SEAL) or b""
    return Attempt(root, config.uri(root), reader, WorkSeal.model_validate_json(raw), sha256_digest(raw))


def _widened(place: Place, what: str, endpoint: str | None) -> tuple[Place, StorageConfig]:
    """The same place in a store that begins at the sweep's root where the name is a directory below one: the lock lies there."""
    config, _ = StorageConfig.of_uri(what, endpoint)
    if config.directory is None:
        return place, config
    folder = Path(config.directory).resolve()
    for above in folder.parents:
        if (above / "trials").is_dir() and (above / "sweep.json").is_file():
            key = folder.relative_to(above).as_posix()
            return place_of_uri(str(above), endpoint)._replace(
                key=key, shown=place.shown, anchor=place.anchor, verdict_anchor=place.verdict_anchor
            ), StorageConfig(directory=str(above))
    return place, config


def _parsed(model: type[Model], raw: bytes, key: str) -> Model:
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise UserError(f"{key}: {first_fault(error)}; was it written by another version of realcli?") from error
