"""Guards on a worded message: each a name and what it looks for. A hit discards the whole message; nothing is ever edited.

They may be wrong towards caution: what they refuse is replaced by the script's own text, which costs nothing but tone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from realcli.benchmark.instruction import code_spans
from realcli.benchmark.words import INVISIBLE, stands_in, tokens, visible, word_set
from realcli_session.user.wording.forms import SHORTEST, decoded, numbers_said, squeezed
from realcli_session.user.wording.withheld import NUMBER, Withheld


@dataclass(frozen=True, slots=True)
class Context:
    """What a draft is measured by."""

    canonical: str
    """The texts it words."""
    before: str
    """The user's message before this one, as delivered: a leak may be split over both."""
    licensed: str
    """Everything the user has said, may always say, or is saying now."""
    heard: str
    """What the agent has said to the user."""
    withheld: Withheld


Guard = Callable[[str, Context], bool]
_PATH = re.compile(
    r"(?<![\w/])(?:~|\.{0,2})/[\w.~-]+(?:/[\w.~-]+)*"
    r"|\b[\w-]+\.(?:py|sh|js|ts|json|ya?ml|toml|ini|conf|cfg|md|txt|csv|log|gz|sql|env)\b"
)
_CODE = re.compile(r"```|~~~|^\s*(?:[$#>]|>>>)\s+\S|<\/?code>", re.MULTILINE)
_COMMAND = re.compile(
    r"\b(?:sudo|chmod|chown|mkdir|rm -|git (?:add|commit|push|pull|reset|clone)|pip3? install|npm (?:i|install|run)|curl |wget "
    r"|sed -|awk |grep -|docker |kubectl |systemctl |apt(?:-get)? |python3? [\w./-]+\.py|bash -|export [A-Z_]+=)"
    r"|\b(?:def|class|function|import|return|SELECT|INSERT|UPDATE) [\w*(]+.*[(:;=]"
)
_STOP = re.compile(
    r"#{2,}\s*[A-Z_-]+\s*#{2,}|<(?:stop|end|eos|done)\b|\[(?:stop|end|done)\]"
    r"|\b(?:TASK_COMPLETE|END_OF_CONVERSATION|TERMINATE)\b",
    re.I,
)
_META = re.compile(
    r"\b(?:benchmark\w*|probes?|simulat\w+|test case|being tested|evaluat\w+|scenario\w*|oracle\w*|checker\w*|verifier\w*"
    r"|role-?play\w*|my (?:script|instructions|prompt|persona)|system prompt|(?:large )?language model|as an ai|slices?"
    r"|canonical|withheld|hidden requirement\w*)\b",
    re.I,
)
_THINKING = re.compile(
    r"</?(?:think|thinking|reasoning|scratchpad|analysis|reflection)\b|<\|[^|]*\|>"
    r"|^\s*(?:thinking|reasoning|thought|analysis)\s*:",
    re.I | re.M,
)
_ASSISTANT = re.compile(
    r"^\s*(?:user|assistant|human|ai|agent|system)\s*:"
    r"|^\s*(?:sure|certainly|of course|absolutely|great)[,!.]? (?:i|i'll|i will|let me|here)\b"
    r"|\bi(?:'ve| have) (?:just )?"
    r"(?:implemented|created|updated|fixed|written|added|changed|set|edited|run|tested|verified|checked)\b"
    r"|\bi(?:'ll| will) (?:now )?(?:implement|create|update|fix|write|add|change|edit|run|test|verify|start by)\b"
    r"|\bhere(?:'s| is) (?:the|my|a) (?:code|script|plan|solution|summary|implementation)\b"
    r"|\bhow (?:can|may) i (?:help|assist)\b|\blet me know if (?:you|there)\b|\bwould you like me to\b"
    r"|\bi(?:'d| would) be happy to\b",
    re.I | re.M,
)
_JSON = re.compile(r"^\s*[{\[]|\{\s*\"|\"\s*:\s*[\"{\[\d]")
_ENCODED = re.compile(
    r"[A-Za-z0-9+/_-]{16,}={0,2}|(?:[0-9a-fA-F]{2}[\s:]?){8,}|(?:%[0-9a-fA-F]{2}){3,}|(?:\\[xu][0-9a-fA-F]{2,4}){2,}"
    r"|(?:[01]{7,8}\s){2,}"
)
_NEGATIONS = word_set("not no never none nothing neither nor without except unless cannot only")
_ENGLISH = word_set(
    "the a an and or of to in is it that this i you we be are on for with as at by from have has please my your me so "
    "if not but do can could would should also just then now all one there what which when how will was were more "
    "some any about again out up"
)
_OTHERS = (
    word_set(
        "der die das und ist nicht ein eine den dem mit auf für von zu im soll muss bitte wird auch noch le la les et est "
        "pas une des du dans pour avec sur qui que ne doit être vous il elle aussi el los las es una con por para que "
        "debe ser del al esta pero muy también en se lo gli che per non della nel deve essere anche sono di het een van "
        "niet op moet ook voor dat os uma não com"
    )
    - _ENGLISH
)


STEM = 5
_PARTS = re.compile(r"(?<=[.!?])\s+|[;:\n]+|\s[-\u2013\u2014]+\s|[()]")
_SMALL_STEMS = frozenset(
    word[:STEM]
    for word in _ENGLISH
    | word_set(
        "hi hello hey dear thanks thank okay ok well right sure yes alright great good fine nice perfect sorry oh ah "
        "please listen look see let us me ll ve re m s d don here there next first second then also too more other "
        "another thing things point points bit little much very really actually quite few last before forget remember mind "
        "matter matters care take give get got need want like know think say tell said told mean moment today time day work job "
        "he she they them their his her its these those who why because while until since though still yet after than "
        "make sure note important wait everything anything nothing something far way by side add mention mentioned ask"
    )
)
"""Words of greeting, thanks and passing on."""


