"""Comparing what was said with what the script holds: sentences, literals, numbers, negations, small talk. Pure.

Nothing here guesses at meaning. Two texts are alike by their tokens (`realcli.benchmark.words`); what a program cannot
settle that way stays open.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher

from realcli.benchmark.instruction import code_spans
from realcli.benchmark.words import tokens, visible, word_set

_SENTENCE = re.compile(r"(?<=[.!?])[\"'”’»)\]*_]*\s+|\n+")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,:]\d+)*(?!\w)")
_PATH = re.compile(
    r"(?<![\w/])(?:~|\.{0,2})/[\w.~-]+(?:/[\w.~-]+)*"
    r"|\b[\w-]+\.(?:py|sh|js|ts|json|ya?ml|toml|ini|conf|cfg|md|txt|csv|log|gz|sql|env|lock|db)\b"
)
_FENCE = re.compile(r"```|~~~|^\s*(?:[$#>]|>>>)\s+\S|^[-+]{3} [\w./]|^@@ ", re.MULTILINE)
_COMMAND = re.compile(
    r"\b(?:sudo|chmod|chown|mkdir|rm -\w|git (?:add|commit|push|pull|reset|clone|checkout)|pip3? install|npm (?:i|install|run)"
    r"|curl |wget |sed -|awk |grep -|docker |kubectl |systemctl |apt(?:-get)? (?:install|update)|python3? [\w./-]+\.py|python3? -"
    r"|bash -|sh -c|export [A-Z_]+=|cat <<)"
    r"|\b(?:def|class|function|import|return|SELECT|INSERT|UPDATE) [\w*(]+.*[(:;=]"
)
_NEGATIONS = word_set("not no never none nothing neither nor without except unless cannot only t")
SMALL_TALK = word_set(
    "hi hello hey dear thanks thank you okay ok well right sure yes alright great good fine nice perfect sorry oh ah and so then "
    "also too now here next first a an the it this that one thing more for to of me i we us is are was be please just before "
    "forget say let all morning evening day bye lot much very that's i'll s ll m my your with on by way there again right"
)
"""Words of greeting, thanks and passing on. A sentence of nothing else says nothing."""
ALIKE = 0.5
"""Share of common tokens, in order, from which two sentences are versions of one."""
RUN = 6
"""Tokens in a row that two texts do not share by chance."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and its tokens."""

    text: str
    words: tuple[str, ...]
    owner: int = -1  # of a canonical one: number of its piece


@dataclass(frozen=True, slots=True)
class Alignment:
    """Said against canonical, sentence by sentence. `changed`: (canonical, said); whatever stands in both is left out."""

    changed: tuple[tuple[Sentence, Sentence], ...]
    lost: tuple[Sentence, ...]
    added: tuple[Sentence, ...]


def sentences(text: str, owner: int = -1) -> list[Sentence]:
    """Sentences of a text. A line break ends one."""
    found = [part.strip() for part in _SENTENCE.split(text)]
    return [Sentence(part, words, owner) for part in found if (words := tokens(part))]


def align(said: str, canonical: list[Sentence]) -> Alignment:
    """Which canonical sentences stand in `said` (as tokens), which in another version, which not, and what is new."""
    mine, theirs = sentences(said), list(canonical)
    for one in canonical:
        same = next((other for other in mine if other.words == one.words), None)
        if same is not None:
            theirs.remove(one)
            mine.remove(same)
    changed: list[tuple[Sentence, Sentence]] = []
    for one in list(theirs):
        best = max(mine, key=lambda other: alike(one.words, other.words), default=None)
        if best is not None and alike(one.words, best.words) >= ALIKE:
            changed.append((one, best))
            theirs.remove(one)
            mine.remove(best)
    return Alignment(tuple(changed), tuple(theirs), tuple(mine))


def alike(one: tuple[str, ...], other: tuple[str, ...]) -> float:
    """Share of tokens the two have in common, in order: 1.0 equal."""
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def numbers(text: str) -> frozenset[str]:
    """Numbers in digits."""
    return frozenset(_NUMBER.findall(visible(text)))


def keys(text: str) -> frozenset[str]:
    """What a statement fixes: its literals in backticks and its numbers."""
    return frozenset(code_spans(text)) | numbers(text)


def denials(text: str) -> int:
    """Words that deny or except."""
    return sum(word in _NEGATIONS for word in tokens(text))


def key_change(canonical: str, said: str) -> str | None:
    """What of a statement's fixed parts differs, told for people; None: they are the same."""
    before, after = keys(canonical), keys(said)
    if before != after:
        lost, new = sorted(before - after), sorted(after - before)
        parts = [f"{', '.join(lost)} is missing"] if lost else []
        return "; ".join([*parts, *([f"{', '.join(new)} is new"] if new else [])])
    if denials(canonical) != denials(said):
        return "a negation or exception is missing or new"
    return None


def small_talk(sentence: Sentence) -> bool:
    """It says nothing: greeting, thanks, passing on."""
    return SMALL_TALK.issuperset(sentence.words)


def paths(text: str) -> frozenset[str]:
    """Paths and names of files."""
    return frozenset(found.rstrip(".") for found in _PATH.findall(text))


def work_in(text: str) -> frozenset[str]:
    """Code and commands in it."""
    return frozenset(found.group().strip() for pattern in (_FENCE, _COMMAND) for found in pattern.finditer(text))


def runs(words: tuple[str, ...], length: int = RUN) -> frozenset[tuple[str, ...]]:
    """Every stretch of that many tokens."""
    return frozenset(words[at : at + length] for at in range(len(words) - length + 1))


def run_shared(words: tuple[str, ...], texts: Iterable[str], known: frozenset[tuple[str, ...]]) -> str | None:
    """The first stretch of `RUN` tokens that `words` shares with one of `texts` and that nobody had said."""
    mine = runs(words) - known
    if not mine:
        return None
    for text in texts:
        common = mine & runs(tokens(text))
        if common:
            return " ".join(min(common))
    return None
