"""A pytest plugin that writes down what each test took and said, for the table of `hack/chaos/run.py`.

Used with ``-p tests.support.chaos_results`` and REALCLI_CHAOS_RESULTS=<file>: one JSON object a line.
"""

from __future__ import annotations

import inspect
import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

_ABOUT: dict[str, str] = {}
_SECONDS: defaultdict[str, float] = defaultdict(float)
_OUTCOME: dict[str, str] = {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        function = getattr(item, "function", None)
        _ABOUT[item.nodeid] = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ") if function else ""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _SECONDS[report.nodeid] += report.duration
    if report.when == "call" or report.outcome != "passed":
        _OUTCOME[report.nodeid] = report.outcome if report.when == "call" else _OUTCOME.get(report.nodeid, report.outcome)
    if report.when == "teardown":
        row = {
            "test": report.nodeid,
            "about": _ABOUT.get(report.nodeid, ""),
            "seconds": round(_SECONDS[report.nodeid], 1),
            "outcome": _OUTCOME.get(report.nodeid, report.outcome),
            "facts": {str(name): str(value) for name, value in report.user_properties},
        }
        with Path(os.environ["REALCLI_CHAOS_RESULTS"]).open("a") as out:
            out.write(json.dumps(row) + "\n")
