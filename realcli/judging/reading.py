"""A run as a judge reads it: numbered exchanges and pieces, fenced, shown page by page, nothing cut without saying so. Pure.

Everything that is not the instrument's own word stands between two fence lines whose name nobody who took part in the run
could know: it follows from the work seal, which is taken when the run is over.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from realcli.judging.pieces import Part, Piece, pieces_of
from realcli.judging.text import seen
from realcli.trajectory import Blobs, NoBlobs, Trajectory, Window

INLINE_RESULT = 6_000  # characters of a tool's output that are shown at once; of a longer one beginning and end
INLINE_TEXT = 24_000  # characters of any other piece that are shown at once; the rest has to be read on
PAGE = 60_000  # characters one call of a reading tool gives back
HITS = 40  # of a search
AROUND = 160  # characters shown on each side of a hit


class Span(NamedTuple):
    """Characters `start` to `end` of a piece were shown."""

    piece: str
    start: int
    end: int


@dataclass(frozen=True)
class Seen:
    """What a session has been shown of a reading; grows with every page."""

    spans: frozenset[Span] = frozenset()

    def plus(self, spans: Iterable[Span]) -> Seen:
        """With these too."""
        return replace(self, spans=self.spans | frozenset(spans))

    def whole(self, piece: Piece) -> bool:
        """All of it was shown. Of a tool's output its beginning and end are enough: what the agent did stands in the calls."""
        at, length = 0, len(piece.text)
        for span in sorted(span for span in self.spans if span.piece == piece.id):
            if piece.role == "result" or span.start > at:
                break
            at = max(at, span.end)
        if piece.role == "result":
            return any(span.piece == piece.id and span.start == 0 for span in self.spans)
        return at >= length and any(span.piece == piece.id for span in self.spans)


class Shown(NamedTuple):
    """A page: its text, what of the run it shows, and where reading goes on (None: all that was asked for is there)."""

    text: str
    spans: tuple[Span, ...]
    next: str | None = None


