"""What a sweep takes at most and is likely to take, from its plan, its limits and the trials that have ended. Pure.

"At most" is by the limits of one attempt and one verify pod of every trial. On top comes what is not to be foreseen: new attempts
after infrastructure ends, storage that is away, verify pods that end without a verdict and the controls they ask for, and of a
budget the answers that are under way when it is spent. What no limit bounds, and what too few trials have shown, is unknown and
says why; it is never a zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal
from typing import Final

from realcli.api.base import seconds
from realcli.api.forecast import Forecast
from realcli.api.judge import Judge
from realcli.api.plan import Plan
from realcli.api.sweep import Mode, SweepSpec, UserMode

ENOUGH: Final = 3
"""Ended trials of a (configuration, mode) that say what the next will take."""
JOBS: Final = 2
"""Beside the judge's: plan and report."""
QUIESCE_AND_SEAL: Final = 1800
"""Seconds for stopping the agent, the final scan and snapshot, and the upload."""
MILLION: Final = Decimal(1_000_000)
HOUR: Final = Decimal(3600)
MAX_NOTES: Final = 8
Cell = tuple[str, Mode]


@dataclass(frozen=True, slots=True)
class Measured:
    """Ended trials of one configuration in one mode."""

    ended: int = 0  # of which the time is known
    hours: Decimal = Decimal(0)  # of their pods, together
    priced: int = 0  # of which the cost is known
    usd: Decimal = Decimal(0)


def forecast(plan: Plan, spec: SweepSpec, measured: Mapping[Cell, Measured] | None = None, basis: int = 0) -> Forecast:
    """The forecast; `measured` by (configuration, mode), from `basis` valid trials."""
    seen = measured or {}
    notes: list[str] = []
    usds = [_trials_usd(plan, spec, notes), judge_at_most(spec.judge, notes), _user_usd(plan, spec, notes)]
    known = [usd for usd in usds if usd is not None]
    trials_usd, judge_usd, _ = usds
    hours = _expected(plan, {cell: (m.ended, m.hours) for cell, m in seen.items()}, "pod hours", notes)
    usd = Decimal(0) if plan.source is not None else _expected(
        plan, {cell: (m.priced, m.usd) for cell, m in seen.items()}, "US dollars", notes
    )  # fmt: skip
    return Forecast(
        trials=plan.size,
        pods=_pods(plan),
        pod_hours_at_most=_hours(_hours_at_most(plan, spec)),
        pod_hours_expected=None if hours is None else _hours(hours),
        usd_at_most=_usd(sum(known, Decimal(0))) if len(known) == len(usds) else None,
        usd_expected=None if usd is None else _usd(usd, ROUND_HALF_UP),
        trials_usd_at_most=None if trials_usd is None else _usd(trials_usd),
        judge_usd_at_most=None if judge_usd is None else _usd(judge_usd),
        measured=sum(m.ended for m in seen.values()),
        basis=basis,
        unknown=[note[:200] for note in notes[:MAX_NOTES]],
    )


def judge_at_most(judge: Judge, notes: list[str]) -> Decimal | None:
    """What judging may cost by its budget; None, and a note: nothing bounds it."""
    if judge.model is None:
        return Decimal(0)
    if judge.budget is None:
        notes.append("US dollars of the judge: judge.budget is not set, nothing bounds them")
        return None
    if judge.budget.usd is not None:
        return Decimal(judge.budget.usd)
    prices = judge.model.prices
    if prices is None or judge.budget.tokens is None:
        notes.append("US dollars of the judge: judge.budget.tokens bounds tokens, and judge.model.prices are not set")
        return None
    known = (prices.input_per_million, prices.cache_read_per_million, prices.cache_write_per_million, prices.output_per_million)
    if any(price is None for price in known):
        notes.append("US dollars of the judge: judge.model.prices lack a kind of token, so judge.budget.tokens bounds no dollars")
        return None
    return judge.budget.tokens * max(Decimal(price) for price in known if price is not None) / MILLION


