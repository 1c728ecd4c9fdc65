"""Words of a text, in the one form in which topics and leak terms are compared."""

from __future__ import annotations

import re
import unicodedata

INVISIBLE = re.compile("[\u00ad\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufe00-\ufe0f]")
"""Characters that show nothing: soft hyphens, zero-width ones, directions, variation selectors."""
_TOKEN = re.compile(r"[^\W_]+")


def word_set(text: str) -> frozenset[str]:
    """The words of a list written as one text."""
    return frozenset(text.split())


def visible(text: str) -> str:
    """NFKC, lower case, without invisible characters."""
    return INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).casefold()


def tokens(text: str) -> tuple[str, ...]:
    """Words and numbers of a text, in lower case, without marks and invisible characters."""
    return tuple(_TOKEN.findall(visible(text)))


def stands_in(term: tuple[str, ...], words: tuple[str, ...]) -> bool:
    """The tokens of `term` stand next to each other among `words`."""
    return bool(term) and any(words[at : at + len(term)] == term for at in range(len(words) - len(term) + 1))
