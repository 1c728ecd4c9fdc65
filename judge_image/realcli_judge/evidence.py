"""A sealed attempt as judge and report read it: nothing is believed that the anchored seal does not cover.

The seal is checked against the anchor the operator kept, the ledger as a chain against the seal, and every other object
(snapshot, blob, verify seal) by its digest when it is read. Objects that nobody reads are not downloaded.
"""

from __future__ import annotations

import io
import tarfile

import zstandard
from pydantic import ValidationError

from realcli.api.base import sha256_digest
from realcli.api.faults import first_fault
from realcli.checks import SnapshotUnreadable
from realcli.ledger.events import EVENT, BlobRef, HardCheck
from realcli.ledger.seals import TrialIdentity, VerifySeal, WorkSeal
from realcli.ledger.verify import WORK_SEAL, verify_attempt
from realcli.storage.paths import AttemptPaths, VerifyPaths, join
from realcli.storage.port import NotFound, ObjectStore
from realcli.trajectory import Trajectory, TrajectoryError
from realcli_judge.inputs import Refused

MAX_ENTRY = 16 << 20  # bytes of one file looked at in a snapshot
MAX_SNAPSHOT = 2 << 30  # bytes unpacked that are read to find it


class SealedAttempt:
    """One attempt whose seal, ledger and identity were found sound."""

    def __init__(self, store: ObjectStore, paths: AttemptPaths, seal: WorkSeal) -> None:
        self._store = store
        self._paths = paths
        self.seal = seal
        self._sealed = {item.path: item.sha256 for item in seal.objects}
        self.trajectory = self._read_ledger()

    def read(self, path: str) -> bytes:
        """A sealed object by its path in the attempt; `Refused` if it is gone, changed or not sealed."""
        wanted = self._sealed.get(path)
        key = join(self._paths.root, path)
        if wanted is None:
            raise Refused("EvidenceChanged", f"{key} is not covered by the work seal")
        return checked(self._store, key, "sha256:" + wanted)

    def sealed(self, path: str) -> bool:
        """True if the seal covers it."""
        return path in self._sealed

    def text(self, value: str | BlobRef) -> str:
        """A text, wherever it lies."""
        return value if isinstance(value, str) else self.read(f"blobs/{value.blob}").decode("utf-8", "replace")

    def _read_ledger(self) -> Trajectory:
        lines: list[bytes] = []
        for number in range(1, self.seal.ledger.segments + 1):
            lines += self.read(f"ledger/{number:06d}.jsonl").split(b"\n")
        try:
            return Trajectory.from_events(EVENT.validate_json(line) for line in lines if line)
        except (ValidationError, TrajectoryError) as error:
            raise Refused("EvidenceChanged", f"{self._paths.ledger}: {first_fault(error)}") from error


class SealedSnapshots:
    """`SnapshotReader` over the archives of a sealed attempt."""

    def __init__(self, attempt: SealedAttempt) -> None:
        self._attempt = attempt

    def read(self, seq: int, path: str) -> bytes | None:
        """See `realcli.checks.SnapshotReader`."""
        name = f"snapshots/{seq}.tar.zst"
        if not self._attempt.sealed(name):
            raise SnapshotUnreadable(f"the work seal does not cover {name}")
        return entry_of(self._attempt.read(name), path)

    def paths(self, seq: int) -> list[str]:
        """See `realcli.checks.SnapshotReader`."""
        name = f"snapshots/{seq}.tar.zst"
        if not self._attempt.sealed(name):
            raise SnapshotUnreadable(f"the work seal does not cover {name}")
        return paths_of(self._attempt.read(name))


class SealedBlobs:
    """`Blobs` over a sealed attempt."""

    def __init__(self, attempt: SealedAttempt) -> None:
        self._attempt = attempt

    def read(self, ref: BlobRef) -> bytes | None:
        """The bytes; None for one the seal does not cover."""
        name = f"blobs/{ref.blob}"
        return self._attempt.read(name) if self._attempt.sealed(name) else None


def paths_of(archive: bytes) -> list[str]:
    """Absolute paths of all that is no directory, as the archive names it. `SnapshotUnreadable` for a damaged one."""
    with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(archive), read_across_frames=True) as plain:
        try:
            with tarfile.open(fileobj=_Counted(plain), mode="r|") as tar:
                return ["/" + member.name.removeprefix("./").strip("/") for member in tar if not member.isdir()]
        except (tarfile.TarError, zstandard.ZstdError, EOFError) as error:
            raise SnapshotUnreadable(f"the archive is damaged: {error}") from error


def entry_of(archive: bytes, path: str, *, follow: bool = True) -> bytes | None:
    """Content of absolute `path` in a tar.zst whose names are relative to "/" or absolute; None if it is not there.

    A directory in its place is no such file; a hard link is the file it links to, which is no link itself.
    Raises `SnapshotUnreadable` for a damaged or oversized archive and for an entry of any other kind.
    """
    wanted = path.strip("/")
    found: bytes | None = None
    linked: str | None = None
    with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(archive), read_across_frames=True) as plain:
        counted = _Counted(plain)
        try:
            with tarfile.open(fileobj=counted, mode="r|") as tar:
                for member in tar:
                    if member.name.removeprefix("./").strip("/") != wanted:
                        continue
                    found = linked = None
                    if member.isdir():
                        continue
                    if member.islnk():
                        linked = member.linkname
                        continue
                    if not member.isreg():
                        raise SnapshotUnreadable("it is no plain file")
                    if member.size > MAX_ENTRY:
                        raise SnapshotUnreadable(f"it has {member.size} bytes; at most {MAX_ENTRY} are looked at")
                    content = tar.extractfile(member)
                    found = content.read() if content is not None else b""
        except (tarfile.TarError, zstandard.ZstdError, EOFError) as error:
            raise SnapshotUnreadable(f"the archive is damaged: {error}") from error
    if linked is None:
        return found
    if not follow:
        raise SnapshotUnreadable("it is a link to a link")
    return entry_of(archive, linked, follow=False)


