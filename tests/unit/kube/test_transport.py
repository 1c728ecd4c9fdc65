"""The HTTP client against a small server that misbehaves on purpose."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from kubernetes.aio.client import Configuration

from realcli_operator.kube.client import KubeClient
from realcli_operator.kube.errors import AlreadyExists, Gone, Invalid, ServerError, Stale, TooManyRequests
from realcli_operator.kube.metrics import Metrics
from realcli_operator.kube.names import Kind
from realcli_operator.kube.project import trial_view
from realcli_operator.kube.source import HttpSource
from realcli_operator.kube.transport import JSON_PATCH, ClientSettings, Transport, load_configuration

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Instant:
    """A clock on which sleeping takes no time; remembers how long it would have been."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> Any:
        raise NotImplementedError

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds


class Server:
    def __init__(self) -> None:
        self.requests: list[tuple[str, str, str, bytes, str]] = []
        self.answers: list[Handler] = []
        self.clock = Instant()
        self.metrics = Metrics()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = request.headers
        self.requests.append(
            (request.method, request.path_qs, headers.get("Authorization", ""), body, headers.get("Content-Type", ""))
        )
        return await self.answers.pop(0)(request)

    def transport(self, **settings: Any) -> Transport:
        configuration = Configuration(host=self.url)
        configuration.api_key = {"BearerToken": "Bearer secret"}
        return Transport(configuration, ClientSettings(**settings), self.metrics, self.clock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self.handle)
        self.runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", 0)
        await site.start()
        self.port = self.runner.addresses[0][1]


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    await made.start()
    yield made
    await made.runner.cleanup()


def answer(status: int, body: Any = None, **headers: str) -> Handler:
    async def handler(_: web.Request) -> web.StreamResponse:
        if isinstance(body, str):
            return web.Response(status=status, text=body, headers=headers)
        return web.json_response(body or {}, status=status, headers=headers)

    return handler


def refusal(status: int, reason: str, message: str = "words of the server") -> Handler:
    return answer(status, {"kind": "Status", "code": status, "reason": reason, "message": message})


def hang_up() -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return handler


def chunks(*parts: bytes, abort: bool = False) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for part in parts:
            await response.write(part)
        if abort:
            assert request.transport is not None
            request.transport.abort()
        else:
            await response.write_eof()
        return response

    return handler


async def test_a_request_carries_token_body_and_content_type(server: Server) -> None:
    server.answers = [answer(200, {"ok": 1})]
    transport = server.transport()
    patch = [{"op": "test", "path": "/metadata/uid", "value": "u"}]
    query = {"fieldManager": "a b"}
    data = await transport.request("PATCH", "/apis/x", resource="x", query=query, body=patch, content_type=JSON_PATCH)
    assert data == b'{"ok": 1}'
    method, path, auth, body, content_type = server.requests[0]
    assert (method, path, auth, content_type) == ("PATCH", "/apis/x?fieldManager=a+b", "Bearer secret", JSON_PATCH)
    assert b'"/metadata/uid"' in body
    await transport.close()


@pytest.mark.parametrize("trouble", [refusal(429, "TooManyRequests"), refusal(503, ""), answer(502, "<html>"), hang_up()])
async def test_transient_trouble_is_tried_again(server: Server, trouble: Handler) -> None:
    server.answers = [trouble, trouble, answer(201, {"made": True})]
    transport = server.transport(retry_base=1.0)
    assert await transport.request("POST", "/x", resource="x", body={}) == b'{"made": true}'
    assert len(server.requests) == 3
    assert 0.8 <= server.clock.slept[0] <= 1.2
    assert 1.6 <= server.clock.slept[1] <= 2.4
    found = server.metrics.registry.get_sample_value
    assert found("realcli_api_writes_total", {"verb": "POST", "resource": "x", "code": "201"}) == 1
    await transport.close()


async def test_retry_after_is_obeyed(server: Server) -> None:
    server.answers = [answer(429, "slow", **{"Retry-After": "9"}), answer(200)]
    transport = server.transport()
    await transport.request("GET", "/x", resource="x")
    assert server.clock.slept == [9.0]
    await transport.close()


async def test_trouble_that_lasts_is_raised(server: Server) -> None:
    server.answers = [refusal(429, "TooManyRequests", "storage is (re)initializing")] * 3
    transport = server.transport(tries=3)
    with pytest.raises(TooManyRequests, match="initializing"):
        await transport.request("GET", "/x", resource="x")
    assert server.answers == []
    await transport.close()


