"""Section 3 of docs/script.md, read independently of the simulated user: sentences, topics, requests. For interpreter.py."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any


def listed(text: str) -> set[str]:
    return set(text.split())


BARE = listed("""a an the i me my we us you your it its this that these those there here one to of for with on in at by as and or
not if so just also then now first next is are be am was were do does did done have has had shall should may might can
could will would want like need let know tell say think please ok okay yes no sure fine good right correct all any
anything something else more further other what which how when where who why proceed continue go going ahead start
started begin carry keep move forward confirm agree approve approval permission allow allowed authorise authorize set
make change work help step steps thing things task instruction instructions detail details question questions
requirement requirements information plan approach sound sounds look looks""")
WH = listed("what which how when where who why")
OPENS = listed("what which how anything something else next more further other any")
FACT = listed("""is are was were am be do does did has have had will would isn aren wasn weren don doesn didn hasn haven hadn won
wouldn""")
NOT = listed("not never no nor neither without instead rather avoid cannot t")
LEAVE = re.compile(
    r"(?<!\S)(?:(?:may|can|could|shall|should|must) (?:i|we)|(?:do|did|would) you (?:want|like|prefer|mind) (?:me|us|if i)"
    r"|(?:is|are|would) (?:it|that|this)(?: be)? (?:ok|okay|fine|alright|all right|acceptable)"
    r"|(?:ok|okay) (?:if|to|for me|with you)"
    r"|permission|approve|approval|authori[sz]e|authori[sz]ation|allow|allowed|go ahead|confirm)(?!\S)"
)
OPEN = re.compile(r"(?<!\S)(?:anything else|something else|any other|any further|any more|any questions)(?!\S)")
ASKS = re.compile(
    r"please (?:confirm|specify|clarify|advise|provide|tell me)(?!\S)"
    r"|(?:please )?(?:let me know|tell me) (?:which|what|whether|how|where|when|who)(?!\S)"
)
LEAD = re.compile(
    r"(?:should|shall|may|can|could|would|do|did) (?:i|we|you)(?!\S)"
    r"|(?:(?:so|and|then|now) )?(?:which|what)(?!\S).* (?:do|would|should|shall|may|can|could) (?:i|we|you|it)(?!\S)"
    r"|(?:please )?(?:choose|pick|select|decide)(?!\S)|please (?:confirm|specify|clarify|advise|tell me)(?!\S)"
)
UNCLOSED = listed("anything something else next more further other any")
YES_NO = re.compile(r"[([]\s*(?:y|yes)\s*(?:/|or)\s*(?:n|no)\s*[)\]]\s*[?:]?$", re.IGNORECASE)
AHEAD = listed("""will ll would shall should may might can could must want need plan planning going intend propose suggest next
like""")
PARTICIPLES = listed("""done been run ran gone went taken took made put set reset cut shut split hit written wrote rewritten
rewrote given gave gotten got sent brought kept left lost found built thrown threw drawn drew dropped begun began""")
HAVING, SOFT = listed("have has had ve was were been"), listed("already just now also then successfully not")
CLOSERS = r"[*_\"'”’»)\]}`]*"
ENDS = re.compile(rf"(?<=[.!?]){CLOSERS}\s+")
SHORT = re.compile(r"(?:^|[^\w.])(?:e\.g|i\.e|cf|vs|approx)\.$", re.IGNORECASE)


# ----------------------------------------------------------------------------------------------------- section 3: reading
def tokens(text: str) -> list[str]:
    visible = "".join(c for c in unicodedata.normalize("NFKC", text).lower() if unicodedata.category(c) != "Cf")
    return re.findall(r"[^\W_]+", visible)


def topic_in(topics: list[str], have: set[str]) -> bool:
    def form(t: str) -> bool:
        return bool({t, t + "s", t + "es", t[:-1] if len(t) > 3 and t.endswith("s") else t} & have)

    return any(all(form(t) for t in tokens(topic)) for topic in topics)


def still_ahead(sentence: str) -> set[str]:
    """Tokens of the clauses of a sentence that do not report what was done."""
    clauses = re.split(r"[;:—–]|\b(?=(?:so|but|and (?:i|we))\b)", sentence, flags=re.IGNORECASE)
    return {word for clause in clauses if not reported(tokens(clause)) for word in tokens(clause)}


def reported(words: list[str]) -> bool:
    if set(words) & AHEAD or ("to" in words and {"have", "has"} & set(words)):
        return False
    done = [w in PARTICIPLES or bool(re.fullmatch(r"\w{3,}ed", w)) for w in words]
    for i, word in enumerate(words):
        if word in HAVING | {"i", "we"}:
            rest = [k for k in range(i + 1, len(words)) if words[k] not in SOFT | HAVING]
            if rest and done[rest[0]]:
                return True
    return bool(words) and words[0].endswith("ed") and done[0]


def sentences(text: str) -> Iterator[str]:
    return (text for text, _, _ in placed(text))


def placed(text: str) -> Iterator[tuple[str, int, bool]]:
    """Sentences with the number of their line among those that are not empty, and whether that line is an item of a list."""
    fence, number = "", 0
    for line in text.split("\n"):
        bare = line.strip()
        if fence:
            fence = "" if bare and set(bare) == {fence[0]} and len(bare) >= len(fence) else fence
        elif found := re.match(r"(`{3,})[^`]*$|(~{3,})", bare):
            fence = found[1] or found[2]
        elif bare.startswith(">"):
            number += 1
        elif bare:
            number += 1
            item = bool(re.match(r"(?:[-*+•]|\d+[.)])\s", line.lstrip()))
            line, start = re.sub(r"^\s*(?:[-*+•]|\d+[.)]|#+)\s+", "", line), 0
            number -= item and not line.strip()
            for end in [*ENDS.finditer(line), None]:
                part = line[start : end.start() if end else len(line)]
                if end is None or not SHORT.search(part):
                    start = end.end() if end else start
                    if part.strip():
                        yield part.strip(), number, item


def chosen_from(says: str) -> Iterator[tuple[str, bool]]:
    """Sentences, those that are a choice with all its items: (text, is a choice)."""
    told = list(placed(says))
    while told:
        text, line, _ = told.pop(0)
        items = []
        if offers(text) and not (told and told[0][1] == line):
            while told and told[0][2] and told[0][1] - line <= 1:
                more, line, _ = told.pop(0)
                items.append(more)
        yield "\n".join([text, *items]), bool(items)


def offers(text: str) -> bool:
    words = tokens(text)
    if re.search(rf"\?{CLOSERS}$", text):
        return BARE.issuperset(words) and bool(WH & set(words)) and not UNCLOSED & set(words)
    return bool(re.search(rf":{CLOSERS}$", text)) and bool(LEAD.match(" ".join(words)))


def asking(text: str) -> bool:
    boxed = YES_NO.search(text)
    if boxed:
        return bool(tokens(text[: boxed.start()]))
    return bool(re.search(rf"\?{CLOSERS}$", text) or ASKS.match(" ".join(tokens(text))))


def asked_in(says: str, questions: list[str] | None) -> Iterator[tuple[str, bool]]:
    """What is asked: (text, is a choice). A typed question is a text of its own, and asks even if none of its sentences does."""
    for text in [says] if questions is None else questions:
        found = [(one, choice) for one, choice in chosen_from(text) if choice or asking(one)]
        if not found and questions is not None:
            kept = [line for line in text.split("\n") if not re.match(r"\s*(?:[-*+•]|\d+[.)])\s", line)]
            found = [("\n".join(kept) if tokens("\n".join(kept)) else text, False)]
        for one, choice in found:
            boxed = None if choice else YES_NO.search(one)
            yield one[: boxed.start()] if boxed and tokens(one[: boxed.start()]) else one, choice


def requests_of(says: str, questions: list[str] | None) -> list[dict[str, Any]]:
    """Text, tokens, bare, for leave, may name an action, texts in which a bare one finds actions."""
    found: list[dict[str, Any]] = []
    for text, choice in asked_in(says, questions):
        if choice:
            one = {"text": text, "words": set(tokens(text)), "bare": False, "leave": False, "named": False}
            if one not in found:
                found.append(one)
            continue
        words = tokens(text)
        joined, bare = " ".join(words), BARE.issuperset(words)
        if OPEN.search(joined) or (bare and OPENS & set(words)):
            continue
        or_not = joined.endswith("or not")
        formed = bool(LEAVE.search(joined)) and (or_not or not {"or"} & set(words)) and not (WH | {"assume"}) & set(words)
        named = (
            not (WH & set(words))
            and not NOT & set(words[:-2] if or_not else words)
            and (formed or not words or words[0] not in FACT)
        )
        one = {"text": text, "words": set(words), "bare": bare, "leave": bare or formed, "named": named}
        if not any(other == one or (bare and other["bare"]) for other in found):
            found.append(one)
    return found
