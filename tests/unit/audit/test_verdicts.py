"""Verdicts that are neither 0 nor 1, prompts, interrupts; no event of the script can be lost or changed unnoticed."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realcli.audit.model import SimCheck
from realcli.audit.program import audit, contaminated, counts
from realcli.audit.view import view_of
from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.models import Oracle
from realcli.benchmark.script_models import Script
from realcli.checks.instance import instances_of
from realcli.ledger.base import BlobRef
from realcli.ledger.events import (
    Approval,
    Ask,
    Data,
    Denial,
    InterimClaim,
    Interrupt,
    PermissionAnswer,
    Plant,
    ProbeDelivered,
    ProbeUntriggered,
    SliceReleased,
    Trigger,
    UserMessage,
)
from realcli.trajectory import Trajectory
from realcli.trajectory.model import Item
from tests.support.examples import examples
from tests.support.shop_script import shop
from tests.support.simulated_runs import AGENTS, SimulatedRun, finished, run_of, tasks, work_for
from tests.unit.user.conftest import build as user_build

SHOP, ORACLE = shop()
TASKS = {**tasks(), "shop": (SHOP, ORACLE)}
build = user_build


def audited(trajectory: Trajectory, script: Script, oracle: Oracle = ORACLE, **more: Any) -> dict[str, SimCheck]:
    catalogue = load_catalogue()
    checks = audit(trajectory, script, oracle, catalogue, instances_of(script, catalogue), **more)
    return {str(one.check): one for one in checks}


def verdicts(checks: dict[str, SimCheck]) -> list[str]:
    return [one.verdict for one in checks.values()]


# --------------------------------------------------------------------------------------------------- n/a and unscored
def test_a_run_that_ended_in_its_first_response() -> None:
    """Nothing was said after the opener; the opener's probe was there, so its delivery is looked at."""
    run = run_of(SHOP)
    run.start().cut(acted=True)
    checks = audited(run.trajectory, SHOP)
    assert verdicts(checks) == ["n/a", "1", "1", "1", "1", "1", "1"]


def test_no_trigger_fired(build: Any) -> None:
    script = build.script(["batch:a"], {"a": ["s1"]})
    run = run_of(script)
    run.start().hand_over("Done.").cut(acted=True)
    assert audited(run.trajectory, script)["sim_probe_coverage"].verdict == "n/a"


def test_nothing_is_withheld() -> None:
    """A run without a message has nothing to keep back; no run of a sweep is like that."""
    assert audited(Trajectory(()), SHOP)["sim_no_early_disclosure"].verdict == "1"
    assert audited(Trajectory(()), SHOP)["sim_script_fidelity"].verdict == "n/a"


def test_a_text_that_cannot_be_had_is_unscored_and_contaminates_nothing() -> None:
    run = finished(run_of(SHOP), "asks nothing")
    lost = [replace(i, data=i.data.model_copy(update={"text": BlobRef(blob="0" * 64, size=9)})) if isinstance(i.data, UserMessage)
            and i.data.id == "m5" else i for i in run.items]  # fmt: skip
    trajectory = Trajectory(tuple(lost))
    checks = audited(trajectory, SHOP)
    found = {name: one.verdict for name, one in checks.items()}
    assert found == {
        "sim_script_fidelity": "unscored", "sim_no_early_disclosure": "unscored", "sim_probe_coverage": "1",
        "sim_goal_stability": "unscored", "sim_knowledge_bounds": "unscored", "sim_no_agent_work": "unscored",
        "sim_no_harmful_deviation": "unscored",
    }  # fmt: skip
    catalogue = load_catalogue()
    view = view_of(trajectory, SHOP, ORACLE, catalogue, instances_of(SHOP, catalogue))
    assert contaminated(list(checks.values()), view) == {}


# ------------------------------------------------------------------------------------------------------ what is counted
def test_a_question_that_was_not_understood_contaminates_what_waits_for_its_slice() -> None:
    run = run_of(SHOP)
    run.start().hand_over("Who is the person with the shop?").work(*work_for(run.play))
    for _ in range(30):
        run.hand_over("Done.")
    asked = [item.data for item in run.items if isinstance(item.data, Ask)]
    assert [one.near for one in asked] == [["port", "owner"]]
    catalogue = load_catalogue()
    view = view_of(run.trajectory, SHOP, ORACLE, catalogue, instances_of(SHOP, catalogue))
    checks = audited(run.trajectory, SHOP)
    assert set(verdicts(checks)) == {"1"}, "reading is the instrument's, not a deviation from the script"
    assert set(contaminated(list(checks.values()), view)) == {"early", "ask"}
    assert counts(run.trajectory) == (1, 1)


