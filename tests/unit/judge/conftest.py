"""Finished sweeps in a directory, and the Jobs run as their pods run them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from realcli.api.termination import Termination, parse_termination
from realcli_judge.__main__ import main
from tests.support.sealed_sweep import SealedSweep, write_sweep

Job = Callable[..., tuple[int, Termination]]


def run_job(log: Path, name: str, sweep: SealedSweep, group: int | None = None, **environ: str) -> tuple[int, Termination]:
    """Exit status and termination message of `judge` (with a group) or `report`."""
    status = main([name, "--root", sweep.root, "--lock-digest", sweep.lock_digest], {**sweep.environ(group, log), **environ})
    message = parse_termination(log.read_text())
    assert message is not None
    return status, message


@pytest.fixture(scope="session")
def sealed_once(tmp_path_factory: pytest.TempPathFactory) -> SealedSweep:
    return write_sweep(tmp_path_factory.mktemp("sealed") / "store")


@pytest.fixture(scope="session")
def judged_once(sealed_once: SealedSweep, tmp_path_factory: pytest.TempPathFactory) -> SealedSweep:
    folder = tmp_path_factory.mktemp("judged")
    sweep = sealed_once.copy(folder / "store")
    for group in range(sweep.plan.groups):
        assert run_job(folder / "log", "judge", sweep, group)[1].result == "Judged"
    return sweep


@pytest.fixture
def sweep(sealed_once: SealedSweep, tmp_path: Path) -> SealedSweep:
    return sealed_once.copy(tmp_path / "store")


@pytest.fixture
def judged(judged_once: SealedSweep, tmp_path: Path) -> SealedSweep:
    return judged_once.copy(tmp_path / "store")


@pytest.fixture(scope="session")
def job_in() -> Callable[[Path], Job]:
    """A `job` of its own for fixtures that tests share, by a folder."""
    return lambda folder: partial(run_job, folder / "termination-log")


@pytest.fixture
def job(tmp_path: Path, job_in: Callable[[Path], Job]) -> Job:
    """`job("judge", sweep, group)` or `job("report", sweep)`."""
    return job_in(tmp_path)
