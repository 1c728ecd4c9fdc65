"""What phases call for evidence of file changes.

`ChangeWatch(runner, sink, globs, turns)` is the thin edge around the pure `ChangeTracker`:
`await watch.start()` once after setup (first state, no events), `gateway.on_request_accepted = watch.on_turn`,
`await watch.finish()` after the agent was stopped. It emits FileWrite and FileDelete.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

OnChange = Callable[[str], None]
"""Called with the path of every watched file that was created or modified (the simulated user waits for writes)."""

OnContent = Callable[[Mapping[str, bytes]], None]
"""Called with contents of watched files: of the first scan, then of what changed (b"": gone, too large, or changed again)."""


class ChangeWatchPort(Protocol):
    """Scans the watched paths and records what changed."""

    async def start(self) -> None:
        """Remember the state before the first request. Emits nothing."""

    async def on_turn(self, turn: int) -> None:
        """Scan after request `turn` was forwarded; record changes as windows. Serialised; nothing is scanned twice for a turn."""

    async def at_yield(self) -> None:
        """Scan although no request came: the agent has handed over, and background programs may have written since."""

    async def rebase(self, path: str) -> None:
        """The session changed this path itself (a plant): its present state is not the agent's doing."""

    async def finish(self) -> None:
        """The last scan, after the agent ended: changes after the last request."""
