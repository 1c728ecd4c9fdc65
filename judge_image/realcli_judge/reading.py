"""What a report says in words: one sentence per question (RealCLI 6), and the flags a reader has to know. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from realcli.api.plan import Lock
from realcli.known.gate import OTHER_SET
from realcli_judge.beside import NEVER_CALIBRATED, JudgeSummary
from realcli_judge.figures import Number
from realcli_judge.panels import is_fault
from realcli_judge.summary import ConfigurationSummary, Counts, Flag, Reading, TrialSummary


def reading(configurations: Sequence[ConfigurationSummary], catalogue: int, observed: int) -> Reading:
    """RQ1: outcome and collaboration with a user taking part. RQ2: the same tasks with and without one.

    `catalogue`: number of scenarios there are; `observed`: those with an instance that counts, in any configuration.
    """
    return Reading(rq1=_rq1(configurations, observed, catalogue), rq2=_rq2(configurations))


def _rq1(configurations: Sequence[ConfigurationSummary], observed: int, catalogue: int) -> str:
    measured = [c for c in configurations if c.collab is not None]
    if not measured:
        return "The sweep has no COLLAB runs, so it says nothing about work with a user."
    coverage = f"{observed} of {catalogue} scenarios"
    if len(measured) > 1:
        rates = [c.collab.r for c in measured if c.collab is not None and c.collab.r is not None]
        lead = leading(configurations)
        qualities = [value for c in measured if (value := (c.s if lead == "S" else c.s_rate)) is not None]
        scored = f"their collaboration scores {_range(qualities)} ({lead})" if qualities else "their collaboration has no score"
        return (
            f"With a user taking part, {len(measured)} configurations solve {_range(rates)} of their runs and "
            f"{scored}, seen on {coverage}" + ("." if observed == catalogue else ": too few to compare them by it.")
        )
    one = measured[0]
    assert one.collab is not None  # by the filter above
    outcome = _of(one.collab.r, one.collab.valid, "valid runs")
    quality = _quality(one)
    collaboration = (
        "its collaboration has no score" if quality is None else f"its collaboration scores {quality.text} ({one.headline})"
    )
    limit = "" if observed == catalogue else ", too few for a statement about the agent"
    return f"With a user taking part, {one.name} solves {outcome}; {collaboration}, seen on {coverage}{limit}."


def _rq2(configurations: Sequence[ConfigurationSummary]) -> str:
    paired = [c for c in configurations if c.paired.pairs]
    if not paired:
        return "There is no task with a valid run in both modes, so autonomous and collaborative runs cannot be compared."
    if len(paired) > 1:
        up, down = sum(c.paired.fail_to_pass for c in paired), sum(c.paired.pass_to_fail for c in paired)
        pairs = sum(c.paired.pairs for c in paired)
        return (
            f"On the same tasks, {up} of {pairs} pairs of runs turn from failure to success when a user takes part "
            f"and {down} the other way round, over {len(paired)} configurations."
        )
    one = paired[0]
    assert one.paired.delta_r is not None  # it has pairs
    delta = one.paired.delta_r
    change = "does not change" if delta.value == 0 else f"changes by {delta.signed()}"
    return (
        f"On the same tasks, the success rate of {one.name} {change} when a user takes part: of {one.paired.pairs} pairs of runs "
        f"{one.paired.fail_to_pass} turn from failure to success and {one.paired.pass_to_fail} the other way round."
    )


FLAG_TITLES = {
    "evidence": "Damaged evidence",
    "withdrawn": "Withdrawn tasks",
    "incomplete": "Incomplete",
    "invalid": "Runs without an outcome",
    "suspect": "Suspect tasks",
    "egress-unenforced": "No network wall",
    "partial": "Partial score",
    "development": "Few tasks per scenario",
    "simulator": "Simulated user",
    "uncalibrated": "Judge not calibrated",
    "same-family": "Judge of the same family",
    "judge-budget": "Judge's budget spent",
}
"""Code of a flag -> how people read it."""


def flags(
    lock: Lock,
    counts: Counts,
    configurations: Sequence[ConfigurationSummary],
    trials: Sequence[TrialSummary],
    judge: JudgeSummary,
) -> list[Flag]:
    """In the order of their weight."""
    return [*_flags(lock, counts, configurations, trials), *(_judge_flags(judge, lock) if "COLLAB" in lock.modes else ())]


def _flags(
    lock: Lock, counts: Counts, configurations: Sequence[ConfigurationSummary], trials: Sequence[TrialSummary]
) -> Iterator[Flag]:
    troubled = [trial.name for trial in trials if trial.trouble]
    if troubled:
        yield Flag(
            code="evidence",
            text=f"The evidence of {_many(len(troubled), 'trial')} is not what was anchored ({', '.join(troubled[:3])}"
            f"{', …' if len(troubled) > 3 else ''}): their rewards are those the operator saw, and nothing supports them.",
        )
    if counts.tasks_withdrawn:
        gone = sorted({trial.task for trial in trials if trial.phase == "Withdrawn"})
        yield Flag(
            code="withdrawn",
            text=f"{counts.withdrawn} of {counts.trials} trials are left out, for all configurations: the tests of "
            f"{', '.join(gone)} fail with the reference solution too, so no run of them says anything. Every number here is of "
            "the other tasks.",
        )
    if counts.missing:
        unjudged = counts.groups - counts.groups_judged - counts.groups_withdrawn
        yield Flag(
            code="incomplete",
            text=f"{unjudged} of {counts.groups} groups are not judged: {counts.missing} of {counts.trials} trials are missing "
            "here. Missing is never counted as failure.",
        )
    if counts.invalid:
        yield Flag(
            code="invalid",
            text=f"{counts.invalid} of {counts.trials} trials ended without an outcome, for reasons the agent cannot cause. "
            "They are left out; beside R stand its values with all of them read as failures and as successes.",
        )
    faults = [trial for trial in trials if is_fault(trial)]
    suspect = sorted({trial.task for trial in faults})
    if suspect:
        controlled = any(trial.control is not None for trial in faults)
        why = "fail with the reference solution too" if controlled else "ended without a verdict, and no control ran"
        yield Flag(
            code="suspect",
            text=f"The tests of {', '.join(suspect)} {why}. Such runs are invalid, and a task says little until it is mended.",
        )
    yield Flag(
        code="egress-unenforced",
        text="Egress: Unenforced. There was no network wall around the agent; results are not those of a sealed environment.",
    )
    if "COLLAB" not in lock.modes:
        return
    if any(c.s_partial for c in configurations):
        yield Flag(
            code="partial",
            text="S is partial: not every sub-dimension was observed in every repeat, so S and J stand apart from the main "
            "table and are not to be compared. In status and tables such an S is marked ~.",
        )
    if any(c.headline == "S_rate" for c in configurations):
        yield Flag(
            code="development",
            text="The median scenario was seen on fewer than 8 tasks, so S_rate (pass rates without the 3/4 threshold) leads, "
            "and S is a development figure.",
        )
    flagged = [trial.name for trial in trials if trial.outcome_flag]
    if flagged:
        yield Flag(
            code="simulator",
            text=f"In {_many(len(flagged), 'run')} the simulated user may have changed the outcome ({', '.join(flagged[:3])}"
            f"{', …' if len(flagged) > 3 else ''}): read R with and without them.",
        )


def _judge_flags(judge: JudgeSummary, lock: Lock) -> Iterator[Flag]:
    if judge.identity.model is None:
        yield Flag(
            code="uncalibrated",
            text="Judged by program alone: no judge model took part and none was calibrated. "
            "A check no program can decide is unscored.",
        )
    elif judge.calibration == "uncalibrated":
        yield Flag(
            code="uncalibrated",
            text=f"The judge {judge.identity.model} is not calibrated: S and J are as good as its verdicts, and nobody measured "
            f"those. {judge.gate}{_how_to_calibrate(lock) if judge.gate.startswith((NEVER_CALIBRATED, OTHER_SET)) else ''}",
        )
    if judge.same_family:
        yield Flag(
            code="same-family",
            text=f"The judge is of the family of {', '.join(judge.same_family)}; a judge is kinder to its own kin.",
        )
    if judge.cost.exhausted:
        yield Flag(code="judge-budget", text="The judge's budget was spent: what it did not come to is unscored, never 0.")


def _how_to_calibrate(lock: Lock) -> str:
    """The command, with the storage the sweep's reports look for the gate in; FILE is what the sweep was made of."""
    store = "/".join(part for part in (lock.spec.storage.bucket, lock.spec.storage.prefix.strip("/")) if part)
    return f" Run: realcli judge calibrate --sweep FILE --store s3://{store}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def leading(configurations: Sequence[ConfigurationSummary]) -> Literal["S", "S_rate"]:
    """What all of them are shown by: S only where it leads in every one, because the two are no measures of one kind."""
    return "S" if configurations and all(c.headline == "S" for c in configurations) else "S_rate"


def _quality(configuration: ConfigurationSummary) -> Number | None:
    return configuration.s if configuration.headline == "S" else configuration.s_rate


def _of(rate: Number | None, n: int, what: str) -> str:
    return f"none of its runs that count ({n} {what})" if rate is None else f"{rate.text} of its runs ({n} {what})"


def _range(values: Sequence[Number]) -> str:
    if not values:
        return "an unknown share"
    low, high = min(values, key=lambda n: n.value), max(values, key=lambda n: n.value)
    return low.text if low.exact == high.exact else f"{low.text} to {high.text}"
