"""The control: the task's verifier on its reference solution, with the real runner; and the ends of verify that ask for it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from realcli.api.base import sha256_digest
from realcli.api.termination import Result, Termination
from realcli.ledger.seals import ControlSeal, ControlVerdict, RunJson
from realcli_cli.local.pods import Ended
from tests.integration.session.harness import Pod, Sweep

Plan = Callable[..., Sweep]
Mini = Callable[..., Path]
REWARD = "/logs/verifier/reward.txt"
PASS = f'test "$(cat /app/out)" = done && echo 1 > {REWARD} || echo 0 > {REWARD}'
DONE = "echo done > /app/out"


def said(ended: Ended) -> Termination:
    assert ended.termination is not None, ended.stderr
    return ended.termination


def seal_of(sweep: Sweep, number: int = 1) -> tuple[ControlSeal, ControlVerdict, str]:
    """Seal and verdict, every object of the seal checked."""
    paths = sweep.attempt(0).control(number)
    data = sweep.store.get(paths.seal)
    seal = ControlSeal.model_validate_json(data)
    assert seal.intact()
    for item in seal.objects:
        content = sweep.store.get(f"{paths.root}/{item.path}")
        assert (sha256_digest(content), len(content)) == (f"sha256:{item.sha256}", item.size)
    return seal, ControlVerdict.model_validate_json(sweep.store.get(paths.verdict)), sha256_digest(data)


@pytest.mark.slow
def test_the_starter_suite_passes_its_own_controls(plan: Plan) -> None:
    """The real tasks, in EXEC's first trial of each: run files and traps are there, the solution earns 1."""
    sweep = plan()
    for task in ("site-settings", "bank-reconcile"):
        ordinal = sweep.ordinal(task, "EXEC")
        message = said(sweep.control(ordinal))
        assert (message.phase, message.result, message.reason, message.reward) == ("Control", Result.CONTROL_PASSED, None, "1")
        seal = ControlSeal.model_validate_json(sweep.store.get(sweep.attempt(ordinal).control(1).seal))
        assert (seal.passed, seal.trial.task, seal.trial.ordinal, seal.control) == (True, task, ordinal, 1)


def test_a_control_is_made_once(plan: Plan, mini: Mini) -> None:
    """With a run.json of its own. Asked again (its message was lost), the seal is the answer, and nothing runs."""
    sweep = plan(suite=mini(PASS, DONE, solution="echo solving; " + DONE))
    first = said(sweep.control(0))
    seal, verdict, digest = seal_of(sweep)
    assert (first.result, first.seal, first.reward) == (Result.CONTROL_PASSED, digest, "1")
    assert (verdict.passed, verdict.solution_exit_code, verdict.exit_code) == (True, 0, 0)
    run = sweep.store.get(sweep.attempt(0).control(1).run)
    assert seal.run == sha256_digest(run)
    assert RunJson.model_validate_json(run).instance_id.startswith("rc-")
    assert b"solving" in sweep.store.get(sweep.attempt(0).control(1).logs)
    assert [o.path for o in seal.objects] == ["logs.txt", "run.json", "verdict.json"]
    with sweep.pod(0, "control", "--attempt", "1", "--control", "2", runner=False) as pod:
        again = said(pod.ended())
    assert again == first
    assert not sweep.store.exists(sweep.attempt(0).control(2).run)


class Broken(NamedTuple):
    """tests/test.sh, solution/solve.sh, the reason of the control and its reward."""

    tests: str
    solution: str
    reason: str
    reward: str | None = None


BROKEN = {
    "the tests hang": Broken("sleep 300", DONE, "VerifierTimeout"),
    "no reward": Broken("true", DONE, "NoReward"),
    "less than 1": Broken(f"echo 0.5 > {REWARD}", DONE, "RewardBelowOne", "0.5"),
    "the solution does nothing": Broken(PASS, "exit 3", "RewardBelowOne", "0"),
    "the solution never ends": Broken(PASS, "setsid sleep 300 & sleep 300", "SolutionTimeout"),
}
SHORT_LIST = {"no reward"}