def hits(text: str, context: Context) -> list[str]:
    """Names of the guards that object; [] if none does."""
    return [name for name, guard in GUARDS.items() if guard(text, context)]


def _leak(text: str, context: Context) -> bool:
    """A withheld term stands in it: as words, letters apart, encoded, in number words, or over two messages."""
    joined = context.before[-400:] + " " + text
    plain, apart = tokens(joined), squeezed(joined)
    hidden = [(tokens(form), squeezed(form)) for form in decoded(text)]
    spelled = numbers_said(text) | numbers_said(joined)
    for term in context.withheld.terms:
        short = "".join(term)
        if stands_in(term, plain) or short in spelled:
            return True
        if len(short) >= SHORTEST and (short in apart or any(short in letters for _, letters in hidden)):
            return True
        if any(stands_in(term, words) for words, _ in hidden[:-1]):
            return True
    return False


def _overlap(text: str, context: Context) -> bool:
    """Two telling words that stand nowhere but in what is withheld: a paraphrase of it."""
    return len(context.withheld.words & set(tokens(text))) >= 2


def _numbers(text: str, context: Context) -> bool:
    """A number that nobody has said."""
    known = set(NUMBER.findall(context.licensed + "\n" + context.heard)) | numbers_said(context.licensed)
    return bool((set(NUMBER.findall(visible(text))) | numbers_said(text)) - known)


def _paths(text: str, context: Context) -> bool:
    """A path or file name that nobody has said."""
    known = context.licensed + "\n" + context.heard
    return any(found not in known for found in _PATH.findall(text))


def _lost(text: str, context: Context) -> bool:
    """A literal, a number or a negation of the canonical text is missing or new: the meaning has changed."""
    if any(f"`{span}`" not in text for span in code_spans(context.canonical)):
        return True
    if set(NUMBER.findall(context.canonical)) - set(NUMBER.findall(text)):
        return True
    return _denials(text) != _denials(context.canonical)


def _denials(text: str) -> int:
    return sum(word in _NEGATIONS or word == "t" for word in tokens(text))


def _code(text: str, context: Context) -> bool:
    """Code or a command that the canonical text has not."""
    if code_spans(text) - code_spans(context.canonical):
        return True
    return any(found.search(text) and not found.search(context.canonical) for found in (_CODE, _COMMAND))


def _unless_canonical(pattern: re.Pattern[str]) -> Guard:
    def guard(text: str, context: Context) -> bool:
        allowed = {found.casefold() for found in _all(pattern, context.canonical)}
        return any(found.casefold() not in allowed for found in _all(pattern, visible(text) if pattern is _META else text))

    return guard


def _all(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    return (found.group() for found in pattern.finditer(text))


def _length(text: str, context: Context) -> bool:
    return not text.strip() or len(text) > 2 * len(context.canonical) + 200


def _invisible(text: str, context: Context) -> bool:
    """Characters that show nothing, or letters of another script among Latin ones."""
    if INVISIBLE.search(text) or any(ord(char) < 32 and char not in "\n\t" for char in text):
        return True
    return any(ord(char) > 0x24F and char.isalpha() for char in text) and not any(
        ord(char) > 0x24F and char.isalpha() for char in context.canonical
    )


def _language(text: str, context: Context) -> bool:
    """Another language than the canonical text's."""
    words = tokens(text)
    foreign = {word for word in words if word in _OTHERS} - set(tokens(context.canonical))
    if len(foreign) >= 2:
        return True
    mine, theirs = _english(words), _english(tokens(context.canonical))
    return len(words) >= 8 and theirs >= 0.25 and mine < 0.15


def _english(words: tuple[str, ...]) -> float:
    return sum(word in _ENGLISH for word in words) / max(len(words), 1)


def _question(text: str, context: Context) -> bool:
    """Asks although the canonical text does not, or the other way round."""
    return ("?" in text) != ("?" in context.canonical)


def _beyond(text: str, context: Context) -> bool:
    """A sentence that shares no word with the canonical text and is more than small talk or what the user has said before.

    A hint may use words of its own; and what the assistant guesses is not for the user to confirm.
    """
    mine = {_stem(word) for word in tokens(context.canonical)} - _SMALL_STEMS
    free = _SMALL_STEMS | {_stem(word) for word in tokens(context.licensed)}
    return any(
        not said <= free and said.isdisjoint(mine)
        for part in _PARTS.split(visible(text))
        if (said := {_stem(word) for word in tokens(part)})
    )


def _stem(word: str) -> str:
    """Enough of a word to know it again in another form."""
    return word[:STEM]


GUARDS: dict[str, Guard] = {
    "leak": _leak,
    "overlap": _overlap,
    "numbers": _numbers,
    "paths": _paths,
    "lost": _lost,
    "code": _code,
    "stop_marker": _unless_canonical(_STOP),
    "meta": _unless_canonical(_META),
    "reasoning": _unless_canonical(_THINKING),
    "length": _length,
    "role": _unless_canonical(_ASSISTANT),
    "json": _unless_canonical(_JSON),
    "encoded": _unless_canonical(_ENCODED),
    "invisible": _invisible,
    "language": _language,
    "question": _question,
    "beyond": _beyond,
}
"""Every guard by its name in the ledger, in the order in which they are told."""
