"""A file that changes between its header and its last byte: the archive stays whole and the report says so."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from realcli_runner.snapshot import Snapshot
from realcli_runner.walking import Territory

NOWHERE = Territory((), frozenset())
SIZE = 200_000


def take(path: Path, after_first_chunk: Callable[[], object]) -> tuple[bytes, dict[str, object]]:
    """The content of the one file in the archive, and the report."""
    out = io.BytesIO()
    meddled = False

    def write(data: bytes) -> None:
        nonlocal meddled
        out.write(data)
        if b"a" * 1000 in data and not meddled:
            meddled = True
            after_first_chunk()

    report = Snapshot(write, NOWHERE, max_bytes=1 << 20, max_entries=10, exclude=[]).take([os.fsencode(path)])
    out.seek(0)
    with tarfile.open(fileobj=out) as tar:
        (member,) = tar.getmembers()
        content = tar.extractfile(member)
        assert content is not None
        return content.read(), report


@pytest.mark.parametrize("now", [SIZE, 100_000, 0, SIZE + 1])
def test_length_changes(tmp_path: Path, now: int) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"a" * SIZE)
    content, report = take(path, lambda: os.truncate(path, now))
    assert len(content) == SIZE
    assert content[:1000] == b"a" * 1000
    assert content.rstrip(b"\0") == b"a" * max(min(now, SIZE), 65536)
    assert report["changed"] == ([] if now == SIZE else [str(path)])


def test_a_file_swapped_for_a_fifo_before_it_is_opened_does_not_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"a" * 10)
    real_open = os.open

    def swapping(name: bytes, flags: int, *args: int, **more: int) -> int:
        if name == b"f" and not path.is_fifo():
            path.unlink()
            os.mkfifo(path)
        return real_open(name, flags, *args, **more)

    monkeypatch.setattr(os, "open", swapping)
    report = Snapshot(lambda data: None, NOWHERE, max_bytes=1 << 20, max_entries=10, exclude=[]).take([os.fsencode(path)])
    assert (report["entries"], report["skipped"]) == (0, [[str(path), "replaced while it was read"]])
