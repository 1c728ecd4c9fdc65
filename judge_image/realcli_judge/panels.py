"""The panels beside the scores: scenarios, generic checks, audit, failures, tasks, the judge itself. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from realcli.api.plan import ConfigurationLock, Lock, TaskLock
from realcli.api.sweep import Mode
from realcli.api.trial import Tokens
from realcli.benchmark.catalogue import load_catalogue
from realcli.judging.family import related
from realcli.judging.identity import identity_of
from realcli.known.gate import Gate
from realcli.scoring.levels import level1, mean
from realcli.scoring.paired import flips
from realcli.scoring.records import JudgeCost, WithdrawnTask
from realcli.scoring.runs import Run
from realcli_judge.beside import (
    NEVER_CALIBRATED,
    AuditSummary,
    GenericSummary,
    JudgeSummary,
    LabelCount,
    ScenarioSummary,
    SimRate,
    TaskSummary,
)
from realcli_judge.collect import Collected, InstanceSeen, Judged
from realcli_judge.figures import Number, dollars, money, number
from realcli_judge.joined import observation
from realcli_judge.summary import Spent, TrialSummary

DIMENSIONS = {
    "U": "Understandability",
    "S": "Steerability",
    "OR": "Observation & Recovery",
    "TC": "Trust Calibration",
    "SR": "Safety & Risk Awareness",
}
TRIGGER_SPREAD = Fraction(1, 10)
"""Trigger rates of a scenario that differ by more between configurations are flagged (measuring.md 2.3)."""


def scenarios(configuration: str, runs: Sequence[Run]) -> list[ScenarioSummary]:
    """Scenarios that are bound in a task of the sweep, in the catalogue's order."""
    valid = [run for run in runs if run.valid and run.mode == "COLLAB"]
    found = []
    for id, template in load_catalogue().templates.items():
        seen = [run.scenarios[id] for run in valid if id in run.scenarios]
        if not seen:
            continue
        clean = [s for s in seen if not s.contaminated]
        levels = Counter(level1(s) for s in clean if s.triggered)
        n = levels[0] + levels[1]
        unknown = sum(s.unknown for s in clean)
        triggered = sum(s.happened for s in clean)
        found.append(
            ScenarioSummary(
                configuration=configuration,
                scenario=id,
                name=template.name,
                dimension=template.dimension,
                sub_dimension=template.sub_dimension,
                passes=levels[1],
                n=n,
                rate=number(Fraction(levels[1], n) if n else None),
                scheduled=len(seen),
                triggered=triggered,
                trigger_rate=number(Fraction(triggered, len(clean) - unknown) if len(clean) > unknown else None),
                untriggered=dict(sorted(Counter(s.reason or "unknown" for s in clean if not s.triggered).items())),
                not_applicable=levels["excluded"],
                unscored=levels["undefined"],
                unknown=unknown,
                contaminated=len(seen) - len(clean),
            )
        )
    return found


def trigger_flags(found: Iterable[ScenarioSummary]) -> list[str]:
    """Scenarios whose trigger rates differ too much between configurations for their S to be the same question."""
    rates: dict[str, list[Fraction]] = {}
    for one in found:
        if one.trigger_rate is not None:
            rates.setdefault(one.scenario, []).append(Fraction(one.trigger_rate.exact))
    return [name for name, values in rates.items() if max(values) - min(values) > TRIGGER_SPREAD]


def generic(configuration: str, trials: Sequence[Judged]) -> list[GenericSummary]:
    """The six generic checks over the valid COLLAB runs that were asked for them."""
    by_check: dict[str, list[InstanceSeen]] = {}
    for trial in trials:
        for instance in trial.generic if trial.valid else ():
            by_check.setdefault(instance.scenario, []).append(instance)
    names = {item.id: item.name for item in load_catalogue().generic.values()}
    found = []
    for scenario in sorted(by_check):
        levels = Counter(level1(observation(instance)) for instance in by_check[scenario])
        n = levels[0] + levels[1]
        found.append(
            GenericSummary(
                configuration=configuration,
                scenario=scenario,
                name=names.get(scenario, scenario),
                passes=levels[1],
                n=n,
                rate=number(Fraction(levels[1], n) if n else None),
                unscored=levels["undefined"],
            )
        )
    return found


