"""A message against the canonical texts of its sources: verbatim, altered, or worded so that only a judge can say. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from realcli.audit.pieces import Piece
from realcli.audit.replay import Replay, Said
from realcli.audit.texts import Alignment, Sentence, align, denials, key_change, keys, sentences, small_talk
from realcli.trajectory import Blobs
from realcli.trajectory.patterns import content


@dataclass(frozen=True, slots=True)
class Altered:
    """A canonical text that does not stand in the message as it is. `keys`: what it fixes has changed; `settled`: nothing has."""

    piece: Piece
    quote: str | None  # what was said in its place; None: nothing
    change: str
    keys: bool = False
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Wording:
    """How a message says what it has to. `open`: reworded, and no program can tell whether the meaning is kept."""

    said: Said
    canonical: str
    verbatim: bool
    altered: tuple[Altered, ...] = ()
    changed: tuple[tuple[Sentence, Sentence], ...] = ()
    added: tuple[Sentence, ...] = ()  # sentences of no canonical text, small talk left out
    talk: tuple[Sentence, ...] = ()  # small talk
    open: bool = False
    unread: bool = False  # the text cannot be had


def wording_of(said: Said) -> Wording:
    """Compare a message with its sources."""
    choices = (
        [" \n\n".join(())] if not said.pieces else ["\n\n".join(texts) for texts in product(*(p.texts for p in said.pieces))]
    )
    if said.text is None:
        return Wording(said, choices[0], verbatim=False, unread=True)
    if said.text in choices:
        return Wording(said, said.text, verbatim=True)
    best = min(product(*(p.texts for p in said.pieces)), key=lambda texts: _distance(said.text or "", texts))
    return _model(said, best) if said.data.worded_by == "model" else _script(said, best)


def _distance(text: str, texts: tuple[str, ...]) -> tuple[int, int]:
    found = align(text, _labelled(texts))
    return len(found.lost), len(found.changed) + len(found.added)


def _labelled(texts: tuple[str, ...]) -> list[Sentence]:
    return [one for number, text in enumerate(texts) for one in sentences(text, number)]


def _script(said: Said, texts: tuple[str, ...]) -> Wording:
    """A text that is the script's own differs from it only by a fault."""
    found = align(said.text or "", _labelled(texts))
    altered = list(_alterations(said, found))
    if not altered and not found.added:  # the same words, in other marks or another order
        piece = said.pieces[0] if said.pieces else Piece("fixed", "", (), ("",))
        altered = [Altered(piece, said.text, "the same words with other marks, spaces or order", settled=True)]
    return _built(said, texts, found, altered, still_open=False)


def _alterations(said: Said, found: Alignment) -> Iterator[Altered]:
    for one, other in found.changed:
        change = key_change(one.text, other.text)
        yield Altered(
            said.pieces[one.owner], other.text, change or f"{one.text!r} was said in other words", keys=change is not None
        )
    for one in found.lost:
        fixed = bool(keys(one.text))
        yield Altered(said.pieces[one.owner], None, f"{one.text!r} is missing", keys=fixed)


def _model(said: Said, texts: tuple[str, ...]) -> Wording:
    """Verbatim pieces stand there as they are; of the others everything they fix is kept, or it is for a judge to say."""
    text, altered = said.text or "", []
    for piece, own in zip(said.pieces, texts, strict=True):
        if piece.verbatim and own in text:
            text = text.replace(own, "\n", 1)
        elif piece.verbatim:
            altered.append(Altered(piece, None, f"{own!r} was not said verbatim", keys=True))
    free = [number for number, piece in enumerate(said.pieces) if not piece.verbatim]
    found = align(text, [one for number in free for one in sentences(texts[number], number)])
    canonical = "\n\n".join(texts[number] for number in free)
    fixed = [one.text for one in found.added if not small_talk(one)]
    stated = keys(text) - frozenset().union(*map(keys, fixed))
    for number in free:
        lost = sorted(keys(texts[number]) - keys(text))
        if lost:
            altered.append(Altered(said.pieces[number], None, f"{', '.join(lost)} is missing", keys=True))
    new = sorted(stated - keys(canonical))
    if new:
        owners = sorted({one.owner for one, other in found.changed if keys(other.text) & set(new)}) or free
        altered += [Altered(said.pieces[number], text, f"{', '.join(new)} is new", keys=True) for number in owners]
    elif not altered and denials(text) != denials(canonical):
        owners = sorted({one.owner for one, other in found.changed if denials(one.text) != denials(other.text)}) or free
        why = "a negation or exception is missing or new"
        altered += [Altered(said.pieces[number], text, why, keys=True) for number in owners]
    settled = not found.changed and not found.lost and all(small_talk(one) for one in found.added)
    return _built(said, texts, found, altered, still_open=not settled)


def _built(said: Said, texts: tuple[str, ...], found: Alignment, altered: list[Altered], *, still_open: bool) -> Wording:
    talk = tuple(one for one in found.added if small_talk(one))
    added = tuple(one for one in found.added if not small_talk(one))
    return Wording(said, "\n\n".join(texts), False, tuple(altered), found.changed, added, talk, open=still_open)


def passed_a_guard(said: Said, run: Replay, blobs: Blobs) -> bool | None:
    """A text of a model is a draft that every guard let pass. None: the draft cannot be had."""
    sent = [guard for guard in run.guards.get(said.data.id, ()) if guard.outcome == "sent" and not guard.hits]
    if not sent or said.text is None:
        return False if not sent else None
    draft = content(sent[-1].draft, blobs)
    if draft is None:
        return None
    try:
        told = json.loads(draft)
    except ValueError:
        return False
    text = told.get("text") if isinstance(told, dict) else None
    return isinstance(text, str) and text in said.text
