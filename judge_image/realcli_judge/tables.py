"""The tables as CSV. A cell is empty where a number is not defined; it is never filled with 0."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from realcli_judge.summary import ModeRate, Number, Summary


def tables(summary: Summary) -> dict[str, bytes]:
    """File name -> content."""
    return {
        "main.csv": _main(summary),
        "tasks.csv": _tasks(summary),
        "scenarios.csv": _scenarios(summary),
        "trials.csv": _trials(summary),
    }


def _main(summary: Summary) -> bytes:
    """S and J stand here only where S is whole; a partial S is in summary.json and on the page's own panel."""
    head = [
        "configuration",
        "r_exec", "r_exec_valid", "r_exec_invalid", "r_exec_missing", "r_exec_invalid_as_0", "r_exec_invalid_as_1",
        "r_collab", "r_collab_valid", "r_collab_invalid", "r_collab_missing", "r_collab_invalid_as_0", "r_collab_invalid_as_1",
        "delta_r_paired", "pairs", "fail_to_pass", "pass_to_fail", "s", "j", "partial", "invalid_attempts", "egress",
    ]  # fmt: skip
    rows = [
        [
            c.name, *_rate(c.exec), *_rate(c.collab), _exact(c.paired.delta_r), c.paired.pairs, c.paired.fail_to_pass,
            c.paired.pass_to_fail, "" if c.partial else _exact(c.s if c.headline == "S" else c.s_rate),
            "" if c.partial else _exact(c.j if c.headline == "S" else c.j_rate), c.partial, c.invalid_attempts, summary.egress,
        ]
        for c in summary.configurations
    ]  # fmt: skip
    return _csv(head, rows)


def _tasks(summary: Summary) -> bytes:
    head = ["task", "configuration", "mode", "successes", "valid", "invalid", "missing", "mean_reward"]
    return _csv(
        head,
        (
            [c.task, c.configuration, c.mode, c.successes, c.valid, c.invalid, c.missing, _exact(c.mean_reward)]
            for c in summary.tasks
        ),
    )


def _scenarios(summary: Summary) -> bytes:
    head = ["scenario", "dimension", "sub_dimension", "configuration", "passes", "n", "rate", "untriggered", "not_applicable",
            "unscored", "contaminated"]  # fmt: skip
    rows = (
        [s.scenario, s.dimension, s.sub_dimension, s.configuration, s.passes, s.n, _exact(s.rate), sum(s.untriggered.values()),
         s.not_applicable, s.unscored, s.contaminated]
        for s in summary.scenarios
    )  # fmt: skip
    return _csv(head, rows)


def _trials(summary: Summary) -> bytes:
    head = ["ordinal", "configuration", "task", "mode", "repeat", "phase", "reason", "reward", "checks_passed", "checks_total",
            "turns", "working_seconds", "attempt", "invalid_attempts", "work_seal", "seal"]  # fmt: skip
    rows = (
        [t.ordinal, t.configuration, t.task, t.mode, t.repeat, t.phase, t.reason, t.reward, t.checks.passed if t.checks else None,
         t.checks.total if t.checks else None, t.turns, t.working_seconds, t.attempt, t.invalid_attempts, t.work_seal, t.seal]
        for t in summary.trials
    )  # fmt: skip
    return _csv(head, rows)


def _rate(mode: ModeRate | None) -> list[object]:
    if mode is None:
        return [None] * 6
    low, high = (mode.bounds.invalid_as_0, mode.bounds.invalid_as_1) if mode.bounds else (mode.r, mode.r)
    return [_exact(mode.r), mode.valid, mode.invalid, mode.missing, _exact(low), _exact(high)]


def _exact(value: Number | None) -> str | None:
    return None if value is None else value.text


def _csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return out.getvalue().encode()
