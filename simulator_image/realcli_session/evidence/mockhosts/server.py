"""The listening side: whatever reaches a mock host is answered, if it is a request, and written down in any case.

What a client sends is the agent's: it is bounded, and nothing of it is believed. One address for all hosts of a trial; the name
in the request says which is meant. A connection serves one request, so that all that came on it belongs to that or to none.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import unquote_to_bytes

from aiohttp import ClientError, web
from aiohttp.http_exceptions import HttpProcessingError

from realcli.benchmark.canaries import Search, search
from realcli.benchmark.oracle_models import MockHost
from realcli.ledger.events import NetRequest, RecordGap
from realcli_session.evidence.mockhosts.answers import Answer, answer
from realcli_session.evidence.mockhosts.authority import Authority
from realcli_session.evidence.mockhosts.tap import Tap, head_of
from realcli_session.gateway.listening import Door
from realcli_session.gateway.port import EventSink

MAX_BODY: Final = 16 << 20
"""Bytes of a request that are looked at; a longer one is refused, which is written down with what came."""
MAX_HEAD: Final = 64 << 10
KEPT: Final = 256 << 10
"""A longer body is not kept, its digest is."""
MAX_URL: Final = 4000
MAX_REQUESTS: Final = 5000
"""Requests of a trial that are written down one by one; the rest are counted."""
AT_ONCE: Final = 8
SMALL: Final = 1 << 20
"""Longer bodies are read one at a time: each is held several times over while it is searched."""
GAP_SECONDS: Final = 1.0
"""Between two gaps; what is lost meanwhile is counted."""
GIVEN_UP: Final = 499
"""Status written down for a request that broke off, or that was none."""
PORTS: Final = (80, 443)
_BROKEN_OFF: Final = (OSError, ClientError, HttpProcessingError, web.RequestPayloadError)


class PortsTaken(Exception):
    """The mock hosts cannot listen; the message says where and what to do."""


@dataclass(slots=True)
class _Body:
    """What came of a body."""

    decoded: bytearray | None
    """All of it, where the bytes on the connection are others (chunks)."""
    size: int = 0
    kept: bytearray = field(default_factory=bytearray)
    end: Literal["whole", "long", "broken"] = "whole"
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)

    def add(self, data: bytes) -> None:
        self.size += len(data)
        self.digest.update(data)
        self.kept += data[: KEPT + 1 - len(self.kept)]
        if self.decoded is not None:
            self.decoded += data


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
        self._runner: web.ServerRunner | None = None
        self._door = Door()
        self._listening: list[asyncio.Server] = []
        self._taps: dict[asyncio.BaseTransport, Tap] = {}
        self._rests: set[asyncio.Task[None]] = set()
        self._written = 0
        self._unwritten = 0
        self._telling: asyncio.TimerHandle | None = None
        self._room = asyncio.Semaphore(AT_ONCE)
        self._large = asyncio.Lock()

    async def start(self) -> None:
        """Listen. PortsTaken if that is not possible."""
        server = web.Server(self._serve, access_log=None, auto_decompress=False)
        self._runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=1.0)
        await self._runner.setup()
        plain, secure = self._ports
        context = self._authority.context(self._hosts, self._address)
        try:
            for port, tls in ((plain, None), (secure, context)):
                self._listening.append(await self._door.listen(server, self._address, port, tls, around=self._tapped))
        except OSError as error:
            await self.stop()
            raise PortsTaken(
                f"mock hosts cannot listen on {self._address} ports {plain} and {secure}: {error.strerror}; the pod needs the "
                "sysctl net.ipv4.ip_unprivileged_port_start=0, a run without a pod needs root"
            ) from error

    async def stop(self) -> None:
        """End. All that came is written down, or counted in a gap."""
        for listener in self._listening:
            listener.close()
        self._listening.clear()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        for tap in list(self._taps.values()):  # of connections that had not asked for anything
            if tap.transport is not None:
                tap.transport.abort()
        while self._taps or self._rests:
            await asyncio.gather(*self._rests)
            await asyncio.sleep(0)
        if self._telling is not None:
            self._telling.cancel()
            self._telling = None
        self._tell()

    @property
    def ports(self) -> tuple[int, ...]:
        """Where it listens: plain, TLS."""
        return tuple(listener.sockets[0].getsockname()[1] for listener in self._listening)

    @property
    def held(self) -> int:
        """Bytes that came and are not written down yet."""
        return sum(tap.held for tap in self._taps.values())

    # -- one connection ------------------------------------------------------------------------------------------------

    def _tapped(self, inner: asyncio.Protocol) -> asyncio.Protocol:
        return Tap(inner, MAX_HEAD + MAX_BODY, self._opened, self._closed)

    def _opened(self, tap: Tap) -> None:
        assert tap.transport is not None
        self._taps[tap.transport] = tap

    def _closed(self, tap: Tap) -> None:
        assert tap.transport is not None
        self._taps.pop(tap.transport, None)
        if tap.held:
            task = asyncio.create_task(self._write_rest(tap))
            self._rests.add(task)
            task.add_done_callback(self._rests.discard)

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        tap = None if request.transport is None else self._taps.get(request.transport)
        if tap is None:  # gone before its turn: written down as a rest
            return web.Response(status=400)
        tap.claimed = True
        written = False
        try:
            async with self._room:
                with self._door.answering(request):
                    response = await self._answer(request, tap)
                    written = True
        finally:
            if not written:
                tap.take()
                self._lose()
            tap.release()
        response.force_close()
        return response

    async def _answer(self, request: web.BaseRequest, tap: Tap) -> web.StreamResponse:
        host = _host_of(request)
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        async with contextlib.AsyncExitStack() as room:
            body = await self._body(request, room)
            mock = self._hosts.get(host)
            port = 443 if request.secure else 80
            if body.end == "broken":
                found = Answer(GIVEN_UP)
            elif body.end == "long":
                found = Answer(413, b"too large\n")
            elif mock is None or port not in mock.ports:
                found = Answer(421, b"no such host\n")
            else:
                found = answer(host, mock, request.method, request.path, self._files)
            await self._write_down(request, host, found.status, body, tap)
        return web.Response(status=found.status, body=found.body, headers={**found.headers, "Content-Type": found.type})

    async def _body(self, request: web.BaseRequest, room: contextlib.AsyncExitStack) -> _Body:
        """What comes of it. `room` is where the turn of a long one is given back."""
        body = _Body(bytearray() if "Transfer-Encoding" in request.headers else None)
        try:
            async for chunk in request.content.iter_chunked(64 << 10):
                if body.size <= SMALL < body.size + len(chunk):
                    await room.enter_async_context(self._large)
                left = MAX_BODY - body.size
                body.add(chunk[:left])
                if len(chunk) > left:
                    body.end = "long"
                    break
        except _BROKEN_OFF:
            body.end = "broken"
        return body

    # -- what is written down ------------------------------------------------------------------------------------------

    async def _write_down(self, request: web.BaseRequest, host: str, status: int, body: _Body, tap: Tap) -> None:
        tap.deaf = body.end == "long"
        parts = [tap.take(), unquote_to_bytes(request.raw_path.encode("utf-8", "surrogateescape"))]
        if body.decoded is not None:
            parts.append(bytes(body.decoded))
        if not self._counted():
            return
        found = await self._search(parts)
        scheme = "https" if request.secure else "http"
        self._sink.emit(
            "agent",
            NetRequest(
                host=host,
                method=request.method[:40],
                url=f"{scheme}://{host}{request.raw_path}"[:MAX_URL],
                status=status,
                body_sha256=body.digest.hexdigest(),
                body_bytes=body.size,
                canaries=found.hits,
                body=self._sink.blob(bytes(body.kept)) if 0 < body.size <= KEPT else None,
            ),
        )
        if body.end == "long" or tap.cut or not found.whole:
            self._gap(1, "a request to a mock host was longer, or packed more, than a search looks at")

    async def _write_rest(self, tap: Tap) -> None:
        """What came on a connection and was no request that could be answered."""
        if not self._counted():
            return
        came = tap.take()
        head = head_of(came)
        async with self._room:
            found = await self._search([came, unquote_to_bytes(head.target)])
        self._sink.emit(
            "agent",
            NetRequest(
                host=head.host,
                method=head.method,
                url=f"{head.host}{head.target}"[:MAX_URL],
                status=GIVEN_UP,
                body_sha256=hashlib.sha256(head.rest).hexdigest(),
                body_bytes=len(head.rest),
                canaries=found.hits,
                body=self._sink.blob(head.rest) if 0 < len(head.rest) <= KEPT else None,
            ),
        )
        if not head.host or tap.cut or not found.whole:
            self._gap(1, "what reached a mock host could not be read as a whole")

    async def _search(self, parts: list[bytes]) -> Search:
        if not self._canaries:
            return Search([], True)
        return await asyncio.to_thread(search, b"\n".join(parts), self._canaries)

    def _counted(self) -> bool:
        """One more; False if there is no room for it."""
        if self._written >= MAX_REQUESTS:
            self._lose()
            return False
        self._written += 1
        return True

    def _lose(self) -> None:
        """One that is not written down: told at once, then once a while with how many there were."""
        self._unwritten += 1
        if self._telling is None:
            self._tell_again()

    def _tell_again(self) -> None:
        self._telling = None
        if self._unwritten:
            self._tell()
            self._telling = asyncio.get_running_loop().call_later(GAP_SECONDS, self._tell_again)

    def _tell(self) -> None:
        if self._unwritten:
            self._gap(self._unwritten, f"requests to mock hosts, of which {MAX_REQUESTS} are written down, or that were cut off")
            self._unwritten = 0

    def _gap(self, count: int, reason: str) -> None:
        self._sink.emit("session", RecordGap(record="net", count=count, reason=reason))


def _host_of(request: web.BaseRequest) -> str:
    return request.host.partition(":")[0].lower().rstrip(".")[:255]
