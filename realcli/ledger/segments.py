"""The segments of a ledger against its seal: which are sound, what is wrong with the others, and what the events say.

Shares the schema of events and seals with the writer, and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from pydantic import ValidationError

from realcli.ledger.base import BlobRef, Data
from realcli.ledger.chain import START, Gap, Line, astray, explain, lines_of, unchained
from realcli.ledger.events import EVENT, EpisodeEnd, Event, LedgerOpen, ModelRequest, RecordGap, RunData, Snapshot, StateStored
from realcli.ledger.findings import Finding, Kind
from realcli.ledger.seals import WorkSeal

Sealed = Mapping[str, tuple[str, int]]
"""Path → (hex digest, size)."""
SEAL = "work-seal.json"


def sha256(data: bytes) -> str:
    """Hex digest."""
    return hashlib.sha256(data).hexdigest()


class Files(Protocol):
    """What is read."""

    def names(self) -> list[str]:
        """Every file."""

    def read(self, name: str) -> bytes | None:
        """Content, None if there is none."""


class Told(NamedTuple):
    """A file of which an event tells; `size` None: it does not say."""

    where: str
    path: str
    digest: str
    size: int | None


class Segments:
    """One pass over a ledger. `names` and `seal` are what it should be; without a seal it is checked by itself, and `sealed` is
    what is known to lie elsewhere."""

    def __init__(self, files: Files, names: Sequence[str], sealed: Sealed, seal: WorkSeal | None) -> None:
        self._files = files
        self._sealed = sealed
        self._seal = seal
        there = sorted(name for name in files.names() if name.startswith("ledger/"))
        self._names = list(names) if seal is not None else sorted({*there, *(n for n in sealed if n.startswith("ledger/"))})
        self._there = set(there)
        self.events = 0  # read

    def findings(self) -> list[Finding]:
        """Everything that is wrong."""
        if self._seal is None:
            return list(self._by_themselves())
        uncovered = [name for name in self._names if name not in self._sealed]
        if uncovered:
            return [Finding(Kind.CHANGED, SEAL, f"it counts {name} but does not cover it") for name in uncovered]
        return list(self._against_the_seal(self._seal))

    def told(self) -> Iterator[Told]:
        """Every file that the events of the segments that are there tell of."""
        for name in sorted(self._there):
            for number, line in enumerate((self._files.read(name) or b"").split(b"\n")[:-1], start=1):
                event, data = _typed(line)
                if event is not None and data is not None:
                    yield from (Told(f"{name}:{number}", *file) for file in _told_of(event, data, self._files))

    # -- with a seal

    def _against_the_seal(self, seal: WorkSeal) -> Iterator[Finding]:
        digests = {name: sha256(data) if (data := self._files.read(name)) is not None else None for name in self._names}
        sound = {name for name in self._names if digests[name] == self._sealed[name][0]}
        origin = {digest: name for name, (digest, _) in self._sealed.items() if name.startswith("ledger/")}
        if (other := self._other_attempt(seal, sound)) is not None:
            yield other
            return
        displaced = {n: origin[d] for n in self._names if n not in sound and (d := digests[n]) in origin}
        moved = {n: o for n, o in displaced.items() if o not in sound}
        for name, source in displaced.items():
            kind = Kind.REORDERED if name in moved else Kind.CHANGED
            yield Finding(kind, name, f"it holds what was sealed as {source}")
        holds = {source: name for name, source in moved.items()}  # where the bytes of a segment are that is elsewhere
        absent = [n for n in self._names if n not in holds and (digests[n] is None or (n in displaced and n not in sound))]
        gone = [n for n in absent if digests[n] is None]
        tail = self._names[len(self._names) - self._trailing(gone) :]
        if tail:
            told = tail[0] if len(tail) == 1 else f"{tail[0]} to {tail[-1]}"
            yield Finding(
                Kind.TRUNCATED, tail[0], f"{told}, the end of the ledger, {'is' if len(tail) == 1 else 'are'} not there"
            )
        for name in gone:
            if name not in tail:
                yield Finding(Kind.MISSING, name, "it is sealed but not there")
        yield from self._lines(seal, sound | set(holds), holds, set(absent))

    def _trailing(self, gone: Sequence[str]) -> int:
        count = 0
        for name in reversed(self._names):
            if name not in gone:
                break
            count += 1
        return count

    def _lines(self, seal: WorkSeal, sound: set[str], holds: Mapping[str, str], absent: set[str]) -> Iterator[Finding]:
        """Sound segments have to be chained, and stretches of others are explained between them."""
        seq: int | None = 0
        before: str | None = START
        pending: list[Line] = []
        where: list[str] = []
        gaps: list[tuple[list[str], list[Line], Gap]] = []
        facts = _Facts()

        def close(last: int | None, after: str | None, ends: bool = False) -> None:
            if where:
                numbers = [line.seq for line in pending if line.seq is not None]
                low = seq + 1 if seq is not None else min(numbers, default=1)
                high = last if last is not None else max(numbers, default=low)
                gaps.append((list(where), list(pending), Gap(low, high, before, after, ends)))
                pending.clear()
                where.clear()

        chained = True
        for name in self._names:
            if name in absent:
                close(None, None)
                seq, before = None, None
                continue
            data = self._files.read(holds.get(name, name)) or b""
            lines = lines_of(name, data)
            if name not in sound:
                pending += lines
                where.append(name)
                continue
            self.events += len(lines)
            first = lines[0].seq if lines else None
            if first is None:
                continue
            known = not where and seq is not None
            close(first - 1, lines[0].prev)
            broken = unchained(lines, seq + 1 if known and seq is not None else first, before if known else None)
            if broken is not None and chained:
                chained = False
                yield Finding(Kind.CHANGED, broken.where, "it was sealed, but it does not follow from the line before it")
            seq, before = lines[-1].seq, lines[-1].hash
            yield from facts.read(name, data, self._sealed, self._files)
        ended = not where and seq is not None and not absent
        close(seal.ledger.events, seal.ledger.last_hash, ends=True)
        yield from self._explained(gaps)
        if ended and chained and not gaps and seq is not None:
            wrong = _end(seal, seq, before)
            yield from (wrong,) if wrong is not None else facts.against(seal)

    def _explained(self, gaps: Sequence[tuple[list[str], list[Line], Gap]]) -> Iterator[Finding]:
        stray = astray([(lines, gap) for _, lines, gap in gaps])
        for line in stray:
            yield Finding(Kind.REORDERED, line.where, f"event {line.seq} stands in another segment than it was written to")
        for names, lines, gap in gaps:
            self.events += len(lines)
            if len(names) > 1 and unchained(lines, gap.first, gap.before) is None and lines and lines[-1].seq == gap.last:
                told = "from here on the lines are chained, but they are not what was sealed: the chain was made anew"
                yield Finding(Kind.CHANGED, names[0], told)
                continue
            found = list(explain(lines, gap, stray))
            if not found and not any(gap.first <= (line.seq or 0) <= gap.last or line in lines for line in stray):
                told = "its lines are chained, but they are not the bytes that were sealed"
                found = [Finding(Kind.CHANGED, name, told) for name in names]
            yield from found

    def _other_attempt(self, seal: WorkSeal, sound: set[str]) -> Finding | None:
        """The ledger was opened for another attempt, by a line that the next one vouches for (or the seal)."""
        first = next(iter(self._names), None)
        data = self._files.read(first) if first is not None else None
        if first is None or not data:
            return None
        lines = lines_of(first, data)
        vouched = first in sound or (len(lines) > 1 and lines[1].prev == lines[0].hash)
        opened = _opened(data.split(b"\n", 1)[0])
        trial = seal.trial.model_dump()
        if not vouched or opened is None:
            if first in sound and opened is None:
                return Finding(Kind.CHANGED, f"{first}:1", "it does not say whose ledger it is")
            return None
        wrong = [name for name, value in trial.items() if name != "namespace" and opened.get(name) != value]
        if not wrong:
            return None
        return Finding(Kind.SWAPPED, first, f"the ledger was opened for another attempt than the seal names ({', '.join(wrong)})")

    # -- without one

    def _by_themselves(self) -> Iterator[Finding]:
        """The chain of what is there; it may begin after what is stored elsewhere."""
        lines: list[Line] = []
        begun = False
        before: str | None = START
        for name in self._names:
            if name not in self._there:
                if begun:
                    yield from self._chained(lines, before)
                    lines = []
                before = None  # it lies in storage
                continue
            begun = True
            lines += lines_of(name, self._files.read(name) or b"")
        yield from self._chained(lines, before)

    def _chained(self, lines: Sequence[Line], before: str | None) -> Iterator[Finding]:
        self.events += len(lines)
        numbers = [line.seq for line in lines if line.seq is not None]
        if not lines:
            return
        first = 1 if before == START else min(numbers, default=1)
        if unchained(lines, first, before) is not None:
            yield from explain(lines, Gap(first, max(numbers, default=first), before, None, False))


class _Facts:
    """What the events of a sound ledger say that the seal says too."""

    def __init__(self) -> None:
        self._reason: str | None = None
        self._run: str | None = None
        self._state: str | None = None
        self._turns = 0
        self._missed: float = 0  # events that a gap of the ledger says it lacks: some may have been turns

    def read(self, segment: str, data: bytes, sealed: Sealed, files: Files) -> Iterator[Finding]:
        """One segment. Every blob and snapshot it tells of is covered by the seal."""
        for number, line in enumerate(data.split(b"\n")[:-1], start=1):
            event, told = _typed(line)
            if event is None or told is None:
                continue
            match told:
                case EpisodeEnd():
                    self._reason = told.reason
                case RunData():
                    self._run = told.digest
                case StateStored():
                    self._state = told.digest
                case ModelRequest(counted=True):
                    self._turns += 1
                case RecordGap(record="ledger", count=count):
                    self._missed += math.inf if count is None else count
            for path, digest, size in _told_of(event, told, files):
                if size is None or isinstance(told, StateStored):
                    continue  # compared with what the seal names
                if path not in sealed:
                    yield Finding(Kind.MISSING, f"{segment}:{number}", f"it tells of {path}, which the seal does not cover")
                elif sealed[path] != (digest, size):
                    told_ = f"it is sealed as {sealed[path][1]} bytes of {sealed[path][0]}"
                    yield Finding(Kind.CHANGED, path, f"{told_}, {segment}:{number} says {size} of {digest}")

    def against(self, seal: WorkSeal) -> Iterator[Finding]:
        """The seal against them."""
        for name, told, says in (
            ("reason", self._reason, seal.reason),
            ("run", self._run, seal.run),
            ("state", self._state if seal.state is not None else None, seal.state),
        ):
            if told is not None and told != says:
                yield Finding(Kind.CHANGED, SEAL, f"its {name} is {says}, the ledger says {told}")
        if not self._turns <= seal.turns <= self._turns + self._missed:
            lacks = f" and a gap of {self._missed:g} events" if self._missed else ""
            yield Finding(Kind.CHANGED, SEAL, f"it counts {seal.turns} turns, the ledger {self._turns}{lacks}")


def _typed(line: bytes) -> tuple[Event | None, Data | None]:
    """None where it is no event, or of a kind this version does not know."""
    try:
        event = EVENT.validate_json(line)
        return event, event.typed()
    except ValidationError:
        return None, None


def _told_of(event: Event, told: Data, files: Files) -> Iterator[tuple[str, str, int | None]]:
    """(path, hex digest, size) of every file an event tells of."""
    for ref in _refs(told, files):
        yield f"blobs/{ref.blob}", ref.blob, ref.size
    match told:
        case Snapshot():
            yield f"snapshots/{event.seq}.tar.zst", told.sha256, told.size
        case RunData():
            yield "run.json", told.digest.removeprefix("sha256:"), None
        case StateStored():
            yield "state.tar.zst", told.digest.removeprefix("sha256:"), told.size


def _refs(told: Data, files: Files) -> Iterator[BlobRef]:
    """Every reference of an event; a long list of them lies in a blob of its own."""
    for name, value in told:
        for ref in value if isinstance(value, list) else (value,):
            if isinstance(ref, BlobRef):
                yield ref
                if isinstance(told, ModelRequest) and name in ("system", "messages") and ref is value:
                    yield from _listed(files.read(f"blobs/{ref.blob}") or b"[]")


def _listed(blob: bytes) -> list[BlobRef]:
    """The references in the blob of a list; none in one that is damaged, which is told of the blob itself."""
    try:
        return [BlobRef.model_validate(item) for item in json.loads(blob)]
    except (ValueError, TypeError, RecursionError):
        return []


def _opened(line: bytes) -> dict[str, object] | None:
    try:
        data = EVENT.validate_json(line).typed()
    except ValidationError:
        return None
    return data.model_dump() if isinstance(data, LedgerOpen) else None


def _end(seal: WorkSeal, seq: int, last_hash: str | None) -> Finding | None:
    if seq < seal.ledger.events:
        return Finding(Kind.TRUNCATED, "ledger", f"it has {seq} events, sealed were {seal.ledger.events}")
    if seq > seal.ledger.events or last_hash != seal.ledger.last_hash:
        return Finding(Kind.CHANGED, SEAL, f"the ledger ends with event {seq} of hash {last_hash}, the seal says otherwise")
    return None
