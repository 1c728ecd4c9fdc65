"""Admission beyond the window: lanes' limits, throttling, breaker and probes, a configuration not known to work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realcli.api.outcomes import Phase
from realcli.api.plan import Plan
from realcli.api.source import PlanSource
from realcli.api.trial import TrialStatus
from realcli_operator.kube.views import TrialView
from realcli_operator.reconcile.admission import Admission, Bounds, admit, missing
from realcli_operator.reconcile.breaker import Breaker, breaker_of
from realcli_operator.reconcile.concurrency import _Flights, shown, throttled_caps
from realcli_operator.reconcile.conditions import with_condition
from realcli_operator.reconcile.policy import Policy
from realcli_operator.reconcile.recent import Lane, Row, Scope, ends_of
from realcli_operator.reconcile.rows import Rows

POLICY = Policy()
BOTH = ("one.x", "two.y")


class World:
    """Trials of a plan, said in the words of the rules."""

    def __init__(self, a: Any, plan: Plan) -> None:
        self.a = a
        self.plan = plan
        self.trials: dict[int, TrialView] = {}

    def ordinals(self, configuration: str | None = None, task: str | None = None) -> list[int]:
        cells = map(self.plan.coordinates, range(self.plan.size))
        return [c.ordinal for c in cells if configuration in (None, c.configuration) and task in (None, c.task)]

    def put(self, ordinal: int, phase: Phase, running: tuple[Any, str, float] | None = None, **values: Any) -> None:
        conditions = []
        if running is not None:
            status, reason, ago = running
            conditions = with_condition((), "Running", status, reason, "", self.a.ago(ago), 1)
        status = TrialStatus(phase=phase, conditions=conditions, **values)
        self.trials[ordinal] = self.a.trial(status, ordinal=ordinal, plan=self.plan)

    def waits(self, *ordinals: int, **values: Any) -> None:
        for ordinal in ordinals:
            self.put(ordinal, Phase.PENDING, **values)

    def works(self, ordinal: int, *, since: float, **values: Any) -> None:
        self.put(ordinal, Phase.WORKING, ("True", "Working", since), attempt=1, **values)

    def failed(self, ordinal: int, reason: str, *, ago: float, took: float | None = 20, **values: Any) -> None:
        """Between attempts: its back-off is over."""
        started = {} if took is None else {"started_at": self.a.at(ago + took)}
        given = {"attempt": 1, "invalid_attempts": 1, "reason": reason, **started, **values}
        self.put(ordinal, Phase.PENDING, ("False", reason, ago), **given)

    def ended(self, ordinal: int, reason: str = "Completed", *, ago: float, took: float = 600, **values: Any) -> None:
        phase = Phase.SEALED if reason == "Completed" else Phase.INVALID
        times = {"started_at": self.a.at(ago + took), "ended_at": self.a.at(ago)}
        self.put(ordinal, phase, ("False", reason, ago), reason=reason, attempt=1, **times, **values)

    @property
    def rows(self) -> dict[int, Row]:
        return Rows(self.trials.values())

    def breaker(self, later: float = 0) -> Breaker:
        rows = self.rows
        return breaker_of(self.plan, rows.values(), ends_of(rows.values()), self.a.now + timedelta(seconds=later), POLICY)

    def admit(self, parallelism: int = 100, later: float = 0, granted: frozenset[str] = frozenset(), **bounds: Any) -> Admission:
        given = Bounds(**({"parallelism": parallelism, "breaker": self.breaker(later)} | bounds))
        return admit(self.plan, self.rows, granted, given, self.a.now + timedelta(seconds=later), POLICY)

    def configurations(self, names: Any) -> Counter[str]:
        of = {view.name: str(view.spec["configuration"]) for view in self.trials.values()}
        return Counter(of[name] for name in names)

    def caps(self, **spec: Any) -> Mapping[Lane, int]:
        rows = self.rows
        return throttled_caps(self.plan, rows, ends_of(rows.values()), self.a.spec(**spec), POLICY)


@pytest.fixture
def two(a: Any) -> World:
    """Two configurations of two models, four tasks, three repeats, one mode: 12 trials each."""
    world = World(a, a.wide(*BOTH, tasks=4, repeats=3, modes=("EXEC",)))
    world.waits(*range(world.plan.size))
    return world


def lane(scope: Scope, name: str) -> Lane:
    return Lane(scope, name)


class TestOrderAndLimits:
    def test_places_are_shared_among_configurations(self, two: World) -> None:
        assert two.configurations(two.admit(parallelism=6).new) == {"one.x": 3, "two.y": 3}

    def test_a_model_has_at_most_what_was_asked_for(self, two: World) -> None:
        admission = two.admit(caps={lane(Scope.MODEL, "x"): 2}, parallelism=8)
        assert two.configurations(admission.new) == {"one.x": 2, "two.y": 5}, "and the other not known to work: five"
        full = [(Scope.MODEL, "x"), (Scope.CONFIGURATION, "two.y"), (Scope.ENDPOINT, "y/anthropic"), (Scope.KEY, "y/anthropic")]
        assert {lane(*name) for name in full} == admission.full

    def test_who_runs_counts(self, two: World) -> None:
        first = two.ordinals("one.x")[0]
        two.works(first, since=5)
        assert two.configurations(two.admit(caps={lane(Scope.MODEL, "x"): 2}).new)["one.x"] == 1

    def test_a_configuration_that_is_not_known_to_work_starts_with_five(self, two: World) -> None:
        assert two.configurations(two.admit().new) == {"one.x": 5, "two.y": 5}
        two.ended(two.ordinals("one.x")[0], ago=10)
        assert two.configurations(two.admit().new) == {"one.x": 11, "two.y": 5}

    def test_so_do_all_configurations_of_a_key_together(self, a: Any) -> None:
        """Whatever their number: what is wrong with the key, five trials find out."""
        world = World(a, a.wide("a.x", "b.x", "c.x", "d.x", "e.y", tasks=8, repeats=1, modes=("EXEC",)))
        world.waits(*range(world.plan.size))
        found = world.configurations(world.admit().new)
        assert (sum(found.values()) - found["e.y"], found["e.y"]) == (5, 5)
        assert lane(Scope.ENDPOINT, "x/anthropic") in world.admit().full
        again = World(a, world.plan.model_copy(update={"source": PlanSource(sweep="audits/first", verify=True)}))
        again.waits(*range(again.plan.size))
        assert set(again.configurations(again.admit().new).values()) == {5}, "no key takes part where nothing but tests run"
        world.ended(world.ordinals("a.x")[0], ago=10)
        assert world.configurations(world.admit().new) == {"a.x": 7, "b.x": 5, "c.x": 5, "d.x": 5, "e.y": 5}

    def test_a_configuration_whose_attempt_works_for_minutes_is_known_to(self, two: World) -> None:
        two.works(two.ordinals("one.x")[0], since=POLICY.proving - 7)
        before = two.admit()
        assert two.configurations(before.new)["one.x"] == 4
        assert two.breaker().again == 7.0
        assert two.configurations(two.admit(later=7).new)["one.x"] == 11

    def test_a_full_lane_neither_fills_the_window_nor_gets_company(self, two: World) -> None:
        for ordinal in two.ordinals("two.y")[3:]:
            del two.trials[ordinal]
        full = frozenset({lane(Scope.MODEL, "x")})
        assert {two.plan.coordinates(i).configuration for i in missing(two.plan, two.rows, 6, 50, full)} == {"two.y"}
        assert len(missing(two.plan, two.rows, 6, 50, full)) == 3
        assert missing(two.plan, two.rows, 6, 50) == ()

    def test_held_nothing_is_granted(self, two: World) -> None:
        assert two.admit(held=True, granted=frozenset({"first-00000"})) == Admission()


@dataclass(frozen=True)
class Flown:
    """A trial, as far as its attempts count."""

    spans: tuple[tuple[str, str | None], ...]


AT = st.sampled_from([f"2026-12-01T12:00:{second:02d}Z" for second in range(8)])
SPANS = st.lists(st.tuples(AT, AT | st.none()), max_size=2).map(tuple)


@settings(max_examples=200)
@given(st.lists(SPANS, max_size=6), AT)
def test_in_flight_is_who_had_begun_and_not_ended(trials: list[Any], time: str) -> None:
    counted = sum(any(begun <= time and (end is None or end >= time) for begun, end in spans) for spans in trials)
    assert _Flights([Flown(spans) for spans in trials]).at(time) == max(1, counted)  # type: ignore[list-item]


class TestThrottling:
    def in_flight(self, world: World, number: int, ended: int, share: str, ago: float = 100) -> None:
        """``number`` attempts of one.x since long, the first ``ended`` of which end."""
        for index, ordinal in enumerate(world.ordinals("one.x")[:number]):
            if index < ended:
                world.ended(ordinal, ago=ago - index, took=3600, throttled=share)
            else:
                world.works(ordinal, since=3600)

    @pytest.mark.parametrize(("share", "limit"), [("0.5", 4), ("0.1001", 4), ("0.1", None), ("0", None), (None, None)])
    def test_a_throttled_end_halves_what_is_in_flight(self, two: World, share: Any, limit: int | None) -> None:
        self.in_flight(two, 8, 1, share)
        wanted = {lane(Scope.CONFIGURATION, "one.x"), lane(Scope.MODEL, "x")}
        assert two.caps(parallelism=100) == ({} if limit is None else dict.fromkeys(wanted, limit))

    def test_attempts_that_began_before_the_cut_do_not_cut_again(self, two: World) -> None:
        self.in_flight(two, 8, 4, "0.5")
        assert set(two.caps(parallelism=100).values()) == {4}

    def test_one_that_began_after_it_does(self, two: World) -> None:
        self.in_flight(two, 8, 1, "0.5", ago=500)
        two.ended(two.ordinals("one.x")[8], ago=50, took=400, throttled="0.5")
        assert set(two.caps(parallelism=100).values()) == {2}

    def test_ends_without_throttling_give_back_one_place_for_four(self, two: World) -> None:
        self.in_flight(two, 4, 1, "0.5", ago=500)
        assert set(two.caps(parallelism=100).values()) == {2}
        for index in range(4, 8):
            two.ended(two.ordinals("one.x")[index], ago=100 - index, took=300, throttled="0.01")
        assert set(two.caps(parallelism=100).values()) == {3}
        assert two.caps(parallelism=3) == {}, "a limit that is none is not shown"

    @pytest.mark.parametrize("done", [1, 99, 150, 400])
    def test_one_time_of_throttling_halves_once_however_many_ran(self, a: Any, done: int) -> None:
        world = World(a, a.wide("one.x", tasks=40, repeats=10, modes=("EXEC",)))
        for index, ordinal in enumerate(world.ordinals("one.x")):
            if index < done:
                world.ended(ordinal, ago=1000 - index, took=3600, throttled="0.5")
            else:
                world.works(ordinal, since=5000)
        assert set(world.caps(parallelism=500).values()) == {200}

    @pytest.mark.parametrize(("clean", "limit"), [(0, 60), (3, 60), (99, 84), (100, 85), (101, 85), (160, 100)])
    def test_what_was_cut_comes_back_one_by_one(self, a: Any, clean: int, limit: int) -> None:
        world = World(a, a.wide("one.x", tasks=40, repeats=10, modes=("EXEC",)))
        first, *others = world.ordinals("one.x")
        world.ended(first, ago=5000, took=3600, throttled="0.5")
        for ordinal in others[:119]:
            world.works(ordinal, since=6000)
        for index, ordinal in enumerate(others[119 : 119 + clean]):
            world.ended(ordinal, ago=4000 - index, took=100, throttled="0")
        assert set(world.caps(parallelism=130).values()) == {limit}

    def test_an_attempt_that_ended_invalid_is_remembered_while_the_next_works(self, two: World) -> None:
        """Where the provider throttles most, attempts end for it: what began anew since must not lift the limit."""
        last = {"reason": "ProviderUnavailable", "at": two.a.at(100), "began": two.a.at(3700), "throttled": "0.9"}
        for ordinal in two.ordinals("one.x")[:8]:
            two.works(ordinal, since=60, invalid_attempts=1, **{f"last_invalid_{name}": value for name, value in last.items()})
        assert set(two.caps(parallelism=100).values()) == {4}, "of the eight that ran then"

    def test_never_below_one(self, two: World) -> None:
        self.in_flight(two, 1, 1, "1")
        assert set(two.caps(parallelism=100).values()) == {1}

    def test_each_trial_is_looked_at_once_however_many_ends_were_throttled(
        self, two: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where one alone is throttled still, each end halves again: of thousands of trials a step would take seconds."""
        for number, ordinal in enumerate(two.ordinals("one.x")):
            two.ended(ordinal, ago=10000 - 600 * number, took=500, throttled="0.5")
        asked: list[str] = []
        spans = Row.spans.fget
        monkeypatch.setattr(Row, "spans", property(lambda row: asked.append(row.name) or spans(row)))
        assert set(two.caps(parallelism=100).values()) == {1}
        assert set(Counter(asked).values()) == {2}, "once for its configuration, once for its model"

    def test_it_is_shown(self, two: World) -> None:
        self.in_flight(two, 8, 1, "0.5")
        assert [(r.scope, r.name, r.limit) for r in shown(two.caps(parallelism=100))] == [
            ("Configuration", "one.x", 4),
            ("Model", "x", 4),
        ]


