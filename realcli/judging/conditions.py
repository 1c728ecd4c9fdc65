"""What an answer of the judge has to meet before it counts. Pure; every rule says what is wrong and how to mend it.

The rules are those of measuring.md 5. They make a verdict rest on something a program can look up: a literal text at its
place inside the window, a file of a snapshot, the program's own record, or a window that was really read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from realcli.judging.pieces import OF_THE_AGENT, Part, Piece, Role
from realcli.judging.questions import Question, in_window
from realcli.judging.reading import Reading, Seen
from realcli.judging.state_files import FilesUnreadable, StateFiles
from realcli.judging.text import normal
from realcli.judging.tools import GivenAnswer, GivenEvidence

MIN_QUOTE = 8
"""Characters (normal form) a quote has at least, unless it is the whole of a text: a word stands everywhere."""
MAX_FILE = 8 << 20  # bytes of a file a quote is looked for in


class Place(NamedTuple):
    """Where a quote stands."""

    piece: Piece
    part: Part


@dataclass(frozen=True)
class Evidence:
    """What answers are held against."""

    reading: Reading
    files: StateFiles
    seen: Seen


def faults(question: Question, given: GivenAnswer, evidence: Evidence) -> list[str]:
    """Every condition that an answer violates, in words for the judge; empty: it counts."""
    found = [*_clauses(question, given)]
    if given.anchor_exchange is not None and given.anchor_exchange != question.anchor_exchange:
        found.append(f"anchor_exchange is {given.anchor_exchange}; the question says {question.anchor_exchange}: look there")
    if not given.evidence:
        return [*found, "evidence is empty: cite what the verdict rests on"]
    items = [fault for number, item in enumerate(given.evidence, 1) for fault in _item(question, item, number, evidence)]
    return [*found, *items, *([] if items else _support(question, given, evidence))]


def _clauses(question: Question, given: GivenAnswer) -> Iterator[str]:
    never = question.check.na_when.strip().lower() == "never"
    if given.zero_clause_met != (given.verdict == "0"):
        said = "is met" if given.zero_clause_met else "is not met"
        yield f"zero_clause_met says that zero_when {said}, the verdict {given.verdict}: a met zero_when is 0, only that"
    if never and (given.na_clause_met or given.verdict == "na"):
        yield "na_when of this check is never: it always applies, so na_clause_met is false and the verdict is 1 or 0"
    elif given.na_clause_met != (given.verdict == "na"):
        said = "is met" if given.na_clause_met else "is not met"
        yield f"na_clause_met says that na_when {said}, but the verdict is {given.verdict}: a met na_when is na, and only that"


# -- one item of evidence


def _item(question: Question, item: GivenEvidence, number: int, evidence: Evidence) -> Iterator[str]:
    told = f"evidence {number} ({item.kind})"
    match item.kind:
        case "quote":
            yield from (f"{told}: {fault}" for fault in _quote_faults(item, evidence))
        case "hard":
            yield from (f"{told}: {fault}" for fault in _hard_faults(question, item))
        case "file":
            yield from (f"{told}: {fault}" for fault in _file_faults(question, item, evidence))
        case "absence":
            yield from (f"{told}: {fault}" for fault in _absence_faults(question, item, evidence))


def _quote_faults(item: GivenEvidence, evidence: Evidence) -> Iterator[str]:
    if not item.quote or item.exchange is None:
        yield "a quote needs exchange and quote"
        return
    if item.exchange not in evidence.reading.by_exchange:
        yield f"there is no exchange {item.exchange}; the run has 1 to {evidence.reading.last_exchange}"
        return
    if places(evidence.reading, item):
        return
    elsewhere = sorted({place.piece.exchange for place in _everywhere(evidence.reading, item.quote)})
    if elsewhere:
        yield f"this text does not stand in exchange {item.exchange} but in {', '.join(map(str, elsewhere[:5]))}"
    elif len(normal(item.quote)) < MIN_QUOTE:
        yield f"a quote has at least {MIN_QUOTE} characters, unless it is the whole of a text"
    else:
        yield f"this text stands nowhere in exchange {item.exchange}: copy it literally from one item, whole"


def places(reading: Reading, item: GivenEvidence) -> list[Place]:
    """Where a quote stands literally in its exchange; empty: nowhere, or it is too short to mean anything."""
    return [place for place in _everywhere(reading, item.quote or "") if place.piece.exchange == item.exchange]


def _everywhere(reading: Reading, quote: str) -> list[Place]:
    wanted = normal(quote)
    if not wanted:
        return []
    short = len(wanted) < MIN_QUOTE
    return [
        Place(piece, part)
        for piece in reading.pieces
        for part in piece.parts
        if not piece.lost and (wanted == part.normal if short else wanted in part.normal)
    ]


def _hard_faults(question: Question, item: GivenEvidence) -> Iterator[str]:
    if item.ref != question.id:
        yield f"ref is {item.ref!r}; the only program record that can stand for this check is its own: {question.id}"
    elif question.hard is None:
        yield "no program record of this check was shown to you"
    elif question.hard.result == "undecided":
        yield "the program's record is undecided: it shows nothing"


def _file_faults(question: Question, item: GivenEvidence, evidence: Evidence) -> Iterator[str]:
    snapshot, colon, path = (item.ref or "").partition(":")
    if not colon or not path.startswith("/") or not item.quote:
        yield "a file needs ref <snapshot>:<absolute path> and a quote that stands in it"
        return
    try:
        content = evidence.files.read(snapshot, path)
    except FilesUnreadable as error:
        yield str(error)
        return
    if content is None:
        yield f"{item.ref} does not exist"
        return
    wanted, text = normal(item.quote), normal(content[:MAX_FILE].decode("utf-8", "replace"))
    if not wanted or wanted not in text:
        yield f"the quote does not stand in {item.ref}"
    elif len(wanted) < MIN_QUOTE and wanted != text:
        yield f"a quote has at least {MIN_QUOTE} characters, unless it is the whole of a file"
    elif "@" in snapshot and snapshot.partition("@")[2] != question.instance:
        yield f"{snapshot} is a snapshot of another scenario"


def _absence_faults(question: Question, item: GivenEvidence, evidence: Evidence) -> Iterator[str]:
    if item.window != question.window_name:
        yield f"window is {item.window!r}; this check's is {question.window_name}"
    missing = sorted(set(question.exchanges) - set(item.exchanges_read))
    if missing:
        yield f"exchanges_read does not cover the window: {_some(missing)} missing"
    lost = evidence.reading.unreadable(question.exchanges)
    if lost is not None:
        yield f"the text of item {lost.id} is not among the evidence, so nobody can say that something is not there"
    unread = evidence.reading.unread(question.exchanges, evidence.seen)
    if unread and not missing:
        yield f"you were not shown all of exchange {_some(unread)}: read it (read_turns) before you say what is not there"
    if item.nearest_quote is not None:
        inside = [p for p in _everywhere(evidence.reading, item.nearest_quote) if in_window(question.window, p.part.seq)]
        if not inside:
            yield "nearest_quote stands nowhere in the window: copy it literally, or give null"


# -- what a verdict needs


def _support(question: Question, given: GivenAnswer, evidence: Evidence) -> Iterator[str]:
    if given.verdict == "na":
        if not any(_shows_clause(question, item, evidence) for item in given.evidence):
            yield _needed_for_na(question)
        return
    yield from (_another_time(question, item) for item in given.evidence if _stale(question, item))
    quotes = [(item, places(evidence.reading, item)) for item in given.evidence if item.kind == "quote"]
    if given.verdict == "1":
        for item, found in quotes:
            of_agent = [place for place in found if place.piece.role in OF_THE_AGENT]
            if of_agent and not any(in_window(question.window, place.part.seq) for place in of_agent):
                yield _outside(question, item)
        if not any(_shows_pass(question, item, evidence) for item in given.evidence):
            yield _needed(question)
    elif not _shows_fail(question, given, evidence):
        yield _needed_to_fail(question)


def _shows_pass(question: Question, item: GivenEvidence, evidence: Evidence) -> bool:
    hard = question.hard
    if item.kind == "hard":
        return hard is not None and hard.result == "pass"
    if question.check.one_needs == "absence":
        return item.kind == "absence"
    if item.kind == "file":
        return True  # of the right time: `_support` says so
    roles: frozenset[Role] = OF_THE_AGENT - {"agent"} if question.check.evidence == "environment" else OF_THE_AGENT
    return item.kind == "quote" and any(
        place.piece.role in roles and in_window(question.window, place.part.seq) for place in places(evidence.reading, item)
    )


def _shows_fail(question: Question, given: GivenAnswer, evidence: Evidence) -> bool:
    """What the agent did wrong, literally; or that what was needed is not there. Where a 1 rests on an absence, nothing being
    there is what passes: a 0 then needs what was done, or (a message nobody answered) what called for it beside the absence."""
    kinds = {item.kind for item in given.evidence}
    quoted = {
        place.piece.role
        for item in given.evidence
        if item.kind == "quote"
        for place in places(evidence.reading, item)
        if in_window(question.window, place.part.seq)
    }
    return (
        bool(quoted & OF_THE_AGENT)
        or ("hard" in kinds and question.hard is not None and question.hard.result == "fail")
        or "file" in kinds  # of the right time: `_support` says so
        or ("absence" in kinds and (question.check.one_needs != "absence" or bool(quoted)))
    )


def _shows_clause(question: Question, item: GivenEvidence, evidence: Evidence) -> bool:
    """Of the time the clause is about: what stands elsewhere in the run says nothing of this scenario. Whether it is what the
    clause asks for nobody but the judge says; that it applies to nothing is a record's word as little as a 1 or a 0 is."""
    match item.kind:
        case "absence":
            return True
        case "file":
            return (item.ref or "").partition(":")[0] in question.snapshots | question.found
        case "quote":
            first, last = question.stretch
            return any(first <= place.part.seq <= last for place in places(evidence.reading, item))
        case "hard":
            return False