@pytest.mark.parametrize(
    ("refused", "error"),
    [(refusal(422, "Invalid"), Invalid), (refusal(409, "AlreadyExists"), AlreadyExists), (refusal(410, "Expired"), Gone)],
)
async def test_a_refusal_is_final_and_typed(server: Server, refused: Handler, error: type[Exception]) -> None:
    server.answers = [refused]
    transport = server.transport()
    with pytest.raises(error, match="words of the server"):
        await transport.request("POST", "/x", resource="x", body={})
    assert server.clock.slept == []
    await transport.close()


async def test_a_server_that_never_answers_is_an_error(server: Server) -> None:
    async def never(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        return web.Response()

    server.answers = [never, never]
    transport = server.transport(tries=2, request_timeout=0.05)
    with pytest.raises(ServerError, match="TimeoutError"):
        await transport.request("GET", "/x", resource="x")
    await transport.close()


async def test_writes_are_paced_and_reads_are_not(server: Server) -> None:
    server.answers = [answer(200)] * 8
    transport = server.transport(writes_per_second=10, write_burst=2)
    for _ in range(4):
        await transport.request("POST", "/x", resource="x", body={})
    for _ in range(4):
        await transport.request("GET", "/x", resource="x")
    assert server.clock.slept == pytest.approx([0.1, 0.1])
    await transport.close()


async def test_list_and_watch_are_asked_for_with_selector_and_bookmarks(server: Server) -> None:
    listed = {"metadata": {"resourceVersion": "7", "continue": "next"}, "items": [{"metadata": {"name": "p"}}]}
    server.answers = [answer(200, listed), answer(200, {"metadata": {"resourceVersion": "7"}}), chunks(b"{}\n")]
    transport = server.transport()
    source = HttpSource(transport)
    page = await source.list_page(Kind.POD, None)
    assert (page.resource_version, page.continue_token, len(page.items)) == ("7", "next", 1)
    last = await source.list_page(Kind.POD, "one", "next", "a=b")
    assert (last.continue_token, last.items) == ("", ())
    async with source.watch(Kind.POD, "one", "7", 30) as stream:
        assert [chunk async for chunk in stream] == [b"{}\n"]
    assert [path for _, path, *_ in server.requests] == [
        "/api/v1/pods?labelSelector=app.kubernetes.io/managed-by%3Drealcli&limit=100",
        "/api/v1/namespaces/one/pods?labelSelector=app.kubernetes.io/managed-by%3Drealcli,a%3Db&limit=100&continue=next",
        "/api/v1/namespaces/one/pods?labelSelector=app.kubernetes.io/managed-by%3Drealcli&watch=1"
        "&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=30",
    ]
    await transport.close()


async def test_a_stream_longer_than_any_buffer(server: Server) -> None:
    line = b"x" * 5_000_000 + b"\n"
    server.answers = [chunks(line, line)]
    transport = server.transport()
    async with transport.stream("/x", {}) as stream:
        assert sum([len(chunk) async for chunk in stream]) == 2 * len(line)
    await transport.close()


async def test_a_stream_that_breaks_or_is_refused(server: Server) -> None:
    server.answers = [chunks(b"half a li", abort=True), refusal(429, "TooManyRequests"), hang_up()]
    transport = server.transport()
    with pytest.raises(ServerError):
        async with transport.stream("/x", {}) as stream:
            assert [chunk async for chunk in stream] == "not reached"
    with pytest.raises(TooManyRequests):
        async with transport.stream("/x", {}):
            pytest.fail("refused")
    with pytest.raises(ServerError):
        async with transport.stream("/x", {}):
            pytest.fail("refused")
    await transport.close()


async def test_credentials_come_from_a_kubeconfig(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(
        """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "https://127.0.0.1:1", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: abc}}]
"""
    )
    configuration = await load_configuration(path)
    assert configuration.host == "https://127.0.0.1:1"
    assert await configuration.get_api_key_with_prefix("BearerToken") == "Bearer abc"


async def test_a_status_write_that_met_other_writers_is_decided_again(server: Server) -> None:
    """The API server tries a few times itself; its 409 says nothing of whose object it is."""
    server.answers = [refusal(409, "Conflict", "the object has been modified")]
    transport = server.transport()
    trial = trial_view({"metadata": {"namespace": "one", "name": "t", "uid": "u", "resourceVersion": "7"}})
    with pytest.raises(Stale, match="modified"):
        await KubeClient(transport).apply_trial_status(trial, {"phase": "Working"})
    assert len(server.requests) == 1
    await transport.close()
