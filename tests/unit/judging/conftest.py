"""A small run with one scenario."""

from __future__ import annotations

import pytest

from realcli.judging.run import Run
from tests.support.judged_runs import ledger, run_of


@pytest.fixture
def run() -> Run:
    return run_of(ledger(), files={"/app/a.py": b"def parse():\n    return 1\n"})
