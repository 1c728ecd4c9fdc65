"""Runs checker scripts in the verifier container, one after the other, when the verdict is already written.

Whatever a script or the state does to the runner, the verdict cannot change any more: what cannot be run is a `broken` line.
"""

from __future__ import annotations

import asyncio
import io
import signal
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

from realcli.api.base import canonical_json
from realcli.benchmark.bundles import read_tree
from realcli.benchmark.oracle_models import Oracle
from realcli.ledger.events import HardCheck
from realcli.wire.archive import END, Member, header, padding
from realcli.wire.protocol import ErrorCode
from realcli_session.phases.archive import unarchive
from realcli_session.phases.limits import QUIESCE_KILL, SNAPSHOT_BYTES, SNAPSHOT_ENTRIES
from realcli_session.phases.quiesce import not_wedged
from realcli_session.runner.errors import RunnerError, RunnerLost
from realcli_session.runner.port import RunnerPort
from realcli_session.verify.checks import Run, TakenSnapshot, outcome_of, script_of

FOLDER = "/checks"
TOTAL_SECONDS = 1200.0
"""Of all scripts of a trial together."""
OUTPUT = 64 << 10
Fetch = Callable[[TakenSnapshot], Awaitable[Path]]
"""The archive of a snapshot as a file, checked against its digest. Whatever it raises is a `broken` line."""


async def run_checkers(
    runner: RunnerPort, runs: Sequence[Run], oracle: Oracle, private: Path, run_json: bytes, workdir: str, fetch: Fetch
) -> list[HardCheck]:
    """A line per run, in order. Raises nothing that a script, the state or the runner can bring about."""
    clock = asyncio.get_running_loop().time
    end = clock() + TOTAL_SECONDS
    scripts = _archive(private, run_json)
    lines: list[HardCheck] = []
    for run in runs:
        if run.missing or run.snapshot is None:
            lines.append(run.line("broken", run.missing or "there is no snapshot"))
            continue
        limit = min(oracle.checkers[run.checker].timeout_sec, end - clock())
        if limit <= 0:
            lines.append(run.line("broken", f"the scripts before it took {TOTAL_SECONDS:g} s together"))
            continue
        try:
            archive = await fetch(run.snapshot)
            await _prepare(runner, oracle, archive, scripts)
            lines.append(await _run(runner, run, script_of(oracle.checkers[run.checker]), workdir, limit))
        except RunnerLost as lost:
            lines.append(run.line("broken", f"the runner was lost: {lost.reason}"))
        except RunnerError as error:
            lines.append(run.line("broken", f"it could not be run: {error}"))
        except (OSError, ValueError) as error:
            lines.append(run.line("broken", f"its snapshot cannot be read: {error}"))
    return lines


def as_lines(lines: Sequence[HardCheck]) -> bytes:
    """checks.jsonl."""
    return b"".join(canonical_json(line.dump()) + b"\n" for line in lines)


async def _prepare(runner: RunnerPort, oracle: Oracle, archive: Path, scripts: bytes) -> None:
    """Nothing runs, the contract paths are those of the snapshot, and the scripts are the task's own."""
    async with not_wedged(QUIESCE_KILL, "stop everything"):
        report = await runner.quiesce(grace=0.0, kill=QUIESCE_KILL)
    if report.survivors or not report.proven:
        raise RunnerError(ErrorCode.BUSY, "something still runs that could not be stopped")

    async def source() -> AsyncIterator[bytes]:
        yield scripts

    await runner.restore(source(), clear=[FOLDER], max_bytes=len(scripts))
    await runner.restore(unarchive(archive), clear=oracle.paths, max_bytes=SNAPSHOT_BYTES, max_entries=SNAPSHOT_ENTRIES)


async def _run(runner: RunnerPort, run: Run, script: str, workdir: str, limit: float) -> HardCheck:
    argv = [f"{FOLDER}/{script.removeprefix('interaction/checks/')}", *run.arguments]
    env = dict(runner.hello.environ) | {"REALCLI_CHECK_RUN": f"{FOLDER}/run.json"}
    try:
        done = await runner.run(argv, env=env, cwd=workdir, uid=0, gid=0, seconds=limit, output_limit=OUTPUT)
    except TimeoutError:
        return run.line("broken", f"it was killed after {limit:.0f} s")
    output = (done.stderr or done.stdout).decode("utf-8", "replace")
    if done.status.signal == signal.SIGKILL:
        return run.line("broken", "killed by signal 9")
    return run.line(*outcome_of(done.status.code, done.status.signal, output))


def _archive(private: Path, run_json: bytes) -> bytes:
    """interaction/checks/ and run.json, root's alone."""
    prefix = "interaction/checks/"
    files = [
        (f.path.removeprefix(prefix), 0o500 if f.mode & stat.S_IXUSR else 0o400, f.content)
        for f in read_tree(private, [prefix[:-1]])
    ]
    files.append(("run.json", 0o400, run_json))
    base = FOLDER.lstrip("/")
    folders = {base} | {f"{base}/{parent}" for path, _, _ in files for parent in Path(path).parents if str(parent) != "."}
    out = io.BytesIO()
    for folder in sorted(folders):
        out.write(header(Member(folder.encode(), "dir", mode=0o500)))
    for path, mode, content in sorted(files):
        out.write(
            header(Member(f"{base}/{path}".encode(), "file", size=len(content), mode=mode)) + content + padding(len(content))
        )
    return out.getvalue() + END
