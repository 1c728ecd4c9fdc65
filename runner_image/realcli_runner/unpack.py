"""Puts an archive into the file system. The archive is hostile: it holds what the agent left behind.

Every member is reached from the root descriptor component by component without following a link; what is in its way is
removed, never written through. Hard links may only point at files this archive brought. Directory facts are set last.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from typing import Any

from realcli.wire.archive import ArchiveError, ArchiveReader, Member
from realcli.wire.body import wire_bytes
from realcli.wire.protocol import ErrorCode
from realcli_runner.errors import Failure, failure_of, printable
from realcli_runner.walking import CREATE, Parts, Territory, absolute_parts, directory, join, relative_parts, remove

REPORTED = 1000
_ZEROS = bytes(64 * 1024)


class Unpack:
    """One run: `feed` until the archive ends, then `finish`. `close` in any case."""

    def __init__(self, root: bytes, territory: Territory, *, max_bytes: int, max_entries: int, delta: bool) -> None:
        self._territory = territory
        self._delta = delta
        self._max_bytes = max_bytes
        self._max_entries = max_entries
        self._reader = ArchiveReader()
        self._prefix = absolute_parts(root)
        with directory(self._prefix, make=True, foreign=territory.pseudo_devices) as fd:
            self._root = os.dup(fd)
        self._parent: tuple[Parts, int] | None = None
        self._file: tuple[int, Member, int] | None = None
        self._brought: set[tuple[int, int]] = set()
        self._directories: list[tuple[Parts, Member]] = []
        self._times: dict[Parts, tuple[int, int]] = {}
        """Of directories that got new entries without being members: a delta leaves them as they were."""
        self._entries = 0
        self._bytes = 0
        self._deleted = 0
        self._unset: list[Any] = []

    def clear(self, paths: Sequence[bytes]) -> None:
        """Remove paths (relative to `/`, as in the snapshot request, but below the root) before anything is put."""
        for path in paths:
            parts = absolute_parts(path)
            if not parts or self._territory.touches(self._prefix + parts):
                raise Failure(ErrorCode.PATH_REFUSED, f"{printable(path)}: must not be cleared")
            try:
                with directory(parts[:-1], root=self._root, foreign=self._territory.pseudo_devices) as parent:
                    remove(parent, parts[-1], self._territory.pseudo_devices)
            except Failure as failure:
                if failure.code is not ErrorCode.NOT_FOUND:
                    raise
            except OSError as error:
                raise failure_of(error, f"clearing {printable(path)}") from None

    def feed(self, data: bytes) -> None:
        """The next bytes of the archive."""
        try:
            for item in self._reader.feed(data):
                if isinstance(item, bytes):
                    self._content(item)
                else:
                    self._member(item)
        except ArchiveError as error:
            raise Failure(ErrorCode.BAD_ARCHIVE, str(error)) from None

    def finish(self) -> dict[str, Any]:
        """Check that the archive is whole, set the facts of directories, return the report."""
        try:
            self._reader.finish()
        except ArchiveError as error:
            raise Failure(ErrorCode.BAD_ARCHIVE, str(error)) from None
        for place, times in self._times.items():
            self._keep_times(place, times)
        for parts, member in reversed(self._directories):
            try:
                with directory(parts, root=self._root) as fd:
                    os.chown(b".", member.uid, member.gid, dir_fd=fd)
                    os.chmod(b".", member.mode, dir_fd=fd)
                    self._set_xattrs(fd, parts, member)
                    os.utime(b".", ns=(member.mtime_ns, member.mtime_ns), dir_fd=fd)
            except Failure as failure:
                if failure.code not in (ErrorCode.PATH_REFUSED, ErrorCode.NOT_FOUND):  # replaced by a later member
                    raise
            except OSError as error:
                raise failure_of(error, printable(join(parts))) from None
        return {"entries": self._entries, "bytes": self._bytes, "deleted": self._deleted, "unset": self._unset}

    def _keep_times(self, parts: Parts, times: tuple[int, int]) -> None:
        try:
            with directory(parts, root=self._root) as fd:
                os.utime(b".", ns=times, dir_fd=fd)
        except Failure as failure:
            if failure.code not in (ErrorCode.PATH_REFUSED, ErrorCode.NOT_FOUND):
                raise
        except OSError as error:
            raise failure_of(error, printable(join(parts))) from None

    def close(self) -> None:
        """Give the descriptors back."""
        if self._file is not None:
            os.close(self._file[0])
            self._file = None
        if self._parent is not None:
            os.close(self._parent[1])
            self._parent = None
        if self._root >= 0:
            os.close(self._root)
            self._root = -1

    def _member(self, member: Member) -> None:
        parts = relative_parts(member.name)
        self._count(member, parts)
        if self._territory.holds(self._prefix + parts):
            raise Failure(ErrorCode.PATH_REFUSED, f"{printable(member.name)}: is the runner's own")
        if not parts:
            if member.kind != "dir":
                raise Failure(ErrorCode.PATH_REFUSED, "the root of the archive must be a directory")
            self._directories.append((parts, member))
            return
        try:
            parent = self._parent_of(parts)
            name = parts[-1]
            if member.kind == "dir":
                self._put_directory(parent, name, parts, member)
                return
            self._make_way(parent, name, parts)
            if member.kind == "file":
                fd = os.open(name, CREATE, 0o600, dir_fd=parent)
                self._file = (fd, member, 0)
                if member.size == 0:
                    self._end_file()
            elif member.kind == "symlink":
                os.symlink(member.link, name, dir_fd=parent)
                os.chown(name, member.uid, member.gid, dir_fd=parent, follow_symlinks=False)
                os.utime(name, ns=(member.mtime_ns, member.mtime_ns), dir_fd=parent, follow_symlinks=False)
            elif member.kind == "hardlink":
                self._put_hardlink(parent, name, member)
            elif self._delta and member.kind in ("fifo", "socket"):
                self._put_special(parent, name, member)
            elif self._delta and member.kind == "deleted":
                self._deleted += 1
            else:
                raise Failure(ErrorCode.BAD_ARCHIVE, f"{printable(member.name)}: devices and FIFOs are not allowed")
        except OSError as error:
            raise failure_of(error, printable(member.name)) from None

    def _count(self, member: Member, parts: Parts) -> None:
        self._entries += 1
        self._bytes += member.size
        for limit, found, allowed in (("entries", self._entries, self._max_entries), ("bytes", self._bytes, self._max_bytes)):
            if found > allowed:
                path = printable(join(parts)[-1000:])
                message = f"{path}: the archive has at least {found} {limit}, at most {allowed} are allowed"
                raise Failure(ErrorCode.STATE_TOO_LARGE, message, limit=limit, path=path, found=found, allowed=allowed)

    def _parent_of(self, parts: Parts) -> int:
        wanted = parts[:-1]
        if self._parent is not None:
            if self._parent[0] == wanted:
                return self._parent[1]
            os.close(self._parent[1])
            self._parent = None
        with directory(wanted, make=True, root=self._root, foreign=self._territory.pseudo_devices) as fd:
            self._parent = (wanted, os.dup(fd))
            if self._delta and wanted not in self._times:
                facts = os.fstat(fd)
                self._times[wanted] = (facts.st_atime_ns, facts.st_mtime_ns)
        return self._parent[1]

    def _make_way(self, parent: int, name: bytes, parts: Parts) -> None:
        if self._territory.touches(self._prefix + parts):
            raise Failure(ErrorCode.PATH_REFUSED, f"{printable(join(parts))}: holds the runner's own directories")
        remove(parent, name, self._territory.pseudo_devices)

    def _put_directory(self, parent: int, name: bytes, parts: Parts, member: Member) -> None:
        try:
            is_directory = stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
        except FileNotFoundError:
            is_directory = False
        if not is_directory:
            self._make_way(parent, name, parts)
            os.mkdir(name, 0o700, dir_fd=parent)
        self._directories.append((parts, member))

    def _put_hardlink(self, parent: int, name: bytes, member: Member) -> None:
        target = relative_parts(member.link)
        with directory(target[:-1], root=self._root) as source:
            facts = os.stat(target[-1], dir_fd=source, follow_symlinks=False) if target else None
            if facts is None or (facts.st_dev, facts.st_ino) not in self._brought:
                message = f"{printable(member.name)}: a hard link to {printable(member.link)}, which this archive did not bring"
                raise Failure(ErrorCode.PATH_REFUSED, message)
            os.link(target[-1], name, src_dir_fd=source, dst_dir_fd=parent, follow_symlinks=False)

    def _put_special(self, parent: int, name: bytes, member: Member) -> None:
        kind = stat.S_IFIFO if member.kind == "fifo" else stat.S_IFSOCK
        os.mknod(name, kind | 0o600, dir_fd=parent)
        os.chown(name, member.uid, member.gid, dir_fd=parent, follow_symlinks=False)
        os.chmod(name, member.mode, dir_fd=parent)  # ours, made a moment ago
        os.utime(name, ns=(member.mtime_ns, member.mtime_ns), dir_fd=parent, follow_symlinks=False)

    def _set_xattrs(self, fd: int, parts: Parts, member: Member) -> None:
        """What a pod may not set (file capabilities need SETFCAP) is listed, not an error."""
        for key, value in member.xattrs:
            try:
                os.setxattr(f"/proc/self/fd/{fd}", key, value)
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.ENOTSUP):
                    raise
                if len(self._unset) < REPORTED:
                    self._unset.append([wire_bytes(join(parts)), wire_bytes(key)])

    def _content(self, data: bytes) -> None:
        assert self._file is not None  # the reader yields content after a file alone
        fd, member, written = self._file
        try:
            for start in range(0, len(data), len(_ZEROS)):
                piece = data[start : start + len(_ZEROS)]
                if piece == _ZEROS[: len(piece)]:
                    os.lseek(fd, len(piece), os.SEEK_CUR)  # a hole stays a hole
                    continue
                while piece:
                    piece = piece[os.write(fd, piece) :]
            self._file = (fd, member, written + len(data))
            if written + len(data) == member.size:
                self._end_file()
        except OSError as error:
            raise failure_of(error, printable(member.name)) from None

    def _end_file(self) -> None:
        assert self._file is not None
        fd, member, _ = self._file
        os.ftruncate(fd, member.size)
        os.fchown(fd, member.uid, member.gid)
        os.fchmod(fd, member.mode)  # after the owner: changing it clears setuid
        self._set_xattrs(fd, relative_parts(member.name), member)
        os.utime(fd, ns=(member.mtime_ns, member.mtime_ns))
        facts = os.fstat(fd)
        self._brought.add((facts.st_dev, facts.st_ino))
        self._file = None
        os.close(fd)
