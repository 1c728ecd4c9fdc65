"""An edit of the user's that the watch cannot see must not become the agent's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from realcli.ledger.writer import LedgerWriter
from realcli_session.evidence.watch import ChangeWatch
from realcli_session.runner.errors import FileMissing
from realcli_session.runner.port import ScanResult


class BlindRunner:
    """Sees nothing, and remembers where it was asked to look."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    async def scan(self, globs: Sequence[str], *, budget: float) -> ScanResult:
        self.asked.append(tuple(globs))
        return ScanResult((), True, None, ())


async def test_a_file_that_cannot_be_seen_is_an_error(tmp_path: Path) -> None:
    ledger, runner = LedgerWriter(tmp_path), BlindRunner()
    watch = ChangeWatch(runner, ledger, ["/app/**"])  # type: ignore[arg-type]
    await watch.start()
    with pytest.raises(FileMissing, match=r"/app/site\.ini"):
        await watch.rebase("/app/site.ini")
    assert runner.asked == [("/app/**",), ("/app/site.ini",)]
    ledger.close()
