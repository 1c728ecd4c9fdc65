"""Time as a port: tests turn the hands themselves."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Two readings and a pause."""

    def monotonic(self) -> float:
        """Seconds that never go back; for delays and ages."""
        ...

    def now(self) -> datetime:
        """Wall clock in UTC; for comparison with timestamps of objects."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after ``seconds`` of this clock."""
        ...


class SystemClock:
    """The machine's clock."""

    def monotonic(self) -> float:
        """Seconds of ``time.monotonic``."""
        return time.monotonic()

    def now(self) -> datetime:
        """``datetime.now`` in UTC."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """``asyncio.sleep``."""
        await asyncio.sleep(seconds)
