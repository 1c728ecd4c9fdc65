"""The tests are run, nothing may write any more, the reward is read: the same for a verify and a control."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from realcli.api.trial import Checks
from realcli_session.phases.limits import QUIESCE_KILL
from realcli_session.runner.errors import RunnerError, RunnerLost
from realcli_session.runner.port import RunnerPort
from realcli_session.verify.reward import NoReward, Reward, read_checks, read_reward
from realcli_session.verify.tests import read_ctrf, read_rewards, run_tests


class NoVerdict(Exception):
    """Verify ends without a verdict. `reason` is what it would count as if the control passed."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Graded:
    """What the tests said."""

    reward: Reward
    ctrf: bytes | None
    exit_code: int | None
    seconds: float

    @property
    def checks(self) -> Checks | None:
        """The tests' own summary."""
        return None if self.ctrf is None else read_checks(self.ctrf)


async def grade(runner: RunnerPort, workdir: str, limit: float, keep_log: Callable[[bytes], Awaitable[None]]) -> Graded:
    """Run the tests, which are in place, for at most `limit` seconds. `keep_log` gets what they printed, however they end.

    Raises NoVerdict: VerifierTimeout, NoReward, or AgentBrokeEnvironment where the tests could not be started.
    """
    try:
        ran = await run_tests(runner, workdir, limit)
    except RunnerLost as lost:
        raise NoVerdict("NoReward", f"the runner was lost while the tests ran: {lost.reason}") from lost
    except RunnerError as error:
        raise NoVerdict("AgentBrokeEnvironment", f"the tests could not be started: {error}") from error
    await keep_log(ran.log)
    try:
        report = await runner.quiesce(grace=0.0, kill=QUIESCE_KILL)  # whoever still runs may not write any more
        if report.survivors or not report.proven:
            left = ", ".join(" ".join(p.argv)[:80] for p in report.survivors[:5]) or "not proven"
            raise NoVerdict("NoReward", f"something could not be stopped before the reward is read: {left}")
        if ran.timed_out:
            raise NoVerdict("VerifierTimeout", f"the tests were killed after {limit:g} s")
        rewards, ctrf = await read_rewards(runner), await read_ctrf(runner)
    except (RunnerLost, RunnerError) as error:
        raise NoVerdict("NoReward", f"the reward could not be read: {error}") from error
    found = read_reward(rewards)
    if isinstance(found, NoReward):
        raise NoVerdict("NoReward", f"{found.why} (test.sh ended with {ran.exit_code})")
    return Graded(found, ctrf, ran.exit_code, ran.seconds)
