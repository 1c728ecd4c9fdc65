"""What the runner arranges with the kernel about itself."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_DUMPABLE = 4
_PR_GET_DUMPABLE = 3
_PR_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.prctl(ctypes.c_int(option), ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}): {os.strerror(code)}")
    return result


def hide_memory() -> None:
    """Nobody without SYS_PTRACE can read this process's memory or attach to it, whatever its uid (prctl(2), DUMPABLE)."""
    _prctl(_PR_SET_DUMPABLE, 0)
    if _prctl(_PR_GET_DUMPABLE, 0) != 0:
        raise OSError("the kernel did not make the runner non-dumpable")


def heed_signals() -> None:
    """Signals that were ignored when the runner was started get their default back: an agent's processes would inherit it.

    SIGPIPE and SIGXFSZ are ignored by Python itself, and given back by it to the programs it starts.
    """
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def adopt_orphans() -> None:
    """Orphaned descendants become children of this process (prctl(2), CHILD_SUBREAPER), as they do for PID 1."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
