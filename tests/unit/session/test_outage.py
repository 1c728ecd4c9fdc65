"""Whose fault an unanswered request is, and that an agent cannot make it the provider's."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from realcli.api.outcomes import is_valid
from realcli_session.agents.port import AgentUnresponsive
from realcli_session.gateway.port import PlainAnswer, ProviderFailure
from realcli_session.phases import conversation, setup
from realcli_session.phases.collab import Conversation, collab_work
from realcli_session.phases.conversation import exec_work, outage
from realcli_session.phases.table import Cause, Progress, advance
from realcli_session.runner.errors import RunnerLost

TOO_MANY = PlainAnswer(False, 429, None, "slow down")
DOWN = PlainAnswer(False, 503, None, "down")
OK = PlainAnswer(True, 200, "m", "")


class Gateway:
    """Answers plain requests by script."""

    def __init__(
        self, *answers: PlainAnswer, failed: bool = True, turns_out: bool = False, status: int = 429, beside: int = 100
    ) -> None:
        self.answers = list(answers)
        self.asked: list[str | None] = []
        self.refusing: str | None = None
        self.turns = 7
        self.provider_failed, self.turn_limit_hit = asyncio.Event(), asyncio.Event()
        self.provider_failure = ProviderFailure(3, status, 14, str(status))
        self.open_requests = beside
        if failed:
            self.provider_failed.set()
        if turns_out:
            self.turn_limit_hit.set()

    def refuse_all(self, reason: str) -> None:
        self.refusing = reason

    async def plain_request(self) -> PlainAnswer:
        self.asked.append(self.refusing)
        return self.answers.pop(0)


class Adapter:
    """A program that answers nothing."""

    async def send(self, text: str) -> None:
        raise AgentUnresponsive("codex did not answer turn/start within 30 s")

    def events(self) -> Any:
        return None


def attempt_of(gateway: Gateway) -> Any:
    events: list[Any] = []
    writer = SimpleNamespace(emit=lambda actor, data: events.append(data), exchange=0, subscribe=lambda callback: None)
    task = SimpleNamespace(specification="do it")
    return SimpleNamespace(
        gateway=gateway, writer=writer, events=events, adapter=Adapter(), task=task, runner=None, refused_forks=None
    )


@pytest.mark.parametrize(
    ("answers", "cause"),
    [
        ([OK], Cause.AGENT_FAILED),
        ([DOWN], Cause.PROVIDER_FAILED),
        ([TOO_MANY, TOO_MANY, OK], Cause.AGENT_FAILED),
        ([TOO_MANY, DOWN], Cause.PROVIDER_FAILED),
        ([TOO_MANY] * 5, Cause.PROVIDER_FAILED),
    ],
)
async def test_the_agents_own_flood_is_let_pass_first(
    monkeypatch: pytest.MonkeyPatch, answers: list[PlainAnswer], cause: Cause
) -> None:
    monkeypatch.setattr(conversation, "ASK_SECONDS", 0.0)
    gateway = Gateway(*answers)
    assert (await outage(attempt_of(gateway)))[0] is cause
    assert gateway.answers == []
    assert gateway.asked == ["provider_failed"] * len(answers), "nothing of the agent goes out beside it"


@pytest.mark.parametrize(
    ("status", "beside", "cause"),
    [
        (429, 0, Cause.PROVIDER_FAILED),  # a limit on tokens, which a short question does not meet
        (529, 8, Cause.PROVIDER_FAILED),
        (429, 9, Cause.AGENT_FAILED),  # its own flood
        (500, 0, Cause.AGENT_FAILED),  # an error that only this request gets
    ],
)
async def test_a_busy_provider_is_busy_where_the_agent_sent_no_flood(status: int, beside: int, cause: Cause) -> None:
    assert (await outage(attempt_of(Gateway(OK, status=status, beside=beside))))[0] is cause


async def test_a_program_that_answers_nothing_ends_as_what_was_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def none(runner: object) -> None:
        return None

    monkeypatch.setattr(conversation, "refused_forks", none)
    attempt = attempt_of(Gateway(failed=False))
    attempt.runner = object()
    assert await exec_work(attempt) == (Cause.AGENT_EXIT, "codex did not answer turn/start within 30 s")
    assert (await exec_work(attempt_of(Gateway(failed=False, turns_out=True))))[0] is Cause.TURN_LIMIT

    async def run(self: Conversation) -> Any:
        raise AgentUnresponsive("codex did not answer turn/interrupt within 30 s")

    monkeypatch.setattr(Conversation, "run", run)
    assert (await collab_work(attempt_of(Gateway(failed=False, turns_out=True))))[0] is Cause.TURN_LIMIT
    waits = asyncio.create_task(collab_work(attempt_of(Gateway())))  # `outage` decides and ends the stage
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waits.done()
    waits.cancel()
    await asyncio.gather(waits, return_exceptions=True)


@pytest.mark.parametrize(
    ("own", "started", "cause"),
    [(False, True, Cause.RUNNER_LOST), (True, False, Cause.RUNNER_LOST), (True, True, Cause.AGENT_EXIT)],
)
async def test_a_teams_own_set_up_cannot_choose_an_invalid_end(
    monkeypatch: pytest.MonkeyPatch, own: bool, started: bool, cause: Cause
) -> None:
    async def lost(*_: object) -> Any:
        raise RunnerLost("end of stream")

    monkeypatch.setattr(setup, "_set_up", lost)
    attempt = attempt_of(Gateway())
    attempt.trial = SimpleNamespace(lock=SimpleNamespace(spec=SimpleNamespace(limits=SimpleNamespace(setup="60s")), cgroup=None))
    attempt.settings = SimpleNamespace(cgroup=None, node=None)
    attempt.runner, attempt.own, attempt.adapter = object(), object() if own else None, object() if started else None
    found, _ = await setup.set_up(attempt, None, lambda: None)  # type: ignore[arg-type, return-value]
    assert found is cause
    assert is_valid(str(advance(Progress(), found).reason)) is (cause is Cause.AGENT_EXIT)
