"""A conversation with a judge as a pure machine: `step(state, reply) -> Ask | Done`.

What is asked and when an answer counts is a `Form`'s (checks, claims, a failure's label, the audit); reading tools, rounds,
repairs and the room of the context are the same for all. Nothing here knows a provider: a request that is given out is
answered by a model, a recording or an emulated judge, and the whole conversation can be played again from its replies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

from pydantic import ValidationError

from realcli.api.models import Api
from realcli.judging.model import (
    JsonObject,
    JudgeReply,
    JudgeRequest,
    Message,
    Parameters,
    Purpose,
    ToolReturn,
    ToolSpec,
    ToolUse,
)
from realcli.judging.reading import PAGE, Reading, Seen, Shown, Span
from realcli.judging.state_files import LISTED, FilesUnreadable, StateFiles
from realcli.judging.tools import READ_STATE_FILE, READ_TURNS, READING_TOOLS, SEARCH, ReadStateFile, ReadTurns, Search

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

REPAIRS = 2
"""Times a faulty answer goes back; then what it was about is unscored."""
ROUNDS = 24
"""Requests of a session, and three more for everything that is answered in a call of its own."""
MIN_PAGE = 2_000  # characters; with less room than that the context counts as full
READING_SHARE = 0.9  # of the context; what tools show leaves the rest for answers and their repairs


@dataclass(frozen=True)
class Outcome(Generic[T_co]):
    """What a form makes of one use of the tool `answer`."""

    accepted: Mapping[str, T_co] = field(default_factory=dict)  # by what was asked
    faults: Mapping[str, str] = field(default_factory=dict)  # what does not count, and why
    malformed: str | None = None  # it is about nothing that was asked, or cannot be read


class Form(Protocol[T_co]):
    """What is asked in a session."""

    @property
    def asked(self) -> tuple[str, ...]:
        """Ids in the order they are asked; a request's `about`."""

    @property
    def calls(self) -> int:
        """Uses of `answer` that a judge needs at least."""

    @property
    def tool(self) -> ToolSpec:
        """The tool `answer`."""

    def judge(self, given: JsonObject, seen: Seen) -> Outcome[T_co]:
        """Which answers count, given what the session has been shown. Pure."""


@dataclass(frozen=True)
class Opening:
    """How a session begins."""

    purpose: Purpose
    system: str
    text: str
    spans: tuple[Span, ...] = ()  # what of the run `text` shows
    vote: int = 1


