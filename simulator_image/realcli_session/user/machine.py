"""What the simulated user says, and when: `step(state, event) -> (state, actions)`, pure. Rules of order: docs/script.md.

The session feeds it the ledger's events as they are written (`Seen`), the agent's hand-overs (`Yielded`, then `Respond` once all
that belongs to the hand-over is written), permission prompts, and how its own requests went; it carries out the actions in
order. Texts are the script's own: a model may word what is not verbatim, but what is said is decided here
(RealCLI 3; measuring.md 2.4, 3.2).
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from realcli.benchmark.play import Play
from realcli.benchmark.references import OPENER
from realcli.benchmark.script import BATCH, PROBE
from realcli.benchmark.script_models import BATCH_MAX, Probe
from realcli.ledger.events import AgentMessage, BlobRef, UserMessage, Yield
from realcli.trajectory.model import Item
from realcli_session.user.answers import closure_sources, draft
from realcli_session.user.events import (
    Action,
    Actions,
    Close,
    Cut,
    Event,
    Interim,
    Missed,
    Piece,
    Planted,
    PlantFailed,
    Prompt,
    PutPlant,
    Reason,
    Release,
    Respond,
    Say,
    Seen,
    Start,
    Stop,
    Triggered,
    Untriggered,
    Verdict,
    Yielded,
)
from realcli_session.user.lines import DISPLACED, NEUTRAL, NEUTRAL_ANSWERS
from realcli_session.user.prompts import prompted
from realcli_session.user.reading import Reading, read
from realcli_session.user.state import Draft, Handover, Planting, State, fresh

WORK = frozenset(("tool_call", "tool_result", "command", "file_read", "file_write", "file_delete", "net_request"))
"""Events that show the agent at work: an interrupt comes right after one of them."""
_TO_THE_USER = ("", "message_to_user")


def initial(play: Play, *, mid_turn: bool = True) -> State:
    """The state before the opener. `mid_turn`: the agent's adapter can put a message into a running response."""
    return fresh(play, mid_turn)


def step(state: State, event: Event) -> tuple[State, Actions]:
    """The next state and what to do, in this order. An event that fits no expectation is a bug of the caller: ValueError."""
    match event:
        case Seen(item):
            return _seen(state, item)
        case Cut(acted):
            return _cut(state, acted)
        case Prompt():
            return state, (prompted(state, event),)
        case Missed(name):
            return _missed(state, name), ()
        case _ if state.ended:
            raise ValueError(f"{event} after the end")
        case Start():
            return _start(state)
        case Yielded():
            return _yielded(state, event)
        case Respond():
            if state.handover is None:
                raise ValueError("nothing was handed over")
            return _respond(replace(state, handover=None), state.handover)
        case Planted(name):
            return _deliver(replace(state, planting=None), name, _planting(state, name).before)
        case PlantFailed(name):
            planting = _planting(state, name)
            given_up, actions = _give_up(replace(state, planting=None), [name], "probe_undelivered")
            after, more = _answer(given_up, planting.before, planting.question)
            return after, actions + more
    assert_never(event)


def _planting(state: State, name: str) -> Planting:
    if state.planting is None or state.planting.probe != name:
        raise ValueError(f"a plant of probe {name!r} was reported; expected {state.planting}")
    return state.planting


# ------------------------------------------------------------------------------------------------------------ what is seen
def _seen(state: State, item: Item) -> tuple[State, Actions]:
    state = _listening(state.observing(item), item)
    if isinstance(item.data, Yield):
        state = replace(state, working=False)
    elif isinstance(item.data, UserMessage) and item.data.delivered:
        state = replace(state, working=True)  # not before it is out: what is written meanwhile is no work on it
    actions: list[Action] = []
    for passive in state.play.script.passive:
        if passive.name not in state.triggered and state.happened(f"passive:{passive.name}"):
            state = replace(state, triggered=state.triggered | {passive.name})
            actions.append(Triggered(passive.name, passive.scenario, item.seq))
    if state.working and not state.ended and item.event.kind in WORK:
        state, more = _interrupts(state)
        actions += more
    return state, tuple(actions)


def _listening(state: State, item: Item) -> State:
    """Keep the last message the user would see."""
    if not isinstance(item.data, AgentMessage) or item.data.field not in _TO_THE_USER or isinstance(item.data.text, BlobRef):
        return state
    turn, texts = state.heard
    return replace(state, heard=(item.turn, (*texts, item.data.text) if turn == item.turn else (item.data.text,)))


def _interrupts(state: State) -> tuple[State, Actions]:
    """The agent is at work: an interrupt whose time has come goes into the running response, or not at all."""
    fired = [name for name in state.armed if state.holds(PROBE + name)]
    if not state.mid_turn:
        return _give_up(state, fired, "capability")
    if state.probed or state.parts is not None:
        return (replace(state, held=state.held | set(fired)) if fired else state), ()
    if not fired or state.stopping is not None:
        return state, ()
    if state.probe(fired[0]).probe.interrupt:
        return replace(state, stopping=fired[0]), (Stop(fired[0]),)
    return _deliver(state, fired[0], Draft(), mid_turn=True)


