"""The HTTP server. Keys are checked; conversations are not kept: see choose.py."""

from __future__ import annotations

import asyncio
import hmac
import json
from dataclasses import replace
from typing import Any

from aiohttp import web
from pydantic import Field, ValidationError

from realcli_provider import faults
from realcli_provider.choose import choose
from realcli_provider.conversation import Request
from realcli_provider.dialects import DIALECTS
from realcli_provider.dialects.port import Dialect, sse
from realcli_provider.record import Record
from realcli_provider.reply import Made, changed, input_tokens, make, mark_of
from realcli_provider.script import Answer, Fault, Script, ScriptError

MAX_BODY = 64 << 20


class Control(Fault):
    """What a test may change with POST /control; a field left out goes back to this. `times`: for so many generations."""

    stick: str | None = Field(None, description="answer every generation that offers tools with this command, for ever")


class Provider:
    """Routes and what they share."""

    def __init__(self, api_key: str, script: Script, control: bool = False) -> None:
        self._key = api_key
        self._script = script
        self._record = Record(full=control)
        self._control: Control | None = None
        self._due = faults.Due(script)
        self.app = web.Application(client_max_size=MAX_BODY)
        self.app.add_routes(
            [
                web.route("HEAD", "/", self._nothing),
                web.get("/healthz", self._healthz, allow_head=False),
                web.get("/requests", self._requests, allow_head=False),
                web.get("/v1/models", self._models, allow_head=False),
                web.post("/v1/messages/count_tokens", self._count_tokens),
                *(web.post(path, self._generate) for path in DIALECTS),
            ]
        )
        if control:
            self.app.add_routes([web.post("/control", self._set_control), web.get("/control/requests", self._all_requests)])
        self.app.router.add_route("*", "/{path:.*}", self._unknown)

    # -- the provider's own routes

    async def _generate(self, request: web.Request) -> web.StreamResponse:
        dialect = DIALECTS[request.path]
        body, refusal = await self._accept(request, dialect)
        if refusal is not None:
            return refusal
        asked = dialect.parse(body)
        try:
            answer, rule = choose(self._script, asked)
            answer, fault = self._troubled(asked, answer, rule)
            made = self._made(request, body, asked, answer, fault)
        except ScriptError as error:
            return self._error(request, 400, f"the script: {error}", body)  # nobody should try that again
        try:
            await faults.before(request, fault)
            if fault.status is not None:
                return self._failed(request, dialect, fault, body, rule)
            self._note(request, 200, body, rule)
            return await self._answer(request, dialect, made, body, asked.stream, fault)
        except (faults.Gone, ConnectionError):
            return web.Response(status=499)  # nobody reads it

    async def _answer(
        self, request: web.Request, dialect: Dialect, made: Made, body: dict[str, Any], streamed: bool, fault: Fault
    ) -> web.StreamResponse:
        headers = {"request-id": _request_id(body), "x-request-id": _request_id(body), **fault.headers}
        if fault.garbage:
            return web.Response(body=faults.GARBAGE, headers={"content-type": "application/json", **headers})
        if not streamed and not fault.model_fields_set & {"cut", "reset", "stall"}:
            return web.json_response(dialect.whole(made, body), headers=headers)
        kind = "text/event-stream; charset=utf-8" if streamed else "application/json"
        response = web.StreamResponse(headers={"content-type": kind, "cache-control": "no-cache", **headers})
        await response.prepare(request)
        overloaded = dialect.error(529, "Overloaded", _request_id(body))
        error = sse("error", {"type": "error", **overloaded}) if dialect.api != "chat" else sse(None, overloaded)
        whole = json.dumps(dialect.whole(made, body)).encode()
        events = dialect.events(made, body) if streamed else [whole[: len(whole) // 2], whole[len(whole) // 2 :]]
        await faults.stream(request, response, events, fault, error)
        return response

    async def _count_tokens(self, request: web.Request) -> web.StreamResponse:
        body, refusal = await self._accept(request, DIALECTS["/v1/messages"], {"max_tokens": 1})
        if refusal is not None:
            return refusal
        self._note(request, 200, body)
        return web.json_response({"input_tokens": input_tokens(body)})

    async def _models(self, request: web.Request) -> web.StreamResponse:
        if not self._may(request):
            return self._error(request, 401, "invalid x-api-key")
        self._note(request, 200)
        listed = [
            {
                "type": "model",
                "id": id,
                "display_name": id,
                "created_at": "2026-01-01T00:00:00Z",
                "object": "model",
                "owned_by": "script",
            }
            for id in self._script.models
        ]
        ends = {"first_id": listed[0]["id"], "last_id": listed[-1]["id"]} if listed else {}
        return web.json_response({"object": "list", "data": listed, "has_more": False, **ends})

    async def _nothing(self, request: web.Request) -> web.StreamResponse:
        return web.Response()

    async def _unknown(self, request: web.Request) -> web.StreamResponse:
        return self._error(request, 404, f"{request.method} {request.path} is not here")

    # -- for people and tests

    async def _healthz(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text="ok\n")

    async def _requests(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self._record.show())

    async def _all_requests(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self._record.show_full())

    async def _set_control(self, request: web.Request) -> web.StreamResponse:
        wanted = await request.json()
        try:
            self._control = Control.model_validate(wanted) if wanted else None
        except ValidationError as error:
            known = ", ".join(sorted(Control.model_fields))
            return web.json_response({"error": f"expected an object with {known}: {error}"}, status=400)
        return web.json_response(wanted)

    # -- shared

    def _troubled(self, asked: Request, answer: Answer, rule: str) -> tuple[Answer, Fault]:
        """The answer and the fault that apply: a test's control first, then the script's."""
        control = self._control
        if control is None:
            return answer, self._due.of(asked, answer.fault, rule) or Fault()
        if control.times is not None:
            self._control = control.model_copy(update={"times": control.times - 1}) if control.times > 1 else None
        if control.stick is not None and not asked.side:
            answer = Answer(run=control.stick)
        return answer, control

    def _made(self, request: web.Request, body: dict[str, Any], asked: Request, answer: Answer, fault: Fault) -> Made:
        if fault.echo:
            answer = Answer(say="\n".join(f"{name.lower()}: {value}" for name, value in request.headers.items()))
        made = changed(make(body, asked, answer), fault.usage)
        return replace(made, model=fault.model or self._script.answer_as or made.model)

    def _failed(self, request: web.Request, dialect: Dialect, fault: Fault, body: object, rule: str) -> web.Response:
        assert fault.status is not None
        self._note(request, fault.status, body, rule)
        id = _request_id(body)
        content = fault.body if fault.body is not None else dialect.error(fault.status, "as the script wants it", id)
        text = content if isinstance(content, str) else json.dumps(content)
        headers = {"request-id": id, "x-request-id": id, "content-type": "application/json", **fault.headers}
        return web.Response(text=text, status=fault.status, headers=headers)

    async def _accept(
        self, request: web.Request, dialect: Dialect, default: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], web.StreamResponse | None]:
        """(body, None), or the error to answer with."""
        if not self._may(request):
            message = "invalid x-api-key" if dialect.api == "anthropic" else "Incorrect API key provided"
            return {}, self._error(request, 401, message)
        try:
            body = json.loads(await request.read())
        except ValueError:
            return {}, self._error(request, 400, "the request body is not valid JSON")
        if default is not None and isinstance(body, dict):
            body = default | body
        fault = dialect.invalid(body)
        return ({}, self._error(request, 400, fault, body)) if fault else (body, None)

    def _may(self, request: web.Request) -> bool:
        return hmac.compare_digest((_key(request) or "").encode(), self._key.encode())

    def _error(self, request: web.Request, status: int, message: str, body: object = None) -> web.Response:
        self._note(request, status, body)
        dialect, id = DIALECTS.get(request.path, DIALECTS["/v1/messages"]), _request_id(body)
        headers = {"request-id": id, "x-request-id": id}
        return web.json_response(dialect.error(status, message, id), status=status, headers=headers)

    def _note(self, request: web.Request, status: int, body: object = None, rule: str | None = None) -> None:
        self._record.add(request.path, status, _key(request), body, request.headers, rule)


def _key(request: web.Request) -> str | None:
    """The key a request brings, as either company's clients do."""
    if (key := request.headers.get("x-api-key")) is not None:
        return key
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def _request_id(body: object) -> str:
    return f"req_01{mark_of(body)}"


async def serve(provider: Provider, host: str, port: int) -> web.AppRunner:
    """Start serving in this event loop; `await runner.cleanup()` ends it."""
    runner = web.AppRunner(provider.app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, host, port, reuse_address=True).start()
    await asyncio.sleep(0)
    return runner
