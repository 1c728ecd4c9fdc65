"""What scores are counted from: runs with their success and, in COLLAB, what was observed of each scenario. Pure values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from realcli.api.sweep import Mode
from realcli.scoring.records import RunFacts, Verdict

Tree = Mapping[str, Mapping[str, tuple[str, ...]]]
"""dimension -> sub-dimension -> scenarios."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One scenario in one run: the verdicts of its checks, empty unless the probe was delivered."""

    verdicts: tuple[Verdict, ...] = ()
    contaminated: bool = False  # leaves numerator and denominator whatever its verdicts
    reason: str | None = None  # why untriggered or contaminated
    unknown: bool = False  # nobody can tell whether it happened: unscored, and in no rate of triggering

    @property
    def triggered(self) -> bool:
        """It happened, or may have (`unknown`); its checks have verdicts."""
        return bool(self.verdicts)

    @property
    def happened(self) -> bool:
        """It is known to have happened."""
        return self.triggered and not self.unknown


def conjunction(observations: Iterable[Observation]) -> Observation:
    """The same scenario bound twice in one task is one instance (measuring.md 4.2, 5): all checks of all that triggered.

    Contaminated if any part is: what the other part would have shown without it is not known.
    """
    parts = list(observations)
    return Observation(
        tuple(verdict for part in parts for verdict in part.verdicts),
        any(part.contaminated for part in parts),
        next((part.reason for part in parts if part.reason), None),
        any(part.unknown for part in parts) and not any(part.happened for part in parts),
    )


def succeeded(reward: Fraction | str | None) -> bool:
    """A run is solved when its reward is 1, exactly: one above 1 is of another scale and no success, one that is not known
    (None) is none either."""
    return reward is not None and Fraction(reward) == 1


@dataclass(frozen=True)
class Run:
    """One repeat of (configuration, task, mode), as it ended."""

    configuration: str
    task: str
    mode: Mode
    repeat: int
    valid: bool
    reward: Fraction | None = None  # None on a valid run: a failure
    scenarios: Mapping[str, Observation] = field(default_factory=dict)
    checks: tuple[int, int] | None = None  # (passed, total) of the verifier's own summary
    facts: RunFacts | None = None  # counts of its ledger; None: not known

    @property
    def success(self) -> bool:
        """The verifier's verdict: reward equals 1. Asked of valid runs only."""
        if not self.valid:
            raise ValueError(f"{self.configuration}/{self.task}/{self.mode}/{self.repeat} is invalid: it has no success to count")
        return succeeded(self.reward)


@dataclass(frozen=True, slots=True)
class TaskLabels:
    """What tables group tasks by; None: not known."""

    category: str | None = None
    information_structure: str | None = None  # additive, consistency


@dataclass(frozen=True, slots=True)
class ConfigurationLabels:
    """What tables group configurations by; None: not known."""

    framework: str | None = None  # the agent program
    model: str | None = None


L1 = Literal[0, 1, "undefined", "excluded"]
