"""In which order trials are admitted: early results cover all configurations, and groups complete long before the end. Pure.

The order of admission is another thing than the ordinal. It is computed from the factors of the plan alone, so nothing has to be
remembered of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from realcli.api.plan import Plan as FrozenPlan


@dataclass(frozen=True, slots=True)
class Order:
    """``ordinals`` in the order of admission; ``rank`` is its inverse."""

    ordinals: tuple[int, ...]
    rank: Mapping[int, int]


def order_of(plan: FrozenPlan) -> Order:
    """The order of a plan's trials."""
    return interleaved(len(plan.tasks), plan.repeats, len(plan.configurations), len(plan.modes))


@lru_cache(maxsize=64)
def interleaved(tasks: int, repeats: int, configurations: int, modes: int) -> Order:
    """Round robin over configurations (so that every beginning counts them evenly), then tasks, modes and repeats.

    With repeats outermost no group would complete before the last repeat: everything would be judged at the end. So the tasks
    are taken in about sqrt(tasks) blocks, each from beginning to end of the list, and a block is finished before the next starts.
    """
    blocks = math.isqrt(max(0, tasks - 1)) + 1
    ordinals = tuple(
        ((task * repeats + repeat) * configurations + configuration) * modes + mode
        for block in range(blocks)
        for repeat in range(repeats)
        for mode in range(modes)
        for task in range(block, tasks, blocks)
        for configuration in range(configurations)
    )
    return Order(ordinals, MappingProxyType({ordinal: rank for rank, ordinal in enumerate(ordinals)}))
