"""The report Job and the tasks that it is told to leave out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.sealed_sweep import SealedSweep


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("[{", "REALCLI_WITHDRAWN is no list of tasks; the operator and this image must match"),
        ('[{"task":"beta","reason":"Tired"}]', "REALCLI_WITHDRAWN is no list of tasks"),
        ('[{"task":"gamma","reason":"VerifierFault"}]', "withdrawn are gamma, which the sweep does not have"),
    ],
)
def test_a_list_of_withdrawn_tasks_that_is_none_is_refused(judged: SealedSweep, job: Any, given: str, told: str) -> None:
    status, message = job("report", judged, REALCLI_WITHDRAWN=given)
    assert (status, message.result, message.reason) == (0, "Refused", "ConfigurationError")
    assert told in str(message.message)


def test_a_report_without_a_task_says_so_in_its_message(judged: SealedSweep, job: Any) -> None:
    given = '[{"task":"beta","reason":"VerifierFault","configurations":["claude-code.sonnet"]}]'
    status, message = job("report", judged, REALCLI_WITHDRAWN=given[:20], REALCLI_WITHDRAWN_2=given[20:])
    assert (status, message.reason) == (0, "Incomplete")
    assert str(message.message).endswith("1 of 2 groups judged; 1 task withdrawn, with 6 trials")
    again = job("report", judged)[1]
    assert again.uri != message.uri, "another report, under a name of its own"
