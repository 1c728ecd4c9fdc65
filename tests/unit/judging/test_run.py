"""The driver: which sessions there are, what they are asked, and what a run's record comes to."""

from __future__ import annotations

from decimal import Decimal

import pytest

from realcli.api.judge import Controls, Judge, JudgeBudget, Sessions
from realcli.api.models import Prices
from realcli.api.trial import Tokens
from realcli.judging.conversing import EXHAUSTED
from realcli.judging.model import JudgeReply, JudgeRequest
from realcli.judging.port import BackendUnavailable, RequestTooLarge
from realcli.judging.purse import Limit, Purse, Spent, cost_of
from realcli.judging.run import Run, Settings, generic_instances, judge_run, judge_runs
from realcli.judging.session import Model
from tests.support.judged_runs import (
    GOOD,
    MODEL,
    PLAN,
    Told,
    answer,
    answers,
    in_turn,
    ledger,
    outline_instance,
    quote,
    reply,
    run_of,
    use,
)

SETTINGS = Settings(MODEL, votes=1)
ALL_GOOD = reply(answers("p1", *GOOD))


def verdicts(run: Run, settings: Settings, backend: Told, purse: Purse | None = None) -> dict[str, tuple[str, str]]:
    found = judge_run(run, settings, backend, purse)
    return {check.check: (check.verdict, check.by) for record in found.instances for check in record.checks}


def test_by_program_alone(run: Run) -> None:
    found = judge_run(run, None, None).instances[0]
    assert (found.state, [check.verdict for check in found.checks]) == ("unscored", ["unscored"] * 3)


def test_by_a_judge(run: Run) -> None:
    found = judge_run(run, SETTINGS, in_turn(ALL_GOOD)).instances[0]
    assert (found.state, found.reason) == ("triggered", None)
    assert [(check.verdict, check.by, check.trusted) for check in found.checks] == [
        ("1", "judge", True), ("1", "judge", False), ("1", "judge", True),
    ]  # fmt: skip


def test_every_vote_is_a_session_in_another_order(run: Run) -> None:
    backend = in_turn(ALL_GOOD)
    found = judge_run(run, Settings(MODEL, votes=9), backend).instances[0]
    assert [request.vote for request in backend.asked] == list(range(1, 10))
    assert len({tuple(request.about) for request in backend.asked}) > 1
    assert {frozenset(request.about) for request in backend.asked} == {frozenset(backend.asked[0].about)}
    assert len({request.key for request in backend.asked}) == 9
    assert [len(check.answers) for check in found.checks] == [9, 9, 9]
    text = [request.messages[0].text.partition("# Questions")[0] for request in backend.asked]
    assert len(set(text)) == 1  # the run is the same for every vote: a provider's cache holds it


def test_the_majority_of_votes(run: Run) -> None:
    bad = answer("p1/plan-given", "0", quote(PLAN[:40]))
    backend = Told(lambda request: reply(answers("p1", bad, *GOOD[1:])) if request.vote == 2 else ALL_GOOD)
    assert verdicts(run, Settings(MODEL, votes=3), backend)["plan-given"] == ("1", "judge")
    backend = Told(lambda request: reply(answers("p1", bad, *GOOD[1:])) if request.vote > 1 else ALL_GOOD)
    assert verdicts(run, Settings(MODEL, votes=3), backend)["plan-given"] == ("0", "judge")


def settled_run() -> Run:
    """The file is written before the outline: a program settles one check."""
    made = ledger()
    events = made.events
    at = next(n for n, event in enumerate(events) if event.kind == "file_write")
    moved = events.pop(at)
    events.insert(6, moved.model_copy(update={"exchange": 1, "turn": 1, "data": moved.data | {"afterTurn": 0, "beforeTurn": 1}}))
    made.events = [event.model_copy(update={"seq": seq}) for seq, event in enumerate(events, 1)]
    return run_of(made, files={"/app/a.py": b""})


@pytest.mark.parametrize(("controls", "first", "later"), [(Controls.ALL, 3, 2), (Controls.NONE, 2, 2)])
def test_what_a_program_settles_is_asked_once_and_without_its_record(controls: Controls, first: int, later: int) -> None:
    run = settled_run()
    assert judge_run(run, None, None).instances[0].checks[1].verdict == "0"
    wrong = answer("p1/plan-precedes-change", "1", quote(PLAN[:40]))
    backend = Told(
        lambda request: reply(answers("p1", *(a for a in (GOOD[0], wrong, GOOD[2]) if a["check_id"] in request.about)))
    )
    found = judge_run(run, Settings(MODEL, votes=2, controls=controls), backend).instances[0]
    assert [len(request.about) for request in backend.asked] == [first, later]
    assert "program record of p1/plan-precedes-change" not in "".join(r.messages[0].text for r in backend.asked)
    settled = found.checks[1]
    assert (settled.verdict, settled.by, settled.conflict) == ("0", "program", controls is Controls.ALL)


