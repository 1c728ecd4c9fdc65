"""Provider and object store really stopped and killed while a trial runs: its event stream is the one of an undisturbed run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integration.disturb.stand import PHASES, Stand
from tests.integration.disturb.streams import Stream, difference

PROGRAMS = ("claude-code", "codex", "terminus-2")
QUICK = {("claude-code", "work", 1), ("claude-code", "seal", 1), ("claude-code", "verify", 3)}
SEEDS = range(1, 5)

Undisturbed = Callable[[str], tuple[Stand, Stream]]


@pytest.fixture(scope="module")
def undisturbed(stands: Callable[[str], Stand]) -> Undisturbed:
    """The stand of a program and its undisturbed stream, run once."""
    made: dict[str, tuple[Stand, Stream]] = {}

    def run(program: str) -> tuple[Stand, Stream]:
        if program not in made:
            stand = stands(program)
            stream = stand.run()
            stand.learn()
            made[program] = stand, stream
        return made[program]

    return run


CASES = [(program, phase, seed) for program in PROGRAMS for phase in PHASES for seed in SEEDS]


@pytest.mark.parametrize(
    ("program", "phase", "seed"),
    [case if case in QUICK else pytest.param(*case, marks=pytest.mark.slow) for case in CASES],
)
def test_the_stream_is_the_undisturbed_one(undisturbed: Undisturbed, program: str, phase: str, seed: int) -> None:
    stand, expected = undisturbed(program)
    disturbance = stand.choose(phase, seed)
    found = difference(expected, stand.run(disturbance))
    assert not found, f"{disturbance}\n{found}"


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_two_undisturbed_runs_are_equal(undisturbed: Undisturbed, program: str) -> None:
    stand, expected = undisturbed(program)
    found = difference(expected, stand.run())
    assert not found, found


@pytest.mark.slow
def test_a_difference_shows(undisturbed: Undisturbed) -> None:
    stand, expected = undisturbed("claude-code")
    other = stand.sweep.ordinal("site-settings", "EXEC")
    stand.ordinal, mine = other, stand.ordinal
    try:
        stream = stand.run()
    finally:
        stand.ordinal = mine
    assert "user_message" in difference(expected, stream)
