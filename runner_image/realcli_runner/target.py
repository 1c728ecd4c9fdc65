"""Reading another process while one of its calls waits: arguments, directory, the file it wants to execute.

Everything is reached through /proc/PID. The kernel shows memory and links only to a caller with the same ids (without
SYS_PTRACE, which no container of ours has), so the reading thread takes on the file-system ids of the process for the moment:
they are a thread's own.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from realcli_runner.lookup import executable
from realcli_runner.seccomp import EXECVE, Notification

MAX_ARGUMENTS: Final = 4096
MAX_BYTES: Final = 32 * 1024
"""Of all arguments together; the rest is cut."""
_PAGE: Final = 4096
_AT_FDCWD: Final = -100
_AT_EMPTY_PATH: Final = 0x1000
_PATH_MAX: Final = 4096


class Ids(NamedTuple):
    """Of one thread: its process, the parent of that, and what the kernel compares (`fsuid`, `fsgid`)."""

    tgid: int
    ppid: int
    fsuid: int
    fsgid: int


class Wanted(NamedTuple):
    """What a process is about to execute. `path` is as the process sees it, absolute as far as its directory is known."""

    argv: tuple[bytes, ...]
    cut: bool
    cwd: bytes
    path: bytes


def ids(pid: int) -> Ids:
    """FileNotFoundError or ProcessLookupError when it is gone."""
    fields: dict[bytes, bytes] = {}
    with open(f"/proc/{pid}/status", "rb", buffering=0) as file:
        for line in file.read(8192).split(b"\n"):
            name, _, value = line.partition(b":")
            fields[name] = value
            if name == b"Gid":
                break
    uid, gid = (int(fields[name].split()[3]) for name in (b"Uid", b"Gid"))
    return Ids(int(fields[b"Tgid"]), int(fields[b"PPid"]), uid, gid)


def changes_expose() -> bool:
    """A change of ids makes this process readable to others of its uid: only where the node's `fs.suid_dumpable` is 1."""
    try:
        with open("/proc/sys/fs/suid_dumpable", "rb", buffering=0) as file:
            return file.read(16).strip() == b"1"
    except OSError:
        return False


@contextmanager
def seen_as(uid: int, gid: int) -> Iterator[None]:
    """This thread's file-system ids, for a moment. Without the right to change them they stay, and the kernel may refuse.

    They stay too where a change would undo `kernel.hide_memory`: the record of other users has gaps then.
    """
    own_uid, own_gid = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None)
    if (uid, gid) == (own_uid, own_gid) or changes_expose():
        yield
        return
    libc.setfsgid(ctypes.c_uint(gid))
    libc.setfsuid(ctypes.c_uint(uid))
    try:
        yield
    finally:
        libc.setfsuid(ctypes.c_uint(own_uid))
        libc.setfsgid(ctypes.c_uint(own_gid))


def wanted(notification: Notification) -> Wanted | None:
    """What an execve or execveat asks for; None when the file says that it cannot succeed (a search through PATH asks often).

    OSError when the kernel does not show the process to us, or it is gone.
    """
    pid, args = notification.pid, notification.args
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if notification.call == EXECVE:
            (name, argv), fd, flags = args[:2], _AT_FDCWD, 0
        else:
            name, argv = args[1:3]
            fd, flags = ctypes.c_int(args[0] & 0xFFFFFFFF).value, args[4]
        file = _text(memory, name, _PATH_MAX)[0]
        base, path, shown = _place(pid, fd, flags, file)
        if not executable(pid, base, path):
            return None
        arguments, cut = _arguments(memory, argv, notification.pointer)
    finally:
        os.close(memory)
    cwd = os.readlink(b"/proc/%d/cwd" % pid)
    return Wanted(arguments, cut, cwd, os.path.normpath(os.path.join(cwd, shown)) if shown else shown)


def executed(pid: int) -> Wanted | None:
    """What a process has become, from what /proc tells everybody; None while the kernel still hides it."""
    try:
        path = os.readlink(b"/proc/%d/exe" % pid)
        cwd = os.readlink(b"/proc/%d/cwd" % pid)
    except PermissionError:
        return None
    with open(f"/proc/{pid}/cmdline", "rb", buffering=0) as file:
        line = file.read(MAX_BYTES)
    return Wanted(tuple(line.removesuffix(b"\0").split(b"\0")), len(line) == MAX_BYTES, cwd, path)


def _place(pid: int, fd: int, flags: int, file: bytes) -> tuple[bytes, bytes, bytes]:
    """(where the process starts to look, what it looks for there, how it names the file)."""
    if file.startswith(b"/"):
        return b"/proc/%d/root" % pid, file, file
    if fd == _AT_FDCWD:
        return b"/proc/%d/cwd" % pid, file, file
    base = b"/proc/%d/fd/%d" % (pid, fd)
    if not file and flags & _AT_EMPTY_PATH:
        return base, b"", os.readlink(base)
    return base, file, os.path.join(os.readlink(base), file)


def _arguments(memory: int, address: int, pointer: int) -> tuple[tuple[bytes, ...], bool]:
    found: list[bytes] = []
    room = MAX_BYTES
    if not address:
        return (), False
    for value in _pointers(memory, address, pointer):
        if room <= 0 or len(found) >= MAX_ARGUMENTS:
            return tuple(found), True
        text, whole = _text(memory, value, room)
        found.append(text)
        if not whole:
            return tuple(found), True
        room -= len(text) + 1
    return tuple(found), False


def _pointers(memory: int, address: int, size: int) -> Iterator[int]:
    """Addresses up to the null that ends them. Reads stop at page borders: what lies behind one may not be mapped."""
    while True:
        count = max(1, min(512, _PAGE - address % _PAGE) // size)
        raw = os.pread(memory, count * size, address)
        whole = len(raw) // size
        if not whole:
            return
        for value in struct.unpack(f"<{whole}{'Q' if size == 8 else 'I'}", raw[: whole * size]):
            if not value:
                return
            yield value
        address += whole * size


def _text(memory: int, address: int, limit: int) -> tuple[bytes, bool]:
    """(the bytes up to the NUL that ends them or to the limit, whether that NUL was met)."""
    found = bytearray()
    while len(found) < limit:
        raw = os.pread(memory, min(_PAGE - address % _PAGE, limit - len(found)), address)
        if not raw:
            return bytes(found), False
        text, end, _ = raw.partition(b"\0")
        found += text
        if end:
            return bytes(found), True
        address += len(raw)
    return bytes(found), False
