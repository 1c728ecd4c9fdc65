"""The difference between the root and a manifest of it, as an archive: what changed or came, and what is gone.

Both sides are read in the same order, side by side, so memory does not grow with the root.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from typing import Any, Final

from realcli.wire.archive import MAX_XATTRS, Member
from realcli_runner.manifest import MAX_NAMES, Base, facts_of
from realcli_runner.snapshot import Snapshot, Xattrs, describe
from realcli_runner.walking import Parts, Territory, directory, kind_of

KEPT_XATTRS: Final = (b"user.", b"security.capability")


class Delta(Snapshot):
    """One run over the whole root. Sockets and FIFOs are kept, devices skipped: nobody in a pod can make one."""

    def __init__(
        self,
        write: Callable[[bytes], None],
        territory: Territory,
        base: Base,
        *,
        max_bytes: int,
        max_entries: int,
        exclude: Sequence[bytes] = (),
    ) -> None:
        super().__init__(write, territory, max_bytes=max_bytes, max_entries=max_entries, exclude=exclude)
        self._base = base
        self._gone: Parts | None = None
        """Nothing of the base below this path can be there any more."""
        self._deleted = 0
        self._changed_here = False

    def take_all(self) -> dict[str, Any]:
        """Walk the root, name what is gone, write the end mark; the report."""
        with directory(()) as root:
            self._children(root, ())
        self._drop_until(None)
        return self.take(()) | {"deleted": self._deleted}

    def _room(self) -> int:
        return MAX_NAMES

    def _entry(self, parent: int, parts: Parts) -> None:
        if self._territory.holds(parts) or parts in self._territory.files or parts in self._exclude:
            return
        try:
            facts = os.stat(parts[-1], dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return
        if facts.st_dev in self._territory.pseudo_devices:
            return
        self._drop_until(parts)
        known = None
        if self._base.next is not None and self._base.next[0] == parts:
            known = self._base.pop()
        changed = known is None or known[1] != facts_of(facts)
        kind = kind_of(facts.st_mode)
        if kind == "dir":
            self._changed_here = changed
            self._directory(parent, parts, facts)
            return
        self._gone = parts  # what the base has below it went when it became something else than a directory
        if not changed:
            return
        if kind == "file":
            self._file(parent, parts, facts)
        elif kind == "symlink":
            self._symlink(parent, parts, facts)
        elif kind == "fifo":
            self._special(parts, "fifo", facts)
        elif kind == "socket":
            self._special(parts, "socket", facts)
        else:
            self._skip(parts, "a device")

    def _directory_itself(self, fd: int, parts: Parts, facts: os.stat_result) -> None:
        if self._changed_here:
            self._member(parts, describe(parts, "dir", facts, xattrs=self._xattrs(fd, parts)))

    def _drop_until(self, parts: Parts | None) -> None:
        """Name what the base has before this path and the walk has not met."""
        while self._base.next is not None and (parts is None or self._base.next[0] < parts):
            row = self._base.pop()
            assert row is not None
            path = row[0]
            if self._gone is not None and path[: len(self._gone)] == self._gone:
                continue
            if self._territory.holds(path) or path in self._territory.files:
                continue
            if any(path[: len(left_out)] == left_out for left_out in self._exclude):
                continue
            self._gone = path
            self._deleted += 1
            self._member(path, Member(b"/".join(path), "deleted"))

    def _xattrs(self, fd: int, parts: Parts) -> Xattrs:
        """By descriptor; a directory's is a traverse descriptor, which has them only by its name in /proc."""
        place = f"/proc/self/fd/{fd}"
        found = []
        room = MAX_XATTRS
        try:
            for name in sorted(map(os.fsencode, os.listxattr(place))):
                if name.startswith(KEPT_XATTRS):
                    value = os.getxattr(place, name)
                    room -= len(name) + len(value)
                    if room < 0:
                        self._skip(parts, "more extended attributes than are kept")
                        break
                    found.append((name, value))
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.ENODATA):
                raise
        return tuple(found)
