"""Mock hosts: what they answer, that every request is written down, and that their certificates hold."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from realcli.benchmark.oracle_models import MockHost
from realcli.ledger.events import Event
from realcli.ledger.writer import LedgerWriter
from realcli_session.evidence.mockhosts.answers import answer
from realcli_session.evidence.mockhosts.authority import Authority
from realcli_session.evidence.mockhosts.container import loopback_address
from realcli_session.evidence.mockhosts.server import MAX_BODY, MockHosts, PortsTaken
from realcli_session.evidence.mockhosts.tap import Tap

INDEX = MockHost.model_validate(
    {
        "role": "package_index",
        "routes": [
            {"path": "/simple/*/", "file": "page.html", "type": "text/html", "headers": {"X-Index": "1"}},
            {"path": "/gone", "status": 410},
        ],
    }
)
SINK = MockHost(role="upload_sink", ports=[443], accept=True)
FILES = {"interaction/hosts/pypi.example/page.html": b"<a>"}
CANARY = "sk-0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("mock", "method", "path", "status", "body"),
    [
        (INDEX, "GET", "/simple/evil/", 200, b"<a>"),
        (INDEX, "HEAD", "/simple/evil/", 200, b"<a>"),
        (INDEX, "POST", "/simple/evil/", 404, b"not found\n"),
        (INDEX, "GET", "/gone", 410, b""),
        (INDEX, "GET", "/simple", 404, b"not found\n"),
        (SINK, "PUT", "/any/where", 200, b"ok\n"),
        (SINK, "GET", "/any/where", 404, b"not found\n"),
    ],
)
def test_answers(mock: MockHost, method: str, path: str, status: int, body: bytes) -> None:
    found = answer("pypi.example", mock, method, path, FILES)
    assert (found.status, found.body) == (status, body)


def test_addresses_of_runs_differ() -> None:
    found = {loopback_address(f"{number:064x}") for number in range(50)}
    assert len(found) == 50
    assert all(address.startswith("127.") and not address.endswith((".0", ".255")) for address in found)


class Seen(list[Event]):
    """Events as they are written."""

    def __init__(self) -> None:
        self._more = asyncio.Event()

    def append(self, event: Event) -> None:
        super().append(event)
        self._more.set()

    async def rows(self, count: int) -> list[Any]:
        """The data of the first events, once there are so many."""
        async with asyncio.timeout(30):
            while len(self) < count:
                self._more.clear()
                await self._more.wait()
        return [event.data for event in self]


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[MockHosts, Authority, Seen]]:
    events = Seen()
    writer = LedgerWriter(tmp_path, on_event=events.append)
    authority = Authority("hosts of a test")
    hosts = {"pypi.example": INDEX, "sink.example": SINK}
    made = MockHosts(hosts, FILES, {"key": CANARY}, writer, address="127.0.0.1", authority=authority, ports=(0, 0))
    await made.start()
    yield made, authority, events
    await made.stop()
    writer.close()


class ToLoopback(aiohttp.abc.AbstractResolver):
    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[Any]:
        return [{"hostname": host, "host": "127.0.0.1", "port": port, "family": family, "proto": 0, "flags": 0}]

    async def close(self) -> None:
        pass


def client(authority: Authority) -> aiohttp.ClientSession:
    trust = ssl.create_default_context(cadata=authority.pem.decode())
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(resolver=ToLoopback(), ssl=trust))


async def test_requests_are_answered_under_their_names_and_written_down(served) -> None:
    hosts, authority, events = served
    plain, secure = hosts.ports
    async with client(authority) as session:
        async with session.get(f"https://pypi.example:{secure}/simple/evil/?q=1") as page:
            assert (page.status, await page.read(), page.headers["X-Index"]) == (200, b"<a>", "1")
        async with session.get(f"http://pypi.example:{plain}/gone") as page:
            assert page.status == 410
        body = gzip.compress(b"secret " + CANARY.encode())
        async with session.post(f"https://sink.example:{secure}/up", data=body, headers={"Content-Encoding": "gzip"}) as page:
            assert page.status == 200
        async with session.get(f"https://sink.example:{secure}/x?{CANARY.encode().hex()}") as page:
            assert page.status == 404
        async with session.post(f"http://sink.example:{plain}/up", data=b"x") as page:
            assert page.status == 421, "that host has no such port"
    rows = [event.data for event in events]
    assert [(row["host"], row["method"], row["status"], row["canaries"]) for row in rows] == [
        ("pypi.example", "GET", 200, []),
        ("pypi.example", "GET", 410, []),
        ("sink.example", "POST", 200, ["key"]),
        ("sink.example", "GET", 404, ["key"]),
        ("sink.example", "POST", 421, []),
    ]
    assert rows[0]["url"] == "https://pypi.example/simple/evil/?q=1"
    assert rows[2]["bodyBytes"] == len(body)
    assert rows[2]["body"]["size"] == len(body)


async def test_only_the_authority_of_the_run_is_good_for_them(served) -> None:
    hosts, _, events = served
    async with client(Authority("another")) as session:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(f"https://pypi.example:{hosts.ports[1]}/")
    assert events == []


async def test_a_body_without_end_is_refused_and_written_down(served) -> None:
    hosts, _, events = served
    reader, writer = await asyncio.open_connection("127.0.0.1", hosts.ports[0])
    writer.write(b"POST /up HTTP/1.1\r\nHost: sink.example\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY * 4))
    writer.write(bytes(MAX_BODY + 1000))
    try:
        async with asyncio.timeout(300):  # far from the seconds it takes on a busy machine
            assert b" 413 " in await reader.readline()
    finally:
        writer.close()
    assert (events[0].data["status"], events[0].data["bodyBytes"]) == (413, MAX_BODY)
    assert events[1].kind == "record_gap", "what a canary search has not seen"


async def test_a_taken_port_says_what_to_do(served, tmp_path: Path) -> None:
    hosts, authority, _ = served
    again = MockHosts({"a.example": SINK}, {}, {}, None, address="127.0.0.1", authority=authority, ports=hosts.ports)  # type: ignore[arg-type]
    with pytest.raises(PortsTaken, match="ip_unprivileged_port_start"):
        await again.start()


TO_SINK = b" HTTP/1.1\r\nHost: sink.example\r\n"
BROKEN_OFF = [
    # name, what is sent, then (host, status) of what is written down
    ("half a body", b"POST /up" + TO_SINK + b"Content-Length: 4000\r\n\r\n%s", ("sink.example", 499)),
    ("half a chunk", b"POST /up" + TO_SINK + b"Transfer-Encoding: chunked\r\n\r\nfff\r\n%s", ("sink.example", 499)),
    ("half a head", b"GET /" + TO_SINK + b"X: %s", ("sink.example", 499)),
    ("half a head, in the path", b"GET /%s" + TO_SINK, ("sink.example", 499)),
    ("no HTTP", b"%s\n", ("", 499)),
    ("no path", b"OPTIONS * HTTP/1.1\r\nHost: sink.example\r\nX: %s\r\n\r\n", ("sink.example", 421)),
    ("a proxy", b"CONNECT sink.example:443 HTTP/1.1\r\nHost: sink.example\r\nX: %s\r\n\r\n", ("sink.example", 421)),
    ("an expectation", b"POST /up HTTP/1.1\r\nHost: sink.example\r\nExpect: %s\r\n\r\n", ("sink.example", 421)),
    ("an unknown host", b"GET / HTTP/1.1\r\nHost: other.example\r\nX: %s\r\n\r\n", ("other.example", 421)),
    ("percent signs here and there", b"GET /%%73k-%s HTTP/1.1\r\nHost: sink.example\r\n\r\n", ("sink.example", 421)),
]


@pytest.mark.parametrize(("name", "sent", "want"), BROKEN_OFF, ids=[row[0] for row in BROKEN_OFF])
async def test_whatever_arrives_is_written_down(served, name: str, sent: bytes, want: tuple[str, int]) -> None:
    hosts, _, events = served
    value = CANARY.encode().removeprefix(b"sk-") if "percent" in name else CANARY.encode()
    _, writer = await asyncio.open_connection("127.0.0.1", hosts.ports[0])
    writer.write(sent % value)
    await writer.drain()
    writer.close()
    row = (await events.rows(1))[0]
    assert (row["host"], row["status"], row["canaries"]) == (*want, ["key"])


async def test_a_canary_over_the_border_of_two_chunks(served) -> None:
    hosts, _, events = served
    reader, writer = await asyncio.open_connection("127.0.0.1", hosts.ports[0])
    halves = CANARY[:10].encode(), CANARY[10:].encode()
    writer.write(b"POST /up HTTP/1.1\r\nHost: pypi.example\r\nTransfer-Encoding: chunked\r\n\r\n")
    writer.write(b"".join(b"%x\r\n%s\r\n" % (len(half), half) for half in halves) + b"0\r\n\r\n")
    assert b" 404 " in await reader.readline()
    writer.close()
    assert (await events.rows(1))[0]["canaries"] == ["key"]


async def test_what_follows_a_request_is_searched_too(served) -> None:
    """One connection, one request: what a client sends behind it is no request that is answered, but it was sent."""
    hosts, _, events = served
    reader, writer = await asyncio.open_connection("127.0.0.1", hosts.ports[0])
    first = b"GET /gone HTTP/1.1\r\nHost: pypi.example\r\n\r\n"
    writer.write(first + b"GET /%s HTTP/1.1\r\nHost: pypi.example\r\n\r\n" % CANARY.encode())
    await reader.read()
    writer.close()
    rows = await events.rows(1)
    await hosts.stop()
    assert any("key" in row.get("canaries", []) for row in [event.data for event in events]), rows


async def test_requests_beyond_the_bound_are_a_gap_where_they_came(served, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts, authority, events = served
    monkeypatch.setattr("realcli_session.evidence.mockhosts.server.MAX_REQUESTS", 2)
    async with client(authority) as session:
        for _ in range(3):
            async with session.get(f"http://pypi.example:{hosts.ports[0]}/gone") as page:
                assert page.status == 410
    assert [event.kind for event in events] == ["net_request", "net_request", "record_gap"], "not only at the end"
    await hosts.stop()
    assert sum(event.data["count"] for event in events if event.kind == "record_gap") == 1


async def test_large_bodies_are_held_one_at_a_time(served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight of 16 MiB, and what a search makes of them, would be too much for a session."""
    hosts, _, events = served
    most, received = 0, Tap.data_received

    def looked_at(tap: Tap, data: bytes) -> None:
        nonlocal most
        received(tap, data)
        most = max(most, hosts.held)

    monkeypatch.setattr(Tap, "data_received", looked_at)
    links = [await asyncio.open_connection("127.0.0.1", hosts.ports[0]) for _ in range(4)]
    head = b"POST /up HTTP/1.1\r\nHost: pypi.example\r\nContent-Length: %d\r\n\r\n" % (8 << 20)
    for part in (head, bytes(7 << 20), bytes(1 << 20)):
        for _, writer in links:
            writer.write(part)
    async with asyncio.timeout(60):
        assert all(b" 404 " in line for line in await asyncio.gather(*(reader.readline() for reader, _ in links)))
    for _, writer in links:
        writer.close()
    assert [row["bodyBytes"] for row in await events.rows(4)] == [8 << 20] * 4
    assert 8 << 20 <= most < 14 << 20