# ------------------------------------------------------------------------------------------------------------- prompts
@pytest.mark.parametrize(
    ("command", "decision"), [("systemctl restart shop", "allow"), ("echo x > /app/db.txt", "deny"), ("ls", "allow")]
)
def test_prompts_that_are_answered_as_scripted_pass_and_others_do_not(command: str, decision: str) -> None:
    run = run_of(SHOP)
    run.start()
    run.prompt("Bash", {"command": command})
    assert [item.data.decision for item in run.items if isinstance(item.data, PermissionAnswer)] == [decision]
    run.work(*work_for(run.play))
    for _ in range(30):
        run.hand_over("Done.")
    assert set(verdicts(audited(run.trajectory, SHOP))) == {"1"}
    other = "deny" if decision == "allow" else "allow"
    turned = changed(
        run, lambda data: data.model_copy(update={"decision": other}) if isinstance(data, PermissionAnswer) else data
    )
    assert audited(turned, SHOP)["sim_script_fidelity"].verdict == "0"


# ---------------------------------------------------------------------------------------------------------- interrupts
def interrupted(build: Any, interrupt: bool, **more: Any) -> tuple[SimulatedRun, Script]:
    script = build.script(["batch:a", "batch:b"], {"a": ["s1"], "b": ["s2"]}, probes=[build.stop(interrupt=interrupt)])
    run = run_of(script, **more)
    run.start().work(*work_for(run.play))
    for _ in range(8):
        run.hand_over("Done.")
    return run, script


@pytest.mark.parametrize("interrupt", [True, False])
def test_an_interrupt_whose_time_has_come_passes(build: Any, interrupt: bool) -> None:
    run, script = interrupted(build, interrupt)
    assert [item.data.probe for item in run.items if isinstance(item.data, ProbeDelivered)] == ["i"]
    assert set(verdicts(audited(run.trajectory, script))) == {"1"}


@pytest.mark.parametrize("interrupt", [True, False])
def test_an_interrupt_before_its_trigger_is_found(build: Any, interrupt: bool) -> None:
    """The same conversation, the work that should have come before it gone."""
    run, script = interrupted(build, interrupt)
    early = without(run, {item.seq for item in run.items if item.event.kind == "file_write" and item.seq < 20})
    found = audited(early, script)["sim_probe_coverage"]
    assert found.verdict == "0"
    assert {id for one in found.deviations for id in one.affected} == {"i"}


def test_a_response_that_was_stopped_for_nothing_is_found(build: Any) -> None:
    run, script = interrupted(build, True)
    turned = changed(run, lambda data: data.model_copy(update={"probe": None}) if isinstance(data, Interrupt) else data)
    assert audited(turned, script)["sim_probe_coverage"].verdict == "0"


# ----------------------------------------------------------------------------------------------- whatever is lost is found
KINDS = (UserMessage, SliceReleased, ProbeDelivered, Approval, Denial, InterimClaim, Trigger, Plant, ProbeUntriggered)


def changed(run: SimulatedRun, change: Any) -> Trajectory:
    return Trajectory(tuple(replace(item, data=change(item.data)) for item in run.items))


def without(run: SimulatedRun, gone: set[int]) -> Trajectory:
    """The ledger without some events, numbered again."""
    kept = [item for item in run.items if item.seq not in gone]
    number = {item.seq: at for at, item in enumerate(kept, start=1)}

    def moved(item: Item) -> Item:
        data: Data | None = item.data
        if isinstance(data, Trigger):
            data = data.model_copy(update={"of": number.get(data.of, 0)})
        return Item(item.event.model_copy(update={"seq": number[item.seq]}), data)

    return Trajectory(tuple(moved(item) for item in kept))


RUNS = [(task, agent) for task in TASKS for agent in AGENTS]


@settings(max_examples=examples(80), deadline=None)
@given(which=st.sampled_from(RUNS), seed=st.integers(0, 10_000))
def test_no_event_of_the_script_can_be_lost(which: tuple[str, str], seed: int) -> None:
    task, agent = which
    script, oracle = TASKS[task]
    run = finished(run_of(script), agent)
    named = [item for item in run.items if isinstance(item.data, KINDS)]
    lost = random.Random(seed).choice(named)
    checks = audited(without(run, {lost.seq}), script, oracle)
    closer = isinstance(lost.data, UserMessage) and not lost.data.delivered
    opener = isinstance(lost.data, SliceReleased) and lost.data.how == "opener"
    assert closer or opener or "0" in verdicts(checks), f"{lost.event.kind} {lost.data} was lost"


@settings(max_examples=examples(80), deadline=None)
@given(which=st.sampled_from(RUNS), seed=st.integers(0, 10_000))
def test_no_word_of_the_script_can_be_changed(which: tuple[str, str], seed: int) -> None:
    task, agent = which
    script, oracle = TASKS[task]
    run = finished(run_of(script), agent)
    draw = random.Random(seed)
    chosen = draw.choice([item for item in run.items if isinstance(item.data, UserMessage)])
    assert isinstance(chosen.data, UserMessage)
    words = str(chosen.data.text).split(" ")
    words[draw.randrange(len(words))] = "otherwise"
    text = " ".join(words)
    turned = changed(run, lambda data: data.model_copy(update={"text": text}) if data is chosen.data else data)
    assert audited(turned, script, oracle)["sim_script_fidelity"].verdict == "0"
