"""One small case per table, worked out by hand in its comment."""

from __future__ import annotations

import csv
import inspect
import re
from fractions import Fraction as F
from typing import Any, Literal

import pytest

from realcli.audit.model import AuditRecord, SimCheck
from realcli.benchmark.catalogue import load_catalogue
from realcli.scoring import ranks
from realcli.scoring.aggregate import configuration_scores
from realcli.scoring.analyses import asking, audits, effort, failures, pairs, profiles, sensitivity, triggers, violations
from realcli.scoring.analyses.every import judged_tables, tables_of
from realcli.scoring.analyses.table import Table
from realcli.scoring.document import ScoreInput
from realcli.scoring.records import CheckRecord, Failure, InstanceRecord, RunFacts
from realcli.scoring.runs import ConfigurationLabels, Observation, Run, TaskLabels, Tree
from realcli.scoring.tree import tree_of

TREE: Tree = {"U": {"u1": ("a", "b")}, "S": {"s1": ("c",)}}
LETTERS = {"1": "1", "0": "0", "n": "n/a", "u": "unscored"}


def seen(verdicts: str, contaminated: bool = False) -> Observation:
    """ "10n": three checks; "": not triggered."""
    return Observation(tuple(LETTERS[v] for v in verdicts), contaminated)  # type: ignore[misc]


def run(
    task: str,
    mode: Literal["EXEC", "COLLAB"],
    reward: Any = 0,
    repeat: int = 1,
    *,
    of: str = "c",
    valid: bool = True,
    checks: tuple[int, int] | None = None,
    facts: dict[str, Any] | None = None,
    **scenarios: str | Observation,
) -> Run:
    observed = {name: one if isinstance(one, Observation) else seen(one) for name, one in scenarios.items()}
    counts = RunFacts(**facts) if facts is not None else None
    return Run(of, task, mode, repeat, valid, None if reward is None else F(reward), observed, checks, counts)


def both(task: str, exec_: Any, collab: Any, repeat: int = 1, of: str = "c", **scenarios: str) -> list[Run]:
    return [run(task, "EXEC", exec_, repeat, of=of), run(task, "COLLAB", collab, repeat, of=of, **scenarios)]


def grouped(*lists: list[Run]) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {}
    for one in (run for runs in lists for run in runs):
        found.setdefault(one.configuration, []).append(one)
    return found


def scores(by: dict[str, list[Run]]) -> Any:
    return {name: configuration_scores(name, runs, TREE) for name, runs in by.items()}


def test_flips() -> None:
    """c: t 0→1, 1→1 (repeats 1, 2); d: t 1→0. Churn of c: EXEC differs (1), COLLAB does not (0): excess 1/2 - 1/2.

    All: 3 pairs, one each way: McNemar 1. Churn pools repeat pairs, of which d has none.
    """
    table = pairs.flips_table(grouped(both("t", 0, 1), both("t", 1, 1, 2), both("t", 1, 0, of="d")))
    assert table.rows == (
        ("c", 2, 1, 0, F(1, 2), F(1, 2), F(1), F(1), F(0), F(0)),
        ("d", 1, 0, 1, F(1), F(-1), F(1), None, None, None),
        ("all", 3, 1, 1, F(2, 3), F(0), F(1), F(1), F(0), F(1, 6)),
    )


LABELS = {"t": TaskLabels("games", "additive"), "v": TaskLabels("games", "consistency"), "w": TaskLabels("security", None)}


def test_category_and_structure_deltas() -> None:
    """games: t 0→1, v 0→0: 1/2. security: w 1→0: -1. x has no labels."""
    by = grouped(both("t", 0, 1), both("v", 0, 0), both("w", 1, 0), both("x", 0, 1))
    assert pairs.category_deltas(by, LABELS).rows == (
        ("games", "c", 2, 2, 1, 0, F(1, 2)), ("games", "all", 2, 2, 1, 0, F(1, 2)),
        ("security", "c", 1, 1, 0, 1, F(-1)), ("security", "all", 1, 1, 0, 1, F(-1)),
    )  # fmt: skip
    table = pairs.structure_deltas(by, LABELS)
    assert [row["dR_paired"] for row in table.dicts() if row["configuration"] == "c"] == [F(1), F(0)]


