"""Working time: elapsed minus the union of what others made the agent wait."""

from __future__ import annotations

import asyncio
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli_session.phases.working import Holder, WorkingClock, wait_for_limit


class Now:
    def __init__(self) -> None:
        self.value = 100.0

    def __call__(self) -> float:
        return self.value


Step = tuple[float, Holder | Literal["start", "stop"], bool]
TABLE: dict[str, tuple[list[Step], float, float]] = {
    "before the start": ([(5, "user", True)], 0, 0),
    "nobody waits": ([(0, "start", True), (10, "stop", True)], 10, 10),
    "the user thinks": ([(0, "start", True), (4, "user", True), (3, "user", False), (2, "stop", True)], 6, 9),
    "overlapping holds count once": (
        [
            (0, "start", True),
            (1, "user", True),
            (1, "provider", True),
            (1, "user", False),
            (1, "provider", False),
            (1, "stop", True),
        ],
        2,
        5,
    ),
    "a hold twice is one hold": (
        [(0, "start", True), (1, "user", True), (1, "user", True), (1, "user", False), (1, "stop", True)],
        2,
        4,
    ),
    "an open hold": ([(0, "start", True), (1, "provider", True), (5, "stop", True)], 1, 6),
    "a hold from before the start counts from the start": (
        [(0, "user", True), (9, "start", True), (1, "user", False), (2, "stop", True)],
        2,
        3,
    ),
    "after the stop nothing moves": ([(0, "start", True), (1, "stop", True), (9, "stop", True), (9, "user", True)], 1, 1),
}


@pytest.mark.parametrize("name", TABLE)
def test_working_time(name: str) -> None:
    steps, working, wall = TABLE[name]
    now = Now()
    clock = WorkingClock(now)
    for wait, what, on in steps:
        now.value += wait
        if what == "start":
            clock.start()
        elif what == "stop":
            clock.stop()
        else:
            clock.hold(what, on)
    assert (clock.working, clock.wall) == (working, wall)


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["user", "provider"]), st.booleans()), max_size=20))
def test_never_more_than_the_wall_and_never_backwards(steps: list[tuple[int, Holder, bool]]) -> None:
    now = Now()
    clock = WorkingClock(now)
    clock.start()
    counted, held, last = 0, set[str](), 0.0
    for wait, who, on in steps:
        now.value += wait
        counted += 0 if held else wait
        clock.hold(who, on)
        held = held | {who} if on else held - {who}
        assert last <= clock.working <= clock.wall
        last = clock.working
    assert clock.working == counted


@pytest.mark.parametrize(("deadline", "wall", "fires"), [(0.0, 5.0, "deadline"), (5.0, 0.0, "wall"), (0.0, 0.0, "deadline")])
async def test_the_limit_that_is_reached_first(deadline: float, wall: float, fires: str) -> None:
    clock = WorkingClock(asyncio.get_running_loop().time)
    clock.start()
    assert await wait_for_limit(clock, deadline, wall) == fires
