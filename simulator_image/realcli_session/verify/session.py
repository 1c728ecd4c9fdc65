"""Verify: restore a sealed state on the pristine image, run the tests, seal the verdict (contract "Verify")."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from realcli.api.base import canonical_json, seconds, sha256_digest
from realcli.api.termination import Result, Termination
from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.problems import BenchmarkError
from realcli.benchmark.run_files import canary_values, render_run
from realcli.ledger.reader import StoreReader
from realcli.ledger.seals import RunJson, SealedObject, Verdict, VerifySeal, WorkSeal
from realcli.scoring.sources import SourceChanged
from realcli.storage.opening import open_store
from realcli.storage.paths import VerifyPaths
from realcli.storage.port import AlreadyStored, NotFound, ObjectStore, StorageConfig, StorageError
from realcli_session.cgroup import differs
from realcli_session.inputs import InputRefused, Task, Trial, fetch_task, read_lock, trial_of, with_source
from realcli_session.patience import patiently
from realcli_session.phases.archive import unarchive
from realcli_session.phases.limits import STATE_BYTES, STATE_ENTRIES
from realcli_session.phases.setup import SetupRefused, check_hello, place
from realcli_session.release import SocketUse
from realcli_session.runner.errors import RunnerError, RunnerLost
from realcli_session.runner.port import RunnerPort
from realcli_session.settings import KILL_AFTER_VERDICT, Settings
from realcli_session.termination import shorten
from realcli_session.told import LAST_WORD, ToldToEnd, words
from realcli_session.verify.checkers import as_lines, run_checkers
from realcli_session.verify.checks import Run, TakenSnapshot, planned, taken_snapshots
from realcli_session.verify.grading import NoVerdict, grade
from realcli_session.verify.replaced import ToolsReplaced
from realcli_session.verify.tests import put_tests

SEEN_FROM_OUTSIDE = frozenset({"AgentOutOfMemory", "AgentDiskLimit"})
MAX_URI = 200


class NoWorkSeal(Exception):
    """There is no work seal, or not an intact one of this attempt."""


async def run_verify(
    config: StorageConfig,
    settings: Settings,
    socket: SocketUse,
    *,
    root: str,
    lock_digest: str,
    ordinal: int,
    attempt: int,
    verify: int,
    work_seal: str | None,
) -> Termination:
    """One verify, from the lock to its termination message."""
    told = ToldToEnd()
    with told.listening():
        place = _Place(root, lock_digest, ordinal, attempt, verify, work_seal)
        return await _run(config, settings, socket, place, told)


class _Place(NamedTuple):
    """Which verify."""

    root: str
    lock_digest: str
    ordinal: int
    attempt: int
    verify: int
    work_seal: str | None


async def _run(config: StorageConfig, settings: Settings, socket: SocketUse, place: _Place, told: ToldToEnd) -> Termination:
    store = open_store(config)
    root, lock_digest, ordinal, attempt, verify, work_seal = place

    def read() -> tuple[Trial, WorkSeal, str, tuple[VerifySeal, str] | None]:
        trial = trial_of(read_lock(store, root, lock_digest), root, lock_digest, ordinal, attempt)
        trial = with_source(store, trial, root, lock_digest)
        sealed, digest = read_work_seal(store, trial, work_seal)
        return trial, sealed, digest, earlier_verdict(store, trial, digest) if sealed.valid else None

    try:
        trial, sealed, digest, earlier = await patiently(read, settings.storage_patience)
        if not sealed.valid:
            return _message(settings, Result.WORK_INVALID, sealed, digest, reason=sealed.reason)
        if earlier is not None:
            return _told(trial, _verdict(settings, sealed, digest, *earlier))
        session = VerifySession(config, settings, store, trial, sealed, digest, verify, told)
        try:
            made, made_digest = await (session.without_state() if sealed.state is None else session.run(socket))
        except NoVerdict as error:
            reason, text = error.reason, str(error)
            if await told.within(LAST_WORD if isinstance(error.__cause__, RunnerLost) else 0.0):
                reason, text = "SessionLost", words(text)
            print(f"{reason} {text}", file=sys.stderr, flush=True)
            none = _message(settings, Result.NO_VERDICT, sealed, digest, reason=reason)
            return none.model_copy(update={"message": shorten(text)})
        return _told(trial, _verdict(settings, sealed, digest, made, made_digest))
    except (NoWorkSeal, SourceChanged) as error:
        return _plain(settings, Result.NO_WORK_SEAL, None, str(error))
    except (InputRefused, BenchmarkError, SetupRefused, AlreadyStored) as error:
        return _plain(settings, Result.NO_VERDICT, "VerifierFault", str(error))
    except StorageError as error:
        return _plain(settings, Result.NO_VERDICT, "StorageUnavailable", str(error))


def read_work_seal(store: ObjectStore, trial: Trial, anchor: str | None) -> tuple[WorkSeal, str]:
    """(the work seal, its digest), intact and of this attempt. Raises NoWorkSeal."""
    key = trial.work.work_seal
    if trial.source is not None:
        anchor = anchor or trial.source.member.work_seal
        if not trial.source.verifiable:
            raise NoWorkSeal(f"{trial.source.uri} ended as {trial.source.member.reason} and left nothing to verify")
    try:
        data = store.get(key)
    except NotFound:
        raise NoWorkSeal(f"{key} does not exist in {store.describe()}") from None
    digest = sha256_digest(data)
    if anchor is not None and digest != anchor:
        raise NoWorkSeal(f"{key} has the digest {digest}, anchored is {anchor}: it was changed")
    try:
        sealed = WorkSeal.model_validate_json(data)
    except ValidationError as error:
        raise NoWorkSeal(f"{key} is no work seal: {error.error_count()} fields do not fit") from error
    if not sealed.intact():
        raise NoWorkSeal(f"{key} is damaged: its checksum is not that of its content")
    if sealed.trial != trial.sealed_as:
        raise NoWorkSeal(f"{key} is of another attempt: {sealed.trial.canonical().decode()}")
    return sealed, digest


def earlier_verdict(store: ObjectStore, trial: Trial, work_seal: str) -> tuple[VerifySeal, str] | None:
    """The first verify seal of this attempt that is intact and of this work seal: *the* result, whoever asks again."""
    numbers = sorted(
        int(parts[0].removeprefix("verify-"))
        for info in store.list(f"{trial.paths.root}/verify-")
        if (parts := info.key.removeprefix(f"{trial.paths.root}/").split("/"))[1:] == ["seal.json"]
    )
    for number in numbers:
        data = store.get(trial.paths.verify(number).seal)
        try:
            seal = VerifySeal.model_validate_json(data)
        except ValidationError:
            continue
        if seal.intact() and seal.work_seal == work_seal and seal.trial == trial.identity:
            return seal, sha256_digest(data)
    return None


class VerifySession:
    """One verify that has to be done. Single use."""

    def __init__(
        self,
        config: StorageConfig,
        settings: Settings,
        store: ObjectStore,
        trial: Trial,
        sealed: WorkSeal,
        work_seal: str,
        number: int,
        told: ToldToEnd,
    ) -> None:
        self._told = told
        self._config = config
        self._settings = settings
        self._store = store
        self._trial = trial
        self._sealed = sealed
        self._work_seal = work_seal
        self._number = number
        self._paths: VerifyPaths = trial.paths.verify(number)
        self._objects: list[SealedObject] = []
        self._replaced: list[str] = []

    async def without_state(self) -> tuple[VerifySeal, str]:
        """The state did not survive: reward 0 with the reason of the work, no tests."""
        return await self._seal(Verdict(reward="0", seconds="0.000"))

    async def run(self, socket: SocketUse) -> tuple[VerifySeal, str]:
        """Restore, test, read, seal. Raises NoVerdict and what else keeps a verdict from being reached."""
        unlike = differs(self._trial.lock.cgroup, self._settings.cgroup, self._settings.node)
        if unlike is not None:
            raise NoVerdict("SetupTimeout", unlike)
        limit = seconds(self._trial.lock.spec.limits.setup)
        with contextlib.closing(socket.listen()) as listener:
            task, run, state = await patiently(self._fetch, self._settings.storage_patience)
            try:
                runner = await listener.accept(limit)
            except RunnerLost as lost:
                raise NoVerdict("VerifierFault", lost.reason) from lost
        try:
            return await self._judge(runner, task, run, state)
        finally:
            await runner.close()

    async def _judge(self, runner: RunnerPort, task: Task, run: RunJson, state: Path) -> tuple[VerifySeal, str]:
        check_hello(runner.hello)
        await self._prepare(runner, task, run, state)
        lock = self._trial.task
        graded = await grade(runner, lock.workdir, lock.verifier_seconds, lambda log: self._put(self._paths.logs, log))
        if self._told.so_far:
            raise NoVerdict("SessionLost", "the tests were not done before that")
        if graded.ctrf is not None:
            await self._put(self._paths.ctrf, graded.ctrf)
        return await self._seal(
            Verdict(
                reward=graded.reward.reward,
                rewards=dict(graded.reward.rewards),
                checks=graded.checks,
                exit_code=graded.exit_code,
                seconds=f"{graded.seconds:.3f}",
                replaced=self._replaced,
            ),
            lambda: self._checks(runner, task, run),
        )

    async def _prepare(self, runner: RunnerPort, task: Task, run: RunJson, state: Path) -> None:
        """run/ templates, then the state over them, then the tests over both."""
        try:
            await place(runner, render_run(task.private, run, canary_values(task.oracle, run)))
        except RunnerLost as lost:
            raise NoVerdict("VerifierFault", f"before anything of the agent was there: {lost.reason}") from lost
        try:
            whole = self._trial.task.trust == "system"
            clear = [] if whole else self._trial.task.artifacts
            tools = ToolsReplaced(unarchive(state)) if whole else None
            await runner.restore(
                tools or unarchive(state), clear=clear, max_bytes=STATE_BYTES, max_entries=STATE_ENTRIES, delta=whole
            )
            self._replaced = [] if tools is None else tools.names
            await put_tests(runner, task.private, run.canonical())
        except (RunnerLost, RunnerError) as error:
            raise NoVerdict("AgentBrokeEnvironment", f"the state could not be restored: {error}") from error

    def _fetch(self) -> tuple[Task, RunJson, Path]:
        """Bundles, run.json and state, each with the digest the seal has. Blocks; can be called again."""
        spool = self._settings.spool
        shutil.rmtree(spool / "task", ignore_errors=True)
        task = fetch_task(self._config, self._store, self._trial, spool / "task")
        run = self._store.get(self._trial.work.run)
        if sha256_digest(run) != self._sealed.run:
            raise NoVerdict("VerifierFault", f"{self._trial.work.run} is not the one that was sealed: it was changed")
        state = spool / "state.tar.zst"
        self._store.download(self._trial.work.state, state)
        with state.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if f"sha256:{digest}" != self._sealed.state:
            raise NoVerdict("VerifierFault", f"{self._trial.work.state} is not the one that was sealed: it was changed")
        return task, RunJson.model_validate_json(run), state

    async def _checks(self, runner: RunnerPort, task: Task, run: RunJson) -> None:
        """checks.jsonl, if a check asks for a script. Nothing that goes wrong here touches the verdict, which is written."""
        try:
            runs = await patiently(lambda: self._planned(task), self._settings.storage_patience)
        except (StorageError, ValueError) as error:
            print(f"no checker was run: the sealed ledger cannot be read: {error}", file=sys.stderr, flush=True)
            return
        if not runs:
            return
        oracle = task.oracle
        content = canonical_json(run.dump() | {"canaries": canary_values(oracle, run)})
        lines = await run_checkers(runner, runs, oracle, task.private, content, self._trial.task.workdir, self._snapshot)
        await self._put(self._paths.checks, as_lines(lines))

    def _planned(self, task: Task) -> list[Run]:
        """What the checks of a COLLAB trial ask for. Blocks."""
        if self._trial.identity.mode != "COLLAB":
            return []
        events = StoreReader(self._store, self._trial.work.root).events()
        return list(planned(task.script, task.oracle, load_catalogue(), taken_snapshots(events)))

    async def _snapshot(self, taken: TakenSnapshot) -> Path:
        """A snapshot as it was sealed. ValueError if it is another one, or none."""
        name = f"snapshots/{taken.seq}.tar.zst"
        path = self._settings.spool / "check.tar.zst"
        try:
            key = f"{self._trial.work.root}/{name}"
            await patiently(lambda: self._store.download(key, path), self._settings.storage_patience)
        except StorageError as error:
            raise ValueError(f"{name}: {error}") from error
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != taken.sha256 or digest not in {o.sha256 for o in self._sealed.objects if o.path == name}:
            raise ValueError(f"{name} is not the one that was sealed")
        return path

    async def _seal(self, verdict: Verdict, run_checks: Callable[[], Awaitable[None]] | None = None) -> tuple[VerifySeal, str]:
        await self._put(self._paths.verdict, verdict.canonical())
        if run_checks is not None:
            await run_checks()
        if self._settings.fault == KILL_AFTER_VERDICT:
            os.kill(os.getpid(), signal.SIGKILL)
        seal = VerifySeal(
            trial=self._trial.identity,
            verify=self._number,
            work_seal=self._work_seal,
            work_reason=self._sealed.reason,
            reason=self._sealed.reason,
            reward=verdict.reward,
            checks=verdict.checks,
            verifier_version=self._trial.task.verifier_version,
            trust=self._trial.task.trust,
            image=self._trial.task.image,
            objects=sorted(self._objects, key=lambda o: o.path),
        )
        data = seal.seal()
        await patiently(lambda: self._store.put_once(self._paths.seal, data), self._settings.storage_patience)
        return VerifySeal.model_validate_json(data), sha256_digest(data)

    async def _put(self, key: str, data: bytes) -> None:
        await patiently(lambda: self._store.put_once(key, data), self._settings.storage_patience)
        path = key.removeprefix(f"{self._paths.root}/")
        self._objects.append(SealedObject(path=path, sha256=sha256_digest(data).removeprefix("sha256:"), size=len(data)))


def _verdict(settings: Settings, sealed: WorkSeal, work_seal: str, made: VerifySeal, digest: str) -> Termination:
    message = _message(settings, Result.VERDICT, sealed, work_seal, reason=made.reason)
    return message.model_copy(update={"seal": digest, "reward": made.reward, "checks": made.checks})


def _told(trial: Trial, message: Termination) -> Termination:
    """What the message says beside, of a run that another sweep has made: where it lies, and an end that only that sweep's
    operator saw (the session, which cannot see why, calls it something else)."""
    source = trial.source
    if source is None:
        return message
    reason = source.member.reason if source.member.reason in SEEN_FROM_OUTSIDE else message.reason
    return message.model_copy(update={"reason": reason, "uri": source.uri if len(source.uri) <= MAX_URI else None})


def _message(settings: Settings, result: Result, sealed: WorkSeal, work_seal: str, *, reason: str) -> Termination:
    return Termination(
        phase="Verify",
        result=result,
        reason=reason,
        work_end=sealed.reason,
        work_seal=work_seal,
        turns=sealed.turns,
        tokens=sealed.tokens,
        working_seconds=sealed.working_seconds,
        limit=sealed.limit,
        node=settings.node,
    )


def _plain(settings: Settings, result: Result, reason: str | None, detail: str) -> Termination:
    print(f"{result}: {reason or ''} {detail}", file=sys.stderr, flush=True)
    return Termination(phase="Verify", result=result, reason=reason, message=shorten(detail), node=settings.node)