def test_a_session_per_scenario() -> None:
    run = run_of(ledger(), outline_instance("p1"))
    run = Run(run.trajectory, run.evidence, run.instances, run.work_seal, generic_instances())
    backend = in_turn(reply(text="nothing"))
    judge_run(run, Settings(MODEL, votes=1, sessions=Sessions.SCENARIO), backend)
    groups = {
        frozenset(id.rpartition("/")[0] for id in request.about) for request in backend.asked if request.purpose == "checks"
    }
    assert all(len(group) == 1 for group in groups)
    assert len(groups) == 7


def test_generic_checks_are_a_panel_of_their_own(run: Run) -> None:
    with_generic = Run(run.trajectory, run.evidence, run.instances, run.work_seal, generic_instances())
    found = judge_run(with_generic, None, None)
    assert [record.probe for record in found.instances] == ["p1"]
    assert {record.scenario for record in found.generic} == {
        "g.claims-supported", "g.clean-delivery", "g.evaluation-integrity", "g.no-secret-exposure",
        "g.no-unapproved-irreversible", "g.responsiveness",
    }  # fmt: skip
    assert all(record.state in ("triggered", "unscored") for record in found.generic)


def test_scenarios_too_are_asked_in_another_order(run: Run) -> None:
    with_generic = Run(run.trajectory, run.evidence, run.instances, run.work_seal, generic_instances())
    backend = in_turn(reply(text="nothing"))
    judge_run(with_generic, Settings(MODEL, votes=4), backend)
    orders = {
        tuple(dict.fromkeys(id.rpartition("/")[0] for id in request.about))
        for request in backend.asked
        if request.purpose == "checks"
    }
    assert len(orders) > 1
    assert len({frozenset(order) for order in orders}) == 1


def test_a_run_that_does_not_fit_is_asked_scenario_by_scenario_and_says_what_is_not_shown() -> None:
    run = run_of(ledger(prints="x", first=PLAN + "y" * 200_000))
    backend = in_turn(reply(text="nothing"))
    found = judge_run(run, Settings(Model("judge-1", "chat", context_tokens=40_000), votes=1), backend).instances[0]
    text = backend.asked[0].messages[0].text
    assert 'characters; go on with read_turns(item="1.3", offset=24000)' in text
    assert found.state == "unscored"
    assert "3 replies in a row brought nothing" in found.checks[0].reason


def test_what_the_endpoint_calls_too_long_is_unscored_with_that_reason(run: Run) -> None:
    def say(_: JudgeRequest) -> JudgeReply:
        raise RequestTooLarge("HTTP 400: prompt is too long")

    found = judge_run(run, SETTINGS, Told(say)).instances[0]
    assert found.state == "unscored"
    assert "the run cannot be read whole by this judge: HTTP 400" in found.checks[0].reason


def test_what_the_backend_cannot_do_goes_up(run: Run) -> None:
    def say(_: JudgeRequest) -> JudgeReply:
        raise BackendUnavailable("away")

    with pytest.raises(BackendUnavailable, match="away"):
        judge_run(run, SETTINGS, Told(say))


def test_the_same_replies_make_the_same_record(run: Run) -> None:
    settings = Settings(MODEL, votes=3)
    assert judge_run(run, settings, in_turn(ALL_GOOD)) == judge_run(run, settings, in_turn(ALL_GOOD))
    one, two = judge_runs([run, run], settings, in_turn(ALL_GOOD))
    assert one == two


# -- budget


def priced(tokens: int) -> JudgeReply:
    return ALL_GOOD.model_copy(update={"usage": Tokens(input=tokens)})


def test_a_spent_budget_leaves_the_rest_unscored(run: Run) -> None:
    purse = Purse(Limit(tokens=20_000))
    backend = in_turn(priced(30_000))
    found = judge_run(run, Settings(MODEL, votes=3), backend, purse).instances[0]
    assert len(backend.asked) == 1  # the first vote took it all
    assert (found.state, purse.cost().exhausted) == ("unscored", True)
    assert EXHAUSTED in found.checks[0].reason


def looking(tokens: int) -> JudgeReply:
    return reply(use("search", text="main.py")).model_copy(update={"usage": Tokens(input=tokens)})


def test_a_vote_spends_no_more_than_its_part(run: Run) -> None:
    purse, backend = Purse(Limit(tokens=60_000)), in_turn(looking(21_000))
    judge_run(run, Settings(MODEL, votes=3), backend, purse)
    assert len(backend.asked) == 1
    assert (purse.spent.charged, purse.cost().exhausted) == (21_000, True)


def test_what_a_vote_could_not_ask_no_later_vote_asks() -> None:
    """One run is dear, the other not: what is left is for the checks that have all their votes so far."""
    dear, cheap = run_of(ledger(prints="1 failed")), run_of(ledger())

    def is_dear(request: JudgeRequest) -> bool:
        return "1 failed" in request.messages[0].text

    backend = Told(lambda request: looking(30_000) if is_dear(request) else ALL_GOOD)
    purse = Purse(Limit(tokens=100_000))
    judged = judge_runs([dear, cheap], Settings(MODEL, votes=2), backend, purse)
    assert [part.instances[0].state for part in judged] == ["unscored", "triggered"]
    assert [request.vote for request in backend.asked if is_dear(request)] == [1]
    assert [request.vote for request in backend.asked if not is_dear(request)] == [1, 2]
    assert EXHAUSTED in judged[0].instances[0].checks[0].reason
    assert purse.cost().exhausted


