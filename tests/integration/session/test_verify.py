"""Verify: what counts as a reward, what does not, and that no outcome comes from a pod that was killed before its seal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from realcli.api.termination import Result, Termination
from realcli_cli.local.pods import Ended
from tests.integration.session.harness import Sweep

Plan = Callable[..., Sweep]
Mini = Callable[..., Path]
REWARD = "/logs/verifier/reward.txt"
PASS = f'test "$(cat /app/out)" = done && echo 1 > {REWARD} || echo 0 > {REWARD}'
DONE = "echo done > /app/out"


def worked(plan: Plan, suite: Path) -> Sweep:
    """A sweep whose only EXEC trial is sealed."""
    sweep = plan(suite=suite)
    ended = sweep.work(sweep.ordinal("mini", "EXEC"))
    assert ended.termination is not None, ended.stderr
    assert ended.termination.result is Result.WORK_SEALED, ended.stderr
    return sweep


def verify(sweep: Sweep, number: int = 1, **environment: str) -> Ended:
    return sweep.verify(sweep.ordinal("mini", "EXEC"), number, **environment)


def said(ended: Ended) -> Termination:
    assert ended.termination is not None, ended.stderr
    return ended.termination


def test_an_attempt_that_has_objects_is_not_worked_on_again(plan: Plan, mini: Mini) -> None:
    sweep = worked(plan, mini(PASS, DONE))
    ordinal = sweep.ordinal("mini", "EXEC")
    names = [info.key for info in sweep.store.list("")]
    again = said(sweep.work(ordinal))
    assert (again.result, again.reason) == (Result.WORK_INVALID, "StorageUnavailable")
    assert "another session worked on this attempt" in str(again.message)
    assert [info.key for info in sweep.store.list("")] == names


def test_killed_between_verdict_and_seal(plan: Plan, mini: Mini) -> None:
    sweep = worked(plan, mini(PASS, DONE))
    ordinal = sweep.ordinal("mini", "EXEC")
    paths = sweep.attempt(ordinal)
    fault = {"REALCLI_FAULT": "kill-after-verdict", "REALCLI_ALLOW_FAULTS": "1"}
    killed = verify(sweep, 1, **fault)
    assert (killed.code, killed.termination) == (-9, None)
    assert sweep.store.exists(paths.verify(1).verdict)
    assert not sweep.store.exists(paths.verify(1).seal)

    second = said(verify(sweep, 2))
    assert (second.result, second.reward) == (Result.VERDICT, "1")
    assert sweep.verify_seal(ordinal, 2).verify == 2

    with sweep.pod(ordinal, "verify", "--attempt", "1", "--verify", "3", runner=False) as pod:
        third = said(pod.ended())
    assert third == second, "the sealed result is reported again and nothing runs"
    assert not sweep.store.exists(paths.verify(3).verdict)


@pytest.mark.slow
def test_a_fault_is_ignored_unless_allowed(plan: Plan, mini: Mini) -> None:
    sweep = worked(plan, mini(PASS, DONE))
    assert said(verify(sweep, REALCLI_FAULT="kill-after-verdict")).result is Result.VERDICT


@pytest.mark.slow
def test_a_damaged_seal_is_no_result(plan: Plan, mini: Mini) -> None:
    sweep = worked(plan, mini(PASS, DONE))
    ordinal = sweep.ordinal("mini", "EXEC")
    assert said(verify(sweep, 1)).reward == "1"
    seal = sweep.store_dir / sweep.attempt(ordinal).verify(1).seal
    seal.write_bytes(seal.read_bytes().replace(b'"reward":"1"', b'"reward":"2"'))
    again = said(verify(sweep, 2))
    assert (again.reward, sweep.verify_seal(ordinal, 2).verify) == ("1", 2)


@pytest.mark.slow
def test_a_changed_work_seal_or_another_anchor(plan: Plan, mini: Mini) -> None:
    sweep = worked(plan, mini(PASS, DONE))
    ordinal = sweep.ordinal("mini", "EXEC")
    assert said(sweep.verify(ordinal, anchor="sha256:" + "0" * 64)).result is Result.NO_WORK_SEAL
    seal = sweep.store_dir / sweep.attempt(ordinal).work_seal
    seal.write_bytes(seal.read_bytes().replace(b'"turns":', b'"turns":1'))
    assert said(verify(sweep)).result is Result.NO_WORK_SEAL


@pytest.mark.slow
def test_a_changed_state_gives_no_verdict(plan: Plan, mini: Mini) -> None:
    sweep = worked(plan, mini(PASS, DONE))
    state = sweep.store_dir / sweep.attempt(sweep.ordinal("mini", "EXEC")).state
    state.write_bytes(state.read_bytes() + b"\n")
    found = said(verify(sweep))
    assert (found.result, found.reason) == (Result.NO_VERDICT, "VerifierFault")


def test_the_state_stands_on_the_pristine_image_and_the_tests_are_out_of_reach(plan: Plan, mini: Mini) -> None:
    hostile = "echo done > /app/out; echo changed > /app/given.txt; echo mine > /app/left"  # /tests is looked at: Tampered
    look = (
        'test "$(cat /app/given.txt)" = given && test "$(stat -c %u:%a /tests/test.sh)" = 0:500 '
        '&& test "$(stat -c %u:%a /tests/run.json)" = 0:400 && test ! -e /app/left && test -z "$(ls /logs/verifier)" '
        f"&& {PASS}"
    )
    assert said(verify(worked(plan, mini(look, hostile)))).reward == "1"


OUTCOMES = {
    "the exit status does not count": (f"echo 1 > {REWARD}; exit 3", Result.VERDICT, "Completed", "1"),
    "a fraction": ('echo \'{"reward": 0.25, "style": 1}\' > /logs/verifier/reward.json', Result.VERDICT, "Completed", "0.25"),
    "no reward": ("true", Result.NO_VERDICT, "NoReward", None),
    "not a number": (f"echo nan > {REWARD}", Result.NO_VERDICT, "NoReward", None),
    "a link": (f"echo 1 > /tmp/r; ln -s /tmp/r {REWARD}", Result.NO_VERDICT, "NoReward", None),
    "a linked folder": (
        "mkdir /tmp/v; echo 1 > /tmp/v/reward.txt; rm -r /logs/verifier; ln -s /tmp/v /logs/verifier",
        Result.NO_VERDICT,
        "NoReward",
        None,
    ),
    "a FIFO": (f"mkfifo {REWARD}", Result.NO_VERDICT, "NoReward", None),
    "too long": (f"head -c 1000000 /dev/zero | tr '\\0' ' ' > {REWARD}", Result.NO_VERDICT, "NoReward", None),
    "killed at its limit": (f"echo 1 > {REWARD}; setsid sleep 300 & sleep 300", Result.NO_VERDICT, "VerifierTimeout", None),
    "a flood of output": (f"head -c 30000000 /dev/zero; echo 1 > {REWARD}", Result.VERDICT, "Completed", "1"),
}


SHORT_LIST = {"no reward", "a link", "killed at its limit"}


@pytest.mark.parametrize("name", [n if n in SHORT_LIST else pytest.param(n, marks=pytest.mark.slow) for n in OUTCOMES])
def test_outcomes(plan: Plan, mini: Mini, name: str) -> None:
    tests, result, reason, reward = OUTCOMES[name]
    sweep = worked(plan, mini(tests, DONE, verifier_seconds=3))
    found = said(verify(sweep))
    assert (found.result, found.reason, found.reward) == (result, reason, reward)
    paths = sweep.attempt(sweep.ordinal("mini", "EXEC")).verify(1)
    assert sweep.store.exists(paths.seal) == (result is Result.VERDICT)
    assert len(sweep.store.get(paths.logs)) < 2 << 20


def test_what_still_runs_cannot_write_the_reward(plan: Plan, mini: Mini) -> None:
    late = "setsid bash -c \"trap '' TERM HUP; sleep 1.5; echo 1 > /logs/verifier/reward.txt\" >/dev/null 2>&1 &"
    sweep = worked(plan, mini(f"{late}\necho 0 > {REWARD}", DONE))
    assert said(verify(sweep)).reward == "0"


@pytest.mark.slow
def test_no_runner_comes(plan: Plan, mini: Mini) -> None:
    sweep = plan(suite=mini(PASS, DONE), setup="3s")
    ordinal = sweep.ordinal("mini", "EXEC")
    assert said(sweep.work(ordinal)).result is Result.WORK_SEALED
    with sweep.pod(ordinal, "verify", "--attempt", "1", "--verify", "1", runner=False) as pod:
        found = said(pod.ended())
    assert (found.result, found.reason) == (Result.NO_VERDICT, "VerifierFault")
