"""From the facts of a pod to what its end is, who caused it and what follows: the first row of `endrows.py` that matches. Pure.

The last row matches what none explains: a gap, which is told with all its facts, counted (`realcli_unexplained_ends_total`) and
bounded like every loss. What the agent can cause never leads to a new attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from realcli.api.outcomes import BY_REASON, Cause, Effect, Phase, effect_of
from realcli_operator.reconcile.endmodel import EndFacts, Said, Seal, Work
from realcli_operator.reconcile.endrows import GAP, ROWS

UNEXPLAINED: Final = "UnexplainedEnd"
"""Reason of the event about a gap."""


@dataclass(frozen=True, slots=True)
class End:
    """What an end is. ``phase``: Verifying (storage is asked for a seal, or the verifier is run again), Sealed (valid), Pending
    (between attempts) or Invalid. ``retry``: a new attempt of the work may follow, while `retry.infrastructure` allows."""

    phase: Phase
    reason: str
    cause: Cause
    retry: bool
    message: str
    row: str
    """Name of the row that matched."""

    @property
    def gap(self) -> bool:
        """Whether no row explains it."""
        return self.row == GAP


def end_of(facts: EndFacts) -> End:
    """How it ended."""
    row = next(row for row in ROWS if row.when(facts))
    reason = row.reason_of(facts)
    phase = _phase(facts, reason)
    return End(phase, reason, row.cause or BY_REASON[reason].cause, phase is Phase.PENDING, row.tell(facts), row.name)


def is_fault(reason: str) -> bool:
    """Whether a verify pod that ended so may be the verifier's, the task's or the state's fault: all but what the cluster
    or storage did to it. A session that died is: it may die of what it restores."""
    return effect_of(reason) in (Effect.VERIFIED, Effect.AGENT) or reason in {"SessionLost", "VerifierFault"}


def _phase(facts: EndFacts, reason: str) -> Phase:
    if facts.work is Work.VERIFY or _is_asked(facts):
        return Phase.VERIFYING
    match effect_of(reason):
        case Effect.VERIFIED | Effect.AGENT:
            return Phase.SEALED  # the agent spoilt it and nothing could be sealed: valid, and nothing to reward
        case Effect.FINAL:
            return Phase.INVALID
        case Effect.RETRY | Effect.HELD:
            return Phase.PENDING


def _is_asked(facts: EndFacts) -> bool:
    """Whether a verify pod has to look for the seal.

    Also after StorageUnavailable: the seal may have been stored by an answer that got lost, or by a pod of this very name that
    vanished before any status knew it. It is the truth.
    """
    if facts.seal is not Seal.UNREAD:
        return False
    match facts.said:
        case Said.SEALED:
            return True
        case Said.INVALID:
            return facts.said_reason == "StorageUnavailable"
        case _:
            return facts.may_have_sealed
