"""Whether the container ran into its process limit, from the kernel's own count (outcome `AgentPidLimit`)."""

from __future__ import annotations

from typing import Final

from realcli_session.runner.errors import RunnerError
from realcli_session.runner.port import RunnerPort

PLACES: Final = ("/sys/fs/cgroup/pids.events", "/sys/fs/cgroup/pids/pids.events")  # version 2, version 1


async def refused_forks(runner: RunnerPort) -> int | None:
    """How often a fork was refused for want of processes since the container began; None where the kernel does not show it."""
    for place in PLACES:
        try:
            content = await runner.get_file(place, limit=4096)
        except RunnerError:
            continue
        for line in content.decode("ascii", "replace").splitlines():
            name, _, count = line.partition(" ")
            if name == "max" and count.isdigit():
                return int(count)
    return None
