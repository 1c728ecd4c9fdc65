"""Requests and replies as ledger events. Each call is one step of the event loop, so events of one request stand together."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

from pydantic import JsonValue

from realcli.ledger.events import AgentMessage, BlobRef, ModelReply, ModelRequest, ToolCall, ToolResult
from realcli_session.evidence.markers import file_reads
from realcli_session.gateway.allow import MAX_DEPTH
from realcli_session.gateway.dialects.base import Dialect, Part, ReplyReader, Said, Shown
from realcli_session.gateway.port import EventSink
from realcli_session.gateway.turns import Turn

MAX_UNCOUNTED = 20_000
"""Requests recorded besides turns (refused, count_tokens). An agent can send any number: more are only counted."""
MAX_UNCOUNTED_BYTES = 256 << 20
"""Of their bodies; what comes after is recorded by digest and size, its messages are not stored."""
MAX_TEXTS = 500_000
"""Texts that are remembered as told."""
Aborted = Literal["agent", "provider"]


def body_digest(raw: bytes) -> str:
    """sha256 of the agent's own bytes, hex."""
    return hashlib.sha256(raw).hexdigest()


class Recorder:
    """Writes what passes the gateway. `markers` are the oracle's; a tool result is recorded once, by its call id.

    `texts` False: texts, tool calls and results are the adapter's to record; files shown to the model are recorded all the same.
    """

    def __init__(self, sink: EventSink, dialect: Dialect, markers: Mapping[str, Sequence[str]], *, texts: bool = True) -> None:
        self._sink = sink
        self._dialect = dialect
        self._markers = markers
        self._record_texts = texts
        self._results: set[bytes] = set()  # digests: an agent chooses the ids, of any length
        self._texts_seen: set[bytes] = set()
        self._requests = 0
        self.uncounted = 0
        self._uncounted_bytes = 0

    def next_id(self) -> str:
        """Id of a request, unique in the attempt."""
        self._requests += 1
        return f"r{self._requests:06d}"

    def refused(self, request_id: str, path: str, raw: bytes, model: object, reason: str) -> None:
        """A request that went nowhere."""
        self.uncounted += 1
        if self.uncounted > MAX_UNCOUNTED:
            return
        self._sink.emit(
            "gateway",
            ModelRequest(
                request_id=request_id,
                dialect=self._dialect.name,
                path=clean(path[:1024]),
                body_sha256=body_digest(raw),
                body_bytes=len(raw),
                model_asked=_asked(model),
                counted=False,
                refused=clean(reason),
            ),
        )

    def request(
        self, request_id: str, path: str, raw: bytes, body: dict[str, Any], *, model_sent: str, turn: Turn | None
    ) -> bool:
        """A request that is forwarded; with a turn also what it shows the model: tool results and files. False: only counted."""
        if turn is None:
            self.uncounted += 1
            self._uncounted_bytes += len(raw)
            if self.uncounted > MAX_UNCOUNTED:
                return False
        else:
            self._sink.turn = max(self._sink.turn, turn.number)
        shown = self._dialect.shown(body)
        if turn is None and self._uncounted_bytes > MAX_UNCOUNTED_BYTES:
            shown = Shown((), None, ())
        number = None if turn is None else turn.number
        self._sink.emit(
            "gateway",
            ModelRequest(
                request_id=request_id,
                dialect=self._dialect.name,
                path=path,
                body_sha256=body_digest(raw),
                body_bytes=len(raw),
                model_asked=_asked(body.get("model")),
                model_sent=model_sent,
                stream=body.get("stream") is True,
                side=not body.get("tools"),
                counted=turn is not None and not turn.repeat,
                system=[self._blob(part) for part in shown.system],
                tools=None if shown.tools is None else self._blob(shown.tools),
                messages=[self._blob(message) for message in shown.messages],
            ),
            turn=number,
        )
        if turn is not None:
            self._tool_results(body, turn.number)
            self._texts(body, turn.number)
        return True

    def parts(self, parts: Iterable[Part], *, visible: bool) -> None:
        """Finished parts of a reply. Text is an AgentMessage only where the user would see it."""
        for part in parts if self._record_texts else ():
            if not isinstance(part, Said):
                call = ToolCall(call_id=clean(part.call_id), name=clean(part.name), input=clean_json(part.input))
                self._sink.emit("agent", call)
            elif visible and part.text.strip():
                self._sink.emit("agent", AgentMessage(text=clean(part.text)))

    def reply(
        self,
        request_id: str,
        reply: ReplyReader,
        *,
        status: int,
        cost: Decimal | None,
        attempts: int,
        waited: float,
        first_byte: float | None,
        total: float,
        aborted: Aborted | None = None,
        error: str | None = None,
    ) -> None:
        """The end of the answer. Times in seconds."""
        self._sink.emit(
            "gateway",
            ModelReply(
                request_id=request_id,
                status=status,
                model=None if reply.model is None else clean(reply.model),
                stop_reason=None if reply.stop_reason is None else clean(reply.stop_reason),
                usage=reply.tokens(),
                cost_usd=None if cost is None else format(cost.normalize(), "f"),
                usage_raw={clean(key): clean_json(value) for key, value in reply.usage.items()},
                aborted=aborted,
                attempts=attempts,
                waited_ms=round(waited * 1000),
                first_byte_ms=None if first_byte is None else round(first_byte * 1000),
                total_ms=round(total * 1000),
                body=self._blob(clean_json(reply.message())) if reply.id is not None else None,
                error=None if error is None else clean(error),
            ),
        )

    def _tool_results(self, body: Mapping[str, Any], turn: int) -> None:
        for output in self._dialect.outputs(body):
            call_id = clean(output.call_id)
            if (known := _short(call_id)) in self._results:
                continue
            self._results.add(known)
            text = clean(output.text)
            if self._record_texts:
                self._sink.emit("agent", ToolResult(call_id=call_id, text=text, is_error=output.is_error), turn=turn)
            for read in file_reads(call_id, text, self._markers):
                self._sink.emit("gateway", read, turn=turn)

    def _texts(self, body: Mapping[str, Any], turn: int) -> None:
        """Content the agent program shows by itself, each text once."""
        for text in self._dialect.texts(body) if self._markers else ():
            if (known := _short(text)) in self._texts_seen:
                continue
            if len(self._texts_seen) < MAX_TEXTS:  # beyond it a text may be told twice, which changes no verdict
                self._texts_seen.add(known)
            for read in file_reads("", clean(text), self._markers):
                self._sink.emit("gateway", read, turn=turn)

    def _blob(self, value: object) -> BlobRef:
        return self._sink.blob(
            json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode("utf-8", "replace")
        )


def _short(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


def _asked(model: object) -> str:
    return clean(model[:256]) if isinstance(model, str) else ""


def clean(text: str) -> str:
    """The text with lone surrogates (JSON can escape them, UTF-8 has none) as question marks."""
    return text.encode("utf-8", "replace").decode()


def clean_json(value: JsonValue, depth: int = 0) -> JsonValue:
    """A JSON value that any reader takes: texts as `clean` makes them; a number out of range, and what is nested too deep, as
    text."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list | dict) and depth >= MAX_DEPTH:
        return "[nested too deep]"
    if isinstance(value, list):
        return [clean_json(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {clean(key): clean_json(item, depth + 1) for key, item in value.items()}
    return value
