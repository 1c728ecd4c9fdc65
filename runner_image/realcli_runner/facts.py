"""What the runner tells about the image and itself before anything else runs."""

from __future__ import annotations

import glob
import os
import platform
import stat
from typing import Any

from realcli.wire import body
from realcli.wire.frames import MAX_PAYLOAD
from realcli.wire.protocol import VERSION

_LIMIT_FILES = {
    "memory.max": ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"),
    "pids.max": ("/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max"),
    "cpu.max": ("/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
}


def hello() -> bytes:
    """Payload of the hello frame. An environment that does not fit is cut, largest values first, and says so."""
    environ = {name: value for name, value in given_environ().items() if not name.startswith(b"KUBERNETES_")}
    facts: dict[str, Any] = {
        "version": VERSION,
        "pid": os.getpid(),
        "uid": os.getuid(),
        "gid": os.getgid(),
        "kernel": os.uname().release,
        "machine": os.uname().machine,
        "python": platform.python_version(),
        "libc": libc(),
        "home": body.wire_bytes(home(environ)),
        "cwd": body.wire_bytes(os.getcwdb()),
        "cgroup": cgroup(),
        "omitted": [],
    }
    while True:
        facts["environ"] = [[body.wire_bytes(name), body.wire_bytes(value)] for name, value in sorted(environ.items())]
        try:
            return body.dump(facts)
        except ValueError:
            largest = max(environ, key=lambda name: len(environ[name]))
            facts["omitted"].append(body.wire_bytes(largest[: MAX_PAYLOAD // 1024]))
            del environ[largest]


def given_environ() -> dict[bytes, bytes]:
    """The environment this container was started with. Python's own may have LC_CTYPE added (PEP 538).

    What is meant for dynamic loaders has been spelt differently by `bin/clean` of the toolkit, to keep its own out of it.
    """
    with open("/proc/self/environ", "rb") as block:
        pairs = (entry.partition(b"=") for entry in block.read().split(b"\0"))
        return {_as_given(name): value for name, equals, value in pairs if name and equals}


def _as_given(name: bytes) -> bytes:
    if name.startswith(b"!D_"):
        return b"L" + name[1:]
    return b"G" + name[1:] if name.startswith(b"!LIBC_TU") else name


def home(environ: dict[bytes, bytes]) -> bytes:
    """HOME of the environment, else of the image's /etc/passwd, else `/`."""
    if given := environ.get(b"HOME"):
        return given
    wanted = str(os.getuid()).encode()
    try:
        if not stat.S_ISREG(os.stat("/etc/passwd").st_mode):
            return b"/"
        with open("/etc/passwd", "rb") as passwd:
            lines = passwd.read(1 << 20).split(b"\n")
    except OSError:
        return b"/"
    for line in lines:
        fields = line.split(b":")
        if len(fields) == 7 and fields[2] == wanted and fields[5].startswith(b"/"):
            return fields[5]
    return b"/"


def libc() -> str:
    """Which dynamic loader the image has: `glibc`, `musl` or `none`.

    A glibc loader path that leads to musl or to a shim (as gcompat puts it there) does not count as glibc.
    """
    for pattern in ("/lib64/ld-linux-*.so.*", "/lib/ld-linux-*.so.*"):
        for path in glob.glob(pattern):
            name = os.path.basename(os.path.realpath(path))
            if name.startswith(("ld-linux", "ld-2")) and os.path.isfile(path):
                return "glibc"
    if any(os.path.isfile(path) for path in glob.glob("/lib/ld-musl-*.so.1")):
        return "musl"
    return "none"


def cgroup() -> dict[str, str]:
    """Raw limits of the container, as far as its cgroup file system shows them."""
    found = {"version": "2" if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else "1"}
    if not os.path.isdir("/sys/fs/cgroup"):
        found["version"] = "unknown"
    for name, paths in _LIMIT_FILES.items():
        for path in paths:
            try:
                with open(path, encoding="ascii") as limit:
                    found[name] = limit.read(200).strip()
                break
            except (OSError, ValueError):
                continue
    return found
