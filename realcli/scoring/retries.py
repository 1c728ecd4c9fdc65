"""Retries: a command that failed, given again before it worked (RealCLI 5.6; measuring.md 4.3). Pure.

A command here is one the agent gave: the text of a shell tool's call where its result says whether it is an error, else a
program the agent executed (from a terminal, where it types into one). Two are the same if program, sub-command and targets
are: options, spaces, folders of absolute paths and timestamps do not count, the body of a here-document does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from realcli.api.base import sha256_digest
from realcli.ledger.events import BlobRef, Command, CommandEnd, ModelRequest, ToolCall, ToolResult
from realcli.trajectory import Item, Trajectory
from realcli.trajectory.commands import SHELLS, command_text, shell_script
from realcli.trajectory.model import Call

Outcome = Literal["failed", "worked", "unknown"]
_TEXTS = ("command", "cmd", "script")
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T _]\d\d[:.]?\d\d(?:[:.]?\d\d(?:\.\d+)?)?Z?)?|\b\d{10,}\b")
_FOLDER = re.compile(r"(?<![\w.~-])/(?:[^/\s'\"]+/)*(?=[^/\s'\"])")
_TERMINALS = frozenset(("tmux", "tmux: server", "screen", "script"))


@dataclass(frozen=True, slots=True)
class Retries:
    """`failing` of `again` retries erred again. A retry whose outcome nobody knows is in neither."""

    again: int
    failing: int


@dataclass(frozen=True, slots=True)
class Given:
    """One command of the agent."""

    key: tuple[str, ...]
    outcome: Outcome


def retries(trajectory: Trajectory) -> Retries | None:
    """Retries of a run; None where no outcome of any command is known, or no command was recorded."""
    given = list(_given(trajectory))
    return count(given) if any(one.outcome != "unknown" for one in given) else None


def count(given: Iterable[Given]) -> Retries:
    """A fold over the commands in order. An unknown outcome ends what was waiting: it may have worked."""
    waiting: set[tuple[str, ...]] = set()
    again = failing = 0
    for one in given:
        if one.key in waiting and one.outcome != "unknown":
            again += 1
            failing += one.outcome == "failed"
        if one.outcome == "failed":
            waiting.add(one.key)
        else:
            waiting.discard(one.key)
    return Retries(again, failing)


def normalised(texts: Iterable[str], body: str = "") -> tuple[str, ...]:
    """The key of a command from its simple commands (`realcli.trajectory.commands`); `body`: a here-document's whole text."""
    found = []
    for text in texts:
        program, *words = _TIME.sub("<time>", _FOLDER.sub("", text)).split()
        found.append(" ".join([program, *(word for word in words if not word.startswith("-"))]))
    return (*found, sha256_digest(" ".join(body.split()).encode())) if body else tuple(found)


def _given(trajectory: Trajectory) -> Iterator[Given]:
    """From calls where results say whether they are errors (Anthropic's do); else from the record of executed programs."""
    if any(data.dialect == "anthropic" for _, data in trajectory.of(ModelRequest)):
        for call in trajectory.calls:
            text = _text(call.call)
            parts = command_text(Command(id=1, argv=[text], record="tool_text")).certain if text else ()
            if text and parts:
                yield Given(normalised(parts, text if "<<" in text else ""), _told(call))
        return
    ends = {data.id: _ended(data) for _, data in trajectory.of(CommandEnd)}
    for item in _typed(trajectory):
        assert isinstance(item.data, Command)
        texts = command_text(item.data)
        yield Given(normalised(texts.script or texts.certain), ends.get(item.data.id, "unknown"))


def _text(call: Item) -> str | None:
    """What a shell tool was told to run."""
    assert isinstance(call.data, ToolCall)
    value: JsonValue | BlobRef = call.data.input
    found = next((value[name] for name in _TEXTS if name in value), None) if isinstance(value, dict) else None
    if isinstance(found, list):
        argv = [str(part) for part in found]
        return shell_script(argv) or " ".join(argv)
    return found if isinstance(found, str) else None


def _told(call: Call) -> Outcome:
    if call.result is None:
        return "unknown"
    assert isinstance(call.result.data, ToolResult)
    return "failed" if call.result.data.is_error else "worked"


def _ended(end: CommandEnd) -> Outcome:
    if end.signal is not None:
        return "failed"
    return "unknown" if end.code is None else "worked" if end.code == 0 else "failed"


def _typed(trajectory: Trajectory) -> Iterator[Item]:
    """Programs executed from a terminal: those whose ancestors are all terminals and interactive shells."""
    between: set[int | None] = {None}
    for item in trajectory.items:
        data = item.data
        if isinstance(data, Command) and data.record == "exec" and data.parent in between:
            program = (data.argv or [data.path])[0].rsplit("/", 1)[-1].removeprefix("-")
            if program in _TERMINALS or (program in SHELLS and _interactive(data.argv)):
                between.add(data.id)
            else:
                yield item


def _interactive(argv: list[str]) -> bool:
    return shell_script(argv) is None and all(word.startswith("-") for word in argv[1:])
