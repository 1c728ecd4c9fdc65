"""Labels of what we create. A value that no label can hold is hashed there; it stands verbatim in spec."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final

from realcli.api.plan import Coordinates
from realcli_operator.kube.names import (
    LABEL_ATTEMPT,
    LABEL_CONFIGURATION,
    LABEL_MANAGED_BY,
    LABEL_MODE,
    LABEL_REPEAT,
    LABEL_ROLE,
    LABEL_SWEEP,
    LABEL_TASK,
    LABEL_TRIAL,
    MANAGER,
    Role,
)

_SAFE: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")


def label_value(text: str) -> str:
    """The text, or `h-<16 hex>` of its sha256 where a label cannot hold it."""
    return text if _SAFE.fullmatch(text) else "h-" + hashlib.sha256(text.encode()).hexdigest()[:16]


def sweep_labels(sweep: str, role: Role | None = None) -> dict[str, str]:
    """Labels of what belongs to a sweep."""
    labels = {LABEL_MANAGED_BY: MANAGER, LABEL_SWEEP: sweep}
    return labels | ({LABEL_ROLE: role.value} if role is not None else {})


def cell_labels(configuration: str, task: str) -> dict[str, str]:
    """Labels of a (configuration, task)."""
    return {LABEL_CONFIGURATION: label_value(configuration), LABEL_TASK: label_value(task)}


def trial_labels(sweep: str, cell: Coordinates) -> dict[str, str]:
    """Labels of a Trial."""
    return {
        **sweep_labels(sweep),
        **cell_labels(cell.configuration, cell.task),
        LABEL_MODE: cell.mode,
        LABEL_REPEAT: str(cell.repeat),
    }


def pod_labels(sweep: str, trial: str, cell: Coordinates, role: Role, attempt: int) -> Mapping[str, str]:
    """Labels of a trial's pod."""
    return trial_labels(sweep, cell) | {LABEL_TRIAL: trial, LABEL_ROLE: role.value, LABEL_ATTEMPT: str(attempt)}
