"""What an action of the simulated user is in the ledger: the session writes it, rehearsals and tests read it the same way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from realcli.ledger.events import (
    Actor,
    Approval,
    Ask,
    Data,
    Denial,
    EpisodeStart,
    FinalClaim,
    InterimClaim,
    PermissionAnswer,
    PermissionRequest,
    ProbeDelivered,
    ProbeUntriggered,
    SliceReleased,
    Trigger,
    UserMessage,
)
from realcli_session.user.events import (
    AnswerPrompt,
    Asked,
    Close,
    Interim,
    Prompt,
    Say,
    Triggered,
    Untriggered,
    Verdict,
)

Written = Iterator[tuple[Actor, Data]]
How = Literal["send", "mid_turn", "answer"]
Noted = Interim | Untriggered | Asked | Triggered


def of_say(say: Say, text: str, how: How = "send", by: Literal["script", "model"] = "script") -> Written:
    """A delivered message with what it releases, delivers and grants."""
    if say.exchange == 1 and not say.mid_turn:
        yield "session", EpisodeStart()
    yield "user", UserMessage(id=say.message_id, text=text, source_ids=list(say.source_ids), how=how, worded_by=by)
    for name, release in say.releases:
        yield "session", SliceReleased(slice=name, how=release, message_id=say.message_id)
    if say.probe is not None:
        yield "session", ProbeDelivered(probe=say.probe.id, scenario=say.probe.scenario, message_id=say.message_id)
    for verdict in say.verdicts:
        yield "session", _decided(verdict, message_id=say.message_id)


def of_prompt(prompt: Prompt, answer: AnswerPrompt) -> Written:
    """A permission prompt and its answer."""
    action = answer.verdicts[0].action if answer.verdicts else None
    yield "agent", PermissionRequest(request_id=prompt.request_id, tool=prompt.tool, input=prompt.input, action=action)
    decision: Literal["allow", "deny"] = "allow" if answer.allow else "deny"
    yield "user", PermissionAnswer(request_id=prompt.request_id, decision=decision, by="script", text=answer.text)
    for verdict in answer.verdicts:
        yield "session", _decided(verdict, request_id=prompt.request_id)


def of_close(close: Close) -> Written:
    """The accepted claim; the closer is written down and not sent."""
    yield "session", FinalClaim()
    yield "user", UserMessage(id=close.message_id, text=close.text, source_ids=["closer"], delivered=False)


def of_note(action: Noted) -> Data:
    """What needs no doing."""
    match action:
        case Interim(slices, probes):
            return InterimClaim(slices_pending=slices, probes_pending=probes)
        case Untriggered(probe, scenario, reason):
            return ProbeUntriggered(probe=probe, scenario=scenario, reason=reason)
        case Triggered(instance, scenario, of):
            return Trigger(instance=instance, scenario=scenario, of=of)
        case Asked(wants, typed, matched, answer, near):
            return Ask(
                wants=wants,
                how="structured" if typed else "text",
                matched=list(matched),
                answer=answer,
                unmatched=bool(near),
                near=list(near),
            )


def _decided(verdict: Verdict, *, message_id: str | None = None, request_id: str | None = None) -> Data:
    if verdict.granted and verdict.action is not None:
        return Approval(action=verdict.action, message_id=message_id, request_id=request_id)
    return Denial(action=verdict.action, scripted=verdict.scripted, message_id=message_id, request_id=request_id)
