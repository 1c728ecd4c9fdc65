"""Whether a verify or control session was told to end. What it did not get done then says nothing of what it verified."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator
from typing import Final

LAST_WORD: Final = 2.0
"""Seconds: whoever ends a pod ends its containers one after the other, the other one first perhaps."""


class ToldToEnd:
    """SIGTERM, which only the kubelet or the node send: the session goes on, but for what was running then.

    A node that shuts down sends it to every process, also to the tests: what they say after that is no result.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Take note of it."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._event.set)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGTERM)

    @property
    def so_far(self) -> bool:
        """Whether it was, until now."""
        return self._event.is_set()

    async def within(self, seconds: float) -> bool:
        """Whether it was, or is within that time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()
        return self._event.is_set()


def words(detail: str) -> str:
    """For people; `detail`: what was not done."""
    return f"the session was told to end (SIGTERM): {detail}"
