"""The client against peers that are silent, lie, or vanish: always RunnerLost, never a hang, never unbounded memory."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from realcli.wire.frames import Frame, FrameDecoder, encode
from realcli.wire.protocol import CHUNK, VERSION, WINDOW
from realcli_session.runner import RunnerClient, RunnerError, RunnerLost, RunnerPort, listen

HELLO: dict[str, Any] = {
    "version": VERSION, "pid": 1, "uid": 0, "gid": 0, "kernel": "6", "machine": "x86_64", "python": "3.11", "libc": "none",
    "home": "/", "cwd": "/", "environ": [["A", {"b64": "/w=="}]], "cgroup": {}, "omitted": [],
}  # fmt: skip


class Peer:
    """A runner made of lines of test."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._decoder = FrameDecoder()
        self._requests: asyncio.Queue[tuple[dict[str, Any], bytes]] = asyncio.Queue()

    async def connect(self) -> None:
        self.reader, self.writer = await asyncio.open_unix_connection(str(self._path))

    def say(self, header: dict[str, Any], body: Any = b"") -> None:
        self.writer.write(encode(header, body if isinstance(body, bytes) else json.dumps(body).encode()))

    async def hear(self, kind: str) -> tuple[dict[str, Any], bytes]:
        """The next frame of a kind; others are dropped."""
        while True:
            while self._requests.empty():
                data = await self.reader.read(1 << 16)
                assert data, f"closed before {kind}"
                for frame in self._decoder.feed(data):
                    self._requests.put_nowait((frame.header, frame.payload))
            header, payload = self._requests.get_nowait()
            if header["t"] == kind:
                return header, payload

    async def vanish(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[tuple[RunnerClient, Peer]]:
    listener, peer = listen(str(tmp_path / "s")), Peer(tmp_path / "s")
    await peer.connect()
    peer.say({"t": "hello"}, HELLO)
    client = await listener.accept(10, answer_seconds=10)
    yield client, peer
    peer.writer.close()
    await client.close()


def typed(client: RunnerClient) -> RunnerPort:
    return client  # checked by mypy: the client is a RunnerPort


class Sink:
    async def write(self, data: bytes) -> None:
        pass


async def chunks() -> AsyncIterator[bytes]:
    yield b"x" * 100


EVERY_CALL: dict[str, Callable[[RunnerPort], Awaitable[object]]] = {
    "spawn": lambda c: c.spawn(["x"], env={}, cwd="/"),
    "run": lambda c: c.run(["x"], env={}, cwd="/", seconds=60),
    "signal_pid": lambda c: c.signal_pid(5, 9),
    "procs": lambda c: c.procs(),
    "quiesce": lambda c: c.quiesce(),
    "put_file": lambda c: c.put_file("/x", b"1"),
    "put_tree": lambda c: c.put_tree("/x", chunks()),
    "get_file": lambda c: c.get_file("/x"),
    "scan": lambda c: c.scan(["/x"]),
    "snapshot": lambda c: c.snapshot(["/x"], Sink(), max_bytes=1),
    "restore": lambda c: c.restore(chunks(), max_bytes=1),
    "wait_lost": lambda c: _raise_lost(c),
}


async def _raise_lost(client: RunnerPort) -> None:
    raise await client.wait_lost()


@pytest.mark.parametrize("call", EVERY_CALL.values(), ids=EVERY_CALL)
async def test_every_waiting_call_ends_when_the_runner_vanishes(pair: tuple[RunnerClient, Peer], call: Any) -> None:
    client, peer = pair
    waiting = asyncio.ensure_future(call(typed(client)))
    if call is not EVERY_CALL["wait_lost"]:
        await peer.hear("req")
    await peer.vanish()
    with pytest.raises(RunnerLost, match="end of stream"):
        await waiting
    with pytest.raises(RunnerLost, match="end of stream"):
        await call(client)
    assert client.lost is not None


async def test_the_environment_keeps_every_byte(pair: tuple[RunnerClient, Peer]) -> None:
    client, peer = pair
    assert client.hello.environ["A"].encode("utf-8", "surrogateescape") == b"\xff"
    waiting = asyncio.ensure_future(client.spawn(["x"], env=client.hello.environ, cwd="/"))
    _, payload = await peer.hear("req")
    assert json.loads(payload)["env"] == HELLO["environ"]
    await peer.vanish()
    with pytest.raises(RunnerLost):
        await waiting


ENTRY = {
    "path": "/x", "kind": "file", "size": 1, "mode": 0o644, "uid": 0, "gid": 0, "mtime_ns": 1, "ctime_ns": 1,
    "sha256": "0" * 64, "link": None,
}  # fmt: skip


@pytest.mark.parametrize(
    "lie", [{"sha256": "zz"}, {"sha256": "0" * 63 + "G"}, {"path": "x"}, {"path": ""}, {"size": "1"}, {"kind": "x"}]
)
async def test_a_scan_with_an_impossible_row_is_the_end_of_the_runner(
    pair: tuple[RunnerClient, Peer], lie: dict[str, Any]
) -> None:
    """Such a row would be an error of ours where it is written down, and that of nobody the agent is blamed for."""
    client, peer = pair
    waiting = asyncio.ensure_future(client.scan(["/x"]))
    header, payload = await peer.hear("req")
    peer.say({"t": "data", "s": json.loads(payload)["stream"]}, json.dumps(ENTRY | lie).encode() + b"\n")
    peer.say({"t": "end", "s": json.loads(payload)["stream"]})
    peer.say({"t": "ok", "id": header["id"]}, {"complete": True, "stopped_by": None, "unreadable": []})
    with pytest.raises(RunnerLost, match="broken protocol"):
        await waiting


async def test_a_base_that_cannot_be_read_is_no_fault_of_the_runners(pair: tuple[RunnerClient, Peer]) -> None:
    client, peer = pair

    async def broken() -> AsyncIterator[bytes]:
        yield b"x" * 10
        raise OSError("the spool is gone")

    waiting = asyncio.ensure_future(client.delta(broken(), Sink(), max_bytes=1))
    await peer.hear("req")
    async with asyncio.timeout(20):
        with pytest.raises(OSError, match="the spool is gone"):
            await waiting
    assert client.lost is None


LIES: dict[str, bytes] = {
    "garbage": b"GET / HTTP/1.1\r\n\r\n",
    "oversized": b"RCW1\xff\xff\xff\xff\xff\xff\xff\xff",
    "second hello": encode({"t": "hello"}),
    "a request": encode({"t": "req", "id": 1, "op": "spawn"}),
    "answer to nothing": encode({"t": "ok", "id": 99}),
    "error to nothing": encode({"t": "err", "id": 99}),
    "no number": encode({"t": "data", "s": "1"}),
    "data on nothing": encode({"t": "data", "s": 99}, b"x"),
    "exit of nothing": encode({"t": "exited", "id": 2, "code": 0, "signal": None}),
    "exit both ways": encode({"t": "exited", "id": 1, "code": 0, "signal": 9}),
    "credit on its own stream": encode({"t": "credit", "s": 1, "n": 5}),
    "more than the window": b"".join(encode({"t": "data", "s": 1}, bytes(CHUNK)) for _ in range(WINDOW // CHUNK + 1)),
    "an unknown error": encode({"t": "err", "id": 1}, b'{"code":"made_up","message":"m"}'),
    "an answer that is no object": encode({"t": "ok", "id": 1}, b"[1]"),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
async def test_a_lie_is_the_end_of_the_connection(pair: tuple[RunnerClient, Peer], lie: bytes) -> None:
    client, peer = pair
    waiting = asyncio.ensure_future(client.spawn(["x"], env={}, cwd="/"))  # stream 1 and 2, request 1
    await peer.hear("req")
    peer.writer.write(lie)
    with pytest.raises(RunnerLost, match="broken protocol"):
        await waiting


ROWS = {
    "scan": (lambda c: c.scan(["/x"], max_files=2), b"{}\n"),
    "scan too many": (lambda c: c.scan(["/x"], max_files=2), b'{"path":"/x"}\n' * 3),
    "scan no json": (lambda c: c.scan(["/x"]), b"nonsense\n"),
    "scan no object": (lambda c: c.scan(["/x"]), b"1\n"),
    "procs": (lambda c: c.procs(), b'{"pid":"1"}\n'),
    "quiesce": (lambda c: c.quiesce(), b'{"list":"made up"}\n'),
    "get_file too long": (lambda c: c.get_file("/x", limit=3), b"1234"),
    "snapshot result": (lambda c: c.snapshot(["/x"], Sink(), max_bytes=1), b"x"),
}


@pytest.mark.parametrize(("call", "data"), ROWS.values(), ids=ROWS)
async def test_nonsense_in_results_is_the_end_of_the_connection(pair: tuple[RunnerClient, Peer], call: Any, data: bytes) -> None:
    client, peer = pair
    waiting = asyncio.ensure_future(call(client))
    header, payload = await peer.hear("req")
    stream = json.loads(payload)["stream"]
    peer.say({"t": "data", "s": stream}, data)
    peer.say({"t": "end", "s": stream})
    peer.say({"t": "ok", "id": header["id"]}, {"complete": True, "unreadable": [], "proven": True, "survivors": 0})
    with pytest.raises(RunnerLost, match="broken protocol"):
        await waiting
    assert client.lost is not None


async def test_silence_is_the_end_of_the_connection(tmp_path: Path) -> None:
    listener, peer = listen(str(tmp_path / "s")), Peer(tmp_path / "s")
    await peer.connect()
    peer.say({"t": "hello"}, HELLO)
    client = await listener.accept(10, answer_seconds=0.05, ping_seconds=0.05)
    with pytest.raises(RunnerLost, match="no answer to ping within"):
        raise await client.wait_lost()
    with pytest.raises(RunnerLost):
        await client.procs()
    await client.close()
    peer.writer.close()


async def test_a_request_refused_before_its_stream_opened_does_not_hang(pair: tuple[RunnerClient, Peer]) -> None:
    client, peer = pair
    for call in (lambda: client.scan(["/x"]), lambda: client.put_file("/x", bytes(2 * WINDOW))):
        waiting = asyncio.ensure_future(call())
        header, _ = await peer.hear("req")
        peer.say({"t": "err", "id": header["id"]}, {"code": "busy", "message": "full", "detail": {}})
        with pytest.raises(RunnerError, match="full"):
            await waiting
    assert client.lost is None


async def test_a_cancelled_spawn_that_succeeds_later_is_killed(pair: tuple[RunnerClient, Peer]) -> None:
    client, peer = pair
    waiting = asyncio.ensure_future(client.spawn(["x"], env={}, cwd="/"))
    header, _ = await peer.hear("req")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    peer.say({"t": "ok", "id": header["id"]}, {"pid": 7})
    request, payload = await peer.hear("req")
    assert (request["op"], json.loads(payload)) == ("signal", {"process": header["id"], "signal": 9, "to": "session"})


async def test_a_spawn_cancelled_in_the_moment_of_its_answer_is_killed(pair: tuple[RunnerClient, Peer]) -> None:
    client, peer = pair
    waiting = asyncio.ensure_future(client.spawn(["x"], env={}, cwd="/"))
    header, _ = await peer.hear("req")
    client._connection._on_frame(Frame({"t": "ok", "id": header["id"]}, b'{"pid":7}'))  # no other task runs in between
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    request, _ = await peer.hear("req")
    assert request["op"] == "signal"


async def test_a_cancelled_snapshot_gives_its_stream_up(pair: tuple[RunnerClient, Peer]) -> None:
    client, peer = pair
    waiting = asyncio.ensure_future(client.snapshot(["/x"], Sink(), max_bytes=1))
    header, payload = await peer.hear("req")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    cancel, _ = await peer.hear("cancel")
    stream = json.loads(payload)["stream"]
    assert cancel["s"] == stream
    peer.say({"t": "data", "s": stream}, b"late")
    peer.say({"t": "end", "s": stream})
    peer.say({"t": "err", "id": header["id"]}, {"code": "cancelled", "message": "m", "detail": {}})
    again = asyncio.ensure_future(client.signal_pid(5, 9))
    header, _ = await peer.hear("req")
    peer.say({"t": "ok", "id": header["id"]}, {"count": 0})
    assert await again == 0  # the late frames did no harm


BAD_HELLOS = {
    "other version": encode({"t": "hello"}, json.dumps(HELLO | {"version": VERSION + 1}).encode()),
    "missing field": encode({"t": "hello"}, b"{}"),
    "not json": encode({"t": "hello"}, b"{"),
    "not hello": encode({"t": "ok", "id": 1}),
    "garbage": b"SSH-2.0-x\r\n",
}


@pytest.mark.parametrize("first", BAD_HELLOS.values(), ids=BAD_HELLOS)
async def test_a_bad_hello_is_no_runner(tmp_path: Path, first: bytes) -> None:
    listener, peer = listen(str(tmp_path / "s")), Peer(tmp_path / "s")
    await peer.connect()
    peer.writer.write(first)
    with pytest.raises(RunnerLost):
        await listener.accept(10, answer_seconds=10)
    peer.writer.close()


async def test_no_hello_and_no_runner(tmp_path: Path) -> None:
    listener, peer = listen(str(tmp_path / "s")), Peer(tmp_path / "s")
    with pytest.raises(RunnerLost, match="no runner connected"):
        await listener.accept(0.01)
    listener = listen(str(tmp_path / "s"))  # the socket was removed
    await peer.connect()
    with pytest.raises(RunnerLost, match="no hello"):
        await listener.accept(10, answer_seconds=0.05)
    peer.writer.close()


async def test_one_peer_only(tmp_path: Path) -> None:
    path = tmp_path / "s"
    listener, peer = listen(str(path)), Peer(path)
    with pytest.raises(FileExistsError, match="exists"):
        listen(str(path))
    await peer.connect()
    second = socket.socket(socket.AF_UNIX)
    second.connect(str(path))  # in the backlog before the first was accepted
    peer.say({"t": "hello"}, HELLO)
    client = await listener.accept(10)
    assert not path.exists()
    with second:
        second.settimeout(10)
        with contextlib.suppress(ConnectionError):
            assert second.recv(1) == b""  # closed without a byte
    with pytest.raises(RuntimeError, match="already"):
        await listener.accept(1)
    peer.writer.close()
    await client.close()


def test_a_socket_path_that_is_too_long_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at most 107"):
        listen(str(tmp_path / ("x" * 108)))


async def test_a_request_that_does_not_fit_is_the_callers_error(pair: tuple[RunnerClient, Peer]) -> None:
    client, _ = pair
    with pytest.raises(ValueError, match="allowed"):
        await client.spawn(["x" * (1 << 20)], env={}, cwd="/")
    assert client.lost is None
