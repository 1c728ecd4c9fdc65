"""Ways through a file system that somebody hostile has arranged: by directory descriptor, never through a symbolic link.

Names are bytes, paths are absolute, `..` is refused. A descriptor stays on the directory it was opened on, whatever is renamed
meanwhile.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from realcli.wire.protocol import ErrorCode
from realcli_runner.errors import Failure, failure_of, printable

TRAVERSE = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
MAX_DEPTH = 200

Parts = tuple[bytes, ...]


def absolute_parts(path: bytes) -> Parts:
    """Components of an absolute path; `/` has none."""
    if not path.startswith(b"/"):
        raise Failure(ErrorCode.PATH_REFUSED, f"{printable(path)}: expected an absolute path")
    return _parts(path)


def relative_parts(name: bytes) -> Parts:
    """Components of an archive member's name; `.` has none."""
    if name.startswith(b"/") or not name:
        raise Failure(ErrorCode.PATH_REFUSED, f"{printable(name) or '(empty name)'}: expected a relative path")
    return _parts(name)


def _parts(path: bytes) -> Parts:
    parts = tuple(part for part in path.split(b"/") if part not in (b"", b"."))
    if b".." in parts:
        raise Failure(ErrorCode.PATH_REFUSED, f"{printable(path)}: '..' is not allowed")
    if len(parts) > MAX_DEPTH:
        raise Failure(ErrorCode.PATH_REFUSED, f"{printable(path[:200])}…: deeper than {MAX_DEPTH} directories")
    return parts


def join(parts: Sequence[bytes]) -> bytes:
    """The absolute path of components."""
    return b"/" + b"/".join(parts)


@dataclass(frozen=True)
class Territory:
    """What is not the image's: the runner's own directories and the kernel's pseudo file systems."""

    own: tuple[Parts, ...]
    pseudo_devices: frozenset[int]
    files: frozenset[Parts] = frozenset()
    """Single files that are mounts (`/etc/hosts`): the pod's, and another pod has its own."""

    @classmethod
    def of(cls, own: Sequence[bytes]) -> Territory:
        """`own` are absolute directories; /proc, /sys and /dev count where they are mounts of their own."""
        root_device = os.stat("/").st_dev
        devices = set()
        for path in ("/proc", "/sys", "/dev"):
            try:
                device = os.lstat(path).st_dev
            except OSError:
                continue
            if device != root_device:
                devices.add(device)
        return cls(tuple(absolute_parts(path) for path in own), frozenset(devices), frozenset(_mounted_files()))

    def holds(self, parts: Parts) -> bool:
        """The path is one of ours or below it."""
        return any(parts[: len(own)] == own for own in self.own)

    def touches(self, parts: Parts) -> bool:
        """The path is one of ours, below it, or above it: removing it would remove ours."""
        return self.holds(parts) or any(own[: len(parts)] == parts for own in self.own)


def _mounted_files() -> Iterator[Parts]:
    with open("/proc/self/mountinfo", "rb") as table:
        for line in table:
            place = re.sub(rb"\\([0-7]{3})", lambda code: bytes([int(code[1], 8)]), line.split(b" ")[4])
            try:
                if not stat.S_ISDIR(os.lstat(place).st_mode):
                    yield absolute_parts(place)
            except OSError:
                continue  # out of this root's sight


def step(parent: int, name: bytes, so_far: Sequence[bytes]) -> int:
    """Descriptor of a child directory. Failure says what is in the way."""
    try:
        return os.open(name, TRAVERSE, dir_fd=parent)
    except OSError as error:
        where = printable(join((*so_far, name)))
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            what = "a symbolic link" if _is_link(parent, name) else "not a directory"
            raise Failure(ErrorCode.PATH_REFUSED, f"{where} is {what}: name the real path") from None
        raise failure_of(error, where) from None


def _is_link(parent: int, name: bytes) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except OSError:
        return False


def step_or_make(parent: int, name: bytes, so_far: Sequence[bytes]) -> int:
    """As `step`, making the directory (0755) if there is nothing."""
    try:
        os.mkdir(name, 0o755, dir_fd=parent)
    except FileExistsError:
        return step(parent, name, so_far)
    except OSError as error:
        raise failure_of(error, printable(join((*so_far, name)))) from None
    fd = step(parent, name, so_far)
    os.chmod(b".", 0o755, dir_fd=fd)  # whatever the umask is
    return fd


@contextmanager
def directory(
    parts: Parts, *, make: bool = False, root: int | None = None, foreign: frozenset[int] = frozenset()
) -> Iterator[int]:
    """Descriptor of a directory below `/` (or `root`), opened component by component.

    Failure as soon as the way leads onto one of the `foreign` devices.
    """
    go = step_or_make if make else step
    fd = os.open("/", TRAVERSE) if root is None else os.dup(root)
    try:
        for depth, name in enumerate(parts):
            child = go(fd, name, parts[:depth])
            os.close(fd)
            fd = child
            if foreign and os.fstat(fd).st_dev in foreign:
                where = printable(join(parts[: depth + 1]))
                raise Failure(ErrorCode.PATH_REFUSED, f"{where} lies in a kernel file system")
        yield fd
    finally:
        os.close(fd)


def names(directory_fd: int, limit: int) -> list[bytes] | None:
    """Sorted names of a directory (a traverse descriptor will do), or None when there are more than `limit`."""
    fd = os.open(b".", LIST, dir_fd=directory_fd)
    try:
        found = []
        with os.scandir(fd) as entries:
            for entry in entries:
                found.append(os.fsencode(entry.name))
                if len(found) > limit:
                    return None
    finally:
        os.close(fd)
    return sorted(found)


def kind_of(mode: int) -> str:
    """The wire's word for a file type."""
    return {
        stat.S_IFREG: "file",
        stat.S_IFDIR: "dir",
        stat.S_IFLNK: "symlink",
        stat.S_IFIFO: "fifo",
        stat.S_IFSOCK: "socket",
        stat.S_IFCHR: "char",
        stat.S_IFBLK: "block",
    }[stat.S_IFMT(mode)]


def remove(parent: int, name: bytes, foreign: frozenset[int], depth: int = 0) -> None:
    """Remove a name and everything below it; a mount point is emptied and stays, a `foreign` device is refused."""
    try:
        os.unlink(name, dir_fd=parent)
        return
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in (errno.EISDIR, errno.EPERM, errno.EBUSY) or not _is_directory(parent, name):
            raise
    if depth > 2 * MAX_DEPTH:
        raise Failure(ErrorCode.PATH_REFUSED, f"{printable(name)}: directories nested too deep to be removed")
    fd = os.open(name, LIST, dir_fd=parent)
    try:
        if os.fstat(fd).st_dev in foreign:
            raise Failure(ErrorCode.PATH_REFUSED, f"{printable(name)}: holds a kernel file system")
        for child in os.listdir(fd):
            remove(fd, os.fsencode(child), foreign, depth + 1)
    finally:
        os.close(fd)
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise


def _is_directory(parent: int, name: bytes) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
