"""The door of the session: one socket, one peer, then no socket any more."""

from __future__ import annotations

import asyncio
import os
import socket
import struct

from realcli.wire.body import BadBody
from realcli.wire.protocol import DEFAULT_SOCKET
from realcli_session.runner.client import RunnerClient
from realcli_session.runner.connection import Connection
from realcli_session.runner.errors import RunnerLost

MAX_SOCKET_PATH = 107


class Listener:
    """A listening socket. `accept` gives the first peer and removes the socket; so does `close`."""

    def __init__(self, listening: socket.socket, path: str) -> None:
        self._socket: socket.socket | None = listening
        self._path = path
        self.awaited = False  # somebody waited for the runner here

    async def accept(self, seconds: float, *, answer_seconds: float = 120.0, ping_seconds: float = 30.0) -> RunnerClient:
        """The runner, once it said hello. Raises RunnerLost when none came in time or it does not speak this version.

        A runner that does not answer any request, the regular ping included, within `answer_seconds` is lost.
        """
        if self._socket is None:
            raise RuntimeError("a runner was accepted already")
        self.awaited = True
        try:
            async with asyncio.timeout(seconds):
                peer, _ = await asyncio.get_running_loop().sock_accept(self._socket)
        except TimeoutError:
            raise RunnerLost(f"no runner connected to {self._path} within {seconds:g} s") from None
        finally:
            self.close()
        _, uid, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
        reader, writer = await asyncio.open_unix_connection(sock=peer, limit=256 * 1024)
        connection = Connection(reader, writer, answer_seconds=answer_seconds, ping_seconds=ping_seconds)
        try:
            return await RunnerClient.connect(connection, uid)
        except BadBody as error:
            await connection.close(f"hello: {error}")
            raise RunnerLost(f"hello: {error}") from None
        except BaseException:
            await connection.close("no hello")
            raise

    def close(self) -> None:
        """Stop listening and remove the socket. Idempotent."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            os.unlink(self._path)


def listen(path: str = DEFAULT_SOCKET) -> Listener:
    """Open the socket for any uid of the pod (the task's image decides which one the runner has).

    Raises FileExistsError if something is there already, ValueError if the path is too long for a socket.
    """
    if len(os.fsencode(path)) > MAX_SOCKET_PATH:
        raise ValueError(f"{path}: a socket path has at most {MAX_SOCKET_PATH} bytes")
    if os.path.lexists(path):
        raise FileExistsError(f"{path} exists: another session listens there or left it behind; remove it")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.setblocking(False)
        listening.bind(path)
        os.chmod(path, 0o666)
        listening.listen(1)
    except BaseException:
        listening.close()
        raise
    return Listener(listening, path)