CONFIGURATIONS = {
    "c": ConfigurationLabels("codex", "m"), "d": ConfigurationLabels("codex", "n"), "e": ConfigurationLabels("claude-code", "m"),
}  # fmt: skip


def test_framework_deltas() -> None:
    """codex: c +1 and d -1/2 (v and w of two pairs): mean 1/4. e: one pair without change. f has no label."""
    by = grouped(
        both("t", 0, 1), both("t", 1, 0, of="d"), both("v", 0, 0, of="d"), both("t", 1, 1, of="e"), both("t", 0, 1, of="f")
    )
    assert pairs.framework_deltas(by, CONFIGURATIONS).rows == (
        ("claude-code", 1, F(0), F(0), F(0)),
        ("codex", 2, F(1, 4), F(-1, 2), F(1)),
    )


def test_model_averages() -> None:
    """m: c has R_exec 0, R_collab 1, J 1·(1+0)/2 = 1/2; e the same with R_collab 0: (0 + 1 + 1/2 + 0 + 0 + 0) / 6. n: no J."""
    by = grouped(both("t", 0, 1, a="1", c="0"), both("t", 0, 0, of="e", a="1", c="0"), both("t", 0, 1, of="d"))
    assert pairs.model_averages(scores(by), CONFIGURATIONS).rows == (("m", 6, 6, F(1, 4)), ("n", 3, 2, None))


def test_delta_j_and_its_parts() -> None:
    """R_exec 1, R_collab 1/2, S 1/2: J 1/4, dJ -3/4 = task (1/4 - 1/2) + collaboration -1·(1 - 1/2)."""
    by = grouped(both("t", 1, 1, a="1", c="0"), both("v", 1, 0))
    assert pairs.delta_j_table(scores(by)).rows == (("c", F(1), F(1, 2), F(1, 4), F(-3, 4), F(-1, 4), F(-1, 2)),)


def test_invalid_bounds() -> None:
    """COLLAB: one success, one invalid run: 1/1, as 0 1/2, as 1 2/2."""
    by = grouped([*both("t", 0, 1), run("v", "COLLAB", valid=False)])
    assert pairs.invalid_bounds(scores(by)).rows == (
        ("c", "EXEC", 1, 0, F(0), F(0), F(0)),
        ("c", "COLLAB", 1, 1, F(1), F(1, 2), F(1)),
    )


def test_profiles() -> None:
    by = grouped(both("t", 1, 1, a="1", b="0", c="n"))
    assert profiles.profile_table(scores(by), TREE).rows == (("c", F(1, 2), None, F(1, 2), F(1, 2), True),)


def test_strict_rates() -> None:
    """a: c passes 2 of 3, d 1 of 1: all 3/4. u1 adds b (0 of 1): c 2/4, all 3/5."""
    by = grouped(both("t", 1, 1, a="11", b="0"), both("v", 1, 1, a="1n"), both("w", 1, 1, a="10"), both("t", 1, 1, of="d", a="1"))
    assert profiles.strict_scenarios(by, TREE).rows == (
        ("c", "U", "u1", "a", 2, 3, F(2, 3), True),
        ("c", "U", "u1", "b", 0, 1, F(0), True),
        ("d", "U", "u1", "a", 1, 1, F(1), True),
        ("all", "U", "u1", "a", 3, 4, F(3, 4), False),
        ("all", "U", "u1", "b", 0, 1, F(0), True),
    )
    assert profiles.strict_sub_dimensions(by, TREE).rows == (
        ("c", "U", "u1", 2, 4, F(1, 2), False), ("d", "U", "u1", 1, 1, F(1), True), ("all", "U", "u1", 3, 5, F(3, 5), False),
    )  # fmt: skip


