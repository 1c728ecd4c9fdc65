"""An agent program that ends while the kernel refuses new processes ended by the process limit."""

from __future__ import annotations

from typing import Any

import pytest

from realcli.wire.protocol import ErrorCode
from realcli_session.phases.pids import PLACES, explained
from realcli_session.phases.table import Cause
from realcli_session.runner.errors import FileMissing, RunnerLost

EXIT = (Cause.AGENT_EXIT, "the agent program ended with exit status 1")
V2, V1 = PLACES


class Files:
    """A runner of which only files are asked."""

    def __init__(self, files: dict[str, bytes] | None) -> None:
        self._files = files

    async def get_file(self, path: str, *, limit: int = 0) -> bytes:
        if self._files is None:
            raise RunnerLost("gone")
        if path not in self._files:
            raise FileMissing(ErrorCode.NOT_FOUND, path)
        return self._files[path]


CASES: list[tuple[dict[str, bytes] | None, Cause]] = [
    ({V2: b"max 3\n"}, Cause.PID_LIMIT),
    ({V1: b"max 1\n"}, Cause.PID_LIMIT),
    ({V2: b"max 0\n"}, Cause.AGENT_EXIT),
    ({V2: b"\xffnonsense"}, Cause.AGENT_EXIT),
    ({}, Cause.AGENT_EXIT),
    (None, Cause.AGENT_EXIT),
]


@pytest.mark.parametrize(("files", "cause"), CASES)
async def test_only_refused_forks_explain_an_exit(files: dict[str, bytes] | None, cause: Cause) -> None:
    runner: Any = Files(files)
    found, detail = await explained(runner, EXIT)
    assert found is cause
    assert "exit status 1" in detail


async def test_other_ends_are_not_explained_away() -> None:
    runner: Any = Files({V2: b"max 9\n"})
    assert await explained(runner, (Cause.COMPLETED, "")) == (Cause.COMPLETED, "")
