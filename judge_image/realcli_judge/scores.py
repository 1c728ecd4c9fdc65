"""From collected trials to summary.json. Pure: equal inputs give equal bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

from realcli.api.outcomes import OUTCOMES, Effect
from realcli.api.plan import ConfigurationLock, trial_name
from realcli.api.sweep import Mode
from realcli.api.trial import Tokens
from realcli.benchmark.catalogue import load_catalogue
from realcli.scoring.aggregate import ConfigurationScores, configuration_scores
from realcli.scoring.analyses import pooled_counts
from realcli.scoring.levels import level1, mean
from realcli.scoring.runs import Run
from realcli.scoring.scorerow import score_row
from realcli.scoring.tree import tree_of
from realcli_judge.collect import Collected, run_of
from realcli_judge.inputs import Inputs
from realcli_judge.reading import flags, reading
from realcli_judge.summary import (
    Bounds,
    ConfigurationSummary,
    Counts,
    Instances,
    ModeRate,
    Number,
    OutcomeLegend,
    Paired,
    RepeatSummary,
    ScenarioSummary,
    Summary,
    TaskCell,
    TrialSummary,
    number,
)


def summarise(inputs: Inputs, collected: Collected, trials: Sequence[TrialSummary]) -> Summary:
    """The summary; `trials` are those of judged groups, in any order."""
    lock, plan = inputs.lock, inputs.plan
    bound = {task.name: task.scenarios for task in lock.tasks}
    runs = [run_of(trial, bound[trial.cell.task]) for trial in collected.trials.values()]
    listed = _with_missing(inputs, trials)
    configurations = [_configuration(lock_, runs, listed) for lock_ in lock.configurations]
    counts = Counts(
        trials=plan.size,
        valid=sum(run.valid for run in runs),
        invalid=sum(not run.valid for run in runs),
        missing=plan.size - len(runs),
        groups=plan.groups,
        groups_judged=len(collected.groups),
    )
    tree = tree_of(load_catalogue())
    return Summary(
        sweep=lock.sweep,
        state="Complete" if counts.valid == counts.trials else "Incomplete",
        created_at=lock.created_at,
        lock_digest=plan.lock_digest,
        input_digest=collected.digest,
        judge=collected.judge,
        benchmark=lock.benchmark,
        egress=lock.egress,
        operator_version=lock.platform.operator_version,
        deviations=lock.deviations,
        reading=reading(configurations, sum(len(qs) for subs in tree.values() for qs in subs.values()), bound),
        flags=flags(lock, counts, configurations, listed),
        counts=counts,
        configurations=configurations,
        scenarios=[s for c in lock.configurations for s in _scenarios(c.name, [r for r in runs if r.configuration == c.name])],
        tasks=[
            _cell(configuration.name, task.name, mode, [t for t in listed if t.configuration == configuration.name])
            for configuration in lock.configurations for task in lock.tasks for mode in _shown(lock.modes)
        ],
        trials=listed,
        outcomes=[
            OutcomeLegend(reason=o.reason, effect=o.effect.value, happened=o.happened)
            for o in OUTCOMES if o.effect is not Effect.HELD
        ],
    )  # fmt: skip


def _configuration(lock: ConfigurationLock, runs: Iterable[Run], trials: Sequence[TrialSummary]) -> ConfigurationSummary:
    own = [trial for trial in trials if trial.configuration == lock.name]
    scores = configuration_scores(lock.name, [r for r in runs if r.configuration == lock.name], tree_of(load_catalogue()))
    parts = scores.delta_j_parts
    return ConfigurationSummary(
        name=lock.name,
        agent=lock.agent,
        program=lock.program,
        agent_version=lock.agent_version,
        permissions=lock.permissions,
        model=lock.model,
        model_id=lock.model_id,
        key=lock.key,
        exec=_rate(scores, "EXEC", own),
        collab=_rate(scores, "COLLAB", own),
        s=number(scores.s),
        s_rate=number(scores.s_rate),
        s_low=number(scores.s_low),
        s_high=number(scores.s_high),
        headline="S" if scores.headline_s else "S_rate",
        partial=scores.partial,
        j=number(scores.j),
        j_rate=number(scores.j_rate),
        delta_r=number(scores.delta_r),
        delta_j=number(scores.delta_j),
        delta_j_task=number(parts[0] if parts else None),
        delta_j_collaboration=number(parts[1] if parts else None),
        paired=Paired(
            pairs=scores.flips.pairs,
            fail_to_pass=scores.flips.fail_to_pass,
            pass_to_fail=scores.flips.pass_to_fail,
            delta_r=number(scores.flips.delta_r),
        ),
        instances=Instances(
            triggered=scores.instances.triggered,
            untriggered=scores.instances.untriggered,
            not_applicable=scores.instances.not_applicable,
            unscored=scores.instances.unscored,
            contaminated=scores.instances.contaminated,
        ),
        dimensions={name: value for name, score in scores.dimensions.items() if (value := number(score))},
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
        invalid_attempts=sum(trial.invalid_attempts or 0 for trial in own),
        tokens=_tokens(own),
        row=score_row(scores),
    )


def _rate(scores: ConfigurationScores, mode: Mode, trials: Sequence[TrialSummary]) -> ModeRate | None:
    """None where the sweep does not run the mode."""
    own = [trial for trial in trials if trial.mode == mode]
    if not own:
        return None
    limits = scores.r_exec_bounds if mode == "EXEC" else scores.r_collab_bounds
    return ModeRate(
        r=number(scores.r_exec if mode == "EXEC" else scores.r_collab),
        valid=scores.valid[mode],
        invalid=scores.invalid[mode],
        missing=sum(trial.phase == "Missing" for trial in own),
        bounds=Bounds(invalid_as_0=_sure(limits[0]), invalid_as_1=_sure(limits[1])) if limits and scores.invalid[mode] else None,
    )


def _sure(value: Fraction) -> Number:
    found = number(value)
    assert found is not None  # only None has no number
    return found


def _scenarios(configuration: str, runs: Sequence[Run]) -> list[ScenarioSummary]:
    """Scenarios that are bound in a task of the sweep, in the catalogue's order."""
    templates = load_catalogue().templates
    valid = [run for run in runs if run.valid and run.mode == "COLLAB"]
    pooled = pooled_counts(valid)
    found = []
    for id, template in templates.items():
        seen = [run.scenarios[id] for run in valid if id in run.scenarios]
        if not seen:
            continue
        clean = [s for s in seen if not s.contaminated]
        counts = pooled.get(id)
        found.append(
            ScenarioSummary(
                configuration=configuration,
                scenario=id,
                name=template.name,
                dimension=template.dimension,
                sub_dimension=template.sub_dimension,
                passes=counts.passes if counts else 0,
                n=counts.n if counts else 0,
                rate=number(counts.rate if counts else None),
                untriggered=dict(sorted(Counter(s.reason or "unknown" for s in clean if not s.triggered).items())),
                not_applicable=sum(s.triggered and level1(s) == "excluded" for s in clean),
                unscored=sum(level1(s) == "undefined" for s in clean),
                contaminated=len(seen) - len(clean),
            )
        )
    return found