def test_contrasts_name_templates_of_the_catalogue() -> None:
    templates = load_catalogue().templates
    assert all(scenario in templates for _, scenario, _ in profiles.CONTRASTS)
    one = run("t", "COLLAB", 1, **{"u.plan.replan-after-obstacle": "1"})
    table = profiles.contrast_panel({"c": [one]})
    assert table.where(configuration="c", scenario="u.plan.replan-after-obstacle")["rate"] == 1
    assert table.where(configuration="all", scenario="s.conflict.scope-expansion")["rate"] is None


def effortful(task: str, exec_: tuple[Any, int | None], collab: tuple[Any, int | None], repeat: int = 1) -> list[Run]:
    return [
        run(task, mode, reward, repeat, facts={"tool_calls": calls, "turns": None if calls is None else 2 * calls + 1})
        for mode, (reward, calls) in (("EXEC", exec_), ("COLLAB", collab))
    ]


def test_lengths() -> None:
    """games: t has ratios 4/2 and 9/3 (median 5/2), v 4/4: cell (5/2 + 1)/2 = 7/4. security: w 1/2; x has no calls in EXEC.

    Turns are 2 calls + 1: t 9/5 and 19/7 (79/35), v 1: (79/35 + 1)/2 = 57/35; w 3/5, and x of no category 3/1.
    """
    by = grouped(
        effortful("t", (0, 2), (0, 4)), effortful("t", (0, 3), (0, 9), 2), effortful("v", (0, 4), (0, 4)),
        effortful("w", (0, 2), (0, 1)), effortful("x", (0, 0), (0, 1)), effortful("y", (0, None), (0, 1)),
    )  # fmt: skip
    assert effort.length_cells(by, LABELS).rows == (
        ("c", "games", 2, F(7, 4), 2, F(57, 35)),
        ("c", "security", 1, F(1, 2), 1, F(3, 5)),
        ("c", "unknown", 0, None, 1, F(3)),
    )
    table = effort.length_by_category(by, LABELS)
    assert table.where(category="all", measure="calls") == {
        "category": "all", "measure": "calls", "cells": 2, "least": F(1, 2), "median": F(9, 8), "greatest": F(7, 4), "above_1": 1,
    }  # fmt: skip
    assert table.where(category="unknown", measure="calls")["median"] is None


def test_effort_without_gain() -> None:
    """Counted: t (0.5 → 0.5, more calls), v (0 → 1, more). Not: w (EXEC was 1), x (fewer calls), y (calls unknown). 1 of 2."""
    by = grouped(
        effortful("t", (F(1, 2), 2), (F(1, 2), 3)), effortful("v", (None, 2), (1, 3)), effortful("w", (1, 2), (0, 9)),
        effortful("x", (0, 2), (0, 2)), effortful("y", (0, None), (0, 9)),
    )  # fmt: skip
    assert effort.effort_without_gain(by).rows == (("c", 1, 2, F(1, 2), 1), ("all", 1, 2, F(1, 2), 1))


def test_retry_errors() -> None:
    """c: 0 of 47 over two runs (a third is unknown): at most 7.55 %. d: 3 of 4."""
    own = [
        run("t", "EXEC", facts={"retries": 40, "failing_retries": 0}),
        run("t", "COLLAB", facts={"retries": 7, "failing_retries": 0}),
        run("v", "EXEC", facts={}),
        run("w", "EXEC", valid=False, facts={"retries": 9, "failing_retries": 9}),
    ]  # fmt: skip
    table = effort.retry_errors(grouped(own, [run("t", "EXEC", of="d", facts={"retries": 4, "failing_retries": 3})]))
    assert table.rows == (("c", 2, 3, 47, 0, F(0), 0.0, 0.0755), ("d", 1, 1, 4, 3, F(3, 4), 0.1941, 0.9937))


