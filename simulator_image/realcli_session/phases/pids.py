"""Whether the container ran out of processes: what an agent program then dies of is no crash of its own."""

from __future__ import annotations

import re

from realcli_session.phases.attempt import Happening
from realcli_session.phases.table import Cause
from realcli_session.runner.errors import RunnerError, RunnerLost
from realcli_session.runner.port import RunnerPort

PLACES = ("/sys/fs/cgroup/pids.events", "/sys/fs/cgroup/pids/pids.events")
"""Where cgroup version 2 and 1 count the forks that the limit has refused in this container, which is as old as the attempt."""


async def explained(runner: RunnerPort, happening: Happening) -> Happening:
    """PID_LIMIT instead of AGENT_EXIT where the kernel has refused forks; anything else as it is."""
    cause, detail = happening
    if cause is not Cause.AGENT_EXIT:
        return happening
    refused = await forks_refused(runner)
    if not refused:
        return happening
    return Cause.PID_LIMIT, f"the process limit refused {refused} new processes; {detail}"


async def forks_refused(runner: RunnerPort) -> int:
    """By the container's own cgroup; 0 where it does not show, which leaves the plain reason."""
    for place in PLACES:
        try:
            text = (await runner.get_file(place, limit=4096)).decode("ascii", "replace")
        except (RunnerError, RunnerLost):
            continue
        if (found := re.search(r"^max (\d{1,18})$", text, re.MULTILINE)) is not None:
            return int(found[1])
    return 0
