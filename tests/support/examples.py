"""How many examples a property is tried with, where the profile's own number is not the right one."""

from __future__ import annotations

from hypothesis import settings


def examples(full: int) -> int:
    """`full` in a run of all tests; in one without the slow ones no more than its profile says."""
    profile = settings().max_examples
    return full if profile >= 100 else min(full, profile)