@dataclass(frozen=True)
class Reading:
    """The pieces of a run and the fence of this reader."""

    pieces: tuple[Piece, ...]
    fence: str
    last_exchange: int = field(default=0)

    @staticmethod
    def of(trajectory: Trajectory, work_seal: str, blobs: Blobs | None = None, purpose: str = "checks") -> Reading:
        """The reading of a run; `work_seal` is the digest nobody knew while it went on."""
        pieces = pieces_of(trajectory, blobs or NoBlobs())
        last = max((item.event.exchange for item in trajectory.items), default=0)
        fence, attempt = "", 0
        while not fence or any(fence in piece.text for piece in pieces):
            secret = hmac.new(work_seal.encode(), f"fence/{purpose}/{attempt}".encode(), hashlib.sha256)
            fence, attempt = secret.hexdigest()[:16], attempt + 1
        return Reading(pieces, fence, last)

    @cached_property
    def by_exchange(self) -> dict[int, tuple[Piece, ...]]:
        """Pieces of each exchange, every number from 1 to the last."""
        found: dict[int, list[Piece]] = {number: [] for number in range(1, self.last_exchange + 1)}
        for piece in self.pieces:
            found[piece.exchange].append(piece)
        return {number: tuple(pieces) for number, pieces in found.items()}

    @cached_property
    def by_id(self) -> dict[str, Piece]:
        """Every piece by its id."""
        return {piece.id: piece for piece in self.pieces}

    def inside(self, window: Window) -> tuple[int, ...]:
        """The exchanges a window touches."""
        return tuple(sorted({item.event.exchange for item in window.items if 0 < item.event.exchange <= self.last_exchange}))

    def unread(self, exchanges: Iterable[int], shown: Seen) -> list[int]:
        """Those of the exchanges that the session has not been shown whole."""
        return [n for n in exchanges if n in self.by_exchange and not all(shown.whole(piece) for piece in self.by_exchange[n])]

    def unreadable(self, exchanges: Iterable[int]) -> Piece | None:
        """A piece of these exchanges whose text lies nowhere."""
        return next((piece for n in exchanges for piece in self.by_exchange.get(n, ()) if piece.lost), None)

    # -- pages

    def outline(self) -> str:
        """One line per exchange: the instrument's words and numbers only."""
        lines = []
        for number, pieces in self.by_exchange.items():
            counts = {role: sum(piece.role == role for piece in pieces) for role in ("agent", "call")}
            size = sum(len(piece.text) for piece in pieces)
            user = "; ".join(piece.label for piece in pieces if piece.role == "user") or "no message of the user"
            marks = [part.text for piece in pieces if piece.role == "mark" for part in piece.parts]
            shown = marks if len(marks) <= 8 else [*marks[:6], f"{len(marks) - 7} more marks", marks[-1]]
            lines.append(
                f"exchange {number}: {user}; {counts['agent']} texts and {counts['call']} calls of the agent, {size} characters"
                + (f"; {'; '.join(shown)}" if shown else "")
            )
        return "\n".join(lines)

    def page(self, first: int, last: int, room: int = PAGE, start: str | None = None) -> Shown:
        """Exchanges `first` to `last` as far as `room` characters go, from piece `start` on if one is named."""
        lines: list[str] = []
        spans: list[Span] = []
        used, begun = 0, start is None
        for number in range(first, last + 1):
            heading = f"=== exchange {number} ==="
            pieces = self.by_exchange.get(number, ())
            for piece in pieces:
                if not begun and piece.id != start:
                    continue
                begun = True
                text, span = self._inline(piece)
                cost = len(text) + (len(heading) + 1 if heading else 0)
                if lines and used + cost > room:
                    return Shown("\n".join([*lines, _goes_on(piece.id, number, last)]), tuple(spans), piece.id)
                if heading:
                    lines.append(heading)
                    heading = ""
                lines.append(text)
                spans.append(span)
                used += cost
            if heading and begun and not pieces:
                lines.append(f"{heading}\n(nothing stands in it)")
        return Shown("\n".join(lines), tuple(spans))

    def piece_from(self, id: str, offset: int, room: int = PAGE) -> Shown:
        """The text of one piece from character `offset` on. KeyError for an id there is not."""
        piece = self.by_id[id]
        text = piece.text[offset : offset + room]
        end = offset + len(text)
        more = None if end >= len(piece.text) else str(end)
        told = f"characters {offset} to {end} of {len(piece.text)}"
        if more is not None:
            told += f'; go on with read_turns(item="{id}", offset={end})'
        return Shown(self._fenced(f"[{id} {piece.label}; {told}]", text), (Span(id, offset, end),), more)

    def search(self, wanted: str) -> str:
        """Where a text stands, in its normal form and whatever the case: pieces with what surrounds the first hit in each."""
        needle = Part(0, wanted).folded
        if not needle:
            return "The text to search for is empty."
        found = [(piece, part) for piece in self.pieces for part in piece.parts if needle in part.folded]
        lines = [f"{len(found)} pieces hold it" + (f"; the first {HITS} are shown." if len(found) > HITS else ".")]
        for piece, part in found[:HITS]:
            at = part.folded.find(needle)
            around = part.normal[max(0, at - AROUND) : at + len(needle) + AROUND]
            lines.append(self._fenced(f"[{piece.id} {piece.label}; around the hit]", around))
        return "\n".join(lines)

    def fenced(self, label: str, text: str) -> str:
        """Any other text that is not the instrument's own, e.g. of a file, a log or a script's answer.

        What ran after the work was sealed (the tests, and what of the agent's they start) could know the fence: it is taken out.
        """
        shown, hidden = seen(text)
        times = shown.count(self.fence)
        told = f"; the name of the fence stood in it {times} times and is left out" if times else ""
        return self._fenced(f"[{label}{_left_out(hidden)}{told}]", shown.replace(self.fence, "…"))

    def _inline(self, piece: Piece) -> tuple[str, Span]:
        text, length = piece.text, len(piece.text)
        head = f"[{piece.id} {piece.label}{_left_out(piece.hidden)}"
        if piece.role == "mark":
            return f"[{piece.id} mark: {' | '.join(part.text for part in piece.parts)}]", Span(piece.id, 0, length)
        limit = INLINE_RESULT if piece.role == "result" else INLINE_TEXT
        if length <= limit:
            return self._fenced(head + "]", text), Span(piece.id, 0, length)
        if piece.role == "result":
            begin, end = text[: limit * 2 // 3], text[-limit // 3 :]
            told = f'{head}; {length} characters, of which beginning and end are shown; all: read_turns(item="{piece.id}")]'
            return f"{self._fenced(told, begin)}\n{self._fenced('[…]', end)}", Span(piece.id, 0, len(begin))
        told = f'{head}; {length} characters; go on with read_turns(item="{piece.id}", offset={limit})]'
        return self._fenced(told, text[:limit]), Span(piece.id, 0, limit)

    def _fenced(self, label: str, text: str) -> str:
        return f"{label}\n«{self.fence}\n{text}\n{self.fence}»"


def _left_out(hidden: int) -> str:
    return f"; {hidden} characters that nobody sees are left out" if hidden else ""


def _goes_on(piece: str, exchange: int, last: int) -> str:
    return f'[not all of it is shown: go on with read_turns(first={exchange}, last={last}, item="{piece}")]'
