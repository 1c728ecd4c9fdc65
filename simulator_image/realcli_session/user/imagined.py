"""Three imagined agents play a script before it is accepted: who asks everything, who asks nothing, who claims at once.

What the work brings (writes, calls, results a trigger waits for) is taken to happen in the first response; the script's own
part, order and distances, is played as in a run. Every probe has to reach each of them (scenarios.yaml, pacing).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from realcli.benchmark.play import Play
from realcli.benchmark.problems import Problem
from realcli.benchmark.script import PROBE, SCRIPT
from realcli.trajectory.triggers import Count, ExchangesSince, Nth, TriggerState, atoms
from realcli_session.user.events import Say, Triggered, Untriggered
from realcli_session.user.machine import WORK
from realcli_session.user.rehearsal import Rehearsal
from realcli_session.user.state import State

MOST_MESSAGES = 500
REMEDIES = {
    "not_reached": "its trigger waits for what does not happen: correct it, or bind a template with a fallback",
    "distance": "move it later in the order, or put items before it, so that the responses it needs come first",
    "capability": "no response is left to interrupt: keep a batch that comes after the work has begun",
    "probe_undelivered": "it ends before its last part: correct the script",
    "cut": "correct the script",
}


@dataclass(frozen=True, slots=True)
class Played:
    """How one imagined agent fared."""

    agent: str
    run: Rehearsal

    @property
    def lines(self) -> list[str]:
        """Messages in order, with the distances between probes in agent responses."""
        out: list[str] = []
        last: int | None = None
        for say in self.run.said:
            named = ", ".join(say.source_ids)
            line = f"{say.message_id:>4}  exchange {say.exchange:<3} {named}"
            line += " (into the running response)" if say.mid_turn else ""
            line += " (after an interrupt)" if say.probe is not None and say.probe.interrupt else ""
            if say.probe is not None:
                line += "" if last is None else f"   {_responses(say.exchange - last)} after the probe before"
                line += "".join(f", {text}" for text in self._distances(say))
                last = say.exchange
            out.append(line)
        out += [f"      untriggered: {a.probe} ({a.reason})" for a in self.run.done if isinstance(a, Untriggered)]
        seen = [a.instance for a in self.run.done if isinstance(a, Triggered)]
        out += [f"      observed: {', '.join(seen)}"] if seen else []
        return out

    def _distances(self, say: Say) -> Iterator[str]:
        if say.probe is None:
            return
        released = {name: said.exchange for said in self.run.said for name, _ in said.releases}
        for when in self.run.play.conditions[PROBE + say.probe.id]:
            for atom in atoms(when):
                if isinstance(atom, ExchangesSince) and atom.exchanges_since in released:
                    since = say.exchange - released[atom.exchanges_since]
                    yield f"{since} since {atom.exchanges_since} (needs {atom.at_least})"


def play_all(play: Play) -> list[Played]:
    """The three of them."""
    agents: list[tuple[str, Callable[[State], str]]] = [
        ("asks everything", _everything),
        ("asks nothing", lambda _: "I have done this part."),
        ("claims at once", lambda _: "Done, everything is finished and tested."),
    ]
    return [Played(name, _play(play, speak)) for name, speak in agents]


def check_delivery(played: list[Played]) -> Iterator[Problem]:
    """Every probe reaches each of them, every passive trigger fires, and it comes to an end."""
    for one in played:
        who, run = f"an agent that {one.agent}", one.run
        if not run.state.ended:
            yield Problem(SCRIPT, "order", f"{who} gets no end within {MOST_MESSAGES} messages", "report this script")
            continue
        for action in run.done:
            if isinstance(action, Untriggered):
                what = f"does not reach {who}: {action.reason}"
                yield Problem(SCRIPT, f"probe {action.probe!r}", what, REMEDIES[action.reason])
        for passive in run.play.script.passive:
            if passive.name not in run.state.triggered:
                what = f"is never triggered for {who}"
                yield Problem(SCRIPT, f"passive {passive.name!r}", what, "correct its bindings, or bind another template")


def _play(play: Play, speak: Callable[[State], str]) -> Rehearsal:
    run = Rehearsal(play).start()
    run.state = replace(run.state, watched={name: tuple(map(_assumed, states)) for name, states in run.state.watched.items()})
    while not run.state.ended and run.state.messages < MOST_MESSAGES:
        run.work()
        run.hand_over(speak(run.state))
    return run


def _assumed(state: TriggerState) -> TriggerState:
    """What the work brings has happened."""
    progress = []
    for one in state.progress:
        match one.atom:
            case Nth(nth=least) | Count(at_least=least) if one.atom.pattern.event in WORK:
                progress.append(replace(one, count=least))
            case _:
                progress.append(one)
    return replace(state, progress=tuple(progress))


def _everything(state: State) -> str:
    """A question for every slice and answer that was not given yet, and for leave to every action."""
    asked: list[str] = []
    script = state.play.script
    for part in script.slices:
        if part.id not in state.released and part.on_ask:
            asked.append(f"What is the {part.on_ask[0]}?")
    for answer in script.answers:
        if f"answer:{answer.id}" not in state.said:
            asked.append(f"What is the {answer.topics[0]}?")
    for action in script.actions:
        if action.topics and not any(f"action:{action.id} {granted}" in state.said for granted in (True, False)):
            asked.append(f"May I {action.topics[0]}?")
    return " ".join(asked) or "Done."


def _responses(count: int) -> str:
    return f"{count} response{'' if count == 1 else 's'}"
