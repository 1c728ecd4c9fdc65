"""Which trial runs a control, which tasks are withdrawn, who takes a place in the window. Pure."""

from __future__ import annotations

from typing import Any

import pytest

from realcli.api.outcomes import Phase
from realcli.api.sweepstatus import ControlEnd, ControlRow, Withdrawn
from realcli.api.trial import Awaiting
from realcli_operator.reconcile.admission import Bounds, admit, missing
from realcli_operator.reconcile.breaker import Breaker
from realcli_operator.reconcile.policy import Policy
from realcli_operator.reconcile.rows import Rows
from realcli_operator.reconcile.suspects import controls_of, told, withdrawn_of
from realcli_operator.reconcile.tally import complete_groups, count, rounds_of

FAILED = ControlEnd(result="Failed", ordinal=0, attempt=1, number=1, detail="NoReward: none")


def waits(a: Any, ordinal: int, plan: Any) -> Any:
    awaiting = Awaiting(reason="NoReward", detail="none")
    return a.trial(a.status(Phase.VERIFYING, awaiting=awaiting, verify_faults=3), ordinal=ordinal, plan=plan)


def faulty(a: Any, ordinal: int, plan: Any, control: ControlEnd = FAILED) -> Any:
    return a.trial(a.status(Phase.INVALID, reason="VerifierFault", control=control, attempt=1), ordinal=ordinal, plan=plan)


def of(plan: Any, task: str) -> list[int]:
    return [o for o in range(plan.size) if plan.coordinates(o).task == task]


def controls(plan: Any, rows: Rows, known: Any = (), free: int = 9) -> list[ControlRow]:
    return controls_of(plan, rows, known, "first", free)


@pytest.fixture
def wide(a: Any) -> Any:
    return a.wide("claude-code.sonnet", "claude-code.opus", tasks=2, repeats=2, modes=("EXEC",))


def test_the_lowest_waiting_trial_of_each_task_runs_its_control(a: Any, wide: Any) -> None:
    zero, one = of(wide, "task-0"), of(wide, "task-1")
    rows = Rows([waits(a, o, wide) for o in (zero[2], zero[1], one[3])])
    made = controls(wide, rows)
    assert [(row.task, row.image, row.result, row.trial) for row in made] == [
        ("task-0", "task:0", "Running", f"first-{zero[1]:05d}"), ("task-1", "task:1", "Running", f"first-{one[3]:05d}"),
    ]  # fmt: skip
    assert controls(wide, rows, made, free=0) == made, "what runs goes on without a free place"
    assert [row.task for row in controls(wide, rows, free=1)] == ["task-0"]
    assert controls(wide, rows, free=0) == []


def test_a_verifier_of_a_long_name_has_a_control(a: Any) -> None:
    """A registry's host, a path and a digest are more than a version."""
    image = f"registry.example.com/{'team/' * 20}realcli-session:1.0.0@sha256:{'0' * 64}"
    platform = a.platform()
    images = platform.images.model_copy(update={"session": image})
    plan = a.plan(platform=platform.model_copy(update={"images": images}))
    (row,) = controls(plan, Rows([waits(a, 0, plan)]))
    assert row.verifier == image


def test_an_end_is_taken_from_the_trials_and_stays(a: Any, wide: Any) -> None:
    zero = of(wide, "task-0")
    rows = Rows([faulty(a, zero[0], wide), waits(a, zero[1], wide)])
    for known in ([], controls(wide, Rows([waits(a, zero[0], wide)]))):
        (row,) = controls(wide, rows, known)
        assert (row.result, row.end, row.trial) == ("Failed", FAILED, "first-00000")
    other = row.model_copy(update={"result": "Passed", "end": FAILED.model_copy(update={"result": "Passed"})})
    assert controls(wide, rows, [other]) == [other], "the first that was read is the result"
    assert controls(wide, Rows(), [other]) == [other], "also when its trials are gone"


def test_a_control_whose_trial_does_not_wait_any_more_is_given_away(a: Any, wide: Any) -> None:
    zero = of(wide, "task-0")
    (row,) = controls(wide, Rows([waits(a, zero[0], wide)]))
    assert [r.trial for r in controls(wide, Rows([waits(a, zero[1], wide)]), [row])] == [f"first-{zero[1]:05d}"]
    assert controls(wide, Rows(), [row]) == []


def test_a_task_that_is_not_of_the_plan_is_not_withdrawn(a: Any) -> None:
    """Somebody's hand wrote it into the status: one withdrawn task of one would have ended the sweep while its trials ran."""
    forged = Withdrawn(task="no-such", reason="VerifierFault", configurations=[])
    assert withdrawn_of(a.plan(), Rows(), [], [forged]) == []


