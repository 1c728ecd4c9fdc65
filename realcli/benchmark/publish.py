"""Publishing a suite and reading it back: index.json and bundles/<sha256>.tar.zst below `<prefix>/<name>/<version>`.

Bundles go up first, index.json last, each created once: a version is complete or not there, and never changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from realcli.api.base import canonical_json, sha256_digest
from realcli.benchmark.bundles import File, pack, unpack, unpacked
from realcli.benchmark.models import INDEX_KEY, Index
from realcli.benchmark.problems import BenchmarkError, Problem
from realcli.benchmark.suite import Suite, Task, index_task
from realcli.storage.paths import join
from realcli.storage.port import AlreadyStored, NotFound, ObjectStore


@dataclass(frozen=True)
class Built:
    """A suite as it is stored."""

    index: Index
    bundles: dict[str, bytes]  # digest -> bytes


@dataclass(frozen=True)
class Published:
    """What publishing did."""

    key: str  # where the version lies: what `spec.benchmark.source` names after the bucket
    digest: str  # of index.json: what `spec.benchmark.digest` pins
    index: Index
    created: bool  # False: the very same version was there already


def build_index(suite: Suite) -> Built:
    """Index and bundles. Equal files give equal digests, on every machine."""
    bundles: dict[str, bytes] = {}
    tasks = []
    for task in suite.tasks:
        public, private = pack(task.public), pack(task.private)
        digests = sha256_digest(public), sha256_digest(private)
        bundles |= dict(zip(digests, (public, private), strict=True))
        tasks.append(index_task(task, _task_digest(task, *digests), *digests))
    config = suite.config
    return Built(Index(name=config.name, version=config.version, description=config.description, tasks=tasks), bundles)


def bundle_key(prefix: str, digest: str) -> str:
    """Key of a bundle of the version at `prefix`."""
    return join(prefix, "bundles", f"{digest.removeprefix('sha256:')}.tar.zst")


def location(suite: Suite, prefix: str) -> str:
    """`<prefix>/<name>/<version>`; a prefix that already ends so is taken as it is."""
    own = join(suite.config.name, suite.config.version)
    return join(prefix) if f"/{join(prefix)}".endswith(f"/{own}") else join(prefix, own)


def publish(suite: Suite, store: ObjectStore, prefix: str) -> Published:
    """Store the suite below `prefix`; again with the same files: only what is gone is put back. BenchmarkError: other content."""
    built, key = build_index(suite), location(suite, prefix)
    data = built.index.canonical()
    created = not _published(store, join(key, INDEX_KEY), data, suite)
    for digest, bundle in built.bundles.items():
        if created or not store.exists(bundle_key(key, digest)):
            store.put_once(bundle_key(key, digest), bundle)
    if created:
        try:
            store.put_once(join(key, INDEX_KEY), data)
        except AlreadyStored:
            raise _other_content(suite) from None
    return Published(key, sha256_digest(data), built.index, created)


def read_index(store: ObjectStore, prefix: str, expected_digest: str | None = None) -> tuple[Index, str]:
    """(index, its digest) of the version at `prefix`. BenchmarkError: not there, another digest, or not an index."""
    key = join(prefix, INDEX_KEY)
    place = f"{key} in {store.describe()}"
    try:
        data = store.get(key)
    except NotFound:
        remedy = "publish it (realcli benchmark publish) or correct spec.benchmark.source"
        raise BenchmarkError([Problem(place, "", "does not exist", remedy)]) from None
    digest = sha256_digest(data)
    if expected_digest is not None and digest != expected_digest:
        remedy = "correct spec.benchmark.digest or source"
        raise BenchmarkError([Problem(place, "", f"has the digest {digest}, expected {expected_digest}", remedy)])
    try:
        return Index.model_validate_json(data), digest
    except ValidationError as error:
        raise BenchmarkError([Problem(place, "", f"is no benchmark index: {error}", "publish the benchmark again")]) from error


def fetch_bundle(store: ObjectStore, prefix: str, digest: str, dest: Path) -> None:
    """Unpack a bundle of the version at `prefix` into `dest` (created, must be empty). BenchmarkError: not there or damaged."""
    data = _bundle(store, prefix, digest)
    try:
        unpack(data, dest)
    except ValueError as error:
        raise _damaged(prefix, digest, error) from error


def read_bundle(store: ObjectStore, prefix: str, digest: str) -> list[File]:
    """The files of a bundle of the version at `prefix`. BenchmarkError: not there or damaged."""
    data = _bundle(store, prefix, digest)
    try:
        return unpacked(data)
    except ValueError as error:
        raise _damaged(prefix, digest, error) from error


def _bundle(store: ObjectStore, prefix: str, digest: str) -> bytes:
    key = bundle_key(prefix, digest)
    try:
        data = store.get(key)
    except NotFound:
        raise BenchmarkError([Problem(key, "", f"does not exist in {store.describe()}", "publish the benchmark again")]) from None
    if sha256_digest(data) != digest:
        raise BenchmarkError([Problem(key, "", f"has the digest {sha256_digest(data)}", "the object was changed: restore it")])
    return data


def _damaged(prefix: str, digest: str, error: ValueError) -> BenchmarkError:
    return BenchmarkError([Problem(bundle_key(prefix, digest), "", str(error), "publish the benchmark again")])


def _task_digest(task: Task, public: str, private: str) -> str:
    return sha256_digest(canonical_json({"public": public, "private": private, "image": task.config.environment.docker_image}))


def _published(store: ObjectStore, key: str, data: bytes, suite: Suite) -> bool:
    try:
        present = store.get(key)
    except NotFound:
        return False
    if present != data:
        raise _other_content(suite)
    return True


def _other_content(suite: Suite) -> BenchmarkError:
    what = f"version {suite.config.version} is already published with other content"
    return BenchmarkError([Problem("benchmark.toml", "version", what, "raise version in benchmark.toml")])
