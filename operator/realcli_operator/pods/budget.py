"""`activeDeadlineSeconds`: one function of all budgets. It is the last resort; every budget has its own, earlier end."""

from __future__ import annotations

import math
from typing import Final

from realcli.api.base import seconds
from realcli.api.forecasting import QUIESCE_AND_SEAL
from realcli.api.sweep import Limits, Mode

VERIFY_PATIENCE: Final = 3600.0
"""Seconds a verify waits for storage, all its steps together; work waits for `limits.spoolHold`."""


def verify_seconds(limits: Limits, verifier_seconds: float) -> float:
    """The limit of a task's tests: the smaller of the task's and the sweep's."""
    return min(seconds(limits.verify), verifier_seconds)


def work_deadline(limits: Limits, mode: Mode) -> int:
    """Setup, the wall limit, quiesce and seal, storage that is away for `limits.spoolHold`."""
    working = seconds((limits.exec if mode == "EXEC" else limits.collab).deadline)
    wall = working * float(limits.wall_factor)
    return math.ceil(seconds(limits.setup) + wall + QUIESCE_AND_SEAL + seconds(limits.spool_hold))


def verify_deadline(limits: Limits, verifier_seconds: float) -> int:
    """Setup, the tests, seal, storage that is away."""
    return math.ceil(seconds(limits.setup) + verify_seconds(limits, verifier_seconds) + QUIESCE_AND_SEAL + VERIFY_PATIENCE)


def control_deadline(limits: Limits, verifier_seconds: float) -> int:
    """That of a verify, and the time an agent has, which is what the reference solution may take."""
    return verify_deadline(limits, verifier_seconds) + math.ceil(seconds(limits.exec.deadline))
