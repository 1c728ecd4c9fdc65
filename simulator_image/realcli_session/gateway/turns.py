"""Counting turns: the one definition of architecture.md 2, as code without I/O.

A generation request is counted when it is accepted and stays counted however its answer ends. Only if the provider cut the
answer, the next request with the same body takes the same number. Request n+1 is refused. What "the same body" is, a dialect
knows (`Dialect.turn_key`): what the model would read, so that asking once more without streaming is the same.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple


class Turn(NamedTuple):
    """A number given to a request."""

    number: int
    repeat: bool  # the number was counted before, and the provider cut its answer


class TurnCounter:
    """Gives out turn numbers. Every method is one step of the event loop, so parallel requests cannot share a number."""

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"turn limit {limit} is below 1")
        self.limit = limit
        self.used = 0
        self._cut: dict[str, deque[int]] = {}

    def accept(self, key: str) -> Turn | None:
        """The number of a request with this turn key; None when the limit is used up."""
        waiting = self._cut.get(key)
        if waiting:
            number = waiting.popleft()
            if not waiting:
                del self._cut[key]
            return Turn(number, repeat=True)
        if self.used >= self.limit:
            return None
        self.used += 1
        return Turn(self.used, repeat=False)

    def cut_by_provider(self, key: str, number: int) -> None:
        """The provider gave this turn no complete answer: the next request with this body repeats it."""
        self._cut.setdefault(key, deque()).append(number)