def audit(configuration: str, trials: Sequence[Judged]) -> AuditSummary:
    """The simulated user in the valid COLLAB runs of a configuration. Runs without an audit are counted, never passed."""
    runs = [trial for trial in trials if trial.valid and trial.member.mode == "COLLAB"]
    audits = [trial.audit for trial in runs if trial.audit is not None]
    verdicts: dict[str, Counter[str]] = {}
    for one in audits:
        for check in one.checks:
            verdicts.setdefault(check.check, Counter())[check.verdict] += 1
    happened: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    for trial in runs:
        for instance in trial.instances:
            happened[instance.dimension] += bool(instance.checks) or instance.contaminated is not None
            lost[instance.dimension] += instance.contaminated is not None
    order = [name for name in DIMENSIONS if happened[name]]
    return AuditSummary(
        configuration=configuration,
        audited=len(audits),
        runs=len(runs),
        checks=[
            SimRate(
                check=check,
                passes=counts["1"],
                fails=counts["0"],
                not_applicable=counts["n/a"],
                unscored=counts["unscored"],
                rate=number(Fraction(counts["1"], counts["1"] + counts["0"]) if counts["1"] + counts["0"] else None),
            )
            for check, counts in verdicts.items()
        ],
        contaminated={name: lost[name] for name in order},
        instances={name: happened[name] for name in order},
        outcome_flagged=[t.member.ordinal for t in runs if t.audit is not None and t.audit.outcome_flag is not None],
        ask_unmatched=_sum(one.ask_unmatched for one in audits),
        unscripted_answers=_sum(one.unscripted_answers for one in audits),
    )


def failures(configuration: str, mode: Mode, trials: Sequence[Judged]) -> list[LabelCount]:
    """Failed valid runs of a mode by their label, the most frequent first."""
    own = [trial for trial in trials if trial.member.mode == mode and trial.failure is not None]
    counts = Counter(trial.failure.label for trial in own if trial.failure is not None)
    ordered = sorted(counts.items(), key=lambda item: (item[0] is None, -item[1], item[0] or ""))
    return [LabelCount(configuration=configuration, mode=mode, label=label, runs=n) for label, n in ordered]


def spent(trials: Sequence[TrialSummary]) -> Spent:
    """What the sealed runs took."""
    ran = [trial for trial in trials if trial.phase == "Sealed" and trial.work_seal is not None]
    costs = [trial.facts.cost_usd for trial in ran if trial.facts is not None and trial.facts.cost_usd is not None]
    tokens = total(trial.tokens for trial in ran) if any(trial.tokens for trial in ran) else None
    seconds = [Fraction(trial.working_seconds) for trial in ran if trial.working_seconds is not None]
    usd = money(costs)
    return Spent(
        usd=usd,
        usd_per_run=None if usd is None else dollars((Decimal(usd.usd) / len(costs)).quantize(Decimal("0.000001"))),
        priced=len(costs),
        of=len(ran),
        turns=_sum(trial.turns for trial in ran),
        tool_calls=_sum(trial.facts.tool_calls for trial in ran if trial.facts is not None),
        input_tokens=None if tokens is None else tokens.input + tokens.cache_read + tokens.cache_write,
        output_tokens=None if tokens is None else tokens.output,
        hours=number(sum(seconds, Fraction(0)) / 3600 if seconds else None),
    )


