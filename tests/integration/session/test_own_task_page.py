"""The task of docs/your-own-task.md is run as the page says, by every agent it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from realcli.api.termination import Result
from realcli.ledger.events import ProbeDelivered
from realcli_cli.local.programs import agent_folder
from realcli_cli.local.provider import scripted_provider
from tests.integration.session.harness import KEY, plan_sweep
from tests.support.own_task import write_own_task
from tests.support.terminus import words_folder

pytestmark = pytest.mark.slow
CASES: list[tuple[str, Any]] = [
    ("claude-code", "COLLAB"), ("claude-code", "EXEC"), ("codex", "COLLAB"), ("terminus-2", "COLLAB"), ("terminus-2", "EXEC"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "mode"), CASES)
def test_it_ends_as_the_page_says(tmp_path: Path, toolkit: Path, program: str, mode: Any) -> None:
    mine = write_own_task(tmp_path)
    words = {"REALCLI_TERMINUS_TEMPLATES": str(words_folder())} if program == "terminus-2" else {}
    with scripted_provider(mine / "shop-hours.yaml", key=KEY) as provider:
        sweep = plan_sweep(
            tmp_path / "store", mine, provider.url, toolkit, agent_folder(program, None), program=program, environment=words
        )
        ordinal = sweep.ordinal("shop-hours", mode)
        worked = sweep.work(ordinal)
    assert worked.termination is not None, worked.stderr
    assert (worked.termination.result, worked.termination.reason) == (Result.WORK_SEALED, "Completed"), worked.stderr
    verified = sweep.verify(ordinal)
    assert verified.termination is not None, verified.stderr
    logs = (sweep.place(ordinal) / "verify-1" / "logs.txt").read_text()
    assert (verified.termination.reward, logs) == ("1", ""), verified.stderr
    delivered = [event.kind for event in sweep.events(ordinal) if event.kind == ProbeDelivered.kind]
    assert len(delivered) == (mode == "COLLAB")
