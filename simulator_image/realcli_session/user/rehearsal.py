"""Plays a script without a session: an imagined agent acts, the simulated user answers, and the ledger's events are made up.

For `realcli task check` and for tests. Time does not pass; plants are put in place at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from realcli.benchmark.play import Play
from realcli.ledger.events import ZERO_HASH, Actor, AgentMessage, AgentQuestion, Data, Event, Interrupt, ToolCall, Yield
from realcli.trajectory.model import Item
from realcli_session.user import record
from realcli_session.user.events import (
    Action,
    AnswerPrompt,
    Close,
    Cut,
    Planted,
    PlantFailed,
    Prompt,
    PutPlant,
    Respond,
    Say,
    Seen,
    Start,
    Stop,
    Yielded,
)
from realcli_session.user.events import Event as Input
from realcli_session.user.machine import initial, step
from realcli_session.user.state import State


@dataclass
class Rehearsal:
    """One imagined run. `items` is its ledger, `done` every action in order."""

    play: Play
    mid_turn: bool = True
    failing_plants: frozenset[str] = frozenset()
    """Probes whose plant cannot be put in place."""
    items: list[Item] = field(default_factory=list)
    done: list[Action] = field(default_factory=list)
    state: State = field(init=False)

    def __post_init__(self) -> None:
        self.state = initial(self.play, mid_turn=self.mid_turn)
        self._turn = 0
        self._how: record.How = "send"
        self._todo: deque[Action] = deque()
        self._busy = False

    # ------------------------------------------------------------------------------------------------------- the agent
    def start(self) -> Rehearsal:
        """The opener."""
        self._step(Start())
        return self

    def work(self, *events: Data) -> Rehearsal:
        """Things the agent does inside its response, one request for each."""
        for data in events or (ToolCall(call_id=f"c{len(self.items)}", name="Bash", input={}),):
            self._turn += 1
            self._emit("agent" if data.kind == "agent_message" else "gateway", data)
        return self

    def say(self, text: str) -> Rehearsal:
        """A text the user sees."""
        return self.work(AgentMessage(text=text))

    def hand_over(
        self, text: str = "", *, questions: tuple[str, ...] | None = None, how: Literal["yielded", "interrupted"] = "yielded"
    ) -> Rehearsal:
        """A yield, and the user's answer to it. Nothing after the end."""
        if self.state.ended:
            return self
        if text:
            self.say(text)
        if questions is not None:
            self._emit("agent", AgentQuestion(text="\n".join(questions), request_id="q", parts=list(questions)))
        self._emit("agent", Yield(how=how))
        self._how = "send" if questions is None else "answer"
        self._step(Yielded(how, questions))
        self._step(Respond())
        return self

    def prompt(self, tool: str, input: JsonValue, request_id: str = "r1") -> Rehearsal:
        """A permission prompt."""
        asked = Prompt(request_id, tool, input)
        self.state, actions = step(self.state, asked)
        for answer in actions:
            if isinstance(answer, AnswerPrompt):
                self.done.append(answer)
                self._write(record.of_prompt(asked, answer))
        return self

    def cut(self, *, acted: bool) -> Rehearsal:
        """The run ends from outside."""
        self._step(Cut(acted))
        return self

    # ---------------------------------------------------------------------------------------------------- the session
    @property
    def said(self) -> list[Say]:
        """Messages, in order."""
        return [action for action in self.done if isinstance(action, Say)]

    def _step(self, event: Input) -> None:
        self.state, actions = step(self.state, event)
        self._todo.extend(actions)
        if self._busy:
            return
        self._busy = True
        while self._todo:
            self._do(self._todo.popleft())
        self._busy = False

    def _do(self, action: Action) -> None:
        self.done.append(action)
        match action:
            case Say():
                self._write(record.of_say(action, action.text, "mid_turn" if action.mid_turn else self._how))
            case Close():
                self._write(record.of_close(action))
            case PutPlant(probe):
                self._step(PlantFailed(probe) if probe in self.failing_plants else Planted(probe))
            case Stop(probe):
                self._emit("session", Interrupt(probe=probe, taken=True))
                self.hand_over(how="interrupted")
            case AnswerPrompt():
                raise ValueError("a prompt is answered where it is asked")
            case _:
                self._emit("session", record.of_note(action))

    def _write(self, events: Iterable[tuple[Actor, Data]]) -> None:
        for actor, data in events:
            self._emit(actor, data)

    def _emit(self, actor: Actor, data: Data) -> None:
        event = Event(
            seq=len(self.items) + 1,
            prev=ZERO_HASH,
            t="2026-01-01T00:00:00.000Z",
            mono=float(len(self.items)),
            actor=actor,
            kind=data.kind,
            turn=self._turn,
            exchange=self.state.exchange,
            data={},
        )
        item = Item(event, data)
        self.items.append(item)
        self._step(Seen(item))
