"""Orders: correlations by hand and by their borders, and how sure a ranking is."""

from __future__ import annotations

import math
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli.scoring.agreement import clopper_pearson
from realcli.scoring.correlation import agreement_of_orders, kendall, ranks, spearman
from realcli.scoring.cubes import Draws
from realcli.scoring.ranks import pairwise, rank_stability, relation_interval


def f(*values: int) -> list[F]:
    return [F(value) for value in values]


def test_by_hand() -> None:
    assert ranks(f(10, 20, 20, 5)) == [F(2), F(7, 2), F(7, 2), F(1)]
    assert spearman(f(1, 2, 3, 4), f(1, 2, 4, 3)) == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert kendall(f(1, 2, 3, 4), f(1, 2, 4, 3)) == pytest.approx((5 - 1) / 6)
    # one tie on the left: 5 of 6 pairs differ there, all 5 concordant
    assert kendall(f(1, 1, 2, 3), f(1, 2, 3, 4)) == pytest.approx(5 / math.sqrt(5 * 6))


def test_borders() -> None:
    assert spearman(f(1, 2), f(1, 2)) is None
    assert spearman(f(1, 1, 1), f(1, 2, 3)) is None
    assert kendall(f(1), f(1)) is None
    assert kendall(f(1, 2), f(3, 3)) is None
    with pytest.raises(ValueError, match="expected pairs"):
        spearman(f(1), f(1, 2))
    with pytest.raises(ValueError, match="expected pairs"):
        kendall(f(1), f(1, 2))


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=3, max_size=8))
def test_only_the_order_counts(points: list[tuple[int, int]]) -> None:
    x, y = [F(a) for a, _ in points], [F(b) for _, b in points]
    for of in (spearman, kendall):
        got = of(x, y)
        assert got == of(y, x) == of([a**3 for a in x], [2 * b + 1 for b in y])
        if got is not None:
            assert -1 - 1e-9 <= got <= 1 + 1e-9
            assert of(x, [-b for b in y]) == pytest.approx(-got)


def test_what_one_side_lacks_is_left_out() -> None:
    left, right = {"a": F(1), "b": F(2), "c": None, "d": F(0)}, {"a": F(5), "b": F(6), "c": F(1)}
    assert agreement_of_orders(left, right) == (2, 1.0)


def drawn(**columns: list[float]) -> dict[str, Draws]:
    return {name: Draws({"J": np.array(values), "S_rate": np.array(values) ** 2}, {}, {}) for name, values in columns.items()}


def test_rank_stability() -> None:
    """Draws of a, b: 2 > 1, 2 > 1, 1 < 2, a tie. P(rank 1): a (1 + 1 + 0 + 1/2) / 4."""
    found = drawn(a=[2, 2, 1, 1], b=[1, 1, 2, 1])
    table = rank_stability(found, "J")
    assert [(row["configuration"], row["draws"], row["P_rank_1"], row["mean_rank"]) for row in table.dicts()] == [
        ("a", 4, 0.625, 1.375), ("b", 4, 0.375, 1.625),
    ]  # fmt: skip
    assert pairwise(found, "J").rows == (("a", "b", 4, 0.625), ("b", "a", 4, 0.375))


def test_a_configuration_without_scores_has_no_rank() -> None:
    found = drawn(a=[2, 2], b=[1, float("nan")], c=[float("nan")] * 2)
    assert [(row["configuration"], row["draws"]) for row in rank_stability(found, "J").dicts()] == [("a", 1), ("b", 1)]
    assert pairwise(found, "J").where(a="a", b="c")["P_a_above_b"] is None
    assert pairwise(found, "J").where(a="a", b="b")["draws"] == 1
    assert rank_stability({}, "J").rows == ()
    assert relation_interval({}, "J", "S_rate").rows == (("J", "S_rate", 0, None, None),)


def test_the_relation_has_an_interval() -> None:
    found = drawn(a=[1, 1], b=[2, 3], c=[3, 2])
    assert relation_interval(found, "J", "S_rate").rows == (("J", "S_rate", 3, 1.0, 1.0),)


def test_clopper_pearson() -> None:
    """Borders in closed form; the middle against the printed tables (5 of 10: 0.1871 to 0.8129)."""
    low, high = clopper_pearson(0, 47)
    assert (low, round(high, 4)) == (0.0, round(1 - 0.025 ** (1 / 47), 4))
    assert clopper_pearson(47, 47) == (pytest.approx(0.025 ** (1 / 47)), 1.0)
    assert clopper_pearson(5, 10) == (pytest.approx(0.1871, abs=1e-4), pytest.approx(0.8129, abs=1e-4))
    for hits, of in ((1, 0), (-1, 3), (4, 3)):
        with pytest.raises(ValueError, match="expected hits between"):
            clopper_pearson(hits, of)


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_holds_the_share_and_mirrors(case: tuple[int, int]) -> None:
    hits, of = case
    low, high = clopper_pearson(hits, of)
    assert 0 <= low <= hits / of <= high <= 1
    mirrored = clopper_pearson(of - hits, of)
    assert (1 - mirrored[1], 1 - mirrored[0]) == (pytest.approx(low, abs=1e-9), pytest.approx(high, abs=1e-9))
