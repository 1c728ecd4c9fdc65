import asyncio
import base64
import contextlib
import hashlib
import json
import re
import resource
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realcli.ledger import uploader as uploader_module
from realcli.ledger.events import (
    EVENT,
    INLINE_TEXT,
    PLAIN_TEXT,
    ZERO_HASH,
    AgentMessage,
    BlobRef,
    Data,
    EpisodeEnd,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolResult,
    UserMessage,
)
from realcli.ledger.follow import Follower
from realcli.ledger.redaction import Redactor
from realcli.ledger.reserve import SpoolError
from realcli.ledger.uploader import Uploader
from realcli.ledger.writer import LedgerError, LedgerWriter
from realcli.storage import StorageUnavailable
from realcli.storage.local import LocalStore
from tests.support.examples import examples

KEY = "sk-ant-very-secret-0123456789"


class StillClock:
    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return 5.0


def lines(spool: Path) -> list[bytes]:
    return [line for path in sorted((spool / "ledger").iterdir()) for line in path.read_bytes().splitlines()]


def assert_chained(found: list[bytes]) -> None:
    previous = ZERO_HASH
    for number, line in enumerate(found, start=1):
        event = EVENT.validate_json(line)
        assert (event.seq, event.prev) == (number, previous)
        previous = hashlib.sha256(line).hexdigest()


@settings(max_examples=examples(60), deadline=None)
@given(texts=st.lists(st.text(alphabet=st.characters(), max_size=200), max_size=20), segment=st.integers(300, 2000))
def test_any_text_becomes_one_chained_line(tmp_path_factory, texts: list[str], segment: int) -> None:
    spool = tmp_path_factory.mktemp("spool")
    writer = LedgerWriter(spool, clock=StillClock(), segment_bytes=segment)
    for text in texts:
        writer.emit("agent", AgentMessage(text=text))
    summary = writer.close()
    found = lines(spool)
    assert len(found) == len(texts) == summary.events
    assert_chained(found)
    assert summary.segments == len(list((spool / "ledger").iterdir()))
    assert [json.loads(line)["data"]["text"] for line in found] == [re.sub("[\ud800-\udfff]", "\ufffd", text) for text in texts]


def test_lone_surrogates_become_replacement_characters(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path)
    event = writer.emit("agent", AgentMessage(text="a\udc80b"))
    writer.close()
    assert event.data["text"] == "a\ufffdb"


def test_the_key_is_in_no_line_and_no_blob(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path, secrets=[KEY])
    writer.emit("agent", AgentMessage(text=f"my key is {KEY}!"))
    writer.emit("agent", AgentMessage(text=KEY + "x" * (INLINE_TEXT + 1)))
    writer.emit("agent", ToolCall(call_id="1", name="Bash", input={KEY: ["a", {"b": KEY}], "long": KEY * 9000}))
    writer.blob(b"raw " + KEY.encode())
    writer.close()
    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert KEY.encode() not in everything
    assert b"[redacted]" in everything


def test_long_values_lie_in_blobs_by_digest(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path)
    text = "é" * INLINE_TEXT
    first = writer.emit("agent", AgentMessage(text=text)).data["text"]
    second = writer.emit("user", UserMessage(id="m1", text=text, source_ids=["spec"])).data["text"]
    writer.close()
    assert first == second == {"blob": hashlib.sha256(text.encode()).hexdigest(), "size": 2 * INLINE_TEXT}
    assert (tmp_path / "blobs" / first["blob"]).read_text() == text
    assert len(list((tmp_path / "blobs").iterdir())) == 1


def test_nothing_outside_the_closed_set_and_nothing_after_the_end(tmp_path: Path) -> None:
    class Other(Data):
        kind = "yield"

    writer = LedgerWriter(tmp_path)
    with pytest.raises(LedgerError, match="not an event kind"):
        writer.emit("session", Other())
    writer.close()
    with pytest.raises(LedgerError, match="closed"):
        writer.emit("session", EpisodeEnd(reason="Completed"))
    assert lines(tmp_path) == []


