"""Above a limit of the operator's settings a planned sweep waits until a person names its plan (`spec.confirm`). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from realcli.api.forecast import Forecast
from realcli.api.sweep import SweepSpec


@dataclass(frozen=True, slots=True)
class ConfirmAbove:
    """What a sweep may take without being asked about, by its forecast at most; None: as much as it likes."""

    usd: Decimal | None = None
    pod_hours: Decimal | None = None

    @property
    def asks(self) -> bool:
        """Whether there is any limit."""
        return self.usd is not None or self.pod_hours is not None


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The condition `Confirmed`."""

    given: bool
    reason: str
    message: str = ""


def confirmation(
    forecast: Forecast, above: ConfirmAbove, spec: SweepSpec, digest: str, namespace: str, name: str, *, begun: bool
) -> Confirmation | None:
    """Whether the sweep may start; None: nobody asks. ``begun``: something of it runs already, which a limit that came
    later does not stop (a budget that was raised since does)."""
    if not above.asks:
        return None
    reasons = list(_reasons(forecast, above))
    if not reasons:
        return Confirmation(True, "BelowLimit")
    if spec.confirm == digest:
        return Confirmation(True, "ByUser")
    if begun:
        return Confirmation(True, "Begun")
    told = "; ".join(text for _, text in reasons)
    if spec.confirm is not None:
        told += f"; spec.confirm names another plan ({spec.confirm})"
    patch = f'{{"spec":{{"confirm":"{digest}"}}}}'
    how = f"to start it: kubectl -n {namespace} patch benchmarksweep {name} --type merge -p '{patch}'"
    return Confirmation(False, reasons[0][0], f"{told}. Nothing starts; {how}")


def is_dearer(now: Forecast, before: Forecast) -> bool:
    """Whether an edit (of budget or parallelism) lets a sweep cost more than was known before."""
    if before.usd_at_most is None:
        return False
    return now.usd_at_most is None or Decimal(now.usd_at_most) > Decimal(before.usd_at_most)


def _reasons(forecast: Forecast, above: ConfirmAbove) -> Iterator[tuple[str, str]]:
    if above.usd is not None:
        if forecast.usd_at_most is None:
            why = [note for note in forecast.unknown if note.startswith("US dollars")]
            yield "CostUnknown", f"what it costs at most is not known ({'; '.join(why)}), and confirmAbove.usd is {above.usd}"
        elif Decimal(forecast.usd_at_most) > above.usd:
            yield "AboveLimit", f"by its budgets it costs up to ${forecast.usd_at_most}, more than confirmAbove.usd {above.usd}"
    if above.pod_hours is not None and Decimal(forecast.pod_hours_at_most) > above.pod_hours:
        most = f"by its limits it takes up to {forecast.pod_hours_at_most} pod hours"
        yield "AboveLimit", f"{most}, more than confirmAbove.podHours {above.pod_hours}"
