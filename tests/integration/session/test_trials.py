"""Whole trials with the real session, runner and Claude Code against a scripted provider."""

from __future__ import annotations

from collections.abc import Callable

from realcli.api.base import sha256_digest
from realcli.api.termination import Result
from tests.integration.session.harness import Sweep

Plan = Callable[..., Sweep]


def test_exec_from_work_to_reward(plan: Plan) -> None:
    sweep = plan()
    ordinal = sweep.ordinal("site-settings", "EXEC")
    worked = sweep.work(ordinal)
    assert worked.termination is not None, worked.stderr
    assert (worked.code, worked.termination.result, worked.termination.reason) == (0, Result.WORK_SEALED, "Completed"), worked.stderr
    seal = sweep.work_seal(ordinal)
    assert seal.intact()
    assert worked.termination.seal == sha256_digest(sweep.store.get(sweep.attempt(ordinal).work_seal))
    verified = sweep.verify(ordinal, anchor=worked.termination.seal)
    assert verified.termination is not None, verified.stderr
    assert (verified.termination.result, verified.termination.reward) == (Result.VERDICT, "1"), verified.stderr
