"""What a hand-over asks for: sentences, questions, topics. No model reads here: the rules are in docs/script.md, word for word.

Wrong readings cost little: a question taken for none is answered by the next due item, none taken for a question by a
neutral sentence beside it. What must not happen is an approval nobody scripted, so leave is only ever given by topics.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from realcli.benchmark.words import tokens, word_set

Wants = Literal["information", "authorisation"]
_FENCE = re.compile(r"^[ \t]*(?:(`{3,})[^`\n]*|(~{3,})[^\n]*)$")
_MARKER = re.compile(r"^\s*(?:[-*+•]|\d+[.)]|#+)\s+")
_CLOSING = "*_\"'”’»)]}`"
_END = re.compile(rf"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bcf\.)(?<!\bvs\.)(?<!\bapprox\.)[{re.escape(_CLOSING)}]*\s+", re.I)

BARE = word_set(
    "a an the i me my we us you your it its this that these those there here one "
    "to of for with on in at by as and or not if so just also then now first next "
    "is are be am was were do does did done have has had shall should may might can could will would "
    "want like need let know tell say think please "
    "ok okay yes no sure fine good right correct all any anything something else more further other "
    "what which how when where who why "
    "proceed continue go going ahead start started begin carry keep move forward "
    "confirm agree approve approval permission allow allowed authorise authorize "
    "set make change work help step steps thing things task instruction instructions detail details "
    "question questions requirement requirements information plan approach sound sounds look looks"
)
"""Words that name nothing. A question of such words alone is about the whole message (`Shall I proceed?`)."""
_OPEN = word_set("what which how anything something else next more further other any")
_OPEN_PHRASE = re.compile(r"\b(anything else|something else|any (other|further|more|questions))\b")
_WHICH = word_set("what which how when where who why")
_OPEN_ALWAYS = word_set("anything something else next more further other any")
"""Words of an open question that a list does not close: "What next?" is answered by the next item, whatever is proposed."""
_FACT = word_set(
    "is are was were am be do does did has have had will would isn aren wasn weren don doesn didn hasn haven hadn won wouldn"
)
"""A question that begins so asks whether something is the case, unless it holds a form of leave."""
_NOT = word_set("not never no nor neither without instead rather avoid cannot t")
MAX_READ = 1 << 16
"""Characters of a message that are read: its end, where it is longer. A person would not read more of one either."""
MAX_REQUESTS = 100
_CHOICE = _WHICH | {"assume"}
_YES_NO = re.compile(r"[(\[]\s*(?:y(?:es)?)\s*(?:/|or)\s*(?:no?)\s*[)\]]\s*[?:]?$", re.I)
_LEADS = re.compile(
    r"(should|shall|may|can|could|would|do|did) (i|we|you)\b"
    r"|(so |and |then |now )?(which|what)\b.* (do|would|should|shall|may|can|could) (i|we|you|it)\b"
    r"|(please )?(choose|pick|select|decide)\b|please (confirm|specify|clarify|advise|tell me)\b"
)
"""How a line that ends in a colon begins if the list after it is what is asked about. "What I did:" is none."""
_COMMAND = re.compile(
    r"please (confirm|specify|clarify|advise|provide|tell me)\b"
    r"|(please )?(let me know|tell me) (which|what|whether|how|where|when|who)\b"
)
_LEAVE = re.compile(
    r"\b((may|can|could|shall|should|must) (i|we)|(do|did|would) you (want|like|prefer|mind)( me| us| if i)"
    r"|(is|are|would) (it|that|this)( be)? (ok|okay|fine|alright|all right|acceptable)|(ok|okay) (if|to|for me|with you)"
    r"|permission|approv(e|al)|authori[sz](e|ation)|allow(ed)?( me)?|go ahead|confirm)\b"
)


@dataclass(frozen=True, slots=True)
class Request:
    """One thing asked for. `about`: the text in which topics are looked for."""

    text: str
    wants: Wants
    about: str
    leave: bool = True
    """It may be a question for leave to a scripted action."""
    bare: bool = False  # it names nothing


@dataclass(frozen=True, slots=True)
class _Part:
    """A sentence, and the list that follows it: what there is to choose from."""

    text: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """A hand-over, read."""

    text: str
    requests: tuple[Request, ...]
    typed: bool  # through a typed channel: the agent waits for the answer, and it is no claim


@lru_cache(maxsize=4096)
def _topic(topic: str) -> tuple[str, ...]:
    return tokens(topic)


def has_topic(words: frozenset[str], topic: str) -> bool:
    """Every token of the topic stands among `words`, as it is or with a plural s more or less."""
    return all(any(form in words for form in _forms(token)) for token in _topic(topic))


def matches(text: str, topics: Iterable[str]) -> bool:
    """One of the topics is in the text."""
    words = frozenset(tokens(text))
    return any(has_topic(words, topic) for topic in topics)


def _forms(token: str) -> tuple[str, ...]:
    return (token, token + "s", token + "es", *((token[:-1],) if token.endswith("s") and len(token) > 3 else ()))


def sentences(text: str) -> list[str]:
    """Sentences in order: of what stands outside fenced code and quoted lines. A line break ends a sentence."""
    found: list[str] = []
    for line in _outside_fences(text.replace("\r\n", "\n").split("\n")):
        if line.lstrip().startswith(">"):
            continue
        found += [part.strip() for part in _END.split(_MARKER.sub("", line)) if part.strip()]
    return found


def _parts(text: str) -> list[_Part]:
    """Sentences as `sentences` gives them; a list belongs to the one right before it where that one asks what its items say."""
    found: list[_Part] = []
    lead: _Part | None = None  # the last of the lines before, which an item may belong to
    for line in _outside_fences(text.replace("\r\n", "\n").split("\n")):
        if not line.strip():
            continue
        said = [_Part(part) for part in sentences(line)]
        if _is_item(line) and lead is not None:
            lead = found[-1] = _Part(lead.text, (*lead.options, *(part.text for part in said)))
            continue
        found += said
        lead = found[-1] if said and _takes_options(said[-1].text) else None
    return found


def _takes_options(sentence: str) -> bool:
    """Alone it would ask nothing that could be answered, or would not ask at all."""
    said = sentence.rstrip(_CLOSING + " \t")
    words = tokens(sentence)
    if said.endswith("?"):
        return BARE.issuperset(words) and not _WHICH.isdisjoint(words) and _OPEN_ALWAYS.isdisjoint(words)
    return said.endswith(":") and _LEADS.match(" ".join(words)) is not None


def _outside_fences(lines: list[str]) -> Iterator[str]:
    """A fence ends at one of its kind that is as long and has nothing after it, else with the text."""
    fence = ""
    for line in lines:
        mark = _FENCE.match(line)
        if fence:
            bare = line.strip()
            fence = "" if bare and set(bare) == {fence[0]} and len(bare) >= len(fence) else fence
        elif mark is not None:
            fence = mark[1] or mark[2]
        else:
            yield line


_CLAUSE = re.compile(r"[;:—–]|\b(?=(?:so|but|and (?:i|we))\b)", re.I)
_INTENT = word_set(
    "will ll would shall should may might can could must want need plan planning going intend propose suggest next like"
)
_PAST_FORMS = word_set(
    "done been run ran gone went taken took made put set reset cut shut split hit written wrote rewritten rewrote given gave "
    "gotten got sent brought kept left lost found built thrown threw drawn drew dropped begun began"
)
_PERFECT = word_set("have has had ve was were been")
_SOFTLY = word_set("already just now also then successfully not")


def reports(clause: str) -> bool:
    """It says that something was done, and nothing of what will be: leave for that would come after the fact."""
    words = tokens(clause)
    if not _INTENT.isdisjoint(words) or ("to" in words and not {"have", "has"}.isdisjoint(words)):
        return False
    done = False  # the next word that is not between a verb and its participle is one
    for word in reversed(words):
        if done and (word in _PERFECT or word in ("i", "we")):
            return True
        if word not in _SOFTLY and word not in _PERFECT:
            done = _is_participle(word)
    return bool(words) and words[0].endswith("ed") and _is_participle(words[0])


def _is_participle(word: str) -> bool:
    return word in _PAST_FORMS or (word.endswith("ed") and len(word) > 4)


def to_come(sentence: str) -> frozenset[str]:
    """Words of what a sentence does not report as done."""
    return frozenset(word for clause in _CLAUSE.split(sentence) if not reports(clause) for word in tokens(clause))


def denies(words: Iterable[str]) -> bool:
    """A word of negation stands there, so it asks for no leave ("or not" at the end aside: the caller cuts it off)."""
    return not _NOT.isdisjoint(words)


def read(text: str, questions: tuple[str, ...] | None = None) -> Reading:
    """`text`: the agent's last visible message. `questions`: those of a typed channel, which are then all that is read.

    A question stands with its options below it, as lines of a list.
    """
    text = text[-MAX_READ:]
    if questions is not None:
        questions = tuple(question[:MAX_READ] for question in questions[:MAX_REQUESTS])
        whole = "\n".join(questions)
        asked = [request for question in questions for request in _typed(question, f"{whole}\n{text}")]
        return Reading(whole, _each_once(asked), typed=True)
    asked = [request for part in _parts(text) if (request := _asked(part, text)) is not None]
    return Reading(text, _each_once(asked), typed=False)


def _each_once(requests: list[Request]) -> tuple[Request, ...]:
    """The first of each that is answered alike: all that name nothing are one."""
    found: dict[object, Request] = {}
    for request in requests:
        found.setdefault(None if request.bare else request, request)
    return tuple(found.values())[:MAX_REQUESTS]


def _typed(question: str, message: str) -> Iterator[Request]:
    """It is read as the same text in a message is: no agent is answered otherwise because its program has a channel.

    The channel says that it is a question, so one in which no sentence asks is one as a whole, but for its options.
    """
    asking = [part for part in _parts(question) if part.options or _asks(part.text)]
    found = [_asked(part, message) for part in asking] if asking else [_request(_without_items(question), message)]
    yield from (request for request in found if request is not None)


def _without_items(question: str) -> str:
    lines = [line for line in question.split("\n") if not _is_item(line)]
    return "\n".join(lines) if tokens(" ".join(lines)) else question


def _is_item(line: str) -> bool:
    return _MARKER.match(line) is not None and not line.lstrip().startswith("#")


def _asked(part: _Part, message: str) -> Request | None:
    """What a sentence asks for. With a list it is a choice, which is never leave for one of its items."""
    if part.options:
        whole = "\n".join((part.text, *part.options))
        return Request(whole, "information", whole, leave=False)
    return _request(_YES_NO.sub("", part.text), message) if _asks(part.text) else None


def _asks(sentence: str) -> bool:
    """It ends in a question mark or "(y/n)", or begins as a request for an answer does."""
    yes_no = _YES_NO.search(sentence)
    if yes_no is not None:
        return bool(tokens(sentence[: yes_no.start()]))
    return sentence.rstrip(_CLOSING + " \t").endswith("?") or _COMMAND.match(" ".join(tokens(sentence))) is not None


def _request(sentence: str, message: str) -> Request | None:
    """None for an open question ("What next?", "Anything else?"): the next due item is the answer to that."""
    words = tokens(sentence)
    said = " ".join(words)
    bare = BARE.issuperset(words)
    if _OPEN_PHRASE.search(said) is not None or (bare and not _OPEN.isdisjoint(words)):
        return None
    if bare:
        return Request(sentence, "authorisation", message, bare=True)
    asserted = words[:-2] if said.endswith("or not") else words
    formed = _LEAVE.search(said) is not None and _CHOICE.isdisjoint(words) and "or" not in asserted
    leave = _WHICH.isdisjoint(words) and not denies(asserted) and (formed or words[0] not in _FACT)
    return Request(sentence, "authorisation" if formed else "information", sentence, leave=leave)
