"""What a sweep has cost: every attempt, and nothing unknown as 0."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from realcli.api.outcomes import Phase
from realcli.api.sweep import SweepSpec
from realcli.api.sweepstatus import Tokens
from realcli.api.trial import Earlier, TrialStatus
from realcli_operator.reconcile.rows import Rows
from realcli_operator.reconcile.spending import Spending, earlier_of, spending_of, usd_text

USED = Tokens(input=100, cache_read=20, cache_write=3, output=7)


def spec(a: Any, prices: bool = True, **changes: Any) -> SweepSpec:
    model = a.spec().models[0].dump()
    if prices:
        model["prices"] = {"inputPerMillion": "1", "outputPerMillion": "1"}
    found: SweepSpec = a.spec(models=[model], **changes)
    return found


def spent(a: Any, *statuses: TrialStatus, prices: bool = True) -> Spending:
    rows = Rows(a.trial(status, ordinal=ordinal) for ordinal, status in enumerate(statuses))
    return spending_of(rows.values(), spec(a, prices))


SEALED = TrialStatus(phase=Phase.SEALED, reason="Completed", work_end="Completed", attempt=1, tokens=USED, cost_usd="0.25")


def test_all_attempts_count(a: Any) -> None:
    second = SEALED.model_copy(update={"attempt": 2, "earlier": Earlier(cost_usd="1.5", tokens=USED, uncounted=0)})
    found = spent(a, SEALED, second, TrialStatus(), TrialStatus(phase=Phase.WORKING, attempt=1))
    assert (found.usd, found.uncounted, found.column) == (Decimal("2.00"), 0, "$2.00")
    assert found.tokens == Tokens(input=300, cache_read=60, cache_write=9, output=21)


def test_without_a_price_the_cost_is_unknown_and_the_tokens_are_not(a: Any) -> None:
    found = spent(a, SEALED.model_copy(update={"cost_usd": None}), prices=False)
    assert (found.usd, found.column, found.tokens) == (None, None, USED)


@pytest.mark.parametrize(
    ("change", "uncounted"),
    [
        ({"tokens": None, "cost_usd": None, "phase": Phase.INVALID, "work_end": "NodeLost"}, 1),
        ({"tokens": None, "cost_usd": None, "phase": Phase.PENDING, "work_end": "SessionLost"}, 1),
        ({"cost_usd": None}, 1),
        ({"cost_usd": None, "tokens": Tokens()}, 0),
        ({"tokens": None, "cost_usd": None, "phase": Phase.PENDING, "work_end": "ImageUnavailable"}, 0),
        ({"tokens": None, "cost_usd": None, "phase": Phase.WORKING, "work_end": None}, 0),
        ({"tokens": None, "cost_usd": None, "phase": Phase.VERIFYING, "work_end": "Completed"}, 1),
        ({"phase": Phase.VERIFYING}, 0),
    ],
)
def test_an_attempt_that_left_no_count_is_said_to(a: Any, change: dict[str, Any], uncounted: int) -> None:
    found = spent(a, SEALED, SEALED.model_copy(update=change))
    assert found.uncounted == uncounted
    assert (found.column or "").startswith("≥") == bool(uncounted)


def test_the_next_attempt_keeps_what_the_last_took(a: Any) -> None:
    assert earlier_of(TrialStatus()) is None
    once = earlier_of(SEALED)
    assert once == Earlier(cost_usd="0.25", tokens=USED, uncounted=0)
    lost = earlier_of(TrialStatus(attempt=2, work_end="NodeLost", earlier=once))
    assert lost == Earlier(cost_usd="0.25", tokens=USED, uncounted=1)
    assert earlier_of(TrialStatus(attempt=3, work_end="ImageUnavailable", earlier=lost)) == lost


@pytest.mark.parametrize(
    ("cost", "kept", "uncounted"),
    [
        ("0.0004629375", "1.000462938", 0),  # 12,345 tokens at 0.0375 a million: more digits than the status keeps
        ("1e3", "1001", 0),
        ("0.1000", "1.1000", 0),
        ("0.10000000000000000000000000", "1.1", 0),
        ("-3", "1", 1),
        ("1e9", "1", 1),
        ("NaN", "1", 1),
        ("a lot", "1", 1),
    ],
)
def test_any_cost_that_a_session_tells_can_be_kept_by_the_next_attempt(a: Any, cost: str, kept: str, uncounted: int) -> None:
    told = SEALED.model_copy(update={"cost_usd": cost, "earlier": Earlier(cost_usd="1")})
    earlier = earlier_of(told)
    assert earlier is not None
    assert (earlier.cost_usd, earlier.uncounted) == (kept, uncounted)
    found = spent(a, told)
    assert found.uncounted == uncounted
    assert found.usd is not None
    assert 0 <= Decimal(kept) - found.usd < Decimal("1e-9"), "rounded up, never down"


def test_the_costs_of_many_attempts_fit_the_status(a: Any) -> None:
    assert usd_text(Decimal("999999999.9999999999")) == "1000000000"
    assert usd_text(Decimal("2.50")) == "2.50"
    assert usd_text(Decimal("0.00000000001")) == "0.000000001"
    assert len(usd_text(20_000 * Decimal("999999999.9999999999999999999999"))) <= 32
    most = SEALED.model_copy(update={"cost_usd": "999999999.9", "earlier": Earlier(cost_usd="999999999.9")})
    again = earlier_of(most)
    assert again is not None
    assert again.cost_usd == "999999999.999999999", "as much as the status can say"


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (None, None), ({"usd": "0.26"}, None), ({"usd": "0.25"}, "Usd"), ({"tokens": 131}, None), ({"tokens": 130}, "Tokens"),
        ({"usd": "9", "tokens": 1}, "Tokens"),
    ],
)  # fmt: skip
def test_a_budget_is_spent_when_it_is_reached(a: Any, budget: Any, reason: str | None) -> None:
    found = spent(a, SEALED).exhausted(spec(a, budget=budget) if budget else spec(a))
    assert (found and found[0]) == reason