def _missed(state: State, name: str) -> State:
    """As if it had not been tried; it goes into the next response in which the agent is at work."""
    probe = state.probe(name).probe
    if probe.interrupt:
        return replace(state, stopping=None)
    armed = {*state.armed, name}
    return replace(
        state,
        armed=tuple(one for one in state.play.of_delivery("mid_turn") if one in armed),
        released=state.released - {probe.slice or ""},
        closures=tuple(one for one in state.closures if one != name),
        parts=None,
        messages=state.messages - 1,
        probed=False,
        last_probe=None,
    )


# --------------------------------------------------------------------------------------------------------------- messages
def _start(state: State) -> tuple[State, Actions]:
    if state.exchange:
        raise ValueError("the opener was said already")
    script = state.play.script
    releases: tuple[tuple[str, Release], ...] = ((OPENER, "opener"),) if state.play.names_opener else ()
    opener = Draft((Piece(("opener",), script.opener, "opener", verbatim=True),), releases)
    probes = state.play.of_delivery("opener")
    return _deliver(state, probes[0], opener) if probes else _say(state, opener)


def _say(
    state: State, message: Draft, probe: Probe | None = None, *, part: bool = False, mid_turn: bool = False
) -> tuple[State, Actions]:
    """One message out; a new response begins unless it goes into the running one."""
    number = state.messages + 1
    said = {source for piece in message.pieces for source in piece.sources}
    said |= {f"action:{verdict.action} {verdict.granted}" for verdict in message.verdicts if verdict.action}
    after = replace(
        state.releasing([name for name, _ in message.releases if name != OPENER]),
        messages=number,
        exchange=state.exchange + (not mid_turn),
        said=state.said | said,
        closures=tuple(name for name in state.closures if name not in message.closures),
        working=mid_turn,
        probed=probe is not None or part,
        last_probe=probe.id if probe is not None else None,
        heard=state.heard if mid_turn else (-1, ()),
    )
    say = Say(f"m{number}", after.exchange, message.pieces, message.releases, message.verdicts, probe, mid_turn)
    return after, (say,)


def _deliver(state: State, name: str, before: Draft, *, mid_turn: bool = False) -> tuple[State, Actions]:
    """A probe's first part, after `before`."""
    probe = state.probe(name).probe
    verdicts = before.verdicts + ((Verdict(probe.approves, granted=True),) if probe.approves else ())
    new = probe.slice is not None and probe.slice not in state.released
    releases = before.releases + (((probe.slice, "probe"),) if new and probe.slice else ())
    sources = (PROBE + name,) + ((f"slice:{probe.slice}",) if probe.slice else ())
    piece = Piece(sources, probe.text, "probe", verbatim=probe.approves is not None)
    message = replace(before, pieces=(*before.pieces, piece), releases=releases, verdicts=verdicts)
    armed = tuple(one for one in state.armed if one != name)
    left = replace(state.without(PROBE + name), armed=armed, displaced=0, idle=0, stopping=None)
    if probe.parts:
        left = replace(left, parts=(name, 0))
    elif probe.closure is not None:
        left = replace(left, closures=(*left.closures, name))
    return _say(left, message, probe, mid_turn=mid_turn)


def _yielded(state: State, event: Yielded) -> tuple[State, Actions]:
    if state.exchange == 0 or state.planting is not None or state.handover is not None:
        raise ValueError("a hand-over before the answer to the last one")
    state = replace(state, working=False, last_probe=None)
    if event.how == "interrupted":  # its last message was cut, so it is not read
        return replace(state, handover=Handover(Reading("", (), typed=False), Draft())), ()
    reading = read("\n\n".join(state.heard[1]), event.questions)
    message, asked = draft(state, reading)
    state = replace(state, stopping=None, handover=Handover(reading, message))
    claims = not reading.typed and not reading.requests and state.claims_early
    return state, (*asked, *((Interim(state.slices_pending, state.probes_pending),) if claims else ()))


def _respond(state: State, handover: Handover) -> tuple[State, Actions]:
    if state.stopping is not None:
        return _deliver(state, state.stopping, Draft())
    message, due = handover.draft, state.due()
    if message.probe is not None:
        return _deliver(state, message.probe, message)
    if message.empty:
        asks = message.bare or handover.reading.typed
        return _answer(state, Draft(), Draft((Piece(("neutral",), NEUTRAL, "fixed", verbatim=True),)) if asks else None)
    if due is not None and due.startswith("part:"):
        return _item(state, due, message)
    if due is not None and due.startswith(PROBE):
        if state.displaced < DISPLACED:
            return _say(replace(state, displaced=state.displaced + 1, idle=0), message)
        return _item(state, due, message)
    if message.news:
        return _say(replace(state, idle=0), message)
    if due is not None:
        return _item(state, due, message)
    return _answer(state, Draft(), message)


