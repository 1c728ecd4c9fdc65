"""Entry point: wait for the session's socket, connect, serve, leave nothing behind.

Exit codes: 0 the session closed the connection, 2 wrong arguments, 3 the session broke the protocol, 4 no session within the
set-up limit, 5 /proc does not show this pid namespace.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence

from realcli.wire.frames import ProtocolError
from realcli.wire.protocol import DEFAULT_SOCKET
from realcli_runner import kernel, procfs
from realcli_runner.server import Server
from realcli_runner.walking import Territory

CLOSED, BROKEN, NO_SESSION, NO_PROC = 0, 3, 4, 5


def connect(path: str, seconds: float) -> socket.socket | None:
    """The connected socket, or None when nobody listened in time. Only "not there yet" is waited for."""
    end = time.monotonic() + seconds
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(path)
            return connection
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
        if time.monotonic() >= end:
            return None
        time.sleep(0.05)


def main(argv: Sequence[str] | None = None) -> int:
    """Run to the end; does not return before everything else in the container is gone."""
    parser = argparse.ArgumentParser(prog="realcli-runner", description="Exec server of the agent container.")
    parser.add_argument("--socket", default=DEFAULT_SOCKET, help="the session's unix socket")
    parser.add_argument("--setup-seconds", type=float, default=600.0, help="how long to wait for it")
    parser.add_argument("--own", action="append", default=[], help="further directories that are not the image's")
    parser.add_argument("--no-exec-record", action="store_true", help="never set no_new_privs: the task has setuid programs")
    args = parser.parse_args(argv)

    if not procfs.usable():
        print("realcli-runner: /proc does not show this pid namespace: mount it", file=sys.stderr, flush=True)
        return NO_PROC
    kernel.hide_memory()
    kernel.heed_signals()
    if os.getpid() != 1:
        kernel.adopt_orphans()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))  # while there is nothing to lose
    connection = connect(args.socket, args.setup_seconds)
    if connection is None:
        print(f"realcli-runner: no session at {args.socket} within {args.setup_seconds:g} s", file=sys.stderr, flush=True)
        return NO_SESSION
    # From here on PID 1 has no handlers, so that no signal from inside its namespace reaches it.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    own = [os.path.dirname(os.path.abspath(args.socket)), "/opt/realcli", *args.own]
    server = Server(connection, Territory.of([os.fsencode(path) for path in own]), exec_record=not args.no_exec_record)
    status = CLOSED
    try:
        server.serve()
    except ProtocolError as error:
        print(f"realcli-runner: {error}", file=sys.stderr, flush=True)
        status = BROKEN
    finally:
        server.kill_everything()
    connection.close()
    sys.stderr.flush()
    os._exit(status)  # worker threads may be in the middle of something that nobody waits for any more
