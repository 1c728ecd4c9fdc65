"""Judged trials as scoring counts them: verdicts of Part A, joined with what Part B contaminates. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from realcli.scoring.runs import Observation, Run, conjunction
from realcli_judge.collect import InstanceSeen, Judged


def run_of(trial: Judged, scenarios: Sequence[str]) -> Run:
    """The trial as scoring counts it. `scenarios`: those bound in its task.

    A valid COLLAB run whose attempt left no seal (its session went with the pod) has no evidence to judge: its scenarios are
    unscored, which widens the bounds of S and is never a 0.
    """
    member = trial.member
    found: dict[str, Observation] = {}
    if trial.valid and member.mode == "COLLAB":
        if member.work_seal is None:
            found = {name: Observation(("unscored",), reason="the attempt left no seal", unknown=True) for name in scenarios}
        else:
            names = dict.fromkeys(instance.scenario for instance in trial.instances)
            found = {name: conjunction(observation(i) for i in trial.instances if i.scenario == name) for name in names}
    facts = trial.facts
    passed, total = (facts.checks_passed, facts.checks_total) if facts is not None else (None, None)
    return Run(
        configuration=trial.cell.configuration,
        task=trial.cell.task,
        mode=member.mode,
        repeat=member.repeat,
        valid=trial.valid,
        reward=None if member.reward is None or not trial.valid else Fraction(member.reward),
        scenarios=found,
        checks=(passed, total) if passed is not None and total is not None else None,
        facts=facts,
    )


def observation(instance: InstanceSeen) -> Observation:
    """What scoring sees of an instance. One of which nobody can tell whether it happened is unscored, not untriggered."""
    verdicts = tuple(check.verdict for check in instance.checks)
    unknown = not verdicts and instance.state == "unscored"
    if unknown:
        verdicts = ("unscored",)
    return Observation(verdicts, instance.contaminated is not None, instance.contaminated or instance.reason, unknown)
