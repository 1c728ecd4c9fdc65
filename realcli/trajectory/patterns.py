"""Regular expressions and globs over text an agent wrote, in time linear in the text.

The text is hostile: a backtracking engine lets its author choose how long a match takes, and the session (which decides
triggers while the agent runs) and the judge would both hang on it. So expressions are RE2's: no look-around and no
back-references, refused when a task is loaded and never in a run. Globs become such expressions too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import re2

from realcli.ledger.base import PLAIN_TEXT, BlobRef, Text

MAX_SEARCHED = 4 << 20
"""Bytes of a text that are looked at. A longer text without a hit in them is *unknown*, not *no*."""
MAX_PATTERN = 4_096  # characters; an author's, but a compiled expression has a size


class PatternError(ValueError):
    """An expression or glob that cannot be used; the message says why and what to write."""


class Blobs(Protocol):
    """Contents behind the ledger's blob references: the session's spool while a run goes on, sealed evidence later."""

    def read(self, ref: BlobRef) -> bytes | None:
        """The bytes, None where they cannot be had."""


class NoBlobs:
    """For ledgers whose texts all stand in their lines; any reference is unknown."""

    def read(self, ref: BlobRef) -> bytes | None:
        """Nothing."""
        return None


@lru_cache(maxsize=1024)
def expression(pattern: str) -> re2._Regexp:
    """The compiled expression; `PatternError` names what RE2 does not take."""
    if len(pattern) > MAX_PATTERN:
        raise PatternError(f"the expression has {len(pattern)} characters; at most {MAX_PATTERN} are allowed")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if error.args and isinstance(error.args[0], bytes) else str(error)
        raise PatternError(
            f"{pattern!r} is no expression this program uses ({reason}); write it as RE2 does: no look-around, no back-references"
        ) from error


def search(pattern: str, text: str | bytes) -> bool | None:
    """Does `pattern` occur in the text? None: not in its first `MAX_SEARCHED` bytes, and there is more."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    if expression(pattern).search(data[:MAX_SEARCHED]) is not None:
        return True
    return None if len(data) > MAX_SEARCHED else False


def begins(pattern: str, text: str) -> bool:
    """`pattern` occurs at the very start of the text."""
    return expression(pattern).match(text.encode("utf-8", "replace")) is not None


def content(text: Text, blobs: Blobs) -> bytes | None:
    """The bytes of a text of the ledger, wherever they lie."""
    return blobs.read(text) if isinstance(text, BlobRef) else text.encode("utf-8", "replace")


def path_matches(path: str, globs: Sequence[str]) -> bool:
    """True if the path is one of `globs` or matches one. `*`, `?` and `[…]` stay within a component; `**` is any number of them.

    The same rule as the runner's watch: `/a/**` is everything below `/a`, not `/a` itself.
    """
    return any(path == glob or _glob(glob).fullmatch(path[:PLAIN_TEXT].encode("utf-8", "replace")) is not None for glob in globs)


@lru_cache(maxsize=1024)
def _glob(glob: str) -> re2._Regexp:
    parts = glob.split("/")
    written = []
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == "**":
            written.append("(?:[^/]+/)*" + ("[^/]+" if last else ""))
        else:
            written.append(_component(part) + ("" if last else "/"))
    return expression("(?s)" + "".join(written))


def _component(part: str) -> str:
    out, at = [], 0
    while at < len(part):
        char = part[at]
        close = part.find("]", at + 2) if char == "[" else -1
        if char == "*":
            out.append("[^/]*")
        elif char == "?":
            out.append("[^/]")
        elif close > 0:
            inside = part[at + 1 : close]
            negated = inside.startswith("!")
            escaped = (inside[1:] if negated else inside).replace("\\", "\\\\").replace("[", "\\[").replace("^", "\\^")
            out.append(f"[{'^/' if negated else ''}{escaped}]")
            at = close
        else:
            out.append(re2.escape(char))
        at += 1
    return "".join(out)
