"""A real object store stopped, killed and started again under the session's own uploader and seal."""

from __future__ import annotations

import asyncio
import io
import os
import random
import signal
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from realcli.ledger.events import EVENT, Event, StorageWait
from realcli.ledger.reader import StoreReader
from realcli.ledger.spool import SPOOL_FILE
from realcli.ledger.verify import verify_attempt
from realcli.storage import ObjectStore, StorageConfig
from realcli.storage.opening import open_store
from realcli_session.phases.attempt import Attempt
from realcli_session.phases.table import Stage
from realcli_session.spool import export
from tests.conftest import S3Server, Weed, free_port
from tests.support.attempts import finish, make_attempt, open_ledger, tell


@pytest.fixture
def server(own_weed: Weed, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    started = own_weed.start()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", started.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", started.secret_key)
    yield started
    if own_weed.process is not None:
        own_weed.process.send_signal(signal.SIGCONT)


def store_of(server: S3Server) -> ObjectStore:
    return open_store(StorageConfig(bucket=server.new_bucket(), endpoint=server.endpoint))


def storage_events(events: list[Event]) -> list[StorageWait]:
    return [data for event in events if isinstance(data := event.typed(), StorageWait)]


def events_of(store: ObjectStore, attempt: Attempt) -> list[Event]:
    return list(StoreReader(store, attempt.trial.paths.root).events())


@pytest.mark.parametrize("how", ["stopped", pytest.param("killed", marks=pytest.mark.slow)])
async def test_a_finished_session_waits_for_storage_and_goes_on(
    server: S3Server, own_weed: Weed, tmp_path: Path, wait_for: Callable[..., Any], how: str
) -> None:
    store = store_of(server)
    attempt = make_attempt(tmp_path / "spool", store, stall=0.5, interval=0.1)
    blocked = tmp_path / "spool" / SPOOL_FILE
    process = own_weed.process
    assert process is not None
    running = asyncio.create_task(attempt.uploader.run())
    open_ledger(attempt)
    attempt.writer.roll()
    await wait_for(lambda: attempt.uploader.objects, "something is in storage")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    if how == "killed":
        await asyncio.to_thread(own_weed.kill)
    else:
        process.send_signal(signal.SIGSTOP)
    tell(attempt, random.Random(1), turns=4)
    sealing = asyncio.create_task(finish(attempt, store, verify=False))
    await wait_for(blocked.exists, "the session says that it waits")
    assert not sealing.done()
    stream = io.BytesIO()
    assert export(tmp_path / "spool", stream) == 0
    stream.seek(0)
    with tarfile.open(fileobj=stream, mode="r|") as copied:
        names = [member.name for member in copied]
    assert names[0] == SPOOL_FILE
    assert {"run.json", "state.tar.zst", "ledger/000002.jsonl"} <= set(names)
    if how == "killed":
        await asyncio.to_thread(own_weed.start)
    else:
        process.send_signal(signal.SIGCONT)
    digest = await asyncio.wait_for(sealing, 120)
    assert attempt.progress.stage is Stage.ENDED
    assert attempt.progress.reason == "Completed"
    assert not blocked.exists()
    first, second = storage_events(events_of(store, attempt))
    assert (first.state, second.state) == ("blocked", "back")
    assert second.seconds > 0
    assert first.spooled_bytes > 0
    report = verify_attempt(StoreReader(store, attempt.trial.paths.root), attempt.trial.paths.root, digest)
    assert report.ok, report.findings


@pytest.mark.slow
async def test_an_outage_of_the_work_catches_up_and_is_told(
    server: S3Server, own_weed: Weed, tmp_path: Path, wait_for: Callable[..., Any]
) -> None:
    store = store_of(server)
    attempt = make_attempt(tmp_path / "spool", store, stall=0.5, interval=0.1, segment_bytes=600)
    told: list[str] = []
    attempt.writer.subscribe(lambda _, data: told.append(data.state) if isinstance(data, StorageWait) else None)
    await asyncio.to_thread(own_weed.kill)
    running = asyncio.create_task(attempt.uploader.run())
    tell(attempt, random.Random(2), turns=4)
    await wait_for(lambda: told, "it is told")
    assert not (tmp_path / "spool" / SPOOL_FILE).exists()  # the trial runs on: nothing waits yet
    await asyncio.to_thread(own_weed.start)
    await wait_for(lambda: told == ["blocked", "back"], "it is back")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    digest = await asyncio.wait_for(finish(attempt, store), 60)
    report = verify_attempt(StoreReader(store, attempt.trial.paths.root), attempt.trial.paths.root, digest)
    assert report.ok, report.findings


async def test_storage_that_stays_away_makes_the_attempt_invalid_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    store = open_store(StorageConfig(bucket="evals", endpoint=f"http://127.0.0.1:{free_port()}"))  # nobody listens
    attempt = make_attempt(tmp_path / "spool", store, hold="1s", stall=0.5)
    tell(attempt, random.Random(3), turns=4)
    assert await finish(attempt, store) is None
    assert attempt.progress.stage is Stage.ENDED
    assert attempt.progress.reason == "StorageUnavailable"
    assert "limits.spoolHold (1s)" in attempt.progress.detail
    assert not attempt.progress.valid
    attempt.writer.close()
    lines = b"".join(p.read_bytes() for p in sorted((tmp_path / "spool" / "ledger").iterdir())).splitlines()
    assert [EVENT.validate_json(line).kind for line in lines][-2:] == ["episode_end", "storage"]
    assert os.listdir(tmp_path / "spool" / "blobs")
