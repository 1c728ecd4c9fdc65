"""What the tests say of themselves (ctrf.json, Common Test Report Format): which failed and why. Shown, never scored.

The tests ran beside what the agent left, so nothing of the file is believed but as text of the agent's side.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from pydantic import JsonValue

MAX_TEXT = 400  # characters of a name or a reason
SKIPPED = frozenset({"passed", "skipped", "pending"})


class FailedTest(NamedTuple):
    """One test that did not pass."""

    name: str
    why: str  # "" where the report says nothing


def failed_tests(ctrf: bytes) -> list[FailedTest]:
    """Tests that neither passed nor were left out, in order; empty where the file holds no list of tests that makes sense."""
    try:
        report: JsonValue = json.loads(ctrf)
    except (ValueError, RecursionError):
        return []
    results = report.get("results") if isinstance(report, dict) else None
    tests = results.get("tests") if isinstance(results, dict) else None
    found = []
    for test in tests if isinstance(tests, list) else []:
        if isinstance(test, dict) and isinstance(test.get("name"), str) and test.get("status") not in SKIPPED:
            found.append(FailedTest(_line(test["name"]), _line(test.get("message") or test.get("trace") or "")))
    return found


def _line(value: JsonValue) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 2]} …"