@pytest.mark.parametrize("name", [n if n in SHORT_LIST else pytest.param(n, marks=pytest.mark.slow) for n in BROKEN])
def test_a_broken_task_fails_its_control(plan: Plan, mini: Mini, name: str) -> None:
    case = BROKEN[name]
    sweep = plan(suite=mini(case.tests, DONE, solution=case.solution, verifier_seconds=3), exec={"deadline": "4s"})
    message = said(sweep.control(0))
    assert (message.result, message.reason, message.reward) == (Result.CONTROL_FAILED, case.reason, case.reward)
    seal, verdict, digest = seal_of(sweep)
    assert message.seal == digest
    assert (seal.passed, seal.reason, seal.reward) == (verdict.passed, verdict.reason, verdict.reward)
    assert (seal.passed, seal.reason) == (False, case.reason)
    assert verdict.detail
    assert message.message


@pytest.mark.slow
def test_the_tests_find_what_a_verify_finds_and_no_solution(plan: Plan, mini: Mini) -> None:
    """Nothing of the solution runs or lies there any more, its result does; it ran as the agent's user and was in its reach."""
    look = (
        "test ! -e /solution && ! pgrep -f 'sleep 2[9]9' && test -z \"$(ls /logs/verifier)\" "
        '&& test "$(stat -c %u:%a /tests/test.sh)" = 0:500 && test "$(cat /tmp/who)" = 65534 '
        f"&& echo 1 > {REWARD}"
    )
    suite = mini(look, DONE, solution="setsid sleep 299 & id -u > /tmp/who", user='[agent]\nuser = "65534"')
    message = said(plan(suite=suite).control(0))
    assert (message.result, message.reason) == (Result.CONTROL_PASSED, None)


@pytest.mark.slow
def test_what_keeps_a_control_from_any_result_is_no_result(plan: Plan, mini: Mini) -> None:
    """Without a runner, and without a seal: the operator tries again."""
    sweep = plan(suite=mini(PASS, DONE, solution=DONE), setup="1s")
    with sweep.pod(0, "control", "--attempt", "1", "--control", "1", runner=False) as pod:
        ended = pod.ended()
    assert (said(ended).result, said(ended).reason, ended.code) == (Result.NO_VERDICT, "VerifierFault", 1)
    assert not sweep.store.exists(sweep.attempt(0).control(1).seal)


class Hostile(NamedTuple):
    """What the agent leaves behind, and what the verify of it would count as."""

    agent: str
    reason: str


LOOKS = f'[ -x /app/out ] && /app/out; [ "$(tail -c 4 /app/out)" = done ] && echo 1 > {REWARD}; [ -f {REWARD} ] || exit 1'
HOSTILE = {
    "it hangs the tests": Hostile(r"printf '#!/bin/bash\nsleep 300\n#done' > /app/out; chmod +x /app/out", "VerifierTimeout"),
    "it leaves no reward": Hostile("printf nothing > /app/out", "NoReward"),
    "it breaks the tests' program": Hostile(
        r"printf '#!/bin/bash\nrm -f /logs/verifier/reward.txt; mkdir /logs/verifier/reward.txt\n#done' > /app/out; "
        "chmod +x /app/out",
        "NoReward",
    ),
}


@pytest.mark.parametrize("name", ["it hangs the tests", *(pytest.param(n, marks=pytest.mark.slow) for n in list(HOSTILE)[1:])])
def test_a_state_that_breaks_the_tests_of_a_task_that_works(plan: Plan, mini: Mini, name: str) -> None:
    """Verify names what it would be, with the facts of the work; the control passes."""
    case = HOSTILE[name]
    good = r"printf '#!/bin/bash\n#done' > /app/out; chmod +x /app/out"
    sweep = plan(suite=mini(LOOKS, case.agent, solution=good, verifier_seconds=3))
    ordinal = sweep.ordinal("mini", "EXEC")
    worked = said(sweep.work(ordinal))
    assert worked.result is Result.WORK_SEALED
    verified = said(sweep.verify(ordinal))
    assert (verified.result, verified.reason) == (Result.NO_VERDICT, case.reason)
    assert (verified.work_end, verified.work_seal, verified.turns) == ("Completed", worked.seal, worked.turns)
    assert verified.message
    assert said(sweep.control(ordinal)).result is Result.CONTROL_PASSED


