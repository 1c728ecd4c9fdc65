"""Two results beside each other: paired, refused where they are not of one kind, gated by probabilities."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli.scoring.compare import CompareError, check_comparable, compare, match
from realcli.scoring.document import ScoreInput
from realcli.scoring.gates import MEASURES, GateError, parse_gate
from realcli.scoring.runs import Observation, Run, Tree

TREE: Tree = {"U": {"u": ("q",)}}


def agent(rate: float, tasks: int = 12, seed: int = 1, name: str = "c") -> ScoreInput:
    """An agent that succeeds, and passes its scenario, with this rate."""
    rng = random.Random(seed)
    runs = []
    for task in range(tasks):
        for repeat in (1, 2, 3):
            seen = {"q": Observation(("1" if rng.random() < rate else "0",))}
            runs.append(Run(name, f"t{task:02d}", "EXEC", repeat, True, F(int(rng.random() < rate))))
            runs.append(Run(name, f"t{task:02d}", "COLLAB", repeat, True, F(int(rng.random() < rate)), seen))
    return ScoreInput(TREE, tuple(runs), benchmark="sha256:b", judge="sha256:j")


def test_the_same_result_twice_never_changed() -> None:
    one = agent(0.6)
    found = compare(one, one, ("c", "c"))
    assert set(found.changes) == set(MEASURES)
    for change in found.changes.values():
        assert change.difference == 0
        assert np.all(np.abs(change.drawn) < 1e-12)
        assert change.smallest_drop() is None  # nothing shows how far tasks scatter: 0 would promise that any drop is found
        assert change.smallest_drop(bound=-0.05) is None


def test_a_worse_agent_is_found_and_a_better_one_is_not() -> None:
    gate = parse_gate("P(dJ_rate < -0.05) > 0.95")
    worse = compare(agent(0.9), agent(0.4, seed=2), ("c", "c")).changes["dJ_rate"]
    better = compare(agent(0.4), agent(0.9, seed=2), ("c", "c")).changes["dJ_rate"]
    assert gate.fires(worse.probability(gate))
    assert not gate.fires(better.probability(gate))
    assert worse.difference is not None
    assert worse.interval is not None
    assert worse.interval.low < float(worse.difference) < worse.interval.high < 0


def test_a_and_b_swapped_change_the_sign() -> None:
    a, b = agent(0.8), agent(0.5, seed=2)
    there, back = compare(a, b, ("c", "c")), compare(b, a, ("c", "c"))
    for measure in MEASURES:
        assert there.changes[measure].difference == -(back.changes[measure].difference or 0)
        assert np.allclose(there.changes[measure].drawn, -back.changes[measure].drawn)


def test_pairing_takes_out_what_makes_tasks_hard() -> None:
    """Half the tasks are hopeless for both: the spread of the difference is far below that of either side."""
    runs = [Run("c", f"t{n:02d}", "EXEC", 1, True, F(int(n % 2))) for n in range(20)]
    a = ScoreInput(TREE, tuple(runs))
    b = ScoreInput(TREE, tuple(replace(run, reward=F(0)) if run.task == "t01" else run for run in runs))
    change = compare(a, b, ("c", "c")).changes["dR_exec"]
    assert change.difference == F(-1, 20)
    assert float(change.drawn.std()) == pytest.approx(math.sqrt(1 / 20 * 19 / 20 / 21), rel=0.1)


def spoilt(given: ScoreInput, *cells: tuple[str, str, int]) -> ScoreInput:
    """The same with these runs invalid."""
    return replace(given, runs=tuple(replace(r, valid=(r.task, r.mode, r.repeat) not in cells) for r in given.runs))


def test_a_run_that_is_invalid_on_one_side_counts_on_neither() -> None:
    """A and B are equal, but the tasks that fail were lost in B: nothing became better."""
    seen = {"q": Observation(("1",))}
    runs = [Run("c", f"t{n}", mode, repeat, True, F(int(n > 3)), seen if mode == "COLLAB" else {})
            for n in range(8) for mode in ("EXEC", "COLLAB") for repeat in (1, 2)]  # fmt: skip
    a = ScoreInput(TREE, tuple(runs))
    for lost in ([(f"t{n}", "COLLAB", r) for n in range(4) for r in (1, 2)], [("t0", "COLLAB", 1)], [("t7", "EXEC", 2)]):
        b = spoilt(a, *lost)
        for found in (compare(a, b, ("c", "c")), compare(b, a, ("c", "c"))):
            assert {name: change.difference for name, change in found.changes.items()} == dict.fromkeys(MEASURES, F(0)), lost
            assert all(np.all(np.abs(change.drawn) < 1e-12) for change in found.changes.values()), lost
            assert (len(found.tasks), found.one_sided) == (8, tuple(sorted(lost)))


def test_a_task_without_a_valid_run_is_on_no_side() -> None:
    a = agent(0.6, tasks=3)
    b = spoilt(a, *((r.task, r.mode, r.repeat) for r in a.runs if r.task == "t01"))
    found = compare(a, b, ("c", "c"))
    assert (found.tasks, found.only_a, found.only_b, found.one_sided) == (("t00", "t02"), ("t01",), (), ())
    with pytest.raises(CompareError, match="have no task in common that both have a valid run of"):
        compare(a, spoilt(a, *((r.task, r.mode, r.repeat) for r in a.runs)), ("c", "c"))


def test_other_repeats_and_modes_are_no_loss() -> None:
    """Three repeats beside one are compared as they are; a mode that one side never ran is not compared."""
    a = agent(0.6)
    once = replace(a, runs=tuple(run for run in a.runs if run.repeat == 1))
    alone = replace(a, runs=tuple(run for run in a.runs if run.mode == "EXEC"))
    assert compare(a, once, ("c", "c")).one_sided == ()
    assert compare(a, once, ("c", "c")).changes["dR_exec"].a == compare(a, a, ("c", "c")).changes["dR_exec"].a
    found = compare(a, alone, ("c", "c"))
    assert (found.one_sided, found.changes["dR_exec"].difference, found.changes["dR_collab"].difference) == ((), 0, None)


def test_only_common_tasks_count() -> None:
    a, b = agent(0.5, tasks=6), agent(0.5, tasks=8)
    extra = Run("c", "other", "EXEC", 1, True, F(1))
    found = compare(ScoreInput(TREE, (*a.runs, extra)), b, ("c", "c"))
    assert found.tasks == tuple(f"t{n:02d}" for n in range(6))
    assert (found.only_a, found.only_b) == (("other",), ("t06", "t07"))
    same = compare(a, ScoreInput(TREE, tuple(run for run in b.runs if run.task in found.tasks)), ("c", "c"))
    assert {m: c.difference for m, c in found.changes.items()} == {m: c.difference for m, c in same.changes.items()}
    with pytest.raises(CompareError, match="no task in common"):
        compare(a, ScoreInput(TREE, (extra,)), ("c", "c"))


def test_another_benchmark_is_refused() -> None:
    a = agent(0.5)
    assert check_comparable(a, a) == []
    with pytest.raises(CompareError, match=r"A is of benchmark sha256:b, B of sha256:x; expected the same digest"):
        check_comparable(a, replace(a, benchmark="sha256:x"))
    assert check_comparable(a, replace(a, benchmark=None)) == [
        "not both sides tell their benchmark: whether the tasks are the same is not known"
    ]
    assert "judge" in check_comparable(a, replace(a, judge=None))[0]


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"judge": "sha256:k"}, "A was judged by sha256:j, B by sha256:k"),
        ({"threshold": F(1, 2)}, r"their thresholds differ \(3/4 and 1/2\)"),
        ({"tree": {"U": {"u": ("q", "p")}}}, "their trees of scenarios differ"),
    ],
)
def test_another_instrument_leaves_r_alone_comparable(other: dict[str, object], why: str) -> None:
    a = agent(0.5)
    b = replace(a, **other)  # type: ignore[arg-type]
    assert check_comparable(a, b)[0].startswith("S and J are not compared: ")
    found = compare(a, b, ("c", "c")).changes
    assert {measure for measure, change in found.items() if change.difference is not None} == {"dR_exec", "dR_collab"}
    assert found["dJ"].interval is found["dJ"].smallest_drop() is None
    gate = parse_gate("P(dJ < 0) > 0.5")
    with pytest.raises(GateError, match=f"cannot be answered: {why}"):
        found["dJ"].probability(gate)


def test_what_is_not_defined_cannot_pass_a_gate() -> None:
    a = ScoreInput(TREE, (Run("c", "t", "EXEC", 1, True, F(1)),))
    with pytest.raises(GateError, match="dJ is not defined on both sides"):
        compare(a, a, ("c", "c")).changes["dJ"].probability(parse_gate("P(dJ < 0) > 0.5"))


def test_which_configurations_belong_together() -> None:
    one, two = agent(0.5), agent(0.5, name="d")
    both = ScoreInput(TREE, (*one.runs, *two.runs))
    assert match(both, one) == [("c", "c")]
    assert match(both, both) == [("c", "c"), ("d", "d")]
    assert match(one, two) == [("c", "d")]
    assert match(both, two, ["c=d"]) == [("c", "d")]
    assert match(both, both, ["d"]) == [("d", "d")]
    with pytest.raises(CompareError, match=r"'e=d': A has no configuration e; expected one of c, d"):
        match(both, two, ["e=d"])
    with pytest.raises(CompareError, match=r"none in common; expected which belong together"):
        match(both, agent(0.5, name="e"))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("P(dJ < -0.05) > 0.95", ("dJ", "<", -0.05, ">", 0.95)),
        (" P ( dR>=.1 )<= 1 ", ("dR_collab", ">=", 0.1, "<=", 1.0)),
        ("P(dS_rate <= +2.) >= 0", ("dS_rate", "<=", 2.0, ">=", 0.0)),
    ],
)
def test_gates(text: str, read: tuple[str, str, float, str, float]) -> None:
    gate = parse_gate(text)
    assert (gate.measure, gate.side, gate.bound, gate.compare, gate.probability) == read


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("J < -0.02", "is no gate; expected a probability of a change"),
        ("", "is no gate"),
        ("P(dJ < -0.05) > 95%", "is no gate"),
        ("P(dJ < 1e-2) > 0.95", "is no gate"),
        ("P(dJ = 0) > 0.5", "is no gate"),
        ("P(dJ < ٣) > 0.5", "is no gate"),
        ("P(J < 0) > 0.5", "J is nothing that is compared; expected one of dR_exec"),
        ("P(dJ < -0.05) > 95", "95 is no probability; expected a number from 0 to 1"),
        ("P(dJ < -0.05) > -0.1", "-0.1 is no probability"),
        ("P(dJ < -0.05) > 1.0", "can never fire"),
        ("P(dJ < -0.05) < 0", "can never fire"),
    ],
)
def test_gates_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(GateError, match=message):
        parse_gate(text)


@given(st.text(max_size=40))
def test_any_text_is_a_gate_or_refused(text: str) -> None:
    try:
        said = parse_gate(text).measure
    except GateError as error:
        said = str(error)
    assert said in MEASURES or "expected" in said


def test_the_sides_of_a_gate() -> None:
    """Draws -1, 0, 1: P(d < 0) is 1/3, P(d <= 0) 2/3; at exactly the probability > holds back and >= fires."""
    change = replace(compare(agent(0.5), agent(0.5), ("c", "c")).changes["dJ"], drawn=np.array([-1.0, 0.0, 1.0, np.nan]))
    shares = {side: change.probability(parse_gate(f"P(dJ {side} 0) > 0.5")) for side in ("<", "<=", ">", ">=")}
    assert shares == pytest.approx({"<": 1 / 3, "<=": 2 / 3, ">": 1 / 3, ">=": 2 / 3})
    assert not parse_gate("P(dJ < 0) > 0.5").fires(0.5)
    assert parse_gate("P(dJ < 0) >= 0.5").fires(0.5)


def test_the_smallest_drop() -> None:
    """A normal difference with deviation s is found at 95 % with power 80 % from (1.645 + 0.842) s on."""
    change = compare(agent(0.5), agent(0.5, seed=2), ("c", "c")).changes["dR_exec"]
    deviation = float(change.drawn.std())
    assert change.smallest_drop() == pytest.approx(2.4865 * deviation, rel=1e-3)
    assert change.smallest_drop(bound=-0.05) == pytest.approx(0.05 + 2.4865 * deviation, rel=1e-3)
    assert change.smallest_drop(level=1.0) is None
