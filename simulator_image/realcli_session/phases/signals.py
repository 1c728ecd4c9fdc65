"""What the gateway finds out, as causes. Its events are set once and for ever, so they can be asked for as well as waited for."""

from __future__ import annotations

import asyncio

from realcli_session.gateway.port import GatewayPort
from realcli_session.phases.attempt import Attempt, Happening, need
from realcli_session.phases.table import Cause

_ENDS_OF_THE_AGENT = frozenset({Cause.COMPLETED, Cause.AGENT_FAILED, Cause.AGENT_EXIT})


def gateway_signals(gateway: GatewayPort) -> list[tuple[asyncio.Event, Cause]]:
    """(event, cause), the one that decides first where several are set."""
    return [
        (gateway.broken, Cause.INTERNAL),
        (gateway.model_mismatch, Cause.MODEL_MISMATCH),
        (gateway.budget_hit, Cause.BUDGET),
        (gateway.turn_limit_hit, Cause.TURN_LIMIT),
    ]


def signalled(attempt: Attempt) -> Happening | None:
    """What the gateway knows by now that ends the work: an agent that yields at this moment yields too late."""
    if attempt.gateway is None:
        return None
    for event, cause in gateway_signals(attempt.gateway):
        if event.is_set():
            return cause, detail_of(attempt.gateway, cause)
    return None


def last_word(attempt: Attempt, happening: Happening) -> Happening:
    """What the work ended with, seen with what the gateway knows of the last answer of the main conversation.

    AGENT_REFUSED: it was a safety refusal. PROVIDER_FAILED: the provider cut it and the program gave up on that, which nothing
    the agent does can bring about; a program that exits on its own is not excused by it.
    """
    cause, detail = happening
    if cause not in _ENDS_OF_THE_AGENT or attempt.gateway is None:
        return happening
    if cause is Cause.AGENT_FAILED and attempt.gateway.cut_by_provider is not None:
        return Cause.PROVIDER_FAILED, f"{attempt.gateway.cut_by_provider}; the program gave up: {detail}"
    if not attempt.gateway.refused_by_model:
        return happening
    return Cause.AGENT_REFUSED, "the model's last answer was a safety refusal" + (f"; {detail}" if detail else "")


async def wait_for_signal(attempt: Attempt, event: asyncio.Event, cause: Cause) -> None:
    """Tell the driver when the event comes."""
    await event.wait()
    attempt.happened(cause, detail_of(need(attempt.gateway), cause))


def detail_of(gateway: GatewayPort, cause: Cause) -> str:
    """For people."""
    match cause:
        case Cause.TURN_LIMIT:
            return f"request {gateway.turns + 1} was refused"
        case Cause.BUDGET:
            if gateway.cost_usd is None:
                return "what the trial has cost is unknown (a reply without usage, or of a kind of token without a price)"
            return f"the trial's budget is spent: {gateway.cost_usd} USD so far"
        case Cause.MODEL_MISMATCH:
            return gateway.mismatch or "the provider answered with another model id"
        case _:
            return f"the gateway failed: {gateway.breakage!r}"
