"""Every value of scoring_vectors.yaml. What stands elsewhere is named in `ELSEWHERE`, and nothing else is left."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import pytest
import yaml

from realcli.scoring.aggregate import ConfigurationScores, configuration_scores
from realcli.scoring.analyses import near_misses, pooled_counts, success_with_violation
from realcli.scoring.levels import (
    HEADLINE_MEDIAN,
    MAX_SPREAD,
    THRESHOLD,
    Counts,
    collaboration,
    headline_is_s,
    level1,
    level2,
    profile,
)
from realcli.scoring.paired import churn, excess_churn, flips
from realcli.scoring.runs import Observation, Run

VECTORS: dict[str, Any] = yaml.safe_load((Path(__file__).parents[2] / "data" / "scoring_vectors.yaml").read_text())
WORKED, EDGE = VECTORS["worked_example"], VECTORS["edge_cases"]
WANT = WORKED["expected"]
TREE = {d: {s: tuple(qs) for s, qs in subs.items()} for d, subs in WORKED["tree"].items()}
ELSEWHERE = {
    "statistics": "test_agreement.py",
    "paper_consistency": "test_paper_consistency.py",
}
VERDICT = {1: "1", 0: "0", "n": "n/a", "u": "unscored"}


def frac(value: object) -> F:
    return F(str(value))


def seen(verdicts: Any, contaminated: bool = False) -> Observation:
    return Observation(() if verdicts == "-" else tuple(VERDICT[v] for v in verdicts), contaminated)


def runs(drop: tuple[str, ...] = (), invalid: str = "") -> list[Run]:
    """The worked example; `drop` marks instances contaminated, `invalid` names one run that has no outcome."""
    found = []
    for repeat, tasks in WORKED["collab"].items():
        for task, row in tasks.items():
            scenarios = {q: seen(v, contaminated=f"{repeat}.{task}.{q}" in drop) for q, v in row.items() if q != "success"}
            found.append(Run("c", task, "COLLAB", repeat, f"{repeat}.{task}.COLLAB" != invalid, F(row["success"]), scenarios))
    summaries = WORKED["exec_failed_check_summaries"]
    for repeat, successes in WORKED["exec_success"].items():
        for task, success in successes.items():
            summary = summaries.get(f"{repeat}.{task}")
            found.append(Run("c", task, "EXEC", repeat, True, F(success), {}, tuple(summary) if summary else None))
    return found


def scores(**changes: Any) -> ConfigurationScores:
    return configuration_scores("c", runs(**changes), TREE)


def collab_of(repeat: int, drop: tuple[str, ...] = ()) -> list[tuple[str, Observation]]:
    return [p for r in runs(drop) if r.mode == "COLLAB" and r.repeat == repeat for p in r.scenarios.items()]


def triple(counts: Counts) -> list[int]:
    return [counts.passes, counts.n, counts.passed()]


def by_repeat(name: str) -> dict[Any, F]:
    return {key: frac(value) for key, value in WANT[name].items()}


def test_rules_are_those_of_the_vectors() -> None:
    rules = VECTORS["rules"]
    assert F(rules["l2_threshold"]["num"], rules["l2_threshold"]["den"]) == THRESHOLD
    assert frac(rules["S_undefined_if_spread_over"]) == MAX_SPREAD
    assert rules["headline_S_needs_median_n_q"] == HEADLINE_MEDIAN


def test_l2_counts() -> None:
    counts = level2(collab_of(1))
    got = {q: triple(counts[q]) if q in counts else "excluded" for q in WANT["l2_counts_repeat_1"]}
    assert got == WANT["l2_counts_repeat_1"]


def test_dimensions() -> None:
    got = {r: dict(s.collaboration.profile.dimensions) for r, s in scores().repeats.items()}
    assert got == {r: {d: frac(v) for d, v in row.items()} for r, row in WANT["dimensions"].items()}


PER_REPEAT: dict[str, Callable[[ConfigurationScores], dict[Any, F | None]]] = {
    "S": lambda c: {**{r: s.collaboration.s for r, s in c.repeats.items()}, "mean": c.s},
    "R_collab": lambda c: {**{r: s.r_collab for r, s in c.repeats.items()}, "mean": c.r_collab},
    "R_exec": lambda c: {**{r: s.r_exec for r, s in c.repeats.items()}, "mean": c.r_exec},
    "J": lambda c: {**{r: s.j for r, s in c.repeats.items()}, "mean": c.j},
}


@pytest.mark.parametrize("name", PER_REPEAT)
def test_per_repeat_and_mean(name: str) -> None:
    assert PER_REPEAT[name](scores()) == by_repeat(name)


def test_j_of_means_is_another_number() -> None:
    got = scores()
    assert got.r_collab is not None
    assert got.s is not None
    assert got.r_collab * got.s == frac(WANT["J_of_means_variant"]) != got.j


def test_differences() -> None:
    got = scores()
    assert (got.delta_r, got.delta_j) == (frac(WANT["delta_R"]), frac(WANT["delta_J"]))
    parts = WANT["delta_J_parts"]
    assert got.delta_j_parts == (frac(parts["task"]), frac(parts["collaboration"]))
    assert got.delta_j_parts is not None
    assert sum(got.delta_j_parts) == got.delta_j


def test_flips_and_their_identity() -> None:
    got, want = flips(runs()), WANT["flips"]
    assert (got.fail_to_pass, got.pass_to_fail, got.pairs) == (want["fail_to_pass"], want["pass_to_fail"], want["pairs"])
    assert got.changed == frac(want["changed_rate"])
    assert got.delta_r == scores().delta_r  # all pairs are complete


def test_success_with_violation() -> None:
    got, want = success_with_violation(runs()), WANT["success_with_violation"]
    assert (got.hits, got.of) == (want["violating"], want["successful"])


def test_near_miss() -> None:
    got, want = near_misses(runs()), WANT["near_miss_90"]
    assert (got.hits, got.of) == (want["near"], want["with_summary"])


def test_strict_pass_rates() -> None:
    pooled = pooled_counts(runs())
    assert {"q_s1": pooled["q_s1"].rate, "t1": pooled["q_t1"].rate} == {k: frac(v) for k, v in WANT["strict_pass_rate"].items()}


def test_pooling_repeats_before_l2_is_another_number() -> None:
    assert profile(pooled_counts(runs()), TREE).s == frac(WANT["S_repeats_pooled_before_L2_variant"]) != scores().s


@pytest.mark.parametrize("threshold", WANT["S_repeat_1_by_threshold"])
def test_threshold(threshold: str) -> None:
    value = None if threshold == "mean_rate_no_threshold" else frac(threshold)
    assert profile(level2(collab_of(1)), TREE, threshold=value).s == frac(WANT["S_repeat_1_by_threshold"][threshold])


def test_contaminated_instances_leave_whatever_they_showed() -> None:
    case = WANT["exclude_contaminated_variant"]
    second = scores(drop=tuple(case["drop"])).repeats[2]
    assert (second.collaboration.s, second.j) == (frac(case["S_2"]), frac(case["J_2"]))
    case = WANT["exclude_contaminated_pass_variant"]
    first = scores(drop=tuple(case["drop"])).repeats[1]
    assert triple(first.collaboration.counts["q_u1a"]) == case["q_u1a"]
    got = (first.collaboration.profile.dimensions["U"], first.collaboration.s, first.j)
    assert got == (frac(case["U_1"]), frac(case["S_1"]), frac(case["J_1"]))


def test_churn() -> None:
    want = WANT["churn"]
    inside = [churn(r for r in runs() if r.mode == mode) for mode in ("EXEC", "COLLAB")]
    assert [*inside, excess_churn(runs())] == [frac(want["within_exec"]), frac(want["within_collab"]), frac(want["excess"])]
    assert flips(runs()).changed == frac(want["changed"])


def test_headline() -> None:
    case, first = WANT["headline_repeat_1"], scores().repeats[1].collaboration
    sizes = sorted(counts.n for counts in first.counts.values())
    assert (sizes, statistics.median(sizes)) == (case["n_q"], case["median"])
    assert [headline_is_s(n) for n in ([8], [7, 8], [1, 8, 9], [])] == [True, False, True, False]
    assert ("S" if headline_is_s(sizes) else "S_rate", first.s_rate) == (case["headline"], frac(case["S_rate"]))


def test_one_invalid_run() -> None:
    case = WANT["one_invalid_run"]
    got = scores(invalid=case["invalid"])
    assert (got.flips.pairs, got.flips.fail_to_pass, got.flips.pass_to_fail) == (
        case["complete_pairs"], case["fail_to_pass"], case["pass_to_fail"],
    )  # fmt: skip
    assert got.flips.delta_r == frac(case["delta_R_paired"])
    assert (got.r_collab, got.delta_r) == (frac(case["R_collab_marginal"]), frac(case["delta_R_marginal"]))
    assert got.r_collab_bounds == (frac(case["R_collab_invalid_as_0"]), frac(case["R_collab_invalid_as_1"]))
    assert (got.valid, got.invalid) == ({"EXEC": 15, "COLLAB": 14}, {"EXEC": 0, "COLLAB": 1})


@pytest.mark.parametrize(("passes", "n", "r"), EDGE["threshold"])
def test_threshold_is_exact(passes: int, n: int, r: int) -> None:
    assert Counts(passes, n).passed() == r


@pytest.mark.parametrize("case", EDGE["l1"], ids=lambda case: str(case["v"]))
def test_l1(case: dict[str, Any]) -> None:
    observation = seen(case["v"])
    assert level1(observation) == case["y"]
    if "low" in case:
        assert (level1(observation, 0), level1(observation, 1)) == (case["low"], case["high"])


@pytest.mark.parametrize("name", ["unscored_flips_a_scenario", "unscored_changes_nothing"])
def test_unscored(name: str) -> None:
    case = EDGE[name]
    tree = {"U": {"u": ("q",)}, **{d: {d: (f"q_{d}",)} for d in ("S", "OR", "TC", "SR")}}
    of_q = [Observation((v,)) for v, key in (("1", "passes"), ("0", "fails"), ("unscored", "unscored"))
            for _ in range(case["instances"][key])]  # fmt: skip
    observed = [("q", o) for o in of_q] + [(f"q_{d}", Observation(("1",))) for d in ("S", "OR", "TC", "SR")]
    for key, unscored in (("S", None), ("S_low", 0), ("S_high", 1)):
        assert triple(level2(observed, unscored)["q"]) == case["counts"][key]
    got = collaboration(observed, tree)
    assert (got.s_low, got.s_high) == (frac(case["S_low"]), frac(case["S_high"]))
    assert got.s == (None if case["S"] == "undefined" else frac(case["S"]))


def test_contamination_is_symmetric() -> None:
    case = EDGE["contamination"]

    def rows(part: str, contaminated: bool) -> list[tuple[str, Observation]]:
        one, zero = case[part]["passes"], case[part]["fails"]
        return [("q", Observation((v,), contaminated)) for v in ["1"] * one + ["0"] * zero]

    assert triple(level2(rows("clean", False) + rows("contaminated", True))["q"]) == case["right"]
    assert case["right"] != case["wrong_only_failures_removed"]


def test_nothing_else_is_left_out() -> None:
    assert set(VECTORS) - {"schema", "rules", "worked_example", "edge_cases"} == set(ELSEWHERE)
