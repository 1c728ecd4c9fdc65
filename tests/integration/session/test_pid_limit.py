"""The kernel's own count of refused forks makes the reason, with a real cgroup."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from realcli.api.termination import Result
from realcli_cli.local import pods
from tests.integration.session.harness import KEY, Sweep, container

V1, V2 = Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup")
BOMB = "touch /app/out; while test ! -e /app/go; do sleep 0.1; done; (for i in $(seq 99); do sleep 60 & done); kill -9 $PPID"


@pytest.fixture
def group() -> Iterator[Path]:
    """A cgroup of processes of its own."""
    parent = V1 if V1.is_dir() else V2
    folder = parent / f"realcli-test-{time.monotonic_ns()}"
    folder.mkdir()
    try:
        assert (folder / "pids.max").exists(), f"{parent} does not count processes"
        yield folder
    finally:
        end = time.monotonic() + 20
        while (folder / "cgroup.procs").read_text() and time.monotonic() < end:
            time.sleep(0.05)
        folder.rmdir()


@pytest.mark.slow
def test_an_agent_that_dies_of_the_process_limit(plan: Callable[..., Sweep], mini: Callable[..., Path], group: Path) -> None:
    sweep = plan(suite=mini("true", BOMB))
    ordinal = sweep.ordinal("mini", "EXEC")
    inside = "sys/fs/cgroup/pids" if V1.is_dir() else "sys/fs/cgroup"
    with container(sweep.image("mini"), sweep.toolkit, sweep.agent) as place:
        (place.root / inside).mkdir(parents=True)
        place.binds = [*place.binds, (group, inside)]
        with pods.pod(sweep, ordinal, ["work", "--attempt", "1"], place, {"anthropic": KEY}) as pod:
            pod.until(place.path("/app/out").exists)
            assert place.process is not None
            for pid in [place.process.pid, *below(place.process.pid)]:
                (group / "cgroup.procs").write_text(str(pid))
            now = int((group / "pids.current").read_text())
            (group / "pids.max").write_text(str(now + 5))
            place.path("/app/go").touch()
            ended = pod.ended(120)
    assert ended.termination is not None, ended.stderr
    assert (ended.termination.result, ended.termination.reason) == (Result.WORK_SEALED, "AgentPidLimit"), ended.stderr
    assert "processes were refused by the container's limit" in str(ended.termination.message)


def below(pid: int) -> list[int]:
    """Descendants of a process."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += [int(child), *below(int(child))]
    return found
