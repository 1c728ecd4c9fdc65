"""A process at the other end of the wire."""

from __future__ import annotations

import signal as signals

from realcli.wire.protocol import Op
from realcli_session.runner.connection import Connection
from realcli_session.runner.errors import RunnerLost
from realcli_session.runner.port import ExitStatus, SignalTarget
from realcli_session.runner.streams import InStream, OutStream


class Process:
    """See RemoteProcess. Made by `RunnerClient.spawn` alone."""

    def __init__(self, connection: Connection, stdin: OutStream | None, stdout: InStream, stderr: InStream) -> None:
        self._connection = connection
        self._stdin = stdin
        self._stdout = stdout
        self._stderr = stderr
        self._exit: ExitStatus | None = None
        self.number = 0
        self.pid = 0

    @property
    def stdin(self) -> OutStream | None:
        """See RemoteProcess."""
        return self._stdin

    @property
    def stdout(self) -> InStream:
        """See RemoteProcess."""
        return self._stdout

    @property
    def stderr(self) -> InStream:
        """See RemoteProcess."""
        return self._stderr

    @property
    def exit(self) -> ExitStatus | None:
        """See RemoteProcess."""
        return self._exit

    def on_exit(self, status: ExitStatus) -> None:
        """The leader ended."""
        self._exit = status
        self._connection.signal.changed()

    async def wait(self) -> ExitStatus:
        """See RemoteProcess."""
        while self._exit is None:
            self._connection.check()
            await self._connection.signal.wait()
        return self._exit

    async def streams_closed(self) -> None:
        """See RemoteProcess."""
        for stream in (self._stdout, self._stderr):
            while not stream.ended:
                self._connection.check()
                await stream.signal.wait()

    async def signal(self, signum: int, *, to: SignalTarget = "group") -> int:
        """See RemoteProcess."""
        fields = await self._connection.ask(Op.SIGNAL, {"process": self.number, "signal": signum, "to": to})
        with self._connection.believing():
            return fields.integer("count")

    def abandon(self) -> None:
        """Nobody holds this process any more: end it without waiting."""
        self._stdout.discard()
        self._stderr.discard()
        try:
            _, answer = self._connection.request(
                Op.SIGNAL, {"process": self.number, "signal": int(signals.SIGKILL), "to": "session"}
            )
        except RunnerLost:
            return
        answer.cancel()
