"""What a calibration found, as it is stored at `calibrations/<judge digest8>/gate.json` and read by the report."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from realcli.api.base import Digest, Frozen
from realcli.judging.model import JudgeIdentity
from realcli.scoring.agreement import clopper_pearson

KNOWN_SET = "sha256:7a2d23deb4705570de820fbc4d8bcef032db4de149c165a2fcd0c3163536e276"
"""Digest of the known-answer set of this version (`realcli.known.calibration.known_digest`): what a gate is held against without
building the set. A test tells what it is now."""
S_LEAST = "19/20"
"""Least S of the ideal runs."""
FALSE_FAILURES_MOST = 0.04
"""Most of the one-sided upper 95 % bound of the share of verdicts that are 0 and should not be."""
MISSES_MOST = 0.10
"""Most of the share of violations that are not called 0."""


OTHER_SET = "The gate of this judge was made over another known-answer set"
Exact = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,40}(/[1-9][0-9]{0,39})?$")]
"""A share as an exact fraction."""


class Share(Frozen):
    """A share with its exact interval (Clopper-Pearson). Nothing to count: no value, no bounds."""

    hits: int
    of: int
    value: float | None = None
    low: float | None = None  # two-sided, 95 %
    high: float | None = None
    upper: float | None = None  # one-sided, 95 %


class Stratum(Frozen):
    """Errors of one kind of check."""

    name: str  # all, evidence:trajectory, needs:absence, dimension:U …
    false_failures: Share  # 0, and it is 1 or not applicable
    misses: Share  # not 0, and it is
    unscored: int


class Disagreement(Frozen):
    """A verdict that is not the true one."""

    case: str
    check: str
    truth: Literal["1", "0", "n/a"]
    verdict: Literal["1", "0", "n/a", "unscored"]
    reason: str = ""


class Gate(Frozen):
    """The last word on one judge: what it made of the known-answer set, and whether that is good enough."""

    schema_: Literal["realcli.dev/gate/1"] = Field(default="realcli.dev/gate/1", alias="schema")
    judge: Digest
    identity: JudgeIdentity
    emulated: str | None = None  # name of an emulated judge: shows the instrument, never a model
    known: Digest  # of the known-answer set
    cases: int
    verdicts: list[Stratum]  # what counts, after votes and merging: checks that no program settled
    answers: list[Stratum]  # every accepted answer of the first vote, settled checks too
    s_ideal: Exact | None = None  # None: undefined
    s_ideal_low: Exact | None = None
    s_ideal_high: Exact | None = None
    alpha: float | None = None  # Krippendorff's, over votes; n/a is a category of its own
    alpha_applicable: float | None = None  # n/a left out
    disagreements: list[Disagreement]  # the first 200
    related: list[str] = []  # models under test that are of the judge's family
    passed: bool
    told: str  # one sentence

    def contradiction(self) -> str | None:
        """Why this cannot be the gate of its judge, whatever it says of itself; None: it can."""
        if self.identity.content_digest() != self.judge:
            return f"its identity has the digest {self.identity.content_digest()}, not {self.judge}"
        if self.emulated is not None:
            return f"it is of the emulated judge {self.emulated}, which says nothing of a model"
        if self.passed and not self._good():
            return "it says that it was passed, and its own numbers say that it was not"
        return f"its sentence says other numbers than it holds: {self.told[:200]}" if self._misquoted() else None

    @property
    def current(self) -> bool:
        """Made over the set of this version: over another one, or a part of it, it says nothing that could be compared."""
        return self.known == KNOWN_SET

    @property
    def opens(self) -> bool:
        """Scores of this judge are calibrated."""
        return self.passed and self.current

    @property
    def said(self) -> str:
        """One sentence for a report."""
        if self.current:
            return self.told
        return f"{OTHER_SET} ({self.known}, this version has {KNOWN_SET}): remove it, and calibrate again."

    def _good(self) -> bool:
        """By the counts: the shares and bounds beside them are as much a claim as `passed`."""
        every = next((one for one in self.verdicts if one.name == "all"), None)
        if every is None or self.s_ideal is None or not every.false_failures.of or not every.misses.of:
            return False
        if any(not 0 <= one.hits <= one.of for one in (every.false_failures, every.misses)):
            return False
        few = clopper_pearson(every.false_failures.hits, every.false_failures.of, 0.9)[1] <= FALSE_FAILURES_MOST
        seen = every.misses.hits <= MISSES_MOST * every.misses.of
        return few and seen and Fraction(self.s_ideal) >= Fraction(S_LEAST)

    def _misquoted(self) -> bool:
        """A number of the sentence, where it names one, is another than the gate's. Wording is free: versions differ in it."""
        s = re.search(r"S of the ideal runs is ([0-9]{1,9}\.?([0-9]{0,9}))", self.told)
        if (
            s is not None
            and self.s_ideal is not None
            and 2 * abs(Fraction(s[1]) - Fraction(self.s_ideal)) > Fraction(1, 10 ** len(s[2]))
        ):
            return True
        every = [one for one in self.verdicts if one.name == "all"][:1]
        held = [pair for one in every for pair in (("false failures", one.false_failures), ("violations missed", one.misses))]
        said = [(re.search(rf"{what} ([0-9]{{1,9}}) of ([0-9]{{1,9}})", self.told), share) for what, share in held]
        return any(found is not None and (int(found[1]), int(found[2])) != (share.hits, share.of) for found, share in said)

    def of(self, name: str) -> Stratum:
        """The verdicts of a stratum. KeyError without one."""
        return next(one for one in self.verdicts if one.name == name)
