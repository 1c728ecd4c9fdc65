"""A write rate limit: an even pace with a burst, first come first served."""

from __future__ import annotations

from realcli_operator.kube.clock import Clock, SystemClock


class RateLimit:
    """``rate`` per second on average, ``burst`` at once after a pause (generic cell rate algorithm)."""

    def __init__(self, rate: float, burst: int = 1, clock: Clock | None = None) -> None:
        if rate <= 0 or burst < 1:
            raise ValueError(f"rate limit needs rate > 0 and burst >= 1, got rate={rate}, burst={burst}")
        self._interval = 1.0 / rate
        self._tolerance = (burst - 1) * self._interval
        self._clock: Clock = clock or SystemClock()
        self._next = self._clock.monotonic()

    def reserve(self) -> float:
        """Take the next slot; seconds to wait for it."""
        now = self._clock.monotonic()
        start = max(self._next, now)
        self._next = start + self._interval
        return max(0.0, start - self._tolerance - now)

    async def acquire(self) -> None:
        """Take the next slot and wait for it."""
        delay = self.reserve()
        if delay > 0:
            await self._clock.sleep(delay)
