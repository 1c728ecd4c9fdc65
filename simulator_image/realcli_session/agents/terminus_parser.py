"""A reply of the model, read as Terminus-2 reads it: pure, for any text, in time linear in its length.

Equal to harbor's own parser (a differential test compares them), warnings and errors included, as the model reads those. Three
things differ: what makes harbor's parser raise is an error here, unknown fields are listed in order, and `message_to_user`, which
only COLLAB offers, is kept.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from realcli_session.agents.terminus_wording import USER_FIELD, Wording

MAX_DURATION = 60.0
_DEFAULT_DURATION = 1.0
_REQUIRED = ("analysis", "plan", "commands")
_COMMAND_FIELDS = frozenset({"keystrokes", "duration"})
_YES = frozenset({"true", "1", "yes"})
_SHORT = 200  # an unreadable object below this is quoted whole
_PREVIEW = 100
_STRUCTURE = re.compile(r'\\.|["{}]', re.DOTALL)
_BRACES = re.compile(r"[{}]")


@dataclass(frozen=True, slots=True)
class Keys:
    """One command: keystrokes, and seconds to wait afterwards (0 to 60)."""

    keystrokes: str
    duration: float


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a reply says. With an `error` nothing is done; the model reads error and warnings."""

    commands: tuple[Keys, ...] = ()
    complete: bool = False
    error: str = ""
    warning: str = ""
    analysis: str = ""
    plan: str = ""
    to_user: str = ""


def parse(reply: str, words: Wording) -> Parsed:
    """Read a reply; where that fails, try to repair it as harbor does: missing closing braces, then an object in mixed text."""
    parsed, unreadable = _read(reply, words)
    if not parsed.error:
        return parsed
    for name, repaired in _repairs(reply, unreadable, words):
        again, _ = _read(repaired, words)
        if not again.error:
            note = f"- {words.say('auto_corrected', words.say(name))}"
            return replace(again, warning=f"{note}\n{again.warning}" if again.warning else note)
    return parsed


def feedback(parsed: Parsed, words: Wording) -> str:
    """What the model is told about its reply; "" if nothing is wrong."""
    if parsed.error:
        text = words.say("feedback_error", parsed.error)
        return text + words.say("feedback_error_warnings", parsed.warning) if parsed.warning else text
    return words.say("feedback_warnings", parsed.warning) if parsed.warning else ""


def _read(reply: str, words: Wording) -> tuple[Parsed, bool]:
    """The reply as it stands; the flag: no JSON object could be read at all."""
    warnings: list[str] = []
    found = _find_object(reply)
    if found is None:
        return Parsed(error=words.say("no_json"), warning=f"- {words.say('no_object')}"), True
    start, end = found
    if reply[:start].strip():
        warnings.append(words.say("text_before"))
    if reply[end:].strip():
        warnings.append(words.say("text_after"))
    text = reply[start:end]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        quoted = ("invalid_json_content", text) if len(text) < _SHORT else ("invalid_json_preview", text[:_PREVIEW])
        what = words.say("invalid_json", str(error)) + words.say(quoted[0], repr(quoted[1]))
        return Parsed(error=what, warning=_list(warnings)), True
    if not isinstance(value, dict):  # cannot be: the text begins with a brace
        return Parsed(error=words.say("not_an_object"), warning=_list(warnings)), False
    problem = _structure(value, text, warnings, words)
    if problem:
        return Parsed(error=problem, warning=_list(warnings)), False
    said = Parsed(analysis=_text(value["analysis"]), plan=_text(value["plan"]), to_user=_text(value.get(USER_FIELD)))
    complete = _truth(value.get("task_complete", False))
    commands, problem = _commands(value["commands"], warnings, words)
    if problem and complete:
        warnings.append(problem)
    elif problem:
        return replace(said, error=problem, warning=_list(warnings)), False
    return replace(said, commands=tuple(commands), complete=complete, warning=_list(warnings)), False


def _find_object(reply: str) -> tuple[int, int] | None:
    """The first span of balanced braces outside of quotes. A backslash hides the next character, also outside of quotes."""
    start, depth, quoted = -1, 0, False
    for match in _STRUCTURE.finditer(reply):
        mark = match[0]
        if mark == '"':
            quoted = not quoted
        elif quoted or mark[0] == "\\":
            continue
        elif mark == "{":
            if depth == 0:
                start = match.start()
            depth += 1
        else:
            depth -= 1
            if depth == 0 and start != -1:
                return start, match.end()
    return None


