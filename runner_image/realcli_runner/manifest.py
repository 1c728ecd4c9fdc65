"""What the whole root looked like at one moment: a row per entry, in the order of a walk (RealCLI 2, trust `system`).

The rows go to the session, which keeps them out of the agent's reach and hands them back when the difference is asked for. An
entry counts as unchanged if all its facts are the same, among them inode and time of the last change of status, which nobody
can set; so no content has to be read.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from typing import Any, Final

from realcli.wire import body
from realcli.wire.protocol import ErrorCode
from realcli_runner.errors import Failure, printable
from realcli_runner.walking import MAX_DEPTH, Parts, Territory, directory, join, names, step

MAX_NAMES: Final = 4_000_000
MAX_LINE: Final = 64 * 1024


def facts_of(facts: os.stat_result) -> str:
    """All that tells a changed entry from an unchanged one. The size of a directory is the file system's own business."""
    size = 0 if stat.S_ISDIR(facts.st_mode) else facts.st_size
    numbers = (facts.st_mode, facts.st_uid, facts.st_gid, size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino, facts.st_rdev)
    return " ".join(f"{number:x}" for number in numbers)


class Manifest:
    """One run: writes a JSON line `[path, facts]` per entry, sorted by components."""

    def __init__(self, write: Callable[[bytes], None], territory: Territory) -> None:
        self._write = write
        self._territory = territory
        self._entries = 0
        self._unreadable = 0

    def take(self) -> dict[str, Any]:
        """Walk everything; the summary."""
        with directory(()) as root:
            self._children(root, ())
        return {"entries": self._entries, "unreadable": self._unreadable}

    def _children(self, fd: int, parts: Parts) -> None:
        try:
            found = names(fd, MAX_NAMES)
        except PermissionError:
            self._unreadable += 1
            return
        if found is None:
            raise Failure(ErrorCode.STATE_TOO_LARGE, f"{printable(join(parts))} holds too many names", limit="entries",
                          path=printable(join(parts)), found=MAX_NAMES + 1, allowed=MAX_NAMES)  # fmt: skip
        for name in found:
            self._entry(fd, (*parts, name))

    def _entry(self, parent: int, parts: Parts) -> None:
        if self._territory.holds(parts) or parts in self._territory.files:
            return
        try:
            facts = os.stat(parts[-1], dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return
        if facts.st_dev in self._territory.pseudo_devices:
            return
        self._entries += 1
        row = [body.wire_bytes(join(parts)), facts_of(facts)]
        self._write(json.dumps(row, separators=(",", ":")).encode("ascii") + b"\n")
        if stat.S_ISDIR(facts.st_mode) and len(parts) <= MAX_DEPTH:
            try:
                fd = step(parent, parts[-1], parts[:-1])
            except Failure:
                self._unreadable += 1
                return
            try:
                self._children(fd, parts)
            finally:
                os.close(fd)


class Base:
    """The rows of a manifest, read back one at a time."""

    def __init__(self, read: Callable[[], bytes]) -> None:
        self._rows = self._parse(read)
        self.next: tuple[Parts, str] | None = next(self._rows, None)

    def pop(self) -> tuple[Parts, str] | None:
        """The next row."""
        row, self.next = self.next, next(self._rows, None)
        return row

    @staticmethod
    def _parse(read: Callable[[], bytes]) -> Iterator[tuple[Parts, str]]:
        rest = b""
        while chunk := read():
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > MAX_LINE:
                break
            for line in lines:
                yield _row(line)
        if rest:
            raise Failure(ErrorCode.BAD_REQUEST, "base: a row is cut or too long")


def _row(line: bytes) -> tuple[Parts, str]:
    try:
        path, facts = json.loads(line)
    except (ValueError, TypeError):
        raise Failure(ErrorCode.BAD_REQUEST, f"base: not a row: {line[:100]!r}") from None
    return tuple(body.plain_bytes(path, "base").strip(b"/").split(b"/")), str(facts)
