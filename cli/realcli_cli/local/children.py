"""The processes of a run: none outlives it, whoever ends it.

They are no part of the terminal's foreground group, so a Ctrl-C reaches this program alone, which ends them in order. Of a
program that is killed the kernel tells its children.
"""

from __future__ import annotations

import contextlib
import ctypes
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn, TypedDict

ENDING = (signal.SIGTERM, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class Options(TypedDict):
    """Of `subprocess.Popen`."""

    process_group: int
    preexec_fn: Callable[[], None] | None


def ours(number: signal.Signals) -> Options:
    """Options of a child that gets the signal when this process dies. Linux tells the children of a thread when that one ends, so
    only those of the main thread are told."""

    def told() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)

    in_main = threading.current_thread() is threading.main_thread()
    return Options(process_group=0, preexec_fn=told if in_main else None)


@contextlib.contextmanager
def ended_in_order() -> Iterator[None]:
    """SIGTERM and SIGHUP unwind the block as Ctrl-C does, and the exit code says which it was. Main thread only."""

    def unwind(number: int, frame: FrameType | None) -> NoReturn:
        for one in ENDING:
            signal.signal(one, signal.SIG_IGN)  # once is enough
        raise SystemExit(128 + number)

    before = [(one, signal.signal(one, unwind)) for one in ENDING]
    try:
        yield
    finally:
        for one, handler in before:
            signal.signal(one, handler)