def _structure(value: Mapping[str, Any], text: str, warnings: list[str], words: Wording) -> str:
    missing = [name for name in _REQUIRED if name not in value]
    if missing:
        return words.say("missing_fields", ", ".join(missing))
    for name in ("analysis", "plan"):
        if not isinstance(value[name], str):
            warnings.append(words.say(f"{name}_type"))
    if not isinstance(value["commands"], list):
        return words.say("commands_type")
    _order(text, warnings, words)
    if not isinstance(value.get("task_complete"), bool | str | None):
        warnings.append(words.say("complete_type"))
    return ""


def _order(text: str, warnings: list[str], words: Wording) -> None:
    """Where each field is named first in the text, nested or not."""
    found = {name: match.start() for name in _REQUIRED if (match := re.search(rf'"{name}"\s*:', text))}
    actual = sorted(found, key=lambda name: found[name])
    if len(found) > 1 and actual != list(found):
        joint = words.say("order_joint")
        warnings.append(words.say("wrong_order", joint.join(actual), joint.join(found)))


def _commands(given: list[Any], warnings: list[str], words: Wording) -> tuple[list[Keys], str]:
    commands: list[Keys] = []
    for number, command in enumerate(given, 1):
        if not isinstance(command, dict):
            return [], words.say("command_type", number)
        if "keystrokes" not in command:
            return [], words.say("keystrokes_missing", number)
        keystrokes = command["keystrokes"]
        if not isinstance(keystrokes, str):
            return [], words.say("keystrokes_type", number)
        duration = command.get("duration", _DEFAULT_DURATION)
        if "duration" not in command:
            warnings.append(words.say("duration_missing", number))
        elif not isinstance(duration, int | float):
            warnings.append(words.say("duration_invalid", number))
            duration = _DEFAULT_DURATION
        unknown = sorted(command.keys() - _COMMAND_FIELDS)
        if unknown:
            warnings.append(words.say("unknown_fields", number, ", ".join(unknown)))
        if number < len(given) and keystrokes and not keystrokes.endswith("\n"):
            warnings.append(words.say("newline_missing", number))
        commands.append(Keys(keystrokes, _seconds(duration)))
    return commands, ""


def _seconds(duration: float) -> float:
    """Within 0 and 60; no number waits not at all, as harbor's loop does."""
    if isinstance(duration, float) and math.isnan(duration):
        return 0.0
    return float(min(max(duration, 0), MAX_DURATION))


def _repairs(reply: str, unreadable: bool, words: Wording) -> Iterator[tuple[str, str]]:
    """(name of the repair, repaired text)."""
    lacking = reply.count("{") - reply.count("}")
    if unreadable and lacking > 0:
        yield "fixed_braces", reply + "}" * lacking
    for start, end in _shallow_objects(reply):
        try:
            json.loads(reply[start:end])
        except (ValueError, RecursionError):
            continue
        yield "fixed_mixed", reply[start:end]
        return


def _shallow_objects(reply: str) -> Iterator[tuple[int, int]]:
    """Spans of balanced braces with at most one level within, quotes not regarded, from the left, none inside another."""
    outer = inner = -1  # open braces
    within: list[tuple[int, int]] = []  # closed ones inside `outer`: spans of their own if `outer` is none
    for match in _BRACES.finditer(reply):
        at = match.start()
        if match[0] == "{":
            if outer == -1:
                outer = at
            elif inner == -1:
                inner = at
            else:  # too deep for `outer`; the brace inside it takes its place
                yield from within
                within.clear()
                outer, inner = inner, at
        elif inner != -1:
            within.append((inner, at + 1))
            inner = -1
        elif outer != -1:
            within.clear()
            yield outer, at + 1
            outer = -1
    yield from within


def _truth(value: object) -> bool:
    return value.lower() in _YES if isinstance(value, str) else bool(value)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _list(warnings: list[str]) -> str:
    return "- " + "\n- ".join(warnings) if warnings else ""
