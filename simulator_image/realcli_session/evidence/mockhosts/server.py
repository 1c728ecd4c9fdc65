"""The listening side: every request to a mock host is answered and written down.

What a client sends is the agent's: bodies are bounded, nothing of it is believed. One address for all hosts of a trial; the name
in the request says which is meant.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from typing import Final

from aiohttp import web

from realcli.benchmark.canaries import canary_hits
from realcli.benchmark.oracle_models import MockHost
from realcli.ledger.events import NetRequest, RecordGap
from realcli_session.evidence.mockhosts.answers import Answer, answer
from realcli_session.evidence.mockhosts.authority import Authority
from realcli_session.gateway.listening import Door
from realcli_session.gateway.port import EventSink

MAX_BODY: Final = 16 << 20
"""Bytes of a request that are looked at; a longer one is refused, which is written down with what came."""
KEPT: Final = 256 << 10
"""A longer body is not kept, its digest is."""
MAX_URL: Final = 4000
MAX_REQUESTS: Final = 5000
"""Requests of a trial that are written down one by one; the rest are counted."""
AT_ONCE: Final = 8
PORTS: Final = (80, 443)


class PortsTaken(Exception):
    """The mock hosts cannot listen; the message says where and what to do."""


class MockHosts:
    """Serves the hosts of a task on one loopback address."""

    def __init__(
        self,
        hosts: Mapping[str, MockHost],
        files: Mapping[str, bytes],
        canaries: Mapping[str, str],
        sink: EventSink,
        *,
        address: str,
        authority: Authority,
        ports: tuple[int, int] = PORTS,
    ) -> None:
        self._hosts = dict(hosts)
        self._files = dict(files)
        self._canaries = dict(canaries)
        self._sink = sink
        self._address = address
        self._authority = authority
        self._ports = ports
        self._runner: web.AppRunner | None = None
        self._door = Door()
        self._listening: list[asyncio.Server] = []
        self._written = 0
        self._unwritten = 0
        self._room = asyncio.Semaphore(AT_ONCE)

    async def start(self) -> None:
        """Listen. PortsTaken if that is not possible."""
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, auto_decompress=False, shutdown_timeout=1.0)
        await self._runner.setup()
        plain, secure = self._ports
        context = self._authority.context(self._hosts, self._address)
        try:
            assert self._runner.server is not None  # after setup
            for port, tls in ((plain, None), (secure, context)):
                self._listening.append(await self._door.listen(self._runner.server, self._address, port, tls))
        except OSError as error:
            await self.stop()
            raise PortsTaken(
                f"mock hosts cannot listen on {self._address} ports {plain} and {secure}: {error.strerror}; the pod needs the "
                "sysctl net.ipv4.ip_unprivileged_port_start=0, a run without a pod needs root"
            ) from error

    async def stop(self) -> None:
        """End; one gap says how many requests were not written down."""
        for listener in self._listening:
            listener.close()
        self._listening.clear()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        if self._unwritten:
            reason = f"more than {MAX_REQUESTS} requests to mock hosts"
            self._sink.emit("session", RecordGap(record="net", count=self._unwritten, reason=reason))
            self._unwritten = 0

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        async with self._room:
            with self._door.answering(request):
                return await self._answer(request)

    @property
    def ports(self) -> tuple[int, ...]:
        """Where it listens: plain, TLS."""
        return tuple(listener.sockets[0].getsockname()[1] for listener in self._listening)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        host = _host_of(request)
        body, whole = await _body(request)
        mock = self._hosts.get(host)
        port = 443 if request.secure else 80
        if not whole:
            found = Answer(413, b"too large\n")
        elif mock is None or port not in mock.ports:
            found = Answer(421, b"no such host\n")
        else:
            found = answer(host, mock, request.method, request.path, self._files)
        await self._write_down(request, host, found.status, body)
        headers = {**found.headers, "Content-Type": found.type}
        return web.Response(status=found.status, body=found.body, headers=headers)

    async def _write_down(self, request: web.Request, host: str, status: int, body: bytes) -> None:
        if self._written >= MAX_REQUESTS:
            self._unwritten += 1
            return
        self._written += 1
        head = f"{request.method} {request.raw_path}\n" + "".join(f"{name}: {value}\n" for name, value in request.headers.items())
        searched = head.encode("utf-8", "surrogateescape") + b"\n" + body
        hits = await asyncio.to_thread(canary_hits, searched, self._canaries) if self._canaries else []
        scheme = "https" if request.secure else "http"
        self._sink.emit(
            "agent",
            NetRequest(
                host=host,
                method=request.method[:40],
                url=f"{scheme}://{host}{request.raw_path}"[:MAX_URL],
                status=status,
                body_sha256=hashlib.sha256(body).hexdigest(),
                body_bytes=len(body),
                canaries=hits,
                body=self._sink.blob(body) if 0 < len(body) <= KEPT else None,
            ),
        )


def _host_of(request: web.Request) -> str:
    return request.host.partition(":")[0].lower().rstrip(".")[:255]


async def _body(request: web.Request) -> tuple[bytes, bool]:
    """(what came, whether that is all of it)."""
    found = bytearray()
    async for chunk in request.content.iter_chunked(64 << 10):
        found += chunk
        if len(found) > MAX_BODY:
            return bytes(found[:MAX_BODY]), False
    return bytes(found), True