def test_a_request_of_a_long_run_can_be_read_back(tmp_path: Path) -> None:
    """600 turns have 1200 messages: more references than stand in a line."""
    writer = LedgerWriter(tmp_path)
    refs = [writer.blob(str(number).encode()) for number in range(1200)]
    asked = ModelRequest(
        request_id="r", dialect="anthropic", path="/v1/messages", body_sha256=ZERO_HASH, body_bytes=1, model_asked="m",
        counted=True, messages=refs,
    )  # fmt: skip
    written = writer.emit("gateway", asked).typed()
    writer.close()
    assert isinstance(written, ModelRequest)
    assert isinstance(written.messages, BlobRef)
    listed = json.loads((tmp_path / "blobs" / written.messages.blob).read_bytes())
    assert [BlobRef.model_validate(item) for item in listed] == refs


def test_a_long_input_is_a_reference_again_when_read(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path)
    call = writer.emit("agent", ToolCall(call_id="1", name="Bash", input={"command": "x" * INLINE_TEXT})).typed()
    writer.close()
    assert isinstance(call, ToolCall)
    assert isinstance(call.input, BlobRef)
    assert json.loads((tmp_path / "blobs" / call.input.blob).read_bytes()) == {"command": "x" * INLINE_TEXT}


@pytest.mark.parametrize("size", [3, "x", -1])
def test_an_input_that_poses_as_a_reference_is_none(tmp_path: Path, size: object) -> None:
    """A model chooses the input of its calls: one that names a blob must not make a reader look for it."""
    writer = LedgerWriter(tmp_path)
    posed = {"blob": "a" * 64, "size": size}
    call = writer.emit("agent", ToolCall(call_id="1", name="Bash", input=posed)).typed()
    writer.close()
    assert isinstance(call, ToolCall)
    assert isinstance(call.input, BlobRef)
    assert json.loads((tmp_path / "blobs" / call.input.blob).read_bytes()) == posed


def test_no_text_of_the_agent_is_too_long_to_be_written(tmp_path: Path) -> None:
    """An event that cannot be written would end the session, and with it the attempt, whenever the agent likes."""
    writer = LedgerWriter(tmp_path)
    huge = "é" * (2 << 20)
    events = [
        writer.emit("agent", ToolCall(call_id=huge, name=huge, input={huge: huge})),
        writer.emit("agent", ToolResult(call_id=huge, text=huge)),
        writer.emit("gateway", ModelReply(request_id="r", status=200, model=huge, stop_reason=huge, usage_raw={"x": [huge]})),
    ]
    writer.close()
    assert_chained(lines(tmp_path))
    assert events[0].data["callId"] == events[1].data["callId"]  # cut alike, so they still belong together
    assert events[0].data["name"].endswith(f"[… {(2 << 20) - PLAIN_TEXT} characters left out]")


@contextlib.contextmanager
def a_disk_that_refuses() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_line_the_disk_refused_leaves_no_trace_and_none_comes_after_it(tmp_path: Path) -> None:
    """A ledger that goes on after a hole would look whole."""
    writer = LedgerWriter(tmp_path, reserve=1 << 16)
    told: list[str] = []
    writer.on_full = told.append
    writer.emit("agent", AgentMessage(text="before"))
    with a_disk_that_refuses(), pytest.raises(SpoolError, match="File too large"):
        writer.emit("agent", AgentMessage(text="x" * 1000))
    with pytest.raises(SpoolError, match="File too large"):
        writer.emit("agent", AgentMessage(text="after"))
    with pytest.raises(SpoolError, match="File too large"):
        writer.blob(b"after")
    assert (writer.full, writer.lost) == (told[0], 3)
    assert len(told) == 1
    assert (tmp_path / "reserve").stat().st_size == 1 << 16
    writer.use_reserve()
    assert not (tmp_path / "reserve").exists()
    writer.emit("session", EpisodeEnd(reason="SessionLost", detail=""))
    summary = writer.close()
    assert_chained(lines(tmp_path))
    assert [json.loads(line)["data"].get("text") for line in lines(tmp_path)] == ["before", None]
    assert summary.events == 2


