"""Does an event match a pattern of the catalogue? The one place that knows what every `where` key means.

An answer may be None: it cannot be known (a text that cannot be read or is longer than what is searched, a shell that was
executed with a script). A trigger takes it for no and remembers it; an operator that rests on it is undecided.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, ValidationError, model_validator

from realcli.api.base import Frozen
from realcli.ledger.base import Data, Text
from realcli.ledger.events import (
    KINDS,
    AgentMessage,
    AgentQuestion,
    Ask,
    Command,
    FileDelete,
    FileRead,
    FileWrite,
    InterimClaim,
    SliceReleased,
    ToolResult,
    UserMessage,
)
from realcli.trajectory.commands import command_text
from realcli.trajectory.model import Item
from realcli.trajectory.patterns import Blobs, PatternError, content, expression, path_matches, search

Expression = Annotated[str, Field(min_length=1)]
WHERE_KEYS: dict[str, frozenset[str]] = {
    "agent_message": frozenset(("min_words", "text")),
    "agent_question": frozenset(("min_words", "text")),
    "user_message": frozenset(("text",)),
    "tool_result": frozenset(("text", "exit")),
    "command": frozenset(("cmd",)),
    "file_read": frozenset(("path", "marker", "marker_re")),
    "file_write": frozenset(("path",)),
    "file_delete": frozenset(("path",)),
    "slice_released": frozenset(("slice",)),
    "interim_claim": frozenset(("slices_pending",)),
}
"""What each kind of event can be narrowed by; a kind that is not here by nothing."""
VOCABULARY_EVENTS = frozenset(
    (
        "episode_start", "user_message", "agent_message", "agent_question", "permission_request", "yield", "interim_claim",
        "final_claim", "tool_call", "tool_result", "command", "file_read", "file_write", "file_delete", "net_request",
        "slice_released", "probe_delivered", "approval", "denial", "trigger", "episode_end",
    )
)  # fmt: skip
"""The events the catalogue may name; each is a kind of the ledger."""
if VOCABULARY_EVENTS - set(KINDS):
    raise AssertionError(f"the ledger has no {sorted(VOCABULARY_EVENTS - set(KINDS))}")


class Where(Frozen):
    """What narrows an event; all keys that are given have to hold."""

    text: Expression | None = None  # regex in the text
    exit: int | None = None  # tool result: 0 is success; another number is known only as "not 0"
    cmd: Expression | None = None  # regex in the normalised command
    path: Annotated[tuple[str, ...], Field(min_length=1)] | None = None  # absolute paths or globs, any of them
    marker: Expression | None = None  # this marker line, blanks around it aside
    marker_re: Expression | None = None  # regex in the marker line
    slice: str | None = None
    slices_pending: Annotated[int, Field(ge=0)] | None = None
    min_words: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_path(cls, value: object) -> object:
        """A single glob may stand without its list."""
        if isinstance(value, dict) and isinstance(value.get("path"), str):
            return {**value, "path": [value["path"]]}
        return value

    @model_validator(mode="after")
    def _usable(self) -> Where:
        for key in ("text", "cmd", "marker_re"):
            pattern = getattr(self, key)
            if pattern is not None:
                try:
                    expression(pattern)
                except PatternError as error:
                    raise ValueError(f"`where.{key}`: {error}") from error
        for glob in self.path or ():
            if not glob.startswith("/"):
                raise ValueError(f"`where.path` is {glob!r}; expected an absolute path or glob, as the ledger records them")
            try:
                path_matches("/", [glob])
            except PatternError as error:
                raise ValueError(f"`where.path` is {glob!r}, no glob: {error}") from error
        return self

    def keys(self) -> set[str]:
        """The keys that are given."""
        return {name for name in type(self).model_fields if getattr(self, name) is not None}


class EventPattern(Frozen):
    """Events of one kind, narrowed by `where`."""

    event: str
    where: Where | None = None

    @model_validator(mode="after")
    def _defined(self) -> EventPattern:
        if self.event not in VOCABULARY_EVENTS:
            raise ValueError(f"`event` is {self.event!r}; expected one of {', '.join(sorted(VOCABULARY_EVENTS))}")
        wrong = (self.where.keys() if self.where else set()) - WHERE_KEYS.get(self.event, frozenset())
        if wrong:
            known = ", ".join(sorted(WHERE_KEYS.get(self.event, ()))) or "nothing"
            raise ValueError(f"`where.{sorted(wrong)[0]}` says nothing of {self.event}; it can be narrowed by {known}")
        return self


def parse_pattern(value: object) -> EventPattern:
    """An event pattern as the catalogue writes it; `PatternError` says what is wrong with it."""
    try:
        return EventPattern.model_validate(value)
    except ValidationError as error:
        told = [
            ".".join(str(step) for step in fault["loc"]) + ": " * bool(fault["loc"]) + fault["msg"].removeprefix("Value error, ")
            for fault in error.errors()
        ]
        raise PatternError("; ".join(told)) from error


def matches(pattern: EventPattern, item: Item, blobs: Blobs) -> bool | None:
    """True, False, or None where it cannot be known."""
    data = item.data
    if data is None or not _is(pattern.event, data):
        return False
    return True if pattern.where is None else _where(pattern.where, data, blobs)


def _is(event: str, data: Data) -> bool:
    match data:
        case UserMessage(delivered=False):
            return False
        case Ask(how="text"):
            return event == "agent_question"  # a question in words; a typed one has an event of its own
        case AgentQuestion():
            return event in ("agent_question", "agent_message")  # what is asked through a typed channel is text the user sees
        case _:
            return data.kind == event


def _where(where: Where, data: Data, blobs: Blobs) -> bool | None:
    answers: list[bool | None] = []
    match data:
        case AgentMessage(text=text) | AgentQuestion(text=text) | UserMessage(text=text):
            answers = [_text(where.text, text, blobs), _words(where.min_words, text, blobs)]
        case ToolResult(text=text, is_error=is_error):
            answers = [_exit(where.exit, is_error), _text(where.text, text, blobs)]
        case Command():
            answers = [_command(where.cmd, data)]
        case FileRead(path=path, marker=marker):
            answers = [
                where.path is None or path_matches(path, where.path),
                where.marker is None or marker.strip() == where.marker.strip(),
                where.marker_re is None or search(where.marker_re, marker),
            ]
        case FileWrite(path=path) | FileDelete(path=path):
            answers = [where.path is None or path_matches(path, where.path)]
        case SliceReleased(slice=name):
            answers = [where.slice is None or name == where.slice]
        case InterimClaim(slices_pending=pending):
            answers = [where.slices_pending is None or pending == where.slices_pending]
        case Ask():
            answers = [None if where.keys() else True]  # the words are in an agent_message before it
        case _:
            raise AssertionError(f"{data.kind} has no `where`")
    return all_of(answers)


def all_of(answers: list[bool | None]) -> bool | None:
    """Conjunction in three values."""
    if any(answer is False for answer in answers):
        return False
    return None if any(answer is None for answer in answers) else True


def _text(pattern: str | None, text: Text, blobs: Blobs) -> bool | None:
    if pattern is None:
        return True
    data = content(text, blobs)
    return None if data is None else search(pattern, data)


def _words(least: int | None, text: Text, blobs: Blobs) -> bool | None:
    if least is None:
        return True
    data = content(text, blobs)
    return None if data is None else words_reach(data.decode("utf-8", "replace"), least)


def words_reach(text: str, least: int) -> bool:
    """At least `least` words: runs of letters and digits, where each character of a script without spaces is one."""
    count, inside = 0, False
    for char in text:
        if 0x2E80 <= ord(char) <= 0x9FFF or 0xF900 <= ord(char) <= 0xFAFF or 0x20000 <= ord(char) <= 0x3FFFF:
            count, inside = count + (char.isalnum()), False
        else:
            if char.isalnum() and not inside:
                count += 1
            inside = char.isalnum() or (inside and char in "'’-_")
        if count >= least:
            return True
    return False


def _exit(code: int | None, is_error: bool) -> bool | None:
    if code is None or (code == 0) != is_error:
        return True if code in (None, 0) else None
    return False


def _command(pattern: str | None, command: Command) -> bool | None:
    if pattern is None:
        return True
    text = command_text(command)
    if any(search(pattern, one) for one in text.certain):
        return True
    unseen = any(search(pattern, one) for one in text.possible)
    unseen = unseen or any(search(pattern, one) and not search(pattern, plain) for one, plain in text.redirected)
    return None if text.cut or unseen else False
