"""The line that says how far a judge has come."""

from __future__ import annotations

import io

import pytest

from realcli_cli.progress import Progress
from realcli_judge.asking import in_threads


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def failing() -> int:
    raise OSError("the endpoint is gone")


def test_one_line_a_wave_where_nobody_looks() -> None:
    out = io.StringIO()
    pool = Progress(in_threads, 2, out)
    assert pool([]) == []
    assert pool([lambda: 1, lambda: 2, lambda: 3]) == [1, 2, 3]
    assert pool([lambda: 4]) == [4]
    assert out.getvalue().splitlines() == ["vote 1 of 2: 3 of 3 sessions", "vote 2 of 2: 1 of 1 sessions"]


def test_a_line_that_is_written_over_on_a_terminal() -> None:
    out = Terminal()
    Progress(in_threads, 1, out)([lambda: 1, lambda: 2])
    shown = out.getvalue()
    assert shown.endswith("claims: 2 of 2 sessions\n")
    assert shown.count("\n") == 1
    assert "claims: 1 of 2 sessions" in shown


def test_where_the_endpoint_gave_up_it_says_how_far_it_came() -> None:
    out = io.StringIO()
    pool = Progress(lambda jobs: [job() for job in jobs], 1, out)
    with pytest.raises(OSError, match="gone"):
        pool([lambda: 1, failing, lambda: 3])
    assert out.getvalue() == "claims: 1 of 3 sessions\n"
