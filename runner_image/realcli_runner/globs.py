"""Absolute globs as sets of states that a walk carries down the tree. Pure.

`*`, `?` and `[…]` match within one component, dot files too; `**` as a whole component matches any number of components.
A state is (glob, component): what of that glob is still to be matched below the directory in hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from realcli.wire.protocol import ErrorCode
from realcli_runner.errors import Failure, printable
from realcli_runner.walking import absolute_parts

States = frozenset[tuple[int, int]]
_MAGIC = re.compile(rb"[*?[]")


class Step(NamedTuple):
    """What a child's name does to a set of states."""

    matched: bool
    below: States


@dataclass(frozen=True, slots=True)
class _Part:
    literal: bytes | None = None
    pattern: re.Pattern[bytes] | None = None

    @property
    def deep(self) -> bool:
        """This is `**`."""
        return self.literal is None and self.pattern is None

    def accepts(self, name: bytes) -> bool:
        return name == self.literal if self.pattern is None else self.pattern.fullmatch(name) is not None


class Globs:
    """Some compiled globs."""

    def __init__(self, globs: Iterable[bytes]) -> None:
        self._globs = [tuple(_part(part) for part in absolute_parts(glob)) for glob in globs]
        for glob in self._globs:
            if not glob:
                raise Failure(ErrorCode.BAD_REQUEST, "a glob must name something below /")
        self.start: States = self._closed((number, 0) for number in range(len(self._globs)))

    def _closed(self, states: Iterable[tuple[int, int]]) -> States:
        found, pending = set(), list(states)
        while pending:
            state = pending.pop()
            if state in found:
                continue
            found.add(state)
            number, position = state
            if position < len(self._globs[number]) and self._globs[number][position].deep:
                pending.append((number, position + 1))  # matches no component at all
        return frozenset(found)

    def step(self, states: States, name: bytes) -> Step:
        """Whether a child called `name` matches, and what is looked for below it."""
        moved = []
        matched = False
        for number, position in states:
            glob = self._globs[number]
            if position == len(glob):
                continue
            part = glob[position]
            if part.deep:
                moved.append((number, position))
                matched = matched or position + 1 == len(glob)
            elif part.accepts(name):
                moved.append((number, position + 1))
        closed = self._closed(moved)
        matched = matched or any(position == len(self._globs[number]) for number, position in moved)
        below = frozenset(state for state in closed if state[1] < len(self._globs[state[0]]))
        return Step(matched, below)

    def literals(self, states: States) -> list[bytes] | None:
        """The only names that can lead on from here, sorted; None when the directory has to be listed."""
        found = set()
        for number, position in states:
            if position == len(self._globs[number]):
                continue
            literal = self._globs[number][position].literal
            if literal is None:
                return None
            found.add(literal)
        return sorted(found)


def _part(text: bytes) -> _Part:
    if text == b"**":
        return _Part()
    if not _MAGIC.search(text):
        return _Part(literal=text)
    return _Part(pattern=_compile(text))


def _compile(text: bytes) -> re.Pattern[bytes]:
    out = [b"(?s:"]
    position = 0
    while position < len(text):
        char = text[position : position + 1]
        position += 1
        if char == b"*":
            if out[-1] != b".*":  # runs of stars would only make matching slow
                out.append(b".*")
        elif char == b"?":
            out.append(b".")
        elif char == b"[":
            end = text.find(b"]", position + (2 if text[position : position + 1] in (b"!", b"^") else 1))
            if end < 0:
                out.append(re.escape(char))
                continue
            inner = text[position:end]
            position = end + 1
            negated = inner[:1] in (b"!", b"^")
            body = (inner[1:] if negated else inner).replace(b"\\", b"\\\\").replace(b"[", b"\\[").replace(b"^", b"\\^")
            body = re.sub(rb"([&~|])", rb"\\\1", body)
            out.append(b"[" + (b"^" if negated else b"") + body + b"]")
        else:
            out.append(re.escape(char))
    try:
        return re.compile(b"".join(out) + b")")
    except re.error as error:
        raise Failure(ErrorCode.BAD_REQUEST, f"glob component {printable(text)}: {error}") from None