def test_a_blob_the_disk_refused_leaves_no_trace(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path)
    with a_disk_that_refuses(), pytest.raises(SpoolError):
        writer.blob(b"x" * 1000)
    assert list((tmp_path / "blobs").iterdir()) == []
    assert writer.take() == []
    writer.close()


def test_a_segment_that_cannot_be_begun_does_not_end_the_one_before(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path)
    writer.emit("agent", AgentMessage(text="before"))
    (tmp_path / "ledger/000002.jsonl").mkdir()  # no name for it, as on a disk without inodes
    with pytest.raises(SpoolError):
        writer.roll()
    writer.use_reserve()
    writer.emit("agent", AgentMessage(text="after"))
    (tmp_path / "ledger/000002.jsonl").rmdir()
    assert writer.close().segments == 1
    assert_chained(lines(tmp_path))


def test_a_disk_without_room_for_the_end_is_told_at_the_start(tmp_path: Path) -> None:
    with a_disk_that_refuses(), pytest.raises(SpoolError, match="no room for the 65536 bytes"):
        LedgerWriter(tmp_path, reserve=1 << 16)
    assert list(tmp_path.iterdir()) == []


ODD_KEY = 'sk/odd+"key"=0123456789'
SPELLED = [
    ("JSON", json.dumps({"k": ODD_KEY})),
    ("JSON with escaped slashes", json.dumps({"k": ODD_KEY}).replace("/", "\\/")),
    ("JSON in JSON", json.dumps({"a": json.dumps({"k": ODD_KEY})})),
    ("URL", f"?key={quote(ODD_KEY, safe='')}"),
    ("hex", ODD_KEY.encode().hex()),
    ("capital hex", ODD_KEY.encode().hex().upper()),
    ("basic authorisation", base64.b64encode(f"user:{ODD_KEY}".encode()).decode()),
    ("base64 one further", base64.b64encode(f"users:{ODD_KEY}!".encode()).decode()),
    ("base64 two further", base64.b64encode(f"userss:{ODD_KEY}!!".encode()).decode()),
    ("base64 for URLs", base64.urlsafe_b64encode(f"u:{ODD_KEY}".encode()).decode()),
]


@pytest.mark.parametrize(("name", "text"), SPELLED, ids=[row[0] for row in SPELLED])
def test_a_key_is_redacted_however_it_is_spelled(name: str, text: str) -> None:
    redactor = Redactor([ODD_KEY])
    for found in (redactor.text(text), redactor.data(text.encode()).decode()):
        assert "[redacted]" in found
        kept = found.replace("[redacted]", "")
        assert len(kept) <= 26  # what stood around it
    assert redactor.text("an innocent text") == "an innocent text"


def test_a_key_of_several_lines_is_redacted_line_by_line() -> None:
    lines = ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "b4VnZP1xJ0Yh7QpL2sK8dT6uW3eR5mC9", "short"]
    key = "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"])
    redactor = Redactor([key])
    assert redactor.text(f"is: {key}") == "is: [redacted]"
    numbered = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(key.splitlines(), start=1))
    for found in (redactor.text(numbered), redactor.data(numbered.encode()).decode()):
        assert not any(line in found for line in lines[:2])
    other = "-----BEGIN CERTIFICATE-----\na short text"
    assert redactor.text(other) == other


class FlakyStore(LocalStore):
    def __init__(self, root: Path, failures: int) -> None:
        super().__init__(root)
        self.failures = failures

    def put_once(self, key: str, data: bytes | Path) -> None:
        if self.failures > 0:
            self.failures -= 1
            raise StorageUnavailable("down")
        super().put_once(key, data)


