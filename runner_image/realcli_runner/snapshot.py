"""Walks declared paths and writes them as one archive, while the agent may still be about."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Sequence
from typing import Any

from realcli.wire import archive
from realcli.wire.archive import Member, MemberKind
from realcli.wire.body import wire_bytes
from realcli.wire.protocol import CHUNK, ErrorCode
from realcli_runner.errors import Failure, printable
from realcli_runner.walking import MAX_DEPTH, READ, Parts, Territory, absolute_parts, directory, join, kind_of, names, step

Xattrs = tuple[tuple[bytes, bytes], ...]
REPORTED = 1000
MAX_LINKS = 200_000
"""Hard-linked inodes remembered; further names become copies."""


class Snapshot:
    """One run. Names in the archive are relative to `/`, sorted; a hard link is a link to the first name met."""

    def __init__(
        self, write: Callable[[bytes], None], territory: Territory, *, max_bytes: int, max_entries: int, exclude: Sequence[bytes]
    ) -> None:
        self._write = write
        self._territory = territory
        self._max_bytes = max_bytes
        self._max_entries = max_entries
        self._exclude = frozenset(absolute_parts(path) for path in exclude)
        self._links: dict[tuple[int, int], bytes] = {}
        self._entries = 0
        self._depth = 0
        self._bytes = 0
        self._missing: list[Any] = []
        self._skipped: list[Any] = []
        self._skipped_count = 0
        self._changed: list[Any] = []

    def take(self, paths: Sequence[bytes]) -> dict[str, Any]:
        """Write everything, then the end mark; returns the report."""
        done: list[Parts] = []
        for parts in sorted({absolute_parts(path) for path in paths}):
            if any(parts[: len(earlier)] == earlier for earlier in done):
                continue
            done.append(parts)
            self._path(parts)
        self._write(archive.END)
        return {
            "entries": self._entries,
            "bytes": self._bytes,
            "missing": self._missing,
            "skipped": self._skipped,
            "skipped_count": self._skipped_count,
            "changed": self._changed,
        }

    def _path(self, parts: Parts) -> None:
        if not parts:
            with directory(()) as root:
                self._children(root, parts)
            return
        try:
            with directory(parts[:-1]) as parent:
                self._entry(parent, parts)
        except Failure as failure:
            if failure.code is ErrorCode.NOT_FOUND:
                self._missing.append(wire_bytes(join(parts)))
            elif failure.code is ErrorCode.PATH_REFUSED:
                self._skip(parts, str(failure))
            else:
                raise

    def _entry(self, parent: int, parts: Parts) -> None:
        name = parts[-1]
        if parts in self._exclude:
            return
        if self._territory.holds(parts):
            self._skip(parts, "the runner's own")
            return
        try:
            facts = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            if not self._depth:
                self._missing.append(wire_bytes(join(parts)))
            return
        kind = kind_of(facts.st_mode)
        if facts.st_dev in self._territory.pseudo_devices:
            self._skip(parts, "a kernel file system")
        elif kind == "file":
            self._file(parent, parts, facts)
        elif kind == "dir":
            self._directory(parent, parts, facts)
        elif kind == "symlink":
            self._symlink(parent, parts, facts)
        else:
            self._skip(parts, {"fifo": "a FIFO", "socket": "a socket"}.get(kind, "a device"))

    def _directory(self, parent: int, parts: Parts, facts: os.stat_result) -> None:
        if len(parts) > MAX_DEPTH:
            raise self._too_large("depth", parts, len(parts), MAX_DEPTH)
        try:
            fd = step(parent, parts[-1], parts[:-1])
        except Failure as failure:  # replaced meanwhile
            self._skip(parts, str(failure))
            return
        try:
            self._directory_itself(fd, parts, facts)
            self._children(fd, parts)
        finally:
            os.close(fd)

    def _directory_itself(self, fd: int, parts: Parts, facts: os.stat_result) -> None:
        self._member(parts, describe(parts, "dir", facts))

    def _xattrs(self, fd: int, parts: Parts) -> Xattrs:
        """Extended attributes to keep: none, as the declared artefacts of a task are contents."""
        return ()

    def _children(self, fd: int, parts: Parts) -> None:
        try:
            found = names(fd, self._room())
        except PermissionError:
            self._skip(parts, "permission denied: its content is not in the archive")
            return
        if found is None:
            raise self._too_large("entries", parts, self._max_entries + 1, self._max_entries)
        self._depth += 1
        for name in found:
            self._entry(fd, (*parts, name))
        self._depth -= 1

    def _room(self) -> int:
        """Names that one directory may hold."""
        return self._max_entries - self._entries

    def _symlink(self, parent: int, parts: Parts, facts: os.stat_result) -> None:
        try:
            target = os.readlink(parts[-1], dir_fd=parent)
        except OSError as error:
            self._skip(parts, os.strerror(error.errno or 0))
            return
        self._member(parts, describe(parts, "symlink", facts, link=target))

    def _file(self, parent: int, parts: Parts, facts: os.stat_result) -> None:
        if self._bytes + facts.st_size > self._max_bytes:  # before opening: a sparse terabyte costs nothing
            raise self._too_large("bytes", parts, self._bytes + facts.st_size, self._max_bytes)
        try:
            fd = os.open(parts[-1], READ, dir_fd=parent)
        except OSError as error:
            vanished = error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO)
            self._skip(parts, "replaced while it was read" if vanished else os.strerror(error.errno or 0))
            return
        try:
            facts = os.fstat(fd)
            if not stat.S_ISREG(facts.st_mode):
                self._skip(parts, "replaced while it was read")
                return
            inode = (facts.st_dev, facts.st_ino)
            if first := self._links.get(inode):
                self._member(parts, describe(parts, "hardlink", facts, link=first))
                return
            if self._bytes + facts.st_size > self._max_bytes:
                raise self._too_large("bytes", parts, self._bytes + facts.st_size, self._max_bytes)
            self._member(parts, describe(parts, "file", facts, size=facts.st_size, xattrs=self._xattrs(fd, parts)))
            if facts.st_nlink > 1 and len(self._links) < MAX_LINKS:
                self._links[inode] = b"/".join(parts)
            self._bytes += facts.st_size
            self._content(fd, parts, facts.st_size)
        finally:
            os.close(fd)

    def _content(self, fd: int, parts: Parts, size: int) -> None:
        """Exactly `size` bytes, as announced: a file that shrank is filled up with zeros, one that grew is cut."""
        left = size
        while left:
            try:
                chunk = os.read(fd, min(left, CHUNK))
            except OSError as error:
                raise Failure(
                    ErrorCode.IO, f"{printable(join(parts))}: {os.strerror(error.errno or 0)}", errno=error.errno
                ) from None
            if not chunk:
                break
            self._write(chunk)
            left -= len(chunk)
        if left or os.fstat(fd).st_size != size:
            if len(self._changed) < REPORTED:
                self._changed.append(wire_bytes(join(parts)))
            while left:
                self._write(bytes(min(left, CHUNK)))
                left -= min(left, CHUNK)
        self._write(archive.padding(size))

    def _member(self, parts: Parts, member: Member) -> None:
        if len(parts) > MAX_DEPTH:  # such a name would not be put back
            raise self._too_large("depth", parts, len(parts), MAX_DEPTH)
        if self._entries >= self._max_entries:
            raise self._too_large("entries", parts, self._entries + 1, self._max_entries)
        self._entries += 1
        self._write(archive.header(member))

    def _special(self, parts: Parts, kind: MemberKind, facts: os.stat_result) -> None:
        self._member(parts, describe(parts, kind, facts))

    def _skip(self, parts: Parts, why: str) -> None:
        self._skipped_count += 1
        if len(self._skipped) < REPORTED:
            self._skipped.append([wire_bytes(join(parts)[:1000]), why[:200]])

    def _too_large(self, limit: str, parts: Parts, found: int, allowed: int) -> Failure:
        path = printable(join(parts)[-1000:])
        message = f"{path}: the state has at least {found} {limit}, at most {allowed} are allowed"
        return Failure(ErrorCode.STATE_TOO_LARGE, message, limit=limit, path=path, found=found, allowed=allowed)


def describe(
    parts: Parts, kind: MemberKind, facts: os.stat_result, *, size: int = 0, link: bytes = b"", xattrs: Xattrs = ()
) -> Member:
    """The member of an entry, as lstat saw it."""
    return Member(
        name=b"/".join(parts),
        kind=kind,
        size=size,
        mode=stat.S_IMODE(facts.st_mode),
        uid=min(facts.st_uid, archive.MAX_ID),
        gid=min(facts.st_gid, archive.MAX_ID),
        mtime_ns=facts.st_mtime_ns,
        link=link,
        xattrs=xattrs,
    )
