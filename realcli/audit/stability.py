"""sim_goal_stability: what the user wants and has said does not change but by the script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from realcli.audit.model import Deviation, SimCheck
from realcli.audit.replay import Said
from realcli.audit.texts import Sentence, alike, key_change, keys, sentences
from realcli.audit.view import View, sim_check
from realcli.audit.wording import Wording

NAME: Final = "sim_goal_stability"
SAME = 0.6
"""Share of tokens from which a sentence is another version of one that was said."""


def check(view: View) -> SimCheck:
    """The state of the script is what the user's texts say; requests are taken back where the script takes them back."""
    found: list[Deviation] = []
    for licensed, wording in zip(view.licensed, view.wordings, strict=True):
        said = licensed.said
        for breach in licensed.breaches:
            if breach.kind == "unlicensed" and breach.source == "opener":
                found.append(_deviation(view, said.seq, f"{said.data.id}: the conversation starts again"))
            elif breach.kind == "unlicensed" and breach.source.startswith("closure:") and breach.source not in said.unknown:
                found.append(_deviation(view, said.seq, f"{said.data.id}: {breach.source}: a request is taken back too early"))
        found += _restated(view, said, wording)
    if view.run.claim is not None:
        seq, _, stand = view.run.claim
        for name in stand.closures:
            found.append(_deviation(view, seq, f"the request of probe {name} was never taken back or settled", more=[name]))
    return sim_check(NAME, found, open_=[one.said for one in view.open])


def _deviation(view: View, seq: int, what: str, quote: str | None = None, more: list[str] | None = None) -> Deviation:
    affected = view.reach.of_dimensions(view.reach.after(seq), "S")
    return Deviation(
        seq=seq, what=what, quote=quote, affected=view.reach.ordered([*affected, *(more or [])]), outcome=True, harmful=True
    )


def _restated(view: View, said: Said, wording: Wording) -> Iterator[Deviation]:
    """A slice, the opener or a closure with another value than the script's; a sentence that changes one said before."""
    for altered in wording.altered:
        carries = altered.piece.kind in ("slice", "opener", "closure") or any(
            s.startswith("slice:") for s in altered.piece.sources
        )
        if altered.keys and altered.quote is not None and carries:
            what = f"{said.data.id}: {' '.join(altered.piece.sources)}: {altered.change}"
            yield _deviation(view, said.seq, what, altered.quote)
    for one in wording.added:
        before = contradicted(one, said)
        if before is not None:
            yield _deviation(view, said.seq, f"{said.data.id}: contradicts {before!r}", one.text)


def contradicted(one: Sentence, said: Said) -> str | None:
    """The sentence said before that it is another version of, with another value."""
    for earlier in sentences("\n".join([said.before, *(text for piece in said.pieces for text in piece.texts)])):
        if keys(earlier.text) and alike(earlier.words, one.words) >= SAME and key_change(earlier.text, one.text):
            return earlier.text
    return None
