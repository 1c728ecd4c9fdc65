"""From collected trials to summary.json. Pure: equal inputs give equal bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

from realcli.api.outcomes import OUTCOMES, Effect
from realcli.api.plan import ConfigurationLock, Lock, Plan, trial_name
from realcli.api.sweep import Mode
from realcli.benchmark.catalogue import load_catalogue
from realcli.known.gate import Gate
from realcli.scoring.aggregate import ConfigurationScores, configuration_scores
from realcli.scoring.document import ScoreInput
from realcli.scoring.levels import mean
from realcli.scoring.paper import references
from realcli.scoring.runs import Run, Tree
from realcli.scoring.scorerow import score_row
from realcli.scoring.tree import tree_of
from realcli_judge import panels
from realcli_judge.beside import Analysis, Reference
from realcli_judge.collect import Collected, Judged
from realcli_judge.figures import Interval, Number, number
from realcli_judge.joined import run_of
from realcli_judge.reading import flags, reading
from realcli_judge.readings import readings, score_document
from realcli_judge.summary import (
    Bounds,
    ConfigurationSummary,
    Counts,
    Instances,
    ModeRate,
    OutcomeLegend,
    Paired,
    RepeatSummary,
    Summary,
    TaskCell,
    TrialSummary,
    origin,
    set_up,
)

K = TypeVar("K")
V = TypeVar("V")
Intervals = Mapping[tuple[str, str], Interval]
"""(configuration, measure of `realcli.scoring.cubes`) -> interval."""


@dataclass(frozen=True)
class Counted:
    """The runs of a sweep, and as scoring's own document."""

    runs: list[Run]
    tree: Tree
    document: ScoreInput

    @classmethod
    def of(cls, lock: Lock, collected: Collected) -> Counted:
        """From what was collected."""
        bound = {task.name: task.scenarios for task in lock.tasks}
        tree = tree_of(load_catalogue())
        runs = [run_of(trial, bound[trial.cell.task]) for _, trial in sorted(collected.trials.items())]
        return cls(runs, tree, score_document(lock, runs, tree, collected.judge))

    def by_configuration(self) -> dict[str, list[Run]]:
        """Configurations in the order they appear."""
        return _grouped((run.configuration, run) for run in self.runs)

    def by_task(self) -> dict[str, list[Run]]:
        """Tasks in the order they appear."""
        return _grouped((run.task, run) for run in self.runs)


def summarise(
    lock: Lock,
    plan: Plan,
    collected: Collected,
    counted: Counted,
    trials: Sequence[TrialSummary],
    gate: Gate | None = None,
) -> Summary:
    """The summary; `trials` are those of judged groups, in any order. `gate`: the last calibration of the judge."""
    runs, of_configuration, of_task = counted.runs, counted.by_configuration(), counted.by_task()
    judged = _grouped((trial.cell.configuration, trial) for trial in collected.trials.values())
    withdrawn = {one.task for one in collected.withdrawn}
    listed = _with_missing(lock, plan, trials, withdrawn)
    own = _grouped((trial.configuration, trial) for trial in listed)
    cells = _grouped(((t.configuration, t.task, t.mode), t) for t in listed)
    tasks = _grouped((trial.task, trial) for trial in listed)
    scores = {c.name: configuration_scores(c.name, of_configuration.get(c.name, []), counted.tree) for c in lock.configurations}
    found = readings(counted.document, collected, {name: one for name, one in scores.items() if name in of_configuration})
    common = {name: one for row in _rows(found.analyses, "common_scores") if isinstance(name := row[0], str) for one in [row]}
    configurations = [
        _configuration(c, scores[c.name], own[c.name], found.intervals, common.get(c.name)).model_copy(
            update=_beside(c.name, of_configuration.get(c.name, []), judged.get(c.name, []), scores[c.name], counted.tree)
        )
        for c in lock.configurations
    ]
    scenarios = [s for c in lock.configurations for s in panels.scenarios(c.name, of_configuration.get(c.name, []))]
    names = [c.name for c in lock.configurations]
    gone = {one.task: one for one in collected.withdrawn}
    catalogue = sum(len(qs) for subs in counted.tree.values() for qs in subs.values())
    ended = Counter(trial.reason for trial in listed)
    judge = panels.judge(lock, collected, gate)
    counts = Counts(
        trials=plan.size,
        valid=sum(run.valid for run in runs),
        invalid=sum(not run.valid for run in runs),
        missing=sum(trial.phase == "Missing" for trial in listed),
        groups=plan.groups,
        groups_judged=collected.groups,
        groups_incomplete=len({(run.configuration, run.task) for run in runs if not run.valid}),
        groups_withdrawn=len(withdrawn) * len(lock.configurations),
        tasks_withdrawn=len(withdrawn),
        withdrawn=sum(trial.phase == "Withdrawn" for trial in listed),
    )
    return Summary(
        sweep=lock.sweep,
        state="Complete" if counts.valid == counts.trials else "Incomplete",
        created_at=lock.created_at,
        lock_digest=plan.lock_digest,
        input_digest=collected.digest,
        judge=judge,
        benchmark=lock.benchmark,
        source=origin(lock.source),
        repeats=lock.repeats,
        catalogue_scenarios=catalogue,
        egress=lock.egress,
        operator_version=lock.platform.operator_version,
        deviations=lock.deviations,
        reading=reading(configurations, catalogue, len({one.scenario for one in scenarios if one.n})),
        flags=flags(lock, counts, configurations, listed, judge),
        counts=counts,
        configurations=configurations,
        scenarios=scenarios,
        trigger_flags=panels.trigger_flags(scenarios),
        generic=[g for name in names for g in panels.generic(name, judged.get(name, []))],
        audits=[panels.audit(name, judged.get(name, [])) for name in names] if "COLLAB" in lock.modes else [],
        failures=[f for name in names for mode in _shown(lock.modes) for f in panels.failures(name, mode, judged.get(name, []))],
        withdrawn=sorted(collected.withdrawn, key=lambda one: one.task),
        task_list=[
            panels.task(task, of_task.get(task.name, []), tasks[task.name], gone.get(task.name)) for task in lock.tasks
        ],
        tasks=[
            _cell(name, task.name, mode, cells[name, task.name, mode])
            for name in names for task in lock.tasks for mode in _shown(lock.modes)
        ],
        trials=listed,
        outcomes=[
            OutcomeLegend(reason=o.reason, effect=o.effect.value, happened=o.happened, here=ended[o.reason])
            for o in OUTCOMES if o.effect is not Effect.HELD
        ],
        analyses=found.analyses,
        reference=[Reference.model_validate(one._asdict()) for one in references()],
    )  # fmt: skip


