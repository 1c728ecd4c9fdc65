"""The driver of a work session: one stage after the other by the table, until the termination message is due."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import shutil
import signal
import sys
import traceback
from collections.abc import Coroutine, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from realcli.api.termination import Result, Termination
from realcli.ledger.events import LedgerOpen, SessionError
from realcli.ledger.follow import Follower
from realcli.ledger.redaction import Redactor
from realcli.ledger.reserve import RESERVE_BYTES, SpoolError
from realcli.ledger.uploader import Uploader
from realcli.ledger.writer import LedgerWriter
from realcli.storage.opening import open_store
from realcli.storage.port import ObjectInfo, ObjectStore, StorageConfig, StorageError, StorageRefused, StorageUnavailable
from realcli_session.agents.port import AgentUnresponsive
from realcli_session.inputs import InputRefused, Task, Trial, fetch_task, read_lock, trial_of
from realcli_session.patience import patiently
from realcli_session.phases import setup
from realcli_session.phases.attempt import Attempt, Happening, need
from realcli_session.phases.collab import collab_work
from realcli_session.phases.conversation import exec_work, outage
from realcli_session.phases.flood import spool_full, watch_output
from realcli_session.phases.own_setup import own_setup, secret_values
from realcli_session.phases.quiesce import quiesce
from realcli_session.phases.seal import seal, termination_of
from realcli_session.phases.signals import gateway_signals, last_word, signalled, wait_for_signal
from realcli_session.phases.storage import tell_outages
from realcli_session.phases.table import Cause, Stage, advance
from realcli_session.phases.working import WorkingClock, wait_for_limit
from realcli_session.release import SocketUse
from realcli_session.runner.errors import RunnerError, RunnerLost, StateTooLarge
from realcli_session.runner.listener import Listener
from realcli_session.settings import Settings, storage_secrets
from realcli_session.termination import shorten


async def run_work(
    config: StorageConfig, settings: Settings, socket: SocketUse, *, root: str, lock_digest: str, ordinal: int, attempt: int
) -> Termination:
    """One attempt, from the lock to its termination message."""
    store = open_store(config)

    def read() -> tuple[Trial, ObjectInfo | None]:
        trial = trial_of(read_lock(store, root, lock_digest), root, lock_digest, ordinal, attempt)
        if trial.lock.source is not None:
            raise InputRefused("no agent runs in a sweep with spec.from; the operator and this image must match")
        return trial, next(iter(store.list(f"{trial.paths.root}/")), None)

    try:
        trial, before = await patiently(read, settings.storage_patience)
        secrets = [*_keys(settings), *secret_values(trial.configuration, settings.setup_secrets), *storage_secrets()]
    except InputRefused as error:
        return _invalid("ConfigurationError", str(error), settings)
    except (StorageUnavailable, StorageRefused) as error:
        return _invalid("StorageUnavailable", str(error), settings)
    if before is not None:
        # a pod of the same name was lost before anybody knew of it; two ledgers cannot share an attempt, so no agent runs for it
        text = f"{before.key} is there already: another session worked on this attempt; the next attempt has a place of its own"
        return _invalid("StorageUnavailable", text, settings)
    try:
        return await WorkSession(trial, settings, config, store, secrets).run(socket)
    except SpoolError as error:  # before anything was begun
        return _invalid("SessionLost", str(error), settings)


class WorkSession:
    """One attempt. Single use."""

    def __init__(
        self, trial: Trial, settings: Settings, config: StorageConfig, store: ObjectStore, secrets: Sequence[str]
    ) -> None:
        self._config = config
        self._store = store
        self._trial = trial
        writer = LedgerWriter(settings.spool, secrets=secrets, reserve=RESERVE_BYTES)
        follower = Follower(store, trial.paths.following)
        uploader = Uploader(writer, store, trial.paths.root, interval=settings.segment_seconds, follower=follower)
        self.attempt = Attempt(
            trial=trial,
            settings=settings,
            writer=writer,
            uploader=uploader,
            run=setup.make_run(),
            redactor=Redactor(secrets),
            clock=WorkingClock(asyncio.get_running_loop().time),
        )
        self._digest: str | None = None

    async def run(self, socket: SocketUse) -> Termination:
        """Setup, work, quiesce, seal. Never raises for what the table has a row for."""
        attempt = self.attempt
        setup.start_threads()
        tell_outages(attempt)
        watch_output(attempt)
        attempt.writer.emit("session", self._opening())
        with _sigterm(attempt), contextlib.closing(socket.listen()) as listener:
            await self._stages(listener)
        return termination_of(attempt, self._digest)

    async def _stages(self, listener: Listener) -> None:
        attempt = self.attempt
        late: list[asyncio.Task[None]] = []  # what an open answer may still tell while the agent is stopped
        uploading = self._watch([attempt.uploader.run()])
        await self._during(Stage.SETUP, setup.set_up(attempt, listener, self._fetch))
        if attempt.progress.stage is Stage.WORK:
            signals = gateway_signals(need(attempt.gateway))
            late = self._watch([wait_for_signal(attempt, *signal) for signal in signals])
            watchers = self._watch([self._limits(), self._runner(), self._provider()])
            work = exec_work if self._trial.identity.mode == "EXEC" else collab_work
            await self._during(Stage.WORK, work(attempt))
            await _cancel(watchers)
        attempt.clock.stop()
        if attempt.progress.stage is Stage.QUIESCE:
            await self._during(Stage.QUIESCE, quiesce(attempt))
        await _cancel(late)
        await _cancel(uploading)  # from here on the seal uploads
        while not attempt.causes.empty():  # what still counts shows again
            attempt.causes.get_nowait()
        await self._during(Stage.SEAL, self._seal())

    def _watch(self, bodies: list[Coroutine[None, None, None]]) -> list[asyncio.Task[None]]:
        """Run beside the stages; an error of one is something that happened."""

        def ended(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and task.exception() is not None:
                self.attempt.happened(*self._cause_of(task.exception()))

        tasks = [asyncio.create_task(body) for body in bodies]
        for task in tasks:
            task.add_done_callback(ended)
        return tasks

    async def _during(self, stage: Stage, body: Coroutine[None, None, Happening]) -> None:
        """Run the body of a stage until the stage is left: by what the body ends with, or by what happens meanwhile."""
        attempt = self.attempt
        task = asyncio.create_task(body)
        while attempt.progress.stage is stage:
            happening = asyncio.create_task(attempt.causes.get())
            await asyncio.wait({task, happening}, return_when=asyncio.FIRST_COMPLETED)
            if happening.done():  # it was there before the body's end, or comes with it
                self._apply(*happening.result())
                continue
            await _cancel([happening])
            if stage is Stage.WORK and (signal := signalled(attempt)) is not None:
                self._apply(*signal)
            if attempt.progress.stage is stage:
                outcome = self._outcome(task)
                self._apply(*(last_word(attempt, outcome) if stage is Stage.WORK else outcome))
            if attempt.progress.stage is stage:
                self._apply(Cause.INTERNAL, f"stage {stage} ended without an end")
        await _cancel([task])

    def _outcome(self, task: asyncio.Task[Happening]) -> Happening:
        error = task.exception()
        return task.result() if error is None else self._cause_of(error)

    def _cause_of(self, error: BaseException | None) -> Happening:
        """An error as a cause. What the agent can bring about is never one of ours."""
        match error:
            case RunnerLost():
                return Cause.RUNNER_LOST, error.reason
            case StateTooLarge():
                return Cause.STATE_TOO_LARGE, str(error)
            case RunnerError():
                return Cause.RUNNER_LOST, f"the runner could not do its part: {error}"
            case AgentUnresponsive():
                return Cause.AGENT_EXIT, str(error)
            case StorageError():
                return Cause.STORAGE_ERROR, str(error)
            case SpoolError():
                return spool_full(self.attempt, str(error))
            case OSError(errno=errno.ENOSPC | errno.EDQUOT):
                return spool_full(self.attempt, str(error))
        text = self.attempt.redactor.text("".join(traceback.format_exception(error)))
        print(text, file=sys.stderr, flush=True)
        if self.attempt.progress.stage is not Stage.SEAL:
            with contextlib.suppress(SpoolError):
                self.attempt.writer.emit("session", SessionError(where=str(self.attempt.progress.stage), message=text))
        return Cause.INTERNAL, f"{type(error).__name__}: {error}"

    def _apply(self, cause: Cause, detail: str) -> None:
        before = self.attempt.progress
        self.attempt.progress = after = advance(before, cause, detail)
        if after is not before:
            shown = self.attempt.redactor.text(shorten(detail))
            print(f"{before.stage} -> {after.stage}: {cause}{': ' + shown if shown else ''}", file=sys.stderr, flush=True)

    async def _seal(self) -> Happening:
        happening, self._digest = await seal(self.attempt)
        return happening

    def _fetch(self) -> Task:
        attempt = self.attempt
        shutil.rmtree(attempt.settings.spool / "task", ignore_errors=True)
        attempt.own = own_setup(self._trial.configuration, self._store, self._trial.sweep, attempt.settings.setup_secrets)
        return fetch_task(self._config, self._store, self._trial, self.attempt.settings.spool / "task")

    def _opening(self) -> LedgerOpen:
        identity = self._trial.identity
        return LedgerOpen(
            sweep_uid=identity.sweep_uid,
            sweep=identity.sweep,
            ordinal=identity.ordinal,
            attempt=identity.attempt,
            configuration=identity.configuration,
            task=identity.task,
            mode=identity.mode,
            repeat=identity.repeat,
            lock_digest=identity.lock_digest,
            session_version=version("realcli"),
        )

    async def _limits(self) -> None:
        clock, trial = self.attempt.clock, self._trial
        fired = await wait_for_limit(clock, trial.deadline, trial.wall)
        detail = f"{clock.working:.1f} s of working time, {clock.wall:.1f} s elapsed"
        self.attempt.happened(Cause.DEADLINE if fired == "deadline" else Cause.WALL, detail)

    async def _runner(self) -> None:
        lost = await need(self.attempt.runner).wait_lost()
        self.attempt.happened(Cause.RUNNER_LOST, lost.reason)

    async def _provider(self) -> None:
        self.attempt.happened(*await outage(self.attempt))


@contextlib.contextmanager
def _sigterm(attempt: Attempt) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, attempt.happened, Cause.SIGTERM, "the session got SIGTERM")
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


async def _cancel(tasks: list[asyncio.Task[Happening]] | list[asyncio.Task[None]]) -> None:
    """Cancel and wait; what a cancelled task still raises is of no account, because another end was decided."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _keys(settings: Settings) -> list[str]:
    """The values no file of ours may hold."""
    keys: list[Path] = sorted(settings.keys.glob("*")) if settings.keys.is_dir() else []
    return [key.read_text(encoding="utf-8", errors="replace").strip() for key in keys if key.is_file()]


def _invalid(reason: str, message: str, settings: Settings) -> Termination:
    print(f"{reason}: {message}", file=sys.stderr, flush=True)
    return Termination(phase="Work", result=Result.WORK_INVALID, reason=reason, message=shorten(message), node=settings.node)
