"""`source.json`: where the sealed run of a trial lies that another sweep has made (`spec.from`), and what that sweep counted.

The lock holds, per group, a digest over its trials' files: what judges, verifies or reports reads a whole group and knows that
nothing was exchanged since the sweep was planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field, ValidationError

from realcli.api.base import Digest, Frozen, canonical_json, sha256_digest
from realcli.api.outcomes import Phase
from realcli.api.plan import Plan, SourceLock
from realcli.ledger.seals import TrialIdentity
from realcli.scoring.records import GroupMember
from realcli.storage.paths import AttemptPaths, SweepPaths
from realcli.storage.port import NotFound, ObjectStore

MENDABLE = "VerifierFault"
"""The one invalid end that a better verifier may turn into a valid one: the state is sealed."""


class SourceChanged(Exception):
    """A source.json is gone, or is not the one that was planned with; names the file and what to do."""


class Source(Frozen):
    """One trial's origin."""

    schema_: Literal["realcli.dev/source/1"] = Field(default="realcli.dev/source/1", alias="schema")
    uri: str  # s3://bucket/<key>: the attempt that counted there
    attempt: str  # that key, in the bucket of both sweeps
    verified: str  # key of the attempt's folder below which the verify lies that counted; else as `attempt`
    trial: TrialIdentity  # as its seals have it
    member: GroupMember  # as the source's newest group file has it: ordinal, digests of the seals, reward
    group: Digest | None = None  # of that group file; None: the task was withdrawn there and never judged

    @property
    def work(self) -> AttemptPaths:
        """Where ledger, state and work seal lie."""
        return AttemptPaths(self.attempt)

    @property
    def verifies(self) -> AttemptPaths:
        """Where the verify lies that the source counted."""
        return AttemptPaths(self.verified)

    @property
    def verifiable(self) -> bool:
        """Whether there is a sealed state that the tests can be run on again."""
        member = self.member
        return member.work_seal is not None and (member.phase is Phase.SEALED or member.reason == MENDABLE)


def group_digest(sources: Sequence[Source]) -> str:
    """What the lock holds of a group: over the digests of its trials' files, by ordinal."""
    return sha256_digest(canonical_json([source.content_digest() for source in sources]))


def read_sources(store: ObjectStore, paths: SweepPaths, plan: Plan, lock: SourceLock, group: int) -> dict[int, Source]:
    """The sources of a group's trials, by this plan's ordinals. SourceChanged; errors of storage pass."""
    found: dict[int, Source] = {}
    for ordinal in plan.ordinals_of_group(group):
        key = paths.source(ordinal)
        try:
            found[ordinal] = Source.model_validate_json(store.get(key))
        except NotFound:
            raise SourceChanged(f"{key} does not exist in {store.describe()}: restore it, or make a new sweep") from None
        except ValidationError as error:
            raise SourceChanged(f"{key} is no source of this version: {error.error_count()} fields do not fit") from error
    made = group_digest(list(found.values()))
    if made != lock.groups[group]:
        first = paths.source(min(found))
        raise SourceChanged(
            f"{first} and those of its group have the digest {made}, the lock says {lock.groups[group]}: they were changed since "
            "the sweep was planned, make a new sweep"
        )
    return found


def own_member(source: Source, ordinal: int) -> GroupMember:
    """The member as a group of this sweep has it that only judges again."""
    return source.member.model_copy(update={"ordinal": ordinal})
