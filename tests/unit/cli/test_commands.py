"""The list of commands: what it says is what they say, and making it loads none of them."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest

from realcli_cli import main as command_line
from realcli_cli.lazy import HELP, load
from realcli_cli.main import GROUP, UserError


def test_the_list_says_what_the_commands_say() -> None:
    said = {point.name: load(point).help for point in entry_points(group=GROUP)}
    assert {name: " ".join(help.split("\n\n")[0].split()) for name, help in said.items()} == HELP


def test_listing_the_commands_loads_none_of_them() -> None:
    program = (
        "import sys; sys.argv = ['realcli', '--help']\n"
        "from realcli_cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('pydantic', 'numpy', 'boto3', 'yaml', 'realcli_session')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert all(name in done.stdout for name in HELP)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["scor"], "Did you mean 'score'?"),
        (["nothing-like-it"], "No such command 'nothing-like-it'"),
    ],
)
def test_a_mistyped_name(
    arguments: list[str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["realcli", *arguments])
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_a_command_whose_extra_is_missing_says_so_when_it_is_called() -> None:
    point = EntryPoint("audit", "a_module_nobody_has:app", GROUP)
    with pytest.raises(UserError, match=r"`realcli audit` needs a_module_nobody_has, which is not installed"):
        load(point).main(["--whatever", "x"], standalone_mode=False)


def test_an_error_shows_what_a_terminal_would_obey(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names in it are out of files that somebody else wrote."""
    run = {"configuration": "c", "task": "t", "mode": "COLLAB", "repeat": 1, "reward": 1, "valid": True}
    hostile = "x\x1b]0;title\x07\x9b31m\u202e"
    file = tmp_path / "runs.json"
    file.write_text(json.dumps({"tree": {"S": {"s": ["q"]}}, "runs": [{**run, "scenarios": {hostile: [1]}}]}))
    monkeypatch.setattr(sys, "argv", ["realcli", "score", str(file)])
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert r"runs[0].scenarios.x\u{1b}]0;title\u{7}\u{9b}31m\u{202e}: no scenario of the tree" in told
    assert told.removesuffix("\n").isprintable()
