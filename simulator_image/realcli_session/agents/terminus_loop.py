"""One response of Terminus-2 after the other: prompt, answer, keystrokes, screen, next prompt.

The order of steps is the pinned release's; what COLLAB adds is in `Talk`. Cancelling `respond` is safe at any point: what the
model was not told is told with the next prompt.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from realcli_session.agents.terminus_chat import Message, Reply
from realcli_session.agents.terminus_history import CONTEXT_LIMIT, Ask, Model
from realcli_session.agents.terminus_parser import Keys, Parsed, feedback, parse
from realcli_session.agents.terminus_screen import Screen, limited
from realcli_session.agents.terminus_tmux import TerminalLost
from realcli_session.agents.terminus_wording import Wording, user_message


class Terminal(Protocol):
    """What the loop needs of its terminal (`terminus_tmux.Tmux`)."""

    async def alive(self) -> bool:
        """Whether it is there."""

    async def capture(self, whole: bool) -> str:
        """Its text."""

    async def type(self, keystrokes: str) -> None:
        """Press keys."""


class Recorder(Protocol):
    """Where the loop tells what happens."""

    @property
    def turn(self) -> int:
        """Number of the newest accepted request."""

    def said(self, parsed: Parsed, asks: bool) -> None:
        """The visible texts of a reply. `asks`: its message to the user is a question that is waited for."""

    def called(self, call_id: str, commands: tuple[Keys, ...]) -> None:
        """Keys are about to be pressed."""

    def shown(self, call_id: str, output: str) -> None:
        """The model was shown what came of them."""


@dataclass
class Talk:
    """What the user said. `unread` is what no answered prompt held yet."""

    channel: bool
    all: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        """A message of the user."""
        self.all.append(text)
        self.unread.append(text)

    @property
    def task(self) -> str:
        """Everything that was asked for, as a summary needs it."""
        return "\n\n".join(self.all)


@dataclass(frozen=True, slots=True)
class Asked:
    """The model waits for the user."""

    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The model said twice in a row that the task is complete."""


class Loop:
    """The agent between two hand-overs."""

    def __init__(
        self,
        ask: Ask,
        terminal: Terminal,
        words: Wording,
        recorder: Recorder,
        talk: Talk,
        *,
        note: str = "",
        limit: int = CONTEXT_LIMIT,
    ) -> None:
        self._terminal = terminal
        self._words = words
        self._recorder = recorder
        self._talk = talk
        self._note = note
        self._screen = Screen(terminal.capture, words)
        self._ask = ask
        self._model = Model(self._send, words, lambda: terminal.capture(False), limit)
        self._feedback = ""
        self._opening = True
        self._confirming = False
        self._calls = 0
        self._call: str | None = None
        self._typed = False  # since the last look at the screen
        self._outcome: tuple[str, str] | None = None  # of the last call, not shown to the model yet

    def cut(self) -> None:
        """A response was cancelled: what it showed or meant to show last may be lost."""
        self._screen.forget()
        self._feedback, self._outcome = "", None

    async def respond(self) -> Asked | Finished:
        """Work on what the user said until the next hand-over. Raises ChatFailed, TerminalLost."""
        self._confirming = False
        self._opening = not self._model.history.entries
        prompt = self._observation(await self._output())
        while True:
            if not await self._terminal.alive():
                raise TerminalLost("the shell of the terminal has ended")
            parsed = await self._query(prompt)
            self._feedback = feedback(parsed, self._words)
            failed = self._words.say("error_mark") in self._feedback
            asks = self._asks(parsed) and not failed
            self._recorder.said(parsed, asks)
            if failed:
                prompt = self._words.say("parsing_errors", self._feedback, self._words.say("response_type"))
                self._feedback = ""
                continue
            if asks:
                return Asked(parsed.to_user)
            await self._press(parsed.commands)
            output = await self._output()
            claimed = parsed.complete and not self._talk.unread  # a claim made before the newest message was read is none
            if claimed and self._confirming:
                return Finished()
            if claimed:
                prompt, self._feedback = self._words.say("confirm", output), ""
            else:
                prompt = self._observation(output)
            self._confirming = claimed

    # ---------------------------------------------------------------------------------------------------------------- prompts
    def _observation(self, output: str) -> str:
        """The screen, behind what was wrong with the last reply. (The release limits the length twice; so does this.)"""
        text, said = limited(output, self._words), self._feedback
        self._feedback = ""
        return self._words.say("had_warnings", said, text) if said else text

    async def _output(self) -> str:
        output, changed = await self._screen.report()
        if self._call is not None and (self._typed or changed):
            self._outcome, self._typed = (self._call, output), False
        return output

    def _asks(self, parsed: Parsed) -> bool:
        waits = self._talk.channel and bool(parsed.to_user.strip()) and not parsed.commands and not parsed.complete
        return waits and not self._talk.unread

    # ---------------------------------------------------------------------------------------------------------------- model
    async def _query(self, prompt: str) -> Parsed:
        outcome, self._outcome = self._outcome, None
        handed_over = await self._model.summarised(self._talk.task)
        if handed_over is None:
            self._outcome = outcome
        else:
            prompt = handed_over
        task, unread = self._talk.task, list(self._talk.unread)
        if self._opening:
            prompt = self._words.first_prompt(task + self._note, prompt, channel=self._talk.channel)
        else:
            prompt = "\n\n".join([*map(user_message, unread), prompt])
        self._confirming = self._confirming and not unread
        answer = await self._model.query(prompt, task)
        self._opening = False
        del self._talk.unread[: len(unread)]
        return parse(answer, self._words)

    async def _send(self, messages: Sequence[Message]) -> Reply:
        """One request; what it shows of the last call is recorded once it was accepted."""
        before = self._recorder.turn
        try:
            return await self._ask(messages)
        finally:
            if self._outcome is not None and self._recorder.turn > before:
                self._recorder.shown(*self._outcome)
                self._outcome = None

    # ---------------------------------------------------------------------------------------------------------------- keys
    async def _press(self, commands: tuple[Keys, ...]) -> None:
        if any(command.keystrokes for command in commands):
            self._calls += 1
            self._call, self._typed = f"call_{self._calls}", True
            self._recorder.called(self._call, commands)
        for command in commands:
            begin = time.monotonic()
            await self._terminal.type(command.keystrokes)
            await asyncio.sleep(max(0.0, command.duration - (time.monotonic() - begin)))
