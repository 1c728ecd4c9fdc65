"""What the kernel ends when a container takes more memory than its limit: one process of it, or all of them.

cgroup v1 kills one process; the container goes on if that was not its first. With cgroup v2 the kubelet asks for the whole
container (`memory.oom.group`), unless its `singleProcessOOMKill` is set. The same agent meets another end on either, so a sweep
does not mix them: the plan Job writes what its node does into the lock; a session on a node that does otherwise does not begin.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from realcli.api.plan import Cgroup

CGROUP: Final = "REALCLI_CGROUP"
PLACE: Final = Path("/sys/fs/cgroup")


def read_cgroup(place: Path = PLACE, own: Path = Path("/proc/self/cgroup")) -> Cgroup | None:
    """Of the container that asks; None where nothing shows it (a sandbox with a kernel of its own)."""
    if (place / "cgroup.controllers").exists():
        return Cgroup(version="2", kills="Container" if _of_group(place, own) else "Process")
    if (place / "memory").is_dir():
        return Cgroup(version="1", kills="Process")
    return None


def differs(planned: Cgroup | None, here: Cgroup | None, node: str | None) -> str | None:
    """Why a trial of this sweep may not run here; None if it may. What is unknown is no difference."""
    if planned is None or here is None or planned.kills == here.kills:
        return None
    return (
        f"node {node or 'of this pod'} is unlike the one the sweep was planned on: for memory it kills "
        f"{_words(here)}, planned was {_words(planned)}; keep the sweep on nodes of one kind with spec.pods.nodeSelector"
    )


def _words(cgroup: Cgroup) -> str:
    what = {"Process": "one process", "Container": "the whole container"}[cgroup.kills]
    return f"{what} (cgroup v{cgroup.version})"


def _of_group(place: Path, own: Path) -> bool:
    """Whether the container's group dies as one; its file is at the root of its own cgroup namespace, else where /proc says."""
    try:
        line = next((row for row in own.read_text().splitlines() if row.startswith("0::")), "0::/")
    except OSError:
        line = "0::/"
    for folder in (place, place / line.removeprefix("0::").lstrip("/")):
        try:
            return (folder / "memory.oom.group").read_text().strip() == "1"
        except OSError:
            continue
    return False
