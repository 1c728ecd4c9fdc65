"""What proves that an agent touched protected places, or ran out of processes."""

from __future__ import annotations

from typing import Any

import pytest

from realcli.wire.protocol import ErrorCode
from realcli_session.evidence.process_limit import refused_forks
from realcli_session.evidence.protected import ProtectedPlaces
from realcli_session.runner.errors import FileMissing
from realcli_session.runner.port import ScanEntry, ScanResult


def entry(path: str, *, size: int = 5, mtime: int = 1, kind: Any = "file", mode: int = 0o644) -> ScanEntry:
    return ScanEntry(path.encode(), kind, size, mode, 0, 0, mtime, None, None)


OWN = (
    entry("/opt/realcli/lib", kind="dir", size=4096),
    entry("/opt/realcli/lib/libc.so.6"),
    entry("/opt/realcli/runner/start.py"),
)


class Runner:
    def __init__(self, *looks: ScanResult) -> None:
        self._looks = list(looks)

    async def scan(self, globs: Any, **_: Any) -> ScanResult:
        return self._looks.pop(0)


def seen(*entries: ScanEntry, complete: bool = True) -> ScanResult:
    return ScanResult(entries, complete, None if complete else "time", ())


@pytest.mark.parametrize(
    ("after", "changed"),
    [
        (OWN, []),
        ((entry("/opt/realcli/lib", kind="dir", size=8192, mtime=9), *OWN[1:]), []),
        ((OWN[0], entry("/opt/realcli/lib/libc.so.6", mtime=2), OWN[2]), ["/opt/realcli/lib/libc.so.6"]),
        (OWN[:2], ["/opt/realcli/runner/start.py"]),
        ((*OWN, entry("/tests", kind="dir"), entry("/tests/test_outputs.py")), ["/tests", "/tests/test_outputs.py"]),
        ((*OWN, entry("/logs/verifier/reward.txt")), ["/logs/verifier/reward.txt"]),
        ((OWN[0], OWN[1], entry("/opt/realcli/runner/start.py", kind="symlink")), ["/opt/realcli/runner/start.py"]),
    ],
)
async def test_what_is_different_was_touched(after: tuple[ScanEntry, ...], changed: list[str]) -> None:
    places = ProtectedPlaces(Runner(seen(*OWN), seen(*after)))  # type: ignore[arg-type]
    await places.start()
    assert await places.changed() == changed


@pytest.mark.parametrize("looks", [(False, True), (True, False)])
async def test_a_look_that_was_cut_proves_nothing(looks: tuple[bool, bool]) -> None:
    places = ProtectedPlaces(Runner(seen(*OWN, complete=looks[0]), seen(complete=looks[1])))  # type: ignore[arg-type]
    await places.start()
    assert await places.changed() == []


async def test_a_look_that_was_cut_proves_what_it_saw() -> None:
    """Or whoever fills a place with enough files has never touched it."""
    after = seen(entry("/opt/realcli/lib/libc.so.6", mtime=2), entry("/tests/1"), complete=False)
    places = ProtectedPlaces(Runner(seen(*OWN), after))  # type: ignore[arg-type]
    await places.start()
    assert await places.changed() == ["/opt/realcli/lib/libc.so.6", "/tests/1"]


class Files:
    def __init__(self, files: dict[str, bytes]) -> None:
        self._files = files

    async def get_file(self, path: str, *, limit: int) -> bytes:
        if path not in self._files:
            raise FileMissing(ErrorCode.NOT_FOUND, path)
        return self._files[path]


@pytest.mark.parametrize(
    ("files", "count"),
    [
        ({"/sys/fs/cgroup/pids.events": b"max 3\n"}, 3),
        ({"/sys/fs/cgroup/pids/pids.events": b"max 0\n"}, 0),
        ({"/sys/fs/cgroup/pids.events": b"nonsense\n"}, None),
        ({}, None),
    ],
)
async def test_the_kernels_count_of_refused_forks(files: dict[str, bytes], count: int | None) -> None:
    assert await refused_forks(Files(files)) == count  # type: ignore[arg-type]
