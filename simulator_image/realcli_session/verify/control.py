"""The control: the task's own verifier on its reference solution, in the pristine image, with a run.json of its own.

Asked for when a trial's tests ended without a verdict. If the solution earns reward 1, the tests work, and what ended them was
the agent's doing; anything less, and they are broken. The solution runs in the verifier container itself, as the agent's user.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import shutil
import stat
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from realcli.api.base import seconds, sha256_digest
from realcli.api.termination import Result, Termination
from realcli.benchmark.bundles import read_tree
from realcli.benchmark.problems import BenchmarkError
from realcli.benchmark.run_files import canary_values, render_run, render_traps
from realcli.ledger.seals import ControlReason, ControlSeal, ControlVerdict, RunJson, SealedObject
from realcli.ledger.writer import LedgerWriter
from realcli.storage.opening import open_store
from realcli.storage.port import AlreadyStored, ObjectStore, StorageConfig, StorageError
from realcli.wire.archive import END, Member, header, padding
from realcli_session.agents import port
from realcli_session.cgroup import differs
from realcli_session.inputs import InputRefused, Task, Trial, fetch_task, read_lock, trial_of
from realcli_session.patience import patiently
from realcli_session.phases.hosts import start_hosts
from realcli_session.phases.limits import QUIESCE_KILL
from realcli_session.phases.quiesce import not_wedged
from realcli_session.phases.setup import SetupRefused, account, check_hello, make_run, place
from realcli_session.release import SocketUse
from realcli_session.runner.errors import RunnerError, RunnerLost
from realcli_session.runner.port import Completed, RunnerPort
from realcli_session.settings import Settings
from realcli_session.termination import shorten
from realcli_session.told import LAST_WORD, ToldToEnd, words
from realcli_session.verify.grading import Graded, NoVerdict, grade
from realcli_session.verify.tests import put_tests

SOLUTION: Final = "/solution"
LOST: Final = "VerifierFault"
"""What it says that got no result and knows no reason of the cluster's."""
OUTPUT: Final = 256 << 10
"""Bytes kept of what the solution printed."""
ENDS: Final[dict[str, ControlReason]] = {
    "VerifierTimeout": "VerifierTimeout",
    "NoReward": "NoReward",
    "AgentBrokeEnvironment": "TestsNotStarted",
}
"""What a verify would call it, and a control does, which has no agent."""


class NoResult(Exception):
    """What was found is none: the session was told to end meanwhile."""


@dataclass(slots=True)
class _Solved:
    """How solve.sh ended."""

    exit_code: int | None = None
    seconds: str | None = None
    log: bytes = b""


async def run_control(
    config: StorageConfig,
    settings: Settings,
    socket: SocketUse,
    *,
    root: str,
    lock_digest: str,
    ordinal: int,
    attempt: int,
    control: int,
) -> Termination:
    """One control, from the lock to its termination message."""
    told = ToldToEnd()
    with told.listening():
        message = await _run(config, settings, socket, root, lock_digest, ordinal, attempt, control, told)
        if message.reason == LOST and await told.within(LAST_WORD):
            return message.model_copy(update={"reason": "SessionLost", "message": shorten(words(message.message or ""))})
    return message


async def _run(
    config: StorageConfig,
    settings: Settings,
    socket: SocketUse,
    root: str,
    lock_digest: str,
    ordinal: int,
    attempt: int,
    control: int,
    told: ToldToEnd,
) -> Termination:
    store = open_store(config)

    def read() -> tuple[Trial, tuple[ControlSeal, str] | None]:
        trial = trial_of(read_lock(store, root, lock_digest), root, lock_digest, ordinal, attempt)
        return trial, earlier_control(store, trial)

    try:
        trial, found = await patiently(read, settings.storage_patience)
        if found is None:
            unlike = differs(trial.lock.cgroup, settings.cgroup, settings.node)
            if unlike is not None:
                return _nothing(settings, "SetupTimeout", unlike)
            found = await ControlSession(config, settings, store, trial, control, told).run(socket)
        return _told(settings, *found)
    except (InputRefused, BenchmarkError, AlreadyStored) as error:
        return _nothing(settings, "VerifierFault", str(error))
    except (RunnerLost, NoResult) as lost:
        return _nothing(settings, LOST, str(lost))
    except StorageError as error:
        return _nothing(settings, "StorageUnavailable", str(error))


def earlier_control(store: ObjectStore, trial: Trial) -> tuple[ControlSeal, str] | None:
    """The first control seal of this attempt that is intact: the result, whoever asks again."""
    prefix = f"{trial.paths.root}/control-"
    numbers = sorted(
        int(number)
        for info in store.list(prefix)
        if (parts := info.key.removeprefix(prefix).split("/"))[1:] == ["seal.json"] and (number := parts[0]).isdigit()
    )
    for earlier in numbers:
        data = store.get(trial.paths.control(earlier).seal)
        try:
            seal = ControlSeal.model_validate_json(data)
        except ValidationError:
            continue
        if seal.intact() and seal.trial == trial.identity:
            return seal, sha256_digest(data)
    return None


