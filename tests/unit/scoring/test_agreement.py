"""The statistics of scoring_vectors.yaml, and the borders where nothing is defined."""

from __future__ import annotations

from fractions import Fraction as F
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from realcli.scoring.agreement import Confusion, errorless_labels_needed, krippendorff_alpha, mcnemar, scenario_passes

STATISTICS: dict[str, Any] = yaml.safe_load((Path(__file__).parents[2] / "data" / "scoring_vectors.yaml").read_text())[
    "statistics"
]


def frac(value: object) -> F:
    return F(str(value))


def test_kappa_and_what_follows_from_the_same_table() -> None:
    want = STATISTICS["cohen_kappa"]
    got = Confusion(*(want[k] for k in ("judge1_human1", "judge1_human0", "judge0_human1", "judge0_human0")))
    assert (got.observed, got.chance, got.kappa) == tuple(frac(want[k]) for k in ("p_o", "p_e", "kappa"))
    assert (got.sensitivity, got.specificity) == (frac(want["sensitivity"]), frac(want["specificity"]))
    assert got.corrected == frac(want["rogan_gladen_prevalence"])


def test_a_table_that_shows_nothing_has_no_numbers() -> None:
    empty, one_sided = Confusion(0, 0, 0, 0), Confusion(5, 0, 0, 0)
    assert (empty.observed, empty.chance, empty.kappa, empty.sensitivity, empty.corrected) == (None,) * 5
    assert (one_sided.observed, one_sided.kappa, one_sided.specificity, one_sided.corrected) == (1, None, None, None)
    assert Confusion(1, 1, 1, 1).corrected is None  # a judge that tosses a coin: nothing can be corrected


def test_alpha() -> None:
    want = STATISTICS["krippendorff_alpha_nominal"]
    assert krippendorff_alpha(want["units"]) == frac(want["alpha"])
    assert krippendorff_alpha([[1, None], [0]]) is None
    assert krippendorff_alpha([[1, 1], [1, 1]]) is None
    assert krippendorff_alpha([["1", "1"], ["n/a", "n/a"]]) == 1


def test_mcnemar() -> None:
    want = STATISTICS["mcnemar_exact_two_sided"]
    assert round(float(mcnemar(want["b"], want["c"])), 4) == want["p_rounded_4"]
    assert (mcnemar(0, 0), mcnemar(1, 1), mcnemar(0, 5)) == (1, 1, F(1, 16))
    with pytest.raises(ValueError, match="counts of at least 0"):
        mcnemar(-1, 2)


@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemar_has_no_direction(up: int, down: int) -> None:
    assert mcnemar(up, down) == mcnemar(down, up)
    assert 0 < mcnemar(up, down) <= 1


def test_scenario_passes_by_n() -> None:
    want = STATISTICS["scenario_pass_by_n"]
    rate = frac(want["true_rate"])
    assert {n: scenario_passes(rate, n) for n in want["expected_r"]} == {n: frac(p) for n, p in want["expected_r"].items()}
    assert {n: round(float(scenario_passes(rate, n)), 3) for n in want["rounded_3"]} == want["rounded_3"]


def test_a_perfect_agent_by_the_judges_error() -> None:
    want = STATISTICS["perfect_agent_by_judge_error"]
    for error, expected in want["false_failure_to_pass_rounded_2"].items():
        level1 = F(str((1 - float(error)) ** float(want["checks"])))
        assert round(float(scenario_passes(level1, want["n"])), 2) == expected


def test_errorless_labels() -> None:
    want = STATISTICS["zero_false_failures_needed"]
    assert errorless_labels_needed(frac(want["upper_bound"]), frac(want["confidence"])) == want["smallest_n"]
    with pytest.raises(ValueError, match="between 0 and 1"):
        errorless_labels_needed(F(0))
