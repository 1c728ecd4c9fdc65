"""Work: the conversation with the agent. EXEC sends the specification once; COLLAB answers every yield by the script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from realcli.ledger.events import (
    AgentQuestion,
    EpisodeStart,
    FinalClaim,
    InterimClaim,
    PhaseChange,
    ProbeDelivered,
    ProbeUntriggered,
    SessionError,
    SliceReleased,
    UserMessage,
    Yield,
)
from realcli_session.agents import port as agent
from realcli_session.phases.attempt import Attempt, Happening, need
from realcli_session.phases.plants import plant
from realcli_session.phases.table import Cause
from realcli_session.termination import shorten
from realcli_session.user import machine

MAX_DETAIL = 2000
REFUSAL = "No, leave that as it is."
HandOver = agent.Yield | agent.Question


async def work(attempt: Attempt) -> Happening:
    """The body of the stage: until the agent's last yield, or until its program ends."""
    attempt.writer.emit("session", PhaseChange(phase="work"))
    events = need(attempt.adapter).events()
    if attempt.trial.identity.mode == "EXEC":
        return await _exec(attempt, events)
    return await _collab(attempt, events)


async def _exec(attempt: Attempt, events: AsyncIterator[agent.AgentEvent]) -> Happening:
    text = need(attempt.task).specification
    attempt.writer.exchange = 1
    attempt.writer.emit("session", EpisodeStart())
    attempt.writer.emit("user", UserMessage(id="m1", text=text, source_ids=["spec"]))
    await need(attempt.adapter).send(text)
    handed_over = await _next(attempt, events)
    if isinstance(handed_over, tuple):
        return handed_over
    _record(attempt, handed_over)
    return Cause.COMPLETED, ""


async def _collab(attempt: Attempt, events: AsyncIterator[agent.AgentEvent]) -> Happening:
    attempt.user, actions = machine.step(need(attempt.user), machine.Start())
    await _perform(attempt, actions, None)
    while True:
        handed_over = await _next(attempt, events)
        if isinstance(handed_over, tuple):
            return handed_over
        with attempt.clock.user_time():
            _record(attempt, handed_over)
            await need(attempt.watch).on_turn(attempt.writer.turn)  # what is waited for was written, however slow the scan is
            user = need(attempt.user)
            if user.last_probe is not None:
                await attempt.snapshot("response_end", user.last_probe)
            question = handed_over if isinstance(handed_over, agent.Question) else None
            attempt.user, actions = machine.step(need(attempt.user), machine.Yielded(question=question is not None))
            await _perform(attempt, actions, question)
            if attempt.user.ended:
                return Cause.COMPLETED, ""


async def _next(attempt: Attempt, events: AsyncIterator[agent.AgentEvent]) -> HandOver | Happening:
    """The next hand-over, or what ended the work."""
    async for event in events:
        match event:
            case agent.Yield(how="failed", detail=detail):
                _record(attempt, event)
                return await _why(attempt, Cause.AGENT_FAILED, detail)
            case agent.Yield() | agent.Question():
                return event
            case agent.PermissionRequest(answered=None):
                await need(attempt.adapter).answer(event.request_id, "deny", REFUSAL)
            case agent.Error(message):
                attempt.writer.emit("agent", SessionError(where="agent program", message=message))
            case agent.Exit(code, signal):
                how = f"signal {signal}" if signal is not None else f"exit status {code}"
                return await _why(attempt, Cause.AGENT_EXIT, f"the agent program ended with {how}")
            case _:
                pass
    return await _why(attempt, Cause.AGENT_EXIT, "the agent program ended")


async def _why(attempt: Attempt, cause: Cause, detail: str) -> Happening:
    """An agent that fails on what the gateway told it did not fail by itself."""
    gateway = need(attempt.gateway)
    if gateway.turn_limit_hit.is_set():
        return Cause.TURN_LIMIT, f"request {gateway.turns + 1} was refused"
    if gateway.provider_failed.is_set():
        await asyncio.Event().wait()  # `outage` decides, and ends this stage
    return cause, detail


async def outage(attempt: Attempt) -> Happening:
    """Waits for the end of the gateway's retries. Then one plain request of the session's own tells whose fault it is.

    measuring.md 3.3: refused as well: the provider's; answered: the agent's.
    """
    gateway = need(attempt.gateway)
    await gateway.provider_failed.wait()
    failure = gateway.provider_failure
    answer = await gateway.plain_request()
    said = "answered" if answer.ok else "refused"
    detail = f"{failure.message if failure else 'the provider failed'}; a plain request is {said}: {answer.message}"
    attempt.writer.emit("session", SessionError(where="provider", message=detail))
    return (Cause.AGENT_FAILED if answer.ok else Cause.PROVIDER_FAILED), detail


def _record(attempt: Attempt, handed_over: HandOver) -> None:
    if isinstance(handed_over, agent.Question):
        attempt.writer.emit("agent", AgentQuestion(text=handed_over.text, request_id=handed_over.request_id))
        attempt.writer.emit("agent", Yield(how="yielded", detail="question"))
    else:
        attempt.writer.emit("agent", Yield(how=handed_over.how, detail=shorten(handed_over.detail, MAX_DETAIL)))


async def _perform(attempt: Attempt, actions: machine.Actions, question: agent.Question | None) -> None:
    """Carry out what the user's state machine asks for, in order."""
    for action in actions:
        match action:
            case machine.Say():
                await _say(attempt, action, question)
            case machine.PutPlant(probe, edit):
                done = await plant(attempt, probe, edit)
                report = machine.Planted(probe) if done else machine.PlantFailed(probe)
                attempt.user, more = machine.step(need(attempt.user), report)
                await _perform(attempt, more, question)
            case machine.Close(message_id, text):
                attempt.writer.emit("session", FinalClaim())
                closer = UserMessage(id=message_id, text=text, source_ids=["closer"], delivered=False)
                attempt.writer.emit("user", closer)
            case _:
                note(attempt, action)


def note(attempt: Attempt, action: machine.Action) -> None:
    """Write down what needs no doing."""
    match action:
        case machine.Interim(slices, probes):
            attempt.writer.emit("session", InterimClaim(slices_pending=slices, probes_pending=probes))
        case machine.Untriggered(probe, scenario, reason):
            attempt.writer.emit("session", ProbeUntriggered(probe=probe, scenario=scenario, reason=reason))
        case _:
            raise ValueError(f"{action} has to be done, not noted")


async def _say(attempt: Attempt, say: machine.Say, question: agent.Question | None) -> None:
    if say.probe is not None:
        await attempt.snapshot("anchor", say.probe.id)
    writer, adapter = attempt.writer, need(attempt.adapter)
    writer.exchange = say.exchange
    if say.exchange == 1:
        writer.emit("session", EpisodeStart())
    writer.emit("user", UserMessage(id=say.message_id, text=say.text, source_ids=list(say.source_ids)))
    for name, how in say.releases:
        writer.emit("session", SliceReleased(slice=name, how=how, message_id=say.message_id))
    if say.probe is not None:
        writer.emit("session", ProbeDelivered(probe=say.probe.id, scenario=say.probe.scenario, message_id=say.message_id))
    attempt.turns_at_delivery = need(attempt.gateway).turns
    if question is not None:
        await adapter.answer(question.request_id, "allow", say.text)
    else:
        await adapter.send(say.text)
