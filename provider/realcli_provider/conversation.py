"""What a request says has happened so far, whichever wire brought it. The provider keeps no state: everything is in the messages.

A conversation is the opening text and, for each answer of ours that followed, the reply to it: the results of the commands we
asked for, or what the user said after we ended the turn, or both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Api = Literal["anthropic", "responses", "chat"]
Agent = Literal["claude-code", "codex", "terminus-2"]


@dataclass(frozen=True)
class Say:
    """Text for the user; ends the turn."""

    text: str


@dataclass(frozen=True)
class Bash:
    """A command for the agent program to run; `say` goes before it."""

    command: str
    description: str
    say: str = ""


Action = Say | Bash
"""What a policy in Python yields; a script's `Answer` may be yielded as well."""


@dataclass(frozen=True)
class Reply:
    """What came back after one of our answers."""

    result: str = ""  # output of the commands
    said: str = ""  # text of the user
    is_error: bool = False


@dataclass(frozen=True)
class Conversation:
    """The whole of it."""

    opening: str
    replies: tuple[Reply, ...] = ()

    @property
    def said(self) -> str:
        """The newest text of the user."""
        return next((reply.said for reply in reversed(self.replies) if reply.said), self.opening)

    @property
    def result(self) -> str:
        """Output of the commands of our last answer; empty if there were none."""
        return self.replies[-1].result if self.replies else ""

    @property
    def request(self) -> int:
        """Number of the answer that is due, from 1."""
        return len(self.replies) + 1

    @property
    def step(self) -> int:
        """The same, counted from the newest text of the user."""
        since = next((n for n, reply in enumerate(reversed(self.replies)) if reply.said), len(self.replies))
        return since + 1

    @property
    def exchange(self) -> int:
        """Number of texts of the user so far."""
        return 1 + sum(1 for reply in self.replies if reply.said)

    @property
    def everything(self) -> str:
        """All that was said and shown, oldest first."""
        return "\n".join([self.opening, *(f"{reply.said}\n{reply.result}" for reply in self.replies)])


@dataclass(frozen=True)
class Tool:
    """A tool that the request offers. `custom`: its input is one text, not an object."""

    name: str
    kind: Literal["function", "custom", "other"] = "function"
    namespace: str | None = None


@dataclass(frozen=True)
class Request:
    """One request for a generation."""

    api: Api
    model: str
    stream: bool
    conversation: Conversation
    system: str = ""
    tools: tuple[Tool, ...] = ()
    agent: Agent | None = None  # whose request this seems to be
    channel: bool = False  # Terminus-2: its prompt offers a field for the user
    confirms: bool = False  # Terminus-2: it asks whether the task is really complete

    @property
    def side(self) -> bool:
        """A request that offers no means to act: a title, a connection test, the simulated user's model."""
        return not self.tools and self.agent != "terminus-2"

    def tool(self, name: str) -> Tool | None:
        """The offered tool of that name."""
        return next((tool for tool in self.tools if tool.name == name), None)


@dataclass(frozen=True)
class Part:
    """One message of a request, in order. `ours`: an answer of ours."""

    ours: bool
    reply: Reply = Reply()


def conversation_of(parts: Iterable[Part]) -> Conversation:
    """Replies between two answers of ours are one reply; answers without a reply between them are one answer."""
    turns: list[list[Reply]] = [[]]
    for part in parts:
        if not part.ours:
            turns[-1].append(part.reply)
        elif turns[-1]:
            turns.append([])
    merged = [_merge(turn) for turn in turns if turn]
    return Conversation(merged[0].said, tuple(merged[1:])) if merged else Conversation("")


def _merge(turn: list[Reply]) -> Reply:
    return Reply(
        result="\n".join(reply.result for reply in turn if reply.result),
        said="\n\n".join(reply.said for reply in turn if reply.said),
        is_error=any(reply.is_error for reply in turn),
    )


_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_MIDTURN = re.compile(
    r"<system-reminder>\s*The user sent a new message while you were working:\s*(.*?)</system-reminder>", re.DOTALL
)
_ADVICE = re.compile(
    r"\s*IMPORTANT: After completing your current task, you MUST address the user's message above\..*", re.DOTALL
)
_INTERRUPTED = re.compile(r"^\[Request interrupted by user[^\]\n]*\]$", re.MULTILINE)


def visible(text: str) -> str:
    """What a user said in a text that an agent program has added reminders to."""
    return _INTERRUPTED.sub("", f"{_REMINDER.sub('', text)}\n{interjected(text)}").strip()


def interjected(text: str) -> str:
    """What the user said while the program worked."""
    return "\n".join(_ADVICE.sub("", found).strip() for found in _MIDTURN.findall(text))


def without_reminders(text: str) -> str:
    """A result as the command printed it."""
    return _REMINDER.sub("", text)
