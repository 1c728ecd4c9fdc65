import asyncio
import hashlib
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realcli.ledger.events import EVENT, INLINE_TEXT, ZERO_HASH, AgentMessage, Data, EpisodeEnd, ToolCall, UserMessage
from realcli.ledger.uploader import Uploader
from realcli.ledger.writer import LedgerError, LedgerWriter
from realcli.storage import StorageUnavailable
from realcli.storage.local import LocalStore

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


@settings(max_examples=60, deadline=None)
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
    uploader = Uploader(writer, store, "root", on_blocked=blocked.append)
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
