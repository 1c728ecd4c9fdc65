"""A session that ends before it needed its runner lets it go: it would wait for the socket until its set-up limit is over."""

from __future__ import annotations

import contextlib
from pathlib import Path

from realcli_session.runner.errors import RunnerLost
from realcli_session.runner.listener import listen


class SocketUse:
    """Where the runner connects, and whether anybody has listened there."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.opened = False

    def open(self) -> str:
        """The path, for the one who is going to listen."""
        self.opened = True
        return self.path

    async def release(self, seconds: float) -> None:
        """Accept the runner and close, if nobody has. One that does not come within `seconds` ends by its own limit."""
        if self.opened or not seconds or not Path(self.path).parent.is_dir():
            return
        with contextlib.closing(listen(self.open())) as listener, contextlib.suppress(RunnerLost):
            runner = await listener.accept(seconds)
            await runner.close()
