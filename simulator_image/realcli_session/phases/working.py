"""Working time: the one clock the deadlines count (measuring.md 3.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal


class WorkingClock:
    """Elapsed seconds from the agent's start, minus the union of the intervals in which somebody else made it wait.

    Two parties can: the simulated user (and what the session does while the agent is idle), told by `user_time`; and the
    provider, told by `waiting`: seconds so far in which requests waited between two retries inside the gateway and none was
    with the provider. Where both did at once the interval counts once.
    """

    def __init__(self, now: Callable[[], float], waiting: Callable[[], float] = lambda: 0.0) -> None:
        self._now = now
        self._waiting = waiting
        self._started: float | None = None
        self._waited_before = 0.0
        self._ended: tuple[float, float] | None = None
        self._user = 0.0  # seconds of the user, less what the provider made wait meanwhile
        self._user_since: tuple[float, float] | None = None

    def count_waiting(self, waiting: Callable[[], float]) -> None:
        """Who tells the provider's part; before `start`."""
        self._waiting = waiting

    def start(self) -> None:
        """The agent starts."""
        self._started, self._waited_before = self._now(), self._waiting()

    def stop(self) -> None:
        """The work is over: both times stand still. Idempotent."""
        if self._ended is None:
            self._ended = self._now(), self._waiting()

    @contextmanager
    def user_time(self) -> Iterator[None]:
        """The block is the simulated user's time. Does not nest."""
        self._user_since = self._at()
        try:
            yield
        finally:
            self._user += self._user_open()
            self._user_since = None

    @property
    def wall(self) -> float:
        """Seconds since the start; 0 before it."""
        return 0.0 if self._started is None else self._at()[0] - self._started

    @property
    def working(self) -> float:
        """Working seconds; 0 before the start."""
        if self._started is None:
            return 0.0
        waited = self._at()[1] - self._waited_before
        return max(0.0, self.wall - waited - self._user - self._user_open())

    def _at(self) -> tuple[float, float]:
        return (self._now(), self._waiting()) if self._ended is None else self._ended

    def _user_open(self) -> float:
        if self._user_since is None or self._started is None:
            return 0.0
        (now, waited), (since, waited_then) = self._at(), self._user_since
        return max(0.0, (now - max(since, self._started)) - (waited - waited_then))


async def wait_for_limit(clock: WorkingClock, deadline: float, wall: float) -> Literal["deadline", "wall"]:
    """Until the working time reaches `deadline` seconds or the wall time `wall`, whichever is first."""
    while True:
        left, wall_left = deadline - clock.working, wall - clock.wall
        if left <= 0:
            return "deadline"
        if wall_left <= 0:
            return "wall"
        await asyncio.sleep(min(left, wall_left))
