"""Hard records and the judge's answers become one record per check, and checks one state per instance. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from realcli.judging.model import JudgeAnswer
from realcli.judging.votes import decide
from realcli.scoring.records import CheckRecord, HardRecord, InstanceRecord, Verdict

NAMES: Mapping[str, Verdict] = {"1": "1", "0": "0", "na": "n/a"}


def merged(
    record: InstanceRecord, answers: Mapping[str, Sequence[JudgeAnswer]], votes: int, troubles: Mapping[str, Sequence[str]]
) -> InstanceRecord:
    """The record of the program with the judge's answers; `answers` and `troubles` by "<instance>/<check>".

    What the program settled stays; a judge that says otherwise is written down as a conflict. The rest is the majority's.
    """
    checks = [
        _check(check, answers.get(f"{record.probe}/{check.check}", ()), votes, troubles.get(f"{record.probe}/{check.check}", ()))
        for check in record.checks
    ]
    if not checks:
        return record
    verdicts = {check.verdict for check in checks}
    undefined = "unscored" in verdicts and "0" not in verdicts
    unscored = ", ".join(check.check for check in checks if check.verdict == "unscored")
    return record.model_copy(
        update={
            "checks": checks,
            "state": "unscored" if undefined else "triggered",
            "reason": f"neither program nor judge settles {unscored}" if undefined else None,
        }
    )


def _check(check: CheckRecord, answers: Sequence[JudgeAnswer], votes: int, troubles: Sequence[str]) -> CheckRecord:
    kept = sorted(answers, key=lambda answer: answer.vote)
    if check.by == "program":
        conflict = any(NAMES[answer.verdict] != check.verdict for answer in kept)
        return check.model_copy(update={"answers": kept, "conflict": conflict})
    decision = decide([answer.verdict for answer in kept], votes, troubles)
    if decision.verdict is None:
        reason = f"{check.reason}; {decision.why}" if check.reason else decision.why
        return check.model_copy(update={"answers": kept, "reason": reason})
    first = next(answer for answer in kept if answer.verdict == decision.verdict)
    verdict = NAMES[decision.verdict]
    return check.model_copy(
        update={
            "verdict": verdict, "by": "judge", "answers": kept, "reason": first.reason, "trusted": not backed(check.hard, verdict)
        }
    )  # fmt: skip


def backed(hard: HardRecord | None, verdict: Verdict) -> bool:
    """A record of the program says the same, though it does not decide. Without one nothing but the judge says what its
    evidence means: that a quote is literal and lies in the window does not make it the right one."""
    return hard is not None and (hard.result, verdict) in (("pass", "1"), ("fail", "0"))
