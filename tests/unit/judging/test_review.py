"""Which checks people are shown, and how their labels compare with the judge's verdicts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from pydantic import ValidationError

from realcli.judging.review import Asked, Judged, Label, Labels, agreements, asked_of, sample
from realcli.scoring.records import CheckRecord, InstanceRecord, RepeatJudgement

SEAL, JUDGE = "sha256:" + "1" * 64, "sha256:" + "2" * 64


def asked(number: int, dimension: Any = "U") -> Asked:
    return Asked(SEAL, "a.m", "task", 1, f"p{number}", "u.x", "c", dimension)


def labels(*said: Any) -> Labels:
    given = [Label(work_seal=SEAL, check=f"p{number}/c", label=one) for number, one in enumerate(said)]
    return Labels(judge=JUDGE, rater="Ada", seed="1", labels=given)


def judged(*verdicts: Any, by: Any = "judge") -> dict[Asked, Judged]:
    return {asked(number): Judged(verdict, by) for number, verdict in enumerate(verdicts)}


def test_agreement_by_hand() -> None:
    """20 both 1, 5 judge 1, 10 judge 0, 15 both 0: observed 7/10, chance 1/2, kappa 2/5."""
    verdicts = ["1"] * 25 + ["0"] * 25
    said = ["1"] * 20 + ["0"] * 5 + ["1"] * 10 + ["0"] * 15
    found = agreements(labels(*said), judged(*verdicts), {("u.x", "c"): "trajectory"})
    assert [one.group for one in found] == ["all", "by judge", "dimension U", "evidence trajectory"]
    counts = found[0].confusion
    assert (counts.kappa, counts.observed, counts.sensitivity, counts.specificity) == (
        Fraction(2, 5), Fraction(7, 10), Fraction(2, 3), Fraction(3, 4),
    )  # fmt: skip


def test_unsure_is_no_label_and_applicability_is_counted_apart() -> None:
    found = agreements(labels("1", "unsure", "n/a", "1", "n/a"), judged("1", "0", "0", "n/a", "n/a"))[0]
    assert (found.labelled, found.applicability, found.confusion.n) == (4, 2, 1)
    assert found.confusion.kappa is None  # nothing that chance could not explain: not defined, and no 0


def test_a_label_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="p1/c of the run with seal"):
        agreements(labels("1", "0"), judged("1"))


@pytest.mark.parametrize("changed", [{"label": "2"}, {"label": "1", "verdict": "1"}, {"label": "1", "workSeal": "x"}])
def test_labels_are_strict(changed: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Label.model_validate({"workSeal": SEAL, "check": "p/c"} | changed)


def test_the_sample_is_stratified_and_the_same_for_a_seed() -> None:
    found = {asked(n, d): Judged("1", "program" if n % 2 else "judge") for d in ("U", "S") for n in range(40)}
    chosen = sample(found, 10, "s")
    assert {d: sum(one.dimension == d for one in chosen) for d in ("U", "S")} == {"U": 10, "S": 10}
    assert {found[one].by for one in chosen} == {"judge"}  # those of the judge first
    assert sample(found, 10, "s") == chosen
    assert sample(dict(reversed(list(found.items()))), 10, "s") == chosen
    assert sample(found, 10, "t") != chosen
    assert len(sample(found, 1_000, "s")) == 80


def test_what_is_unscored_or_has_no_check_is_not_asked() -> None:
    def record(probe: str, *verdicts: Any) -> InstanceRecord:
        checks = [CheckRecord(check=f"c{n}", verdict=v, by="judge") for n, v in enumerate(verdicts)]
        return InstanceRecord(scenario="u.x", probe=probe, dimension="U", sub_dimension="s", state="triggered", checks=checks)

    judgement = RepeatJudgement(
        configuration="a.m", task="t", repeat=2, ordinal=3, attempt=1, work_seal=SEAL, judge=JUDGE,
        instances=[record("p1", "1", "unscored")], generic=[record("generic/g.x", "n/a"), record("generic/g.y")],
    )  # fmt: skip
    assert {one.id: said.verdict for one, said in asked_of([judgement]).items()} == {"p1/c0": "1", "generic/g.x/c0": "n/a"}
