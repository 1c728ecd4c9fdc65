"""`realcli score` as a person calls it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from realcli_cli.main import UserError
from realcli_cli.score import HEAD, Form, read, score

RUN = {"configuration": "c", "task": "t", "mode": "COLLAB", "repeat": 1, "reward": 1, "valid": True, "scenarios": {"q": [1]}}
DOCUMENT = {"threshold": [3, 4], "tree": {"U": {"u": ["q"]}}, "runs": [RUN]}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(DOCUMENT))
    return path


def test_prints_json_alone(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    score(file)
    printed = capsys.readouterr()
    assert printed.err == ""
    assert json.loads(printed.out)["configurations"]["c"]["J"] == {"exact": "1", "value": 1.0}
    score(file, intervals=True)
    assert json.loads(capsys.readouterr().out)["intervals"]["configurations"]["c"]["scores"]["J"] == {"low": 1.0, "high": 1.0}


def test_a_table_for_people(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exec_ = {**RUN, "mode": "EXEC", "scenarios": {}}
    other = [{**one, "configuration": "other \x1b[31m", "reward": 0} for one in (RUN, exec_)]
    unseen = {**RUN, "configuration": "unseen", "valid": False, "scenarios": {}}
    file.write_text(json.dumps({**DOCUMENT, "runs": [RUN, exec_, *other, unseen]}))
    score(file, form=Form.TEXT)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["configuration", *HEAD]
    assert lines[1].split() == ["c", "1.000", "1.000", "0.000", "1.000~", "1.000", "1.000", "1.000", "0.000", "2", "0"]
    assert lines[2].split()[-10:] == ["0.000", "0.000", "0.000", "1.000~", "1.000", "1.000", "0.000", "0.000", "2", "0"]
    assert lines[3].split() == ["unseen", *["-"] * 8, "0", "1"]
    assert "\x1b" not in "".join(lines)
    assert [line[0] for line in lines[4:]] == ["~", "-"]
    score(file, intervals=True, form=Form.TEXT)
    assert "  J         95 % 1.000 to 1.000" in capsys.readouterr().out.splitlines()


def test_names_that_a_terminal_would_obey_are_escaped_in_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "\u540d\u524d\x9b31m\u202e\U000e0041\x1b]0;x\x07"
    file.write_text(json.dumps({**DOCUMENT, "runs": [{**RUN, "configuration": name}]}))
    score(file)
    printed = capsys.readouterr().out
    assert all(line.isprintable() for line in printed.splitlines())
    assert list(json.loads(printed)["configurations"]) == [name]
    assert "\u540d\u524d" in printed


def test_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(DOCUMENT).encode())))
    score(Path("-"))
    assert json.loads(capsys.readouterr().out)["configurations"]["c"]["S"]["exact"] == "1"


def test_errors_name_the_file(tmp_path: Path, file: Path) -> None:
    with pytest.raises(UserError, match=r"none\.json: No such file or directory; expected a JSON or YAML file"):
        read(tmp_path / "none.json")
    file.write_text(json.dumps({**DOCUMENT, "runs": [{**RUN, "valid": "yes"}]}))
    with pytest.raises(UserError, match=r"runs\.json: runs\[0\]\.valid: expected true or false, found 'yes'"):
        read(file)


def test_from_the_shell(file: Path) -> None:
    command = [sys.executable, "-c", "from realcli_cli.main import main; main()", "score"]
    done = subprocess.run([*command, str(file)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["configurations"]["c"]["headline"] == "S_rate"
    file.write_text("[]")
    failed = subprocess.run([*command, str(file)], capture_output=True, text=True, check=False)
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr.startswith(f"realcli: {file}: the document: expected a mapping")


def test_the_example_of_the_page_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[3] / "docs" / "scores.md").read_text()
    (tmp_path / "runs.yaml").write_text(page.split("```yaml\n")[1].split("```")[0])
    score(tmp_path / "runs.yaml")
    got = json.loads(capsys.readouterr().out)["configurations"]["codex-a"]
    assert (got["R_exec"]["exact"], got["R_collab"]["exact"], got["S_rate"]["exact"]) == ("1", "0", "0")