def _configuration(
    lock: ConfigurationLock,
    scores: ConfigurationScores,
    own: Sequence[TrialSummary],
    intervals: Intervals,
    common: Sequence[object] | None,
) -> ConfigurationSummary:
    def measured(value: Fraction | None, measure: str) -> Number | None:
        found = number(value)
        return None if found is None else found.model_copy(update={"interval": intervals.get((lock.name, measure))})

    parts = scores.delta_j_parts
    return ConfigurationSummary(
        name=lock.name,
        agent=lock.agent,
        program=lock.program,
        agent_version=lock.agent_version,
        permissions=lock.permissions,
        model=lock.model,
        model_id=lock.model_id,
        effort=lock.effort,
        setup=set_up(lock),
        key=lock.key,
        exec=_rate(scores, "EXEC", own, measured(scores.r_exec, "R_exec")),
        collab=_rate(scores, "COLLAB", own, measured(scores.r_collab, "R_collab")),
        s=measured(scores.s, "S"),
        s_rate=measured(scores.s_rate, "S_rate"),
        s_low=number(scores.s_low),
        s_high=number(scores.s_high),
        headline="S" if scores.headline_s else "S_rate",
        partial=scores.partial,
        s_partial=scores.s_partial,
        j=measured(scores.j, "J"),
        j_rate=measured(scores.j_rate, "J_rate"),
        delta_r=measured(scores.delta_r, "dR"),
        delta_j=measured(scores.delta_j, "dJ"),
        delta_j_task=number(parts[0] if parts else None),
        delta_j_collaboration=number(parts[1] if parts else None),
        paired=Paired(
            pairs=scores.flips.pairs,
            fail_to_pass=scores.flips.fail_to_pass,
            pass_to_fail=scores.flips.pass_to_fail,
            delta_r=measured(scores.flips.delta_r, "dR_paired"),
        ),
        instances=Instances(
            triggered=scores.instances.triggered,
            untriggered=scores.instances.untriggered,
            not_applicable=scores.instances.not_applicable,
            unscored=scores.instances.unscored,
            contaminated=scores.instances.contaminated,
        ),
        dimensions={name: value for name, score in scores.dimensions.items() if (value := measured(score, f"dimension {name}"))},
        sub_dimensions={name: value for name, score in scores.sub_dimensions.items() if (value := number(score))},
        per_repeat=[
            RepeatSummary(
                repeat=repeat,
                r_exec=number(one.r_exec),
                r_collab=number(one.r_collab),
                s=number(one.collaboration.s),
                s_rate=number(one.collaboration.s_rate),
                s_low=number(one.collaboration.s_low),
                s_high=number(one.collaboration.s_high),
                j=number(one.j),
                j_rate=number(one.j_rate),
            )
            for repeat, one in scores.repeats.items()
        ],
        common_s_rate=common[5] if common is not None and isinstance(common[5], Number) else None,
        common_instances=common[3] if common is not None and isinstance(common[3], int) else None,
        invalid_attempts=sum(trial.invalid_attempts or 0 for trial in own),
        tokens=panels.total(trial.tokens for trial in own),
        spent={mode: panels.spent([t for t in own if t.mode == mode]) for mode in dict.fromkeys(t.mode for t in own)},
        row=score_row(scores),
    )