async def test_an_outage_spools_and_catches_up(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path / "spool", segment_bytes=300)
    blocked: list[bool] = []
    store = FlakyStore(tmp_path / "store", failures=2)
    uploader = Uploader(writer, store, "root", on_outage=lambda outage: blocked.append(outage.state == "blocked"))
    for number in range(20):
        writer.emit("agent", AgentMessage(text=str(number)))
    summary = writer.close()
    await uploader.drain(give_up=60)
    await uploader.put("run.json", b"{}", give_up=1)
    assert blocked == [True, False]
    assert uploader.backlog == (0, 0)
    assert [item.path for item in uploader.objects] == [f"ledger/{n:06d}.jsonl" for n in range(1, summary.segments + 1)] + [
        "run.json"
    ]
    stored = [line for item in uploader.objects[:-1] for line in store.get(f"root/{item.path}").splitlines()]
    assert_chained(stored)
    assert len(stored) == 20


async def test_an_outage_longer_than_the_hold_is_an_error_and_loses_nothing(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path / "spool")
    store = FlakyStore(tmp_path / "store", failures=10**6)
    uploader = Uploader(writer, store, "root")
    writer.emit("agent", AgentMessage(text="kept"))
    writer.close()
    with pytest.raises(StorageUnavailable):
        await uploader.drain(give_up=0)
    assert uploader.backlog.files == 1
    assert len(lines(tmp_path / "spool")) == 1
    store.failures = 0
    await asyncio.wait_for(uploader.drain(give_up=0), 5)
    assert uploader.backlog.files == 0


async def test_who_writes_faster_than_storage_takes_has_to_wait(tmp_path: Path) -> None:
    """The spool's volume is bounded, and an agent that fills it must not cost the session."""
    store = Gate(tmp_path / "store")
    writer = LedgerWriter(tmp_path / "spool")
    uploader = Uploader(writer, store, "attempt", interval=3600.0, max_waiting=1000)
    await uploader.room()
    for number in range(4):
        writer.blob(bytes([number]) * 300)
    waiting = asyncio.create_task(uploader.room())
    running = asyncio.create_task(uploader.run())
    await store.asked.wait()  # at once, not at the end of the interval
    assert not waiting.done()
    store.open.set()
    await asyncio.wait_for(waiting, 10)
    running.cancel()
    writer.close()
    await uploader.drain(1.0)
    assert len(uploader.objects) == 4
    assert writer.written == 1200


async def test_an_open_segment_goes_up_sooner_while_somebody_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploader_module, "FOLLOWED_SECONDS", 0.01)
    store = LocalStore(tmp_path / "store")
    follower = Follower(store, "following/1", look=0.0)
    writer = LedgerWriter(tmp_path / "spool")
    uploader = Uploader(writer, store, "attempt", interval=3600.0, follower=follower)
    running = asyncio.create_task(uploader.run())
    writer.emit("agent", AgentMessage(text="alone"))
    looks = follower_looks(follower)
    while next(looks) < 3:  # noqa: ASYNC110 it looks again and again, and uploads nothing
        await asyncio.sleep(0.01)
    assert uploader.objects == []
    store.put_once("following/1/mark", b"")
    async with asyncio.timeout(30):
        while not uploader.objects:  # noqa: ASYNC110 the object is the only sign there is
            await asyncio.sleep(0.01)
    running.cancel()
    writer.close()


def follower_looks(follower: Follower) -> Iterator[int]:
    """How often it has looked since the first call."""
    count, followed = 0, follower.followed

    def counted() -> bool:
        nonlocal count
        count += 1
        return followed()

    follower.followed = counted  # type: ignore[method-assign]
    while True:
        yield count


class Gate(LocalStore):
    """Takes nothing before it is opened."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.asked, self.open = asyncio.Event(), threading.Event()
        self.loop = asyncio.get_running_loop()

    def put_once(self, key: str, data: bytes | Path) -> None:
        self.loop.call_soon_threadsafe(self.asked.set)
        assert self.open.wait(10)
        super().put_once(key, data)
