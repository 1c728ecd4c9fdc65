"""How long the trial waited for its provider: the time that does not count as working time (measuring.md 3.3)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from realcli_session.gateway.port import Clock


class WaitMeter:
    """Union of the intervals in which at least one request waits between two retries and none is with the provider.

    A request that itself waits keeps no interval from counting: two parallel requests that both wait are one wait.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open = 0
        self._waiting = 0
        self._since: float | None = None
        self._total = 0.0

    @property
    def open(self) -> int:
        """Requests under way, waiting or not."""
        return self._open

    @contextmanager
    def request(self) -> Iterator[None]:
        """A request is under way."""
        self._open += 1
        self._changed()
        try:
            yield
        finally:
            self._open -= 1
            self._changed()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """That request waits to be sent again."""
        self._waiting += 1
        self._changed()
        try:
            yield
        finally:
            self._waiting -= 1
            self._changed()

    def total(self) -> float:
        """Seconds up to now."""
        running = 0.0 if self._since is None else self._clock.monotonic() - self._since
        return self._total + running

    def _changed(self) -> None:
        counts = self._waiting > 0 and self._waiting == self._open
        if counts and self._since is None:
            self._since = self._clock.monotonic()
        elif not counts and self._since is not None:
            self._total += self._clock.monotonic() - self._since
            self._since = None
