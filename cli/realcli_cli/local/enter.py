"""Run inside fresh mount, pid and ipc namespaces, as their first process: makes the container's root and becomes the runner.

Standard library only; started as a file of its own. argv[1] is a JSON object: root, mounts [[host, inside, read-only]], devices,
capabilities, no_new_privs, command. The old root is unmounted before anything of the container runs: chroot alone could be left
by a root process.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
MNT_DETACH = 2
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
CAPS = {
    "chown": 0, "dac_override": 1, "fowner": 3, "fsetid": 4, "kill": 5, "setgid": 6, "setuid": 7, "net_bind_service": 10,
    "sys_chroot": 18,
}  # fmt: skip
LAST_CAP = "/proc/sys/kernel/cap_last_cap"
_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Does not return."""
    asked = json.loads(sys.argv[1])
    root = asked["root"]
    with open(LAST_CAP, encoding="ascii") as file:
        last_cap = int(file.read())
    _mount("none", "/", None, MS_REC | MS_PRIVATE)
    _mount(root, root, None, MS_BIND)
    os.chdir(root)
    for host, inside, read_only in asked["mounts"]:
        _bind(host, inside.lstrip("/"), read_only)
    for name in asked["devices"]:
        _bind(f"/dev/{name}", f"dev/{name}", False)
    _mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
    _mount("shm", "dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=64m")
    _mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    _pivot()
    for number in range(last_cap + 1):
        if number not in {CAPS[name] for name in asked["capabilities"]}:
            _checked(_libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0), f"drop capability {number}")
    if asked["no_new_privs"]:
        _checked(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "set no_new_privs")
    command = asked["command"]
    os.execve(command[0], command, dict(os.environ))


def _bind(host: str, inside: str, read_only: bool) -> None:
    _mount(host, inside, None, MS_BIND)
    if read_only:
        # in a user namespace what the host's mount forbids has to stay forbidden, or the remount is refused
        flags = os.statvfs(inside).f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC)
        _mount("none", inside, None, MS_REMOUNT | MS_BIND | MS_RDONLY | flags)


def _pivot() -> None:
    number = SYS_PIVOT_ROOT[os.uname().machine]
    _checked(_libc.syscall(number, b".", b"."), "pivot_root")
    _checked(_libc.umount2(b".", MNT_DETACH), "unmount the old root")
    os.chdir("/")


def _mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    given = [os.fsencode(source), os.fsencode(target), kind.encode() if kind else None]
    _checked(_libc.mount(*given, ctypes.c_ulong(flags), data.encode() or None), f"mount {kind or source} at {target}")


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        sys.exit(f"container: cannot {what}: {os.strerror(number)}")


if __name__ == "__main__":
    main()
