"""Content shown: a marker line of a file stands in a tool result (measuring.md 2.2), whatever tool printed it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from realcli.ledger.events import FileRead
from realcli_session.runner.errors import RunnerError
from realcli_session.runner.port import RunnerPort

MIN_MARKER: Final = 8
"""Characters without outer white space; a shorter line stands in too many texts."""
MAX_MARKER: Final = 1000
MAX_FILE: Final = 256 << 10
MAX_FILES: Final = 1000
"""Files that have markers of ours: each marker is looked for in each tool result."""
MAX_LINES: Final = 200_000
"""Lines of all files together that are looked after, twice that for files that are known; an agent can write any number."""
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
        self._count = 0
        self._owners: dict[str, set[str]] = {}
        """Line -> files it stands in: a change of one file concerns only those that share a line with it."""
        self.markers: dict[str, Sequence[str]] = dict(declared)

    def knows(self, path: str) -> bool:
        """The file's markers are declared, or chosen from its content."""
        return path in self._declared or path in self._lines

    def learn(self, contents: Mapping[str, bytes]) -> None:
        """Contents of files as they are now; an empty one is a file that has gone."""
        concerned = set()
        for path, content in contents.items():
            lines = tuple(line for text in content.decode("utf-8", "replace").splitlines() if _telling(line := text.strip()))
            known = self._lines.pop(path, ())
            self._count -= len(known)
            no_room = len(self._lines) >= MAX_FILES and not known
            if no_room or self._count + len(lines) > (2 * MAX_LINES if known else MAX_LINES):
                lines = ()
            before, now = set(known), set(lines)
            for line in before - now:
                self._owners[line].discard(path)
                concerned |= self._owners[line]
                if not self._owners[line]:
                    del self._owners[line]
            for line in now - before:
                owners = self._owners.setdefault(line, set())
                concerned |= owners
                owners.add(path)
            concerned.add(path)
            if lines:
                self._lines[path] = lines
                self._count += len(lines)
        for path in concerned - self._declared:
            chosen = default_markers(self._lines.get(path, ()), lambda line: len(self._owners[line]) > 1, self._said)
            if chosen:
                self.markers[path] = chosen
            else:
                self.markers.pop(path, None)


def _telling(line: str) -> bool:
    return MIN_MARKER <= len(line) <= MAX_MARKER


async def learn(book: MarkerBook, runner: RunnerPort, paths: Iterable[str]) -> None:
    """Contract files that nobody watches, as they are before the agent begins."""
    for path in paths:
        if not book.knows(path):
            try:
                book.learn({path: await runner.get_file(path, limit=MAX_FILE)})
            except RunnerError:
                continue  # not there, a folder, or too large to have one telling line


def default_markers(lines: Sequence[str], elsewhere: Callable[[str], bool], said: str) -> tuple[str, ...]:
    """First, middle and last of the lines that identify a file; fewer where it has fewer. Short ones say nothing.

    The middle one is the first such line of the second half.
    """
    counts = Counter(lines)

    def first(candidates: Iterable[str]) -> Iterator[str]:
        for line in candidates:
            if counts[line] == 1 and _telling(line) and not elsewhere(line) and line not in said:
                yield line
                return

    middle = len(lines) // 2
    return tuple(dict.fromkeys((*first(lines), *first(lines[middle:]), *first(reversed(lines)))))
