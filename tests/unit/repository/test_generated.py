"""Files that are written from what the programs use."""

from __future__ import annotations

from pathlib import Path

import pytest

from realcli.generated import generate, table_header, table_row


def run(folder: Path, what: str, **files: str) -> int:
    return generate("realcli.some", "the tables", lambda: files, [what, "--under", str(folder)])


def test_what_is_gone_or_changed_is_named_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"docs/a.md": "a\n", "docs/b.md": "é\n"}
    assert run(tmp_path, "--check", **files) == 1
    assert capsys.readouterr().err == (
        f"{tmp_path}/docs/a.md, {tmp_path}/docs/b.md: not what would be written from the tables; "
        "run python -m realcli.some --write\n"
    )
    assert (run(tmp_path, "--write", **files), run(tmp_path, "--check", **files)) == (0, 0)
    (tmp_path / "docs" / "b.md").write_text("b\n")
    assert run(tmp_path, "--check", **files) == 1
    assert "a.md" not in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--write", "--check"], ["--nothing"]])
def test_one_of_both_is_asked_for(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        generate("realcli.some", "the tables", dict, arguments)
    assert ended.value.code == 2


def test_a_bar_in_a_cell_is_text() -> None:
    assert table_header("a", ["b"]) == ["| a | b |", "|---|---|"]
    assert table_row("a|b", ["c"]) == "| a\\|b | c |"
