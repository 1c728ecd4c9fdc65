"""Runs conversations in which the wording model leaks in a given style, and counts what reaches the agent."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.play import ready
from realcli.ledger.events import AgentMessage, BlobRef, Data, Event, Guard
from realcli.trajectory.model import Item
from realcli_session.user.events import Respond, Say, Seen, Start, Yielded
from realcli_session.user.machine import initial, step
from realcli_session.user.record import of_say
from realcli_session.user.wording import Model
from realcli_session.user.wording.endpoint import Answered
from tests.support import leaking_models as models


@dataclass
class Count:
    """What came of one style."""

    drafts: int = 0
    caught: int = 0
    literal: int = 0
    """Delivered messages in which a term of a withheld slice stands."""
    unlicensed: int = 0
    """Delivered messages that are neither canonical nor a draft that passed."""
    messages: int = 0
    by: Counter[str] = field(default_factory=Counter)


class Sink:
    """Keeps events."""

    def __init__(self) -> None:
        self.turn = 0
        self.guards: list[Guard] = []

    def emit(self, actor: Any, data: Data, *, turn: int | None = None) -> Event:
        if isinstance(data, Guard):
            self.guards.append(data)
        return an_event(1, data)

    def blob(self, data: bytes) -> BlobRef:
        raise AssertionError("no blob here")


class LeakingEndpoint:
    """Answers as the schema wants, with what it should say and a leak in its style."""

    def __init__(self, rng: random.Random, style: str | None) -> None:
        self.rng, self.style = rng, style
        self.secret: models.Secret | None = None
        self.half: models.Secret | None = None
        self.leaked: list[bool] = []
        self.texts: list[str] = []

    async def ask(self, user_text: str, seed: int) -> Answered:
        items = json.loads(user_text)["items"]
        text = models.benign(self.rng, "\n\n".join(item["text"] for item in items))
        leaks = self.style is not None and self.secret is not None
        if self.style is not None and self.half is not None:
            text = models.second_half(self.half) + " " + text
        elif self.style is not None and self.secret is not None:
            hint = models.STYLES[self.style](self.rng, self.secret)
            text = models.woven(text, hint) if self.style in (models.WOVEN, models.SPLIT) else f"{text} {hint}"
            leaks = self.style != models.SPLIT  # the first half says nothing yet
        self.leaked.append(leaks)
        self.texts.append(text)
        reply = {"release": [item["id"] for item in items], "text": text, "reply_kind": json.loads(user_text)["reply_kind"]}
        return Answered(json.dumps(reply), 200, "leaky")

    async def close(self) -> None:
        """Nothing."""


async def run(style: str | None, messages: int, seed: int) -> Count:
    """Conversations until so many messages were worded."""
    rng = random.Random(f"{style}-{seed}")
    count = Count()
    while count.messages < messages:
        await _conversation(rng, style, count)
    return count


async def _conversation(rng: random.Random, style: str | None, count: Count) -> None:
    script = models.a_script(rng)
    secrets = models.secrets_of(script)
    endpoint, sink = LeakingEndpoint(rng, style), Sink()
    wording = Model(endpoint, sink, seed=1)
    state, seq = initial(ready(script, load_catalogue())), 0
    state, actions = step(state, Start())
    said = ""
    while not state.ended:
        for say in (action for action in actions if isinstance(action, Say)):
            unreleased = [name for name in secrets if name not in state.released]
            endpoint.secret = secrets[rng.choice(unreleased)] if unreleased else None
            if endpoint.half is not None and endpoint.half.text not in {secrets[name].text for name in unreleased}:
                endpoint.half = None  # it is said in full now
            before = len(sink.guards), len(endpoint.leaked)
            worded = await wording.word(say, state)
            _count(count, sink.guards[before[0] :], endpoint.leaked[before[1] :], style)
            count.messages += say.exchange > 1  # the opener is nobody's to word
            licensed = worded.text == say.text or worded.text in endpoint.texts
            count.unlicensed += not licensed
            joined = "".join(filter(str.isalnum, (said + " " + worded.text).casefold()))
            said = worded.text
            count.literal += any(term in worded.text for name in unreleased for term in secrets[name].terms)
            count.literal += any(secrets[name].word in joined or secrets[name].number in joined for name in unreleased)
            endpoint.half = endpoint.secret if style == models.SPLIT and worded.by == "model" and endpoint.half is None else None
            for _, data in of_say(say, worded.text, by=worded.by):
                seq += 1
                event = an_event(seq, data)
                wording.seen(event, data)
                state, _ = step(state, Seen(Item(event, data)))
        seq += 1
        injection = AgentMessage(text=rng.choice(models.INJECTIONS) if rng.random() < 0.3 else "That is done.")
        wording.seen(an_event(seq, injection), injection)
        state, _ = step(state, Yielded())
        state, actions = step(state, Respond())


def _count(count: Count, guards: list[Guard], leaked: list[bool], style: str | None) -> None:
    for guard, leaks in zip(guards, leaked, strict=True):
        if leaks or style is None:
            count.drafts += 1
            count.caught += bool(guard.hits)
            count.by.update(guard.hits)


def an_event(seq: int, data: Data) -> Event:
    at = {"t": "2026-01-01T00:00:00.000Z", "mono": float(seq), "turn": 0, "exchange": 0}
    return Event.model_validate({"seq": seq, "prev": "0" * 64, "actor": "session", "kind": data.kind, "data": {}, **at})
