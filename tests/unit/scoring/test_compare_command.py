"""`realcli compare` as a person or a pipeline calls it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from realcli_cli.compare import choose_latest_good, latest_good
from realcli_cli.main import UserError, main


def document(failing: int, **more: Any) -> dict[str, Any]:
    """Ten tasks; the first `failing` fail in both modes and break their scenario."""
    runs = [
        {"configuration": "c", "task": f"t{n}", "mode": mode, "repeat": 1, "valid": True, "reward": int(n >= failing),
         "scenarios": {"q": [int(n >= failing)]} if mode == "COLLAB" else {}}
        for n in range(10) for mode in ("EXEC", "COLLAB")
    ]  # fmt: skip
    return {"tree": {"U": {"u": ["q"]}}, "runs": runs, **more}


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


Called = Callable[..., Done]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """The command line as a whole, in this process."""

    def of(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["realcli", "compare", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        printed = capsys.readouterr()
        return Done(int(end.value.code or 0), printed.out, printed.err)

    return of


@pytest.fixture
def call(tmp_path: Path, run: Callable[..., Done]) -> Called:
    """A as a report folder, B as a file."""

    def of(a: dict[str, Any], b: dict[str, Any], *options: str) -> Done:
        for name, given in (("a", a), ("b", b)):
            (tmp_path / name / "tables").mkdir(parents=True, exist_ok=True)
            (tmp_path / name / "tables" / "runs.json").write_text(json.dumps(given))
        return run(str(tmp_path / "a"), str(tmp_path / "b" / "tables" / "runs.json"), *options)

    return of


GATE = "P(dJ_rate < -0.05) > 0.95"


def test_a_report_folder_beside_a_file(call: Called) -> None:
    done = call(document(0), document(7), "--fail-if", GATE)
    assert done.returncode == 3, done.stderr
    assert "note: not both sides tell their benchmark" in done.stdout
    assert "c: 10 tasks on both sides; headline S" in done.stdout
    assert "R_exec       1.000   0.300   -0.700" in done.stdout
    assert f"FIRES  {GATE}: the probability is 1.000; it finds a drop of" in done.stdout


def test_an_unchanged_agent_passes(call: Called) -> None:
    done = call(document(3), document(3), "--fail-if", GATE, "--fail-if", "P(dR_exec < 0) > 0.5")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("does not fire  P(") == 2
    assert "note: A and B are the same runs" in done.stdout


def test_json(call: Called) -> None:
    done = call(document(0), document(2, benchmark="sha256:b"), "-o", "json", "--fail-if", "P(dR > 0) > 0.5")
    assert done.returncode == 0, done.stderr
    one = json.loads(done.stdout)["comparisons"][0]
    assert one["changes"]["dR_exec"]["difference"] == {"exact": "-1/5", "value": -0.2}
    assert one["changes"]["dR_exec"]["interval"]["high"] < 0 < one["changes"]["dR_exec"]["smallestDrop"]
    assert one["gates"] == [{"gate": "P(dR > 0) > 0.5", "probability": 0.0, "fired": False}]


def unscored() -> dict[str, Any]:
    """No S: whether the scenario passes hangs on three tasks of unknown outcome (5 to 8 of 10 hold)."""
    found = document(2)
    for run in found["runs"]:
        if run["mode"] == "COLLAB" and run["task"] in ("t7", "t8", "t9"):
            run["scenarios"] = {"q": ["u"]}
    return found


@pytest.mark.parametrize("form", ["text", "json"])
def test_names_that_a_terminal_would_obey_are_shown(call: Called, form: str) -> None:
    name = "c\x1b[31m\x9b\u202e"
    given = document(3, judge="j\x1b]0;x\x07")
    for one in given["runs"]:
        one["configuration"] = name
    done = call(given, given | {"judge": "k\x9b"}, "-o", form)
    assert done.returncode == 0
    assert all(line.isprintable() for line in done.stdout.splitlines())
    if form == "json":
        assert json.loads(done.stdout)["comparisons"][0]["a"] == name


def test_a_gate_without_an_answer_stands_below_the_comparison(call: Called) -> None:
    done = call(document(0), unscored(), "--fail-if", "P(dJ < -0.05) > 0.95", "--fail-if", "P(dR < -0.9) > 0.95")
    assert done.returncode == 2
    assert "'P(dJ < -0.05) > 0.95' cannot be answered: dJ is not defined on both sides; dJ_rate is: gate on it" in done.stderr
    assert "c: 10 tasks on both sides" in done.stdout
    assert "  NO ANSWER  P(dJ < -0.05) > 0.95" in done.stdout
    assert "  does not fire  P(dR < -0.9) > 0.95: the probability is" in done.stdout
    written = call(document(0), unscored(), "--fail-if", "P(dJ < -0.05) > 0.95", "-o", "json")
    gates = json.loads(written.stdout)["comparisons"][0]["gates"]
    assert (written.returncode, gates) == (2, [{"gate": "P(dJ < -0.05) > 0.95", "probability": None, "fired": None}])


def test_a_gate_on_scores_of_another_judge(call: Called) -> None:
    done = call(document(0, judge="sha256:a"), document(0, judge="sha256:b"), "--fail-if", "P(dJ < 0) > 0.5")
    assert done.returncode == 2
    assert "cannot be answered: A was judged by sha256:a" in done.stderr
    assert "gate on it" not in done.stderr
    assert "R_collab" in done.stdout


def test_no_hint_at_a_rate_that_is_not_defined_either(call: Called) -> None:
    exec_alone = {**document(0), "runs": [run for run in document(0)["runs"] if run["mode"] == "EXEC"]}
    done = call(exec_alone, exec_alone, "--fail-if", "P(dJ < 0) > 0.5")
    assert done.returncode == 2
    assert "dJ is not defined on both sides" in done.stderr
    assert "gate on it" not in done.stderr


@pytest.mark.parametrize(
    ("a", "b", "options", "message"),
    [
        ({"benchmark": "sha256:a"}, {"benchmark": "sha256:b"}, [], "A is of benchmark sha256:a, B of sha256:b"),
        ({}, {}, ["--fail-if", "J < 0"], "'J < 0' is no gate"),
        ({}, {}, ["--configuration", "x"], "A has no configuration x; expected one of c"),
        ({}, {}, ["-o", "yaml"], "expected text or json"),
        ({"runs": 3}, {}, [], "runs.json: runs: expected a list of runs, found 3"),
    ],
)
def test_errors(call: Called, a: dict[str, Any], b: dict[str, Any], options: list[str], message: str) -> None:
    done = call(document(1, **a) if "runs" not in a else {**document(1), **a}, document(1, **b), *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_a_folder_without_runs(run: Callable[..., Done], tmp_path: Path) -> None:
    done = run(str(tmp_path), "x.json")
    assert done.returncode == 2
    assert "no tables/runs.json lies here; expected a report that this version wrote" in done.stderr
    assert "in a sweep's folder: reports/<digest>" in done.stderr


def sweep(name: str, state: str = "Complete", at: str = "2026-01-01T00:00:00Z", report: bool = True) -> dict[str, Any]:
    conditions = [{"type": "Complete", "lastTransitionTime": at}]
    status = {"state": state, "reportURI": f"s3://b/r/{name}" if report else None, "conditions": conditions}
    return {"metadata": {"name": name}, "status": status}


def test_the_latest_good_sweep() -> None:
    listed = [
        sweep("old"),
        sweep("new", at="2026-02-01T00:00:00Z"),
        sweep("newer", state="Incomplete", at="2026-03-01T00:00:00Z"),
        sweep("none", at="2026-04-01T00:00:00Z", report=False),
        {"metadata": {"name": "planned"}},
    ]
    assert choose_latest_good(listed, "branch=main") == "s3://b/r/new"
    assert choose_latest_good(listed, "branch=main", other="new") == "s3://b/r/old"
    assert choose_latest_good(listed, "branch=main", other="s3://b/r/new/") == "s3://b/r/old"
    with pytest.raises(UserError, match=r"latest-good:branch=main: none of 1 sweeps with this label is Complete"):
        choose_latest_good(listed[2:3], "branch=main")
    with pytest.raises(UserError, match="expected a label selector"):
        latest_good("main", None)


def test_latest_good_asks_the_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kubectl on the path is called with the selector; its own words are told where it fails."""
    kubectl = tmp_path / "kubectl"
    kubectl.write_text('#!/bin/sh\nif [ "$4" = team=x ]; then cat "$0.json"; else echo "no rights: $*" >&2; exit 1; fi\n')
    kubectl.chmod(0o755)
    (tmp_path / "kubectl.json").write_text(json.dumps({"items": [sweep("one")]}))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert latest_good("team=x", "ns") == "s3://b/r/one"
    with pytest.raises(UserError, match=r"latest-good:team=y: no rights: .* -n ns"):
        latest_good("team=y", "ns")


