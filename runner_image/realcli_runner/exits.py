"""How a process that is no child of ours ended, as far as the kernel tells."""

from __future__ import annotations

import fcntl
import os
import struct
from typing import Final

from realcli_runner.target import ids, seen_as

_PIDFD_GET_INFO: Final = (3 << 30) | (64 << 16) | (0xFF << 8) | 11
_INFO_EXIT: Final = 1 << 3


def status_of(pidfd: int, pid: int) -> int | None:
    """Its wait status, None if the kernel does not say.

    Asked of what is left of it in /proc, until it is reaped, and of the pidfd afterwards (Linux 6.15).
    """
    status = _from_proc(pid)
    return _from_pidfd(pidfd) if status is None else status


def _from_pidfd(pidfd: int) -> int | None:
    raw = bytearray(64)
    struct.pack_into("<Q", raw, 0, _INFO_EXIT)
    try:
        fcntl.ioctl(pidfd, _PIDFD_GET_INFO, raw, True)
    except OSError:
        return None
    if not struct.unpack_from("<Q", raw)[0] & _INFO_EXIT:
        return None
    status: int = struct.unpack_from("<i", raw, 60)[0]
    return status


def _from_proc(pid: int) -> int | None:
    try:
        who = ids(pid)
    except OSError:
        return None
    with seen_as(who.fsuid, who.fsgid):  # to others the kernel says 0
        return _from_stat(pid)


def _from_stat(pid: int) -> int | None:
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = os.read(fd, 4096)
    except OSError:
        return None
    finally:
        os.close(fd)
    fields = text[text.rfind(b")") + 2 :].split()
    if fields[0] not in (b"Z", b"X") or len(fields) < 50:
        return None
    return int(fields[49])
