"""A newer version of a benchmark for runs that are done: what of a task may have been mended, and what has to be as it was.

A sealed run was made with one specification, script and environment. Its verifier may be mended: tests, reference solution,
checker scripts and the time limit of the tests. Everything else would be another task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from realcli.api.base import seconds
from realcli.api.plan import BenchmarkLock, TaskLock
from realcli.benchmark.bundles import File
from realcli.benchmark.models import Index, IndexTask

SAME = ("image", "trust", "needs_setuid", "mock_hosts", "libc", "workdir", "artifacts", "watch", "scenarios")
PUBLIC = ("task.toml",)
PRIVATE = ("tests/", "solution/", "interaction/checks/")
SHOWN = 3


@dataclass(frozen=True)
class Here:
    """A benchmark version as read."""

    source: str
    index: Index
    digest: str


@dataclass(frozen=True)
class Benchmarks:
    """How benchmarks are read. Both raise what refuses the plan, with its reason."""

    index: Callable[[str, str | None], Here]
    """(source, expected digest)."""
    files: Callable[[str, str], list[File]]
    """(source, digest of a bundle)."""
    allow_loopback: bool = False


def mended_tasks(
    tasks: list[TaskLock], ran: BenchmarkLock, here: Here, limit: str, verifier: str, benchmarks: Benchmarks
) -> tuple[list[TaskLock], list[str]]:
    """The tasks with the verifier of `here`, and why they are not the same tasks. `limit`: spec.limits.verify."""
    by_name = {task.name: task for task in here.index.tasks}
    made, problems = [], []
    for task in tasks:
        new = by_name.get(task.name)
        if new is None:
            problems.append(f"{_where(here, task)} is not in it; name a version that has it, or leave the task out")
            continue
        problems += _unlike(task, new, ran, here, benchmarks)
        made.append(
            task.model_copy(
                update={
                    "digest": new.digest,
                    "public_bundle": new.public_bundle,
                    "private_bundle": new.private_bundle,
                    "verifier_seconds": min(new.verifier_seconds, seconds(limit)),
                    "verifier_version": verifier,
                    "resources": new.resources,
                }
            )
        )
    return made, problems


def _where(here: Here, task: TaskLock) -> str:
    return f"spec.benchmark.source: {here.source}: task {task.name}"


def _unlike(task: TaskLock, new: IndexTask, ran: BenchmarkLock, here: Here, benchmarks: Benchmarks) -> Iterator[str]:
    for name in SAME:
        if getattr(task, name) != getattr(new, name):
            told = f"{name} is {getattr(new, name)!r}, the runs were made with {getattr(task, name)!r}"
            yield f"{_where(here, task)}: {told}; a state can be verified again only on what it was made on"
            return
    for kind, old_digest, new_digest, free in (
        ("public", task.public_bundle, new.public_bundle, PUBLIC),
        ("private", task.private_bundle, new.private_bundle, PRIVATE),
    ):
        if old_digest == new_digest:
            continue
        old = _kept(benchmarks.files(ran.source, old_digest), free)
        now = _kept(benchmarks.files(here.source, new_digest), free)
        changed = sorted(path for path in old.keys() | now.keys() if old.get(path) != now.get(path))
        if changed:
            names = ", ".join(changed[:SHOWN]) + (" …" if len(changed) > SHOWN else "")
            yield (
                f"{_where(here, task)}: {names} of its {kind} files differ from those the runs were made with; of a task only "
                f"{', '.join((*PUBLIC, *PRIVATE))} may have changed"
            )


def _kept(files: list[File], free: tuple[str, ...]) -> dict[str, tuple[int, bytes]]:
    """The files that have to be as they were."""
    return {file.path: (file.mode, file.content) for file in files if not file.path.startswith(free)}
