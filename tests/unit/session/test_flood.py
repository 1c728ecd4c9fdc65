"""Output beyond the trial's limits ends the work once, as the agent's doing."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from realcli.ledger.events import AgentMessage, Limit, ToolCall
from realcli.ledger.reader import StoreReader
from realcli.ledger.reserve import SpoolError
from realcli.ledger.uploader import MAX_WAITING
from realcli.ledger.verify import verify_attempt
from realcli.storage.local import LocalStore
from realcli_session.phases import attempt as attempt_module
from realcli_session.phases import flood
from realcli_session.phases import seal as seal_module
from realcli_session.phases.attempt import Attempt
from realcli_session.phases.flood import watch_output
from realcli_session.phases.quiesce import note_limit
from realcli_session.phases.seal import seal
from realcli_session.phases.table import Cause, Progress, Stage, advance
from tests.support.attempts import make_attempt, open_ledger


@pytest.fixture
def attempt(tmp_path: Path) -> Iterator[Attempt]:
    made = make_attempt(tmp_path / "spool", LocalStore(tmp_path / "store"))
    yield made
    made.writer.close()


def causes(attempt: Attempt) -> list[tuple[Cause, str]]:
    return [attempt.causes.get_nowait() for _ in range(attempt.causes.qsize())]


@pytest.mark.parametrize(
    ("limit", "allowed", "detail"),
    [
        ("LEDGER_EVENTS", 5, "6 events"),
        ("LEDGER_BYTES", 2000, "bytes"),
        ("LEDGER_WAITING", 2000, "bytes that wait for storage"),
        ("LEDGER_BLOBS", 5, "6 blobs"),
    ],
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
        assert causes(attempt) == [] or "bytes" in detail
    if "bytes" in detail:
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


@pytest.mark.parametrize(
    ("flooded", "reason"), [(False, "SessionLost"), (True, "AgentFloodedOutput")], ids=["a full node", "a flood"]
)
async def test_a_full_disk_is_sealed_and_counts_only_where_the_agent_went_beyond_its_limits(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch, flooded: bool, reason: str
) -> None:
    monkeypatch.setattr(flood, "LEDGER_EVENTS", 3 if flooded else 100)
    watch_output(attempt)
    attempt.progress = Progress(Stage.WORK)
    open_ledger(attempt)
    for _ in range(4):
        attempt.writer.emit("agent", AgentMessage(text="x"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400, hard))
    try:
        with pytest.raises(SpoolError):
            attempt.writer.emit("agent", AgentMessage(text="y" * 1000))
        with pytest.raises(SpoolError):
            attempt.writer.emit("agent", AgentMessage(text="y"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    for cause, detail in causes(attempt):
        attempt.progress = advance(attempt.progress, cause, detail)
    assert attempt.progress.stage is Stage.SEAL
    happened, digest = await seal(attempt)
    assert happened[0] is Cause.SEALED
    assert (attempt.progress.reason, attempt.progress.state_lost) == (reason, True)
    store = LocalStore(attempt.settings.spool.parent / "store")
    report = verify_attempt(StoreReader(store, attempt.trial.paths.root), attempt.trial.paths.root, digest)
    assert report.ok, report.findings
    told = [json.loads(line) for line in store.get(attempt.trial.paths.segment(1)).splitlines()]
    gaps = [event["data"] for event in told if event["kind"] == "record_gap"]
    assert [(gap["record"], gap["count"]) for gap in gaps] == [("ledger", 2)]


async def test_what_the_disk_refused_while_the_agent_was_let_go_makes_a_valid_end_none(attempt: Attempt) -> None:
    open_ledger(attempt)
    attempt.progress = advance(advance(Progress(Stage.WORK), Cause.COMPLETED), Cause.QUIESCED)
    refused = seal_module._let_go

    async def full(_: Attempt) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400, hard))
        try:
            attempt.writer.emit("agent", AgentMessage(text="y" * 1000))
        except SpoolError:
            await refused(attempt)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seal_module, "_let_go", full)
        happened, _ = await seal(attempt)
    assert happened[0] is Cause.SEALED
    assert (attempt.progress.reason, attempt.progress.valid) == ("SessionLost", False)


async def test_snapshots_beyond_what_the_spool_may_keep_are_not_taken(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(attempt_module, "SNAPSHOTS_BYTES", 100)
    (tmp_path / "kept").write_bytes(bytes(100))
    attempt.oracle_paths = ["/app"]
    attempt.files.append(("snapshots/1.tar.zst", tmp_path / "kept"))
    await attempt.snapshot("anchor", "touched")  # there is no runner: it would be asked
    attempt.writer.roll()
    told = [event for event in attempt.writer.take()[-1].read_text().splitlines() if "snapshot anchor of probe touched" in event]
    assert len(told) == 1
    assert "100 bytes of snapshots are kept already" in told[0]


def test_the_limits_leave_room_for_what_a_session_has_to_survive() -> None:
    assert flood.LEDGER_WAITING >= 2 * MAX_WAITING, "the gateway's requests wait before an agent floods"
    assert flood.LEDGER_EVENTS > 10**6
    assert flood.LEDGER_BYTES > 600 * 5 * 1_000_000
