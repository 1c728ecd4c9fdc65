"""The page of `make chaos` says what ran, when, with which seed, what failed and what did not run."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FILE = Path(__file__).resolve().parents[3] / "hack" / "chaos" / "run.py"


@pytest.fixture(scope="module")
def run() -> ModuleType:
    spec = importlib.util.spec_from_file_location("chaos_run", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def row(test: str, outcome: str = "passed", day: str = "2026-01-02", seed: int = 1, **facts: str) -> dict[str, Any]:
    return {
        "test": f"tests/chaos/test_pods.py::test_{test}", "about": "A pod deleted. In each phase.", "seconds": 90.0,
        "outcome": outcome, "day": day, "seed": seed, "drawn": 20.0, "facts": facts,
    }  # fmt: skip


def page(run: ModuleType, rows: list[dict[str, Any]], *others: str) -> str:
    tests = [*(one["test"] for one in rows), *(f"tests/chaos/test_pods.py::test_{other}" for other in others)]
    return str(run.table([run.Section(run.PARTS[1], rows, tuple(tests))]))


def test_cases_are_one_fault_with_their_sum(run: ModuleType) -> None:
    text = page(run, [row("deleted[plan]", deleted="1", state="x"), row("deleted[work]", deleted="2", state="y")])
    assert "| **deleted**: A pod deleted | 2 | 3.0 | state x and y, 3 deleted | as expected |" in text
    assert "2026-01-02, seed 1, 20 minutes of what happens at random" in text
    assert 'make chaos CHAOS="--only back_and_forth"' in text
    assert "\n3.0 minutes.\n" in text
    assert "Not run" not in text


def test_what_failed_was_skipped_or_did_not_run_is_named(run: ModuleType) -> None:
    text = page(run, [row("deleted[plan]", "failed"), row("deleted[work]"), row("lost", "skipped")], "drained[plan]", "away")
    assert "| failed: plan |" in text
    assert "| 1 skipped |" in text
    assert "Not run: away, drained." in text


def test_a_part_without_rows_is_not_run(run: ModuleType) -> None:
    text = page(run, [], "away")
    assert "nothing was run" in text
    assert "\nNot run.\n" in text


def test_rows_of_several_runs_say_so(run: ModuleType) -> None:
    text = page(run, [row("a", day="2026-01-03", seed=7), row("b")])
    assert "2026-01-02 to 2026-01-03, seed 1, 7, 20 minutes" in text


def test_each_bug_report_is_a_fault_of_its_own(run: ModuleType) -> None:
    assert run.name_of("x.py::test_report[03-says-so]") == "report 03 says so"
    assert run.name_of("x.py::test_pod_deleted[plan-forced]") == "pod deleted"
