"""Archives on their way from the runner to a file: compressed, counted and hashed in one pass."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import NamedTuple

import zstandard

from realcli.ledger.reserve import SpoolError
from realcli_session.runner.port import RunnerPort, SnapshotReport

_LEVEL = 3
_CHUNK = 256 << 10


class Archive(NamedTuple):
    """A tar.zst on disk."""

    path: Path
    sha256: str
    size: int  # bytes, compressed
    report: SnapshotReport


class _Sink:
    """A ByteSink that compresses into a file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._file = path.open("wb", buffering=0)
        self._zstd = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compressobj()
        self._hash = hashlib.sha256()
        self.size = 0

    async def write(self, data: bytes, /) -> None:
        self._put(self._zstd.compress(data))

    def close(self) -> str:
        """The sha256 of what was written, as hex."""
        self._put(self._zstd.flush())
        self._file.close()
        return self._hash.hexdigest()

    def abandon(self) -> None:
        """Half an archive is none."""
        self._file.close()
        self._path.unlink(missing_ok=True)

    def _put(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise SpoolError(f"the disk of {self._path} refuses what the session writes: {error}") from error
        self._hash.update(data)
        self.size += len(data)


async def archive(
    runner: RunnerPort, paths: Sequence[str], path: Path, *, max_bytes: int, max_entries: int, exclude: Sequence[str] = ()
) -> Archive:
    """Snapshot `paths` of the container into the tar.zst `path`, without what lies below `exclude`.

    Raises StateTooLarge, what else a runner raises, and SpoolError where the disk takes no more.
    """
    sink = _Sink(path)
    try:
        report = await runner.snapshot(paths, sink, max_bytes=max_bytes, max_entries=max_entries, exclude=exclude)
        digest = sink.close()
    except BaseException:
        sink.abandon()
        raise
    return Archive(path, digest, sink.size, report)


async def baseline(runner: RunnerPort, path: Path) -> int:
    """Write a manifest of the container's whole root into `path` (zstd), for `archive_delta`; how many entries."""
    sink = _Sink(path)
    try:
        entries = await runner.manifest(sink)
        sink.close()
    except BaseException:
        sink.abandon()
        raise
    return entries


async def archive_delta(
    runner: RunnerPort, base: Path, path: Path, *, max_bytes: int, max_entries: int, exclude: Sequence[str] = ()
) -> Archive:
    """What became of the root since `baseline`, without `exclude`, as the tar.zst `path`.

    Raises StateTooLarge and what else a runner raises.
    """
    sink = _Sink(path)
    try:
        report = await runner.delta(unarchive(base), sink, max_bytes=max_bytes, max_entries=max_entries, exclude=exclude)
        digest = sink.close()
    except BaseException:
        sink.abandon()
        raise
    return Archive(path, digest, sink.size, report)


async def unarchive(path: Path) -> AsyncIterator[bytes]:
    """The uncompressed tar of a tar.zst, in chunks."""
    with path.open("rb") as file:
        for chunk in zstandard.ZstdDecompressor().read_to_iter(file, read_size=_CHUNK, write_size=_CHUNK):
            yield chunk
