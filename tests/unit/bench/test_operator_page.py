"""What the page about the operator says is what the raw results say, of the newest of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import run
from bench.operator import page
from bench.operator.page import newest, section

Json = dict[str, Any]
LIMITS = {"operator": {"REALCLI_WORKERS": 64}}
MACHINE = {"date": "2026-12-01", "cpu": "Abacus", "cores": 2, "memory": "4 GiB", "kernel": "6", "python": "3.11"}


def result(kind: str, what: str, stamp: int, trials: int = 1_980, **more: Any) -> Json:
    """A raw result; the sweep makes 1,800 pods a minute while the window is full."""
    own = {
        "kind": kind, "code": "abc", "session": "S", "command": "make bench-operator", "machine": MACHINE, "what": what,
        "date": "2026-12-01T10:00:00+00:00", "trials": trials, "groups": trials // 6, "parallelism": 1000, "nodes": 20,
        "podSeconds": {"work": 4.0}, "limits": LIMITS, "trialsPerMinute": 900.0, "podsPerMinute": 1600.0,
        "steadyPodsPerMinute": 1800.0, "completeSeconds": 100.0,
        "use": {"cpuSeconds": {"etcd": 30.0, "operator": 10.0}, "share": {"etcd": 0.75, "operator": 0.25}, "othersSeconds": 10.0},
        "cpuPerPodMs": 50.0, "file": f"{stamp:02d}-{kind}-{what}-{trials}.json",
    }  # fmt: skip
    if what == "sweep":
        audit = {
            "writes_per_trial": 8.0, "all_writes_per_trial": 8.2, "reads_per_trial": 0.0, "numberOfFindings": 0,
            "lists": {"list pods": 7, "list trials": 4}, "writes_of_all": {"operator": 38_610},
        }  # fmt: skip
        own |= {
            "state": "Complete", "operatorMiB": 160.0, "operatorCPUPerTrialMs": 14.0, "audit": audit,
            "kill": None, "latency": None,
        }  # fmt: skip
    else:
        own |= {"writesPerPod": 13.6}
    return own | more


def pair(number: int, jobs: float, stamp: int, session: str = "S", **more: Any) -> list[Json]:
    """A sweep and plain Jobs that make ``jobs`` pods a minute."""
    key: Json = {"pair": f"{session}-{number}", "session": session}
    theirs: Json = {"podsPerMinute": jobs, "steadyPodsPerMinute": jobs, "cpuPerPodMs": 80.0}
    return [
        result("pair", "sweep", stamp, **key, **more),
        result("pair", "jobs", stamp + 1, **key, **theirs),
    ]


def everything() -> list[Json]:
    kill = {"firstWriteAfterSeconds": 4.5, "sealed": 1000, "created": 1980, "startedAt": 0.0}
    late = {"pods": 3960, "unseen": 0, "median": 0.05, "p90": 0.1, "p99": 0.9, "max": 1.5}
    return [
        result("full", "sweep", 1, 19_998, operatorCPUPerTrialMs=15.4),
        *pair(0, 1000.0, 2),
        *pair(1, 1200.0, 4),
        *pair(2, 1125.0, 6),
        result("kill", "sweep", 8, kill=kill, operatorCPUPerTrialMs=99.0),
        {
            "kind": "burst",
            "what": "burst",
            "code": "abc",
            "session": "S",
            "command": "make bench-operator",
            "machine": MACHINE,
            "date": "2026-12-01T10:00:00+00:00",
            "trials": 20_000,
            "parallelism": 20_000,
            "file": "08-burst.json",
            "figures": {"last status after last update s": 8.04, "updates/s": 149.2},
        },
        result("latency", "sweep", 9, latency=late, trialsPerMinute=270.0, parallelism=100, podSeconds={"work": 10.0}),
    ]


def _of(found: list[Json], kind: str) -> Json:
    return next(one for one in found if one["kind"] == kind)


def promised(found: list[Json]) -> dict[str, tuple[str, str]]:
    """Words before the colon → measured, kept."""
    lines = section(found).partition("| promised")[2].partition("###")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return {what.partition(":")[0]: (value, kept) for what, value, kept in cells}


def test_promises_are_held_against_the_results() -> None:
    assert promised(everything()) == {
        "19,998 trials": ("0 findings, Complete", "yes"),
        "pods per minute beside plain Jobs": ("median **1.60**, 1.50 to 1.80 in 3 pairs (the whole runs: 1.42)", "yes"),
        "writes per trial": ("8.00", "yes"),
        "reads per trial": ("0.00", "yes"),
        "memory of the operator": ("160.0 MiB", "yes"),
        "linear from 2,000 to 20,000": ("15.4 ms beside 14.0 ms, 1.10 times", "yes"),
        "from a pod's end to its status at 30% of saturation": ("p99 0.9 s at 30%", "yes"),
        "killed with -9 in the middle": ("4.5 s", "yes"),
        "20,000 pod updates as fast as the API server takes them (watch layer alone)": (
            "all; the last status 8.0 s after the last update, 149 updates/s",
            "yes",
        ),
    }


def _findings(found: list[Json]) -> None:
    found[0]["audit"]["numberOfFindings"] = 3


def _slow(found: list[Json]) -> None:
    for one in found:
        if one["what"] == "jobs":
            one["steadyPodsPerMinute"] = 1300.0


def _writes(found: list[Json]) -> None:
    found[1]["audit"]["writes_per_trial"] = 8.01


def _reads(found: list[Json]) -> None:
    found[1]["audit"]["reads_per_trial"] = 0.01


def _memory(found: list[Json]) -> None:
    found[0]["operatorMiB"] = 300.5


def _bent(found: list[Json]) -> None:
    found[0]["operatorCPUPerTrialMs"] = 20.0


def _late(found: list[Json]) -> None:
    found[-1]["latency"]["p99"] = 2.1


def _unseen(found: list[Json]) -> None:
    found[-1]["latency"]["unseen"] = 1


def _idle(found: list[Json]) -> None:
    found[-1]["trialsPerMinute"] = 90.0


def _long_dead(found: list[Json]) -> None:
    _of(found, "kill")["kill"]["firstWriteAfterSeconds"] = 31.0


@pytest.mark.parametrize(
    ("happened", "what", "value"),
    [
        (_findings, "19,998 trials", "3 findings, Complete"),
        (_slow, "pods per minute beside plain Jobs", "median **1.38**, 1.38 to 1.38 in 3 pairs (the whole runs: 1.42)"),
        (_writes, "writes per trial", "8.01"),
        (_reads, "reads per trial", "0.01"),
        (_memory, "memory of the operator", "300.5 MiB"),
        (_bent, "linear from 2,000 to 20,000", "20.0 ms beside 14.0 ms, 1.43 times"),
        (_late, "from a pod's end to its status at 30% of saturation", "p99 2.1 s at 30%"),
        (_unseen, "from a pod's end to its status at 30% of saturation", "p99 0.9 s at 30%, 1 pods unseen"),
        (_idle, "from a pod's end to its status at 30% of saturation", "p99 0.9 s at 10%"),
        (_long_dead, "killed with -9 in the middle", "31.0 s"),
    ],
)
def test_a_promise_that_is_not_kept_is_said_so(happened: Any, what: str, value: str) -> None:
    found = everything()
    happened(found)
    rows = promised(found)
    assert rows[what] == (value, "**no**")
    assert [kept for name, (_, kept) in rows.items() if name != what] == ["yes"] * 8


def test_what_was_not_measured_is_not_kept() -> None:
    rows = promised([result("single", "sweep", 1, 198)])
    assert {name for name, (value, kept) in rows.items() if (value, kept) == ("", "not measured")} == {
        "19,998 trials", "pods per minute beside plain Jobs", "linear from 2,000 to 20,000", "killed with -9 in the middle",
        "from a pod's end to its status at 30% of saturation",
        "20,000 pod updates as fast as the API server takes them (watch layer alone)",
    }  # fmt: skip


def test_writes_of_a_run_in_which_something_goes_wrong_are_told_and_held_against_nothing() -> None:
    found = everything()
    _of(found, "kill")["audit"]["writes_per_trial"] = 8.3
    assert promised(found)["writes per trial"] == ("8.00", "yes")
    assert "| 8.30 (8.20 with Jobs and the sweep's)" in section(found)


def test_of_the_same_measurement_the_newest_is_shown() -> None:
    old, new = result("full", "sweep", 1, 19_998, code="old"), result("full", "sweep", 9, 19_998, code="new")
    assert newest([old, new]) == [new]
    before, after = pair(0, 1000.0, 2, "A"), pair(0, 900.0, 5, "B")
    assert newest([*before, *after]) == after
    assert newest([*before, after[0]]) == before, "a sweep without its Jobs is no pair"
    assert newest([*before, *pair(0, 900.0, 5, "B"), *pair(1, 900.0, 7, "B")[:1]]) == after


def test_pairs_are_those_that_were_measured_together() -> None:
    one, two = pair(0, 900.0, 1), pair(1, 1800.0, 3)
    shown = section([two[1], one[0], one[1], two[0]])
    assert "median **1.50**, 1.00 to 2.00 in 2 pairs" in shown
    with pytest.raises(ValueError, match="parallelism is 500 and 1000, so they are no pair"):
        section(pair(0, 900.0, 1, parallelism=500))


def test_a_script_has_its_share_of_the_cpu_and_its_limits_beside_it() -> None:
    found = everything()
    for one in found:
        if one["what"] == "jobs":
            one["use"] = {**one["use"], "share": {"etcd": 0.9, "script": 0.1}}
    shown = section(found)
    assert "| share of the CPU | etcd | operator | script |" in shown
    assert "| sweeps | 75 % | 25 % |  |" in shown
    assert "| plain Jobs | 90 % |  | 10 % |" in shown
    assert "* full, pair, kill: pods run work 4 s " in shown
    assert "* latency: pods run work 10 s " in shown
    assert "Commands: `make bench-operator`." in shown


def test_other_machines_and_days_are_told() -> None:
    other = result("single", "sweep", 2, 198, machine=MACHINE | {"cores": 8}, date="2026-12-03T10:00:00+00:00")
    shown = section([result("full", "sweep", 1), other])
    assert "2026-12-01: Abacus, 2 cores, 4 GiB, Linux 6, Python 3.11." in shown
    assert "2026-12-03: Abacus, 8 cores, 4 GiB, Linux 6, Python 3.11." in shown


def test_the_page_of_the_other_benchmarks_keeps_the_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    full = result("full", "sweep", 1)
    (folder / full["file"]).write_text(json.dumps(full))
    monkeypatch.setattr(page, "RESULTS", folder)
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    rows = [{"name": "x", "ours": 1, "baseline": 2, "unit": "s", "ratio": 0.5}]
    others = run.page({"ledger": rows}, MACHINE)
    (tmp_path / "page.md").write_text(others + section(page.results()))
    before = (tmp_path / "page.md").read_text()
    page.draw()
    assert (tmp_path / "page.md").read_text() == before
    assert before.startswith(others)
    assert "| full 2026-12-01 10:00 | abc |" in before


def test_a_result_that_does_not_say_of_what_code_it_is_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "1-full.json").write_text(json.dumps({"kind": "full", "what": "sweep"}))
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    assert section(page.results()) == ""
    assert "1-full.json does not say what it has measured" in capsys.readouterr().err


def test_bare_pods_are_the_floor_and_the_ceiling() -> None:
    """60 ms of a sweep, 75 of Jobs, 45 of bare pods: 15 beside 30 above the floor, and never more than 75/45."""
    found = pair(0, 1000.0, 2)
    cpu = {"sweep": 60.0, "jobs": 75.0}
    found = [one | {"cpuPerPodMs": cpu[one["what"]]} for one in found]
    bare = found[1] | {"what": "bare", "file": "4.json", "cpuPerPodMs": 45.0}
    shown = section([*found, bare])
    assert "for an operator that costs nothing: median **1.67**, 1.67 to 1.67 in 1 pair." in shown
    assert "a pod of a sweep costs 15 ms, that of a Job 30 ms: median **2.00**" in shown
    assert "costs nothing" not in section(found)
