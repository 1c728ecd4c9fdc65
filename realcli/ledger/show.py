"""One event as one readable line. Text of the agent is hostile: control and direction characters are made visible."""

from __future__ import annotations

import unicodedata

from realcli.api.base import canonical_json
from realcli.ledger.events import Event

WIDTH = 160
_SHOWN = (
    "text",
    "reason",
    "detail",
    "name",
    "input",
    "path",
    "phase",
    "limit",
    "slice",
    "probe",
    "sourceIds",
    "how",
    "status",
    "stopReason",
)


def visible(text: str) -> str:
    """The text on one line, without anything a terminal would obey or hide."""
    return "".join(
        char if char.isprintable() else {"\n": "⏎", "\t": "→"}.get(char, f"\\u{{{ord(char):x}}}")
        for char in unicodedata.normalize("NFC", text)
    )


def printable_json(text: str) -> str:
    """JSON that a terminal shows as it is, and that says the same: what cannot be seen stands as an escape of JSON."""
    return "".join(
        char if char.isprintable() or char == "\n" else f"\\u{unit:04x}"
        for char in text
        for unit in ([ord(char)] if ord(char) < 0x10000 or char.isprintable() else _surrogates(ord(char)))
    )


def _surrogates(code: int) -> tuple[int, int]:
    return 0xD800 + (code - 0x10000 >> 10), 0xDC00 + (code - 0x10000 & 0x3FF)


def describe(event: Event, width: int = WIDTH) -> str:
    """`seq +seconds turn/exchange actor kind: what`."""
    parts = []
    for key in _SHOWN:
        value = event.data.get(key)
        if value in (None, "", [], {}):
            continue
        if isinstance(value, dict) and set(value) == {"blob", "size"}:
            value = f"<{value['size']} bytes in blobs/{value['blob'][:12]}…>"
        text = value if isinstance(value, str) else canonical_json(value).decode()
        parts.append(visible(text) if key == "text" else f"{key}={visible(text)}")
    what = "  ".join(parts)
    what = what if len(what) <= width else what[: width - 1] + "…"
    return f"{event.seq:5d} +{event.mono:9.3f}  t{event.turn} x{event.exchange}  {event.actor:<7} {visible(event.kind)}: {what}"