def _trials_usd(plan: Plan, spec: SweepSpec, notes: list[str]) -> Decimal | None:
    if plan.source is not None:  # no agent runs
        return Decimal(0)
    budget = spec.limits.trial_budget
    if budget is None:
        notes.append("US dollars of the trials: limits.trialBudget is not set, nothing bounds what a trial costs")
        return None
    each = Decimal(budget.usd)
    whole = plan.size * each
    if spec.budget is None or spec.budget.usd is None:
        return whole
    return min(whole, Decimal(spec.budget.usd) + min(spec.parallelism, plan.size) * each)  # what runs finishes


def _user_usd(plan: Plan, spec: SweepSpec, notes: list[str]) -> Decimal | None:
    """What the simulated user's model costs: nothing bounds it, and it has no prices."""
    if spec.simulated_user.mode is not UserMode.MODEL or plan.source is not None or "COLLAB" not in plan.modes:
        return Decimal(0)
    notes.append("US dollars of the simulated user: its model has no prices and no budget; they are in no figure")
    return None


def _pods(plan: Plan) -> int:
    jobs = plan.groups + JOBS
    if plan.source is None:
        return 2 * plan.size + jobs
    return jobs if plan.judged_only else plan.size - len(plan.source.settled) + jobs


def _hours_at_most(plan: Plan, spec: SweepSpec) -> Decimal:
    """Setup, wall limit and seal of the work pod; setup, tests and seal of the verify pod."""
    if plan.judged_only:
        return Decimal(0)
    limits = spec.limits
    setup = Decimal(str(seconds(limits.setup)))
    most = Decimal(str(seconds(limits.verify)))
    settled = [one.ordinal for one in plan.source.settled] if plan.source is not None else []
    verified = {task.name: Decimal(0) for task in plan.tasks}
    per_task = plan.size // len(plan.tasks)
    for task in plan.tasks:
        verified[task.name] = setup + min(most, Decimal(str(task.verifier_seconds))) + QUIESCE_AND_SEAL
    total = sum((per_task * each for each in verified.values()), Decimal(0))
    total -= sum((verified[plan.coordinates(ordinal).task] for ordinal in settled), Decimal(0))
    if plan.source is None:
        for mode in plan.modes:
            deadline = Decimal(str(seconds((limits.exec if mode == "EXEC" else limits.collab).deadline)))
            total += plan.size // len(plan.modes) * (setup + deadline * Decimal(limits.wall_factor) + QUIESCE_AND_SEAL)
    return total / HOUR


def _expected(plan: Plan, seen: Mapping[Cell, tuple[int, Decimal]], what: str, notes: list[str]) -> Decimal | None:
    """As much for every trial as the mean of its configuration and mode; None, and a note: too few have ended somewhere."""
    if plan.judged_only:
        return Decimal(0)
    cells = list(_cells(plan))
    few = [cell for cell in cells if seen.get(cell, (0, Decimal(0)))[0] < ENOUGH]
    if few:
        configuration, mode = few[0]
        count = seen.get(few[0], (0, Decimal(0)))[0]
        notes.append(
            f"expected {what}: of {len(few)} of {len(cells)} configurations and modes fewer than {ENOUGH} trials with a known "
            f"figure have ended (the first: {configuration} in {mode}, {count})"
        )
        return None
    each = len(plan.tasks) * plan.repeats
    return sum((seen[cell][1] / seen[cell][0] * each for cell in cells), Decimal(0))


def _cells(plan: Plan) -> Iterator[Cell]:
    return ((configuration.name, mode) for configuration in plan.configurations for mode in plan.modes)


def _hours(value: Decimal) -> str:
    return format(value.quantize(Decimal("0.1"), ROUND_CEILING), "f")


def _usd(value: Decimal, rounding: str = ROUND_CEILING) -> str:
    return format(value.quantize(Decimal("0.01"), rounding), "f")
