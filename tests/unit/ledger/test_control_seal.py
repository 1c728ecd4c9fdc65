"""`realcli ledger verify` holds a control's seal to its files, and leaves what a killed control pod left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from realcli.api.base import sha256_digest
from realcli.ledger.reader import StoreReader
from realcli.ledger.seals import ControlSeal, SealedObject, WorkSeal
from realcli.ledger.verify import verify_attempt
from tests.support.sealed_sweep import SealedSweep, write_sweep


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> SealedSweep:
    return write_sweep(tmp_path_factory.mktemp("control") / "store")


def findings(sweep: SealedSweep, ordinal: int) -> list[str]:
    root = sweep.paths.attempt(ordinal, 1).root
    return [str(finding) for finding in verify_attempt(StoreReader(sweep.store, root), root).findings]


def sealed_control(sweep: SealedSweep, ordinal: int, number: int = 1, **changes: Any) -> None:
    paths = sweep.paths.attempt(ordinal, 1)
    work = WorkSeal.model_validate_json(sweep.store.get(paths.work_seal))
    verdict = b'{"passed":true}'
    covered = SealedObject(path="verdict.json", sha256=sha256_digest(verdict).removeprefix("sha256:"), size=len(verdict))
    values: dict[str, Any] = {
        "trial": work.trial, "control": number, "run": "sha256:" + "0" * 64, "passed": True, "verifier_version": "1",
        "image": "task:1", "objects": [covered],
    }  # fmt: skip
    sweep.store.put_once(paths.control(1).verdict, verdict)
    sweep.store.put_once(paths.control(1).seal, ControlSeal(**(values | changes)).seal())


def whole(sweep: SealedSweep) -> int:
    return next(m.ordinal for m in sweep.members.values() if m.attempt == 1 and m.work_seal is not None)


def test_a_sealed_control_is_whole(sealed: SealedSweep, tmp_path: Path) -> None:
    sweep = sealed.copy(tmp_path / "store")
    sealed_control(sweep, whole(sweep))
    assert findings(sweep, whole(sweep)) == []


def test_a_control_that_was_killed_breaks_nothing(sealed: SealedSweep, tmp_path: Path) -> None:
    sweep = sealed.copy(tmp_path / "store")
    sweep.store.put_once(sweep.paths.attempt(whole(sweep), 1).control(1).run, b"{}")
    assert findings(sweep, whole(sweep)) == []


@pytest.mark.parametrize("what", ["another number", "another attempt", "a file that is not sealed", "a changed file"])
def test_a_control_that_is_not_what_it_says_is_found(sealed: SealedSweep, tmp_path: Path, what: str) -> None:
    sweep = sealed.copy(tmp_path / "store")
    ordinal = whole(sweep)
    folder = sweep.directory / sweep.paths.attempt(ordinal, 1).control(1).root
    work = WorkSeal.model_validate_json(sweep.store.get(sweep.paths.attempt(ordinal, 1).work_seal))
    changes = {
        "another number": {"control": 2},
        "another attempt": {"trial": work.trial.model_copy(update={"attempt": 9})},
    }.get(what, {})
    sealed_control(sweep, ordinal, **changes)
    if what == "a file that is not sealed":
        (folder / "more.txt").write_text("more")
    if what == "a changed file":
        (folder / "verdict.json").write_text("{}")
    assert len(findings(sweep, ordinal)) == 1
