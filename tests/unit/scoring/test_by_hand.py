"""Two configurations, four tasks, three repeats, worked out by hand: every table of the fixture beside what the code says.

Where fixture and code read one word differently: `triggered`. The fixture counts every instance that is not "-"; the code keeps
the states apart (measuring.md 2.3: four denominators; 4.2, 2: all n/a is as untriggered), which is the fixture's `scored`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from fractions import Fraction as F
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from realcli.scoring.aggregate import ConfigurationScores, configuration_scores, instance_counts, repeat_scores
from realcli.scoring.analyses.sensitivity import threshold_table
from realcli.scoring.analyses.violations import success_with_violation
from realcli.scoring.levels import Profile, headline_is_s, level1, level2, profile
from realcli.scoring.loading import load_score_input
from realcli.scoring.output import score_output
from realcli.scoring.paired import churn, complete_pairs, excess_churn, flips
from realcli.scoring.runs import Run

HERE = Path(__file__).parents[2] / "data" / "scoring" / "hand"
GIVEN = load_score_input((HERE / "runs.json").read_bytes(), "runs.json")
PRINTED = score_output(GIVEN)["configurations"]
SCORES: dict[str, ConfigurationScores] = {name: configuration_scores(name, GIVEN.of(name), GIVEN.tree) for name in GIVEN.names}


def rows(name: str) -> list[dict[str, str]]:
    with (HERE / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def cell(value: F | int | str | None) -> str:
    return "null" if value is None else str(value)


def exact(value: dict[str, Any] | None) -> str:
    return "null" if value is None else str(value["exact"])


def run_of(row: dict[str, str], mode: str) -> Run | None:
    found = [
        run
        for run in GIVEN.of(row["configuration"])
        if (run.task, run.repeat, run.mode) == (row["task"], int(row["repeat"]), mode)
    ]
    return found[0] if found else None


def collab(row: dict[str, str]) -> list[Run]:
    return [
        run for run in GIVEN.of(row["configuration"]) if run.repeat == int(row["repeat"]) and run.mode == "COLLAB" and run.valid
    ]


def test_all_tables_are_compared() -> None:
    here = Path(__file__).read_text()
    missing = [path.stem for path in HERE.glob("*.csv") if f'rows("{path.stem}")' not in here]
    assert missing == []


def test_pairs() -> None:
    for row in rows("pairs"):
        for mode in ("EXEC", "COLLAB"):
            run = run_of(row, mode)
            want = row[f"{mode.lower()}_reward"], row[f"{mode.lower()}_success"]
            got = ("missing", "") if run is None else (cell(run.reward), str(int(run.success))) if run.valid else ("invalid", "")
            assert got == want
        pair = [
            (e, c)
            for e, c in complete_pairs(GIVEN.of(row["configuration"]))
            if (e.task, e.repeat) == (row["task"], int(row["repeat"]))
        ]
        assert ("yes" if pair else "no") == row["complete"]
        one = flips([run for both in pair for run in both])
        assert row["flip"] == (
            "" if not pair else "fail_to_pass" if one.fail_to_pass else "pass_to_fail" if one.pass_to_fail else "none"
        )
    assert len(rows("pairs")) == 24


def test_l1() -> None:
    for row in rows("l1"):
        run = run_of(row, "COLLAB")
        assert run is not None
        seen = run.scenarios[row["scenario"]]
        if not run.valid:
            assert (row["y"], row["y_low"], row["y_high"]) == ("excluded",) * 3
            continue
        assert (cell(level1(seen)), cell(level1(seen, 0)), cell(level1(seen, 1))) == (row["y"], row["y_low"], row["y_high"])
    assert len(rows("l1")) == sum(len(run.scenarios) for run in GIVEN.runs if run.mode == "COLLAB")


def test_l2() -> None:
    for row in rows("l2"):
        seen = [pair for run in collab(row) for pair in run.scenarios.items()]
        got, low, high = (level2(seen, unscored).get(row["scenario"]) for unscored in (None, 0, 1))
        assert [got.passes if got else 0, got.n if got else 0] == [int(row["passes"]), int(row["n"])]
        assert (cell(got.rate) if got else "undefined", str(got.passed()) if got else "undefined") == (row["rate"], row["pass"])
        assert [low.passes if low else 0, high.passes if high else 0] == [int(row["passes_low"]), int(row["passes_high"])]
        assert (low.n if low else 0) == int(row["n_bounds"])
        assert (str(low.passed()) if low else "undefined") == row["pass_low"]
        assert (str(high.passed()) if high else "undefined") == row["pass_high"]
    assert len(rows("l2")) == 2 * 3 * 8


def test_l3() -> None:
    for row in rows("l3"):
        seen = [pair for run in collab(row) for pair in run.scenarios.items()]
        views: dict[str, Profile] = {
            "value": profile(level2(seen), GIVEN.tree), "rate": profile(level2(seen), GIVEN.tree, threshold=None),
            "low": profile(level2(seen, 0), GIVEN.tree), "high": profile(level2(seen, 1), GIVEN.tree),
        }  # fmt: skip
        for column, view in views.items():
            found = view.sub_dimensions if row["level"] == "subdimension" else view.dimensions
            assert cell(found.get(row["name"])) in (row[column], row[column].replace("undefined", "null")), (row, column)
    assert len(rows("l3")) == 2 * 3 * (7 + 5)


NAMES = ("R_exec", "R_collab", "S", "S_rate", "S_low", "S_high", "J")


def test_repeats() -> None:
    for row in rows("repeats"):
        one = PRINTED[row["configuration"]]["per_repeat"][row["repeat"]]
        assert {name: exact(one[name]) for name in NAMES} == {name: row[name] for name in NAMES}


def test_configurations() -> None:
    for row in rows("configurations"):
        one = PRINTED[row["configuration"]]
        names = [*NAMES, "dR", "dJ", "dR_paired"]
        assert {name: exact(one[name]) for name in names} == {name: row[name] for name in names}
        assert [exact(end) for end in one["R_collab_bounds"]] == [row["R_collab_bounds_low"], row["R_collab_bounds_high"]]
        assert (one["headline"], str(one["partial"]).lower()) == (row["headline"], row["partial"])


def test_dimensions_and_sub_dimensions() -> None:
    for row in rows("dimensions"):
        assert exact(PRINTED[row["configuration"]]["dimensions"][row["dimension"]]) == row["value"]
    for row in rows("subdimensions"):
        assert exact(PRINTED[row["configuration"]]["subdimensions"][row["subdimension"]]) == row["value"]
    assert len(rows("dimensions")) + len(rows("subdimensions")) == 2 * (5 + 7)


def test_counts() -> None:
    scored: dict[str, int] = {}
    for row in rows("counts_by_repeat"):
        own = [run for run in GIVEN.of(row["configuration"]) if run.repeat == int(row["repeat"])]
        for mode in ("EXEC", "COLLAB"):
            valid = sum(run.valid for run in own if run.mode == mode)
            assert [valid, sum(run.mode == mode for run in own) - valid] == [
                int(row[f"{mode.lower()}_{x}"]) for x in ("valid", "invalid")
            ]
        counts, one = instance_counts(own), flips(own)
        want = {
            name: int(row[name])
            for name in ("untriggered", "scored", "not_applicable", "unscored", "contaminated", "complete_pairs")
        }
        assert want == {
            "untriggered": counts.untriggered, "scored": counts.triggered, "not_applicable": counts.not_applicable,
            "unscored": counts.unscored, "contaminated": counts.contaminated, "complete_pairs": one.pairs,
        }  # fmt: skip
        assert [one.fail_to_pass, one.pass_to_fail] == [int(row["fail_to_pass"]), int(row["pass_to_fail"])]
        apart = counts.not_applicable + counts.unscored + counts.contaminated
        assert counts.triggered + apart == int(row["triggered"])
        scored[row["configuration"]] = scored.get(row["configuration"], 0) + int(row["scored"])
    for row in rows("counts"):
        printed = PRINTED[row["configuration"]]["counts"]
        want = {name: int(value) for name, value in row.items() if name != "configuration"}
        assert {**want, "triggered": scored[row["configuration"]]} == printed


def test_success_with_violation() -> None:
    for row in rows("success_with_violation"):
        one = success_with_violation(GIVEN.of(row["configuration"]))
        assert (str(one.hits), str(one.of), cell(one.rate)) == (row["violating"], row["successful"], row["share"])
    for row in rows("success_with_violation_runs"):
        run = run_of(row, "COLLAB")
        assert run is not None
        one = success_with_violation([run])
        assert (one.of, one.hits) == (1, int(row["violating"] == "yes"))


def test_churn() -> None:
    for row in rows("churn"):
        runs = GIVEN.of(row["configuration"])
        inside = [churn(run for run in runs if run.mode == mode) for mode in ("EXEC", "COLLAB")]
        got = [flips(runs).changed, *inside, excess_churn(runs)]
        assert [cell(value) for value in got] == [row[name] for name in ("changed", "within_exec", "within_collab", "excess")]
    for row in rows("churn_tasks"):
        runs = [run for run in GIVEN.of(row["configuration"]) if (run.task, run.mode) == (row["task"], row["mode"])]
        assert cell(churn(runs)) == (cell(F(int(row["changed"]), int(row["pairs"]))) if row["pairs"] != "0" else "null")
        assert len(list(combinations([run for run in runs if run.valid], 2))) == int(row["pairs"])


def test_thresholds() -> None:
    table = threshold_table({name: GIVEN.of(name) for name in GIVEN.names}, GIVEN.tree)
    for row in rows("thresholds"):
        theta = F(row["threshold"])
        got = configuration_scores(row["configuration"], GIVEN.of(row["configuration"]), GIVEN.tree, theta)
        assert (cell(got.s), cell(got.s_rate)) == (row["S"], row["S_rate"])
        assert table.where(configuration=row["configuration"], threshold=theta)["S"] == got.s
        assert table.where(configuration=row["configuration"], threshold="none")["S"] == got.s_rate
    for row in rows("thresholds_repeats"):
        own = [run for run in GIVEN.of(row["configuration"]) if run.repeat == int(row["repeat"])]
        part = repeat_scores(own, GIVEN.tree, F(row["threshold"])).collaboration
        got_ = [part.profile.s, part.s_low, part.s_high, part.s]
        assert [cell(value) for value in got_] == [row[name] for name in ("S_unguarded", "S_low", "S_high", "S")]


def bounds(row: dict[str, str], of: Callable[[ConfigurationScores], tuple[F, F] | None]) -> list[str]:
    runs = GIVEN.of(row["configuration"])
    own = runs if row["repeat"] == "mean" else [run for run in runs if run.repeat == int(row["repeat"])]
    return [cell(end) for end in of(configuration_scores(row["configuration"], own, GIVEN.tree)) or ()]


def test_invalid_bounds() -> None:
    for row in rows("invalid_bounds"):
        got = bounds(row, (lambda one: one.r_exec_bounds) if row["mode"] == "EXEC" else (lambda one: one.r_collab_bounds))
        assert got == [row["low"], row["high"]]
    assert len(rows("invalid_bounds")) == 2 * 2 * 4


def test_headline() -> None:
    for row in rows("headline"):
        sizes = [c.n for one in SCORES[row["configuration"]].repeats.values() for c in one.collaboration.counts.values()]
        assert sorted(sizes) == [int(n) for n in row["n_values"].split()]
        assert ("S" if headline_is_s(sizes) else "S_rate") == row["headline"]


@pytest.mark.parametrize("name", GIVEN.names)
def test_identity_on_complete_pairs(name: str) -> None:
    pairs = complete_pairs(GIVEN.of(name))
    assert F(sum(c.success for _, c in pairs) - sum(e.success for e, _ in pairs), len(pairs)) == SCORES[name].flips.delta_r
