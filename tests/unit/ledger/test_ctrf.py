import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli.ledger.ctrf import MAX_TEXT, FailedTest, failed_tests


def report(*tests: Any) -> bytes:
    return json.dumps({"results": {"tests": list(tests)}}).encode()


def test_failed_tests_are_named_with_their_reason() -> None:
    found = failed_tests(
        report(
            {"name": "reads", "status": "passed"},
            {"name": "writes", "status": "failed", "message": "expected 3\n found 4"},
            {"name": "left out", "status": "skipped"},
            {"name": "odd", "status": "other", "trace": "Traceback"},
            {"name": "silent", "status": "failed"},
        )
    )
    assert found == [FailedTest("writes", "expected 3 found 4"), FailedTest("odd", "Traceback"), FailedTest("silent", "")]


def test_long_texts_are_cut() -> None:
    (found,) = failed_tests(report({"name": "n", "status": "failed", "message": "x" * 10_000}))
    assert len(found.why) == MAX_TEXT


@pytest.mark.parametrize("bad", [b"", b"[" * 100_000, b"[]", b'{"results": []}', b'{"results": {"tests": {"name": 1}}}', b"\xff"])
def test_what_is_no_report_says_nothing(bad: bytes) -> None:
    assert failed_tests(bad) == []


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_no_list_of_tests_breaks_it(value: Any) -> None:
    assert isinstance(failed_tests(report(value)), list)
