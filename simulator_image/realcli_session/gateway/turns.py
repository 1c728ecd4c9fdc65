"""Counting turns: the one definition of architecture.md 2, as code without I/O.

A generation request is counted when it is accepted and stays counted however its answer ends. Only if the provider cut the
answer, the next request with the same body takes the same number. Request n+1 is refused.

"The same body" is what the model would read: a program that was cut may ask again without streaming, and Claude Code signs each
body with a checksum in a system block of its own. `turn_key` leaves out both and nothing else.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

_SIGNATURE = "x-anthropic-billing-header:"


class Turn(NamedTuple):
    """A number given to a request."""

    number: int
    repeat: bool  # the number was counted before, and the provider cut its answer


def turn_key(body: Mapping[str, Any]) -> str:
    """What makes two bodies the same turn: sha256 over everything but `stream` and the program's signature."""
    kept = {name: value for name, value in body.items() if name != "stream"}
    if isinstance(kept.get("system"), list):
        kept["system"] = [block for block in kept["system"] if not _signature(block)]
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def _signature(block: object) -> bool:
    text = block.get("text") if isinstance(block, dict) else None
    return isinstance(text, str) and text.startswith(_SIGNATURE)


class TurnCounter:
    """Gives out turn numbers. Every method is one step of the event loop, so parallel requests cannot share a number."""

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"turn limit {limit} is below 1")
        self.limit = limit
        self.used = 0
        self._cut: dict[str, deque[int]] = {}

    def accept(self, key: str) -> Turn | None:
        """The number of a request with this `turn_key`; None when the limit is used up."""
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
