"""Working time: elapsed minus the union of what others made the agent wait."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli_session.phases.working import WorkingClock, wait_for_limit


class World:
    """Time and the gateway's count of waiting, moved by hand. A script is one letter per second: what goes on in it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waiting = 3.0
        self.clock = WorkingClock(lambda: self.now, lambda: self.waiting)

    def play(self, seconds: str) -> None:
        with ExitStack() as user:
            holding = False
            for second in seconds:
                if (second in "ub") != holding:
                    holding = not holding
                    if holding:
                        user.enter_context(self.clock.user_time())
                    else:
                        user.close()
                self.now += 1
                self.waiting += second in "pb"


# w works, u user's time, p the provider makes it wait, b both at once
TABLE = {
    "": 0,
    "wwww": 4,
    "wwuu": 2,
    "uuww": 2,
    "wwpp": 2,
    "wbbw": 2,
    "wupbw": 2,
    "wwbuup": 2,
}


@pytest.mark.parametrize("seconds", TABLE)
def test_working_time(seconds: str) -> None:
    world = World()
    world.play("wup")
    assert (world.clock.working, world.clock.wall) == (0, 0)
    world.clock.start()
    world.play(seconds)
    assert (world.clock.working, world.clock.wall) == (TABLE[seconds], len(seconds))
    world.clock.stop()
    world.play("wup")
    world.clock.stop()
    assert (world.clock.working, world.clock.wall) == (TABLE[seconds], len(seconds))


@given(st.text(alphabet="wupb", max_size=30))
def test_exactly_the_seconds_in_which_nobody_else_made_it_wait(seconds: str) -> None:
    world = World()
    world.clock.start()
    last = 0.0
    for second in seconds:
        world.play(second)
        assert last <= world.clock.working <= world.clock.wall
        last = world.clock.working
    assert world.clock.working == seconds.count("w")


def test_while_the_user_thinks_the_clock_stands() -> None:
    world = World()
    world.clock.start()
    with world.clock.user_time():
        world.now += 5
        assert (world.clock.working, world.clock.wall) == (0, 5)


@pytest.mark.parametrize(("deadline", "wall", "fires"), [(0.0, 5.0, "deadline"), (5.0, 0.0, "wall"), (0.0, 0.0, "deadline")])
async def test_the_limit_that_is_reached_first(deadline: float, wall: float, fires: str) -> None:
    clock = WorkingClock(asyncio.get_running_loop().time)
    clock.start()
    assert await wait_for_limit(clock, deadline, wall) == fires
