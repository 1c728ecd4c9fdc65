"""Trials of a sweep with `spec.from`: a sealed run of another sweep is verified again, no agent ever starts. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from realcli.api.outcomes import Phase
from realcli.api.trial import TrialStatus
from realcli_operator.reconcile.facts import TrialFacts
from realcli_operator.reconcile.outcome import began, ended

LOST: Final = "StorageUnavailable"
"""What a run is called that is not at its source any more, or not as it was sealed there."""


def sourced(facts: TrialFacts, attempt: int, now: datetime) -> TrialStatus:
    """The first status of an attempt to verify again. Its ledger is the source's, which the verify pod names."""
    return began(facts, attempt, now).model_copy(update={"pod": None, "ledger_uri": None})


def settled(facts: TrialFacts, now: datetime) -> TrialStatus | None:
    """The end of a trial whose run left no sealed state: as at its source. None: there is one, or its agent runs here."""
    source = facts.plan.source
    known = source.by_ordinal.get(facts.spec.ordinal) if source is not None else None
    if source is None or known is None:
        return None
    text = f"so it ended in {source.sweep}, whose run it is: there is no sealed state to verify again"
    status = sourced(facts, max(1, facts.status.attempt), now).model_copy(update={"work_end": known.reason})
    if known.phase is Phase.SEALED:  # the agent spoilt it
        status = status.model_copy(update={"reward": "0"})
    return ended(status, known.phase, known.reason, text, now, facts.trial.generation)


def lost(facts: TrialFacts, status: TrialStatus, message: str, now: datetime) -> TrialStatus:
    """The end of a trial whose run cannot be verified: no other attempt would find another."""
    source = facts.plan.source
    where = source.sweep if source is not None else "its source"
    text = f"the run of {where} cannot be verified again: {message}"
    return ended(status, Phase.INVALID, LOST, text, now, facts.trial.generation)
