"""Text of an agent, made harmless and honest for a page: nothing in it is markup, and nothing in it hides.

Escaping keeps it from being HTML. What a reader cannot see (control characters, terminal codes, direction overrides, zero-width
and tag characters, odd spaces) is shown by its code point, so that a text reads as what it is.
"""

from __future__ import annotations

import unicodedata

from markupsafe import Markup, escape

KEEP = frozenset("\n\t ")
_HIDDEN_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"))
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")  # look like nothing, count as letters or marks
MAX_MARKS = 3  # combining marks on one character; more would cover the lines around it


def hidden(char: str) -> bool:
    """True for a character that is not seen, or that changes how its neighbours are seen."""
    if char in KEEP:
        return False
    return (
        unicodedata.category(char) in _HIDDEN_CATEGORIES
        or char in _BLANK_LETTERS
        or 0xFE00 <= ord(char) <= 0xFE0F  # variation selectors
        or 0xE0100 <= ord(char) <= 0xE01EF
    )


def visible(text: str) -> Markup:
    """The text as safe HTML: escaped, hidden characters as small labels."""
    parts: list[str] = []
    run: list[str] = []
    for char, is_hidden in marked(text):
        if is_hidden:
            parts += [str(escape("".join(run))), f'<span class="hid">{_code(char)}</span>']
            run = []
        else:
            run.append(char)
    return Markup("".join([*parts, str(escape("".join(run)))]))


def plain(text: str) -> str:
    """The text for an attribute, which is escaped as ever: hidden characters by their code point."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_code(char) if is_hidden else char for char, is_hidden in marked(text))


def honest(value: object) -> object:
    """`plain` for every value a template prints that is no markup yet: a name nobody thought of hides nothing either."""
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def shorten(text: str, limit: int) -> tuple[str, int]:
    """(the text, or its beginning and end, number of characters left out)."""
    if len(text) <= limit:
        return text, 0
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head]}\n[… {len(text) - head - tail} characters left out …]\n{text[-tail:]}", len(text) - head - tail


def marked(text: str) -> list[tuple[str, bool]]:
    """Every character, and whether it has to be shown by its code point."""
    found: list[tuple[str, bool]] = []
    marks = 0
    for char in text.replace("\r\n", "\n"):
        marks = marks + 1 if unicodedata.combining(char) else 0
        found.append((char, hidden(char) or marks > MAX_MARKS))
    return found


def _code(char: str) -> str:
    return f"U+{ord(char):04X}"