@dataclass(frozen=True)
class Model:
    """Who is asked. `context_tokens`: most tokens of one request, the answer included."""

    id: str
    api: Api
    parameters: Parameters = field(default_factory=Parameters)
    context_tokens: int = 200_000

    @property
    def room(self) -> int:
        """Tokens a conversation may have before the answer that is to come."""
        return self.context_tokens - min(self.parameters.max_output_tokens, self.context_tokens // 2)


@dataclass(frozen=True)
class Taken(Generic[T]):
    """An answer that counts, and the key of the request it answered (which holds the whole conversation before it)."""

    answer: T
    key: str


@dataclass(frozen=True)
class State(Generic[T]):
    """Everything a session is; a new one after every reply."""

    model: Model
    opening: Opening
    form: Form[T]
    reading: Reading
    files: StateFiles
    messages: tuple[Message, ...]
    seen: Seen
    taken: Mapping[str, Taken[T]] = field(default_factory=dict)
    tries: Mapping[str, int] = field(default_factory=dict)  # faulty answers so far
    faults: Mapping[str, str] = field(default_factory=dict)  # what was wrong with the last of them
    refused: Mapping[str, str] = field(default_factory=dict)  # why it stays unscored
    pending: int = 0  # tokens of what tools gave back to the reply that is being looked at
    idle: int = 0  # replies in a row that brought nothing on
    rounds: int = 0

    @property
    def open(self) -> tuple[str, ...]:
        """What is neither answered nor given up."""
        return tuple(id for id in self.form.asked if id not in self.taken and id not in self.refused)

    @property
    def request(self) -> JudgeRequest:
        """The request that is due."""
        return JudgeRequest(
            purpose=self.opening.purpose, about=list(self.open), model=self.model.id, api=self.model.api,
            parameters=self.model.parameters, vote=self.opening.vote, system=self.opening.system, messages=list(self.messages),
            tools=[*READING_TOOLS, self.form.tool],
        )  # fmt: skip


@dataclass(frozen=True)
class Ask(Generic[T]):
    """The judge is to be asked this; go on with `step(ask.state, reply)`."""

    request: JudgeRequest
    state: State[T]


@dataclass(frozen=True)
class Done(Generic[T]):
    """The session is over."""

    answers: Mapping[str, Taken[T]]
    unscored: Mapping[str, str]  # what has no answer that counts, and why


def start(model: Model, opening: Opening, form: Form[T], reading: Reading, files: StateFiles) -> Ask[T] | Done[T]:
    """The first request; Done at once where nothing is asked or the opening does not fit the context."""
    state = State(model, opening, form, reading, files, (Message(role="user", text=opening.text),), Seen().plus(opening.spans))
    if tokens_of(state) > model.room:
        return give_up(state, f"what has to be asked does not fit {model.context_tokens} tokens of context")
    return _next(state)


def step(state: State[T], reply: JudgeReply) -> Ask[T] | Done[T]:
    """What follows from a reply."""
    if reply.stop == "refusal":
        return give_up(state, "the judge refused to answer")
    said = _answered(state, reply.message)
    state = replace(state, messages=(*state.messages, said), rounds=state.rounds + 1)
    key = state_key(state)
    returns: list[ToolReturn] = []
    before = state
    for use in said.uses:
        state, returned = _used(state, use, key, before.seen)
        returns.append(returned)
        state = replace(state, pending=state.pending + text_tokens(returned.text) + 10)
    moved = any(not returned.is_error for returned in returns) or (state.taken, state.tries) != (before.taken, before.tries)
    state = replace(state, idle=0 if moved else state.idle + 1, pending=0)
    if not state.open:
        return _done(state)
    if state.idle > REPAIRS:
        return give_up(state, f"the judge did not answer: {state.idle} replies in a row brought nothing")
    if state.rounds >= ROUNDS + 3 * state.form.calls:
        return give_up(state, f"the judge did not come to an end in {state.rounds} replies")
    text = "" if returns else _nudge(state, reply)
    state = replace(state, messages=(*state.messages, Message(role="user", text=text, returns=returns)))
    if tokens_of(state) > state.model.room:
        return give_up(state, f"the conversation outgrew {state.model.context_tokens} tokens of context")
    return _next(state)


def give_up(state: State[T], why: str) -> Done[T]:
    """End it here; what is still open is unscored for this reason."""
    told = {id: f"{why}; its last answer: {state.faults[id]}" if id in state.faults else why for id in state.open}
    return _done(replace(state, refused={**state.refused, **told}))


def state_key(state: State[T]) -> str:
    """Key of the request the last reply answered."""
    return replace(state, messages=state.messages[:-1]).request.key


def _next(state: State[T]) -> Ask[T] | Done[T]:
    return Ask(state.request, state) if state.open else _done(state)


def _done(state: State[T]) -> Done[T]:
    return Done(state.taken, state.refused)


def _answered(state: State[T], message: Message) -> Message:
    """The judge's message as it goes back to it, in a form that every endpoint takes.

    Of ids that are missing or stand there twice, and of names that no tool can have, providers say that the request is wrong: one
    odd reply would keep a whole group from being judged.
    """
    taken = {use.id for said in state.messages for use in said.uses}
    uses: list[ToolUse] = []
    for number, use in enumerate(message.uses, 1):
        id = use.id if _ID.fullmatch(use.id) and use.id not in taken else f"use_{state.rounds + 1}_{number}"
        while id in taken:
            id += "_"
        taken.add(id)
        uses.append(use.model_copy(update={"id": id, "name": use.name if _ID.fullmatch(use.name) else "unknown"}))
    return Message(role="assistant", text=message.text, uses=uses)


_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


# -- tools


def _used(state: State[T], use: ToolUse, key: str, shown: Seen) -> tuple[State[T], ToolReturn]:
    """The state after one use of a tool, and what it gives back. `shown`: what the judge had before it when it wrote."""
    try:
        match use.name:
            case "read_turns":
                return _page(state, use, _turns(state, ReadTurns.model_validate(use.input)))
            case "search":
                return state, _fitting(state, use, state.reading.search(Search.model_validate(use.input).text))
            case "read_state_file":
                return state, _fitting(state, use, _file(state, ReadStateFile.model_validate(use.input)))
            case name if name == state.form.tool.name:
                return _answers(state, use, key, shown)
            case name:
                known = ", ".join((READ_TURNS, SEARCH, READ_STATE_FILE, state.form.tool.name))
                return state, _error(use, f"there is no tool {name}; there are {known}")
    except ValidationError as error:
        return state, _error(use, f"the input is not of the tool's schema: {_first(error)}")
    except (_Wrong, FilesUnreadable) as error:
        return state, _error(use, str(error))


class _Wrong(ValueError):
    """A tool's input asks for what there is not."""


def _turns(state: State[T], asked: ReadTurns) -> Shown:
    reading = state.reading
    if asked.item is not None and asked.item not in reading.by_id:
        raise _Wrong(f"there is no item {asked.item}")
    room = min(PAGE, _room(state))
    if room < MIN_PAGE:
        raise _Wrong("the context is full: answer with what you have read")
    if asked.item is not None and asked.first is None:
        return reading.piece_from(asked.item, asked.offset or 0, room)
    if asked.first is None:
        raise _Wrong("name the first exchange, or an item")
    last = asked.last if asked.last is not None else asked.first
    if not 1 <= asked.first <= last or asked.first > reading.last_exchange:
        raise _Wrong(f"exchanges {asked.first} to {last} are not in the run, which has 1 to {reading.last_exchange}")
    if asked.item is not None and not asked.first <= reading.by_id[asked.item].exchange <= last:
        raise _Wrong(f"item {asked.item} is not in exchanges {asked.first} to {last}")
    return reading.page(asked.first, min(last, reading.last_exchange), room, asked.item)


def _page(state: State[T], use: ToolUse, shown: Shown) -> tuple[State[T], ToolReturn]:
    returned = _fitting(state, use, shown.text)
    return (state if returned.is_error else replace(state, seen=state.seen.plus(shown.spans))), returned


def _file(state: State[T], asked: ReadStateFile) -> str:
    if asked.path is None:
        paths = state.files.paths(asked.snapshot)
        more = f"\n… and {len(paths) - LISTED} more" if len(paths) > LISTED else ""
        return state.reading.fenced(f"{len(paths)} files of {asked.snapshot}", "\n".join(paths[:LISTED]) + more)
    content = state.files.read(asked.snapshot, asked.path)
    if content is None:
        raise _Wrong(f"{asked.snapshot} holds no {asked.path}")
    text = content.decode("utf-8", "replace")
    part = text[asked.offset : asked.offset + PAGE // 2]
    told = f"{asked.snapshot}, characters {asked.offset} to {asked.offset + len(part)} of {len(text)}"
    return state.reading.fenced(told, part)


def _answers(state: State[T], use: ToolUse, key: str, shown: Seen) -> tuple[State[T], ToolReturn]:
    """A page that was asked for in the same reply was not before the judge when it answered."""
    outcome = state.form.judge(use.input, shown)
    if outcome.malformed is not None:
        return state, _error(use, outcome.malformed)
    still = set(state.open)
    taken = {id: Taken(answer, key) for id, answer in outcome.accepted.items() if id in still}
    faulty = {id: why for id, why in outcome.faults.items() if id in still}
    tries = {**state.tries, **{id: state.tries.get(id, 0) + 1 for id in faulty}}
    over = {id: why for id, why in faulty.items() if tries[id] > REPAIRS}
    state = replace(
        state, taken={**state.taken, **taken}, tries=tries, faults={**state.faults, **faulty}, refused={**state.refused, **over}
    )
    lines = [f"accepted: {', '.join(taken)}"] if taken else []
    for id, why in faulty.items():
        lines.append(f"{'given up' if id in over else 'not accepted'}: {id}: {why}")
    lines.append(f"still to be answered: {', '.join(state.open) or 'nothing'}")
    text = "\n".join(lines)
    return state, ToolReturn(id=use.id, text=text, is_error=bool(faulty) or not taken)


def _nudge(state: State[T], reply: JudgeReply) -> str:
    cut = "Your message was cut at its length limit. " if reply.stop == "length" else ""
    return f"{cut}Answer by the tool {state.form.tool.name}; only that counts. Still to be answered: {', '.join(state.open)}"


def _fitting(state: State[T], use: ToolUse, text: str) -> ToolReturn:
    if text_tokens(text) > _left(state):
        return _error(use, "the context is full: that does not fit any more; answer with what you have read")
    return ToolReturn(id=use.id, text=text)


def _error(use: ToolUse, text: str) -> ToolReturn:
    return ToolReturn(id=use.id, text=text, is_error=True)


def _first(error: ValidationError) -> str:
    found = error.errors()[0]
    return f"{'.'.join(str(part) for part in found['loc']) or 'input'}: {found['msg']}"


# -- room


def _room(state: State[T]) -> int:
    """Characters of plain text that still fit, with some to spare for text that is none."""
    return int(_left(state) * _CHARACTERS_PER_TOKEN * 0.7)


def _left(state: State[T]) -> int:
    """Tokens that tools may still show."""
    return int(state.model.room * READING_SHARE) - tokens_of(state) - state.pending


_CHARACTERS_PER_TOKEN = 2.8  # of plain English and code; every other character counts by its bytes


def text_tokens(text: str) -> int:
    """About how many tokens a text has; rather too many. No tokenizer is asked: judges of any provider are to be the same."""
    plain = sum(map(str.isascii, text)) if not text.isascii() else len(text)
    other = len(text.encode("utf-8", "replace")) - plain if plain < len(text) else 0
    return int(plain / _CHARACTERS_PER_TOKEN) + other + 1


def tokens_of(state: State[T]) -> int:
    """About how many tokens the conversation has so far."""
    return text_tokens(state.opening.system) + _SCHEMAS + sum(_message_tokens(message) for message in state.messages)


_SCHEMAS = 4_000  # of the tools


def _message_tokens(message: Message) -> int:
    uses = sum(text_tokens(use.name + str(use.input)) + 10 for use in message.uses)
    return text_tokens(message.text) + uses + sum(text_tokens(returned.text) + 10 for returned in message.returns)
