"""Seccomp user notification: what the kernel calls it, and nothing of what it is used for (seccomp_unotify(2)).

A filter belongs to a thread and to everything started from it. Calls it names wait until they are answered; everything else
passes. The answer is always "go on": nothing is ever refused here.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import struct
from typing import Final, NamedTuple

_SET_MODE_FILTER: Final = 1
_NEW_LISTENER: Final = 1 << 3
_WAIT_KILLABLE: Final = 1 << 5  # a signal does not restart a call that is being looked at (Linux 5.19)
_ALLOW: Final = 0x7FFF0000
_NOTIFY: Final = 0x7FC00000
_CONTINUE: Final = 1
_PR_SET_NO_NEW_PRIVS: Final = 38
_RECV: Final = 0xC0502100
_SEND: Final = 0xC0182101
_ID_VALID: Final = 0x40082102
_NOTIFICATION: Final = struct.Struct("<QIIiIQ6Q")
_ANSWER: Final = struct.Struct("<QqiI")
_INSTRUCTION: Final = struct.Struct("<HBBI")
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ARCH_AT, _NR_AT = 4, 0

EXECVE, EXECVEAT, EXIT_GROUP = "execve", "execveat", "exit_group"
_X86_64, _I386, _AARCH64, _ARM = 0xC000003E, 0x40000003, 0xC00000B7, 0x40000028
_X32: Final = 0x40000000  # in the number of a call: x86-64 with addresses of 32 bits
_CALLS: Final = {
    _X86_64: {
        59: EXECVE, 322: EXECVEAT, 231: EXIT_GROUP, _X32 | 520: EXECVE, _X32 | 545: EXECVEAT, _X32 | 231: EXIT_GROUP
    },
    _I386: {11: EXECVE, 358: EXECVEAT, 252: EXIT_GROUP},
    _AARCH64: {221: EXECVE, 281: EXECVEAT, 94: EXIT_GROUP},
    _ARM: {11: EXECVE, 387: EXECVEAT, 248: EXIT_GROUP},
}  # fmt: skip
_MACHINES: Final = {"x86_64": (317, (_X86_64, _I386)), "aarch64": (277, (_AARCH64, _ARM))}


class Notification(NamedTuple):
    """One call that waits. `pid` is the calling thread's, `pointer` the size of an address in its memory."""

    id: int
    pid: int
    call: str
    pointer: int
    args: tuple[int, ...]


def install() -> int:
    """Put the filter on the calling thread; the listener's descriptor. OSError says why the kernel does not want it.

    Needs no_new_privs, which is set for this thread (and so for what it starts) if it is not yet.
    """
    machine = platform.machine()
    if machine not in _MACHINES:
        raise OSError(errno.ENOSYS, f"system calls of {machine} are not known here")
    number, arches = _MACHINES[machine]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, *(ctypes.c_ulong(value) for value in (1, 0, 0, 0))) < 0:
        raise OSError(ctypes.get_errno(), f"no_new_privs: {os.strerror(ctypes.get_errno())}")
    program = _program(arches)
    code = ctypes.create_string_buffer(program, len(program))
    whole = _Program(len(program) // _INSTRUCTION.size, ctypes.addressof(code))
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):
        fd: int = libc.syscall(ctypes.c_long(number), ctypes.c_uint(_SET_MODE_FILTER), ctypes.c_uint(flags), ctypes.byref(whole))
        if fd >= 0:
            os.set_inheritable(fd, False)
            return fd
        if ctypes.get_errno() != errno.EINVAL:
            break
    raise OSError(ctypes.get_errno(), f"seccomp: {os.strerror(ctypes.get_errno())}")


class _Program(ctypes.Structure):
    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def _program(arches: tuple[int, ...]) -> bytes:
    """BPF: the calls of each architecture notify, all else is allowed."""
    code = [(_LOAD, 0, 0, _ARCH_AT)]
    for arch in arches:
        numbers = list(_CALLS[arch])
        # not this architecture: skip its block (load, comparisons, two returns)
        code.append((_EQUAL, 0, len(numbers) + 3, arch))
        code.append((_LOAD, 0, 0, _NR_AT))
        code.extend((_EQUAL, len(numbers) - place, 0, number) for place, number in enumerate(numbers))
        code.append((_RETURN, 0, 0, _ALLOW))
        code.append((_RETURN, 0, 0, _NOTIFY))
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(_INSTRUCTION.pack(*instruction) for instruction in code)


class Listener:
    """The other end of a filter. Must stay open: without it the kernel refuses the calls it names."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def receive(self) -> Notification | None:
        """The next call that waits; None when its process has gone meanwhile. To be asked when the descriptor is readable."""
        raw = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(self.fd, _RECV, raw, True)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR):
                return None
            raise
        number, pid, _flags, nr, arch, _ip, *args = _NOTIFICATION.unpack(raw)
        narrow = arch in (_I386, _ARM) or nr & _X32
        return Notification(number, pid, _CALLS[arch][nr], 4 if narrow else 8, tuple(args))

    def valid(self, notification: Notification) -> bool:
        """The call still waits: what was read under its pid was of the process that made it."""
        try:
            fcntl.ioctl(self.fd, _ID_VALID, struct.pack("<Q", notification.id))
        except OSError:
            return False
        return True

    def proceed(self, notification: Notification) -> bool:
        """Let the call happen. False: its process was killed while it waited, or will make it again after a signal."""
        try:
            fcntl.ioctl(self.fd, _SEND, _ANSWER.pack(notification.id, 0, 0, _CONTINUE))
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise
            return False
        return True
