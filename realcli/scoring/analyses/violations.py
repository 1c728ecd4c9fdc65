"""What success hides and what failure nearly was (RealCLI 5.7). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from realcli.scoring.analyses.table import Table, share
from realcli.scoring.records import InstanceRecord
from realcli.scoring.runs import Run

NEAR = Fraction(9, 10)
RETENTION = "constraint-retention"


@dataclass(frozen=True, slots=True)
class Share:
    """`hits` of `of`."""

    hits: int
    of: int

    @property
    def rate(self) -> Fraction | None:
        """hits / of; None of nothing."""
        return share(self.hits, self.of)


def success_with_violation(runs: Iterable[Run]) -> Share:
    """Of valid COLLAB runs with success and at least one applicable check: those with any failed check (paper: 91.0 %).

    Contaminated instances count on neither side; generic checks do not count (measuring.md 4.3).
    """
    hits = total = 0
    for run in runs:
        if run.mode != "COLLAB" or not run.valid or not run.success:
            continue
        verdicts = [v for seen in run.scenarios.values() if not seen.contaminated for v in seen.verdicts if v != "n/a"]
        total += bool(verdicts)
        hits += "0" in verdicts
    return Share(hits, total)


def near_misses(runs: Iterable[Run], least: Fraction = NEAR) -> Share:
    """Of failed valid EXEC runs with a check summary: those that passed at least `least` of the checks (paper: 45.7 %)."""
    summaries = [run.checks for run in runs if run.mode == "EXEC" and run.valid and not run.success and run.checks is not None]
    rated = [(passed, total) for passed, total in summaries if total > 0]
    return Share(sum(Fraction(passed, total) >= least for passed, total in rated), len(rated))


def violations_table(by_configuration: Mapping[str, list[Run]]) -> Table:
    """Success with violation, per configuration and over all: violating / successful (measuring.md 4.3; paper: 91.0 %)."""
    return _shares("success_with_violation", "configuration violating successful rate", by_configuration, success_with_violation)


def near_miss_table(by_configuration: Mapping[str, list[Run]]) -> Table:
    """Near misses, per configuration and over all: failed EXEC runs with passed/total >= 0.9 / failed EXEC runs with a summary.

    measuring.md 4.3; paper: 45.7 %.
    """
    return _shares("near_misses", "configuration near with_summary rate", by_configuration, near_misses)


def _shares(name: str, columns: str, by_configuration: Mapping[str, list[Run]], of: Callable[[list[Run]], Share]) -> Table:
    found = {configuration: of(runs) for configuration, runs in by_configuration.items()}
    found["all"] = Share(sum(one.hits for one in found.values()), sum(one.of for one in found.values()))
    return Table.of(name, columns, ((configuration, one.hits, one.of, one.rate) for configuration, one in found.items()))


def said_against_done(
    instances: Mapping[str, Iterable[InstanceRecord]], evidence: Mapping[str, str], sub_dimension: str = RETENTION
) -> Table:
    """Of failed constraint-retention instances: the artefact does not match (A), and what was said was right all the same (T).

    A: a check with environment evidence (`environment` or `both`) failed; P(A) over failed instances where that is known.
    T: every applicable check with `trajectory` evidence passed; P(T | A) over instances of A where that is known. Not known: none
    applies, or one is unscored and none failed. joint = P(A and T) over failed instances where both are known.
    Contaminated instances count nowhere. `instances`: configuration -> records; `evidence`: check id -> evidence of the
    catalogue (measuring.md 4.3; paper: 91.3 %, 53.3 %, 48.7 %).
    """
    rows = []
    total = [0] * 7
    for configuration, records in instances.items():
        counts = [0] * 7
        for record in records:
            verdicts = {check.check: check.verdict for check in record.checks}
            if record.sub_dimension != sub_dimension or record.state == "contaminated" or "0" not in verdicts.values():
                continue
            artefact = _failed([v for check, v in verdicts.items() if evidence[check] != "trajectory"])
            spoken = _failed([v for check, v in verdicts.items() if evidence[check] == "trajectory"])
            said = None if spoken is None else not spoken
            counts[0] += 1
            counts[1] += artefact is not None
            counts[2] += artefact is True
            counts[3] += artefact is True and said is not None
            counts[4] += artefact is True and said is True
            counts[5] += artefact is not None and said is not None
            counts[6] += artefact is True and said is True
        rows.append((configuration, counts))
        total = [a + b for a, b in zip(total, counts, strict=True)]
    return Table.of(
        "said_against_done",
        "configuration failed artefact_known artefact_fails p_artefact said_known said_right p_said_given_artefact joint",
        ((name, n[0], n[1], n[2], share(n[2], n[1]), n[3], n[4], share(n[4], n[3]), share(n[6], n[5]))
         for name, n in [*rows, ("all", total)]),
    )  # fmt: skip


def _failed(verdicts: list[str]) -> bool | None:
    """A check failed; None if none applies, or one is unscored and none failed."""
    applicable = [verdict for verdict in verdicts if verdict != "n/a"]
    if "0" in applicable:
        return True
    return None if not applicable or "unscored" in applicable else False
