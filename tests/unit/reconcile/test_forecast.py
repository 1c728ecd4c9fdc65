"""What a sweep takes: by its limits, by what has ended, and what nobody knows. And who is asked before it starts."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from realcli.api.forecast import Forecast
from realcli.api.forecasting import Measured, forecast
from realcli.api.outcomes import Phase
from realcli.api.plan import Plan
from realcli.api.source import PlanSource, Settled
from realcli.api.trial import Earlier
from realcli_operator.reconcile.conditions import find
from realcli_operator.reconcile.confirming import ConfirmAbove, confirmation
from realcli_operator.reconcile.measured import due, measured
from realcli_operator.reconcile.policy import Policy
from realcli_operator.reconcile.rows import Rows
from realcli_operator.reconcile.sweep import decide_sweep

PRICED = {"prices": {"inputPerMillion": "1", "outputPerMillion": "2"}}
KEY = {"secretRef": {"name": "judge", "key": "key"}}
JUDGE: dict[str, Any] = {"model": "judge-1", "endpoints": {"chat": {"url": "https://judge.example/v1", "apiKey": KEY}}}
USER = {"model": "user-1", "endpoints": {"chat": {"url": "https://user.example/v1", "apiKey": KEY}}}
PRICES = {"inputPerMillion": "1", "cacheReadPerMillion": "1", "cacheWritePerMillion": "4", "outputPerMillion": "2"}
CELL = "claude-code.sonnet"
DIGEST = "sha256:" + "a" * 64


def of(a: Any, plan: Plan | None = None, seen: dict[Any, Measured] | None = None, **spec: Any) -> Forecast:
    return forecast(plan or a.plan(tasks=2, repeats=3), a.spec(**spec), seen)


def test_by_the_limits(a: Any) -> None:
    """12 trials. EXEC: 15 min + 6 h x 1.5, COLLAB: 15 min + 10 h x 1.5; verify: 15 min + 10 min of the task's 600 s; half an hour
    to seal each."""
    made = of(a, limits={"trialBudget": {"usd": "2.5"}})
    assert (made.trials, made.pods) == (12, 2 * 12 + 2 + 2)
    assert Decimal(made.pod_hours_at_most) == 6 * Decimal("9.75") + 6 * Decimal("15.75") + 12 * Decimal(55) / 60
    assert (made.usd_at_most, made.judge_usd_at_most) == ("30.00", "0.00")
    assert (made.pod_hours_expected, made.usd_expected, made.measured) == (None, None, 0)


BOUNDS: dict[str, tuple[dict[str, Any], str | None, str | None, str]] = {
    "nothing bounds a trial": ({}, None, "0.00", "limits.trialBudget is not set"),
    "the sweep's budget, and what runs then": (
        {"limits": {"trialBudget": {"usd": "5"}}, "budget": {"usd": "20"}, "parallelism": 3}, "35.00", "0.00", "",
    ),
    "a budget above all": ({"limits": {"trialBudget": {"usd": "5"}}, "budget": {"usd": "2000"}}, "60.00", "0.00", ""),
    "a simulated user that is a model": (
        {"limits": {"trialBudget": {"usd": "5"}}, "simulatedUser": {"mode": "Model", "model": USER}}, None, "0.00",
        "US dollars of the simulated user: its model has no prices",
    ),
    "a judge without a budget": (
        {"limits": {"trialBudget": {"usd": "5"}}, "judge": {"model": JUDGE}}, None, None, "judge.budget is not set",
    ),
    "a judge with dollars": (
        {"limits": {"trialBudget": {"usd": "5"}}, "judge": {"model": JUDGE | {"prices": PRICES}, "budget": {"usd": "7.5"}}},
        "67.50", "7.50", "",
    ),
    "a judge with tokens, all of the dearest kind": (
        {"limits": {"trialBudget": {"usd": "5"}}, "judge": {"model": JUDGE | {"prices": PRICES}, "budget": {"tokens": 1000000}}},
        "64.00", "4.00", "",
    ),
    "a judge with tokens without prices": (
        {"limits": {"trialBudget": {"usd": "5"}}, "judge": {"model": JUDGE, "budget": {"tokens": 1000000}}},
        None, None, "judge.model.prices are not set",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BOUNDS)
def test_what_it_costs_at_most(a: Any, name: str) -> None:
    spec, usd, judge, note = BOUNDS[name]
    made = of(a, **spec)
    assert (made.usd_at_most, made.judge_usd_at_most) == (usd, judge)
    assert any(note in line for line in made.unknown)


def test_what_ended_tells_what_will(a: Any) -> None:
    seen = {
        (CELL, "EXEC"): Measured(ended=4, hours=Decimal(2), priced=4, usd=Decimal(1)),
        (CELL, "COLLAB"): Measured(ended=3, hours=Decimal(6), priced=3, usd=Decimal("4.5")),
    }
    made = of(a, seen=seen)
    assert (made.pod_hours_expected, made.usd_expected, made.measured) == (
        "15.0",
        "10.50",
        7,
    )  # 6 x 0.5 + 6 x 2; 6 x .25 + 6 x 1.5


def test_too_few_say_nothing(a: Any) -> None:
    seen = {
        (CELL, "EXEC"): Measured(ended=4, hours=Decimal(2), priced=4, usd=Decimal(1)),
        (CELL, "COLLAB"): Measured(ended=3, hours=Decimal(6), priced=2, usd=Decimal(3)),
    }
    made = of(a, seen=seen)
    assert (made.pod_hours_expected, made.usd_expected) == ("15.0", None)
    assert any("expected US dollars: of 1 of 2" in note and "claude-code.sonnet in COLLAB, 2" in note for note in made.unknown)


def test_runs_of_another_sweep_cost_nothing_again(a: Any) -> None:
    settled = [Settled(ordinal=0, phase=Phase.INVALID, reason="NodeLost")]
    again = a.plan(tasks=2, repeats=3, source=PlanSource(sweep="one/first", verify=True, settled=settled))
    made = of(a, again)
    assert (made.pods, made.usd_at_most, made.usd_expected) == (11 + 2 + 2, "0.00", "0.00")
    assert Decimal(made.pod_hours_at_most) == Decimal("10.1")  # 11 x 55 min, rounded up
    judged = a.plan(tasks=2, repeats=3, source=PlanSource(sweep="one/first", verify=False))
    made = of(a, judged)
    assert (made.pods, made.pod_hours_at_most, made.pod_hours_expected) == (4, "0.0", "0.0")


def test_measured_from_statuses(a: Any) -> None:
    plan = a.plan(tasks=1, repeats=3)

    def sealed(ordinal: int, **values: Any) -> Any:
        status = a.status(Phase.SEALED, started_at=a.at(7200), ended_at=a.at(3600), **values)
        return a.trial(status, ordinal=ordinal, plan=plan)

    rows = Rows([
        sealed(0, cost_usd="0.50"),
        sealed(2, cost_usd="0.25", earlier=Earlier(cost_usd="1")),
        sealed(4, cost_usd="0.25", earlier=Earlier(cost_usd="1", uncounted=1)),  # what the lost attempt cost nobody knows
        sealed(1),
        a.trial(a.status(Phase.INVALID, started_at=a.at(7200), ended_at=a.at(3600)), ordinal=3, plan=plan),
    ])  # fmt: skip
    assert measured(rows) == {
        (CELL, "COLLAB"): Measured(ended=3, hours=Decimal(3), priced=2, usd=Decimal("1.75")),
        (CELL, "EXEC"): Measured(ended=1, hours=Decimal(1)),
    }


@pytest.mark.parametrize(
    ("basis", "ended", "size", "expected"),
    [(0, 0, 10, False), (0, 1, 10, True), (0, 1, 1000, False), (0, 20, 1000, True), (990, 1000, 1000, True), (9, 8, 10, True)],
)
def test_when_it_is_made_again(basis: int, ended: int, size: int, expected: bool) -> None:
    assert due(basis, ended, size) is expected


DEAR = Forecast(trials=1, pods=1, pod_hours_at_most="100.0", usd_at_most="50.00")
DARK = DEAR.model_copy(update={"usd_at_most": None, "unknown": ["US dollars of the trials: limits.trialBudget is not set"]})
ASKED: dict[str, tuple[Forecast, ConfirmAbove, str | None, bool, tuple[bool, str] | None]] = {
    "nobody asks": (DEAR, ConfirmAbove(), None, False, None),
    "below": (DEAR, ConfirmAbove(Decimal(50), Decimal(100)), None, False, (True, "BelowLimit")),
    "dearer": (DEAR, ConfirmAbove(usd=Decimal(49)), None, False, (False, "AboveLimit")),
    "longer": (DEAR, ConfirmAbove(pod_hours=Decimal("99.9")), None, False, (False, "AboveLimit")),
    "nobody knows": (DARK, ConfirmAbove(usd=Decimal(1000)), None, False, (False, "CostUnknown")),
    "nobody knows, and nobody asks for dollars": (DARK, ConfirmAbove(pod_hours=Decimal(100)), None, False, (True, "BelowLimit")),
    "said yes": (DEAR, ConfirmAbove(usd=Decimal(49)), DIGEST, False, (True, "ByUser")),
    "said yes to another plan": (DEAR, ConfirmAbove(usd=Decimal(49)), "sha256:" + "b" * 64, False, (False, "AboveLimit")),
    "the limit came later": (DEAR, ConfirmAbove(usd=Decimal(49)), None, True, (True, "Begun")),
}


@pytest.mark.parametrize("name", ASKED)
def test_who_is_asked(a: Any, name: str) -> None:
    made, above, confirm, begun, expected = ASKED[name]
    spec = a.spec(**({} if confirm is None else {"confirm": confirm}))
    found = confirmation(made, above, spec, DIGEST, "one", "first", begun=begun)
    assert (None if found is None else (found.given, found.reason)) == expected
    if found is not None and not found.given:
        patch = f"""kubectl -n one patch benchmarksweep first --type merge -p '{{"spec":{{"confirm":"{DIGEST}"}}}}'"""
        assert patch in found.message


def test_a_sweep_waits_until_its_plan_is_confirmed(a: Any) -> None:
    policy = replace(Policy(), confirm_above=ConfirmAbove(usd=Decimal(1)))
    plan = a.plan(tasks=2, repeats=3)
    facts = a.sweep_facts(plan=plan)
    held = decide_sweep(facts, a.now, policy)
    assert held.status is not None
    asked = find(held.status.conditions, "Confirmed")
    assert asked is not None
    assert (asked.status, asked.reason, held.status.state) == ("False", "CostUnknown", "Suspended")
    assert plan.content_digest() in asked.message
    assert (held.create_trials, held.grants) == ((), frozenset())
    assert [note.reason for note in held.events if note.type == "Warning"] == ["ConfirmationNeeded"]

    again = decide_sweep(replace(facts, status=held.status), a.now, policy)
    assert not [note for note in again.events if note.reason == "ConfirmationNeeded"], "it is told once"

    unasked = decide_sweep(replace(facts, status=held.status), a.now)  # the limit was taken out of the chart's values
    assert unasked.create_trials
    assert unasked.status is not None
    assert (find(unasked.status.conditions, "Confirmed"), unasked.status.state) == (None, "Running")

    said = replace(facts, status=held.status, spec=a.spec(confirm=plan.content_digest()))
    free = decide_sweep(said, a.now, policy)
    assert free.status is not None
    assert find(free.status.conditions, "Confirmed").reason == "ByUser"  # type: ignore[union-attr]
    assert free.create_trials
    assert free.status.state == "Running"


def test_the_forecast_stands_in_the_status(a: Any) -> None:
    made = decide_sweep(a.sweep_facts(plan=a.plan(tasks=2, repeats=3)), a.now)
    assert made.status is not None
    assert made.status.forecast is not None
    assert made.status.forecast.trials == 12
    assert find(made.status.conditions, "Confirmed") is None


def test_a_raised_budget_is_asked_about(a: Any) -> None:
    """It may be raised while nothing has begun: what was known of the sweep then is not what it may cost."""
    policy = replace(Policy(), confirm_above=ConfirmAbove(usd=Decimal(50)))
    plan = a.plan(tasks=20, repeats=3)
    limits = {"trialBudget": {"usd": "5"}}
    small = a.spec(limits=limits, budget={"usd": "10"}, parallelism=1, suspend=True)
    first = decide_sweep(a.sweep_facts(plan=plan, spec=small), a.now, policy).status
    assert first is not None
    assert first.forecast is not None
    assert first.forecast.usd_at_most == "15.00"

    facts = a.sweep_facts(plan=plan, spec=a.spec(limits=limits, budget={"usd": "300"}, parallelism=1), status=first)
    raised = replace(facts, sweep=replace(facts.sweep, generation=2))
    held = decide_sweep(raised, a.now, policy)
    assert held.status is not None
    assert held.status.forecast is not None
    assert held.status.forecast.usd_at_most == "305.00"
    assert held.create_trials == ()
    assert find(held.status.conditions, "Confirmed").reason == "AboveLimit"  # type: ignore[union-attr]


def test_a_budget_that_is_raised_above_the_limit_later_is_asked_about_too(a: Any) -> None:
    """Else a small budget to begin with would be the way around. A limit that comes later stops nothing."""
    policy = replace(Policy(), confirm_above=ConfirmAbove(usd=Decimal(50)))
    plan, limits = a.plan(tasks=20, repeats=3), {"trialBudget": {"usd": "5"}}
    runs = (a.trial(a.status(), plan=plan),)
    small, big = (a.spec(limits=limits, budget={"usd": usd}, parallelism=1) for usd in ("10", "300"))
    begun = decide_sweep(a.sweep_facts(plan=plan, spec=small, trials=runs), a.now, policy).status
    assert begun is not None
    assert find(begun.conditions, "Confirmed").reason == "BelowLimit"  # type: ignore[union-attr]

    def confirmed(spec: Any, status: Any, generation: int, limit: Policy = policy) -> tuple[str, str, Any]:
        facts = a.sweep_facts(plan=plan, spec=spec, status=status, trials=runs)
        made = decide_sweep(replace(facts, sweep=replace(facts.sweep, generation=generation)), a.now, limit)
        after = made.status or status
        found = find(after.conditions, "Confirmed")
        assert found is not None
        assert bool(made.create_trials) == (found.status == "True")
        return found.status, found.reason, after

    *raised, held = confirmed(big, begun, 2)
    assert raised == ["False", "AboveLimit"]
    *still, held = confirmed(big, held, 2)
    assert still == ["False", "AboveLimit"], "until somebody says yes"
    yes = big.model_copy(update={"confirm": plan.content_digest()})
    assert confirmed(yes, held, 3)[:2] == ("True", "ByUser")
    assert confirmed(small, held, 3)[:2] == ("True", "BelowLimit"), "or takes it back"
    lower = replace(policy, confirm_above=ConfirmAbove(usd=Decimal(5)))
    assert confirmed(small, begun, 1, lower)[:2] == ("True", "Begun")
