"""Whether a file can be executed, as another process would find it: in its root, under its own `/proc/self`.

Where the kernel finds it for us by way of /proc/PID, that is all. It does not where a link leads to `/` or to `/proc/self`, which
would be ours.
"""

from __future__ import annotations

import os
import stat
from typing import Final

MAX_LINKS: Final = 40
_SELF: Final = (b"self", b"thread-self")
_KERNELS: Final = (b"proc/", b"dev/")


def executable(pid: int, base: bytes, path: bytes) -> bool:
    """`base` is where the process starts to look (`/proc/PID/root`, `…/cwd`, `…/fd/N`), `path` what it looks for from there."""
    place = base + b"/" + path if path else base
    try:
        return _is_program(os.stat(place)) or _elsewhere(pid, base, path, place)
    except OSError:
        return _elsewhere(pid, base, path, place)


def _elsewhere(pid: int, base: bytes, path: bytes, place: bytes) -> bool:
    """Look again, link by link, if that can make a difference: a search through PATH asks for many files that are not there."""
    try:
        if not os.path.lexists(place) and not any(part in path for part in _KERNELS) and not _own_root(pid):
            return False
        return _is_program(os.stat(_resolved(pid, base, path)))
    except OSError:
        return False


def _own_root(pid: int) -> bool:
    """The process has a root of its own."""
    ours, its = os.stat(b"/"), os.stat(b"/proc/%d/root" % pid)
    return (ours.st_dev, ours.st_ino) != (its.st_dev, its.st_ino)


def _resolved(pid: int, base: bytes, path: bytes) -> bytes:
    """A path of ours without any link that we would follow otherwise than the process. OSError where there is none."""
    root = b"/proc/%d/root" % pid
    kernels = False  # below /proc/self, whose links lead to a thing and not to a name
    at, left, links = base, [part for part in path.split(b"/") if part not in (b"", b".")], 0
    while left:
        name = left.pop(0)
        if name == b"..":
            at = at.rpartition(b"/")[0] if at.startswith(root + b"/") else root if at == root else at + b"/.."
            continue
        if name in _SELF and os.path.samefile(at, b"/proc"):
            at, kernels = b"/proc/%d" % pid, True
            continue
        at, before = at + b"/" + name, at
        if kernels:
            continue
        try:
            link = os.readlink(at)
        except OSError as error:
            if not os.path.lexists(at):
                raise error
            continue
        links += 1
        if links > MAX_LINKS:
            raise OSError("too many links")
        at = root if link.startswith(b"/") else before
        left = [part for part in link.split(b"/") if part not in (b"", b".")] + left
    return at


def _is_program(facts: os.stat_result) -> bool:
    return stat.S_ISREG(facts.st_mode) and bool(facts.st_mode & 0o111)
