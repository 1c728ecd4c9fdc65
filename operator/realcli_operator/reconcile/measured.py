"""What the ended trials of a sweep took, by configuration and mode, for its forecast. Pure.

A trial's time is that from the start of its first pod to its end: what pods occupy nodes for, waits between two of them included.
Its cost is that of all its attempts, and unknown where one of them left no count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from realcli.api.forecasting import HOUR, Cell, Measured
from realcli.api.outcomes import Phase
from realcli.api.sweep import Mode
from realcli_operator.reconcile.recent import Row, parsed, time_of

STEP: Final = 0.02
"""A forecast is made anew when this share of the trials has ended since: a step of a large sweep walks through none of them."""


def due(basis: int, ended: int, size: int) -> bool:
    """Whether ``ended`` trials say more than the ``basis`` of the last forecast."""
    return ended != basis and (ended - basis >= max(1.0, STEP * size) or ended == size or ended < basis)


def measured(rows: Mapping[int, Row]) -> dict[Cell, Measured]:
    """Of the trials that ended Sealed."""
    sums: defaultdict[Cell, list[Decimal]] = defaultdict(lambda: [Decimal(0)] * 4)
    for row in rows.values():
        if row.phase is not Phase.SEALED:
            continue
        status = row.view.status
        mode: Mode = "EXEC" if row.view.spec["mode"] == "EXEC" else "COLLAB"
        cell = sums[(row.configuration, mode)]
        hours, usd = _hours(status), _usd(status)
        if hours is not None:
            cell[0] += 1
            cell[1] += hours
        if usd is not None:
            cell[2] += 1
            cell[3] += usd
    return {key: Measured(int(ended), hours, int(priced), usd) for key, (ended, hours, priced, usd) in sums.items()}


def _hours(status: Mapping[str, Any]) -> Decimal | None:
    began, ended = time_of(status.get("startedAt")), time_of(status.get("endedAt"))
    if began is None or ended is None or ended < began:
        return None
    return Decimal(int((parsed(ended) - parsed(began)).total_seconds())) / HOUR


def _usd(status: Mapping[str, Any]) -> Decimal | None:
    earlier = status.get("earlier") or {}
    if earlier.get("uncounted"):
        return None
    try:
        return Decimal(str(status["costUSD"])) + Decimal(str(earlier.get("costUSD", "0")))
    except (KeyError, InvalidOperation):
        return None
