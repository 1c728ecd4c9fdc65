"""What both Jobs read first: where storage is, the lock, and from it the plan. Checked by digest before anything is used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pydantic import ValidationError

from realcli.api.base import sha256_digest
from realcli.api.faults import first_fault
from realcli.api.plan import Lock, Plan, plan_of
from realcli.judging.identity import identity_of
from realcli.judging.model import JudgeIdentity
from realcli.scoring.sources import Source, SourceChanged, read_sources
from realcli.storage.opening import open_store
from realcli.storage.paths import SweepPaths, parse_s3_uri
from realcli.storage.port import NotFound, ObjectStore, StorageConfig


class Refused(Exception):
    """The Job cannot do it, now or later. `reason` is for programs, the text for people: what was found, what to do."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Inputs:
    """A sweep in storage."""

    config: StorageConfig
    store: ObjectStore
    root: str
    lock: Lock
    plan: Plan

    @property
    def paths(self) -> SweepPaths:
        """Keys below the sweep's root."""
        return SweepPaths(self.root)

    @cached_property
    def judge(self) -> JudgeIdentity:
        """Which judge this program is for the sweep; its digest names the folder of the judgements."""
        return identity_of(self.lock.spec.judge)

    @cached_property
    def _sources(self) -> dict[int, dict[int, Source]]:
        """By group, as they are read."""
        return {}

    def sources(self, group: int) -> dict[int, Source]:
        """Where the runs of a group were made, by ordinal; {} where this sweep made them. `Refused`: changed since the plan."""
        source = self.lock.source
        if source is None:
            return {}
        if group not in self._sources:
            try:
                self._sources[group] = read_sources(self.store, self.paths, self.plan, source, group)
            except SourceChanged as error:
                raise Refused("EvidenceChanged", str(error)) from error
        return self._sources[group]

    def source(self, ordinal: int) -> Source | None:
        """Where the run of a trial was made; None: by this sweep."""
        return self.sources(self.plan.group_of(ordinal)).get(ordinal)

    def benchmark(self) -> tuple[ObjectStore, str]:
        """(store, key prefix) of the benchmark: endpoint and credentials are those of `storage`, the bucket may differ.

        A local directory stands for every bucket.
        """
        bucket, prefix = parse_s3_uri(self.lock.benchmark.source)
        if self.config.directory is not None or self.config.bucket == bucket:
            return self.store, prefix
        return open_store(self.config.model_copy(update={"bucket": bucket})), prefix


def open_inputs(environ: Mapping[str, str], root: str, lock_digest: str) -> Inputs:
    """Storage, lock and plan. `Refused` for what is missing, changed or of another version; storage errors pass."""
    try:
        config = StorageConfig.from_environment(environ)
    except ValueError as error:
        raise Refused("ConfigurationError", str(error)) from error
    store = open_store(config)
    root = root.strip("/")
    key = SweepPaths(root).lock
    try:
        data = store.get(key)
    except NotFound:
        raise Refused("NotFound", f"{key} does not exist in {store.describe()}: was the sweep planned there?") from None
    if sha256_digest(data) != lock_digest:
        raise Refused(
            "DigestMismatch",
            f"{key} has the digest {sha256_digest(data)}, expected {lock_digest}: the lock was changed, make a new sweep",
        )
    try:
        lock = Lock.model_validate_json(data)
    except ValidationError as error:
        raise Refused("ConfigurationError", f"{key} was written by another version of RealCLI: {first_fault(error)}") from error
    return Inputs(config, store, root, lock, plan_of(lock, root, lock_digest))