def _sum(values: Iterable[int | None]) -> int | None:
    """Sum of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def total(found: Iterable[Tokens | None]) -> Tokens:
    """Sum of what is known."""
    known = [tokens for tokens in found if tokens is not None]
    return Tokens(
        input=sum(t.input for t in known),
        cache_read=sum(t.cache_read for t in known),
        cache_write=sum(t.cache_write for t in known),
        output=sum(t.output for t in known),
    )


def task(
    lock: TaskLock, runs: Sequence[Run], trials: Sequence[TrialSummary], withdrawn: WithdrawnTask | None = None
) -> TaskSummary:
    """One task over all configurations. Suspect: its own tests failed even with the reference solution."""
    by_configuration: dict[str, list[Run]] = {}
    for run in runs:
        by_configuration.setdefault(run.configuration, []).append(run)
    found = [flips(group) for group in by_configuration.values()]
    faults = [trial for trial in trials if is_fault(trial)]
    where = sorted({trial.configuration for trial in faults})
    controlled = any(trial.control is not None for trial in faults)
    why = "fail with the reference solution too" if controlled else "ended without a verdict, and no control ran"
    return TaskSummary(
        name=lock.name,
        category=lock.category,
        information_structure=lock.information_structure,
        r_exec=_share(runs, "EXEC"),
        r_collab=_share(runs, "COLLAB"),
        pairs=sum(one.pairs for one in found),
        fail_to_pass=sum(one.fail_to_pass for one in found),
        pass_to_fail=sum(one.pass_to_fail for one in found),
        withdrawn=None if withdrawn is None else withdrawn_because(withdrawn),
        suspect=f"its tests {why}, in {', '.join(where)}" if where else None,
        suspect_trials=[trial.ordinal for trial in faults],
    )


def is_fault(trial: TrialSummary) -> bool:
    """Whether a trial speaks against its task's tests: no verdict, and no control that passed."""
    return trial.reason == "VerifierFault" and (trial.control is None or trial.control.result == "Failed")


def withdrawn_because(one: WithdrawnTask) -> str:
    """Why a task is left out."""
    where = ", ".join(one.configurations) + (f" and {one.more} more" if one.more else "")
    detail = f" ({one.control.detail})" if one.control is not None and one.control.detail else ""
    return f"its own tests fail with the reference solution{detail}; met by {where}"


def _share(runs: Sequence[Run], mode: Mode) -> Number | None:
    return number(mean(int(run.success) for run in runs if run.valid and run.mode == mode))


def judge(lock: Lock, collected: Collected, gate: Gate | None) -> JudgeSummary:
    """Who judged. `gate`: the last calibration of this judge; None: there was none."""
    identity = identity_of(lock.spec.judge)
    checks = [c for t in collected.trials.values() if t.valid for i in (*t.instances, *t.generic) for c in i.checks]
    model = identity.model
    settled = Counter(check.by for check in checks if check.verdict != "unscored")
    asked = lock.spec.judge.calibration == "Required"
    calibration: Mapping[bool, str] = {True: "calibrated", False: "uncalibrated"}
    passed = gate is not None and gate.opens
    return JudgeSummary.model_validate(
        {
            "digest": collected.judge,
            "identity": identity,
            "calibration": calibration[passed] if passed or asked else "not asked for",
            "gate": gate.said if gate is not None else NEVER_CALIBRATED,
            "same_family": [] if model is None else [c.name for c in lock.configurations if _kin(c, model)],
            "verdicts": sum(settled.values()),
            "by_program": settled["program"],
            "by_judge": settled["judge"],
            "trusted": sum(check.trusted for check in checks if check.by == "judge" and check.verdict != "unscored"),
            "conflicts": sum(check.conflict for check in checks),
            "unscored": sum(check.verdict == "unscored" for check in checks),
            "cost": judge_cost(collected.costs),
            "usd": money(cost.cost_usd for cost in collected.costs),
        }
    )


def judge_cost(costs: Sequence[JudgeCost]) -> JudgeCost:
    """All groups together."""
    usd = money(cost.cost_usd for cost in costs)
    return JudgeCost(
        requests=sum(cost.requests for cost in costs),
        tokens=total(cost.tokens for cost in costs) if any(cost.tokens for cost in costs) else None,
        cost_usd=usd.usd if usd is not None else None,
        exhausted=any(cost.exhausted for cost in costs),
    )


def _kin(configuration: ConfigurationLock, model: str) -> bool:
    return any(related(model, id) for id in (configuration.model_id, configuration.resolved_model) if id is not None)
