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
    """Dies at the chosen point; without one it does nothing."""

    def __init__(self, point: FaultPoint | None = None) -> None:
        self._point = point

    def reached(self, point: FaultPoint) -> None:
        """The write of ``point`` is done."""
        if point is self._point:
            os.kill(os.getpid(), signal.SIGKILL)
