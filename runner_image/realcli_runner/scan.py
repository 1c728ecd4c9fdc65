"""Looks at watched files without touching, following or waiting for anything the agent may have put there."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import time
from collections.abc import Callable
from typing import Any

from realcli.wire.body import wire_bytes
from realcli.wire.protocol import CHUNK
from realcli_runner.errors import Failure, printable
from realcli_runner.globs import Globs, States
from realcli_runner.walking import MAX_DEPTH, READ, Parts, Territory, directory, join, kind_of, names, step

UNREADABLE = 100
MAX_NAMES = 1_000_000


class _Stop(Exception):
    def __init__(self, limit: str) -> None:
        self.limit = limit


class Scan:
    """One run: writes a JSON line per entry, returns the summary."""

    def __init__(
        self,
        write: Callable[[bytes], None],
        territory: Territory,
        *,
        max_files: int,
        max_bytes: int,
        hash_limit: int,
        budget: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._territory = territory
        self._left = max_files
        self._bytes_left = max_bytes
        self._hash_limit = hash_limit
        self._clock = clock
        self._end = clock() + budget
        self._unreadable: list[str] = []

    def run(self, globs: Globs) -> dict[str, Any]:
        """Walk; the summary says whether everything was seen, and which limit stopped it if not."""
        stopped = None
        try:
            with directory(()) as root:
                self._walk(root, (), globs.start, globs)
        except _Stop as stop:
            stopped = stop.limit
        return {"complete": stopped is None, "stopped_by": stopped, "unreadable": self._unreadable}

    def _walk(self, fd: int, parts: Parts, states: States, globs: Globs) -> None:
        asked = globs.literals(states)
        try:
            found = names(fd, MAX_NAMES) if asked is None else asked
        except OSError as error:
            self._note(parts, os.strerror(error.errno or 0))
            return
        if found is None:
            raise _Stop("files")
        for name in found:
            if self._clock() >= self._end:
                raise _Stop("time")
            # What the runner brought is not the image's: only a glob that spells its place out gets there.
            if asked is None and self._territory.holds((*parts, name)) and not self._territory.holds(parts):
                continue
            matched, below = globs.step(states, name)
            if matched or below:
                self._entry(fd, (*parts, name), matched, below, globs)

    def _entry(self, parent: int, parts: Parts, matched: bool, below: States, globs: Globs) -> None:
        try:
            facts = os.stat(parts[-1], dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return
        except OSError as error:
            self._note(parts, os.strerror(error.errno or 0))
            return
        if facts.st_dev in self._territory.pseudo_devices:
            return
        if matched:
            self._emit(parent, parts, facts)
        if not below:
            return
        if stat.S_ISLNK(facts.st_mode) and globs.literals(below) is not None:
            self._note(parts, "a symbolic link, which is not followed: watch the real path")
        if not stat.S_ISDIR(facts.st_mode):
            return
        if len(parts) > MAX_DEPTH:
            self._note(parts, f"deeper than {MAX_DEPTH} directories")
            return
        try:
            fd = step(parent, parts[-1], parts[:-1])
        except Failure as failure:
            self._note(parts, str(failure))
            return
        try:
            self._walk(fd, parts, below, globs)
        finally:
            os.close(fd)

    def _emit(self, parent: int, parts: Parts, facts: os.stat_result) -> None:
        if self._left == 0:
            raise _Stop("files")
        self._left -= 1
        digest, link = None, None
        if stat.S_ISREG(facts.st_mode):
            facts, digest = self._hash(parent, parts, facts)
        elif stat.S_ISLNK(facts.st_mode):
            try:
                link = wire_bytes(os.readlink(parts[-1], dir_fd=parent))
            except OSError as error:
                self._note(parts, os.strerror(error.errno or 0))
        row = {
            "path": wire_bytes(join(parts)),
            "kind": kind_of(facts.st_mode),
            "size": facts.st_size,
            "mode": stat.S_IMODE(facts.st_mode),
            "uid": facts.st_uid,
            "gid": facts.st_gid,
            "mtime_ns": facts.st_mtime_ns,
            "ctime_ns": facts.st_ctime_ns,
            "sha256": digest,
            "link": link,
        }
        self._write(json.dumps(row, separators=(",", ":")).encode("ascii") + b"\n")

    def _hash(self, parent: int, parts: Parts, seen: os.stat_result) -> tuple[os.stat_result, str | None]:
        if seen.st_size > self._hash_limit:
            return seen, None
        try:
            fd = os.open(parts[-1], READ, dir_fd=parent)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ELOOP, errno.ENXIO):  # those: replaced meanwhile
                self._note(parts, os.strerror(error.errno or 0))
            return seen, None
        try:
            facts = os.fstat(fd)
            if not stat.S_ISREG(facts.st_mode):
                return seen, None
            if facts.st_size > self._bytes_left:
                raise _Stop("bytes")
            digest, total = hashlib.sha256(), 0
            while chunk := os.read(fd, CHUNK):
                total += len(chunk)
                self._bytes_left -= len(chunk)
                digest.update(chunk)
                if total > self._hash_limit or self._bytes_left < 0:  # it grows while we read
                    return facts, None
                if self._clock() >= self._end:
                    raise _Stop("time")
            if total != facts.st_size:
                return facts, None
            return facts, digest.hexdigest()
        except OSError as error:
            self._note(parts, os.strerror(error.errno or 0))
            return seen, None
        finally:
            os.close(fd)

    def _note(self, parts: Parts, why: str) -> None:
        if len(self._unreadable) < UNREADABLE:
            self._unreadable.append(f"{printable(join(parts)[:1000])}: {why[:200]}")