def _rate(scores: ConfigurationScores, mode: Mode, trials: Sequence[TrialSummary], rate: Number | None) -> ModeRate | None:
    """None where the sweep does not run the mode."""
    own = [trial for trial in trials if trial.mode == mode]
    if not own:
        return None
    limits = scores.r_exec_bounds if mode == "EXEC" else scores.r_collab_bounds
    return ModeRate(
        r=rate,
        valid=scores.valid[mode],
        invalid=scores.invalid[mode],
        missing=sum(trial.phase == "Missing" for trial in own),
        bounds=Bounds(invalid_as_0=_sure(limits[0]), invalid_as_1=_sure(limits[1])) if limits and scores.invalid[mode] else None,
    )


def _beside(
    name: str, runs: Sequence[Run], trials: Sequence[Judged], scores: ConfigurationScores, tree: Tree
) -> dict[str, object]:
    """Beside the scores: coverage, S with what the user spoilt, R without runs whose outcome it may have changed."""
    counted = {q for part in scores.repeats.values() for q in part.collaboration.counts}
    spoilt = any(seen.contaminated for run in runs for seen in run.scenarios.values())
    flagged = {(t.cell.task, t.cell.repeat) for t in trials if t.audit is not None and t.audit.outcome_flag is not None}
    found: dict[str, object] = {"observed": len(counted)}
    if spoilt:
        kept = [replace(r, scenarios={q: replace(seen, contaminated=False) for q, seen in r.scenarios.items()}) for r in runs]
        found["s_rate_uncleaned"] = number(configuration_scores(name, kept, tree).s_rate)
    if flagged:
        left = [run for run in runs if run.mode == "EXEC" or (run.task, run.repeat) not in flagged]
        found["r_collab_unflagged"] = number(configuration_scores(name, left, tree).r_collab)
    return found


def _rows(analyses: Sequence[Analysis], id: str) -> list[list[Number | bool | int | float | str | None]]:
    return next((one.rows for one in analyses if one.id == id), [])


def _sure(value: Fraction) -> Number:
    found = number(value)
    assert found is not None  # only None has no number
    return found


def _cell(configuration: str, task: str, mode: Mode, trials: Sequence[TrialSummary]) -> TaskCell:
    valid = [trial for trial in trials if trial.phase == "Sealed"]
    return TaskCell(
        configuration=configuration,
        task=task,
        mode=mode,
        successes=sum(trial.success is True for trial in valid),
        valid=len(valid),
        invalid=sum(trial.phase == "Invalid" for trial in trials),
        missing=sum(trial.phase == "Missing" for trial in trials),
        # A valid run whose reward nobody knows is a failure, and no reward of 0.
        rewards={str(trial.repeat): trial.reward for trial in valid if trial.reward is not None},
        mean_reward=number(mean(Fraction(trial.reward) for trial in valid if trial.reward is not None)),
    )


def _with_missing(lock: Lock, plan: Plan, trials: Iterable[TrialSummary], withdrawn: Collection[str]) -> list[TrialSummary]:
    """All trials of the plan in order; one whose group is not judged is `Missing`, one of a withdrawn task `Withdrawn`, whatever
    became of it."""
    known = {trial.ordinal: trial for trial in trials}
    found = []
    for ordinal in range(plan.size):
        cell = plan.coordinates(ordinal)
        found.append(
            known.get(ordinal)
            or TrialSummary(
                ordinal=ordinal,
                name=trial_name(lock.sweep.name, ordinal),
                configuration=cell.configuration,
                task=cell.task,
                mode=cell.mode,
                repeat=cell.repeat,
                phase="Withdrawn" if cell.task in withdrawn else "Missing",
            )
        )
    return found


def _shown(modes: Sequence[Mode]) -> list[Mode]:
    """EXEC first, as people read it."""
    return sorted(modes, reverse=True)


def _grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
