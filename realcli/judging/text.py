"""Text of a run as a judge is shown it, and as a quote of it is compared. Pure.

Characters that nobody sees (zero-width, direction, tag, control) are left out of both: a text that only a model reads is no
text the user saw, and a judge that copies what it was shown must not be refused for what it was not.
"""

from __future__ import annotations

import re
import sys
import unicodedata

_BLANK = "\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5"  # letters and marks that look like nothing
_KEEP = "\t\n"


def _hidden_class() -> str:
    """A character class of every code point that is not seen: controls, formats, private use, surrogates, selectors."""
    ranges: list[list[int]] = []
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        unseen = (
            unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs")
            or char in _BLANK
            or 0xFE00 <= code <= 0xFE0F
            or 0xE0100 <= code <= 0xE01EF
        )
        if not unseen or char in _KEEP:
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


_HIDDEN = re.compile(f"[{_hidden_class()}]+")
_LINE_ENDS = re.compile("\r\n?|[\u0085\u2028\u2029\x0b\x0c]")
_SINGLE = "\u2018\u2019\u201a\u201b\u2032\u0060\u00b4"
_DOUBLE = "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb"
_QUOTES = str.maketrans(_SINGLE + _DOUBLE, "'" * len(_SINGLE) + '"' * len(_DOUBLE))


def seen(text: str) -> tuple[str, int]:
    """(the text without what nobody sees, how many characters were left out). Line ends become plain ones."""
    plain = _LINE_ENDS.sub("\n", text)
    shown = _HIDDEN.sub("", plain)
    return shown, len(plain) - len(shown)


def normal(text: str) -> str:
    """The form in which a quote and its source are compared: NFKC, plain quotation marks, single spaces, nothing hidden."""
    shown = _HIDDEN.sub("", unicodedata.normalize("NFKC", _LINE_ENDS.sub("\n", text)))
    return " ".join(shown.translate(_QUOTES).split())