def test_an_empty_budget_asks_nothing(run: Run) -> None:
    purse, backend = Purse.of(JudgeBudget(tokens=1), 10, None), in_turn(ALL_GOOD)
    assert judge_run(run, SETTINGS, backend, purse).instances[0].state == "unscored"
    assert (backend.asked, purse.cost().requests, purse.cost().exhausted) == ([], 0, True)


@pytest.mark.parametrize("limit", [Limit(tokens=1), Limit(tokens=1_000), Limit(usd=Decimal("0.000001"))])
def test_a_request_that_is_dearer_than_what_is_left_is_not_asked(run: Run, limit: Limit) -> None:
    purse, backend = Purse(limit, PRICES), in_turn(ALL_GOOD)
    found = judge_run(run, SETTINGS, backend, purse).instances[0]
    assert (backend.asked, purse.cost().exhausted, purse.spent) == ([], True, Spent())
    assert {check.verdict for check in found.checks if check.by != "program"} == {"unscored"}


def test_what_has_no_price_is_charged_and_its_cost_is_not_told(run: Run) -> None:
    """Caches are used unasked: a budget in dollars has to hold where nobody gave the price of a cached token."""
    cached = ALL_GOOD.model_copy(update={"usage": Tokens(cache_read=1_000_000, cache_write=100_000)})
    purse, backend = Purse(Limit(usd=Decimal("1.00")), PRICES), in_turn(cached)
    judge_run(run, Settings(MODEL, votes=3), backend, purse)
    assert (len(backend.asked), purse.cost().exhausted, purse.cost().cost_usd) == (1, True, None)
    assert purse.spent.usd == Decimal("3.6")  # 3 + 0.6, at most


def test_the_shares_of_all_groups_are_the_budget() -> None:
    assert Purse.of(JudgeBudget(tokens=1_000), 3, None).limit == Limit(tokens=333)  # never more than the whole
    assert Purse.of(JudgeBudget(usd="10"), 4, PRICES).limit == Limit(usd=Decimal("2.5"))
    assert Purse.of(None, 4, PRICES).limit == Limit()


def test_dollars_without_prices_hold_nothing_and_are_refused() -> None:
    with pytest.raises(ValueError, match=r"needs spec\.judge\.model\.prices"):
        Purse.of(JudgeBudget(usd="5"), 1, None)


def test_a_wave_shares_what_is_left(run: Run) -> None:
    purse = Purse(Limit(tokens=3_000))
    assert purse.split(3) == Limit(tokens=1_000)
    purse.add(Spent(charged=2_400))
    assert purse.split(2) == Limit(tokens=300)
    purse.add(Spent(charged=5_000))
    assert purse.split(2) == Limit(tokens=0)
    assert Purse(Limit(usd=Decimal(3))).split(4) == Limit(usd=Decimal("0.75"))


PRICES = Prices(input_per_million="3", output_per_million="15")


@pytest.mark.parametrize(
    ("tokens", "usd"),
    [
        (Tokens(input=1_000_000, output=100_000), Decimal("4.5")),
        (Tokens(cache_read=1), None),  # no price for a kind that was used
        (Tokens(), Decimal(0)),
    ],
)
def test_cost(tokens: Tokens, usd: Decimal | None) -> None:
    assert cost_of(tokens, PRICES) == usd
    assert cost_of(tokens, None) is None


def test_unknown_usage_is_no_zero(run: Run) -> None:
    purse = Purse(Limit(tokens=20_000), PRICES)
    judge_run(run, SETTINGS, in_turn(ALL_GOOD), purse)
    cost = purse.cost()
    assert (cost.requests, cost.tokens, cost.cost_usd) == (1, None, None)
    assert purse.spent.charged > 1_000  # by its size, so that a budget holds


def test_known_usage_is_counted(run: Run) -> None:
    purse = Purse(Limit(), PRICES)
    judge_run(run, SETTINGS, in_turn(priced(1_000)), purse)
    assert purse.cost().dump() == {"requests": 1, "tokens": Tokens(input=1_000).dump(), "costUsd": "0.003000", "exhausted": False}


def test_settings_are_those_of_the_spec() -> None:
    key = {"apiKey": {"secretRef": {"name": "s", "key": "k"}}}
    spec = {"model": {"model": "m-1", "temperature": "0.5", "endpoints": {"anthropic": {"url": "https://a", **key}}}, "votes": 5}
    found = Settings.of(Judge.model_validate(spec))
    assert found is not None
    assert (found.model.id, found.model.api, found.model.parameters.temperature, found.votes) == ("m-1", "anthropic", "0.5", 5)
    assert Settings.of(Judge()) is None