@pytest.mark.parametrize(
    ("configurations", "trials", "gone"),
    [(2, (0,), False), (2, (0, 1), False), (2, (0, 2), True), (1, (0,), False), (1, (0, 1), True)],
    ids=["one trial", "one configuration of two", "two configurations", "one trial of one", "two trials of one"],
)
def test_a_task_is_withdrawn_when_enough_met_it(a: Any, configurations: int, trials: Any, gone: bool) -> None:
    names = ["claude-code.sonnet", "claude-code.opus"][:configurations]
    plan = a.wide(*names, tasks=2, repeats=2, modes=("EXEC",))
    own = sorted(of(plan, "task-0"), key=lambda o: (names.index(plan.coordinates(o).configuration), o))
    rows = Rows([(faulty if n == 0 else waits)(a, own[t], plan) for n, t in enumerate(trials)])
    made = controls(plan, rows)
    found = withdrawn_of(plan, rows, made, [])
    assert [one.task for one in found] == (["task-0"] if gone else [])
    assert withdrawn_of(plan, Rows(), made, found) == found, "for good"
    said = told(rows, made, found)
    assert ("is withdrawn for all configurations" in said) is gone
    assert said.endswith(": NoReward: none")


def test_a_control_that_passed_withdraws_nothing(a: Any, wide: Any) -> None:
    passed = FAILED.model_copy(update={"result": "Passed"})
    rows = Rows([faulty(a, o, wide, passed) for o in of(wide, "task-0")])
    made = controls(wide, rows)
    assert (withdrawn_of(wide, rows, made, []), told(rows, made, [])) == ([], "")


def test_who_waits_for_a_control_takes_no_place_and_who_runs_it_does(a: Any, wide: Any) -> None:
    zero, one = of(wide, "task-0"), of(wide, "task-1")
    rows = Rows([waits(a, zero[0], wide), waits(a, zero[1], wide), a.trial(ordinal=one[0], plan=wide)])

    def admitted(parallelism: int, **bounds: Any) -> tuple[str, ...]:
        given = Bounds(parallelism, breaker=Breaker({}, frozenset()), **bounds)
        return admit(wide, rows, frozenset(), given, a.now, Policy()).new

    assert admitted(1) == (f"first-{one[0]:05d}",)
    assert admitted(1, holders=frozenset({f"first-{zero[0]:05d}"})) == ()
    assert admitted(2, holders=frozenset({f"first-{zero[0]:05d}"})) == (f"first-{one[0]:05d}",)
    assert admitted(9, withdrawn=frozenset({"task-1"})) == ()
    assert len(missing(wide, rows, 2, 9)) == 1, "nor in the look-ahead"


def test_counts_of_a_sweep_with_a_withdrawn_task_add_up(a: Any, wide: Any) -> None:
    zero, one = of(wide, "task-0"), of(wide, "task-1")
    sealed = [a.trial(a.status(Phase.SEALED, reason="Completed", reward="1"), ordinal=o, plan=wide) for o in one]
    rows = Rows([faulty(a, zero[0], wide), faulty(a, zero[1], wide), *sealed])
    groups = complete_groups(wide, rows, {"task-0"})
    assert {group % 2 for group in groups} == {1}
    assert len(groups) == 2
    counts = count(wide, rows, groups, {"task-0"})
    assert (counts.total, counts.created, counts.withdrawn, counts.pending) == (8, 6, 2, 0)
    assert (counts.groups, counts.groups_judged, counts.groups_withdrawn, counts.tasks_withdrawn) == (4, 2, 2, 1)
    assert counts.sealed + counts.invalid + counts.withdrawn == counts.total


def test_only_groups_with_a_renewed_trial_have_another_round(a: Any, wide: Any) -> None:
    trials = [
        a.trial(a.status(Phase.SEALED, reason="Completed", round=3 if o == 5 else 1), ordinal=o, plan=wide) for o in range(8)
    ]
    rows = Rows(trials)
    assert rounds_of(wide, rows) == {wide.group_of(5): 3}
    assert wide.group_of(6) not in complete_groups(wide, rows, again={6})


def test_the_list_of_withdrawn_tasks_stays_short(a: Any) -> None:
    names = [f"claude-code.m{n:02d}" for n in range(12)]
    plan = a.wide(*names, tasks=1, repeats=1, modes=("EXEC",))
    rows = Rows([faulty(a, o, plan) for o in range(plan.size)])
    (one,) = withdrawn_of(plan, rows, controls(plan, rows), [])
    assert isinstance(one, Withdrawn)
    assert (one.configurations, one.more) == (sorted(names)[:10], 2)
