"""`P(dJ < -0.05) > 0.95`: a gate is a probability, not a difference (measuring.md 4.4, 9). Pure.

    gate    = "P(" measure side number ")" side probability
    measure = dR_exec | dR_collab | dR (the same) | dS | dS_rate | dJ | dJ_rate
    side    = "<" | "<=" | ">" | ">="

A measure is the change from A to B. `J < -0.02` on an unchanged agent would fire in about a third of all comparisons of 12 tasks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Any

MEASURES = ("dR_exec", "dR_collab", "dS", "dS_rate", "dJ", "dJ_rate")
ALIASES = {"dR": "dR_collab"}
_SIDES: Mapping[str, Callable[[Any, float], Any]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)"
_GATE = re.compile(rf"\s*P\s*\(\s*(\w+)\s*(<=|>=|<|>)\s*({_NUMBER})\s*\)\s*(<=|>=|<|>)\s*({_NUMBER})\s*", re.ASCII)
EXAMPLE = "P(dJ < -0.05) > 0.95"


class GateError(ValueError):
    """A gate that cannot be read, or not be answered."""


@dataclass(frozen=True, slots=True)
class Gate:
    """P(measure side bound) against a probability. It fires where that holds."""

    text: str
    measure: str  # one of MEASURES
    side: str
    bound: float
    compare: str
    probability: float

    def event(self, value: Any) -> Any:
        """Whether a draw (or each of an array of draws) counts for the probability."""
        return _SIDES[self.side](value, self.bound)

    def fires(self, probability: float) -> bool:
        """Whether the comparison fails with this probability."""
        return bool(_SIDES[self.compare](probability, self.probability))


def parse_gate(text: str) -> Gate:
    """Read a gate; `GateError` says what was expected."""
    found = _GATE.fullmatch(text)
    if found is None:
        raise GateError(f"{text!r} is no gate; expected a probability of a change, such as {EXAMPLE!r}")
    name, side, bound, compare, probability = found.groups()
    measure = ALIASES.get(name, name)
    if measure not in MEASURES:
        raise GateError(f"{text!r}: {name} is nothing that is compared; expected one of {', '.join((*MEASURES, *ALIASES))}")
    if not 0 <= float(probability) <= 1:
        raise GateError(f"{text!r}: {probability} is no probability; expected a number from 0 to 1")
    if (compare, float(probability)) in ((">", 1.0), ("<", 0.0)):
        raise GateError(f"{text!r} can never fire: no probability is {compare} {probability}; expected such as {EXAMPLE!r}")
    return Gate(text.strip(), measure, side, float(bound), compare, float(probability))
