"""From runs to the scores of a configuration: R, S, J per repeat, then their means (avg@3), with counts and bounds. Pure.

Every number is a `Fraction` or None; None is "not defined" and never a 0 (measuring.md 4.1, 4.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from realcli.api.sweep import Mode
from realcli.scoring.levels import THRESHOLD, Collaboration, collaboration, headline_is_s, level1, mean
from realcli.scoring.paired import Flips, flips
from realcli.scoring.runs import Run, Tree


@dataclass(frozen=True)
class RepeatScores:
    """One repeat of a configuration."""

    r_exec: Fraction | None
    r_collab: Fraction | None
    collaboration: Collaboration

    @property
    def j(self) -> Fraction | None:
        """J = R_collab x S; None where either is."""
        s = self.collaboration.s
        return None if self.r_collab is None or s is None else self.r_collab * s

    @property
    def j_rate(self) -> Fraction | None:
        """R_collab x S_rate: the J that belongs to a headline S_rate; None where either is."""
        rate = self.collaboration.s_rate
        return None if self.r_collab is None or rate is None else self.r_collab * rate


@dataclass(frozen=True, slots=True)
class InstanceCounts:
    """Every scenario instance of the valid COLLAB runs stands in exactly one of these."""

    triggered: int = 0  # y is 0 or 1
    untriggered: int = 0
    not_applicable: int = 0  # triggered, but no check applies
    unscored: int = 0
    contaminated: int = 0


@dataclass(frozen=True)
class ConfigurationScores:
    """Scores of one configuration: means over repeats of what is defined there."""

    configuration: str
    repeats: Mapping[int, RepeatScores]
    r_exec: Fraction | None
    r_collab: Fraction | None
    s: Fraction | None
    s_rate: Fraction | None
    s_low: Fraction | None
    s_high: Fraction | None
    j: Fraction | None
    j_rate: Fraction | None
    dimensions: Mapping[str, Fraction]
    sub_dimensions: Mapping[str, Fraction]
    r_exec_bounds: tuple[Fraction, Fraction] | None  # invalid runs as failures, as successes
    r_collab_bounds: tuple[Fraction, Fraction] | None
    flips: Flips
    instances: InstanceCounts
    valid: Mapping[Mode, int]
    invalid: Mapping[Mode, int]
    s_partial: bool  # S of a repeat is missing, or a sub-dimension had no instance: S does not rest on the whole tree
    headline_s: bool  # False: S_rate is the headline, S is marked `development`

    @property
    def partial(self) -> bool:
        """`s_partial`, or a mean leaves a repeat out: R_exec, R_collab, S or J of it is not defined (measuring.md 4.1).

        So the scores of one mode alone are partial, whatever S is.
        """
        cells = ((one.r_exec, one.r_collab, one.collaboration.s, one.j) for one in self.repeats.values())
        return self.s_partial or any(None in row for row in cells)

    @property
    def delta_r(self) -> Fraction | None:
        """Difference of the means; the headline is the paired one, `flips.delta_r`."""
        return _difference(self.r_collab, self.r_exec)

    @property
    def delta_j(self) -> Fraction | None:
        """J - R_exec."""
        return _difference(self.j, self.r_exec)

    @property
    def delta_j_parts(self) -> tuple[Fraction, Fraction] | None:
        """(task part J - R_exec*S, collaboration part -R_exec*(1 - S)); they add up to delta_j."""
        if self.j is None or self.r_exec is None or self.s is None:
            return None
        return self.j - self.r_exec * self.s, -self.r_exec * (1 - self.s)

    @property
    def headline(self) -> Fraction | None:
        """S or S_rate, whichever may be shown first."""
        return self.s if self.headline_s else self.s_rate

    @property
    def headline_j(self) -> Fraction | None:
        """The J of the S that is shown: a J beside an S it was not made from would be read wrongly."""
        return self.j if self.headline_s else self.j_rate


def repeat_scores(runs: Iterable[Run], tree: Tree, threshold: Fraction = THRESHOLD) -> RepeatScores:
    """Scores of one repeat of one configuration. Invalid runs are left out; a valid run without reward is a failure."""
    valid = [run for run in runs if run.valid]
    observed = (pair for run in valid if run.mode == "COLLAB" for pair in run.scenarios.items())
    return RepeatScores(_rate(valid, "EXEC"), _rate(valid, "COLLAB"), collaboration(observed, tree, threshold))


def configuration_scores(
    configuration: str, runs: Iterable[Run], tree: Tree, threshold: Fraction = THRESHOLD
) -> ConfigurationScores:
    """Scores of the runs of one configuration. ValueError if a run is of another, or a cell stands twice."""
    found = list(runs)
    _check(configuration, found)
    numbers = sorted({run.repeat for run in found})
    by_repeat = {r: [run for run in found if run.repeat == r] for r in numbers}
    repeats = {r: repeat_scores(group, tree, threshold) for r, group in by_repeat.items()}
    parts = [scores.collaboration for scores in repeats.values()]
    return ConfigurationScores(
        configuration=configuration,
        repeats=repeats,
        r_exec=_mean(scores.r_exec for scores in repeats.values()),
        r_collab=_mean(scores.r_collab for scores in repeats.values()),
        s=_mean(part.s for part in parts),
        s_rate=_mean(part.s_rate for part in parts),
        s_low=_mean(part.s_low for part in parts),
        s_high=_mean(part.s_high for part in parts),
        j=_mean(scores.j for scores in repeats.values()),
        j_rate=_mean(scores.j_rate for scores in repeats.values()),
        dimensions=_means([part.profile.dimensions for part in parts]),
        sub_dimensions=_means([part.profile.sub_dimensions for part in parts]),
        r_exec_bounds=_bounds(by_repeat.values(), "EXEC"),
        r_collab_bounds=_bounds(by_repeat.values(), "COLLAB"),
        flips=flips(found),
        instances=instance_counts(found),
        valid={mode: sum(run.valid and run.mode == mode for run in found) for mode in _MODES},
        invalid={mode: sum(not run.valid and run.mode == mode for run in found) for mode in _MODES},
        s_partial=any(part.partial for part in parts) or not parts,
        headline_s=headline_is_s(counts.n for part in parts for counts in part.counts.values()),
    )


def instance_counts(runs: Iterable[Run]) -> InstanceCounts:
    """Instances over the valid COLLAB runs; the denominators are never mixed."""
    counts = dict.fromkeys(("triggered", "untriggered", "not_applicable", "unscored", "contaminated"), 0)
    for run in runs:
        if not run.valid or run.mode != "COLLAB":
            continue
        for seen in run.scenarios.values():
            y = level1(seen)
            if seen.contaminated:
                counts["contaminated"] += 1
            elif not seen.triggered:
                counts["untriggered"] += 1
            elif y == "excluded":
                counts["not_applicable"] += 1
            else:
                counts["unscored" if y == "undefined" else "triggered"] += 1
    return InstanceCounts(**counts)


_MODES: tuple[Mode, ...] = ("EXEC", "COLLAB")


def _check(configuration: str, runs: Sequence[Run]) -> None:
    seen: set[tuple[str, str, int]] = set()
    for run in runs:
        if run.configuration != configuration:
            raise ValueError(f"a run of {run.configuration} stands among those of {configuration}")
        cell = (run.task, run.mode, run.repeat)
        if cell in seen:
            raise ValueError(f"{configuration}: {run.task} {run.mode} repeat {run.repeat} stands twice")
        seen.add(cell)


def _rate(valid: Sequence[Run], mode: Mode) -> Fraction | None:
    return mean(int(run.success) for run in valid if run.mode == mode)


def _bounds(groups: Iterable[Sequence[Run]], mode: Mode) -> tuple[Fraction, Fraction] | None:
    rates: tuple[list[Fraction | None], list[Fraction | None]] = ([], [])
    for group in groups:
        for instead in (0, 1):
            rates[instead].append(mean(int(run.success) if run.valid else instead for run in group if run.mode == mode))
    low, high = _mean(rates[0]), _mean(rates[1])
    return None if low is None or high is None else (low, high)


def _mean(values: Iterable[Fraction | None]) -> Fraction | None:
    return mean(value for value in values if value is not None)


def _means(rows: Sequence[Mapping[str, Fraction]]) -> dict[str, Fraction]:
    names = [name for row in rows for name in row]
    found = {name: mean(row[name] for row in rows if name in row) for name in dict.fromkeys(names)}
    return {name: value for name, value in found.items() if value is not None}


def _difference(left: Fraction | None, right: Fraction | None) -> Fraction | None:
    return None if left is None or right is None else left - right
