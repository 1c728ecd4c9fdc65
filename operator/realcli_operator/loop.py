"""N workers: observe → decide → execute, generic over what is reconciled. A worker never dies of an error."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from realcli_operator.kube.names import Key

Observed = TypeVar("Observed")
Plan = TypeVar("Plan")


@dataclass(frozen=True, slots=True)
class Done:
    """A step that went through. ``requeue_after`` seconds: look again then; None: when something changes."""

    requeue_after: float | None = None


class Reconciler(Protocol[Observed, Plan]):
    """One kind of key, in three parts of which the middle one is pure."""

    async def observe(self, key: Key) -> Observed | None:
        """What is known of the key (store, expectations, fresh reads on recovery paths); None: the object is gone."""
        ...

    def decide(self, observed: Observed, now: datetime) -> Plan:
        """What to do. Pure: no clock, no I/O."""
        ...

    async def execute(self, key: Key, observed: Observed, plan: Plan) -> Done:
        """Do it: children first, then at most one status write."""
        ...
