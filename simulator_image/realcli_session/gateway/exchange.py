"""One request's way through the gateway: counted, recorded, forwarded, answered; whatever cuts it, its end is recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from realcli.api.trial import Tokens
from realcli_session.gateway import refusal
from realcli_session.gateway.config import GatewayConfig
from realcli_session.gateway.port import Clock, ProviderFailure
from realcli_session.gateway.record import Aborted, Recorder
from realcli_session.gateway.reply import Reply
from realcli_session.gateway.retry import OUR_FAULT
from realcli_session.gateway.sse import SseEvent, SseParser, SseTooLong
from realcli_session.gateway.turns import Turn, TurnCounter, turn_key
from realcli_session.gateway.upstream import BROKEN, Answer, Effort, NoAnswer, Streaming, Upstream, Whole

AGENT_GONE = 499
"""Status recorded for a request the agent dropped before it was answered."""
SUB_AGENT = "x-claude-code-agent-id"
"""Header by which the program marks the requests of its sub-agents; their text is not shown to the user."""
_PASSED_BACK = ("content-type", "request-id", "retry-after", "x-should-retry")
StartHook = Callable[[int], asyncio.Task[None]]


@dataclass
class Ledgered:
    """What all exchanges of a trial add up to."""

    tokens: Tokens = field(default_factory=Tokens)
    provider_failed: asyncio.Event = field(default_factory=asyncio.Event)
    provider_failure: ProviderFailure | None = None
    stopping: bool = False

    def add(self, used: Tokens | None) -> None:
        """Add the usage of one reply."""
        if used is not None:
            fields = {name: getattr(self.tokens, name) + getattr(used, name) for name in Tokens.model_fields}
            self.tokens = Tokens(**fields)

    def failed(self, failure: ProviderFailure) -> None:
        """The provider let a turn down."""
        self.provider_failure = self.provider_failure or failure
        self.provider_failed.set()


class Exchange:
    """A request and its answer. `accept` (generation requests only) and `record`, then `run`, without a pause between."""

    def __init__(
        self,
        config: GatewayConfig,
        upstream: Upstream,
        recorder: Recorder,
        turns: TurnCounter,
        clock: Clock,
        shared: Ledgered,
        request: web.Request,
        raw: bytes,
        body: dict[str, Any],
    ) -> None:
        self._config = config
        self._upstream = upstream
        self._recorder = recorder
        self._turns = turns
        self._clock = clock
        self._shared = shared
        self._request = request
        self._raw = raw
        self._body = body
        self._key = turn_key(body)
        self._id = recorder.next_id()
        self._turn: Turn | None = None
        self._reply = Reply()
        self._effort = Effort()
        self._started = clock.monotonic()
        self._first_byte: float | None = None
        self._visible = bool(body.get("tools")) and SUB_AGENT not in request.headers
        self._ended = False
        self._recorded = False

    def accept(self) -> bool:
        """Take a turn; False when the limit is used up."""
        self._turn = self._turns.accept(self._key)
        return self._turn is not None

    def record(self) -> None:
        """Write the request down, before anything of it leaves."""
        self._recorded = self._recorder.request(
            self._id, self._request.path, self._raw, self._body, model_sent=self._config.model, turn=self._turn
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
                self._pinned(),
                stream=self._body.get("stream") is True,
                effort=self._effort,
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
            return refusal.unreachable()
        return self._whole(answer)

    def _whole(self, answer: Whole) -> web.Response:
        headers = _headers(answer.headers)
        if answer.status != 200:
            text = answer.body.decode("utf-8", "replace")
            if answer.exhausted or answer.status in OUR_FAULT:
                self._failed(answer.status, text)
                headers |= refusal.NO_RETRY
            self._end(answer.status, aborted="provider" if answer.exhausted else None, error=text)
        else:
            try:
                message = json.loads(answer.body)
            except (ValueError, RecursionError):
                message = None
            if self._turn is not None and isinstance(message, dict):
                self._recorder.blocks(self._reply.whole(message), visible=self._visible)
            self._end(200, error=None if isinstance(message, dict) else "the answer is no JSON object")
        return web.Response(status=answer.status, body=answer.body, headers=headers)

    async def _stream(self, answer: Streaming) -> web.StreamResponse:
        response = web.StreamResponse(status=200, headers=_headers(answer.response.headers))
        await response.prepare(self._request)
        parser: SseParser | None = SseParser()
        chunk = answer.first
        while chunk:
            parser = self._read_along(parser, chunk)
            await response.write(chunk)
            try:
                chunk = await answer.response.content.readany()
            except BROKEN as error:
                self._cut(f"{type(error).__name__}: {error}")
                if self._request.transport is not None:
                    self._request.transport.close()  # cut as received: no end of the stream for the agent either
                return response
        self._cut(self._reply.error or "the provider ended its stream before message_stop")
        await response.write_eof()
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
            self._recorder.blocks(self._reply.feed(event), visible=self._visible)
        if self._reply.complete:
            self._end(200)
        return parser

    def _pinned(self) -> bytes:
        """The agent's own bytes if it asks for the pinned model, else the same with the model replaced."""
        if self._body.get("model") == self._config.model:
            return self._raw
        return json.dumps({**self._body, "model": self._config.model}, separators=(",", ":")).encode()

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
        if aborted == "provider" and self._turn is not None:
            self._turns.cut_by_provider(self._key, self._turn.number)
        self._shared.add(self._reply.tokens() if self._turn is not None else None)
        if not self._recorded:
            return
        self._recorder.reply(
            self._id,
            self._reply,
            status=status,
            attempts=max(1, self._effort.attempts),
            waited=self._effort.waited,
            first_byte=self._first_byte,
            total=self._clock.monotonic() - self._started,
            aborted=aborted,
            error=error,
        )


async def _abandon(task: asyncio.Future[Answer]) -> None:
    """Cancel a request under way and close what it had opened."""
    if task.cancel():
        await asyncio.gather(task, return_exceptions=True)
    elif not task.cancelled() and task.exception() is None:
        answer = task.result()
        if isinstance(answer, Streaming):
            answer.response.close()


def _headers(headers: Any) -> dict[str, str]:
    return {
        name: value for name, value in headers.items() if name.lower() in _PASSED_BACK or name.lower().startswith("anthropic-")
    }
