"""Fixtures of the conformance suite, and the table it prints."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from realcli_session.agents.terminus_wording import FOLDER_VARIABLE
from tests.integration.conformance.bench import Bench, start_bench
from tests.integration.conformance.cases import Begin
from tests.integration.conformance.drivers import Driver
from tests.integration.conformance.table import RESULTS, lines
from tests.support.terminus import words_folder


@pytest.fixture(autouse=True)
def _words(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of Terminus-2, which the session image holds."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(words_folder()))


@pytest.fixture
async def begin_for() -> AsyncIterator[Any]:
    """begin_for(driver) -> begin(script, **options) -> Bench. Everything is stopped after the test."""
    cleanup = contextlib.AsyncExitStack()
    root = Path(tempfile.mkdtemp(prefix="realcli-", dir="/var/tmp"))  # Codex makes no helper commands below /tmp
    cleanup.callback(shutil.rmtree, root, ignore_errors=True)

    def of(driver: Driver) -> Begin:
        async def begin(script: dict[str, Any], **options: Any) -> Bench:
            folder = Path(tempfile.mkdtemp(prefix="run-", dir=root))
            return await start_bench(cleanup, folder, driver, script, **options)

        return begin

    try:
        yield of
    finally:
        await cleanup.aclose()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not RESULTS:
        return
    terminalreporter.section("conformance")
    for line in lines():
        terminalreporter.write_line(line)