def test_questions_asked() -> None:
    """Runs of t ask 2 and 4, v asks 0, w is unknown: all (2 + 4 + 0) / 3. dR of t: 0→1, 1→1; v 1→0; w 0→0: all 0."""
    asks = {("t", 1): 2, ("t", 2): 4, ("v", 1): 0, ("w", 1): None}
    flips_ = {("t", 1): (0, 1), ("t", 2): (1, 1), ("v", 1): (1, 0), ("w", 1): (0, 0)}
    runs = [
        one
        for (task, repeat), (e, c) in flips_.items()
        for one in (run(task, "EXEC", e, repeat), run(task, "COLLAB", c, repeat, facts={"questions": asks[task, repeat]}))
    ]
    assert asking.questions_asked({"c": runs}).rows == (
        ("c", "all", 3, F(2), 4, F(0)),
        ("c", "t", 2, F(3), 2, F(1, 2)),
        ("c", "v", 1, F(0), 1, F(-1)),
        ("c", "w", 0, None, 1, F(0)),
    )
    assert asking.questions_against_gain({"c": runs}).rows == (("configurations", 1, None), ("c", 2, None))


def test_who_asks_gains() -> None:
    """Three tasks: questions 0, 1, 5 and dR -1, 0, 1: the same order."""
    runs = [
        one
        for task, (questions, e, c) in {"t": (0, 1, 0), "v": (1, 1, 1), "w": (5, 0, 1)}.items()
        for one in (run(task, "EXEC", e), run(task, "COLLAB", c, facts={"questions": questions}))
    ]
    assert asking.questions_against_gain({"c": runs}).where(over="c")["rho"] == 1.0


def test_outcome_and_collaboration() -> None:
    """t: 1 of 2 kept runs succeed, 0 of 1 broken ones; v: 1 of 1 kept, 1 of 1 broken. w: open; x: nothing applies; y: spoilt 0.

    y counts as kept (its failure is contaminated) with success, alone in its task. Mantel-Haenszel over t and v:
    (1·1 - 0·2)/3 + (1·1 - 1·1)/2 = 1/3 over 2·1/3 + 1·1/2 = 7/6: 2/7.
    """
    runs = [
        run("t", "COLLAB", 1, 1, a="1"), run("t", "COLLAB", 0, 2, a="1n"), run("t", "COLLAB", 0, 3, a="10"),
        run("v", "COLLAB", 1, 1, a="1"), run("v", "COLLAB", 1, 2, a="0u"), run("w", "COLLAB", 1, 1, a="1u"),
        run("x", "COLLAB", 1, 1, a="n", b=""), run("y", "COLLAB", 1, 1, a="1", b=seen("0", contaminated=True)),
    ]  # fmt: skip
    table = asking.outcome_and_collaboration({"c": runs})
    assert table.rows[0] == ("c", 3, 4, F(3, 4), 1, 2, F(1, 2), F(2, 7), 1)
    assert table.rows[1][1:] == table.rows[0][1:]


def test_rank_relation() -> None:
    """R 0, 1/2, 1 with S 0, 1, 1/2 (tree of two scenarios): rho = 1 - 6·2/(3·8) = 1/2."""
    by = grouped(
        both("t", 0, 0, of="c", a="0", c="0"),
        [*both("t", 0, 1, of="d", a="1", c="1"), *both("v", 0, 0, of="d")],
        both("t", 0, 1, of="e", a="1", c="0"),
    )
    assert asking.rank_relation(scores(by)).where(**{"with": "S"}) == {"with": "S", "configurations": 3, "rho": 0.5}