def fail(world: World, configuration: str, reason: str, number: int, **values: Any) -> None:
    """The newest trials of a configuration, on as many tasks as there are, failed."""
    ordinals = sorted(world.ordinals(configuration), key=lambda i: (world.plan.coordinates(i).repeat, i))
    for index, ordinal in enumerate(ordinals[:number]):
        world.failed(ordinal, reason, **({"ago": 100 - index} | values))


class TestBreaker:
    @pytest.mark.parametrize("reason", ["ProviderUnavailable", "ImageUnavailable", "SessionLost", "SetupTimeout"])
    def test_a_configuration_whose_ends_share_a_reason_is_stopped_and_the_other_goes_on(self, two: World, reason: str) -> None:
        fail(two, "one.x", reason, 3)
        breaker = two.breaker()
        assert list(breaker.open) == [lane(Scope.CONFIGURATION, "one.x")]
        (found,) = breaker.open.values()
        assert (found.reason, found.failing, found.ends) == (reason, 3, 3)
        assert found.probe_at == two.a.ago(98) + timedelta(seconds=POLICY.probe_interval)
        admission = two.admit()
        assert two.configurations(admission.new) == {"two.y": 5}
        assert two.configurations(admission.broken) == {"one.x": 12}

    @pytest.mark.parametrize("reason", ["Preempted", "Drained", "Cancelled", "VerifierFault"])
    def test_what_is_asked_for_or_the_tasks_own_stops_nothing(self, two: World, reason: str) -> None:
        for ordinal in two.ordinals("one.x")[:6]:
            two.ended(ordinal, reason, ago=50)
        assert two.breaker().open == {}

    def test_final_ends_count_too(self, two: World) -> None:
        """A Secret that is gone ends a trial for good: the breaker saves the others."""
        for ordinal in two.ordinals("one.x")[::3]:
            two.ended(ordinal, "ConfigurationError", ago=50)
        assert list(two.breaker().open) == [lane(Scope.CONFIGURATION, "one.x")]

    def test_two_ends_or_mixed_reasons_are_no_pattern(self, two: World) -> None:
        fail(two, "one.x", "ProviderUnavailable", 2)
        assert two.breaker().open == {}
        two.failed(two.ordinals("one.x")[-1], "SessionLost", ago=50)
        assert two.breaker().open == {}, "two of three are most, and too few"
        fail(two, "one.x", "ProviderUnavailable", 3)
        for ordinal in two.ordinals("one.x")[-3:]:
            two.failed(ordinal, "SessionLost", ago=50)
        assert two.breaker().open == {}, "half is not most"

    @pytest.mark.parametrize("failing", [0, 3])
    def test_that_all_is_proven_hides_no_failure(self, two: World, failing: int) -> None:
        """Where nothing failed there is nothing to find out, and no time at which that would change."""
        for ordinal in two.ordinals("two.y")[:4]:
            two.ended(ordinal, ago=50)
        two.works(two.ordinals("one.x")[-1], since=20)
        fail(two, "one.x", "ProviderUnavailable", failing)
        rows = two.rows.values()
        found = breaker_of(two.plan, rows, ends_of(rows), two.a.now, POLICY, ["one.x", "two.y"])
        assert found.proven == {"one.x", "two.y"}
        assert list(found.open) == ([lane(Scope.CONFIGURATION, "one.x")] if failing else [])
        assert (found.again is None) is (failing == 0)

    def test_a_lost_node_stops_neither_what_ran_there_nor_its_tasks(self, two: World) -> None:
        """All pods of a young sweep may have been on it."""
        fail(two, "one.x", "NodeLost", 5, node="n1")
        assert two.breaker().open == {}
        assert two.admit().broken == frozenset()
        fail(two, "two.y", "NodeLost", 3, node="n1")
        assert list(two.breaker().open) == [lane(Scope.NODE, "n1")]
        assert two.breaker().nodes == {"n1"}

    def test_older_successes_do_not_hide_that_it_has_broken(self, two: World) -> None:
        for ordinal in two.ordinals("one.x")[-5:]:
            two.ended(ordinal, ago=3000)
        fail(two, "one.x", "ProviderUnavailable", 3)
        assert two.breaker().open == {}, "three of six"
        fail(two, "one.x", "ProviderUnavailable", 4)
        assert list(two.breaker().open) == [lane(Scope.CONFIGURATION, "one.x")]

    def test_a_broken_task_stops_alone(self, two: World) -> None:
        for ordinal in two.ordinals(task="task-1")[:4]:
            two.failed(ordinal, "ImageUnavailable", ago=100)
        assert list(two.breaker().open) == [lane(Scope.TASK, "task-1")]
        stopped = {two.trials[i].name for i in two.ordinals(task="task-1")}
        assert two.admit().broken == stopped

    def test_what_a_configuration_explains_is_not_held_against_tasks(self, two: World) -> None:
        fail(two, "one.x", "ProviderUnavailable", 12)
        assert list(two.breaker().open) == [lane(Scope.CONFIGURATION, "one.x")]

    def test_an_endpoint_is_broken_where_all_that_ask_it_are(self, a: Any) -> None:
        """Its key is revoked, say; the model's other API has another."""
        plan = a.wide("one.x", "two.x", "two.y", "new.x", tasks=4, repeats=1, modes=("EXEC",))
        others = [c.model_copy(update={"api": "responses"}) if c.name == "new.x" else c for c in plan.configurations]
        world = World(a, plan.model_copy(update={"configurations": others}))
        world.waits(*range(world.plan.size))
        for configuration in ("one.x", "two.x"):
            fail(world, configuration, "ProviderUnavailable", 2)
        assert list(world.breaker().open) == [lane(Scope.ENDPOINT, "x/anthropic")]
        assert world.configurations(world.admit().new) == {"new.x": 4, "two.y": 4}

    def test_a_node_is_no_endpoint_s_fault(self, a: Any) -> None:
        world = World(a, a.wide("one.x", "two.x", tasks=4, repeats=3, modes=("EXEC",)))
        world.waits(*range(world.plan.size))
        for ordinal in (0, 7, 14):
            world.failed(ordinal, "NodePressure", ago=100, node="n7")
        assert list(world.breaker().open) == [lane(Scope.NODE, "n7")]

    def test_a_node_is_named_and_nothing_else_stops(self, two: World) -> None:
        for ordinal in (0, 7, 14):
            two.failed(ordinal, "NodePressure", ago=100, node="n7")
        breaker = two.breaker()
        assert list(breaker.open) == [lane(Scope.NODE, "n7")]
        assert breaker.nodes == {"n7"}
        assert len(two.admit().new) == 10
        assert two.admit().broken == frozenset()

    def test_a_probe_goes_when_it_is_due_and_is_the_only_one(self, two: World) -> None:
        fail(two, "one.x", "ProviderUnavailable", 3)
        due = 98.0  # the last failure was 98 s ago
        assert two.breaker().again == POLICY.probe_interval - due
        assert two.configurations(two.admit(later=POLICY.probe_interval - due - 1).new)["one.x"] == 0
        admission = two.admit(later=POLICY.probe_interval - due)
        assert two.configurations(admission.new)["one.x"] == 1
        (probe,) = [name for name in admission.new if two.configurations([name])["one.x"]]
        view = next(v for v in two.trials.values() if v.name == probe)
        assert view.status.get("invalidAttempts", 0) == 0, "one that has lost no attempt yet"
        again = two.admit(later=POLICY.probe_interval - due, granted=admission.grants)
        assert again.grants == admission.grants, "its grant is kept, and there is no second one"

    def test_a_probe_that_works_puts_off_the_next_and_closes_when_it_has_outlived_the_failures(self, two: World) -> None:
        fail(two, "one.x", "ProviderUnavailable", 3, took=400)
        two.works(two.ordinals("one.x")[-1], since=50)
        assert two.breaker().open[lane(Scope.CONFIGURATION, "one.x")].probe_at == two.a.ago(50) + timedelta(seconds=300)
        assert list(two.breaker(later=749).open) != []
        assert two.breaker(later=750).open == {}, "twice as long as the failures took"
        assert two.configurations(two.admit(later=750).new)["one.x"] == 11

    def test_an_attempt_that_began_before_the_failures_proves_nothing(self, two: World) -> None:
        two.works(two.ordinals("one.x")[-1], since=4000)
        fail(two, "one.x", "ProviderUnavailable", 3)
        assert list(two.breaker(later=5000).open) == [lane(Scope.CONFIGURATION, "one.x")]

    def test_a_success_that_began_after_the_failures_closes(self, two: World) -> None:
        fail(two, "one.x", "ProviderUnavailable", 6)
        two.ended(two.ordinals("one.x")[-1], ago=10, took=60)
        assert two.breaker().open == {}

    def test_without_a_node_the_time_it_took_is_unknown(self, two: World) -> None:
        fail(two, "one.x", "SetupTimeout", 3, took=None)
        two.works(two.ordinals("one.x")[-1], since=50)
        assert list(two.breaker(later=4000).open) == [lane(Scope.CONFIGURATION, "one.x")]

    def test_an_end_counts_on_when_its_trial_has_begun_again(self, two: World) -> None:
        for index, ordinal in enumerate(two.ordinals("one.x")[:4]):
            last = {"reason": "SessionLost", "at": two.a.at(100 - index), "began": two.a.at(900), "node": "n1"}
            two.works(ordinal, since=5, **{f"last_invalid_{name}": value for name, value in last.items()})
        found = two.breaker().open[lane(Scope.CONFIGURATION, "one.x")]
        assert (found.reason, found.last.node) == ("SessionLost", "n1")
        assert two.breaker(later=1590).open != {}, "they began after those failures, which took 800 s"
        assert two.breaker(later=1605).open == {}

    def test_what_it_says(self, two: World) -> None:
        fail(two, "one.x", "ProviderUnavailable", 3, message="401 invalid x-api-key")
        text = two.breaker().open[lane(Scope.CONFIGURATION, "one.x")].describe(300)
        assert text == (
            "configuration one.x: 3 of the last 3 attempts ended ProviderUnavailable, the last of them that of trial first-00012 "
            "(401 invalid x-api-key); none starts there but one every 300 s"
        )

    def test_a_plan_of_one_cell_stops_too(self, a: Any) -> None:
        world = World(a, a.plan(tasks=1, repeats=3, modes=("EXEC",)))
        world.waits(*range(3))
        fail(world, "claude-code.sonnet", "ProviderUnavailable", 3)
        assert {found.scope for found in world.breaker().open} == {Scope.CONFIGURATION}
        assert len(world.admit(later=400).new) == 1
