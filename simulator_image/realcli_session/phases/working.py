"""Working time: the one clock the deadlines count (measuring.md 3.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

Holder = Literal["user", "provider"]


class WorkingClock:
    """Elapsed seconds from the agent's start, minus the union of the intervals in which somebody else made it wait.

    `user`: the simulated user (and what the session does while the agent is idle). `provider`: a request waits between two
    retries inside the gateway and no other request of the trial is open. A union, so overlapping holds count once.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._started: float | None = None
        self._ended: float | None = None
        self._held: set[Holder] = set()
        self._held_since = 0.0
        self._not_counted = 0.0

    def start(self) -> None:
        """The agent starts."""
        self._started = self._now()
        self._held_since = self._started

    def stop(self) -> None:
        """The work is over: both times stand still. Idempotent."""
        if self._ended is None:
            self._ended = self._now()

    def hold(self, who: Holder, on: bool) -> None:
        """`who` makes the agent wait, or no longer does. Idempotent."""
        if on == (who in self._held):
            return
        now = self._end()
        if on:
            if not self._held:
                self._held_since = now
            self._held.add(who)
        else:
            self._held.remove(who)
            if not self._held:
                self._not_counted += now - self._held_since

    @contextmanager
    def held(self, who: Holder) -> Iterator[None]:
        """`hold` around a block."""
        self.hold(who, True)
        try:
            yield
        finally:
            self.hold(who, False)

    @property
    def wall(self) -> float:
        """Seconds since the start; 0 before it."""
        return 0.0 if self._started is None else self._end() - self._started

    @property
    def working(self) -> float:
        """Working seconds; 0 before the start."""
        open_hold = self._end() - self._held_since if self._held and self._started is not None else 0.0
        return max(0.0, self.wall - self._not_counted - open_hold)

    def _end(self) -> float:
        return self._now() if self._ended is None else self._ended


async def wait_for_limit(clock: WorkingClock, deadline: float, wall: float) -> Literal["deadline", "wall"]:
    """Until the working time reaches `deadline` seconds or the wall time `wall`, whichever is first."""
    while True:
        left, wall_left = deadline - clock.working, wall - clock.wall
        if left <= 0:
            return "deadline"
        if wall_left <= 0:
            return "wall"
        await asyncio.sleep(min(left, wall_left))