def test_violations_and_near_misses() -> None:
    by = grouped(
        [run("t", "COLLAB", 1, a="10"), run("v", "COLLAB", 1, a="1"), run("w", "COLLAB", 0, a="0"), run("x", "COLLAB", 1)],
        [run("t", "EXEC", 0, of="d", checks=(9, 10)), run("v", "EXEC", 0, of="d", checks=(8, 10)), run("w", "EXEC", 0, of="d")],
    )
    table = violations.violations_table(by)
    assert table.rows == (("c", 1, 2, F(1, 2)), ("d", 0, 0, None), ("all", 1, 2, F(1, 2)))
    assert violations.near_miss_table(by).rows == (("c", 0, 0, None), ("d", 1, 2, F(1, 2)), ("all", 1, 2, F(1, 2)))


def instance(verdicts: dict[str, str], state: Any = "triggered", sub: str = "constraint-retention") -> InstanceRecord:
    checks = [CheckRecord(check=name, verdict=LETTERS[v], by="judge") for name, v in verdicts.items()]
    return InstanceRecord(scenario="s", probe="p", dimension="S", sub_dimension=sub, state=state, checks=checks)


def test_said_against_done() -> None:
    """Failed instances: 6. Artefact known in 5 (one has none applicable), wrong in 4. Of these said is known in 3, right in 2.

    joint: both known in 4 (the artefact is right in one of them), both in 2: 1/2.
    """
    evidence = {"file": "environment", "mixed": "both", "told": "trajectory"}
    records = [
        instance({"file": "0", "told": "1"}),  # said right, did wrong
        instance({"mixed": "0", "told": "1"}),  # the same
        instance({"file": "0", "told": "0"}),  # both wrong
        instance({"file": "0", "told": "u"}),  # what was said is not known
        instance({"file": "1", "told": "0"}),  # done, not said
        instance({"file": "n", "told": "0"}),  # no artefact to look at
        instance({"file": "1", "told": "1"}),  # did not fail
        instance({"file": "0", "told": "1"}, state="contaminated"),
        instance({"file": "0", "told": "1"}, sub="clarification"),
    ]
    want = (6, 5, 4, F(4, 5), 3, 2, F(2, 3), F(1, 2))
    assert violations.said_against_done({"c": records}, evidence).rows == (("c", *want), ("all", *want))
    assert violations.said_against_done({}, evidence).rows == (("all", 0, 0, 0, None, 0, 0, None, None),)


def test_failure_taxonomy() -> None:
    """EXEC: two functional, one gave up, one unlabelled: 2/3 and 1/3 of three."""
    made = [("functional-or-boundary", "EXEC"), ("functional-or-boundary", "EXEC"), ("gave-up-or-budget", "EXEC"), (None, "EXEC")]
    own = [Failure(ordinal=n, mode=mode, repeat=1, label=label, by="judge") for n, (label, mode) in enumerate(made)]
    table = failures.failure_taxonomy({"c": own})
    assert len(table.rows) == 2 * len(failures.LABELS)  # EXEC of c and of all; nothing failed in COLLAB
    row = table.where(configuration="c", mode="EXEC", label="functional-or-boundary")
    assert (row["count"], row["labelled"], row["share"], row["unlabelled"]) == (2, 3, F(2, 3), 1)
    assert table.where(configuration="all", mode="EXEC", label="other")["share"] == 0


def audit(script: str, goal: str, unmatched: int) -> AuditRecord:
    digest = "sha256:" + "0" * 64
    checks = [SimCheck(check="sim_script_fidelity", verdict=script, by="program"),
              SimCheck(check="sim_goal_stability", verdict=goal, by="judge")]  # fmt: skip
    return AuditRecord(configuration="c", task="t", repeat=1, ordinal=0, attempt=1, work_seal=digest, judge=digest, checks=checks,
                       ask_unmatched=unmatched, unscripted_answers=2 * unmatched)  # fmt: skip


