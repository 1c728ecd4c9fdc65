from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

STARTER = Path(__file__).resolve().parents[3] / "benchmark/starter"


@pytest.fixture
def suite_dir(tmp_path: Path) -> Path:
    """A copy of the starter suite to spoil."""
    return Path(shutil.copytree(STARTER, tmp_path / "suite"))


@pytest.fixture
def change(suite_dir: Path) -> Callable[[str, str, str], None]:
    """Replace a text in a file of task site-settings."""

    def replace(name: str, old: str, new: str) -> None:
        path = suite_dir / "tasks/site-settings" / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return replace


@pytest.fixture
def change_script(suite_dir: Path) -> Callable[[Callable[[Any], None]], None]:
    """Change script.json of site-settings as a value."""

    def edit(work: Callable[[Any], None]) -> None:
        path = suite_dir / "tasks/site-settings/interaction/script.json"
        value = json.loads(path.read_text())
        work(value)
        path.write_text(json.dumps(value))

    return edit
