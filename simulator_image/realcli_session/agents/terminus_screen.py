"""What Terminus-2 shows the model of its terminal: pure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from realcli_session.agents.terminus_wording import Wording

MAX_BYTES = 10_000
Capture = Callable[[bool], Awaitable[str]]
"""The pane's text: all of its history (True), or what is visible now."""


def limited(text: str, words: Wording, max_bytes: int = MAX_BYTES) -> str:
    """At most `max_bytes` of UTF-8 and a note: the first and the last half, cut characters dropped."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= max_bytes:
        return text
    half = max_bytes // 2
    first, last = raw[:half].decode("utf-8", "ignore"), raw[-half:].decode("utf-8", "ignore")
    omitted = len(raw) - len(first.encode()) - len(last.encode())
    return words.say("output_limited", first, max_bytes, omitted, last)


def new_content(before: str, now: str) -> str | None:
    """What came since `before`, from its last line on; None where the two do not fit together (the history was cut, cleared).

    As harbor does it: it begins where the last line break of `before` is (less its outer white space), counted in `now`.
    """
    known = before.strip()
    if known not in now:
        return None
    return now[known.rfind("\n") :] if "\n" in known else now[now.index(known) :]


class Report(NamedTuple):
    """What the model is shown, and whether that is known to differ from what it was shown last."""

    text: str
    changed: bool


class Screen:
    """Remembers the terminal's history to tell what is new in it."""

    def __init__(self, capture: Capture, words: Wording) -> None:
        self._capture = capture
        self._words = words
        self._before: str | None = None

    async def report(self) -> Report:
        """New output since the last report, or the visible screen where there is none or it cannot be told; limited in length."""
        before, self._before = self._before, await self._capture(True)
        new = None if before is None else new_content(before, self._before)
        if new is not None and new.strip():
            text = self._words.say("new_output", new)
        else:
            text = self._words.say("screen", await self._capture(False))
        return Report(limited(text, self._words), before is not None and before.rstrip() != self._before.rstrip())

    def forget(self) -> None:
        """The terminal is another one now."""
        self._before = None
