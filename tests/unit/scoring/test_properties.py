"""Scores over arbitrary runs: bounds, order, lattices, and what must not depend on anything."""

from __future__ import annotations

import random
from fractions import Fraction as F
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realcli.benchmark.catalogue import load_catalogue
from realcli.scoring.aggregate import configuration_scores
from realcli.scoring.levels import collaboration
from realcli.scoring.runs import Observation, Run, conjunction
from realcli.scoring.scorerow import decimal, score_row, signed
from realcli.scoring.tree import tree_of
from tests.support.examples import examples

TREE = tree_of(load_catalogue())
SCENARIOS = [q for subs in TREE.values() for qs in subs.values() for q in qs]
SMALL = {"U": {"u1": ("a", "b"), "u2": ("c",)}, "S": {"s1": ("d",)}, "SR": {"r1": ("e", "f")}}

verdicts = st.lists(st.sampled_from(["1", "0", "n/a", "unscored"]), max_size=3).map(tuple)
observations = st.builds(Observation, verdicts, st.booleans())


@st.composite
def many_runs(draw: st.DrawFn) -> list[Run]:
    found = []
    for task in "xyz"[: draw(st.integers(1, 3))]:
        for repeat in (1, 2):
            for mode in ("EXEC", "COLLAB"):
                scenarios = draw(st.dictionaries(st.sampled_from("abcdef"), observations)) if mode == "COLLAB" else {}
                reward = draw(st.sampled_from([None, F(0), F(1, 2), F(1)]))
                found.append(Run("c", task, mode, repeat, draw(st.integers(0, 4)) > 0, reward, scenarios))
    return found


@given(many_runs(), st.randoms())
def test_order_of_runs_changes_nothing(runs: list[Run], rng: random.Random) -> None:
    shuffled = rng.sample(runs, len(runs))
    assert configuration_scores("c", shuffled, SMALL) == configuration_scores("c", runs, SMALL)


@given(many_runs())
def test_bounds_and_identity(runs: list[Run]) -> None:
    got = configuration_scores("c", runs, SMALL)
    for repeat in got.repeats.values():
        part = repeat.collaboration
        if part.s is not None:
            assert part.s_low is not None
            assert part.s_high is not None
            assert part.s_low <= part.s <= part.s_high
    for rate, bounds in ((got.r_exec, got.r_exec_bounds), (got.r_collab, got.r_collab_bounds)):
        assert rate is None or (bounds is not None and 0 <= bounds[0] <= bounds[1] <= 1)
    complete = [r for r in runs if all(o.valid for o in runs if (o.task, o.repeat) == (r.task, r.repeat))]
    if complete:
        rate = {m: F(sum(r.success for r in complete if r.mode == m), got.flips.pairs) for m in ("EXEC", "COLLAB")}
        assert rate["COLLAB"] - rate["EXEC"] == got.flips.delta_r
    else:
        assert got.flips.delta_r is None


@given(many_runs(), st.sampled_from(["1", "0"]))
def test_an_invalid_run_changes_counts_only(runs: list[Run], verdict: Any) -> None:
    """What an invalid run would have shown has no way into a score."""
    other = [
        Run(r.configuration, r.task, r.mode, r.repeat, False, F(1), {"a": Observation((verdict,))}) if not r.valid else r
        for r in runs
    ]
    assert configuration_scores("c", other, SMALL) == configuration_scores("c", runs, SMALL)


LATTICE = {"U": 24, "S": 30, "OR": 18, "TC": 30, "SR": 30}


@settings(max_examples=examples(40))
@given(st.lists(st.booleans(), min_size=51, max_size=51))
def test_lattices_of_the_full_catalogue(passing: list[bool]) -> None:
    """With nothing excluded a dimension can only take values of its tree (measuring.md 4.5)."""
    got = collaboration([(q, Observation(("1" if p else "0",))) for q, p in zip(SCENARIOS, passing, strict=True)], TREE)
    assert set(got.profile.dimensions) == set(LATTICE)
    for dimension, value in got.profile.dimensions.items():
        assert (value * LATTICE[dimension]).denominator == 1
    assert not got.partial


def test_catalogue_tree() -> None:
    assert len(SCENARIOS) == len(set(SCENARIOS)) == 51
    assert {d: sum(len(qs) for qs in subs.values()) for d, subs in TREE.items()} == {"U": 8, "S": 11, "OR": 8, "TC": 11, "SR": 13}
    assert sum(len(subs) for subs in TREE.values()) == 22


def test_one_scenario_is_partial_and_marked() -> None:
    q = "or.verify.concurrent-edit"
    runs = [
        Run("c", t, "COLLAB", r, True, F(r == 1), {q: Observation(("1", "1" if t == "x" else "0"))}) for t in "xy" for r in (1, 2)
    ]
    got = configuration_scores("c", runs, TREE)
    assert (got.partial, got.headline_s, got.s, got.s_rate) == (True, False, F(0), F(1, 2))
    assert score_row(got).dump() == {
        "configuration": "c",
        "rCollab": "0.500",
        "s": "0.500~",
        "j": "0.250",
    }  # J of the S shown: (1·½ + 0·½) / 2


def test_nothing_observed_is_not_zero() -> None:
    got = configuration_scores("c", [Run("c", "x", "COLLAB", 1, True, F(1))], TREE)
    assert (got.s, got.s_rate, got.j, got.r_exec) == (None, None, None, None)
    assert score_row(got).dump() == {"configuration": "c", "rCollab": "1.000"}


def test_conjunction_of_one_scenario_bound_twice() -> None:
    both = conjunction([Observation(("1", "1")), Observation(("0",))])
    assert both.verdicts == ("1", "1", "0")
    assert conjunction([Observation(reason="not_reached"), Observation(("1",))]).triggered
    assert conjunction([Observation(("1",)), Observation(("1",), contaminated=True)]).contaminated


def test_refuses_what_is_not_one_configuration() -> None:
    with pytest.raises(ValueError, match="x COLLAB repeat 1 stands twice"):
        configuration_scores("c", [Run("c", "x", "COLLAB", 1, True)] * 2, SMALL)
    with pytest.raises(ValueError, match="a run of d stands among those of c"):
        configuration_scores("c", [Run("d", "x", "COLLAB", 1, True)], SMALL)
    with pytest.raises(ValueError, match="is invalid"):
        _ = Run("c", "x", "COLLAB", 1, False).success


@pytest.mark.parametrize(
    ("value", "text", "with_sign"),
    [(F(8, 15), "0.533", "+0.533"), (F(-1, 15), "-0.067", "-0.067"), (F(0), "0.000", "0.000"), (F(1, 2000), "0.001", "+0.001"),
     (F(-1, 9999), "0.000", "0.000"), (F(1, 9999), "0.000", "0.000"), (F(1), "1.000", "+1.000")],
)  # fmt: skip
def test_decimals(value: F, text: str, with_sign: str) -> None:
    assert (decimal(value), signed(value)) == (text, with_sign)
