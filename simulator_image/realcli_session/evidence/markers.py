"""Content shown: a marker line of a file stands in a tool result (measuring.md 2.2), whatever tool printed it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from realcli.ledger.events import FileRead

_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def shown_markers(text: str, markers: Mapping[str, Sequence[str]]) -> tuple[tuple[str, str], ...]:
    """(path, marker) of every marker that stands in the text, in the order of `markers`.

    A marker is looked for inside a line, without its outer white space, as tools put line numbers and file names before it;
    terminal colours are ignored. A blank marker would stand everywhere and is refused with ValueError.
    """
    plain = _COLOURS.sub("", text)
    found = []
    for path, lines in markers.items():
        for marker in lines:
            needle = marker.strip()
            if not needle:
                raise ValueError(f"oracle_contract.json: a marker of {path} is blank")
            if needle in plain:
                found.append((path, marker))
    return tuple(found)


def file_reads(call_id: str, text: str, markers: Mapping[str, Sequence[str]]) -> tuple[FileRead, ...]:
    """The events of one tool result."""
    return tuple(FileRead(path=path, marker=marker, call_id=call_id) for path, marker in shown_markers(text, markers))
