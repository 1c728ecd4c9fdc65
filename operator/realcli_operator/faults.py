"""Named points at which a test lets the operator die, as if by `kill -9`. Honoured only with REALCLI_ALLOW_FAULTS=1."""

from __future__ import annotations

import os
import signal
from enum import StrEnum


class FaultPoint(StrEnum):
    """Right after the write of that object has succeeded."""

    TRIAL = "after-trial"
    POD = "after-pod"
    STATUS = "after-status"
    JUDGE_JOB = "after-judge-job"
    REPORT = "after-report"


class Faults:
    """Dies at the chosen point, or right after the ``write``-th write of this process (from 1) has been answered; with neither
    it does nothing."""

    def __init__(self, point: FaultPoint | None = None, write: int | None = None) -> None:
        self._point = point
        self._writes_left = write

    def reached(self, point: FaultPoint) -> None:
        """The write of ``point`` is done."""
        if point is self._point:
            os.kill(os.getpid(), signal.SIGKILL)

    def wrote(self) -> None:
        """The API server has answered a write with success."""
        if self._writes_left is None:
            return
        self._writes_left -= 1
        if self._writes_left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