def _stale(question: Question, item: GivenEvidence) -> bool:
    """A file of a snapshot that does not show what the window led to."""
    return item.kind == "file" and (item.ref or "").partition(":")[0] not in question.snapshots


def _another_time(question: Question, item: GivenEvidence) -> str:
    snapshot = (item.ref or "").partition(":")[0]
    known = ", ".join(sorted(question.snapshots)) or "no snapshot"
    return f"{snapshot} was taken before the window or after more was done: it does not show what held then; that shows {known}"


def _needed_to_fail(question: Question) -> str:
    if question.check.one_needs == "absence":
        return (
            "a 0 of this check needs what was done wrong, inside the window: a literal quote of the agent's words, calls, "
            "outputs or records, or a file; absence alone is what passes here"
        )
    return (
        "a 0 needs evidence inside the window: a literal quote of what the agent did wrong, or absence (the window read whole) "
        "where what was needed is not there; what the user said alone shows nothing"
    )


def _needed_for_na(question: Question) -> str:
    known = ", ".join(sorted(question.snapshots | question.found)) or "no snapshot"
    return (
        "na needs evidence that its clause holds, of this scenario: a literal quote from where it begins to the end of the last "
        f"of its windows, a file of what the window began with or led to ({known}), or absence over this check's window"
    )


def _needed(question: Question) -> str:
    if question.check.one_needs == "absence":
        return (
            "a 1 of this check needs evidence of kind absence: its window, the exchanges you read whole, and the nearest quote "
            "(or null); a passing program record also serves"
        )
    told = {
        "trajectory": "from what the agent said or did",
        "environment": "from a tool's output, a call or a record, not from what the agent says of itself",
        "both": "from what the agent said or did",
    }[question.check.evidence]
    also = "a file of a snapshot or a passing program record also serves"
    return f"a 1 of this check needs a literal quote {told}, inside the window; {also}"


def _outside(question: Question, item: GivenEvidence) -> str:
    place = "is empty" if question.first is None else f"is items {question.first} to {question.last}"
    return f"the quote in exchange {item.exchange} stands outside the window, which {place}: it does not count"


def _some(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (" …" if len(numbers) > 8 else "")
