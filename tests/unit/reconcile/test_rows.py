"""`Rows` brought up to date by changes are those built at once, whatever the changes were."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realcli.api.outcomes import Phase
from realcli_operator.kube.views import TrialView
from realcli_operator.reconcile.recent import ends_of
from realcli_operator.reconcile.rows import Rows, row_of
from realcli_operator.reconcile.spending import spending_of

TIMES = tuple(f"2026-12-01T12:00:{second:02d}Z" for second in range(6))
STATUSES = st.fixed_dictionaries(
    {"phase": st.sampled_from([*(phase.value for phase in Phase), "Novel"])},
    optional={
        "reason": st.sampled_from(["Completed", "NodeLost", "Cancelled", "AgentCrashed"]),
        "attempt": st.integers(0, 3),
        "endedAt": st.sampled_from(TIMES),
        "lastInvalidAt": st.sampled_from(TIMES),
        "lastInvalidReason": st.just("NodeLost"),
        "lastInvalidThrottled": st.sampled_from(["0", "0.5"]),
        "throttled": st.sampled_from(["0", "0.5", "nonsense"]),
        "costUSD": st.sampled_from(["0.000001", "12.5", "NaN", "999999999.0000000000000000000001"]),
        "tokens": st.just({"input": 7, "output": 3}),
        "workEnd": st.sampled_from(["Completed", "SetupTimeout"]),
        "earlier": st.just({"costUSD": "0.25", "tokens": {"input": 1}, "uncounted": 2}),
        "control": st.just({"result": "passed"}),
        "round": st.integers(1, 3),
        "node": st.sampled_from(["n1", "n2"]),
    },
)
MODES, TASKS = ("COLLAB", "EXEC"), ("t0", "t1")


def trial(ordinal: int, status: dict[str, Any], name: str = "") -> TrialView:
    """A cell of two tasks, two repeats, two configurations and two modes."""
    rest, mode = divmod(ordinal, 2)
    rest, configuration = divmod(rest, 2)
    task, repeat = divmod(rest, 2)
    spec = {
        "ordinal": ordinal,
        "configuration": f"c{configuration}",
        "task": TASKS[task],
        "mode": MODES[mode],
        "repeat": repeat + 1,
    }
    name = name or f"s-{ordinal:05d}"
    return TrialView(
        namespace="one", name=name, uid=name, resource_version=1, generation=1, labels={}, owner_uid="u", owner_name="s",
        spec_digest=None, creation_timestamp=None, deletion_timestamp=None, spec=spec, status=status,
    )  # fmt: skip


CHANGES = st.lists(st.tuples(st.integers(0, 15), st.one_of(st.none(), STATUSES)), max_size=12)
NAMED = st.lists(
    st.tuples(st.integers(0, 15), st.sampled_from(["", "", "twin", "other"]), st.one_of(st.none(), STATUSES)), max_size=12
)
"""Those with a name of their own were made by hand, and may change their ordinal."""
LISTED = st.sampled_from(["seen", "listed again", "all gone and back"])
"""What happened to the trials that did not change: their views are the same, equal ones, or those of new objects."""


def seen(rows: Rows, plan: Any) -> dict[str, Any]:
    """Everything that a decision reads."""
    return {
        "rows": dict(rows),
        "open": dict(rows.open),
        "invalid": rows.invalid,
        "controlled": rows.controlled,
        "renewed": rows.renewed,
        "phases": {key: number for key, number in rows.phases.items() if number},
        "sealed": +rows.sealed,
        "finished": {group: number for group, number in rows.finished(plan).items() if number},
        "spent": rows.spent,
        "failing": rows.failing,
        "ends": rows.newest_ends(100),
        "two": rows.newest_ends(2),
        "throttle": rows.throttle_ends(2),
        "shares": dict(rows.shares),
        "tasks": +rows.tasks,
        "complete": set(rows.complete(plan)),
        "absent": list(rows.absent(plan)),
    }


@settings(max_examples=200, deadline=None)
@given(rounds=st.lists(st.tuples(LISTED, NAMED, st.booleans()), min_size=1, max_size=4))
def test_changes_lead_to_what_is_built_at_once(rounds: list[Any], a: Any) -> None:
    """After each step, whether it was looked at before or not (from the first look on, groups are kept up to date)."""
    plan = a.plan(tasks=2, repeats=2)
    kept, trials = Rows(), dict[str, TrialView]()
    for listed, changes, looked_at in rounds:
        changed = dict[str, None]()
        if listed != "seen":
            new: dict[str, Any] = {"uid": "again", "resource_version": 2} if listed == "all gone and back" else {}
            trials = {name: replace(view, **new) for name, view in trials.items()}
            changed = dict.fromkeys(trials)
        if listed == "all gone and back":
            kept.move((), trials)
            assert seen(kept, plan) == seen(Rows(), plan)
        for ordinal, name, status in changes:
            view = trial(ordinal, status or {}, name)
            for where in (trials, changed):
                where.pop(view.name, None)
            changed[view.name] = None
            if status is not None:
                trials[view.name] = view
        kept.move([trials[name] for name in changed if name in trials], [name for name in changed if name not in trials])
        if looked_at:
            assert seen(kept, plan) == seen(Rows(trials.values()), plan)
    assert seen(kept, plan) == seen(Rows(trials.values()), plan)


def test_a_trial_that_cannot_be_read_is_an_error_each_time_and_moves_nothing(a: Any) -> None:
    plan = a.plan(tasks=2, repeats=2)
    good, bad = (
        trial(1, {"phase": "Sealed", "costUSD": "1", "tokens": {"input": 1}}),
        trial(2, {"phase": "Sealed", "tokens": "many"}),
    )
    rows = Rows((trial(1, {"phase": "Working"}), trial(2, {"phase": "Working"}), trial(3, {"phase": "Working"})))
    before = seen(rows, plan)
    for _ in range(2):
        with pytest.raises(AttributeError):
            rows.move((good, bad), ["s-00003"])
        assert seen(rows, plan) == before
    mended = trial(2, {"phase": "Invalid"})
    rows.move((good, mended), ["s-00003"])
    assert seen(rows, plan) == seen(Rows((good, mended)), plan)


@settings(max_examples=100, deadline=None)
@given(changes=CHANGES)
def test_sums_and_orders_are_those_of_the_plain_rules(changes: list[Any], a: Any) -> None:
    plan = a.plan(tasks=2, repeats=2)
    views = {ordinal: trial(ordinal, status) for ordinal, status in changes if status is not None}
    rows = Rows(tuple(views.values()))
    plain = [row_of(view) for view in views.values()]
    assert rows.newest_ends(100) == ends_of(plain)
    assert rows.throttle_ends(100) == [end for end in ends_of(plain) if end.throttled is not None]
    assert set(rows.open) == {row.ordinal for row in plain if not row.phase.terminal}
    assert set(rows.invalid) == {row.ordinal for row in plain if row.phase is Phase.INVALID}
    assert set(rows.controlled) == {row.ordinal for row in plain if "control" in row.view.status}
    assert set(rows.renewed) == {row.ordinal for row in plain if row.view.status.get("round", 1) >= 2}
    assert all((ordinal in rows) is (ordinal in views) for ordinal in range(16))
    assert +rows.phases == Counter((row.mode, row.phase) for row in plain)
    assert +rows.sealed == Counter(row.configuration for row in plain if row.phase is Phase.SEALED)
    assert rows.failing == sum(end.failing for end in ends_of(plain))
    assert rows.shares == Counter(end.throttled for end in ends_of(plain) if end.throttled is not None)
    over = [row.ordinal for row in plain if row.phase.terminal and row.reason != "Cancelled"]
    assert rows.finished(plan) == Counter(plan.group_of(ordinal) for ordinal in over)
    other = a.plan(tasks=4, repeats=1)
    assert rows.finished(other) == Counter(other.group_of(ordinal) for ordinal in over), "of another plan"
    assert Fraction(rows.spent.usd) == sum(_usd(view.status) for view in views.values())


def _usd(status: Any) -> Fraction:
    cost = status.get("costUSD", "0")
    return Fraction("0" if cost == "NaN" else cost) + Fraction(status.get("earlier", {}).get("costUSD", "0"))


def test_a_second_trial_of_an_ordinal_counts_once() -> None:
    twin = trial(3, {"phase": "Sealed"}, name="made-by-hand")
    first = trial(3, {"phase": "Working"})
    rows = Rows((first, twin))
    assert (len(rows), rows[3].name, len(rows.open)) == (1, "made-by-hand", 0)
    rows.move((), [twin.name])
    assert (len(rows), rows[3].name, sum(rows.phases.values())) == (1, first.name, 1)
    rows.move((twin,))
    rows.move((), [first.name, twin.name])
    assert (len(rows), sum(rows.phases.values())) == (0, 0)


def test_a_name_that_is_of_another_ordinal_now_is_of_no_other() -> None:
    rows = Rows((trial(3, {"phase": "Sealed"}, name="one"),))
    rows.move((trial(4, {"phase": "Invalid"}, name="one"),))
    assert (set(rows), set(rows.invalid), sum(rows.phases.values())) == ({4}, {4}, 1)


def test_a_trial_that_is_gone_is_to_be_made_again_where_it_stood(a: Any) -> None:
    plan = a.plan(tasks=2, repeats=2)
    order = list(Rows().absent(plan))
    rows = Rows(trial(ordinal, {}) for ordinal in order[:4])
    assert list(rows.absent(plan)) == order[4:]
    rows.move((), [rows[order[1]].name])
    assert list(rows.absent(plan)) == [order[1], *order[4:]]


def test_the_sum_of_nothing_is_nothing(a: Any) -> None:
    assert spending_of((), a.spec()).uncounted == 0
