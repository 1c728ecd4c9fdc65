"""A simulated user that keeps to its script passes: whatever the agent does, and whatever the script."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realcli.audit.program import audit, contaminated
from realcli.audit.view import view_of
from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.models import Oracle
from realcli.benchmark.play import Play
from realcli.benchmark.script_models import Script
from realcli.checks.instance import instances_of
from realcli.ledger.events import FileWrite, ToolCall
from tests.support.examples import examples
from tests.support.scripts.behaviours import act_out, behaviours, described, means_of
from tests.support.simulated_runs import AGENTS, SimulatedRun, finished, run_of, tasks
from tests.unit.user.conftest import build as user_build
from tests.unit.user.test_against_interpreter import WORDS, conditioned, responses_of
from tests.unit.user.test_properties import STEPS, Steps, scripts

TASKS = tasks()
BEHAVIOURS = behaviours()
build = user_build


def verdicts(run: SimulatedRun, oracle: Oracle) -> tuple[list[str], list[str]]:
    """Verdicts that are neither 1 nor n/a, with what was found."""
    catalogue, script = load_catalogue(), run.play.script
    checks = audit(run.trajectory, script, oracle, catalogue, instances_of(script, catalogue))
    assert len(checks) == 7
    wrong = [f"{one.check}: {one.reason}" for one in checks if one.verdict not in ("1", "n/a")]
    return wrong, [one.what for check in checks for one in check.deviations]


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("task", TASKS)
def test_every_task_with_every_imagined_agent(task: str, agent: str) -> None:
    script, oracle = TASKS[task]
    run = finished(run_of(script), agent)
    assert verdicts(run, oracle) == ([], [])
    catalogue = load_catalogue()
    view = view_of(run.trajectory, script, oracle, catalogue, instances_of(script, catalogue))
    assert contaminated(audit(run.trajectory, script, oracle, catalogue, instances_of(script, catalogue)), view) == {}


@pytest.mark.parametrize(("task", "name"), [(task, name) for task, of_task in BEHAVIOURS.items() for name in of_task])
def test_every_described_agent(task: str, name: str) -> None:
    script, oracle = TASKS[task]
    assert verdicts(described_run(script, [described(one) for one in BEHAVIOURS[task][name]]), oracle)[0] == []


def described_run(script: Script, responses: list[dict[str, Any]]) -> SimulatedRun:
    mid_turn, failing = means_of(responses)
    run = run_of(script, mid_turn=mid_turn, failing_plants=failing)
    run.start()
    act_out(run, responses)
    return run


ORACLE = Oracle.model_validate({"paths": ["/app/f"]})


def stepped(play: Play, steps: Steps, *, mid_turn: bool, failing: frozenset[str]) -> SimulatedRun:
    run = SimulatedRun(play, mid_turn=mid_turn, failing_plants=failing)
    run.start()
    for what, value in steps:
        match what:
            case "work":
                run.work(*(ToolCall(call_id=f"c{n}", name="Bash", input={}) for n in range(value)))
            case "burst":
                run.work(*(ToolCall(call_id=f"c{n}", name="Bash", input={}) for n in range(8)))
                run.work(FileWrite(path=value, after_turn=1, created=True))
            case "write":
                run.work(FileWrite(path=value, after_turn=1, created=True))
            case "yield":
                run.hand_over(value)
            case _:
                run.hand_over(questions=(value,))
    return run


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data(), steps=STEPS, mid_turn=st.booleans(), cut=st.booleans())
def test_any_script_and_any_agent(build: Any, data: st.DataObject, steps: Steps, mid_turn: bool, cut: bool) -> None:
    script = data.draw(scripts(build), "script")
    plants = [probe.id for probe in script.probes if probe.edit is not None]
    failing = frozenset(data.draw(st.lists(st.sampled_from(plants), unique=True), "failing") if plants else [])
    run = stepped(build.play(script), steps, mid_turn=mid_turn, failing=failing)
    if cut and not run.state.ended:
        run.cut(acted=data.draw(st.booleans(), "acted"))
    else:
        for _ in range(60):
            run.hand_over("Done.")
    assert verdicts(run, ORACLE)[1] == []


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data(), responses=responses_of(WORDS))
def test_any_conditions_and_any_words(build: Any, data: st.DataObject, responses: list[dict[str, Any]]) -> None:
    script = data.draw(conditioned(build), "script")
    plants = [probe.id for probe in script.probes if probe.edit is not None]
    failing = data.draw(st.lists(st.sampled_from(plants), unique=True), "failing") if plants else []
    deaf = data.draw(st.booleans(), "deaf")
    run = described_run(script, [{**one, "deaf": deaf, "plant_fails": failing} for one in responses])
    assert verdicts(run, ORACLE)[1] == []
