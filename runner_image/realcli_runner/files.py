"""Single files in and out."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from typing import Any

from realcli.wire.protocol import CHUNK, ErrorCode
from realcli_runner.errors import Failure, failure_of, printable
from realcli_runner.walking import CREATE, READ, Parts, absolute_parts, directory


def get(path: bytes, limit: int, write: Callable[[bytes], None]) -> dict[str, Any]:
    """Write a regular file's bytes, at most `limit`; its length is decided by reading, so files of /proc work too."""
    parts = _file_parts(path)
    where = printable(path)
    with directory(parts[:-1]) as parent:
        try:
            kind = os.stat(parts[-1], dir_fd=parent, follow_symlinks=False).st_mode
            if not stat.S_ISREG(kind):
                raise Failure(ErrorCode.NOT_REGULAR, f"{where} is not a regular file")
            fd = os.open(parts[-1], READ, dir_fd=parent)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                raise Failure(ErrorCode.NOT_REGULAR, f"{where} is not a regular file") from None
            raise failure_of(error, where) from None
    try:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode):
            raise Failure(ErrorCode.NOT_REGULAR, f"{where} is not a regular file")
        total = facts.st_size
        if total <= limit:
            total = 0
            while chunk := os.read(fd, min(CHUNK, limit + 1 - total)):
                total += len(chunk)
                if total > limit:
                    break
                write(chunk)
        if total > limit:
            raise Failure(ErrorCode.FILE_TOO_LARGE, f"{where} has more than {limit} bytes", limit=limit, size=facts.st_size)
    except OSError as error:
        raise failure_of(error, where) from None
    finally:
        os.close(fd)
    return {"size": total}


def put(
    path: bytes, read: Callable[[], bytes], *, mode: int | None, uid: int | None, gid: int | None, parents: bool
) -> dict[str, Any]:
    """Replace a file in one step by what `read` gives until b"". Facts not given are those of the replaced file."""
    parts = _file_parts(path)
    where = printable(path)
    with directory(parts[:-1], make=parents) as parent:
        try:
            old = _existing(parent, parts[-1], where)
            temporary = b".realcli-%016x" % int.from_bytes(os.urandom(8), "big")
            fd = os.open(temporary, CREATE, 0o600, dir_fd=parent)
            try:
                total = _fill(fd, read)
                new_uid = uid if uid is not None else old.st_uid if old else -1
                new_gid = gid if gid is not None else old.st_gid if old else -1
                os.fchown(fd, new_uid, new_gid)
                os.fchmod(fd, mode if mode is not None else stat.S_IMODE(old.st_mode) if old else 0o644)
                try:
                    os.rename(temporary, parts[-1], src_dir_fd=parent, dst_dir_fd=parent)
                except OSError as error:
                    if error.errno != errno.EBUSY:
                        raise
                    _overwrite(parent, parts[-1], temporary)  # a file that is a mount (`/etc/hosts`) cannot be replaced
            except BaseException:
                os.unlink(temporary, dir_fd=parent)
                raise
            finally:
                os.close(fd)
        except OSError as error:
            raise failure_of(error, where) from None
    return {"size": total}


def _overwrite(parent: int, name: bytes, by: bytes) -> None:
    """Put the content of one file into another, and remove the one."""
    source = os.open(by, READ, dir_fd=parent)
    try:
        target = os.open(name, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            _fill(target, lambda: os.read(source, CHUNK))
        finally:
            os.close(target)
    finally:
        os.close(source)
    os.unlink(by, dir_fd=parent)


def _file_parts(path: bytes) -> Parts:
    parts = absolute_parts(path)
    if not parts or path.endswith(b"/"):
        raise Failure(ErrorCode.NOT_REGULAR, f"{printable(path)} names a directory")
    return parts


def _existing(parent: int, name: bytes, where: str) -> os.stat_result | None:
    try:
        old = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(old.st_mode):
        raise Failure(ErrorCode.PATH_REFUSED, f"{where} is a symbolic link: name the real path")
    if not stat.S_ISREG(old.st_mode):
        raise Failure(ErrorCode.NOT_REGULAR, f"{where} exists and is not a regular file")
    return old


def _fill(fd: int, read: Callable[[], bytes]) -> int:
    total = 0
    while chunk := read():
        total += len(chunk)
        while chunk:
            chunk = chunk[os.write(fd, chunk) :]
    return total
