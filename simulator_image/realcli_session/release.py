"""A session that ends before it needed its runner lets it go: it would wait for the socket until its set-up limit is over."""

from __future__ import annotations

import contextlib
from pathlib import Path

from realcli_session.runner.errors import RunnerLost
from realcli_session.runner.listener import Listener, listen


class SocketUse:
    """Where the runner connects, and whether anybody has waited for it there."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._listener: Listener | None = None

    def listen(self) -> Listener:
        """Open the socket. The caller closes it."""
        self._listener = listen(self.path)
        return self._listener

    async def release(self, seconds: float) -> None:
        """Accept the runner and close, if nobody has tried. One that does not come within `seconds` ends by its own limit.

        A socket that was opened and closed again without waiting for the runner counts as not tried: the runner still waits.
        """
        tried = self._listener is not None and self._listener.awaited
        if tried or not seconds or not Path(self.path).parent.is_dir():
            return
        with contextlib.closing(self.listen()) as listener, contextlib.suppress(RunnerLost):
            runner = await listener.accept(seconds)
            await runner.close()
