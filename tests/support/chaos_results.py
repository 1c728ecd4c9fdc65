"""A pytest plugin that writes down what each test took and said, for the table of `hack/chaos/run.py`.

Used with ``-p tests.support.chaos_results``, REALCLI_CHAOS_RESULTS=<file>, _SEED and _MINUTES: one JSON object a line.
"""

from __future__ import annotations

import inspect
import json
import os
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

_ABOUT: dict[str, str] = {}
_SECONDS: defaultdict[str, float] = defaultdict(float)
_OUTCOME: dict[str, str] = {}
_WHY: defaultdict[str, str] = defaultdict(str)
WORSE = ["passed", "skipped", "failed"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        function = getattr(item, "function", None)
        _ABOUT[item.nodeid] = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ") if function else ""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _SECONDS[report.nodeid] += report.duration
    # what set-up or end of a test has found is a failure of it, too
    _OUTCOME[report.nodeid] = max(report.outcome, _OUTCOME.get(report.nodeid, "passed"), key=WORSE.index)
    if report.failed:
        _WHY[report.nodeid] += report.longreprtext[-4000:]
    if report.when == "teardown":
        row: dict[str, Any] = {
            "test": report.nodeid,
            "about": _ABOUT.get(report.nodeid, ""),
            "seconds": round(_SECONDS[report.nodeid], 1),
            "outcome": _OUTCOME[report.nodeid],
            "day": f"{datetime.now(UTC):%Y-%m-%d}",
            "seed": int(os.environ["REALCLI_CHAOS_SEED"]),
            "drawn": float(os.environ["REALCLI_CHAOS_MINUTES"]),
            "facts": {str(name): str(value) for name, value in report.user_properties},
        }
        if report.nodeid in _WHY:
            row["why"] = _WHY[report.nodeid]
        with Path(os.environ["REALCLI_CHAOS_RESULTS"]).open("a") as out:
            out.write(json.dumps(row) + "\n")