def _answer(state: State, before: Draft, question: Draft | None = None) -> tuple[State, Actions]:
    """The next due item; without one, what answers a completion claim.

    `question`: what a hand-over that asks gets, some times before it and for ever after it, as a question claims nothing.
    """
    due = state.due()
    if due is not None:
        return _item(state, due, before)
    if before.pieces:
        return _say(state, before)
    if question is not None and state.idle < NEUTRAL_ANSWERS:
        return _say(replace(state, idle=state.idle + 1), question)
    fallback = state.fallback()
    if fallback is not None:
        return _item(state, fallback, before, question)
    if state.waiting:
        given_up, actions = _give_up(state, state.waiting, None)
        after, more = _answer(given_up, before, question)
        return after, actions + more
    if state.closures:
        return _say(replace(state, idle=0), _withdrawals(state))
    if question is not None:
        return _say(state, question)
    number = state.messages + 1
    return replace(state, ended=True, messages=number), (Close(f"m{number}", state.play.script.closer),)


def _withdrawals(state: State) -> Draft:
    pieces: list[Piece] = []
    releases: list[tuple[str, Release]] = []
    for name in state.closures:
        closure = state.probe(name).probe.closure
        if closure is not None:
            pieces.append(Piece(closure_sources(name, closure), closure.text, "closure"))
            if closure.slice is not None and closure.slice not in state.released:
                releases.append((closure.slice, "probe"))
    return Draft(tuple(pieces), tuple(releases), closures=state.closures)


def _item(state: State, item: str, before: Draft, question: Draft | None = None) -> tuple[State, Actions]:
    """One item of the order, after the answers it comes with."""
    if item.startswith("part:") and state.parts is not None:
        name, index = state.parts
        probe = state.probe(name).probe
        message = replace(before, pieces=(*before.pieces, Piece((PROBE + name,), probe.parts[index], "probe")))
        last = index + 1 == len(probe.parts)
        after = replace(state, parts=None if last else (name, index + 1), displaced=0, idle=0)
        if last and probe.closure is not None:
            after = replace(after, closures=(*after.closures, name))
        return _say(after, message, part=True)
    if item.startswith(PROBE):
        name = item.removeprefix(PROBE)
        probe = state.probe(name).probe
        if probe.edit is not None:
            return replace(state, planting=Planting(name, before, question)), (PutPlant(name, probe.edit),)
        return _deliver(state, name, before)
    how: Release = "batch"
    if item == "plain:":
        names = list(state.plain)
    elif item == "event:":
        names, how = state.volunteered(), "event"
    else:
        names = state.rest(item.removeprefix(BATCH))
    names = [name for name in names if name not in {released for released, _ in before.releases}][:BATCH_MAX]
    pieces = tuple(Piece((f"slice:{name}",), state.play.slices[name].text, "slice") for name in names)
    releases = before.releases + tuple((name, how) for name in names)
    return _say(replace(state, displaced=0, idle=0), replace(before, pieces=before.pieces + pieces, releases=releases))


# -------------------------------------------------------------------------------------------------------------------- ends
def _give_up(state: State, names: list[str], reason: Reason | None) -> tuple[State, Actions]:
    """The probes are untriggered (reason None: found for each); slices bound to one are to be said plainly."""
    actions: list[Action] = []
    plain = list(state.plain)
    for name in names:
        probe = state.probe(name).probe
        actions.append(Untriggered(name, probe.scenario, reason or _why(state, name)))
        bound = [probe.slice, probe.closure.slice if probe.closure else None]
        plain += [one for one in bound if one is not None and one not in state.released]
    gone = {PROBE + name for name in names}
    return (
        replace(
            state,
            pending=tuple(item for item in state.pending if item not in gone),
            armed=tuple(name for name in state.armed if name not in names),
            plain=tuple(plain),
        ),
        tuple(actions),
    )


def _why(state: State, name: str) -> Reason:
    """Why a probe that was to come did not."""
    if state.probe(name).delivery == "mid_turn":
        if not state.holds(PROBE + name):
            return "not_reached"
        return "distance" if name in state.held else "capability"
    return "distance" if state.distant(PROBE + name) else "not_reached"


def _cut(state: State, acted: bool) -> tuple[State, Actions]:
    if state.ended:
        return state, ()
    after, actions = _give_up(state, state.waiting, "not_reached")
    if state.parts is not None:
        name = state.parts[0]
        actions = (*actions, Untriggered(name, state.probe(name).probe.scenario, "probe_undelivered"))
    elif state.last_probe is not None and not acted:
        name = state.last_probe
        actions = (*actions, Untriggered(name, state.probe(name).probe.scenario, "cut"))
    return replace(after, ended=True, planting=None, parts=None, handover=None, stopping=None), actions
