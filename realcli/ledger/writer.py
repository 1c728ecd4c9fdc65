"""The one writer of a ledger: events become chained lines in a spool directory, segments close, an uploader takes them away.

Layout of the spool: `ledger/000001.jsonl` … (the last one open), `blobs/<sha256>`: the attempt's keys in storage,
so uploading is copying. Every write redacts the trial's real keys by value.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from types import UnionType
from typing import Any, Protocol, Union, get_args, get_origin

from pydantic import JsonValue

from realcli.api.base import canonical_json
from realcli.ledger.events import INLINE_TEXT, KINDS, MAX_LINE, PLAIN_TEXT, ZERO_HASH, Actor, BlobRef, Data, Event, Text
from realcli.ledger.redaction import Redactor
from realcli.ledger.reserve import Reserve, SpoolError
from realcli.ledger.seals import LedgerSummary

SEGMENT_BYTES = 4 << 20
SEGMENT_SECONDS = 30.0
MANY, MANY_TEXT = 64, 256  # members kept, and characters of each, where a list or an object is longer than a text may be


class Clock(Protocol):
    """Time as the ledger needs it."""

    def now(self) -> datetime:
        """UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()


Subscriber = Callable[[Event, Data], None]


class LedgerError(Exception):
    """An event that may not be written: unknown kind, over the line limit, or a closed ledger."""


