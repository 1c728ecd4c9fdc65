"""Operator `script`: what a checker of the task found on a restored snapshot, in the verify pod."""

from __future__ import annotations

from realcli.checks.found import undecided
from realcli.checks.model import Arguments, Context, text_argument
from realcli.scoring.records import HardRecord

OP = "script"


def script(arguments: Arguments, context: Context) -> HardRecord:
    """The line of `checks.jsonl` for this check and this checker (the first word of `run`); a broken checker decides nothing.

    A script answers the question its binding asks (`did the side effect happen`); `expect: 'false'` passes on a no.
    """
    checker = text_argument(arguments, "run").split()[0]
    lines = [line for line in context.records if line.op == OP]
    named = [line for line in lines if line.detail.partition(":")[0] == checker] or (lines if len(lines) == 1 else [])
    if not named:
        return undecided(OP, f"the verify pod runs it; no record of {checker} settles this check")
    line = named[0]
    if line.outcome == "broken":
        return undecided(OP, f"the checker itself broke: {line.detail}")
    result = line.outcome
    if str(arguments.get("expect", "true")).lower() == "false" and result != "undecided":
        result = "fail" if result == "pass" else "pass"
    events = [] if line.by_seq is None else [line.by_seq]
    return HardRecord(op=OP, result=result, why=line.detail or f"the checker says {line.outcome}", events=events)