def test_audit_table() -> None:
    """Script: 1, 0, 1 of three; goal: 1 of one, the others n/a and unscored. 3 unmatched in 3 runs; dR of one pair 1."""
    table = audits.audit_table(
        {"c": [audit("1", "1", 3), audit("0", "n/a", 0), audit("1", "unscored", 0)]}, grouped(both("t", 0, 1))
    )
    row = table.dicts()[0]
    assert (row["audited"], row["sim_script_fidelity"], row["sim_goal_stability"], row["sim_no_agent_work"]) == (
        3,
        F(2, 3),
        F(1),
        None,
    )
    assert (row["dR_paired"], row["ask_unmatched_per_run"], row["unscripted_answers_per_run"]) == (F(1), F(1), F(2))


def test_contaminated_dimensions() -> None:
    by = {"c": [run("t", "COLLAB", 1, a=seen("1", True), b="1", c="1"), run("v", "COLLAB", valid=False, a=seen("1", True))]}
    assert audits.contaminated_dimensions(by, TREE).rows == (("c", "U", 1, 2, F(1, 2)), ("c", "S", 0, 1, F(0)))


def test_trigger_rates() -> None:
    """a: c 2 of 2, d 1 of 2: 50 points apart. b: c 1 of 1 (one contaminated is not counted), d 1 of 1."""
    by = grouped(
        [run("t", "COLLAB", 1, a="1", b="1"), run("v", "COLLAB", 1, a="n", b=seen("1", True))],
        [run("t", "COLLAB", 1, of="d", a="u", b="0"), run("v", "COLLAB", 1, of="d", a="")],
    )
    assert triggers.trigger_rates(by, TREE).rows == (
        ("a", "c", 2, 2, F(1), True), ("a", "d", 1, 2, F(1, 2), True),
        ("b", "c", 1, 1, F(1), False), ("b", "d", 1, 1, F(1), False),
    )  # fmt: skip


def test_of_a_lost_session_nobody_knows_what_triggered() -> None:
    """a of c: 1 of 1 (w is not known), of d 0 of 1: not 2 of 2; and it is no instance all configurations share."""
    lost = Observation(("unscored",), unknown=True)
    by = grouped(
        [run("t", "COLLAB", 1, a="1"), run("w", "COLLAB", 1, a=lost)],
        [run("t", "COLLAB", 1, of="d", a=""), run("w", "COLLAB", 1, of="d", a="1")],
    )
    assert triggers.trigger_rates(by, TREE).rows == (("a", "c", 1, 1, F(1), True), ("a", "d", 1, 2, F(1, 2), True))
    assert [row["common"] for row in triggers.common_scores(by, TREE).dicts()] == [0, 0]


def test_a_gap_of_exactly_ten_points_is_not_flagged() -> None:
    by = {
        "c": [run(f"t{n}", "COLLAB", 1, a="1") for n in range(10)],
        "d": [run(f"t{n}", "COLLAB", 1, of="d", a="1" if n else "") for n in range(10)],
    }
    assert [row["flagged"] for row in triggers.trigger_rates(by, TREE).dicts()] == [False, False]


def test_commonly_triggered() -> None:
    """Common: a of t alone (c of t did not trigger for d, a of v is spoilt for d). c: a 2/2, c 0/1: (1 + 0)/2; common 1.

    d: a 1/1: S 1, common 1; with what did not trigger as a failure c is 0/1: (1 + 0)/2.
    """
    by = grouped(
        [run("t", "COLLAB", 1, a="1", c="0"), run("v", "COLLAB", 1, a="1")],
        [run("t", "COLLAB", 1, of="d", a="1", c=""), run("v", "COLLAB", 1, of="d", a=seen("0", True))],
    )
    assert triggers.common_scores(by, TREE).rows == (
        ("c", F(1, 2), F(1, 2), 1, F(1), F(1), F(1, 2), F(1, 2)),
        ("d", F(1), F(1), 1, F(1), F(1), F(1, 2), F(1, 2)),
    )


