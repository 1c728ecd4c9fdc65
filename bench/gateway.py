"""What the model gateway costs: added latency, requests per second beside a direct connection, memory of its process under load.

`python bench/gateway.py [--json] [--requests N]`. Three processes as in a pod: a responder that answers at once with a fixed
stream, the gateway with a real ledger on disk, and this client; direct and through the gateway are taken in turn in one run.
Rows are {name, unit, ours, baseline, ratio}; baseline is the direct connection, for memory the process before its first request.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import aiohttp

from realcli.ledger.writer import LedgerWriter
from realcli_session.gateway.config import GatewayConfig
from realcli_session.gateway.server import Gateway

MODEL = "bench-1"
MESSAGES = 40  # of 1.5 kB each: a conversation some turns in
PARALLEL = 16
LARGE = 31 << 20
LARGE_AT_ONCE = 8
DELTAS = 60


def answer() -> bytes:
    """A streamed answer of the Anthropic API, as one HTTP response."""
    usage = {"input_tokens": 20_000, "output_tokens": 1}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m", "model": MODEL, "role": "assistant", "content": [], "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    ]
    delta = {"type": "text_delta", "text": "some words of an answer "}
    events += [{"type": "content_block_delta", "index": 0, "delta": delta}] * DELTAS
    events += [
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 400}},
        {"type": "message_stop"},
    ]
    chunks = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n" + body


class Responder(asyncio.Protocol):
    """Reads a request by its Content-Length and answers; nothing else of HTTP."""

    whole = answer()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client."""
        self.transport: Any = transport
        self.head = b""
        self.left = -1

    def data_received(self, data: bytes) -> None:
        """Some of a request."""
        if self.left < 0:
            self.head += data
            if b"\r\n\r\n" not in self.head:
                return
            head, _, data = self.head.partition(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            self.left = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
            self.head = b""
        self.left -= len(data)
        if self.left <= 0:
            self.left = -1
            self.transport.write(self.whole)


def respond(pipe: Connection) -> None:
    """The provider's process."""

    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Responder, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await asyncio.get_running_loop().run_in_executor(None, pipe.recv)

    asyncio.run(run())


def gateway(pipe: Connection, upstream: str, spool: str) -> None:
    """The session's process, as far as the gateway goes."""

    async def run() -> None:
        ledger = LedgerWriter(Path(spool), secrets=["sk-bench-key"])
        config = GatewayConfig(
            upstream=upstream,
            key="sk-bench-key",
            model=MODEL,
            turn_limit=10**6,
            resolved_model=MODEL,
            allow_loopback=True,
            port=0,
        )
        served = Gateway(config, ledger)
        await served.start()
        pipe.send((served.base_url, served.token))
        await asyncio.get_running_loop().run_in_executor(None, pipe.recv)
        await served.stop()

    asyncio.run(run())


def request(number: int) -> bytes:
    """A conversation of its own, so that no turn repeats another."""
    messages = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} " + "lorem ipsum " * 125} for n in range(MESSAGES)
    ]
    messages[-1]["content"] += str(number)
    tools = [{"name": "Bash", "description": "x" * 2000, "input_schema": {"type": "object"}}]
    return json.dumps({"model": MODEL, "max_tokens": 100, "stream": True, "messages": messages, "tools": tools}).encode()


class Client:
    """Asks one address."""

    def __init__(self, http: aiohttp.ClientSession, url: str, token: str) -> None:
        self._http = http
        self._url = f"{url}/v1/messages?beta=true"
        self._headers = {"x-api-key": token, "content-type": "application/json"}

    async def ask(self, body: bytes) -> tuple[float, float]:
        """(milliseconds to the first byte, to the last)."""
        begin = time.perf_counter()
        async with self._http.post(self._url, data=body, headers=self._headers) as response:
            await response.content.readany()
            first = time.perf_counter() - begin
            rest = await response.read()
            if response.status != 200:
                raise RuntimeError(f"status {response.status}: {rest[:200]!r}")
        return first * 1000, (time.perf_counter() - begin) * 1000

    async def many(self, numbers: range) -> float:
        """Requests per second, PARALLEL at a time."""
        left = iter([request(number) for number in numbers])

        async def worker() -> None:
            for body in left:
                await self.ask(body)

        begin = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(PARALLEL)))
        return len(numbers) / (time.perf_counter() - begin)


