"""The report Job, killed at any write and run again: never half of one that looks whole, and the same bytes in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from realcli.storage import StorageConfig
from realcli.storage.local import PART, LocalStore
from realcli_judge.inputs import Inputs
from realcli_judge.reporting import write_report
from tests.support.sealed_sweep import SealedSweep


class Killed(BaseException):
    """Nothing that a program would catch."""


class Mortal(LocalStore):
    """Writes so many objects and is gone, with half a file of the next beside them."""

    def __init__(self, root: Path, writes: int) -> None:
        super().__init__(root)
        self.left = writes
        self.written: list[str] = []

    def put_once(self, key: str, data: bytes | Path) -> None:
        if not self.left:
            leftover = self._path(key).with_name(f"{PART}{len(self.written)}")
            leftover.parent.mkdir(parents=True, exist_ok=True)
            leftover.write_bytes(b"ha")
            raise Killed
        self.left -= 1
        super().put_once(key, data)
        self.written.append(key)


def reports(sweep: SealedSweep, writes: int = -1) -> list[str]:
    """Keys in the order in which they are written."""
    store = Mortal(sweep.directory, writes)
    try:
        write_report(Inputs(StorageConfig(bucket="evals"), store, sweep.root, sweep.lock, sweep.plan))  # the same addresses
    except Killed:
        assert len(store.written) == writes
    return store.written


def stored(sweep: SealedSweep) -> dict[str, bytes]:
    return {item.key: sweep.store.get(item.key) for item in sweep.store.list(f"{sweep.root}/reports/")}


@pytest.fixture(scope="module")
def undisturbed(judged_once: SealedSweep, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], dict[str, bytes]]:
    sweep = judged_once.copy(tmp_path_factory.mktemp("undisturbed") / "store")
    return reports(sweep), stored(sweep)


def killed_at(sweep: SealedSweep, writes: int, order: list[str]) -> None:
    reports(sweep, writes)
    there = set(stored(sweep))
    assert there == set(order[:writes])


def test_what_makes_a_report_whole_is_written_last(undisturbed: tuple[list[str], dict[str, bytes]]) -> None:
    order, whole = undisturbed
    assert set(order) == set(whole)
    assert [key.rpartition("/")[2] for key in order[-3:]] == ["index.html", "SHA256SUMS", "summary.json"]


def test_a_killed_report_is_no_report_and_is_finished_by_the_next(
    undisturbed: tuple[list[str], dict[str, bytes]], judged: SealedSweep
) -> None:
    """One kill after the other, each further on: at a trial's page, among the tables, before the list, before the summary."""
    order, whole = undisturbed
    for writes in (1, len(order) // 3, len(order) - 2, len(order) - 1):
        killed_at(judged, writes, order)
    assert reports(judged) == order
    assert stored(judged) == whole


@pytest.mark.slow
def test_killed_at_every_write(undisturbed: tuple[list[str], dict[str, bytes]], judged: SealedSweep) -> None:
    order, whole = undisturbed
    for writes in range(len(order)):
        killed_at(judged, writes, order)
    assert reports(judged) == order
    assert stored(judged) == whole
