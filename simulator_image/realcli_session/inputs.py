"""What a program reads before it starts: the lock, the coordinates of its trial, the task's bundles. All checked by digest."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from realcli.api.base import seconds, sha256_digest
from realcli.api.plan import ConfigurationLock, Lock, TaskLock, plan_of
from realcli.benchmark.models import Oracle, Script
from realcli.benchmark.publish import fetch_bundle
from realcli.benchmark.script import read_oracle, read_script, spec_of
from realcli.benchmark.task_toml import TaskToml
from realcli.ledger.seals import TrialIdentity
from realcli.scoring.sources import Source, read_sources
from realcli.storage.opening import open_store
from realcli.storage.paths import AttemptPaths, SweepPaths, parse_s3_uri
from realcli.storage.port import NotFound, ObjectStore, StorageConfig


class InputRefused(Exception):
    """An input is not there or not what was promised; the message names it and says what to do."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One attempt of one trial, as the lock describes it."""

    lock: Lock
    identity: TrialIdentity
    task: TaskLock
    configuration: ConfigurationLock
    sweep: SweepPaths
    paths: AttemptPaths
    source: Source | None = None
    """Where its run was made, if another sweep made it."""

    @property
    def work(self) -> AttemptPaths:
        """Where ledger, state and work seal lie: its own place, or that of the sweep that made the run."""
        return self.paths if self.source is None else self.source.work

    @property
    def sealed_as(self) -> TrialIdentity:
        """Which attempt the work seal has to name."""
        return self.identity if self.source is None else self.source.trial

    @property
    def deadline(self) -> float:
        """Working time in seconds."""
        limits = self.lock.spec.limits
        return seconds((limits.exec if self.identity.mode == "EXEC" else limits.collab).deadline)

    @property
    def wall(self) -> float:
        """Wall limit in seconds."""
        return self.deadline * float(self.lock.spec.limits.wall_factor)


@dataclass(frozen=True, slots=True)
class Task:
    """A task's bundles, unpacked."""

    public: Path
    private: Path
    agent_user: str | None

    @property
    def specification(self) -> str:
        """What EXEC sends."""
        return spec_of(self.public)

    @property
    def script(self) -> Script:
        """interaction/script.json; COLLAB alone reads it."""
        return read_script(self.private)

    @property
    def oracle(self) -> Oracle:
        """interaction/oracle_contract.json; COLLAB alone reads it."""
        return read_oracle(self.private)

    @property
    def tests(self) -> Path:
        """tests/."""
        return self.private / "tests"


def benchmark_store(config: StorageConfig, store: ObjectStore, source: str) -> tuple[ObjectStore, str]:
    """(store, key prefix) of a benchmark's source: it uses the endpoint and credentials of `storage`.

    A local directory stands for every bucket.
    """
    bucket, prefix = parse_s3_uri(source)
    if config.directory is not None or config.bucket == bucket:
        return store, prefix
    return open_store(config.model_copy(update={"bucket": bucket})), prefix


def read_lock(store: ObjectStore, root: str, digest: str) -> Lock:
    """`<root>/sweep.json`. InputRefused: not there, other content than promised, or of another version."""
    key = SweepPaths(root).lock
    try:
        data = store.get(key)
    except NotFound:
        raise InputRefused(f"{key} does not exist in {store.describe()}: was the sweep planned there?") from None
    if sha256_digest(data) != digest:
        raise InputRefused(
            f"{key} has the digest {sha256_digest(data)}, expected {digest}: the lock was changed, make a new sweep"
        )
    try:
        return Lock.model_validate_json(data)
    except ValidationError as error:
        raise InputRefused(f"{key} was written by another version: {error.error_count()} fields do not fit, {error}") from error


def trial_of(lock: Lock, root: str, digest: str, ordinal: int, attempt: int) -> Trial:
    """The trial at `ordinal`. InputRefused for one outside of the plan."""
    try:
        cell = plan_of(lock, root, digest).coordinates(ordinal)
    except IndexError as error:
        raise InputRefused(str(error)) from error
    return Trial(
        lock=lock,
        identity=TrialIdentity(
            sweep_uid=lock.sweep.uid,
            sweep=lock.sweep.name,
            namespace=lock.sweep.namespace,
            ordinal=ordinal,
            attempt=attempt,
            configuration=cell.configuration,
            task=cell.task,
            mode=cell.mode,
            repeat=cell.repeat,
            lock_digest=digest,
        ),
        task=next(t for t in lock.tasks if t.name == cell.task),
        configuration=next(c for c in lock.configurations if c.name == cell.configuration),
        sweep=SweepPaths(root),
        paths=SweepPaths(root).attempt(ordinal, attempt),
    )


def with_source(store: ObjectStore, trial: Trial, root: str, digest: str) -> Trial:
    """The trial with where its run was made, if another sweep made it. SourceChanged: that is not what was planned with."""
    source = trial.lock.source
    if source is None:
        return trial
    plan = plan_of(trial.lock, root, digest)
    ordinal = trial.identity.ordinal
    return replace(trial, source=read_sources(store, trial.sweep, plan, source, plan.group_of(ordinal))[ordinal])


def fetch_task(config: StorageConfig, store: ObjectStore, trial: Trial, dest: Path) -> Task:
    """Both bundles below `dest`. BenchmarkError names what is missing or damaged."""
    where, prefix = benchmark_store(config, store, trial.lock.benchmark.source)
    public, private = dest / "public", dest / "private"
    fetch_bundle(where, prefix, trial.task.public_bundle, public)
    fetch_bundle(where, prefix, trial.task.private_bundle, private)
    toml = TaskToml.model_validate(tomllib.loads((public / "task.toml").read_text(encoding="utf-8")))
    return Task(public, private, toml.agent.user)
