"""What may be done to runs without changing a score, and what may change it in one direction only."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction as F
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from realcli.scoring.aggregate import ConfigurationScores, configuration_scores
from realcli.scoring.document import ScoreInput
from realcli.scoring.output import score_output
from realcli.scoring.records import Verdict
from realcli.scoring.runs import Observation, Run, Tree

TREE: Tree = {"U": {"u1": ("a", "b"), "u2": ("c",)}, "S": {"s1": ("d",)}, "SR": {"r1": ("e", "f")}}
LETTERS: list[Verdict] = ["1", "0", "n/a", "unscored"]
verdicts = st.lists(st.sampled_from(LETTERS), max_size=3).map(tuple)
observations = st.builds(Observation, verdicts, st.booleans())


@st.composite
def many_runs(draw: st.DrawFn) -> list[Run]:
    found = []
    for task in "xyz":
        for repeat in (1, 2):
            for mode in ("EXEC", "COLLAB"):
                if draw(st.integers(0, 7)):
                    scenarios = draw(st.dictionaries(st.sampled_from("abcdef"), observations)) if mode == "COLLAB" else {}
                    reward = draw(st.sampled_from([None, F(0), F(1, 2), F(1)]))
                    found.append(Run("c", task, mode, repeat, draw(st.integers(0, 5)) > 0, reward, scenarios))
    return found


def scored(runs: list[Run], tree: Tree = TREE) -> ConfigurationScores:
    return configuration_scores("c", runs, tree)


def values(one: ConfigurationScores) -> tuple[object, ...]:
    """Every score; no count."""
    per_repeat = [(r.r_exec, r.r_collab, r.collaboration.s, r.collaboration.s_rate, r.collaboration.s_low, r.j)
                  for r in one.repeats.values()]  # fmt: skip
    rates = (one.r_exec, one.r_collab, one.s, one.s_rate, one.s_low, one.s_high, one.j, one.j_rate, one.delta_r, one.delta_j)
    return (*rates, one.flips.delta_r, dict(one.dimensions), dict(one.sub_dimensions), per_repeat, one.partial)


def over_observations(runs: list[Run], of: Callable[[Observation], Observation]) -> list[Run]:
    return [replace(run, scenarios={q: of(seen) for q, seen in run.scenarios.items()}) for run in runs]


@given(many_runs(), st.randoms())
def test_names_and_orders_carry_nothing(runs: list[Run], rng: random.Random) -> None:
    """Tasks renamed, repeats renumbered, runs, checks, scenarios, sub-dimensions and dimensions in any order."""
    tasks = dict(zip("xyz", rng.sample(["t1", "t2", "t3"], 3), strict=True))
    renamed = [replace(run, task=tasks[run.task], repeat=run.repeat + 4) for run in runs]
    mixed = over_observations(renamed, lambda one: replace(one, verdicts=tuple(rng.sample(one.verdicts, len(one.verdicts)))))
    mixed = [replace(run, scenarios=dict(rng.sample(list(run.scenarios.items()), len(run.scenarios)))) for run in mixed]
    rng.shuffle(mixed)
    tree = {
        d: {s: tuple(rng.sample(qs, len(qs))) for s, qs in rng.sample(list(subs.items()), len(subs))}
        for d, subs in rng.sample(list(TREE.items()), len(TREE))
    }
    assert values(scored(mixed, tree)) == values(scored(runs))
    assert scored(mixed, tree).instances == scored(runs).instances


@given(many_runs(), many_runs())
def test_configurations_do_not_touch_each_other(runs: list[Run], others: list[Run]) -> None:
    alone = score_output(ScoreInput(TREE, tuple(runs)))["configurations"]
    both = score_output(ScoreInput(TREE, (*(replace(run, configuration="d") for run in others), *runs)))["configurations"]
    assert {name: one for name, one in both.items() if name == "c"} == alone


@given(many_runs())
def test_an_invalid_run_changes_counts_only(runs: list[Run]) -> None:
    """One more, with everything in it, in a cell that is free."""
    repeat = max((run.repeat for run in runs), default=1)
    known = [*runs, Run("c", "new", "EXEC", repeat, True, F(0))]
    extra = Run("c", "new", "COLLAB", repeat, False, F(1), {"a": Observation(("0",)), "d": Observation(("1",))})
    before, after = scored(known), scored([*known, extra])
    assert values(after) == values(before)
    assert (after.instances, after.flips) == (before.instances, before.flips)
    assert after.invalid["COLLAB"] == before.invalid["COLLAB"] + 1
    assert after.valid == before.valid


@given(many_runs())
def test_what_does_not_apply_leaves_no_trace(runs: list[Run]) -> None:
    """An n/a check more, or a contaminated, untriggered or all-n/a instance more, changes no score."""
    more = over_observations(runs, lambda one: replace(one, verdicts=(*one.verdicts, "n/a")))
    assert values(scored(more)) == values(scored(runs))
    for extra in (Observation(), Observation(("n/a", "n/a")), Observation(("0",), contaminated=True), Observation(("1",), True)):
        added = [replace(run, scenarios={q: extra for q in "abcdef"} | dict(run.scenarios)) if run.mode == "COLLAB" else run
                 for run in runs]  # fmt: skip
        assert values(scored(added)) == values(scored(runs))


@given(many_runs())
def test_a_check_twice_is_a_check(runs: list[Run]) -> None:
    """L1 is a conjunction: a check with the verdict of another adds nothing."""
    assert values(scored(over_observations(runs, lambda one: replace(one, verdicts=one.verdicts * 2)))) == values(scored(runs))


@given(many_runs())
def test_every_task_twice_is_the_same_suite(runs: list[Run]) -> None:
    twice = [replace(run, task=f"{run.task}{n}") for run in runs for n in range(2)]
    assert values(scored(twice)) == values(scored(runs))


@given(many_runs())
def test_every_repeat_twice_has_the_same_means(runs: list[Run]) -> None:
    again = [*runs, *(replace(run, repeat=run.repeat + 10) for run in runs)]
    one, two = scored(runs), scored(again)
    assert (one.s, one.j, one.r_exec, one.r_collab, one.s_low, one.s_high) == (
        two.s, two.j, two.r_exec, two.r_collab, two.s_low, two.s_high,
    )  # fmt: skip
    assert one.flips.delta_r == two.flips.delta_r


@given(many_runs())
def test_bounds_are_what_the_unscored_could_become(runs: list[Run]) -> None:
    """S_low and S_high are the scores with every u read as 0 and as 1, and S lies between in every repeat."""
    for read, name in (("0", "s_low"), ("1", "s_high")):
        known = over_observations(
            runs, lambda one, read=read: replace(one, verdicts=tuple(read if v == "unscored" else v for v in one.verdicts))  # type: ignore[misc]
        )  # fmt: skip
        resolved = scored(known)
        assert [getattr(one.collaboration, name) for one in scored(runs).repeats.values()] == [
            one.collaboration.s for one in resolved.repeats.values()
        ]
    for one in scored(runs).repeats.values():
        part = one.collaboration
        if part.profile.s is not None:  # also where it is withheld
            assert part.s_low is not None
            assert part.s_high is not None
            assert part.s_low <= part.profile.s <= part.s_high


@given(many_runs())
def test_what_nobody_decided_is_as_if_it_had_not_happened(runs: list[Run]) -> None:
    """An instance with an unscored check and none that failed leaves S and S_rate on both sides; only the bounds know of it."""

    def without(one: Observation) -> Observation:
        return Observation() if "unscored" in one.verdicts and "0" not in one.verdicts else one

    before, after = scored(runs), scored(over_observations(runs, without))
    for was, now in zip(before.repeats.values(), after.repeats.values(), strict=True):
        assert was.collaboration.profile.s == now.collaboration.profile.s
        assert was.collaboration.s_rate == now.collaboration.s_rate


@given(many_runs(), st.data())
def test_a_repaired_failure_never_costs(runs: list[Run], data: st.DataObject) -> None:
    """One 0 that becomes a 1, or one failed run that becomes a success, lowers nothing."""
    failing = [(n, q) for n, run in enumerate(runs) for q, one in run.scenarios.items() if "0" in one.verdicts]
    better = list(runs)
    if failing:
        n, q = data.draw(st.sampled_from(failing))
        one = runs[n].scenarios[q]
        repaired = replace(one, verdicts=tuple("1" if v == "0" else v for v in one.verdicts if v != "unscored"))
        better[n] = replace(runs[n], scenarios={**runs[n].scenarios, q: repaired})
        unopened = replace(one, verdicts=tuple(v for v in one.verdicts if v != "unscored"))
        runs = [*runs[:n], replace(runs[n], scenarios={**runs[n].scenarios, q: unopened}), *runs[n + 1 :]]
    raised = [replace(run, reward=F(1)) if run.mode == "COLLAB" else run for run in better]
    for lower, upper in ((runs, better), (better, raised)):
        for was, now in zip(scored(lower).repeats.values(), scored(upper).repeats.values(), strict=True):
            for old, new in (
                (was.collaboration.profile.s, now.collaboration.profile.s),
                (was.collaboration.s_rate, now.collaboration.s_rate),
                (was.r_collab, now.r_collab),
            ):
                assert old is None or (new is not None and old <= new)


@given(many_runs())
def test_products_and_parts(runs: list[Run]) -> None:
    """J is at most R and at most S; everything lies in 0..1; dJ is the sum of its parts."""
    got = scored(runs)
    for one in got.repeats.values():
        if one.j is not None:
            assert one.r_collab is not None
            assert one.collaboration.s is not None
            assert 0 <= one.j <= min(one.r_collab, one.collaboration.s) <= 1
    if got.delta_j_parts is not None:
        assert sum(got.delta_j_parts) == got.delta_j


@given(many_runs())
def test_a_higher_threshold_never_passes_more(runs: list[Run]) -> None:
    thresholds = (F(1, 2), F(3, 4), F(1))
    for low, high in pairwise(thresholds):
        for loose, strict in zip(
            configuration_scores("c", runs, TREE, low).repeats.values(),
            configuration_scores("c", runs, TREE, high).repeats.values(),
            strict=True,
        ):
            if loose.collaboration.profile.s is not None:
                assert strict.collaboration.profile.s is not None
                assert strict.collaboration.profile.s <= loose.collaboration.profile.s