@pytest.mark.slow
def test_a_state_in_which_no_test_starts_is_a_broken_environment(plan: Plan, mini: Mini) -> None:
    suite = mini(PASS, "cd /; rm -rf /app; echo mine > /app", solution=DONE)
    config = suite / "tasks/mini/task.toml"
    config.write_text(config.read_text().replace("[metadata.realcli]", '[metadata.realcli]\ntrust = "system"'))
    sweep = plan(suite=suite)
    ordinal = sweep.ordinal("mini", "EXEC")
    worked = said(sweep.work(ordinal))
    assert worked.result is Result.WORK_SEALED
    verified = said(sweep.verify(ordinal))
    assert (verified.result, verified.reason) == (Result.NO_VERDICT, "AgentBrokeEnvironment")
    assert "could not be" in str(verified.message)
    assert said(sweep.control(ordinal)).result is Result.CONTROL_PASSED


HELD = f"touch /tmp/testing; until test -e /tmp/go; do sleep 0.05; done; echo 1 > {REWARD}"
"""Tests that end when they are told to."""


def told_to_end(pod: Pod) -> None:
    """As a node does that shuts down; the tests end all the same, and say what they say."""
    pod.session.send_signal(signal.SIGTERM)
    pod.chroot.path("/tmp/go").touch()


def runner_dies(pod: Pod) -> None:
    """With all its container."""
    process = pod.container.process
    assert process is not None
    process.kill()


def both(pod: Pod) -> None:
    """The runtime ends the containers one after the other, the session last."""
    runner_dies(pod)
    pod.until(lambda: pod.container.process is None or pod.container.process.poll() is not None, seconds=300)
    pod.session.send_signal(signal.SIGTERM)


@pytest.mark.parametrize(
    ("role", "happens", "reason"),
    [
        ("control", told_to_end, "SessionLost"),
        pytest.param("control", runner_dies, "VerifierFault", marks=pytest.mark.slow),
        pytest.param("control", both, "SessionLost", marks=pytest.mark.slow),
        pytest.param("verify", told_to_end, "SessionLost", marks=pytest.mark.slow),
        pytest.param("verify", runner_dies, "NoReward", marks=pytest.mark.slow),
        pytest.param("verify", both, "SessionLost", marks=pytest.mark.slow),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_what_a_node_that_goes_down_leaves_of_the_tests_is_no_result(
    plan: Plan, mini: Mini, role: str, happens: Callable[[Pod], None], reason: str
) -> None:
    """Nothing is sealed of it: a control that was cut off does not make a task suspect, nor a verify a run worth nothing."""
    sweep = plan(suite=mini(HELD, DONE, solution=DONE))
    ordinal = sweep.ordinal("mini", "EXEC")
    if role == "verify":
        assert said(sweep.work(ordinal)).result is Result.WORK_SEALED
    for number in (1, 2):
        with sweep.pod(ordinal, role, "--attempt", "1", f"--{role}", str(number)) as pod:
            pod.until(pod.chroot.path("/tmp/testing").exists, seconds=300)
            if number == 1:
                happens(pod)
                message = said(pod.ended())
                assert (message.result, message.reason) == (Result.NO_VERDICT, reason)
            else:
                pod.chroot.path("/tmp/go").touch()
                assert said(pod.ended()).result is {"control": Result.CONTROL_PASSED, "verify": Result.VERDICT}[role]
        seal = getattr(sweep.attempt(ordinal), role)(number).seal
        assert sweep.store.exists(seal) is (number == 2)
