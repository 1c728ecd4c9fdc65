"""The command line as a user meets it: its process's arguments in, exit status and both outputs out."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from realcli_cli import main as command_line


@pytest.fixture
def realcli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """`realcli …`: (exit status, standard output, standard error)."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["realcli", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            command_line.main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return run
