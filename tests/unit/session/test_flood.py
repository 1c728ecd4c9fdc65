"""Output beyond the trial's limits ends the work once, as the agent's doing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from realcli.ledger.events import AgentMessage, Limit, ToolCall
from realcli.storage.local import LocalStore
from realcli_session.phases import flood
from realcli_session.phases.attempt import Attempt
from realcli_session.phases.flood import watch_output
from realcli_session.phases.quiesce import note_limit
from realcli_session.phases.table import Cause, Progress, Stage, advance
from tests.support.attempts import make_attempt


@pytest.fixture
def attempt(tmp_path: Path) -> Iterator[Attempt]:
    made = make_attempt(tmp_path / "spool", LocalStore(tmp_path / "store"))
    yield made
    made.writer.close()


def causes(attempt: Attempt) -> list[tuple[Cause, str]]:
    return [attempt.causes.get_nowait() for _ in range(attempt.causes.qsize())]


@pytest.mark.parametrize(
    ("limit", "allowed", "detail"),
    [("LEDGER_EVENTS", 5, "6 events"), ("LEDGER_BYTES", 2000, "bytes"), ("LEDGER_BLOBS", 5, "6 blobs")],
)
def test_beyond_a_limit_the_work_ends_once(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch, limit: str, allowed: int, detail: str
) -> None:
    monkeypatch.setattr(flood, limit, allowed)
    watch_output(attempt)
    events = []
    attempt.writer.subscribe(lambda _, data: events.append(data))
    for number in range(5):
        data = (
            AgentMessage(text="x")
            if limit != "LEDGER_BLOBS"
            else ToolCall(call_id="1", name="B", input={"blob": "x", "size": number})
        )
        attempt.writer.emit("agent", data)
        assert causes(attempt) == [] or limit == "LEDGER_BYTES"
    if limit == "LEDGER_BYTES":
        attempt.writer.blob(b"y" * 3000)
    for number in range(3):
        attempt.writer.emit("agent", ToolCall(call_id="1", name="B", input={"blob": "y", "size": number}))
    ((cause, said),) = causes(attempt)
    assert cause is Cause.FLOODED
    assert detail in said
    assert f"{allowed} " in said
    attempt.progress = advance(Progress(Stage.WORK), cause, said)
    assert (attempt.progress.stage, attempt.progress.reason, attempt.progress.valid) == (
        Stage.QUIESCE,
        "AgentFloodedOutput",
        True,
    )
    note_limit(attempt)
    (noted,) = [data for data in events if isinstance(data, Limit)]
    assert noted.limit == "output"
    assert noted.allowed.startswith(str(allowed))


def test_the_limits_leave_room_for_what_a_session_has_to_survive() -> None:
    assert flood.LEDGER_EVENTS > 10**6
    assert flood.LEDGER_BYTES > 600 * 5 * 1_000_000
