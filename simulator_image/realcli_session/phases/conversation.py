"""Work: what both modes share of the conversation with the agent, and EXEC, which sends the specification once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from realcli.ledger.events import AgentMessage, AgentQuestion, EpisodeStart, PhaseChange, SessionError, UserMessage, Yield
from realcli_session.agents import port as agent
from realcli_session.evidence.process_limit import refused_forks
from realcli_session.phases.attempt import Attempt, Happening, need
from realcli_session.phases.table import Cause
from realcli_session.runner.errors import RunnerLost
from realcli_session.termination import shorten

MAX_DETAIL = 2000
TOO_MANY = 429
BUSY = (TOO_MANY, 529)  # the provider's own words for "not now"
CALM = 8  # requests side by side that sub-agents of an honest run may have
ASKED_AGAIN = 4
ASK_SECONDS = 30.0  # providers count requests by the minute
HandOver = agent.Yield | agent.Question


async def exec_work(attempt: Attempt) -> Happening:
    """EXEC: until the agent's first yield, or until its program ends."""
    attempt.writer.emit("session", PhaseChange(phase="work"))
    events = need(attempt.adapter).events()
    text = need(attempt.task).specification
    attempt.writer.exchange = 1
    attempt.writer.emit("session", EpisodeStart())
    attempt.writer.emit("user", UserMessage(id="m1", text=text, source_ids=["spec"]))
    try:
        await need(attempt.adapter).send(text)
        handed_over = await _next(attempt, events)
    except agent.AgentUnresponsive as error:
        return await why(attempt, Cause.AGENT_EXIT, str(error))
    if isinstance(handed_over, tuple):
        return handed_over
    record(attempt, handed_over)
    return Cause.COMPLETED, ""


async def _next(attempt: Attempt, events: AsyncIterator[agent.AgentEvent]) -> HandOver | Happening:
    """The next hand-over, or what ended the work."""
    async for event in events:
        if isinstance(event, agent.PermissionRequest) and event.answered is None:
            raise RuntimeError(f"a permission prompt ({event.tool}) was left open in EXEC")
        taken = await take(attempt, event)
        if taken is not None:
            return taken
    return await why(attempt, Cause.AGENT_EXIT, "the agent program ended")


async def take(attempt: Attempt, event: agent.AgentEvent) -> HandOver | Happening | None:
    """What an event of the program means for the work: a hand-over, an end, or nothing."""
    match event:
        case agent.Yield(how="failed", detail=detail):
            record(attempt, event)
            return await why(attempt, Cause.AGENT_FAILED, detail)
        case agent.Yield() | agent.Question():
            return event
        case agent.Error(message):
            attempt.writer.emit("agent", SessionError(where="agent program", message=message))
        case agent.Exit(code, signal):
            how = f"signal {signal}" if signal is not None else f"exit status {code}"
            return await why(attempt, Cause.AGENT_EXIT, f"the agent program ended with {how}")
    return None


async def why(attempt: Attempt, cause: Cause, detail: str) -> Happening:
    """An agent that fails on what the gateway told it did not fail by itself."""
    gateway = need(attempt.gateway)
    if gateway.turn_limit_hit.is_set():
        return Cause.TURN_LIMIT, f"request {gateway.turns + 1} was refused"
    if gateway.provider_failed.is_set():
        await asyncio.Event().wait()  # `outage` decides, and ends this stage
    before, now = attempt.refused_forks, await _refused_forks(attempt)
    if before is not None and now is not None and now > before:
        return Cause.PID_LIMIT, f"{now - before} processes were refused by the container's limit; {detail}"
    return cause, detail


async def _refused_forks(attempt: Attempt) -> int | None:
    try:
        return await refused_forks(need(attempt.runner))
    except RunnerLost:
        return None  # which is an end of its own


async def outage(attempt: Attempt) -> Happening:
    """Waits for the end of the gateway's retries. Then one plain request of the session's own tells whose fault it is.

    measuring.md 3.3: refused as well: the provider's; answered: the agent's. "Too many requests" may be the agent's own,
    sent side by side for long enough: nothing more of it is let through, and the question is asked again. Where the agent sent
    no flood, a provider that says it is busy for the whole bound of retries is busy, whatever it answers to one short question:
    limits on tokens hit long requests alone, and 0 for it would be a wrong number.
    """
    gateway = need(attempt.gateway)
    await gateway.provider_failed.wait()
    flood = gateway.open_requests > CALM
    failure = gateway.provider_failure
    gateway.refuse_all("provider_failed")  # either way the work is over
    answer = await gateway.plain_request()
    for _ in range(ASKED_AGAIN):
        if answer.status != TOO_MANY:
            break
        await asyncio.sleep(ASK_SECONDS)
        answer = await gateway.plain_request()
    said = "answered" if answer.ok else "refused"
    detail = f"{failure.message if failure else 'the provider failed'}; a plain request is {said}: {answer.message}"
    attempt.writer.emit("session", SessionError(where="provider", message=detail))
    busy = failure is not None and failure.status in BUSY and not flood
    return (Cause.AGENT_FAILED if answer.ok and not busy else Cause.PROVIDER_FAILED), detail


def record(attempt: Attempt, handed_over: HandOver) -> None:
    """Write a hand-over down."""
    if isinstance(handed_over, agent.Question) and handed_over.prose:
        attempt.writer.emit("agent", AgentMessage(text=handed_over.text, field="message_to_user"))
        attempt.writer.emit("agent", Yield(how="yielded", detail="message"))
    elif isinstance(handed_over, agent.Question):
        asked = AgentQuestion(text=handed_over.text, request_id=handed_over.request_id, parts=list(handed_over.parts))
        attempt.writer.emit("agent", asked)
        attempt.writer.emit("agent", Yield(how="yielded", detail="question"))
    else:
        attempt.writer.emit("agent", Yield(how=handed_over.how, detail=shorten(handed_over.detail, MAX_DETAIL)))
