"""Every task of the starter suite: the reference solution passes, doing nothing fails, each mutant is caught by name."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from realcli.benchmark.edits import apply_edit, edit_present
from realcli.benchmark.suite import Suite

TASKS = ["bank-reconcile", "site-settings"]
MUTANTS = Path(__file__).parent / "mutants"


def mutants() -> Iterator[Any]:
    for name in TASKS:
        for mutant in tomllib.loads((MUTANTS / f"{name}.toml").read_text())["mutant"]:
            yield pytest.param(name, mutant, id=f"{name}-{mutant['name']}")


def test_the_suite_has_these_tasks(suite: Suite) -> None:
    assert [task.name for task in suite.tasks] == TASKS


@pytest.fixture
def task(request: pytest.FixtureRequest, suite: Suite) -> Any:
    return next(task for task in suite.tasks if task.name == request.getfixturevalue("name"))


@pytest.mark.parametrize("name", TASKS)
def test_the_reference_solution_passes_every_check(name: str, task: Any, solved: Any, verify: Any, a_run: Any) -> None:
    verdict = verify(task, a_run("one"), solved[name].state())
    assert (verdict.reward, verdict.failed) == (1, []), verdict.output
    assert len(verdict.passed) >= {"bank-reconcile": 8, "site-settings": 3}[name]


@pytest.mark.parametrize("name", TASKS)
def test_doing_nothing_scores_nothing(name: str, task: Any, roots: Any, verify: Any, a_run: Any) -> None:
    run = a_run("one")
    assert verify(task, run, roots(task, run).state()).reward == 0
    assert verify(task, run, []).reward == 0


@pytest.mark.parametrize("name", TASKS)
def test_the_solution_of_another_run_scores_nothing(name: str, task: Any, solved: Any, verify: Any, a_run: Any) -> None:
    verdict = verify(task, a_run("two"), solved[name].state())
    assert verdict.reward == 0
    assert {"site-values", "summary-instance", "settings", "saved-report"} & set(verdict.failed)


@pytest.mark.parametrize("moment", ["start", "middle", "end"])
@pytest.mark.parametrize("name", TASKS)
def test_the_user_s_edit_never_decides_the_outcome(
    name: str, moment: str, task: Any, roots: Any, verify: Any, a_run: Any
) -> None:
    (probe,) = task.script.probes
    root = roots(task, a_run("one"))
    if moment != "start":
        root.solve()
    root.edit(lambda content: apply_edit(content, probe.edit), probe.edit.path)
    if moment != "end":
        root.solve()
    assert edit_present(root.read(probe.edit.path), probe.edit)
    verdict = verify(task, root.run_json, root.state())
    assert verdict.reward == 1, verdict.output


ONE_CHECK = """
import json, sys
sys.path.insert(0, "/tests")
import check
print(json.dumps(check.run([getattr(check, "check_" + sys.argv[1].replace("-", "_"))])))
"""


@pytest.mark.parametrize(("name", "mutant"), list(mutants()))
def test_a_mutant_is_caught_by_its_check(
    name: str, mutant: dict[str, str], task: Any, solved: Any, restored: Any, a_run: Any
) -> None:
    state = {"/" + file.path: file for file in solved[name].state()}
    file, old = state[mutant["file"]], mutant["old"].encode()
    assert file.content.count(old) == 1, f"the mutant does not fit the solution any more: {mutant['old']!r}"
    state[mutant["file"]] = file._replace(content=file.content.replace(old, mutant["new"].encode()))
    root = restored(task, a_run("one"), list(state.values()))
    done = root.execute("python3", "-I", "-B", "-c", ONE_CHECK, mutant["killed_by"])
    (result,) = json.loads(done.stdout)
    assert result["status"] == "failed"
    assert result["message"].startswith("AssertionError"), result  # the check saw it; nothing else broke