class ControlSession:
    """One control that has to be done. Single use."""

    def __init__(
        self, config: StorageConfig, settings: Settings, store: ObjectStore, trial: Trial, number: int, told: ToldToEnd
    ) -> None:
        self._told = told
        self._config = config
        self._settings = settings
        self._store = store
        self._trial = trial
        self._number = number
        self._paths = trial.paths.control(number)
        self._objects: list[SealedObject] = []
        self._solved = _Solved()

    async def run(self, socket: SocketUse) -> tuple[ControlSeal, str]:
        """Solve, test, read, seal. Raises NoResult, RunnerLost, InputRefused, BenchmarkError and StorageError: no result."""
        limit = seconds(self._trial.lock.spec.limits.setup)
        with contextlib.closing(socket.listen()) as listener:
            task = await patiently(self._fetch, self._settings.storage_patience)
            run = await patiently(self._run_json, self._settings.storage_patience)
            runner = await listener.accept(limit)
        try:
            verdict = await self._verdict(runner, task, run)
        finally:
            await runner.close()
        if self._told.so_far:
            raise NoResult("solution and tests were not done before that")
        return await self._seal(verdict, run)

    async def _verdict(self, runner: RunnerPort, task: Task, run: RunJson) -> ControlVerdict:
        try:
            check_hello(runner.hello)
            if (broken := await self._solve(runner, task, run)) is not None:
                await self._keep_log(b"")
                return broken
            await put_tests(runner, task.private, run.canonical())
        except (SetupRefused, port.SetupRefused) as error:
            return self._failed("ImageRefused", str(error))
        except RunnerError as error:
            return self._failed("SolutionNotStarted", f"the image does not take the solution or the tests: {error}")
        lock = self._trial.task
        try:
            graded = await grade(runner, lock.workdir, lock.verifier_seconds, self._keep_log)
        except NoVerdict as error:
            if isinstance(error.__cause__, RunnerLost):  # which says nothing of the tests: its node may have gone
                raise error.__cause__ from error
            return self._failed(ENDS[error.reason], str(error))
        if graded.ctrf is not None:
            await self._put(self._paths.ctrf, graded.ctrf)
        return self._graded(graded)

    async def _solve(self, runner: RunnerPort, task: Task, run: RunJson) -> ControlVerdict | None:
        """What a trial finds at its start, then solve.sh on it; nothing of it runs afterwards. Its verdict if it has no end."""
        canaries = canary_values(task.oracle, run)
        await place(runner, render_run(task.private, run, canaries))
        await place(runner, render_traps(task.private, run, canaries))
        sink = LedgerWriter(self._settings.spool / "requests")  # of the solution: nobody asks for them
        hosts, variables = await start_hosts(self._trial.task.mock_hosts, task, run, canaries, sink, runner)
        try:
            return await self._run_solution(runner, task, variables)
        finally:
            if hosts is not None:
                await hosts.stop()

    async def _run_solution(self, runner: RunnerPort, task: Task, variables: dict[str, str]) -> ControlVerdict | None:
        await _restore(runner, solution_archive(task.private))
        hello = runner.hello
        uid, gid, env = hello.uid, hello.gid, {**hello.environ, **variables}
        if task.agent_user is not None:
            uid, gid, env["HOME"] = await account(runner, task.agent_user)
        limit = seconds(self._trial.lock.spec.limits.exec.deadline)  # what an agent has
        late = False
        clock = asyncio.get_running_loop().time
        begun = clock()
        try:
            done = await runner.run(
                ["bash", f"{SOLUTION}/solve.sh"],
                env=env,
                cwd=self._trial.task.workdir,
                uid=uid,
                gid=gid,
                seconds=limit,
                output_limit=OUTPUT,
            )
        except TimeoutError:
            late = True
        else:
            self._solved = _Solved(done.status.code, f"{clock() - begun:.3f}", _printed(done))
        async with not_wedged(QUIESCE_KILL, "stop what the solution left"):
            report = await runner.quiesce(grace=0.0, kill=QUIESCE_KILL)
        if late or report.survivors or not report.proven:
            return self._failed(
                "SolutionTimeout", f"solution/solve.sh did not end within {limit:g} s, or left what cannot be stopped"
            )
        await _restore(runner, END)  # the tests never see it
        return None

    def _graded(self, graded: Graded) -> ControlVerdict:
        reward = graded.reward.reward
        passed = Decimal(reward) == 1
        said = f" (solve.sh ended with {self._solved.exit_code})" if self._solved.exit_code else ""
        return ControlVerdict(
            passed=passed,
            reason=None if passed else "RewardBelowOne",
            detail="" if passed else f"the tests give the reference solution {reward}, expected 1{said}",
            reward=reward,
            rewards=dict(graded.reward.rewards),
            checks=graded.checks,
            exit_code=graded.exit_code,
            solution_exit_code=self._solved.exit_code,
            solution_seconds=self._solved.seconds,
            seconds=f"{graded.seconds:.3f}",
        )

    def _failed(self, reason: ControlReason, detail: str) -> ControlVerdict:
        solved = self._solved
        return ControlVerdict(
            passed=False,
            reason=reason,
            detail=detail[:1000],
            solution_exit_code=solved.exit_code,
            solution_seconds=solved.seconds,
        )

    def _fetch(self) -> Task:
        """Blocks; can be called again."""
        shutil.rmtree(self._settings.spool / "task", ignore_errors=True)
        return fetch_task(self._config, self._store, self._trial, self._settings.spool / "task")

    def _run_json(self) -> RunJson:
        """Made once: a pod of this name may have been here before. Blocks."""
        with contextlib.suppress(AlreadyStored):
            self._store.put_once(self._paths.run, make_run().canonical())
        return RunJson.model_validate_json(self._store.get(self._paths.run))

    async def _keep_log(self, log: bytes) -> None:
        parts = [part for part in (self._solved.log, log) if part]
        await self._put(self._paths.logs, b"\n".join(parts))

    async def _seal(self, verdict: ControlVerdict, run: RunJson) -> tuple[ControlSeal, str]:
        await self._put(self._paths.verdict, verdict.canonical())
        content = run.canonical()
        ours = SealedObject(path="run.json", sha256=sha256_digest(content).removeprefix("sha256:"), size=len(content))
        lock = self._trial.task
        seal = ControlSeal(
            trial=self._trial.identity,
            control=self._number,
            run=sha256_digest(content),
            passed=verdict.passed,
            reason=verdict.reason,
            detail=verdict.detail,
            reward=verdict.reward,
            verifier_version=lock.verifier_version,
            trust=lock.trust,
            image=lock.image,
            objects=sorted([*self._objects, ours], key=lambda o: o.path),
        )
        data = seal.seal()
        await patiently(lambda: self._store.put_once(self._paths.seal, data), self._settings.storage_patience)
        print(f"control: {verdict.reason or 'passed'} {verdict.detail}", file=sys.stderr, flush=True)
        return ControlSeal.model_validate_json(data), sha256_digest(data)

    async def _put(self, key: str, data: bytes) -> None:
        await patiently(lambda: self._store.put_once(key, data), self._settings.storage_patience)
        path = key.removeprefix(f"{self._paths.root}/")
        self._objects.append(SealedObject(path=path, sha256=sha256_digest(data).removeprefix("sha256:"), size=len(data)))


