"""The HTTP server. Keys are checked; conversations are not kept: see agent.py."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from dataclasses import dataclass, fields
from typing import Any

from aiohttp import web

from provider import agent, wire
from provider.conversation import Action, Bash
from provider.record import Record

MODELS = ["claude-sonnet-4-5", "claude-opus-4-8", "claude-haiku-4-5"]  # listed; any other id is answered too
MAX_BODY = 64 << 20


@dataclass
class Control:
    """What a test may change with POST /control; a field left out goes back to this."""

    delay: float = 0.0  # seconds before the first byte of a generation
    status: int | None = None  # answer generations with this error
    stick: str | None = None  # answer every generation that offers tools with this command, for ever
    model: str | None = None  # answer with this model id
    cut: bool = False  # break the connection in the middle of a stream
    times: int | None = None  # for so many generations, then as before; None: until changed


class Provider:
    """Routes and what they share."""

    def __init__(self, api_key: str, control: bool = False) -> None:
        self._key = api_key
        self._record = Record()
        self._control = Control()
        self.app = web.Application(client_max_size=MAX_BODY)
        self.app.add_routes(
            [
                web.route("HEAD", "/", self._nothing),
                web.get("/healthz", self._healthz, allow_head=False),
                web.get("/requests", self._requests, allow_head=False),
                web.get("/v1/models", self._models, allow_head=False),
                web.post("/v1/messages", self._messages),
                web.post("/v1/messages/count_tokens", self._count_tokens),
            ]
        )
        if control:
            self.app.add_routes([web.post("/control", self._set_control)])
        self.app.router.add_route("*", "/{path:.*}", self._unknown)

    # -- the provider's own routes

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        body, refusal = await self._accept(request)
        if refusal is not None:
            return refusal
        control = self._due()
        if control.delay:
            await asyncio.sleep(control.delay)
        if control.status is not None:
            return self._error(request, control.status, "as asked for by /control", body)
        action: Action = agent.answer(body)
        if control.stick is not None and body.get("tools"):
            action = Bash(control.stick, "Go on")
        answer = wire.message(body, action)
        answer["model"] = control.model or answer["model"]
        self._note(request, 200, body)
        if not body.get("stream"):
            return web.json_response(answer, headers={"request-id": _request_id(body)})
        return await self._stream(request, answer, body, control.cut)

    async def _stream(self, request: web.Request, answer: dict[str, Any], body: object, cut: bool) -> web.StreamResponse:
        headers = {
            "content-type": "text/event-stream; charset=utf-8",
            "cache-control": "no-cache",
            "request-id": _request_id(body),
        }
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        events = list(wire.events(answer))
        for event in events[: len(events) // 2] if cut else events:
            await response.write(event)
        if cut:
            if request.transport is not None:
                request.transport.abort()
        else:
            await response.write_eof()
        return response

    async def _count_tokens(self, request: web.Request) -> web.StreamResponse:
        body, refusal = await self._accept(request, {"max_tokens": 1})
        if refusal is not None:
            return refusal
        self._note(request, 200, body)
        return web.json_response({"input_tokens": wire.input_tokens(body)})

    async def _models(self, request: web.Request) -> web.StreamResponse:
        if not self._may(request):
            return self._error(request, 401, "invalid x-api-key")
        self._note(request, 200)
        listed = [{"type": "model", "id": id, "display_name": id, "created_at": "2026-01-01T00:00:00Z"} for id in MODELS]
        return web.json_response({"data": listed, "has_more": False, "first_id": MODELS[0], "last_id": MODELS[-1]})

    async def _nothing(self, request: web.Request) -> web.StreamResponse:
        return web.Response()

    async def _unknown(self, request: web.Request) -> web.StreamResponse:
        return self._error(request, 404, f"{request.method} {request.path} is not here")

    # -- for people and tests

    async def _healthz(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text="ok\n")

    async def _requests(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self._record.show())

    async def _set_control(self, request: web.Request) -> web.StreamResponse:
        known = {field.name for field in fields(Control)}
        wanted = await request.json()
        if not isinstance(wanted, dict) or set(wanted) - known:
            return web.json_response({"error": f"expected an object with {', '.join(sorted(known))}"}, status=400)
        self._control = Control(**wanted)
        return web.json_response(wanted)

    # -- shared

    async def _accept(
        self, request: web.Request, default: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], web.StreamResponse | None]:
        """(body, None), or the error to answer with."""
        if not self._may(request):
            return {}, self._error(request, 401, "invalid x-api-key")
        try:
            body = json.loads(await request.read())
        except ValueError:
            return {}, self._error(request, 400, "the request body is not valid JSON")
        if default is not None and isinstance(body, dict):
            body = default | body
        fault = wire.invalid(body)
        return ({}, self._error(request, 400, fault, body)) if fault else (body, None)

    def _may(self, request: web.Request) -> bool:
        return hmac.compare_digest(request.headers.get("x-api-key", "").encode(), self._key.encode())

    def _due(self) -> Control:
        """The control for this generation; counts `times` down."""
        now = self._control
        if now.times is not None:
            now.times -= 1
            if now.times <= 0:
                self._control = Control()
        return now

    def _error(self, request: web.Request, status: int, message: str, body: object = None) -> web.Response:
        self._note(request, status, body)
        kind, id = wire.ERROR_KINDS.get(status, "api_error"), _request_id(body)
        return web.json_response(wire.error_body(kind, message, id), status=status, headers={"request-id": id})

    def _note(self, request: web.Request, status: int, body: object = None) -> None:
        self._record.add(request.path, status, request.headers.get("x-api-key"), body)


def _request_id(body: object) -> str:
    return f"req_01{hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:22]}"