def read_attempt(store: ObjectStore, paths: AttemptPaths, identity: TrialIdentity, anchor: str) -> SealedAttempt:
    """The attempt, checked against its anchor. `Refused` names what is wrong and where."""
    key = paths.work_seal
    raw = checked(store, key, anchor)
    try:
        seal = WorkSeal.model_validate_json(raw)
    except ValidationError as error:
        raise Refused("EvidenceChanged", f"{key} is no work seal of this version: {first_fault(error)}") from error
    if seal.trial != identity:
        raise Refused("EvidenceSwapped", f"{key} seals {_name(seal.trial)}, expected {_name(identity)}")
    if not seal.valid:
        raise Refused("EvidenceSwapped", f"{key} says the attempt is invalid ({seal.reason}), but its trial counts as sealed")
    report = verify_attempt(_LedgerOnly(store, paths, seal), paths.root, anchor)
    if not report.ok:
        more = f" (and {len(report.findings) - 1} more)" if len(report.findings) > 1 else ""
        raise Refused("EvidenceChanged", f"{paths.root}: {report.findings[0]}{more}; see realcli ledger verify")
    return SealedAttempt(store, paths, seal)


def read_verify_seal(store: ObjectStore, paths: AttemptPaths, verify: int, anchor: str, work_seal: str) -> VerifySeal:
    """The verify seal, checked against its anchor and against the work seal it verified."""
    key = paths.verify(verify).seal
    raw = checked(store, key, anchor)
    try:
        seal = VerifySeal.model_validate_json(raw)
    except ValidationError as error:
        raise Refused("EvidenceChanged", f"{key} is no verify seal of this version: {first_fault(error)}") from error
    if not seal.intact() or seal.work_seal != work_seal:
        raise Refused("EvidenceSwapped", f"{key} verified work seal {seal.work_seal}, expected {work_seal}")
    return seal


def recorded_checks(store: ObjectStore, paths: VerifyPaths, seal: VerifySeal) -> tuple[HardCheck, ...]:
    """checks.jsonl of a verify; empty where the seal covers none. `Refused` for one that was changed or cannot be read."""
    try:
        lines = (verified(store, paths.checks, seal) or b"").splitlines()
        return tuple(HardCheck.model_validate_json(line) for line in lines if line)
    except ValidationError as error:
        raise Refused("EvidenceChanged", f"{paths.checks} holds a line of another form: {first_fault(error)}") from error


def verified(store: ObjectStore, key: str, seal: VerifySeal) -> bytes | None:
    """An object beside a verify seal; None where the seal covers none of that name. `Refused` for one that was changed."""
    sealed = next((item.sha256 for item in seal.objects if item.path == key.rsplit("/", 1)[-1]), None)
    return None if sealed is None else checked(store, key, "sha256:" + sealed)


class _LedgerOnly:
    """The attempt for `verify_attempt`, narrowed to seal and ledger; other objects are checked when they are read."""

    def __init__(self, store: ObjectStore, paths: AttemptPaths, seal: WorkSeal) -> None:
        self._store = store
        self._root = paths.root
        self._sealed = {item.path: (item.sha256, item.size) for item in seal.objects}

    def names(self) -> list[str]:
        base = self._root + "/"
        return [WORK_SEAL, *(item.key.removeprefix(base) for item in self._store.list(base + "ledger/"))]

    def read(self, name: str) -> bytes | None:
        try:
            return self._store.get(join(self._root, name))
        except NotFound:
            return None

    def sha256(self, name: str) -> tuple[str, int] | None:
        if not name.startswith("ledger/"):
            return self._sealed.get(name)
        data = self.read(name)
        return None if data is None else (sha256_digest(data).removeprefix("sha256:"), len(data))


class _Counted(io.RawIOBase):
    """Reads through, up to `MAX_SNAPSHOT` bytes: a sealed archive is the agent's, and may unpack to anything."""

    def __init__(self, source: zstandard.ZstdDecompressionReader) -> None:
        self._source = source
        self._read = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self._read += len(data)
        if self._read > MAX_SNAPSHOT:
            raise SnapshotUnreadable(f"the archive unpacks to more than {MAX_SNAPSHOT >> 20} MiB")
        return data


def checked(store: ObjectStore, key: str, digest: str) -> bytes:
    """An object whose digest is known; `Refused` if it is gone or changed."""
    try:
        data = store.get(key)
    except NotFound:
        raise Refused("EvidenceMissing", f"{key} does not exist in {store.describe()}") from None
    if sha256_digest(data) != digest:
        raise Refused("EvidenceChanged", f"{key} has the digest {sha256_digest(data)}, expected {digest}")
    return data


def _name(trial: TrialIdentity) -> str:
    cell = f"{trial.configuration}, {trial.task}, {trial.mode}, {trial.repeat}"
    return f"{trial.sweep} {trial.ordinal:05d} attempt {trial.attempt} ({cell})"
