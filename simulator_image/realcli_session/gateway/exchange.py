"""One request's way through the gateway: counted, recorded, forwarded, answered; whatever cuts it, its end is recorded."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from realcli_session.gateway import refusal
from realcli_session.gateway.config import GatewayConfig
from realcli_session.gateway.cost import Account
from realcli_session.gateway.dialects.base import Dialect, Part
from realcli_session.gateway.dialects.json_parts import object_of
from realcli_session.gateway.keys import KeyFilter
from realcli_session.gateway.port import Clock, ProviderFailure
from realcli_session.gateway.record import Aborted, Recorder
from realcli_session.gateway.retry import OUR_FAULT
from realcli_session.gateway.sse import SseEvent, SseParser, SseTooLong
from realcli_session.gateway.turns import Turn, TurnCounter
from realcli_session.gateway.upstream import BROKEN, Answer, Effort, NoAnswer, Streaming, Upstream, Whole
from realcli_session.gateway.witness import Witness

AGENT_GONE = 499
"""Status recorded for a request the agent dropped before it was answered."""
StartHook = Callable[[int], asyncio.Task[None]]
_SENDABLE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]*")
"""A header's value that a server may send on. A provider may send others."""


class ModelCheck:
    """Which ids a model may answer with (plan Job's test request, `acceptedIds`).

    Without the plan's id nothing is checked. An answer that names no id is no mismatch: it is recorded without one.
    """

    def __init__(self, resolved: str | None, accepted: Collection[str]) -> None:
        self._accepted = None if resolved is None else frozenset({resolved, *accepted})
        self.found = asyncio.Event()
        self.mismatch: str | None = None

    def see(self, answered: str | None) -> None:
        """The id of an answer."""
        if answered is None or self._accepted is None or answered in self._accepted or self.mismatch is not None:
            return
        expected = ", ".join(sorted(self._accepted))
        self.mismatch = f"the provider answered as {answered[:256]!r}; accepted: {expected} (models[].acceptedIds allows more)"
        self.found.set()


@dataclass
class Ledgered:
    """What all exchanges of a trial share and add up to."""

    config: GatewayConfig
    dialect: Dialect
    upstream: Upstream
    recorder: Recorder
    turns: TurnCounter
    clock: Clock
    account: Account
    models: ModelCheck
    provider_failed: asyncio.Event = field(default_factory=asyncio.Event)
    provider_failure: ProviderFailure | None = None
    refused_by_model: bool = False
    cut_by_provider: str | None = None
    witness: Witness = field(default_factory=Witness)
    stopping: bool = False

    def failed(self, failure: ProviderFailure) -> None:
        """The provider let a turn down."""
        self.provider_failure = self.provider_failure or failure
        self.provider_failed.set()