def test_the_latest_good_sweep_beside_itself_is_no_comparison(
    run: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gate that compares a result with itself would always hold."""
    (tmp_path / "runs.json").write_text(json.dumps(document(2)))
    monkeypatch.setattr("realcli_cli.compare.latest_good", lambda *_: str(tmp_path / "runs.json"))
    done = run("latest-good:team=x", str(tmp_path / "runs.json"))
    assert done.returncode == 2
    assert "A and B are the same runs: the latest good sweep is the one it is compared with" in done.stderr


def test_what_does_not_scatter_finds_no_drop_and_one_task_says_nothing(run: Callable[..., Done], tmp_path: Path) -> None:
    """0.000 would promise that any drop is found, from the one case where nothing shows how far tasks scatter."""
    for name, failing in (("a.json", 0), ("b.json", 1)):
        (tmp_path / name).write_text(json.dumps(document(failing)))
        one = document(failing)
        one["runs"] = one["runs"][:2]
        (tmp_path / f"one-{name}").write_text(json.dumps(one))
    many = run(str(tmp_path / "a.json"), str(tmp_path / "b.json")).stdout
    assert "one task" not in many
    assert not any(line.endswith(" -") for line in many.splitlines())
    single = run(str(tmp_path / "one-a.json"), str(tmp_path / "one-b.json"), "--fail-if", "P(dR_exec < 0) > 0.95")
    rows = [line for line in single.stdout.splitlines() if "[-1.000, -1.000]" in line]
    assert "c: 1 task on both sides" in single.stdout
    assert "one task: intervals come from resampling tasks, and say nothing here" in single.stdout
    assert rows
    assert all(row.endswith("  -") for row in rows)
    assert single.returncode == 2
    assert "NO ANSWER  P(dR_exec < 0) > 0.95" in single.stdout
    assert "cannot be answered: one task is on both sides" in single.stderr
