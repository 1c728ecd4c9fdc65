"""The session's own disk is full: the work ends with a reason that says so, and what is there is sealed.

Disks are real, and small: file systems in memory.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from realcli.api.termination import Result
from realcli.ledger.events import EpisodeEnd, PhaseChange, RecordGap
from tests.integration.session.harness import Sweep
from tests.integration.session.test_ends import ended_as, intact, last

Plan = Callable[..., Sweep]
Mini = Callable[..., Path]
SCORED = "echo 1 > /logs/verifier/reward.txt"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """`disk(size)`: an empty file system of that size."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(size: str) -> Path:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)], check=True)
        return place

    yield mount
    subprocess.run(["umount", str(place)], check=False)


def fill(place: Path) -> None:
    """As a neighbour on the node would, to the last byte."""
    with (place / "neighbour").open("ab", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            with contextlib.suppress(OSError):  # no room
                while file.write(bytes(size)) == size:
                    pass


def test_a_disk_that_fills_up_during_the_work(plan: Plan, mini: Mini, disk: Callable[[str], Path]) -> None:
    sweep = plan(suite=mini(SCORED, "touch /app/out; until test -e /app/go; do sleep 0.05; done; seq 20000"))
    ordinal = sweep.ordinal("mini", "EXEC")
    spool = disk("96m")
    with sweep.pod(ordinal, "work", "--attempt", "1", REALCLI_SPOOL=str(spool)) as pod:
        pod.until(pod.chroot.path("/app/out").exists)
        assert (spool / "reserve").stat().st_blocks * 512 >= 64 << 20, "it is there, not promised"
        fill(spool)
        pod.chroot.path("/app/go").touch()
        ended = pod.ended()
    ended_as(ended, Result.WORK_INVALID, "SessionLost", code=1)
    assert ended.termination is not None
    assert "No space left on device" in str(ended.termination.message)
    assert "bytes of the ledger" in str(ended.termination.message), "a person sees whether the session itself has filled it"
    intact(sweep, ordinal)
    events = [event.typed() for event in sweep.events(ordinal)]
    (gap,) = [e for e in events if isinstance(e, RecordGap)]
    assert gap.record == "ledger"
    assert gap.count is not None
    assert gap.count >= 1
    assert events.index(gap) < events.index(PhaseChange(phase="seal"))
    end = last(sweep.events(ordinal))
    assert isinstance(end, EpisodeEnd)
    assert "No space left on device" in end.detail
    seal = sweep.work_seal(ordinal)
    assert (seal.valid, seal.state) == (False, None)


@pytest.mark.slow
def test_a_disk_without_room_for_the_state(plan: Plan, mini: Mini, disk: Callable[[str], Path]) -> None:
    sweep = plan(suite=mini(SCORED, "head -c 40000000 /dev/urandom > /app/out"))
    ordinal = sweep.ordinal("mini", "EXEC")
    ended = sweep.work(ordinal, REALCLI_SPOOL=str(disk("80m")))
    ended_as(ended, Result.WORK_INVALID, "SessionLost", code=1)
    assert "state.tar.zst refuses what the session writes" in last(sweep.events(ordinal)).detail
    intact(sweep, ordinal)


def test_a_disk_without_room_for_the_end(plan: Plan, disk: Callable[[str], Path]) -> None:
    sweep = plan()
    with sweep.pod(0, "work", "--attempt", "1", runner=False, REALCLI_SPOOL=str(disk("32m"))) as pod:
        ended = pod.ended()
    ended_as(ended, Result.WORK_INVALID, "SessionLost", code=1)
    assert ended.termination is not None
    assert "no room for the 67108864 bytes that the end of an attempt may need" in str(ended.termination.message)
