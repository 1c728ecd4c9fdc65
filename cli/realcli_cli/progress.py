"""How far the sessions with a judge have come, on standard error: a line written over on a terminal, else one for each wave."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TextIO, TypeVar

from realcli.judging.conversing import Pool

R = TypeVar("R")


class Progress:
    """A `Pool` over another one. The waves of a judgement are what the agent claimed, then one vote after the other."""

    def __init__(self, pool: Pool, votes: int, out: TextIO | None = None) -> None:
        self._pool, self._votes = pool, votes
        self._out = sys.stderr if out is None else out
        self._lock = Lock()
        self._wave = 0
        self._done = 0

    def __call__(self, jobs: Sequence[Callable[[], R]]) -> list[R]:
        """See `realcli.judging.conversing.Pool`."""
        wave, self._wave, self._done = self._wave, self._wave + 1, 0
        name = "claims" if wave == 0 else f"vote {wave} of {self._votes}"

        def counted(job: Callable[[], R]) -> Callable[[], R]:
            def run() -> R:
                result = job()
                with self._lock:
                    self._done += 1
                    if self._out.isatty():
                        self._out.write(f"\r\x1b[K{self._told(name, len(jobs))}")
                        self._out.flush()
                return result

            return run

        try:
            return self._pool([counted(job) for job in jobs])
        finally:  # also where the endpoint gave up: how far it came
            if jobs:
                over = "\r\x1b[K" if self._out.isatty() else ""
                self._out.write(f"{over}{self._told(name, len(jobs))}\n")
                self._out.flush()

    def _told(self, name: str, of: int) -> str:
        return f"{name}: {self._done} of {of} sessions"
