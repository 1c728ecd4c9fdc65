"""What is measured beside the audit: when a killed operator decides again, how late statuses are, what a script has done."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bench.operator.measure import first_write, of_latencies
from bench.operator.traces import Request, ScriptFound, script_found, steady
from bench.operator.usage import cpu, most_memory


def asked(what: str, at: float, user: str = "operator", *, name: str = "x", code: int = 200, took: float = 0.25) -> Request:
    verb, resource = what.split()
    return Request(user, verb, resource, name, code, at + took, at, "/")


def test_a_killed_operator_decides_again_with_its_first_write_after_its_lists() -> None:
    log = [
        asked("create pods", 9.9, took=5.0),  # of the killed one: received before, answered long after
        asked("list trials", 9.0),
        asked("create pods", 10.1),  # of the killed one: it lay in the server's socket
        asked("list pods", 12.0),
        asked("create pods", 12.5, "stand-in"),
        asked("list trials", 13.0),
        asked("patch trials/status", 13.5, code=409),
        asked("patch trials/status", 14.0),
        asked("create pods", 13.9),
    ]
    assert first_write(log, 10.0) == 4.15
    with pytest.raises(RuntimeError, match="wrote nothing after its second start"):
        first_write(log[:-2], 10.0)
    with pytest.raises(RuntimeError, match="wrote nothing after its second start"):
        first_write(log[:3], 10.0)


def test_percentiles_are_over_all_pods_and_those_unseen_are_told(tmp_path: Path) -> None:
    path = tmp_path / "latencies.jsonl"
    path.write_text("".join(json.dumps({"seconds": second / 100}) + "\n" for second in reversed(range(200))))
    assert of_latencies(path, 202) == {"pods": 200, "unseen": 2, "median": 1.0, "p90": 1.8, "p99": 1.98, "max": 1.99}
    path.write_text("")
    with pytest.raises(RuntimeError, match="has seen no Trial"):
        of_latencies(path, 2)


def jobs_run() -> tuple[list[Request], list[dict[str, Any]]]:
    """Two Jobs, one after the other."""
    log, journal = [asked("create pods", 0.0, "stand-in")], []
    for number in range(2):
        begin = 10.0 * number
        log += [
            asked("create jobs", begin + 1, "jobs", name=f"j{number}"),
            asked("create pods", begin + 2, "controller-manager", name=""),
            asked("update jobs/status", begin + 3, "controller-manager", name=f"j{number}"),
            asked("patch pods/status", begin + 4, "stand-in"),
            asked("update jobs/status", begin + 5, "controller-manager", name=f"j{number}"),
            asked("delete jobs", begin + 6, "jobs", name=f"j{number}"),
        ]
        journal.append({"pod": f"j{number}-x", "role": "work", "at": begin + 4})
    return log, journal


def found_of(log: list[Request], journal: list[dict[str, Any]]) -> ScriptFound:
    return script_found(log, journal, 2, jobs=True)


def test_plain_jobs_take_from_their_first_pod_to_their_last_status() -> None:
    found = found_of(*jobs_run())
    assert (found.findings, found.first, found.last) == ([], 2.25, 15.25)
    assert found.writes_of_all == {"stand-in": 3, "jobs": 4, "controller-manager": 6}


@pytest.mark.parametrize(("at", "meanwhile"), [(15.0, 1), (16.0, 0)])
def test_pods_that_judge_do_not_make_a_run_longer_and_count_while_trials_run(at: float, meanwhile: int) -> None:
    log, journal = jobs_run()
    log += [
        asked("create jobs", 14.0, "jobs", name="g-judge"),
        asked("create pods", 14.0, "controller-manager", name=""),
        asked("update jobs/status", 20.0, "controller-manager", name="g-judge"),
    ]
    journal.append({"pod": "g-judge-x", "role": "judge", "at": at})
    found = script_found(log, journal, 3, jobs=True)
    assert (found.findings, found.last, found.judged_meanwhile) == ([], 15.25, meanwhile)


def test_bare_pods_take_from_the_first_to_the_end_of_the_last() -> None:
    log = [request for request in jobs_run()[0] if request.user == "stand-in"]
    log += [asked("create pods", at, "jobs", name=f"p{at}") for at in (3.0, 6.0)]
    journal = [{"pod": "p3.0", "role": "work", "at": 4.0}, {"pod": "p6.0", "role": "verify", "at": 14.0}]
    found = script_found(log, journal, 2, jobs=False)
    assert (found.findings, found.first, found.last) == ([], 3.25, 14.25)


@pytest.mark.parametrize(
    ("more", "journal", "said"),
    [
        ([asked("create jobs", 20.0, "jobs", name="j1")], [], "j1 was created 2 times"),
        ([asked("create jobs", 20.0, "jobs", name="j2")], [], "3 Jobs were asked for, 2 should have been"),
        ([asked("create pods", 20.0, "controller-manager")], [], "3 pods were created, 2 should have been"),
        ([], [{"pod": "j0-y", "role": "work", "at": 4.0}], "3 pods ended, 2 should have been"),
    ],
)
def test_a_script_whose_run_is_not_whole_is_found(more: list[Request], journal: list[dict[str, Any]], said: str) -> None:
    log, ended = jobs_run()
    assert said in found_of([*log, *more], [*ended, *journal]).findings


def test_what_was_refused_is_not_made() -> None:
    log, ended = jobs_run()
    log += [
        asked("create jobs", 20.0, "jobs", name="j1", code=409),
        asked("update jobs/status", 30.0, "controller-manager", code=409),
    ]
    assert found_of(log, ended).last == 15.25
    assert found_of(log, ended).findings == []


def test_a_process_that_is_gone_has_used_nothing_that_is_known() -> None:
    assert cpu(os.getpid()) > 0
    assert most_memory(os.getpid()) > 1
    with pytest.raises(FileNotFoundError):
        cpu(2**22 + 1)


def test_the_pace_of_a_full_window_leaves_out_its_filling_and_emptying() -> None:
    verified = [0.0, 50.0, *(100.0 + 6 * number for number in range(7)), 500.0]  # the middle: 100 to 136
    journal: list[dict[str, Any]] = [{"role": "verify", "at": at} for at in verified]
    journal += [{"role": role, "at": at} for role, at in (("work", 99.0), ("work", 101.0), ("judge", 136.0), ("judge", 137.0))]
    assert steady(journal) == 60 * (6 + 2) / 36
