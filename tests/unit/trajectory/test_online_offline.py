"""The session's trigger and the judge's, over a real ledger: the same event, whatever the writer did to the text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from realcli.ledger.events import (
    EVENT,
    INLINE_TEXT,
    PLAIN_TEXT,
    AgentMessage,
    BlobRef,
    Command,
    Data,
    EpisodeStart,
    Event,
    FileRead,
    ToolResult,
)
from realcli.ledger.writer import LedgerWriter
from realcli.trajectory import Item, Trajectory, TriggerState, fired_at, parse_when

KEY = "sk-real-key-0123456789"


class Spool:
    """Blobs as the writer stored them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, ref: BlobRef) -> bytes | None:
        return (self.folder / "blobs" / ref.blob).read_bytes()


def result(text: str) -> ToolResult:
    return ToolResult(call_id="c", text=text)


LATE = "x" * (INLINE_TEXT + 10) + " needle"
CASES: list[tuple[str, dict[str, Any], list[Data], int | None]] = [
    ("a short text", {"event": "tool_result", "nth": 1, "where": {"text": "needle"}}, [result("a needle")], 2),
    ("a text in a blob", {"event": "tool_result", "nth": 1, "where": {"text": "needle$"}}, [result("hay"), result(LATE)], 3),
    ("a message in a blob", {"event": "agent_message", "nth": 1, "where": {"min_words": 2}}, [AgentMessage(text=LATE)], 2),
    ("beyond where an argument is cut", {"event": "command", "nth": 1, "where": {"cmd": "needle"}},
     [Command(id=1, argv=["ls", "x" * PLAIN_TEXT + " needle"], record="exec")], None),
    ("among more arguments than are kept", {"event": "command", "nth": 1, "where": {"cmd": "needle"}},
     [Command(id=1, argv=["ls", *("x" * 300 for _ in range(400)), "needle"], record="exec")], None),
    ("a marker beyond the cut", {"event": "file_read", "nth": 1, "where": {"marker": "x" * PLAIN_TEXT + "yz"}},
     [FileRead(path="/a", marker="x" * PLAIN_TEXT + "yz")], None),
    ("a key that is redacted", {"event": "tool_result", "nth": 1, "where": {"text": KEY}}, [result(f"key {KEY}")], None),
    ("a broken character", {"event": "tool_result", "nth": 1, "where": {"text": "needle"}}, [result("\ud800 needle")], 2),
]  # fmt: skip


@pytest.mark.parametrize(("name", "when", "happened", "fired"), CASES, ids=[row[0] for row in CASES])
def test_both_see_the_same(name: str, when: dict[str, Any], happened: list[Data], fired: int | None, tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path, secrets=[KEY])
    parsed = parse_when(when, {})
    online = [TriggerState.start(parsed)]
    writer.subscribe(lambda event, data: online.append(online[-1].observe(Item.told(event, data))))
    writer.emit("session", EpisodeStart())
    for data in happened:
        writer.emit("agent", data)
    writer.close()
    lines = b"".join(path.read_bytes() for path in sorted((tmp_path / "ledger").iterdir())).splitlines()
    events: list[Event] = [EVENT.validate_json(line) for line in lines]
    offline = fired_at(parsed, Trajectory.from_events(events).items, Spool(tmp_path))
    assert (online[-1].fired, offline.fired) == (fired, fired)
    assert online[-1].doubtful == offline.doubtful
