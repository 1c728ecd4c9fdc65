"""Who listens to the ledger sees every event, in order, right after it was written."""

from pathlib import Path

import pytest

from realcli.ledger.events import INLINE_TEXT, AgentMessage, BlobRef, Data, Event, Limit, UserMessage
from realcli.ledger.writer import LedgerWriter


def test_an_event_is_told_when_it_is_in_the_spool_with_what_was_given(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path)
    told: list[tuple[Event, Data, int]] = []
    segment = tmp_path / "ledger" / "000001.jsonl"
    writer.subscribe(lambda event, data: told.append((event, data, segment.read_bytes().count(b"\n"))))
    long = AgentMessage(text="x" * (INLINE_TEXT + 1))
    event = writer.emit("agent", long)
    assert told == [(event, long, 1)]
    stored = event.typed()
    assert isinstance(stored, AgentMessage)
    assert isinstance(stored.text, BlobRef)
    writer.close()


def test_events_of_a_callback_are_written_at_once_and_told_after_the_present_one(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path)
    order: list[tuple[str, int]] = []

    def answers(event: Event, data: Data) -> None:
        order.append(("answers", event.seq))
        if isinstance(data, AgentMessage):
            for text in "ab":
                written = writer.emit("user", UserMessage(id=text, text=text, source_ids=[]))
                assert written.seq == event.seq + 1 + "ab".index(text)
        order.append(("answered", event.seq))

    writer.subscribe(answers)
    writer.subscribe(lambda event, _: order.append(("second", event.seq)))
    writer.emit("agent", AgentMessage(text="done?"))
    assert order == [(who, seq) for seq in (1, 2, 3) for who in ("answers", "answered", "second")]
    assert writer.close().events == 3


def test_an_error_reaches_the_emitter_and_costs_nobody_an_event(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path)
    seen: list[int] = []

    def breaks(event: Event, _: Data) -> None:
        if event.seq == 1:
            writer.emit("session", Limit(limit="turns", allowed="1", measured="2"))
            raise RuntimeError("mine")

    writer.subscribe(breaks)
    writer.subscribe(lambda event, _: seen.append(event.seq))
    with pytest.raises(RuntimeError, match="mine"):
        writer.emit("agent", AgentMessage(text="x"))
    writer.emit("agent", AgentMessage(text="y"))
    assert seen == [1, 2, 3]
    assert writer.close().events == 3
