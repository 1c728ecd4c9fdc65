"""What interaction costs: tool calls, turns, effort without gain, retries (RealCLI 5.6). Pure. Needs the facts of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from statistics import median

from realcli.scoring.agreement import clopper_pearson
from realcli.scoring.analyses.table import Table, share
from realcli.scoring.paired import complete_pairs
from realcli.scoring.runs import Run, TaskLabels

Count = Callable[[Run], int | None]
UNKNOWN = "unknown"
"""Category of tasks that name none."""


def tool_calls(run: Run) -> int | None:
    """Calls of tools; None: not known."""
    return None if run.facts is None else run.facts.tool_calls


def turns(run: Run) -> int | None:
    """Turns; None: not known."""
    return None if run.facts is None else run.facts.turns


def length_cells(by_configuration: Mapping[str, list[Run]], tasks: Mapping[str, TaskLabels]) -> Table:
    """Per cell (configuration x category): how much longer COLLAB is than EXEC, in tool calls and in turns.

    rho of a complete pair = calls_C / calls_E where both are known and calls_E >= 1; of a task the median over its repeats; of a
    cell the median over its tasks: a median of ratios, not a ratio of medians (measuring.md 4.3; paper: 1.43 to 3.62, up to 31).
    """
    rows = []
    for configuration, runs in by_configuration.items():
        pairs = complete_pairs(runs)
        for category in sorted({_category(tasks, exec_) for exec_, _ in pairs}):
            inside = [pair for pair in pairs if _category(tasks, pair[0]) == category]
            calls, length = _ratios(inside, tool_calls), _ratios(inside, turns)
            rows.append((configuration, category, len(calls), _median(calls), len(length), _median(length)))
    return Table.of("length_cells", "configuration category tasks_calls calls_ratio tasks_turns turns_ratio", rows)


def length_by_category(by_configuration: Mapping[str, list[Run]], tasks: Mapping[str, TaskLabels]) -> Table:
    """Over the cells of a category: least, median and greatest COLLAB / EXEC ratio, and how many cells are above 1.

    Cells without a ratio are left out (measuring.md 4.3; paper: 110 of 110 cells).
    """
    cells = length_cells(by_configuration, tasks).dicts()
    rows = []
    for category in [*sorted({str(cell["category"]) for cell in cells}), "all"]:
        for measure in ("calls", "turns"):
            own = [cell[f"{measure}_ratio"] for cell in cells if category in ("all", cell["category"])]
            ratios = sorted(ratio for ratio in own if isinstance(ratio, Fraction))
            ends = (ratios[0], _median(ratios), ratios[-1]) if ratios else (None, None, None)
            rows.append((category, measure, len(ratios), *ends, sum(ratio > 1 for ratio in ratios)))
    return Table.of("length_by_category", "category measure cells least median greatest above_1", rows)


def effort_without_gain(by_configuration: Mapping[str, list[Run]]) -> Table:
    """Pairs with reward_C <= reward_E / complete pairs with reward_E < 1 and calls_C > calls_E.

    measuring.md 4.3; paper: 59.9 %. A valid run without a reward has 0 here: it is a failure. Pairs whose calls are not known
    are counted apart.
    """
    rows = []
    total = [0, 0, 0]
    for configuration, runs in by_configuration.items():
        counts = [0, 0, 0]
        for exec_, collab in complete_pairs(runs):
            less, more = tool_calls(exec_), tool_calls(collab)
            before, after = exec_.reward or Fraction(0), collab.reward or Fraction(0)
            if before >= 1:
                continue
            if less is None or more is None:
                counts[2] += 1
            elif more > less:
                counts[1] += 1
                counts[0] += after <= before
        rows.append((configuration, *counts[:2], share(*counts[:2]), counts[2]))
        total = [a + b for a, b in zip(total, counts, strict=True)]
    rows.append(("all", *total[:2], share(*total[:2]), total[2]))
    return Table.of("effort_without_gain", "configuration without_gain more_calls rate unknown", rows)


def retry_errors(by_configuration: Mapping[str, list[Run]]) -> Table:
    """Failing retries / retries over the valid runs of both modes (`realcli.scoring.retries`; paper: 82.1 %, and 0 of 47).

    `low`, `high`: exact 95 % interval (Clopper-Pearson), floats: 0 of 47 still allows 7.6 %.
    `runs`: those whose retries are known, of `of_runs` (measuring.md 4.3).
    """
    rows = []
    for configuration, runs in by_configuration.items():
        valid = [run for run in runs if run.valid]
        known = [run.facts for run in valid if run.facts is not None and run.facts.retries is not None]
        again = sum(facts.retries or 0 for facts in known)
        failing = sum(facts.failing_retries or 0 for facts in known)
        low, high = (round(end, 4) for end in clopper_pearson(failing, again)) if again else (None, None)
        rows.append((configuration, len(known), len(valid), again, failing, share(failing, again), low, high))
    return Table.of("retry_errors", "configuration runs of_runs retries failing rate low high", rows)


def _category(tasks: Mapping[str, TaskLabels], run: Run) -> str:
    return tasks.get(run.task, TaskLabels()).category or UNKNOWN


def _ratios(pairs: Iterable[tuple[Run, Run]], count: Count) -> list[Fraction]:
    """One ratio per task."""
    by_task: dict[str, list[Fraction]] = {}
    for exec_, collab in pairs:
        below, above = count(exec_), count(collab)
        if below is not None and above is not None and below >= 1:
            by_task.setdefault(exec_.task, []).append(Fraction(above, below))
    return [median(found) for found in by_task.values()]


def _median(ratios: Sequence[Fraction]) -> Fraction | None:
    return median(ratios) if ratios else None