class Exchange:
    """A request and its answer. `accept` (generation requests only) and `record`, then `run`, without a pause between."""

    def __init__(self, shared: Ledgered, request: web.Request, raw: bytes, body: dict[str, Any]) -> None:
        self._config = shared.config
        self._upstream = shared.upstream
        self._recorder = shared.recorder
        self._turns = shared.turns
        self._clock = shared.clock
        self._shared = shared
        self._request = request
        self._raw = raw
        self._body: dict[str, Any] | None = body  # until it is recorded: many times the size of its bytes
        self._sent = self._pinned(body)
        self._streams = body.get("stream") is True
        self._key = shared.dialect.turn_key(body)
        self._id = shared.recorder.next_id()
        self._turn: Turn | None = None
        self._reply = shared.dialect.reader()
        self._filter = KeyFilter(shared.config.key)
        self._effort = Effort()
        self._started = shared.clock.monotonic()
        self._first_byte: float | None = None
        self._received = 0
        self._generated = True  # until the provider says that it did not
        self._visible = shared.dialect.visible(body, request.headers)
        self._ended = False
        self._recorded = False

    def accept(self) -> bool:
        """Take a turn; False when the limit is used up."""
        self._turn = self._turns.accept(self._key)
        if self._turn is not None:
            self._shared.witness.asked(self._id, main=self._visible)
        if self._turn is not None and self._visible:
            self._shared.refused_by_model = False
            self._shared.cut_by_provider = None
        return self._turn is not None

    def record(self) -> None:
        """Write the request down, before anything of it leaves."""
        body, self._body = self._body, None
        if body is None:
            raise RuntimeError("a request is recorded once")
        self._recorded = self._recorder.request(
            self._id, self._request.path, self._raw, body, model_sent=self._config.model, turn=self._turn
        )

    async def run(self, start_hook: StartHook) -> web.StreamResponse:
        """Forward and answer. Cancelled when the agent hangs up."""
        try:
            return await self._run(start_hook)
        except asyncio.CancelledError:
            self._dropped()
            raise
        except ConnectionError as error:
            self._dropped(str(error))
            raise
        finally:
            self._end(500, error="the session failed")  # does nothing after any other end

    async def _run(self, start_hook: StartHook) -> web.StreamResponse:
        asking = asyncio.ensure_future(
            self._upstream.ask(
                self._request.path,
                self._request.query_string,
                self._request.headers,
                self._sent,
                stream=self._streams,
                effort=self._effort,
                pauses=self._turn is not None,
            )
        )
        try:
            hook: asyncio.Task[None] | None = None
            if self._turn is not None and not self._turn.repeat:
                await asyncio.sleep(0)  # the request goes first
                hook = start_hook(self._turn.number)
            answer = await asking
            if hook is not None:
                await asyncio.wait({hook}, timeout=self._config.hold_seconds)
        except asyncio.CancelledError:
            await _abandon(asking)
            raise
        self._first_byte = self._clock.monotonic() - self._started
        return await self._answer(answer)

    async def _answer(self, answer: Answer) -> web.StreamResponse:
        if isinstance(answer, Streaming):
            try:
                return await self._stream(answer)
            finally:
                answer.response.close() if not self._reply.complete else answer.response.release()
        if isinstance(answer, NoAnswer):
            self._failed(None, answer.message)
            self._end(502, aborted="provider", error=answer.message)
            return refusal.unreachable(self._shared.dialect)
        return self._whole(answer)

    def _whole(self, answer: Whole) -> web.Response:
        headers = self._headers(answer.headers)
        text = answer.body.decode("utf-8", "replace")
        message = object_of(text)
        self._received = len(answer.body)
        if answer.status != 200:
            self._generated = False
            if self._turn is not None and self._shared.dialect.refusal_error(answer.status, message or {}):
                self._shared.refused_by_model = self._visible
            if answer.exhausted or answer.status in OUR_FAULT:
                self._failed(answer.status, text)
                headers |= refusal.NO_RETRY
            self._end(answer.status, aborted="provider" if answer.exhausted else None, error=text)
        else:
            if self._turn is not None and message is not None:
                parts = self._reply.whole(message)
                self._shared.models.see(self._reply.model)
                self._parts(parts)
                if not self._reply.complete:
                    self._cut(f"the answer is none of the {self._shared.dialect.name} API: {text[:200]}")
            self._end(200, error=None if message is not None else "the answer is no JSON object")
        return web.Response(status=answer.status, body=answer.body, headers=headers)

    async def _stream(self, answer: Streaming) -> web.StreamResponse:
        response = web.StreamResponse(status=200, headers=self._headers(answer.response.headers))
        await response.prepare(self._request)
        parser: SseParser | None = SseParser()
        chunk = answer.first
        while chunk:
            self._received += len(chunk)
            if passed := self._filter.feed(chunk):
                parser = self._read_along(parser, passed)
                await response.write(passed)
            if self._received > self._config.max_reply:
                return self._broken_off(response, f"the provider's answer is longer than {self._config.max_reply} bytes")
            try:
                chunk = await answer.response.content.readany()
            except BROKEN as error:
                return self._broken_off(response, f"{type(error).__name__}: {error}")
        rest = self._filter.flush()
        self._read_along(parser, rest)
        self._parts(self._reply.end())
        if self._reply.complete:
            self._end(200)
        if rest:
            await response.write(rest)
        unfinished = "the provider ended its stream before it said that the answer is complete"
        if not self._reply.complete and self._reply.error is None and self._reply.stop_reason is None:
            return self._broken_off(response, unfinished)  # in good order a program would take it for the whole answer
        self._cut(self._reply.error or unfinished)
        await response.write_eof()
        return response

    def _broken_off(self, response: web.StreamResponse, why: str) -> web.StreamResponse:
        """Cut as received: no end of the stream for the agent either."""
        self._cut(why)
        if self._request.transport is not None:
            self._request.transport.close()
        return response

    def _read_along(self, parser: SseParser | None, chunk: bytes) -> SseParser | None:
        """Record what the chunk completes, before the agent has it. None from then on where the stream cannot be read."""
        if parser is None:
            return None
        try:
            events: list[SseEvent] = parser.feed(chunk)
        except SseTooLong as error:
            self._reply.error = str(error)
            return None
        for event in events:
            parts = self._reply.feed(event)
            if self._turn is not None:
                self._shared.models.see(self._reply.model)
            self._parts(parts)
        if self._reply.complete:
            self._end(200)
        return parser

    def _parts(self, parts: list[Part]) -> None:
        """What the agent is about to read."""
        if self._turn is not None:
            self._shared.witness.said(self._id, parts)
        self._recorder.parts(parts, visible=self._visible)

    def _pinned(self, body: dict[str, Any]) -> bytes:
        """The agent's own bytes if it asks for the pinned model, else the same with the model replaced."""
        if body.get("model") == self._config.model:
            return self._raw
        return json.dumps({**body, "model": self._config.model}, separators=(",", ":")).encode()

    def _failed(self, status: int | None, message: str) -> None:
        if self._turn is not None:
            self._shared.failed(ProviderFailure(self._turn.number, status, self._effort.attempts, message[:2000]))

    def _cut(self, why: str) -> None:
        if not self._ended:
            self._end(200, aborted="provider", error=self._reply.error or why)

    def _dropped(self, error: str | None = None) -> None:
        if not self._ended:
            status = 200 if self._first_byte is not None else AGENT_GONE
            if self._shared.stopping:
                self._end(status, error="the session stopped")
            else:
                self._end(status, aborted="agent", error=error)

    def _end(self, status: int, *, aborted: Aborted | None = None, error: str | None = None) -> None:
        if self._ended:
            return
        self._ended = True
        if self._turn is not None:
            self._shared.witness.ended(self._id, complete=self._reply.complete)
        if aborted == "provider" and self._turn is not None:
            self._turns.cut_by_provider(self._key, self._turn.number)
            if self._visible and self._first_byte is not None:
                self._shared.cut_by_provider = f"the provider cut the answer to turn {self._turn.number}: {error}"
        if self._turn is not None and self._visible and self._reply.complete:
            self._shared.refused_by_model = self._reply.refusal
        cost = None
        if self._turn is not None and self._generated:
            cost = self._shared.account.add(self._reply.tokens(), len(self._sent), self._received)
        if not self._recorded:
            return
        self._recorder.reply(
            self._id,
            self._reply,
            status=status,
            cost=cost,
            attempts=max(1, self._effort.attempts),
            waited=self._effort.waited,
            first_byte=self._first_byte,
            total=self._clock.monotonic() - self._started,
            aborted=aborted,
            error=error,
        )

    def _headers(self, headers: Any) -> dict[str, str]:
        passed = ((name, value) for name, value in headers.items() if self._shared.dialect.passed_back(name.lower()))
        return {name: self._filter.text(value) for name, value in passed if _SENDABLE.fullmatch(value)}


async def _abandon(task: asyncio.Future[Answer]) -> None:
    """Cancel a request under way and close what it had opened."""
    if task.cancel():
        await asyncio.gather(task, return_exceptions=True)
    elif not task.cancelled() and task.exception() is None:
        answer = task.result()
        if isinstance(answer, Streaming):
            answer.response.close()
