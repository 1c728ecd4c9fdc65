"""What a permission prompt of an agent program asks leave for: the commands and the paths in its input. Pure.

Only what will be executed or touched counts. A description, a reason, the content of a file or a working directory names things
that nobody asked leave for, and leave is never given for those.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from realcli.ledger.evidence import Command
from realcli.trajectory.commands import command_text

_COMMAND = frozenset(("command", "cmd"))
_PATH = frozenset(("path", "paths", "file_path", "filepath", "notebook_path", "file", "files", "changes"))


def commands_in(value: JsonValue) -> list[str]:
    """Every simple command asked for, normalised, each text as it is after its own; a list of words is one command."""
    found: dict[str, None] = {}
    for given in _under(value, _COMMAND):
        argv = [str(word) for word in given] if isinstance(given, list) else [given] if isinstance(given, str) else []
        if argv:
            told = command_text(Command(id=1, argv=argv, record="tool_text"))
            found |= dict.fromkeys((*told.certain, *told.possible, " ".join(argv)))
    return list(found)


def paths_in(value: JsonValue) -> list[str]:
    """Absolute paths to be touched."""
    return [text for given in _under(value, _PATH) for text in _texts(given) if text.startswith("/")]


def _under(value: JsonValue, keys: frozenset[str]) -> Iterator[JsonValue]:
    if isinstance(value, list):
        for item in value:
            yield from _under(item, keys)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key.lower() in keys:
                yield item
            elif isinstance(item, dict | list):
                yield from _under(item, keys)


def _texts(value: JsonValue) -> Iterator[str]:
    """Texts of a value; of a mapping its keys too (path -> change), but not what a change consists of."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        yield from value
        yield from (text for given in _under(value, _PATH) for text in _texts(given))
