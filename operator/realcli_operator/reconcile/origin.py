"""`spec.from`: which sweep it is, whether that one is complete, and what of this sweep follows from the other. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from realcli.api.plan import Plan as FrozenPlan
from realcli.api.source import From, SourceRef
from realcli.api.sweepstatus import ModeCounts, SweepCounts
from realcli_operator.kube.views import SweepView
from realcli_operator.reconcile.conditions import find, is_true
from realcli_operator.reconcile.facts import sweep_status

AGAIN: Final = 30.0
"""Seconds until a source that is not complete is looked at again: nothing tells a sweep of another's end."""


class Waiting(Exception):
    """The source cannot be planned from yet; reason and text for the condition `Ready`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def source_ref(asked: From, source: SweepView | None, namespace: str) -> SourceRef:
    """What the plan Job is told. Raises Waiting for a sweep that is not there or not complete."""
    if asked.uri is not None:
        return SourceRef(uri=asked.uri, lock_digest=asked.lock_digest)
    if source is None:
        raise Waiting(
            "SourceNotFound",
            f"spec.from.sweep: there is no sweep {asked.sweep} in namespace {namespace}; for one that was deleted give "
            "spec.from.uri, the place of its files, in a new sweep",
        )
    status = sweep_status(source)
    complete = find(status.conditions, "Complete")
    if complete is None or complete.status != "True" or status.storage_uri is None:
        state = "Failed" if is_true(status.conditions, "Failed") else status.state or "Planning"
        raise Waiting(
            "SourceNotComplete",
            f"spec.from.sweep: {asked.sweep} is {state} ({status.trials or 'no trials yet'}); this sweep is planned once that "
            "one is Complete",
        )
    withdrawn = sorted({row.task for row in status.withdrawn})
    return SourceRef(uri=status.storage_uri, lock_digest=status.lock_digest, withdrawn=withdrawn)


def source_counts(plan: FrozenPlan, counts: SweepCounts, judged: Collection[int]) -> SweepCounts:
    """The counters of a sweep that only judges; ``judged``: groups so far. Its trials are the source's, none exists here."""
    source = plan.source
    if source is None:
        return counts
    per_mode = plan.size // len(plan.modes)

    def of(mode: str, sealed: int, invalid: int) -> ModeCounts:
        return ModeCounts(total=per_mode if mode in plan.modes else 0, sealed=sealed, invalid=invalid)

    return counts.model_copy(
        update={
            "created": 0,
            "pending": 0,
            "sealed": source.exec.sealed + source.collab.sealed,
            "invalid": source.exec.invalid + source.collab.invalid,
            "groups_incomplete": len(set(source.incomplete).intersection(judged)),
            "exec": of("EXEC", source.exec.sealed, source.exec.invalid),
            "collab": of("COLLAB", source.collab.sealed, source.collab.invalid),
        }
    )
