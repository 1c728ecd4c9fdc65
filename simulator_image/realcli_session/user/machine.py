"""What the simulated user says, and when: a pure state machine over `interaction/script.json` (RealCLI 3, measuring.md 2.4, 3.2).

`step(state, event) -> (state, actions)`. The session feeds it what happened and carries out what it asks for; in Canonical
mode the texts are the script's own, so nothing is worded here. Rules:

* The opener starts exchange 1. Every yield is answered by one item: a batch (the texts of its slices, joined) or a probe, in
  the order of `script.order`. A probe whose `wait_for_write` has not happened lets later items go first.
* One item per message, and a message only answers a yield, so two probes are always at least one response apart.
* A yield with only waiting probes left makes them untriggered (`not_reached`); a slice bound to one of them is then said
  plainly, because every mandatory slice has to be released before the final claim is accepted.
* A dynamic plant is put in place before the probe's text. Where that fails the probe is untriggered (`probe_undelivered`)
  and its slice is said plainly.
* With nothing left a yield is the final claim: the closer is written down, not delivered, and the episode is complete.
  A question through a typed channel is no claim: it gets a fixed neutral sentence, `NEUTRAL_ANSWERS` times at most.
* `Cut` ends it from outside (a limit, a crash): undelivered probes are `not_reached`; a probe delivered in the running
  exchange, to which the agent had no chance to react, is `cut`. The later event of a probe counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from realcli.benchmark.consistency import check_script
from realcli.benchmark.models import Edit, Probe, Script
from realcli.benchmark.problems import BenchmarkError
from realcli.benchmark.script import BATCH, PROBE, message_of_batch, slice_of

PLAIN = "slice:"
NEUTRAL = "I have nothing to add to what I have told you. Please go by that."
NEUTRAL_ANSWERS = 3
Reason = Literal["not_reached", "cut", "probe_undelivered"]
How = Literal["opener", "batch", "probe"]


# ------------------------------------------------------------------------------------------------------------------ events
@dataclass(frozen=True, slots=True)
class Start:
    """The agent waits for its first message."""


@dataclass(frozen=True, slots=True)
class Yielded:
    """The agent handed over; `question`: it asks through a typed channel and waits for the answer."""

    question: bool = False


@dataclass(frozen=True, slots=True)
class Wrote:
    """A watched file was written by the agent."""

    path: str


@dataclass(frozen=True, slots=True)
class Planted:
    """The plant asked for is in place."""

    probe: str


@dataclass(frozen=True, slots=True)
class PlantFailed:
    """The plant asked for could not be put in place."""

    probe: str


@dataclass(frozen=True, slots=True)
class Cut:
    """The run ended from outside. `acted`: the agent did something in the running exchange."""

    acted: bool


Event = Start | Yielded | Wrote | Planted | PlantFailed | Cut


# ----------------------------------------------------------------------------------------------------------------- actions
@dataclass(frozen=True, slots=True)
class Say:
    """Deliver this text as one user message; it starts exchange `exchange`."""

    message_id: str
    exchange: int
    text: str
    source_ids: tuple[str, ...]
    releases: tuple[tuple[str, How], ...]
    probe: Probe | None = None


@dataclass(frozen=True, slots=True)
class PutPlant:
    """Apply this edit while the agent is idle, then report `Planted` or `PlantFailed`."""

    probe: str
    edit: Edit


@dataclass(frozen=True, slots=True)
class Interim:
    """The yield came while something was pending."""

    slices_pending: int
    probes_pending: int


@dataclass(frozen=True, slots=True)
class Untriggered:
    """A probe that does not count, and why."""

    probe: str
    scenario: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Close:
    """The yield was the final claim: write the closer down undelivered and end the work as complete."""

    message_id: str
    text: str


Action = Say | PutPlant | Interim | Untriggered | Close
Actions = tuple[Action, ...]


# ------------------------------------------------------------------------------------------------------------------- state
@dataclass(frozen=True, slots=True)
class State:
    """Everything the user knows. `pending` holds items of `script.order` and `slice:<id>` for slices said plainly."""

    script: Script
    pending: tuple[str, ...]
    released: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()
    messages: int = 0
    exchange: int = 0
    planting: str | None = None
    last_probe: str | None = None  # delivered in the running exchange
    neutral_answers: int = 0
    ended: bool = False

    @property
    def slices_pending(self) -> int:
        """Mandatory slices not released yet."""
        return sum(1 for s in self.script.slices if s.mandatory and s.id not in self.released)

    @property
    def probes_pending(self) -> int:
        """Probes neither delivered nor given up."""
        return sum(1 for item in self.pending if item.startswith(PROBE))


def initial(script: Script) -> State:
    """The state before the opener; BenchmarkError for a script that cannot be played."""
    problems = list(check_script(script))
    if problems:
        raise BenchmarkError(problems)
    return State(script=script, pending=tuple(script.order))


# -------------------------------------------------------------------------------------------------------------------- step
def step(state: State, event: Event) -> tuple[State, Actions]:
    """The next state and what to do, in this order. An event that fits no expectation is a bug of the caller: ValueError."""
    match event:
        case Wrote(path):
            return replace(state, written=state.written | {path}), ()
        case Cut(acted):
            return _cut(state, acted)
        case _ if state.ended:
            raise ValueError(f"{event} after the end")
        case Start():
            return _start(state)
        case Yielded(question):
            return _yielded(state, question)
        case Planted(probe):
            _expect_planting(state, probe)
            return _say_probe(replace(state, planting=None), _probe(state.script, probe))
        case PlantFailed(probe):
            _expect_planting(state, probe)
            given_up, actions = _give_up(replace(state, planting=None), [probe], "probe_undelivered")
            after, more = _answer(given_up)
            return after, actions + more


def _expect_planting(state: State, probe: str) -> None:
    if state.planting != probe:
        raise ValueError(f"a plant of probe {probe!r} was reported; expected {state.planting!r}")


def _start(state: State) -> tuple[State, Actions]:
    if state.exchange:
        raise ValueError("the opener was said already")
    after, message = _next_message(state)
    opened = replace(after, last_probe=None)
    return opened, (Say(message, opened.exchange, state.script.opener, ("opener",), ()),)


def _yielded(state: State, question: bool) -> tuple[State, Actions]:
    if state.exchange == 0 or state.planting is not None:
        raise ValueError("a yield before the answer to the last one")
    pending = state.slices_pending, state.probes_pending
    interim: Actions = (Interim(*pending),) if any(pending) and not question else ()
    if question and not state.pending and state.neutral_answers < NEUTRAL_ANSWERS:
        counted = replace(state, last_probe=None, neutral_answers=state.neutral_answers + 1)
        answered, message = _next_message(counted)
        return answered, (Say(message, answered.exchange, NEUTRAL, ("neutral",), ()),)
    after, actions = _answer(replace(state, last_probe=None))
    return after, interim + actions


def _answer(state: State) -> tuple[State, Actions]:
    """Say the next due item; without one give the waiting probes up; with nothing left accept the claim."""
    item = next((i for i in state.pending if _due(state, i)), None)
    if item is not None:
        return _say_item(state, item)
    waiting = [i.removeprefix(PROBE) for i in state.pending]
    if waiting:
        given_up, actions = _give_up(state, waiting, "not_reached")
        after, more = _answer(given_up)
        return after, actions + more
    message = f"m{state.messages + 1}"
    return replace(state, ended=True, messages=state.messages + 1), (Close(message, state.script.closer),)


def _due(state: State, item: str) -> bool:
    if not item.startswith(PROBE):
        return True
    probe = _probe(state.script, item.removeprefix(PROBE))
    return probe.wait_for_write is None or probe.wait_for_write in state.written


def _say_item(state: State, item: str) -> tuple[State, Actions]:
    if item.startswith(PROBE):
        probe = _probe(state.script, item.removeprefix(PROBE))
        if probe.edit is not None:
            return replace(state, planting=probe.id), (PutPlant(probe.id, probe.edit),)
        return _say_probe(state, probe)
    if item.startswith(BATCH):
        name = item.removeprefix(BATCH)
        ids, text = tuple(state.script.batches[name]), message_of_batch(state.script, name)
    else:
        ids = (item.removeprefix(PLAIN),)
        text = slice_of(state.script, ids[0]).text
    after, message = _next_message(state, item)
    said = Say(message, after.exchange, text, tuple(PLAIN + i for i in ids), tuple((i, "batch") for i in ids))
    return replace(after, released=after.released | set(ids)), (said,)


def _say_probe(state: State, probe: Probe) -> tuple[State, Actions]:
    after, message = _next_message(state, PROBE + probe.id)
    sources = (PROBE + probe.id,) + ((PLAIN + probe.slice,) if probe.slice else ())
    releases: tuple[tuple[str, How], ...] = ((probe.slice, "probe"),) if probe.slice else ()
    said = Say(message, after.exchange, probe.text, sources, releases, probe)
    return replace(after, released=after.released | {s for s, _ in releases}, last_probe=probe.id), (said,)


def _give_up(state: State, probes: list[str], reason: Reason) -> tuple[State, Actions]:
    """The probes are untriggered; a slice bound to one is said plainly in its place."""
    pending: list[str] = []
    actions: list[Action] = []
    for item in state.pending:
        name = item.removeprefix(PROBE)
        if not item.startswith(PROBE) or name not in probes:
            pending.append(item)
            continue
        probe = _probe(state.script, name)
        actions.append(Untriggered(probe.id, probe.scenario, reason))
        if probe.slice is not None:
            pending.append(PLAIN + probe.slice)
    return replace(state, pending=tuple(pending)), tuple(actions)


def _cut(state: State, acted: bool) -> tuple[State, Actions]:
    if state.ended:
        return state, ()
    left = [i.removeprefix(PROBE) for i in state.pending if i.startswith(PROBE)]
    after, actions = _give_up(state, left, "not_reached")
    if state.last_probe is not None and not acted:
        probe = _probe(state.script, state.last_probe)
        actions = (*actions, Untriggered(probe.id, probe.scenario, "cut"))
    return replace(after, ended=True, planting=None), actions


def _next_message(state: State, item: str | None = None) -> tuple[State, str]:
    after = replace(
        state,
        pending=tuple(i for i in state.pending if i != item),
        messages=state.messages + 1,
        exchange=state.exchange + 1,
    )
    return after, f"m{after.messages}"


def _probe(script: Script, name: str) -> Probe:
    return next(p for p in script.probes if p.id == name)
