"""People's labels beside a judge's verdicts: which checks are shown, what a label is, and how far the two agree. Pure.

A label is given without seeing the verdict. Agreement is Cohen's kappa over the checks that both found applicable, with the rates
of both kinds of error, per dimension and per kind of evidence: raw agreement alone misleads (measuring.md 4.4).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field, model_validator

from realcli.api.base import Digest, Frozen
from realcli.scoring.agreement import Confusion
from realcli.scoring.records import Dimension, RepeatJudgement, Verdict

Said = Literal["1", "0", "n/a", "unsure"]
PER_DIMENSION = 30


class Label(Frozen):
    """What one person says of one check of one run."""

    work_seal: Digest
    check: str  # "<instance>/<check>"
    label: Said
    note: str = Field(default="", max_length=4_000)


class Labels(Frozen):
    """A person's labels of a judge's runs. Stored once, beside the judgements, by its own digest: a version of its own."""

    schema_: Literal["realcli.dev/labels/1"] = Field(default="realcli.dev/labels/1", alias="schema")
    judge: Digest
    rater: str = Field(min_length=1, max_length=120, pattern=r"^[^\x00-\x1f]+$")
    seed: str
    labels: list[Label] = Field(min_length=1)

    @model_validator(mode="after")
    def _once(self) -> Labels:
        """A check that stands there twice would count twice."""
        seen: set[tuple[str, str]] = set()
        for one in self.labels:
            if (one.work_seal, one.check) in seen:
                raise ValueError(f"{one.check} of the run with seal {one.work_seal} is labelled twice; expected every check once")
            seen.add((one.work_seal, one.check))
        return self


@dataclass(frozen=True)
class Asked:
    """A check that people are asked about. Its verdict is not in it."""

    work_seal: str
    configuration: str
    task: str
    repeat: int
    instance: str
    scenario: str
    check: str
    dimension: Dimension

    @property
    def id(self) -> str:
        """`<instance>/<check>`."""
        return f"{self.instance}/{self.check}"


@dataclass(frozen=True)
class Judged:
    """What was judged of it."""

    verdict: Verdict
    by: Literal["program", "judge", "none"]


def asked_of(judgements: Iterable[RepeatJudgement]) -> dict[Asked, Judged]:
    """Every check with a verdict, of scenarios and generic checks."""
    found: dict[Asked, Judged] = {}
    for one in judgements:
        for record in (*one.instances, *one.generic):
            for check in record.checks:
                if check.verdict != "unscored":
                    asked = Asked(
                        one.work_seal, one.configuration, one.task, one.repeat, record.probe, record.scenario, check.check,
                        record.dimension,
                    )  # fmt: skip
                    found[asked] = Judged(check.verdict, check.by)
    return found


def sample(found: Mapping[Asked, Judged], per_dimension: int, seed: str) -> list[Asked]:
    """So many of each dimension, those of the judge first, in an order that says nothing of the verdict."""
    chosen: list[Asked] = []
    order = random.Random(seed)
    for dimension in sorted({asked.dimension for asked in found}):
        of = sorted((asked for asked in found if asked.dimension == dimension), key=lambda asked: (asked.work_seal, asked.id))
        mixed = order.sample(of, len(of))
        chosen += sorted(mixed, key=lambda asked: found[asked].by != "judge")[:per_dimension]
    return order.sample(chosen, len(chosen))


@dataclass(frozen=True)
class Agreement:
    """Of one group of checks."""

    group: str
    confusion: Confusion  # of checks that both found applicable
    labelled: int  # all labels but `unsure`
    applicability: int  # labels that differ in whether the check applies


def agreements(
    labels: Labels, found: Mapping[Asked, Judged], evidence: Mapping[tuple[str, str], str] | None = None
) -> list[Agreement]:
    """All together, per dimension, per who decided, and per kind of evidence (`evidence`: of (scenario, check)).

    ValueError names a label of a check that was not judged.
    """
    by_id = {(asked.work_seal, asked.id): asked for asked in found}
    groups: dict[str, list[tuple[Verdict, Said]]] = {}
    for label in labels.labels:
        asked = by_id.get((label.work_seal, label.check))
        if asked is None:
            raise ValueError(f"{label.check} of the run with seal {label.work_seal} has no verdict of this judge")
        if label.label == "unsure":
            continue
        judged = found[asked]
        kind = (evidence or {}).get((asked.scenario, asked.check))
        names = ["all", f"dimension {asked.dimension}", f"by {judged.by}", *([f"evidence {kind}"] if kind else [])]
        for name in names:
            groups.setdefault(name, []).append((judged.verdict, label.label))
    order = sorted(groups, key=lambda name: (name != "all", name))
    return [_agreement(name, groups[name]) for name in order]


def _agreement(name: str, pairs: Sequence[tuple[Verdict, Said]]) -> Agreement:
    counts = {(judge, label): sum(pair == (judge, label) for pair in pairs) for judge in ("1", "0") for label in ("1", "0")}
    differ = sum((judge == "n/a") != (label == "n/a") for judge, label in pairs)
    confusion = Confusion(counts["1", "1"], counts["1", "0"], counts["0", "1"], counts["0", "0"])
    return Agreement(name, confusion, len(pairs), differ)
