"""`spec.from`: a sweep that verifies or judges again what another has sealed, and what its lock and plan hold of that other."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from realcli.api.base import Digest, Frozen
from realcli.api.outcomes import Phase

Step = Literal["Verify", "Judge"]


class From(Frozen):
    """Where the runs come from. Nothing of them runs again."""

    sweep: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=40)] | None = Field(
        default=None, description="A complete sweep of the same namespace."
    )
    uri: Annotated[str, StringConstraints(pattern=r"^s3://[^/]+/.+[^/]$", max_length=512)] | None = Field(
        default=None,
        description="Where the files of a complete sweep lie (its status.storageURI), for one that is no object any more.",
    )
    lock_digest: Digest | None = Field(
        default=None, description="With uri: digest of its sweep.json; refuse anything else. Of a sweep its status says it."
    )
    phases: Annotated[list[Step], Field(min_length=1, max_length=2)] = Field(
        description="[Verify, Judge]: the tests run on the sealed states again, then all is judged. [Judge]: judged again, as "
        "the source was verified; no pods of trials."
    )

    @property
    def verify(self) -> bool:
        """Whether the tests run again."""
        return "Verify" in self.phases


class SourceRef(Frozen):
    """What the operator tells the plan Job of the source."""

    uri: str  # s3://bucket/<key of its root>
    lock_digest: Digest | None = None  # None: not known, spec.from.uri without lockDigest
    withdrawn: list[str] = []  # tasks the source withdrew: their groups were never judged


class Settled(Frozen):
    """A trial of the source without a sealed state: it ends as it ended there, and no pod runs for it."""

    ordinal: int  # in this plan
    phase: Phase  # Sealed (reward 0) or Invalid
    reason: str


class ModeEnds(Frozen):
    """How many trials of a mode are valid and invalid."""

    sealed: int = 0
    invalid: int = 0


class PlanSource(Frozen):
    """What the operator needs to know of it."""

    sweep: str  # "<namespace>/<name>"
    verify: bool
    exec: ModeEnds = ModeEnds()  # as the source counted them
    collab: ModeEnds = ModeEnds()
    incomplete: list[int] = []  # numbers of groups with a trial that ended Invalid there, sorted
    settled: list[Settled] = []  # with verify: sorted by ordinal

    @cached_property
    def by_ordinal(self) -> Mapping[int, Settled]:
        """The settled ones: every step of a trial asks for it."""
        return {one.ordinal: one for one in self.settled}
