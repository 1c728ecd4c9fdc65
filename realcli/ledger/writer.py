"""The one writer of a ledger: events become chained lines in a spool directory, segments close, an uploader takes them away.

Layout of the spool: `ledger/000001.jsonl` … (the last one open), `blobs/<sha256>`: the attempt's keys in storage,
so uploading is copying. Every write redacts the trial's real keys by value.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from types import UnionType
from typing import Any, AnyStr, Protocol, Union, get_args, get_origin
from urllib.parse import quote

from pydantic import JsonValue

from realcli.api.base import canonical_json
from realcli.ledger.events import INLINE_TEXT, KINDS, MAX_LINE, PLAIN_TEXT, ZERO_HASH, Actor, BlobRef, Data, Event, Text
from realcli.ledger.seals import LedgerSummary

SEGMENT_BYTES = 4 << 20
SEGMENT_SECONDS = 30.0
REDACTED = "[redacted]"
MIN_SECRET = 8  # characters; a shorter one stands in too many innocent texts
MANY, MANY_TEXT = 64, 256  # members kept, and characters of each, where a list or an object is longer than a text may be
_SURROGATES = re.compile("[\ud800-\udfff]")


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


class Redactor:
    """Replaces secrets by value: as they are, and in the forms an error page or a proxy may repeat them in.

    Those are JSON strings (with "/" escaped or not, also inside another JSON string), URL encoding, hex, and base64 at every
    offset, so also inside "user:key". Of a secret of several lines each line is one too, but for the marks of a PEM file.
    A secret that was split over two writes goes too: its end at the start of a text, its begin at the end of one, from
    `MIN_SECRET` characters on.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets for part in _parts(secret) if len(part) >= MIN_SECRET for form in _forms(part)}
        self._secrets = sorted(forms, key=len, reverse=True)
        self._encoded = [secret.encode("utf-8", "surrogatepass") for secret in self._secrets]

    def text(self, text: str) -> str:
        """The text without secrets and without lone surrogates (they have no UTF-8 form)."""
        if len(text) < MIN_SECRET:
            return _SURROGATES.sub("\ufffd", text)
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        for secret in self._secrets:
            start, end = _inner(text, secret)
            if (start, end) != (0, len(text)):
                text = REDACTED * (start > 0) + text[start:end] + REDACTED * (end < len(text))
        return _SURROGATES.sub("\ufffd", text)

    def data(self, data: bytes) -> bytes:
        """The bytes without secrets."""
        mark = REDACTED.encode()
        for secret in self._encoded:
            data = data.replace(secret, mark)
        for secret in self._encoded:
            start, end = _inner(data, secret)
            if (start, end) != (0, len(data)):
                data = mark * (start > 0) + data[start:end] + mark * (end < len(data))
        return data

    def value(self, value: JsonValue) -> JsonValue:
        """A JSON value without secrets, keys included. NaN and Infinity, which have no JSON form, become texts."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self.value(item) for key, item in value.items()}
        return value


def _parts(secret: str) -> Iterator[str]:
    yield secret
    lines = [line.strip() for line in secret.splitlines()]
    yield from (line for line in lines if len(lines) > 1 and not line.startswith("-----"))


def _forms(secret: str) -> Iterator[str]:
    """Spellings of a secret that name it as surely as itself."""
    raw = secret.encode("utf-8", "surrogatepass")
    escaped = json.dumps(secret)[1:-1]
    yield from (secret, escaped, escaped.replace("/", "\\/"), json.dumps(escaped)[1:-1])
    yield from (quote(raw, safe=""), quote(raw, safe="/"), raw.hex(), raw.hex().upper())
    for before in range(3):
        # Of the first and the last group of four only some bits are the secret's: what stands between is its alone.
        code = base64.b64encode(bytes(before) + raw)
        inner = code[-(-8 * before // 6) : (before + len(raw)) * 8 // 6].decode()
        yield from (inner, inner.replace("+", "-").replace("/", "_"))


def _inner(text: AnyStr, secret: AnyStr) -> tuple[int, int]:
    """The part of a text between a secret's end that it begins with and a secret's begin that it ends with."""
    start, end = 0, len(text)
    found = text.rfind(secret[-MIN_SECRET:], 0, len(secret) - 1)
    if found >= 0 and secret.endswith(text[: found + MIN_SECRET]):
        start = found + MIN_SECRET
    found = text.find(secret[:MIN_SECRET], max(start, len(text) - len(secret) + 1))
    if found >= 0 and secret.startswith(text[found:]):
        end = found
    return start, end


class LedgerWriter:
    """Appends events. Not thread-safe: one owner, the session's event loop.

    `turn` and `exchange` are the context every event is stamped with; the session moves them forward.
    """

    def __init__(
        self,
        spool: Path,
        *,
        secrets: Iterable[str] = (),
        clock: Clock | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        on_event: Callable[[Event], None] | None = None,
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
        (spool / "ledger").mkdir(parents=True, exist_ok=True)
        (spool / "blobs").mkdir(parents=True, exist_ok=True)
        self._seq = 0
        self._hash = ZERO_HASH
        self._segment = 1
        self._file = self._segment_path(1).open("xb", buffering=0)
        self._size = 0
        self._opened = self._start
        self._closed = False
        self._ready: list[Path] = []  # closed segments and blobs not taken by `take`
        self._written = 0
        self._blobs: set[bytes] = set()  # digests
        self.turn = 0
        self.exchange = 0

    def emit(self, actor: Actor, data: Data, *, turn: int | None = None) -> Event:
        """Write one event and return it. Long texts go to blobs. `LedgerError` for a kind outside the closed set.

        OSError where the disk refuses; the ledger then is what it was before.
        """
        if self._closed:
            raise LedgerError(f"the ledger is closed; {data.kind} was not written")
        if KINDS.get(data.kind) is not type(data):
            raise LedgerError(f"{type(data).__name__} is not an event kind; known: {', '.join(sorted(KINDS))}")
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
        """Store bytes once by digest (of the redacted form)."""
        data = self._redact.data(data)
        digest = hashlib.sha256(data)
        if digest.digest() not in self._blobs:
            path = self._spool / "blobs" / digest.hexdigest()
            path.write_bytes(data)
            self._written += len(data)
            self._blobs.add(digest.digest())
            self._ready.append(path)
        return BlobRef(blob=digest.hexdigest(), size=len(data))

    def text(self, text: str) -> Text:
        """The text itself, or a blob if it is long."""
        encoded = self._redact.text(text).encode()
        return self.blob(encoded) if len(encoded) > INLINE_TEXT else encoded.decode()

    def roll(self) -> None:
        """Close the open segment (if it holds anything) and start the next."""
        if not self._size:
            return
        self._file.close()
        self._ready.append(self._segment_path(self._segment))
        self._segment += 1
        self._file = self._segment_path(self._segment).open("xb", buffering=0)
        self._size, self._opened = 0, self._clock.monotonic()

    def roll_if_old(self, seconds: float = SEGMENT_SECONDS) -> None:
        """Close the open segment if it is older than `seconds`."""
        if self._clock.monotonic() - self._opened >= seconds:
            self.roll()

    def take(self) -> list[Path]:
        """Files that are complete and were not taken before, blobs before the segments that name them."""
        ready, self._ready = self._ready, []
        return sorted(ready, key=lambda path: path.parent.name != "blobs")

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
        except OSError:
            os.ftruncate(self._file.fileno(), self._size)
            self._file.seek(self._size)
            raise
        self._size += len(data)
        self._written += len(data)

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
