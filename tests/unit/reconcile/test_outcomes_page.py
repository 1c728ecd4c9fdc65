"""docs/outcomes.md says what the tables say."""

from __future__ import annotations

from pathlib import Path

import pytest

from realcli.api.outcomes import OUTCOMES, Phase
from realcli_operator.outcomes_page import PAGE, main, page
from realcli_operator.reconcile.endrows import ROWS

ROOT = Path(__file__).resolve().parents[3]


def test_the_page_in_the_repository_is_up_to_date(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", "--under", str(ROOT)]) == 0
    assert main(["--check", "--under", str(tmp_path)]) == 1
    assert "run python -m realcli_operator.outcomes_page --write" in capsys.readouterr().err
    assert main(["--write", "--under", str(tmp_path)]) == 0
    assert (tmp_path / PAGE).read_text() == (ROOT / PAGE).read_text()


def test_every_phase_reason_and_row_is_on_it_once() -> None:
    lines = page().splitlines()
    for phase in Phase:
        assert sum(line.startswith(f"| `{phase}` |") for line in lines) == 1
    for outcome in OUTCOMES:
        assert sum(line.startswith(f"| `{outcome.reason}` |") for line in lines) == 1
    for row in ROWS:
        assert sum(line.startswith(f"| {row.name} |") for line in lines) == 1
