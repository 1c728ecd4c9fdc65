"""A gateway on a free port, between a real HTTP client and a real, scripted HTTP provider; its ledger is the real writer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from realcli.ledger.events import Event
from realcli.ledger.writer import LedgerWriter
from realcli_session.gateway.server import Gateway

KEY = "sk-real-key-0123456789abcdef"
MODEL = "claude-test-1"
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


def start(model: str = MODEL) -> dict[str, Any]:
    usage = {"input_tokens": 100, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 20, "output_tokens": 1}
    return {
        "type": "message_start",
        "message": {"id": "msg_1", "role": "assistant", "model": model, "content": [], "usage": usage},
    }


def block(index: int, first: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": first},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text_block(index: int, *parts: str) -> list[dict[str, Any]]:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": part} for part in parts))


def end(stop: str = "end_turn") -> list[dict[str, Any]]:
    return [
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]


def message(text: str = "hello") -> bytes:
    return sse(start(), *text_block(0, text), *end())


def streams(*chunks: bytes, cut: bool = False) -> Answer:
    """A streamed 200; `cut`: the connection ends in the middle of the stream."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8", "request-id": "req_1"})
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        if cut:
            assert request.transport is not None
            request.transport.close()
        return response

    return answer


def says(status: int, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response(body if body is not None else {"type": "error"}, status=status, headers=headers)

    return answer


def hangs(until: asyncio.Event) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        await until.wait()
        return await streams(message())(request)

    return answer


async def resets(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def drain(response: aiohttp.ClientResponse, into: list[bytes]) -> None:
    async for chunk in response.content.iter_any():
        into.append(chunk)


@dataclass
class Seen:
    path: str
    headers: dict[str, str]
    raw: bytes


@dataclass
class Provider:
    """Answers by script, then for ever by the last line."""

    script: list[Answer] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    arrived: asyncio.Queue[Seen] = field(default_factory=asyncio.Queue)
    url: str = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        seen = Seen(request.path_qs, {k.lower(): v for k, v in request.headers.items()}, await request.read())
        number = len(self.seen)
        self.seen.append(seen)
        self.arrived.put_nowait(seen)
        return await self.script[min(number, len(self.script) - 1)](request)


class NoWait:
    """A clock whose sleeps pass at once and are remembered."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


@dataclass
class Rig:
    gateway: Gateway
    provider: Provider
    ledger: LedgerWriter
    events: list[Event]
    http: aiohttp.ClientSession
    clock: NoWait
    news: asyncio.Event
    path: str = "/v1/messages?beta=true"

    @property
    def origin(self) -> str:
        return self.gateway.base_url.removesuffix("/v1")

    def body(self, text: str = "hi", **more: Any) -> bytes:
        tools = [{"name": "Bash", "description": "d", "input_schema": {"type": "object"}}]
        base = {"model": MODEL, "max_tokens": 10, "stream": True, "messages": [{"role": "user", "content": text}], "tools": tools}
        return json.dumps(base | more).encode()

    def post(self, body: bytes, path: str | None = None, **headers: str) -> Any:
        sent = {"x-api-key": self.gateway.token, "content-type": "application/json"} | headers
        return self.http.post(self.origin + (path or self.path), data=body, headers=sent)

    async def ask(self, body: bytes, path: str | None = None) -> tuple[int, bytes]:
        async with self.post(body, path) as response:
            return response.status, await response.read()

    async def cut(self, body: bytes) -> bytes:
        """Ask for an answer that is cut; returns what came of it."""
        async with self.post(body) as response:
            got: list[bytes] = []
            with pytest.raises(aiohttp.ClientPayloadError):
                await drain(response, got)
        return b"".join(got)

    async def until(self, kind: str, count: int = 1) -> list[dict[str, Any]]:
        """The data of `count` events of a kind, once they are written."""
        async with asyncio.timeout(10):
            while len(found := self.of(kind)) < count:
                self.news.clear()
                await self.news.wait()
        return found

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event.data for event in self.events if event.kind == kind]

    def written(self) -> bytes:
        """Every byte of the ledger and its blobs."""
        return b"".join(path.read_bytes() for path in self.ledger.spool.rglob("*") if path.is_file())


MakeRig = Callable[..., Awaitable[Rig]]
