"""What must not be said yet, at one moment: terms and words of everything that is to come."""

from __future__ import annotations

import re
from dataclasses import dataclass

from realcli.benchmark.instruction import code_spans
from realcli.benchmark.leaks import leak_terms, public_words
from realcli.benchmark.words import stands_in, tokens
from realcli_session.user.reading import BARE
from realcli_session.user.state import State

NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,:]\d+)*(?!\w)")
TELLING = 5  # letters of a word that says something


@dataclass(frozen=True, slots=True)
class Withheld:
    """Terms as tokens, and telling words that stand nowhere but in what is withheld."""

    terms: tuple[tuple[str, ...], ...]
    words: frozenset[str]


def withheld(state: State, licensed: str) -> Withheld:
    """Of slices not released, probes to come, parts, closures and answers not said. `licensed`: what was or is being said."""
    script = state.play.script
    known = tokens(licensed)
    public = public_words(script)
    terms: dict[tuple[str, ...], None] = {}
    texts: list[str] = []
    for part in script.slices:
        if part.id not in state.released:
            texts.append(part.text)
            terms |= dict.fromkeys(tokens(term) for term in leak_terms(part, public))
    for text in _texts_to_come(state):
        texts.append(text)
        terms |= dict.fromkeys(tokens(term) for term in [*code_spans(text), *NUMBER.findall(text)])
    open_ = set(known) | set(public)
    words = {word for text in texts for word in tokens(text) if len(word) >= TELLING and word not in BARE}
    return Withheld(
        terms=tuple(term for term in terms if term and not stands_in(term, known) and not stands_in(term, public)),
        words=frozenset(words - open_),
    )


def _texts_to_come(state: State) -> list[str]:
    found: list[str] = []
    for name, played in state.play.probes.items():
        probe = played.probe
        if name in state.waiting:
            found += [probe.text, *probe.parts]
        elif state.parts is not None and state.parts[0] == name:
            found += probe.parts[state.parts[1] :]
        if probe.closure is not None and f"closure:{name}" not in state.said:
            found += [probe.closure.text, *([probe.closure.told.text] if probe.closure.told and probe.closure.told.text else [])]
    found += [answer.text for answer in state.play.script.answers if f"answer:{answer.id}" not in state.said]
    return found
