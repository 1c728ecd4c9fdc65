"""What a request says has happened so far. The provider keeps no state of its own: everything is in the messages.

A conversation is the opening text and, for each answer of ours that followed, the reply to it: the result of the command we
asked for, or what the user said after we ended the turn, or both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_MIDTURN = re.compile(
    r"<system-reminder>\s*The user sent a new message while you were working:\s*(.*?)</system-reminder>", re.DOTALL
)


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


@dataclass(frozen=True)
class Reply:
    """What came back after one of our answers."""

    result: str = ""  # output of the command
    said: str = ""  # text of the user
    is_error: bool = False


@dataclass(frozen=True)
class Conversation:
    """The whole of it."""

    opening: str
    replies: tuple[Reply, ...] = ()


def parse(messages: list[dict[str, Any]]) -> Conversation:
    """The conversation in the `messages` of a request. What the agent program adds for the model's eyes is left out."""
    turns: list[list[Reply]] = [[]]
    for message in messages:
        if message.get("role") == "assistant":
            if turns[-1]:
                turns.append([])
        else:
            turns[-1] += [_reply(block) for block in _blocks(message.get("content"))]
    merged = [_merge(turn) for turn in turns if turn]
    if not merged:
        return Conversation("")
    return Conversation(merged[0].said, tuple(merged[1:]))


def _blocks(content: object) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _reply(block: dict[str, Any]) -> Reply:
    if block.get("type") == "text":
        text = str(block.get("text", ""))
        return Reply(said=_visible(text))
    if block.get("type") == "tool_result":
        text = "\n".join(str(part.get("text", "")) for part in _blocks(block.get("content")))
        return Reply(result=_REMINDER.sub("", text), said=_interjected(text), is_error=bool(block.get("is_error")))
    return Reply()


def _visible(text: str) -> str:
    return f"{_REMINDER.sub('', text)}\n{_interjected(text)}".strip()


def _interjected(text: str) -> str:
    return "\n".join(found.strip() for found in _MIDTURN.findall(text))


def _merge(turn: list[Reply]) -> Reply:
    return Reply(
        result="\n".join(reply.result for reply in turn if reply.result),
        said="\n\n".join(reply.said for reply in turn if reply.said),
        is_error=any(reply.is_error for reply in turn),
    )