def memory(pid: int, which: str) -> float:
    """MiB of a process: VmRSS now, VmHWM at most."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(which + ":"))


def row(name: str, unit: str, ours: float, baseline: float) -> dict[str, Any]:
    """One line of the result."""
    return {
        "name": name,
        "unit": unit,
        "ours": round(ours, 3),
        "baseline": round(baseline, 3),
        "ratio": round(ours / baseline, 3),
    }


def percentile(values: list[float], percent: int) -> float:
    """By linear interpolation."""
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


async def measure(direct: Client, through: Client, pid: int, requests: int) -> list[dict[str, Any]]:
    """All rows."""
    idle = memory(pid, "VmRSS")
    for client in (direct, through):
        for number in range(20):
            await client.ask(request(-number))
    times: dict[str, list[tuple[float, float]]] = {"direct": [], "through": []}
    for number in range(requests):
        body = request(number)
        times["direct"].append(await direct.ask(body))
        times["through"].append(await through.ask(body))
    rows = []
    for part, name in ((0, "first byte"), (1, "whole answer")):
        for percent in (50, 99):
            ours, baseline = (percentile([t[part] for t in times[which]], percent) for which in ("through", "direct"))
            rows.append(row(f"gateway: {name}, p{percent}", "ms", ours, baseline))
            rows.append(row(f"gateway: added to the {name}, p{percent}", "ms", ours - baseline, baseline))
    rates: dict[str, list[float]] = {"direct": [], "through": []}
    for turn in range(3):
        numbers = range((turn + 1) * 10**5, (turn + 1) * 10**5 + requests)
        rates["direct"].append(await direct.many(numbers))
        rates["through"].append(await through.many(numbers))
    rows.append(row(f"gateway: requests/s, {PARALLEL} at a time", "1/s", max(rates["through"]), max(rates["direct"])))
    after = memory(pid, "VmRSS")
    rows.append(row(f"gateway: memory after {requests * 4 + 20} requests", "MiB", after, idle))
    await through.many(range(9 * 10**5, 9 * 10**5 + 3 * requests))
    rows.append(row(f"gateway: memory after {requests * 7 + 20} requests", "MiB", memory(pid, "VmRSS"), after))
    rows.append(row("gateway: most memory so far", "MiB", memory(pid, "VmHWM"), idle))
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * LARGE}}
    large = json.dumps(
        {"model": MODEL, "max_tokens": 1, "stream": True, "messages": [{"role": "user", "content": [image]}]}
    ).encode()
    await asyncio.gather(*(through.ask(large) for _ in range(LARGE_AT_ONCE)))
    name = f"gateway: most memory, {LARGE_AT_ONCE} bodies of {len(large) >> 20} MiB at once"
    rows.append(row(name, "MiB", memory(pid, "VmHWM"), idle))
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    parser.add_argument("--requests", type=int, default=400)
    options = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as spool:
        near, far = spawn.Pipe()
        provider = spawn.Process(target=respond, args=(far,), daemon=True)
        provider.start()
        upstream = f"http://127.0.0.1:{near.recv()}"
        control, other = spawn.Pipe()
        served = spawn.Process(target=gateway, args=(other, upstream, spool), daemon=True)
        served.start()
        url, token = control.recv()

        async def run() -> list[dict[str, Any]]:
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
                direct, through = Client(http, upstream, "none"), Client(http, url, token)
                return await measure(direct, through, served.pid or 0, options.requests)

        try:
            rows = asyncio.run(run())
        finally:
            for pipe, process in ((control, served), (near, provider)):
                pipe.send(None)
                process.join(10)
    if options.json:
        json.dump(rows, sys.stdout)
        print()
        return
    width = max(len(entry["name"]) for entry in rows)
    for entry in rows:
        print(f"{entry['name']:<{width}} {entry['ours']:>10} {entry['baseline']:>10} {entry['unit']:<4} {entry['ratio']:>8}")


if __name__ == "__main__":
    main()