def solution_archive(private: Path) -> bytes:
    """A tar with `/solution`, which the agent's user may read."""
    files = [(f.path, 0o755 if f.mode & stat.S_IXUSR else 0o644, f.content) for f in read_tree(private, ["solution"])]
    folders = sorted({str(parent) for path, _, _ in files for parent in Path(path).parents if str(parent) != "."})
    out = io.BytesIO()
    for folder in folders:
        out.write(header(Member(folder.encode(), "dir", mode=0o755)))
    for path, mode, content in sorted(files):
        out.write(header(Member(path.encode(), "file", size=len(content), mode=mode)) + content + padding(len(content)))
    return out.getvalue() + END


async def _restore(runner: RunnerPort, tar: bytes) -> None:
    async def source() -> AsyncIterator[bytes]:
        yield tar

    await runner.restore(source(), clear=[SOLUTION], max_bytes=len(tar))


def _printed(done: Completed) -> bytes:
    parts: Sequence[bytes] = [part for part in (done.stdout, done.stderr) if part]
    return b"\n".join(parts)


def _told(settings: Settings, seal: ControlSeal, digest: str) -> Termination:
    return Termination(
        phase="Control",
        result=Result.CONTROL_PASSED if seal.passed else Result.CONTROL_FAILED,
        reason=seal.reason,
        message=shorten(seal.detail) or None,
        reward=seal.reward,
        seal=digest,
        node=settings.node,
    )


def _nothing(settings: Settings, reason: str, detail: str) -> Termination:
    print(f"control: {reason} {detail}", file=sys.stderr, flush=True)
    return Termination(phase="Control", result=Result.NO_VERDICT, reason=reason, message=shorten(detail), node=settings.node)
