"""Quiesce against a runner that lies or does nothing: always an end, never an invalid one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from realcli.api.base import sha256_digest
from realcli.ledger.events import Quiesce, SessionError
from realcli.ledger.redaction import Redactor
from realcli.ledger.uploader import Uploader
from realcli.ledger.writer import LedgerWriter
from realcli.storage.local import LocalStore
from realcli.wire.protocol import ErrorCode
from realcli_session.inputs import trial_of
from realcli_session.phases import quiesce as module
from realcli_session.phases.attempt import Attempt
from realcli_session.phases.quiesce import quiesce
from realcli_session.phases.seal import seal, termination_of
from realcli_session.phases.setup import make_run
from realcli_session.phases.table import Cause, Progress, Stage, advance
from realcli_session.phases.working import WorkingClock
from realcli_session.plan.lock import build_lock
from realcli_session.runner.errors import RunnerError, RunnerLost
from realcli_session.runner.port import ProcInfo, QuiesceReport
from realcli_session.settings import Settings

QUIET = QuiesceReport(survivors=(), found=(), killed=(), proven=True)
LEFT = ProcInfo(7, 1, 7, 7, 0, "D", 1, ("sleep", "x" * 5000))


class Runner:
    """Answers quiesce as told; every other request is refused."""

    def __init__(self, answer: QuiesceReport | Exception | None) -> None:
        self.answer = answer

    async def quiesce(self, **_: float) -> QuiesceReport:
        if self.answer is None:
            await asyncio.Event().wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        assert self.answer is not None
        return self.answer

    async def snapshot(self, *_: Any, **__: Any) -> Any:
        raise RunnerError(ErrorCode.IO, "disk on fire")


class Adapter:
    def __init__(self, stops: bool) -> None:
        self.stops = stops

    async def stop(self, *, grace: float) -> None:
        if not self.stops:
            await asyncio.Event().wait()


@pytest.fixture
def attempt(tmp_path: Path, build: Any) -> Iterator[Attempt]:
    digest = sha256_digest(b"lock")
    lock = build_lock(build.request(), build.index(), sha256_digest(b"i"), lambda _: [], "v", "t")
    trial = trial_of(lock, "root", digest, 0, 1)
    writer = LedgerWriter(tmp_path / "spool")
    yield Attempt(
        trial=trial,
        settings=Settings.from_environment({"REALCLI_SPOOL": str(tmp_path / "spool")}),
        writer=writer,
        uploader=Uploader(writer, LocalStore(tmp_path / "store"), trial.paths.root),
        run=make_run(),
        redactor=Redactor([]),
        clock=WorkingClock(lambda: 0.0),
        progress=advance(Progress(Stage.WORK), Cause.DEADLINE),
    )
    writer.close()


@pytest.mark.parametrize(
    ("stops", "answer", "cause", "detail"),
    [
        (False, QUIET, Cause.RUNNER_LOST, "it did not stop the agent program within"),
        (True, None, Cause.RUNNER_LOST, "it did not stop everything within"),
        (True, RunnerLost("end of stream"), Cause.RUNNER_LOST, "end of stream"),
        (True, RunnerError(ErrorCode.INTERNAL, "boom"), Cause.RUNNER_LOST, "boom"),
        (True, QuiesceReport((LEFT,), (LEFT,) * 1000, (), False), Cause.QUIESCE_REFUSED, "7 sleep"),
        (True, QuiesceReport((), (), (), False), Cause.QUIESCE_REFUSED, "not proven"),
        (True, QUIET, Cause.RUNNER_LOST, "disk on fire"),
    ],
    ids=["no exit", "no answer", "lost", "refuses", "survivor", "unproven", "no state"],
)
async def test_a_runner_that_does_not_do_its_part(
    attempt: Attempt,
    monkeypatch: pytest.MonkeyPatch,
    stops: bool,
    answer: QuiesceReport | Exception | None,
    cause: Cause,
    detail: str,
) -> None:
    monkeypatch.setattr(module, "WEDGED_SECONDS", 0.01)
    monkeypatch.setattr(module, "STOP_GRACE", 0.0)
    monkeypatch.setattr(module, "QUIESCE_GRACE", 0.0)
    monkeypatch.setattr(module, "QUIESCE_KILL", 0.0)
    attempt.runner = Runner(answer)  # type: ignore[assignment]
    attempt.adapter = Adapter(stops)  # type: ignore[assignment]
    found = await quiesce(attempt)
    assert found[0] is cause
    assert detail in found[1]
    assert advance(attempt.progress, *found).valid
    assert attempt.state is None


async def test_a_crowd_of_long_command_lines_fits_a_line(attempt: Attempt) -> None:
    seen: list[Any] = []
    attempt.writer.subscribe(lambda event, _: seen.append(event))
    crowd = tuple(ProcInfo(i, 1, i, i, 0, "S", 1, ("\x01" * 4096,)) for i in range(2, 1000))
    attempt.runner = Runner(QuiesceReport(crowd, crowd, (), False))  # type: ignore[assignment]
    await quiesce(attempt)
    (event,) = [e for e in seen if e.kind == Quiesce.kind]
    assert len(event.canonical()) < 1 << 20


class Broken:
    """A part that cannot be closed."""

    async def stop(self, **_: float) -> None:
        raise RunnerError(ErrorCode.INTERNAL, "no such process")

    async def close(self) -> None:
        raise OSError("disk on fire")


async def test_what_cannot_be_closed_keeps_nothing_from_being_sealed(attempt: Attempt) -> None:
    seen: list[Any] = []
    attempt.writer.subscribe(lambda event, data: seen.append(data))
    attempt.progress = Progress(Stage.SEAL, "Deadline", limit="deadline")
    attempt.adapter = attempt.mock_hosts = attempt.wording = attempt.commands = attempt.runner = Broken()  # type: ignore[assignment]
    (_, digest) = await seal(attempt)
    assert digest is not None
    assert termination_of(attempt, digest).reason == "Deadline"
    assert termination_of(attempt, digest).throttled is None, "nothing was sent: unknown"
    told = [data.where for data in seen if isinstance(data, SessionError)]
    parts = ("simulated user", "mock hosts", "record of commands", "runner", "agent program")
    assert told == [f"closing: {part}" for part in parts]


async def test_a_user_that_cannot_be_ended_is_sealed_as_a_fault_of_ours(attempt: Attempt) -> None:
    attempt.progress = Progress(Stage.SEAL, "Completed")
    attempt.user = SimpleNamespace(exchange=1)  # type: ignore[assignment]
    (_, digest) = await seal(attempt)
    assert digest is not None
    assert (attempt.progress.reason, attempt.progress.valid, attempt.progress.state_lost) == ("SessionLost", False, True)
