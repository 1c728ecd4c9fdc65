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


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[MockHosts, Authority, list[Event]]]:
    events: list[Event] = []
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
    async with asyncio.timeout(30):
        assert b" 413 " in await reader.readline()
    writer.close()
    assert (events[0].data["status"], events[0].data["bodyBytes"]) == (413, MAX_BODY)


async def test_a_taken_port_says_what_to_do(served, tmp_path: Path) -> None:
    hosts, authority, _ = served
    again = MockHosts({"a.example": SINK}, {}, {}, None, address="127.0.0.1", authority=authority, ports=hosts.ports)  # type: ignore[arg-type]
    with pytest.raises(PortsTaken, match="ip_unprivileged_port_start"):
        await again.start()
