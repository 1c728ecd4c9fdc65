"""A local directory as object store: the same promises as S3, for runs without a cluster."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from realcli.storage.port import AlreadyStored, NotFound, ObjectInfo, StorageRefused, StorageUnavailable, check_key

PART = ".part-"
"""How the name of a file begins that is not whole yet."""


class LocalStore:
    """Objects are files below `root`. Creation is a hard link of a complete temporary file, so it is atomic and exclusive."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put_once(self, key: str, data: bytes | Path) -> None:
        """See `ObjectStore.put_once`."""
        target = self._path(key)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(prefix=PART, dir=target.parent)
            temporary = Path(name)
            try:
                with os.fdopen(descriptor, "wb") as out:
                    if isinstance(data, Path):
                        with data.open("rb") as source:
                            shutil.copyfileobj(source, out)
                    else:
                        out.write(data)
                    out.flush()
                    os.fsync(out.fileno())
                os.link(temporary, target)
            except FileExistsError:
                if not _same(temporary, target):
                    raise AlreadyStored(f"{target} holds other bytes; nothing was written") from None
            finally:
                temporary.unlink(missing_ok=True)
        except OSError as error:
            failure = self._error(error, target)
            raise StorageRefused(str(failure)) if isinstance(failure, NotFound) else failure from error

    def get(self, key: str) -> bytes:
        """See `ObjectStore.get`."""
        path = self._path(key)
        try:
            return path.read_bytes()
        except OSError as error:
            raise self._error(error, path) from error

    def download(self, key: str, path: Path) -> None:
        """See `ObjectStore.download`."""
        source = self._path(key)
        try:
            shutil.copyfile(source, path.with_name(path.name + PART))
            path.with_name(path.name + PART).replace(path)
        except OSError as error:
            raise self._error(error, source) from error

    def exists(self, key: str) -> bool:
        """See `ObjectStore.exists`."""
        return self._path(key).is_file()

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """See `ObjectStore.list`."""
        base = self._root / prefix.rpartition("/")[0]
        found = [p for p in base.rglob("*") if p.is_file() and not p.name.startswith(PART)] if base.is_dir() else []
        for key, path in sorted((p.relative_to(self._root).as_posix(), p) for p in found):
            if key.startswith(prefix):
                yield ObjectInfo(key, path.stat().st_size)

    def describe(self) -> str:
        """See `ObjectStore.describe`."""
        return f"directory {self._root}"

    def _path(self, key: str) -> Path:
        return self._root / check_key(key)

    def _error(self, error: OSError, path: Path) -> Exception:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR):
            return NotFound(f"{path} does not exist: {error.strerror}")
        if error.errno in (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.EEXIST):  # EROFS may pass: a disk in trouble
            return StorageRefused(f"{path}: {error.strerror}")
        return StorageUnavailable(f"{path}: {error.strerror}")


def _same(left: Path, right: Path) -> bool:
    if left.stat().st_size != right.stat().st_size:
        return False
    with left.open("rb") as a, right.open("rb") as b:
        while chunk := a.read(1 << 20):
            if chunk != b.read(len(chunk)):
                return False
    return True
