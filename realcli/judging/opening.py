"""The first request of a session: the run's outline, as much of the run as fits, then what is asked. Pure.

The run comes first and in the same words for every vote, so that a provider's prompt cache holds it; questions come last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from realcli.judging.reading import Reading, Span
from realcli.judging.session import Model, text_tokens

QUESTIONS = "# Questions"
"""The line between the run and what is asked about it."""
RUN_SHARE, ROOM_SHARE = 0.6, 0.25
"""Of the context: what the run may take in the first request; what stays free for reading on, answers and repairs."""


class First(NamedTuple):
    """Text of a first request, and what of the run it shows."""

    text: str
    spans: tuple[Span, ...]


def fits(reading: Reading, model: Model) -> bool:
    """The whole run, as pages show it, may stand in one request."""
    shown = reading.page(1, reading.last_exchange, room=1 << 40)
    return shown.next is None and text_tokens(shown.text) <= model.room * RUN_SHARE


def first_request(reading: Reading, exchanges: Iterable[int], questions: str, model: Model, system: str = "") -> First:
    """The outline, as many of `exchanges` (in order) as fit, and the questions. What is not shown is said and can be read."""
    outline = reading.outline()
    fixed = text_tokens(system) + text_tokens(outline) + text_tokens(questions)
    left = int(min(model.room * (1 - ROOM_SHARE) - fixed, model.room * RUN_SHARE * 1.02))
    lines = ["# Outline of the run", outline, "", "# The run"]
    spans: list[Span] = []
    wanted = [number for number in sorted(set(exchanges)) if number in reading.by_exchange]
    for first, last in _stretches(wanted):
        shown = reading.page(first, last, room=max(0, left * 4))
        while text_tokens(shown.text) > left and left > 0 and len(shown.spans) > 1:
            shown = reading.page(first, last, room=int(len(shown.text) * 0.6))
        if text_tokens(shown.text) > left:
            lines.append(f"[exchange {first} and what follows is not shown: read it with read_turns(first={first}, last={last})]")
            break
        lines.append(shown.text)
        spans += shown.spans
        left -= text_tokens(shown.text)
        if shown.next is not None:
            break
    shown_whole = {number for number in wanted if all(any(s.piece == p.id for s in spans) for p in reading.by_exchange[number])}
    rest = [number for number in reading.by_exchange if number not in shown_whole]
    if rest:
        lines.append(f"[exchanges that are not or not wholly shown here: {_ranges(rest)}; read_turns shows them]")
    return First("\n".join([*lines, "", QUESTIONS, questions]), tuple(spans))


def _stretches(numbers: list[int]) -> Iterator[tuple[int, int]]:
    first = None
    for at, number in enumerate(numbers):
        first = number if first is None else first
        if at + 1 == len(numbers) or numbers[at + 1] != number + 1:
            yield first, number
            first = None


def _ranges(numbers: list[int]) -> str:
    return ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in _stretches(numbers))
