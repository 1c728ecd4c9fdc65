"""The process table, from /proc."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from realcli.wire.body import wire_bytes

ARGV_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class Proc:
    """One process. `start` is in clock ticks since boot; (pid, start) never names two processes."""

    pid: int
    ppid: int
    pgid: int
    sid: int
    uid: int
    state: str
    start: int
    argv: tuple[bytes, ...]

    def row(self, argv_limit: int = ARGV_LIMIT) -> dict[str, Any]:
        """Its JSON form, with arguments cut to `argv_limit` bytes."""
        argv, room = [], argv_limit
        for argument in self.argv:
            if room <= 0:
                break
            argv.append(wire_bytes(argument[:room]))
            room -= len(argument) + 1
        return {
            "pid": self.pid,
            "ppid": self.ppid,
            "pgid": self.pgid,
            "sid": self.sid,
            "uid": self.uid,
            "state": self.state,
            "start": self.start,
            "argv": argv,
        }


def usable() -> bool:
    """Whether /proc is there and shows this pid namespace."""
    try:
        return os.readlink("/proc/self") == str(os.getpid())
    except OSError:
        return False


def read(pid: int) -> Proc | None:
    """One process, or None if it is gone."""
    try:
        stat = _content(f"/proc/{pid}/stat", 4096)
        status = _content(f"/proc/{pid}/status", 8192)
        command = _content(f"/proc/{pid}/cmdline", ARGV_LIMIT)
    except (FileNotFoundError, ProcessLookupError):
        return None
    opening, closing = stat.find(b"("), stat.rfind(b")")
    fields = stat[closing + 2 :].split()
    uid = next(int(line.split()[1]) for line in status.split(b"\n") if line.startswith(b"Uid:"))
    argv = tuple(command.removesuffix(b"\0").split(b"\0")) if command else (b"[" + stat[opening + 1 : closing] + b"]",)
    return Proc(
        pid=pid,
        ppid=int(fields[1]),
        pgid=int(fields[2]),
        sid=int(fields[3]),
        uid=uid,
        state=fields[0].decode("ascii"),
        start=int(fields[19]),
        argv=argv,
    )


def table() -> list[Proc]:
    """Every process of the mounted /proc, by pid. Processes that end meanwhile are left out."""
    pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
    return [proc for proc in map(read, pids) if proc is not None]


def tree(ancestor: int) -> dict[int, str]:
    """State by pid of the descendants of `ancestor`: from one small file per process, since the caller is in a hurry."""
    children: dict[int, list[tuple[int, str]]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            stat = _content(f"/proc/{name}/stat", 4096)
        except (FileNotFoundError, ProcessLookupError):
            continue
        state, ppid = stat[stat.rfind(b")") + 2 :].split(maxsplit=2)[:2]
        children.setdefault(int(ppid), []).append((int(name), state.decode("ascii")))
    found: dict[int, str] = {}
    pending = [ancestor]
    while pending:
        for pid, state_text in children.pop(pending.pop(), []):
            found[pid] = state_text
            pending.append(pid)
    return found


def _content(path: str, limit: int) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, limit)
    finally:
        os.close(fd)
