"""Values on the border of a rule."""

from __future__ import annotations

from fractions import Fraction

from realcli.scoring.analyses import Share, success_with_violation
from realcli.scoring.levels import MAX_SPREAD, collaboration
from realcli.scoring.runs import Observation, Run

PASS, FAIL, OPEN = Observation(("1",)), Observation(("0",)), Observation(("unscored",))


def tree(dimensions: int) -> dict[str, dict[str, tuple[str, ...]]]:
    """Scenario q in a sub-dimension of four, the other dimensions of one scenario each."""
    return {"d0": {f"s{n}": (f"q{n}",) for n in range(4)}} | {f"d{n}": {f"x{n}": (f"x{n}",)} for n in range(1, dimensions)}


def test_s_stands_where_its_bounds_are_exactly_as_far_apart_as_they_may_be() -> None:
    """One open instance decides one of four sub-dimensions of one of five dimensions: 1/4 of 1/5."""
    for dimensions, defined in ((5, True), (4, False)):
        seen = [("q0", OPEN), *((f"q{n}", PASS) for n in range(1, 4)), *((f"x{n}", PASS) for n in range(1, dimensions))]
        found = collaboration(seen, tree(dimensions))
        assert found.s_low is not None
        assert found.s_high is not None
        assert found.s_high - found.s_low == Fraction(1, 4 * dimensions)
        assert (found.s_high - found.s_low <= MAX_SPREAD) is defined
        assert (found.s is not None) is defined


def test_a_contaminated_failure_is_no_violation() -> None:
    spoilt = Observation(("0",), contaminated=True)
    for scenarios, expected in (
        ({"a": spoilt}, Share(0, 0)),
        ({"a": spoilt, "b": PASS}, Share(0, 1)),
        ({"a": FAIL, "b": PASS}, Share(1, 1)),
    ):
        run = Run("c", "t", "COLLAB", 1, True, Fraction(1), scenarios)
        assert success_with_violation([run]) == expected
