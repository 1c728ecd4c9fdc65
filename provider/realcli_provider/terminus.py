"""Terminus-2: its prompt instead of tools, keystrokes as JSON instead of calls, a terminal's screen instead of results. Pure."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from realcli_provider.conversation import Part, Reply, Request
from realcli_provider.script import Answer
from realcli_provider.shell import as_list, write_command

USER_FIELD = "message_to_user"
_TASK = re.compile(r"Task Description:\n(.*?)\n+Current [Tt]erminal [Ss]tate:\n(.*)", re.DOTALL)
_SCREEN = re.compile(r"^(?:New Terminal Output|Current Terminal Screen|Current terminal state):", re.MULTILINE)
_PROMPT = re.compile(r"^(?:[\w.-]+@[\w.-]+:\S*|(?:ba)?sh-[\d.]+)[#$](?: |$)")
_USER = re.compile(r"<user_message>\n?(.*?)\n?</user_message>", re.DOTALL)
_CONFIRM = "Are you sure you want to mark the task as complete?"


def is_prompt(text: str) -> bool:
    """Whether a first message is Terminus-2's."""
    return '"keystrokes"' in text and "Task Description:" in text


def opening(text: str) -> Reply:
    """The task in the first message. The screen below it is no result of ours."""
    found = _TASK.search(text)
    return Reply(said=(found[1] if found else text.partition("Task Description:\n")[2]).strip())


def reply(text: str) -> Reply:
    """A later message: what the user said stands before the screen, behind a heading of its own."""
    said = [found.strip() for found in _USER.findall(text)]
    return Reply(result=_screen(_USER.sub("", text)), said="\n\n".join(said))


def _screen(text: str) -> str:
    found = _SCREEN.search(text)
    return _printed(text[found.end() :]) if found else text


def _printed(screen: str) -> str:
    """What commands printed: the screen without prompts, what was typed behind them, and empty lines around."""
    kept, typing = [], False
    for line in screen.split("\n"):
        typing = bool(_PROMPT.match(line)) or (typing and line.startswith("> "))
        if not typing:
            kept.append(line)
    return "\n".join(kept).strip("\n")


def asks_to_confirm(text: str) -> bool:
    """The question after task_complete."""
    return _CONFIRM in text


def without_confirmations(parts: list[tuple[Part, str]]) -> tuple[list[Part], bool]:
    """The messages without the question whether the task is complete and the answer before it; whether it is the last word."""
    kept: list[Part] = []
    for part, text in parts:
        if not part.ours and asks_to_confirm(text):
            if kept and kept[-1].ours:
                kept.pop()
            continue
        kept.append(part)
    return kept, bool(parts) and not parts[-1][0].ours and asks_to_confirm(parts[-1][1])


def text_of(request: Request, answer: Answer) -> str:
    """The answer as the JSON that the prompt asks for; `raw` as it is."""
    if answer.raw is not None:
        return answer.raw
    commands = [{"keystrokes": f"{command}\n", "duration": answer.duration} for command in keystrokes(answer)]
    acts = bool(commands)
    question = "\n".join([answer.ask.question, *(f"- {option}" for option in answer.ask.options)]) if answer.ask else None
    to_user = question or (answer.say if not acts else None)
    complete = answer.done if answer.done is not None else bool(to_user) and not (request.channel and to_user)
    made: dict[str, Any] = {
        "analysis": answer.think or "The screen shows what I need.",
        "plan": answer.say or ("Go on." if acts else "Nothing more to do."),
        "commands": commands,
    }
    if request.channel and to_user and not complete:
        made[USER_FIELD] = to_user
    if complete:
        made["task_complete"] = True
    return json.dumps(made, ensure_ascii=False, indent=2)


def keystrokes(answer: Answer) -> list[str]:
    """What is typed, without the last newline."""
    commands = [f"sh -c {shlex.quote(command)} &" if answer.background else command for command in as_list(answer.run)]
    return [*commands, *([write_command(answer.write)] if answer.write else [])]
