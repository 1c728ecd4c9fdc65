"""A ledger as text for a terminal: the conversation, with what happened around it. An agent's text is only shown."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import ValidationError

from realcli.ledger.base import BlobRef
from realcli.ledger.events import Event
from realcli.ledger.show import describe, visible
from realcli.trajectory.conversation import Entry, conversation
from realcli.trajectory.model import Item, Trajectory

MAX_LINES = 12
MAX_COLUMNS = 400
Fetch = Callable[[BlobRef], bytes | None]


class Printer:
    """Prints events one after the other: `show(event)`.

    `full`: whole texts, blobs too (`fetch` brings them); else the first `MAX_LINES` lines of each. `everything`: one line for
    every event instead of the conversation.
    """

    def __init__(self, show: Callable[[str], None], fetch: Fetch, *, full: bool = False, everything: bool = False) -> None:
        self._show = show
        self._fetch = fetch
        self._full = full
        self._everything = everything
        self._exchange = 0

    def __call__(self, event: Event) -> None:
        """One event."""
        if self._everything:
            self._show(describe(event))
            return
        try:
            item = Item(event, event.typed())
        except ValidationError:
            self._show(describe(event))  # not what its kind holds: `verify` says whether it was written so
            return
        for section in conversation(Trajectory((item,))):
            for entry in section.entries:
                if section.number != self._exchange:
                    self._exchange = section.number
                    self._show(f"── exchange {section.number}")
                self._entry(entry)

    def _entry(self, entry: Entry) -> None:
        self._show(f"{entry.seq:5d} +{entry.seconds:.1f}s t{entry.turn}  {visible(entry.title)}")
        text, more = self._text(entry)
        lines = text.removesuffix("\n").split("\n") if text else []
        kept = lines if self._full else lines[:MAX_LINES]
        for line in kept:
            shown = visible(line)
            cut = len(shown) > MAX_COLUMNS and not self._full
            self._show("        " + (shown[:MAX_COLUMNS] + "…" if cut else shown))
        if len(lines) > len(kept):
            more = f"{len(lines) - len(kept)} more lines" + (f", {more}" if more else "")
        if more:
            self._show(f"        … {more}")

    def _text(self, entry: Entry) -> tuple[str, str]:
        if not isinstance(entry.text, BlobRef):
            return entry.text, ""
        if not self._full:
            return "", f"{entry.text.size} bytes in blobs/{entry.text.blob} (--full shows them)"
        data = self._fetch(entry.text)
        if data is None:
            return "", f"blobs/{entry.text.blob} is not there"
        return data.decode("utf-8", "replace"), ""
