"""A proxy in front of the API server that can be told how to misbehave. Plain HTTP on loopback; the token passes through.

A rule is asked about every request and answers with a `Fault` or None; rules are asked in the order in which they were added.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector, web

HOP = frozenset({"host", "transfer-encoding", "connection", "content-length", "content-encoding", "accept-encoding"})
STATUS_REASONS = {
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@dataclass(frozen=True)
class Asked:
    """What a rule sees of a request."""

    method: str
    path: str
    query: dict[str, str]
    number: int
    """How many requests of this method and path came before, from 0."""

    @property
    def is_write(self) -> bool:
        return self.method in {"POST", "PUT", "PATCH", "DELETE"} and "dryRun" not in self.query

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") in {"1", "true"}

    @property
    def is_list(self) -> bool:
        return self.method == "GET" and not self.is_watch and self.path.rsplit("/", 1)[-1] in PLURALS


PLURALS = frozenset({"pods", "jobs", "trials", "benchmarksweeps"})


@dataclass(frozen=True)
class Fault:
    """What happens to a request. Without anything: nothing."""

    delay: float = 0.0
    """Seconds before it is forwarded."""
    status: int | None = None
    """Answered by the proxy with this status and a Status object; not forwarded."""
    retry_after: int | None = None
    lost: bool = False
    """Forwarded and done, and the connection breaks instead of the answer."""
    refused: bool = False
    """The connection breaks before anything is forwarded."""
    expired: bool = False
    """A watch: its stream says 410 after its first event."""
    stale: bool = False
    """A LIST: the first answer that this LIST ever had is given again."""
    held: asyncio.Event | None = None
    """Forwarded once this is set; for a watch: what it sends is held back until then."""
    silent: bool = False
    """A watch: connected, and not a byte comes."""


Rule = Callable[[Asked], Fault | None]


@dataclass
class FaultProxy:
    """``rules`` may be changed at any time; ``seen`` counts requests by fault for a test to show that it had any."""

    upstream: str
    rules: list[Rule] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    url: str = ""
    errors: list[str] = field(default_factory=list)
    """Its own, of which there must be none."""
    _numbers: Counter[tuple[str, str]] = field(default_factory=Counter)
    _lists: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    _connections: dict[int, asyncio.BaseTransport] = field(default_factory=dict)

    async def start(self) -> None:
        self._session = ClientSession(
            connector=TCPConnector(ssl=False, limit=0), timeout=ClientTimeout(total=None), auto_decompress=False
        )
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        self._site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await self._site.start()
        server = self._site._server
        assert isinstance(server, asyncio.Server)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        await self._site.stop()
        await _turns()  # what had connected just before is known to the server then, and closed with the others
        await self._runner.cleanup()
        await self._session.close()
        self.drop()
        await _turns()

    def drop(self) -> None:
        """Break every connection there is now."""
        for connection in self._connections.values():
            connection.abort()  # type: ignore[attr-defined]
        self._connections.clear()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            self._connections[id(request.transport)] = request.transport
        try:
            return await self._answer(request)
        except (ConnectionError, ClientError):  # one of the two sides has gone
            raise
        except Exception as error:
            self.errors.append(repr(error))
            raise

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        key = (request.method, request.path)
        asked = Asked(request.method, request.path, dict(request.query), self._numbers[key])
        self._numbers[key] += 1
        fault = next((fault for rule in self.rules if (fault := rule(asked)) is not None), Fault())
        for name in ("delay", "status", "lost", "refused", "expired", "stale", "silent", "held"):
            self.seen[name] += bool(getattr(fault, name))
        await asyncio.sleep(fault.delay)
        if fault.refused:
            return _broken(request)
        if fault.status is not None:
            self.seen[str(fault.status)] += 1
            return _status(fault.status, fault.retry_after)
        if asked.is_watch:
            return await self._watch(request, fault)
        if fault.held is not None:
            await fault.held.wait()
        code, headers, body = await self._forward(request)
        if asked.is_list:
            first = self._lists.setdefault(request.path_qs.split("&continue")[0], (code, body))
            if fault.stale and first[0] == 200:
                return web.Response(status=200, body=first[1], content_type="application/json")
        if fault.lost:
            return _broken(request)
        return web.Response(status=code, headers=headers, body=body)

    async def _forward(self, request: web.Request) -> tuple[int, dict[str, str], bytes]:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP}
        url = self.upstream + request.path_qs
        async with self._session.request(request.method, url, headers=headers, data=await request.read()) as answer:
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in HOP}
            return answer.status, kept, await answer.read()

    async def _watch(self, request: web.Request, fault: Fault) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP}
        stream = web.StreamResponse(headers={"Content-Type": "application/json"})
        async with self._session.get(self.upstream + request.path_qs, headers=headers) as answer:
            if answer.status != 200:
                return web.Response(status=answer.status, body=await answer.read(), content_type="application/json")
            await stream.prepare(request)
            if fault.silent:
                await asyncio.Event().wait()
            with contextlib.suppress(ClientError, ConnectionError):
                async for line in answer.content:
                    if fault.held is not None:
                        await fault.held.wait()
                    await stream.write(line)
                    if fault.expired:
                        gone = {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410, "message": "too old"}
                        await stream.write(json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")
                        break
        return stream


async def _turns() -> None:
    """A few turns of the loop."""
    for _ in range(10):
        await asyncio.sleep(0)


def _broken(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()  # type: ignore[attr-defined]
    return web.Response(status=500)


def _status(code: int, retry_after: int | None) -> web.Response:
    reason = STATUS_REASONS.get(code, "InternalError")
    body = {
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": f"a fault of the test: {reason}",
    }  # fmt: skip
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return web.json_response(body, status=code, headers=headers)


def misbehaving(seed: int, share: float = 0.2) -> Rule:
    """A share of all requests meets one of everything, chosen by ``seed``."""
    rng = random.Random(seed)

    def rule(asked: Asked) -> Fault | None:
        if rng.random() > share:
            return None
        if asked.is_watch:
            return rng.choice([Fault(expired=True), Fault(status=429, retry_after=1), Fault(status=410), Fault(refused=True)])
        faults = [Fault(delay=rng.uniform(0.1, 1.0)), Fault(status=429), Fault(status=503), Fault(lost=True), Fault(refused=True)]
        if asked.is_write and asked.method != "POST":
            faults.append(Fault(status=409))
        if asked.is_list:
            faults += [Fault(stale=True), Fault(status=410)]
        return rng.choice(faults)

    return rule


@contextlib.asynccontextmanager
async def proxied(upstream: str, *rules: Rule) -> AsyncIterator[FaultProxy]:
    """A proxy in front of ``upstream`` with these rules, until the block ends."""
    proxy = FaultProxy(upstream, list(rules))
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
    assert proxy.errors == []


def only(matches: Callable[[Asked], Any], fault: Fault) -> Rule:
    """``fault`` for the requests that match."""
    return lambda asked: fault if matches(asked) else None