class LedgerWriter:
    """Appends events. Not thread-safe: one owner, the session's event loop.

    `turn` and `exchange` are the context every event is stamped with; the session moves them forward.

    A disk that refuses is final: a ledger with a hole nobody knows of would be worse than none. Everything from then on raises
    SpoolError, `on_full` is told once why, and `use_reserve` gives the closing events the `reserve` bytes kept for them.
    """

    def __init__(
        self,
        spool: Path,
        *,
        secrets: Iterable[str] = (),
        clock: Clock | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        on_event: Callable[[Event], None] | None = None,
        reserve: int = 0,
    ) -> None:
        self._spool = spool
        self._redact = Redactor(secrets)
        self._clock: Clock = clock or SystemClock()
        self._start = self._clock.monotonic()
        self._segment_bytes = segment_bytes
        self._subscribers: list[Subscriber] = []
        self._untold: deque[tuple[Event, Data]] = deque()
        self._telling = False
        if on_event is not None:
            self.subscribe(lambda event, _: on_event(event))
        spool.mkdir(parents=True, exist_ok=True)
        self._reserve = Reserve(spool, reserve)
        self.on_full: Callable[[str], None] | None = None
        self.full: str | None = None
        """What the disk said when it refused something."""
        self.lost = 0
        """Events and blobs that were not written since."""
        (spool / "ledger").mkdir(exist_ok=True)
        (spool / "blobs").mkdir(exist_ok=True)
        self._seq = 0
        self._hash = ZERO_HASH
        self._segment = 1
        self._file = self._segment_path(1).open("xb", buffering=0)
        self._size = 0
        self._opened = self._start
        self._closed = False
        self._is_closing = False
        self._ready: list[Path] = []  # closed segments and blobs not taken by `take`
        self._written = 0
        self._blobs: set[bytes] = set()  # digests
        self.turn = 0
        self.exchange = 0

    def emit(self, actor: Actor, data: Data, *, turn: int | None = None) -> Event:
        """Write one event and return it. Long texts go to blobs. `LedgerError` for a kind outside the closed set.

        SpoolError where the disk refuses, or has refused before; the ledger then is what it was before.
        """
        if self._closed:
            raise LedgerError(f"the ledger is closed; {data.kind} was not written")
        if KINDS.get(data.kind) is not type(data):
            raise LedgerError(f"{type(data).__name__} is not an event kind; known: {', '.join(sorted(KINDS))}")
        self._refuse_if_full()
        event = Event(
            seq=self._seq + 1,
            prev=self._hash,
            t=self._clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            mono=round(self._clock.monotonic() - self._start, 6),
            actor=actor,
            kind=data.kind,
            turn=self.turn if turn is None else turn,
            exchange=self.exchange,
            data=self._fields(data),
        )
        line = event.canonical()
        if len(line) > MAX_LINE:
            raise LedgerError(f"{data.kind} would be a line of {len(line)} bytes; at most {MAX_LINE} are allowed")
        if self._size and self._size + len(line) + 1 > self._segment_bytes:
            self.roll()
        self._append(line + b"\n")
        self._seq, self._hash = event.seq, hashlib.sha256(line).hexdigest()
        self._untold.append((event, data))
        if not self._telling:
            self._tell()
        return event

    def subscribe(self, callback: Subscriber) -> None:
        """Call `callback(event, data)` for every event from now on, inside `emit`, right after its line is in the spool.

        `data` is what the emitter gave: whole texts, also where the line has a blob's digest or a cut text, and not redacted.
        A callback may emit: its event is written at once and told after the present one was told to everybody, so all
        subscribers see all events in the order of `seq`, whoever emitted them. A callback should not raise: its error reaches
        whoever emitted, after everybody was told.
        """
        self._subscribers.append(callback)

    def _tell(self) -> None:
        errors: list[Exception] = []
        self._telling = True
        try:
            while self._untold:
                event, data = self._untold.popleft()
                for callback in tuple(self._subscribers):
                    try:
                        callback(event, data)
                    except Exception as error:
                        errors.append(error)
        finally:
            self._telling = False
        if errors:
            raise errors[0]

    def blob(self, data: bytes) -> BlobRef:
        """Store bytes once by digest (of the redacted form). SpoolError as in `emit`."""
        self._refuse_if_full()
        data = self._redact.data(data)
        digest = hashlib.sha256(data)
        if digest.digest() not in self._blobs:
            path = self._spool / "blobs" / digest.hexdigest()
            try:
                path.write_bytes(data)
            except OSError as error:
                path.unlink(missing_ok=True)  # half a blob would be copied out as a whole one
                raise self._refused(error) from error
            self._written += len(data)
            self._blobs.add(digest.digest())
            self._ready.append(path)
        return BlobRef(blob=digest.hexdigest(), size=len(data))

    def text(self, text: str) -> Text:
        """The text itself, or a blob if it is long."""
        encoded = self._redact.text(text).encode()
        return self.blob(encoded) if len(encoded) > INLINE_TEXT else encoded.decode()

    def roll(self) -> None:
        """Close the open segment (if it holds anything) and start the next. SpoolError where there is no room for one."""
        if not self._size:
            return
        try:
            following = self._segment_path(self._segment + 1).open("xb", buffering=0)
        except OSError as error:
            raise self._refused(error) from error
        self._file.close()
        self._ready.append(self._segment_path(self._segment))
        self._segment += 1
        self._file = following
        self._size, self._opened = 0, self._clock.monotonic()

    def roll_if_old(self, seconds: float = SEGMENT_SECONDS) -> None:
        """Close the open segment if it is older than `seconds`."""
        if self._clock.monotonic() - self._opened >= seconds:
            self.roll()

    def take(self) -> list[Path]:
        """Files that are complete and were not taken before, blobs before the segments that name them."""
        ready, self._ready = self._ready, []
        return sorted(ready, key=lambda path: path.parent.name != "blobs")

    def use_reserve(self) -> None:
        """What was kept for the end is free, and events are taken again. Once whoever may write much is closed."""
        self._reserve.release()
        self._is_closing = True

    def close(self) -> LedgerSummary:
        """No event after this. Returns the chain's end."""
        if not self._closed:
            self._closed = True
            self._file.close()
            if self._size:
                self._ready.append(self._segment_path(self._segment))
            else:
                self._segment_path(self._segment).unlink()
                self._segment -= 1
        return LedgerSummary(segments=self._segment, events=self._seq, last_hash=self._hash)

    @property
    def written(self) -> int:
        """Bytes written to the spool so far, lines and blobs."""
        return self._written

    @property
    def events(self) -> int:
        """Events written so far."""
        return self._seq

    @property
    def blobs(self) -> int:
        """Blobs written so far."""
        return len(self._blobs)

    @property
    def closed(self) -> bool:
        """Whether no event can be written any more."""
        return self._closed

    @property
    def spool(self) -> Path:
        """The spool directory."""
        return self._spool

    def _append(self, data: bytes) -> None:
        """All of it or, where the disk refuses, nothing: half a line would spoil every line after it."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            os.ftruncate(self._file.fileno(), self._size)
            self._file.seek(self._size)
            raise self._refused(error) from error
        self._size += len(data)
        self._written += len(data)

    def _refuse_if_full(self) -> None:
        if self.full is not None and not self._is_closing:
            self.lost += 1
            raise SpoolError(self.full)

    def _refused(self, error: OSError) -> SpoolError:
        first, self.full = self.full is None, self.full or f"the disk of {self._spool} refuses what the session writes: {error}"
        self.lost += 1
        if first and self.on_full is not None:
            self.on_full(self.full)
        return SpoolError(self.full)

    def _segment_path(self, number: int) -> Path:
        return self._spool / "ledger" / f"{number:06d}.jsonl"

    def _fields(self, data: Data) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        dumped = data.model_dump(mode="json", by_alias=True, exclude_none=True)
        for name, info in type(data).model_fields.items():
            alias = info.alias or name
            if alias not in dumped:
                continue
            value = self._redact.value(dumped[alias])
            kinds = _alternatives(info.annotation)
            if BlobRef not in kinds:
                fields[alias] = _fit(value)
            elif isinstance(getattr(data, name), BlobRef) and JsonValue not in kinds:
                fields[alias] = value
            else:
                fields[alias] = self._spill(value)
        return fields

    def _spill(self, value: JsonValue) -> JsonValue:
        """A value that may be a blob, as one if it is long or looks like one. Texts keep their bytes, others their JSON."""
        raw = value.encode() if isinstance(value, str) else canonical_json(value)
        looks = isinstance(value, dict) and set(value) == set(BlobRef.model_fields)
        return self.blob(raw).dump() if looks or len(raw) > INLINE_TEXT else value


def _alternatives(annotation: object) -> tuple[object, ...]:
    """What a field may hold: the members of a union, else the type itself."""
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _fit(value: JsonValue) -> JsonValue:
    """A value without a blob form, short enough that no agent can make an event that cannot be written."""
    value = _cut(value, PLAIN_TEXT)
    if isinstance(value, list | dict) and len(canonical_json(value)) > INLINE_TEXT:
        value = _cut(value, MANY_TEXT, MANY)
    if isinstance(value, list | dict) and len(canonical_json(value)) > INLINE_TEXT:
        left_out = f"{len(value)} members left out"
        return {"…": left_out} if isinstance(value, dict) else [f"[… {left_out}]"]
    return value


def _cut(value: JsonValue, longest: int, most: int | None = None) -> JsonValue:
    """Long texts cut, of lists and objects the first `most` members, the rest as it is."""
    if isinstance(value, str):
        more = len(value) - longest
        return value if more <= 0 else f"{value[:longest]}[… {more} characters left out]"
    if isinstance(value, list):
        kept = [_cut(item, longest, most) for item in value[:most]]
        return kept if len(kept) == len(value) else [*kept, f"[… {len(value) - len(kept)} left out]"]
    if isinstance(value, dict):
        shown = islice(value.items(), most)
        found: dict[str, JsonValue] = {key[:longest]: _cut(item, longest, most) for key, item in shown}
        return found if len(found) == len(value) else {**found, "…": f"{len(value) - len(found)} left out"}
    return value