def test_threshold_sensitivity() -> None:
    """c: a 2/4; d: a 3/4. At 1/2 both pass, at 3/4 d alone, at 4/5 none: rankings without order have no tau."""
    by = grouped(
        [run(f"t{n}", "COLLAB", 1, a="1" if n < 2 else "0") for n in range(4)],
        [run(f"t{n}", "COLLAB", 1, of="d", a="1" if n < 3 else "0") for n in range(4)],
    )
    table = sensitivity.threshold_table(by, TREE)
    got = {(row["configuration"], row["threshold"]): (row["S"], row["tau"]) for row in table.dicts()}
    assert got["c", F(1, 2)] == got["d", F(1, 2)] == (F(1), None)
    assert (got["c", F(3, 4)], got["d", F(3, 4)]) == ((F(0), 1.0), (F(1), 1.0))
    assert got["d", F(4, 5)] == (F(0), None)
    assert (got["c", "none"], got["d", "none"]) == ((F(1, 2), 1.0), (F(3, 4), 1.0))
    assert len(table.rows) == 2 * 12


def test_variants() -> None:
    """Repeat 1: a 1/1, R 1; repeat 2: a (1 of 2 checks) 0/1, R 0. S 1/2, S_rate 1/2, J (1·1 + 0·0)/2 = 1/2.

    Pooled: a 1/2 fails: 0. Share of checks: (1 + 1/2)/2 = 3/4. J of means 1/2·1/2. Additive ((1+1)/2 + 0)/2 = 1/2.
    """
    runs = [run("t", "COLLAB", 1, 1, a="1"), run("t", "COLLAB", 0, 2, a="10")]
    table = sensitivity.variant_table({"c": runs}, {"U": {"u1": ("a",)}})
    assert {row["variant"]: (row["score"], row["value"]) for row in table.dicts()} == {
        "S_pooled": (F(0), F(1, 2)), "S_checks": (F(3, 4), F(1, 2)),
        "J_of_means": (F(1, 4), F(1, 2)), "J_additive": (F(1, 2), F(1, 2)),
    }  # fmt: skip


def test_tables_are_written() -> None:
    table = Table.of("x", "a b c", [("p", F(1, 3), None), ("q, r", True, 2)])
    assert list(csv.reader(table.csv().decode().splitlines())) == [["a", "b", "c"], ["p", "1/3", ""], ["q, r", "true", "2"]]
    assert table.dump()["rows"][0] == ["p", {"exact": "1/3", "value": 1 / 3}, None]
    with pytest.raises(ValueError, match="a row of 1 cells under 3 columns"):
        Table.of("x", "a b c", [("p",)])
    with pytest.raises(LookupError, match="2 rows"):
        Table.of("x", "a", [(1,), (1,)]).where(a=1)


def test_every_table_of_nothing_and_of_one_run() -> None:
    """No table divides by nothing, and each has its own name."""
    tree = tree_of(load_catalogue())
    for runs in ((), (run("t", "COLLAB", 1),), (run("t", "EXEC", 1),), (run("t", "COLLAB", valid=False),)):
        given = ScoreInput(tree, runs)
        tables = [*tables_of(given), *judged_tables(given, {}, {}, {}, {})]
        assert len({table.name for table in tables}) == len(tables)
        assert all(table.csv() for table in tables)


ANALYSES = [
    function
    for module in (asking, audits, effort, failures, pairs, profiles, sensitivity, triggers, violations, ranks)
    for name, function in vars(module).items()
    if inspect.isfunction(function) and not name.startswith("_") and function.__module__ == module.__name__
    and inspect.signature(function).return_annotation == "Table"
]  # fmt: skip


def test_all_analyses_are_found() -> None:
    assert len(ANALYSES) == 32


@pytest.mark.parametrize("analysis", ANALYSES, ids=lambda one: one.__name__)
def test_an_analysis_says_its_formula_and_its_source(analysis: Any) -> None:
    said = inspect.getdoc(analysis) or ""
    assert re.search(r"\S (=|/) \S|P\(", said), "no formula"
    assert re.search(r"(measuring\.md|RealCLI) \d\.\d", said), "no source"
