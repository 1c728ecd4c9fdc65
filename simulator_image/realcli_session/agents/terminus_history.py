"""What the model of Terminus-2 has been told, and how it is shortened when the model's context is nearly full.

Lengths are the provider's own counts of earlier answers, so none has to be counted here; without them four bytes are taken for a
token.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from realcli_session.agents.terminus_chat import ContextExceeded, Message, OutputExceeded, Reply
from realcli_session.agents.terminus_parser import parse
from realcli_session.agents.terminus_wording import Wording

CONTEXT_LIMIT = 1_000_000  # tokens; what the pinned release takes for a model it does not know
SUMMARISE_BELOW = 8_000  # free tokens
UNWIND_TO = 4_000
LAST_SCREEN = 1_000  # characters
_BYTES_PER_TOKEN = 4

Ask = Callable[[Sequence[Message]], Awaitable[Reply]]
VisibleScreen = Callable[[], Awaitable[str]]


def user(text: str) -> Message:
    """A message to the model."""
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    """An answer of the model."""
    return {"role": "assistant", "content": text}


@dataclass
class History:
    """Messages in order; beside each the length up to it as the provider counted, None where it is not known."""

    entries: list[tuple[Message, int | None]] = field(default_factory=list)

    def add(self, prompt: str, reply: Reply) -> None:
        """An answered prompt."""
        self.entries += [(user(prompt), None), (assistant(reply.content), reply.total)]

    def messages(self, *more: Message) -> list[Message]:
        """All of it, and `more`."""
        return [*(message for message, _ in self.entries), *more]

    @property
    def tokens(self) -> int:
        """Its length."""
        uncounted = 0
        for message, total in reversed(self.entries):
            if total is not None:
                return total + uncounted // _BYTES_PER_TOKEN
            uncounted += len(message["content"].encode())
        return uncounted // _BYTES_PER_TOKEN

    def unwind(self, limit: int) -> None:
        """Drop the newest prompts with their answers until there is room to ask for a summary."""
        while len(self.entries) > 1 and limit - self.tokens < UNWIND_TO:
            del self.entries[-2:]

    def hand_over(self, question: str, answer: str) -> None:
        """What is left after a hand-over: the first prompt, the question about the summary and its answer."""
        self.entries = [(self.entries[0][0], None), (user(question), None), (assistant(answer), None)]


class Model:
    """Asks the model with the whole history, and hands over to a fresh one when the context is full."""

    def __init__(self, ask: Ask, words: Wording, screen: VisibleScreen, limit: int = CONTEXT_LIMIT) -> None:
        self._ask = ask
        self._words = words
        self._screen = screen
        self._limit = limit
        self.history = History()

    async def summarised(self, task: str) -> str | None:
        """The prompt to go on with if the context is nearly full: three requests, and the history is replaced. None: go on."""
        if not self.history.entries or self._limit - self.history.tokens >= SUMMARISE_BELOW:
            return None
        try:
            return await self._summarise(task)
        except (ContextExceeded, OutputExceeded):
            return None

    async def query(self, prompt: str, task: str) -> str:
        """The answer to a prompt. Raises ChatFailed."""
        while True:
            try:
                reply = await self._ask(self.history.messages(user(prompt)))
            except ContextExceeded:
                return await self._query_shortened(task)
            except OutputExceeded as cut:
                self.history.add(prompt, Reply(cut.partial))
                prompt = self._complaint(cut.partial)
            else:
                self.history.add(prompt, reply)
                return reply.content

    async def _query_shortened(self, task: str) -> str:
        """After the model refused the length: drop, sum up (or, where that fails as well, go on from the screen), ask again."""
        self.history.unwind(self._limit)
        try:
            prompt = await self._summarise(task)
        except (ContextExceeded, OutputExceeded):
            prompt = await self._short_summary(task)
        try:
            reply = await self._ask(self.history.messages(user(prompt)))
        except (ContextExceeded, OutputExceeded):
            return self._words.say("fallback_reply")
        self.history.add(prompt, reply)
        return reply.content

    async def _summarise(self, task: str) -> str:
        if not self.history.entries:
            return task
        say = self._words.say
        summary = user(say("summary", task))
        told = assistant((await self._ask(self.history.messages(summary))).content)
        question = say("questions", task, told["content"], await self._screen())
        asked = (await self._ask([user(question)])).content
        answers = await self._ask(self.history.messages(summary, told, user(say("answers") + asked)))
        self.history.hand_over(question, asked)
        return f"{say('handoff_answers')}{answers.content}\n\n{say('handoff_continue')}"

    async def _short_summary(self, task: str) -> str:
        seen = (await self._screen())[-LAST_SCREEN:]
        try:
            reply = await self._ask([user(self._words.say("short_summary", task, seen))])
        except (ContextExceeded, OutputExceeded):
            return self._words.say("last_handoff", task, seen)
        return self._words.say("short_handoff", task, reply.content)

    def _complaint(self, partial: str) -> str:
        limit = self._words.say("output_limit")
        warning = parse(partial, self._words).warning
        return self._words.say("truncated", limit, limit, limit) + (
            self._words.say("truncated_warnings", warning) if warning else ""
        )
