"""The table agents x cases: what was found in this run, and what stands in the docs."""

from __future__ import annotations

from collections.abc import Iterator

from tests.integration.conformance.cases import CASES
from tests.integration.conformance.drivers import drivers

RESULTS: dict[tuple[str, str], str] = {}
"""(case, agent) -> what this run found."""


def lines() -> Iterator[str]:
    """For the terminal."""
    agents = list(drivers())
    width = max(len(case.title) for case in CASES.values()) + 2
    yield " " * width + "".join(f"{agent:<20}" for agent in agents)
    for name, case in CASES.items():
        found = [RESULTS.get((name, agent), "not run") for agent in agents]
        yield f"{case.title:<{width}}" + "".join(f"{cell:<20}" for cell in found)
