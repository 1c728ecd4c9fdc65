"""What the sources of a message say: the canonical texts of the script, and the fixed sentences of docs/script.md. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from realcli.benchmark.play import Play
from realcli.benchmark.script_models import Probe

Kind = Literal["opener", "slice", "probe", "answer", "action", "closure", "fixed", "closer"]
FIXED = {
    "neutral": "I have nothing to add to what I have told you. Please go by that.",
    "refusal": "No, leave that as it is.",
    "later": "I will come to that.",
}


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a message: what licenses it and what it may say (one of `texts`, canonical first)."""

    kind: Kind
    name: str  # id in the script; of a fixed sentence its source
    sources: tuple[str, ...]
    texts: tuple[str, ...]
    verbatim: bool = False  # nobody may word it


def pieces_of(
    play: Play, sources: Iterable[str], *, parts: tuple[str, int] | None, refused: frozenset[str]
) -> tuple[tuple[Piece, ...], tuple[str, ...]]:
    """The pieces that the source ids of one message stand for, in order, and the ids the script does not know.

    `parts`: the probe with open parts and the index of its next one. `refused`: actions that are not granted at this moment.
    """
    found: list[Piece] = []
    unknown: list[str] = []
    carried: str | None = None  # `slice:<id>` right behind the probe or closure that carries it is no text of its own
    for source in sources:
        if source == carried:
            found[-1] = Piece(found[-1].kind, found[-1].name, (*found[-1].sources, source), found[-1].texts, found[-1].verbatim)
            carried = None
            continue
        piece, slice_ = _piece(play, source, parts, refused)
        carried = f"slice:{slice_}" if slice_ else None
        if piece is None:
            unknown.append(source)
        else:
            found.append(piece)
    return tuple(found), tuple(unknown)


def _piece(play: Play, source: str, parts: tuple[str, int] | None, refused: frozenset[str]) -> tuple[Piece | None, str | None]:
    """The piece of one source, and the slice that may stand behind it as carried by it."""
    script = play.script
    kind, _, name = source.partition(":")
    if source == "opener":
        return Piece("opener", "opener", (source,), (script.opener,), verbatim=True), None
    if source == "closer":
        return Piece("closer", "closer", (source,), (script.closer,), verbatim=True), None
    if source in FIXED:
        return Piece("fixed", source, (source,), (FIXED[source],), verbatim=True), None
    if kind == "slice" and name in play.slices:
        return Piece("slice", name, (source,), (play.slices[name].text,)), None
    if kind == "action" and name in play.actions:
        action = play.actions[name]
        text = FIXED["refusal"] if action.decision == "approve" and name in refused else action.text
        return Piece("action", name, (source,), (text,), verbatim=True), None
    if kind == "answer":
        text_ = next((answer.text for answer in script.answers if answer.id == name), None)
        return (None if text_ is None else Piece("answer", name, (source,), (text_,))), None
    if kind in ("probe", "closure") and name in play.probes:
        return _of_probe(play.probes[name].probe, kind, source, parts)
    return None, None


def _of_probe(probe: Probe, kind: str, source: str, parts: tuple[str, int] | None) -> tuple[Piece | None, str | None]:
    if kind == "probe":
        if parts is not None and parts[0] == probe.id:
            return Piece("probe", probe.id, (source,), (probe.parts[parts[1]],)), None
        return Piece("probe", probe.id, (source,), (probe.text,), verbatim=probe.approves is not None), probe.slice
    if probe.closure is None:
        return None, None
    told = probe.closure.told.text if probe.closure.told is not None else None
    texts = (probe.closure.text, *([told] if told else []))
    return Piece("closure", probe.id, (source,), texts), probe.closure.slice