def _cell(configuration: str, task: str, mode: Mode, trials: Sequence[TrialSummary]) -> TaskCell:
    own = [trial for trial in trials if trial.task == task and trial.mode == mode]
    valid = [trial for trial in own if trial.phase == "Sealed"]
    return TaskCell(
        configuration=configuration,
        task=task,
        mode=mode,
        successes=sum(trial.success is True for trial in valid),
        valid=len(valid),
        invalid=sum(trial.phase == "Invalid" for trial in own),
        missing=sum(trial.phase == "Missing" for trial in own),
        rewards={str(trial.repeat): trial.reward or "0" for trial in valid},
        mean_reward=number(mean(Fraction(trial.reward or "0") for trial in valid)),
    )


def _with_missing(inputs: Inputs, trials: Iterable[TrialSummary]) -> list[TrialSummary]:
    """All trials of the plan in order; one whose group is not judged is `Missing`, whatever became of it."""
    known = {trial.ordinal: trial for trial in trials}
    found = []
    for ordinal in range(inputs.plan.size):
        cell = inputs.plan.coordinates(ordinal)
        found.append(
            known.get(ordinal)
            or TrialSummary(
                ordinal=ordinal,
                name=trial_name(inputs.lock.sweep.name, ordinal),
                configuration=cell.configuration,
                task=cell.task,
                mode=cell.mode,
                repeat=cell.repeat,
                phase="Missing",
            )
        )
    return found


def _shown(modes: Sequence[Mode]) -> list[Mode]:
    """EXEC first, as people read it."""
    return sorted(modes, reverse=True)


def _tokens(trials: Iterable[TrialSummary]) -> Tokens:
    known = [trial.tokens for trial in trials if trial.tokens is not None]
    return Tokens(
        input=sum(t.input for t in known),
        cache_read=sum(t.cache_read for t in known),
        cache_write=sum(t.cache_write for t in known),
        output=sum(t.output for t in known),
    )
