"""Content shown: a marker line of a file stands in a tool result (measuring.md 2.2), whatever tool printed it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from realcli.ledger.events import FileRead

MIN_MARKER: Final = 8
"""Characters without outer white space; a shorter line stands in too many texts."""
MAX_MARKER: Final = 1000
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


class MarkerBook:
    """Markers of the files of a task: the oracle's, and where it has none the first, middle and last line of a file that stand
    nowhere else, neither in another file nor in what the user says.

    `markers` is one dictionary that follows what files become; whoever looks for markers holds it.
    """

    def __init__(self, declared: Mapping[str, Sequence[str]], said: str) -> None:
        self._declared = frozenset(declared)
        self._said = said
        self._lines: dict[str, tuple[str, ...]] = {}
        self.markers: dict[str, Sequence[str]] = dict(declared)

    def learn(self, contents: Mapping[str, bytes]) -> None:
        """Contents of files as they are now; an empty one is a file that has gone."""
        for path, content in contents.items():
            self._lines[path] = tuple(line.strip() for line in content.decode("utf-8", "replace").splitlines())
        for path in self._lines:  # a line that another file has got is no marker any more
            if path not in self._declared:
                self._choose(path)

    def _choose(self, path: str) -> None:
        others = {line for other, lines in self._lines.items() if other != path for line in lines}
        chosen = default_markers(self._lines[path], others, self._said)
        if chosen:
            self.markers[path] = chosen
        else:
            self.markers.pop(path, None)


def default_markers(lines: Sequence[str], elsewhere: Iterable[str], said: str) -> tuple[str, ...]:
    """First, middle and last of the lines that identify a file; fewer where it has fewer. Short ones say nothing."""
    others = set(elsewhere)
    counts: dict[str, int] = {}
    for line in lines:
        counts[line] = counts.get(line, 0) + 1
    own = [
        line
        for line in lines
        if counts[line] == 1 and MIN_MARKER <= len(line) <= MAX_MARKER and line not in others and line not in said
    ]
    if not own:
        return ()
    return tuple(dict.fromkeys((own[0], own[len(own) // 2], own[-1])))
