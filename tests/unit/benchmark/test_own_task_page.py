"""docs/your-own-task.md: its files are a task without a fault, and its script answers every message."""

from __future__ import annotations

from pathlib import Path

import pytest

from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.suite import check_task, load_suite
from tests.support.own_task import PAGE, write_own_task


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return write_own_task(tmp_path)


def test_the_page_is_short_and_has_all_files_of_a_task(mine: Path) -> None:
    assert len(PAGE.read_text().splitlines()) < 150
    assert {path.relative_to(mine).as_posix() for path in mine.rglob("*") if path.is_file()} == {
        "benchmark.toml", "shop-hours.yaml", *(f"tasks/shop-hours/{name}" for name in (
            "task.toml", "instruction.md", "environment/Dockerfile", "environment/app/hours.txt", "run/app/data/branch.txt",
            "tests/test.sh", "solution/solve.sh", "interaction/script.json", "interaction/oracle_contract.json",
        )),
    }  # fmt: skip


def test_its_suite_loads(mine: Path) -> None:
    suite = load_suite(mine)
    assert (suite.config.name, [task.name for task in suite.tasks]) == ("mine", ["shop-hours"])


def test_the_fault_it_shows_is_found_as_it_says(mine: Path) -> None:
    script = mine / "tasks/shop-hours/interaction/script.json"
    script.write_text(script.read_text().replace('"requirements": ["3"]', '"requirements": []'))
    _, problems = check_task(script.parents[1], load_catalogue())
    assert "".join(f"{problem}\n" for problem in problems) in PAGE.read_text()
    assert len(problems) == 2
