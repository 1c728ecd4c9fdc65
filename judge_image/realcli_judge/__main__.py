"""`python -m realcli_judge judge|report --root R --lock-digest D`: the two Jobs that turn sealed runs into scores.

Exit status 0: the termination message holds a definite result (also a refusal, which trying again does not change). 1: it may be
tried again (storage or the judge's model did not answer), or this program failed. 3: a recording is missing (replay alone).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from realcli.api.faults import first_fault
from realcli.api.handed import whole
from realcli.api.outcomes import Phase
from realcli.api.sweepstatus import ScoreRow
from realcli.api.termination import MAX_REPORT_BYTES, MAX_TRIAL_BYTES, Result, Termination
from realcli.judging.port import BackendRefused, BackendUnavailable
from realcli.scoring.records import GroupInput, WithdrawnTask
from realcli.storage.port import AlreadyStored, NotFound, StorageRefused, StorageUnavailable
from realcli_judge.backends.recordings import ReplayMiss
from realcli_judge.inputs import Inputs, Refused, open_inputs

GROUP_ENV = "REALCLI_GROUP"
WITHDRAWN_ENV = "REALCLI_WITHDRAWN"
TERMINATION_ENV = "REALCLI_TERMINATION_LOG"
TERMINATION_LOG = "/dev/termination-log"
MAX_MESSAGE = 400


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    """Run one Job; the exit status."""
    parser = argparse.ArgumentParser(prog="realcli_judge", description="Judge a group, or report a sweep.")
    parser.add_argument("job", choices=["judge", "report"])
    parser.add_argument("--root", required=True, help="key of the sweep in storage")
    parser.add_argument("--lock-digest", required=True, help="digest of sweep.json")
    asked = parser.parse_args(arguments)
    run = {"judge": _judge, "report": _report}[asked.job]
    message, status = _guarded(asked.job.capitalize(), lambda: run(open_inputs(environ, asked.root, asked.lock_digest), environ))
    if message.message:
        print(message.message, file=sys.stderr, flush=True)
    limit = MAX_REPORT_BYTES if asked.job == "report" else MAX_TRIAL_BYTES
    Path(environ.get(TERMINATION_ENV, TERMINATION_LOG)).write_bytes(_fitting(message, limit).encode(limit))
    return status


def _judge(inputs: Inputs, environ: Mapping[str, str]) -> Termination:
    try:
        asked = GroupInput.model_validate_json(whole(environ, GROUP_ENV))
    except ValidationError as error:
        raise Refused(
            "ConfigurationError", f"{GROUP_ENV} is no group input; the operator and this image must match: {first_fault(error)}"
        ) from error
    from realcli_judge.judging import judge_group  # each Job loads what it needs: charts and tables are the report's

    group, digest = judge_group(inputs, asked, environ)
    invalid = sum(member.phase is Phase.INVALID for member in group.members)
    told = f"{asked.configuration}, {asked.task}: {len(group.judgements)} COLLAB runs judged, {invalid} trials invalid"
    reason = "Incomplete" if invalid else None
    return Termination(phase="Judge", result=Result.JUDGED, reason=reason, seal=digest, message=told)


def _report(inputs: Inputs, environ: Mapping[str, str]) -> Termination:
    from realcli_judge.reporting import write_report

    summary, digest, folder = write_report(inputs, _withdrawn(environ))
    counts = summary.counts
    left_out = f"; {_tasks(counts.tasks_withdrawn)} withdrawn, with {counts.withdrawn} trials" if counts.tasks_withdrawn else ""
    return Termination(
        phase="Report",
        result=Result.REPORTED,
        reason=None if summary.state == "Complete" else "Incomplete",
        seal=digest,
        scores=[c.row for c in summary.configurations],
        uri=inputs.config.uri(folder),
        message=f"{counts.valid} valid, {counts.invalid} invalid, {counts.missing} missing of {counts.trials} trials; "
        f"{counts.groups_judged} of {counts.groups} groups judged{left_out}",
    )


def _withdrawn(environ: Mapping[str, str]) -> list[WithdrawnTask]:
    try:
        return TypeAdapter(list[WithdrawnTask]).validate_json(whole(environ, WITHDRAWN_ENV) or "[]")
    except ValidationError as error:
        raise Refused(
            "ConfigurationError",
            f"{WITHDRAWN_ENV} is no list of tasks; the operator and this image must match: {first_fault(error)}",
        ) from error


def _tasks(number: int) -> str:
    return f"{number} task{'' if number == 1 else 's'}"


def _guarded(phase: str, job: Callable[[], Termination]) -> tuple[Termination, int]:
    """The result and the exit status; what is known to go wrong becomes a refusal."""

    def refusal(reason: str, message: str) -> Termination:
        return Termination.model_validate({"phase": phase, "result": Result.REFUSED, "reason": reason, "message": _line(message)})

    try:
        return job(), 0
    except Refused as error:
        return refusal(error.reason, str(error)), 0
    except AlreadyStored as error:
        return refusal("AlreadyStored", f"{error}: another judge or report program wrote there, or its inputs were others"), 0
    except StorageRefused as error:
        return refusal("StorageRefused", str(error)), 0
    except StorageUnavailable as error:
        return refusal("StorageUnavailable", str(error)), 1
    except BackendUnavailable as error:
        return refusal("JudgeUnavailable", str(error)), 1
    except ReplayMiss as error:
        return refusal("ReplayMiss", str(error)), 3
    except BackendRefused as error:
        return refusal("ConfigurationError", str(error)), 0
    except NotFound as error:  # of an object that was listed or anchored a moment ago
        return refusal("EvidenceMissing", str(error)), 0


def _line(text: str) -> str:
    """One line of at most 400 characters, cut in the middle so that both ends stay readable."""
    line = " ".join(text.split())
    half = (MAX_MESSAGE - 5) // 2
    return line if len(line) <= MAX_MESSAGE else f"{line[:half]} ... {line[-half:]}"


def _fitting(message: Termination, limit: int) -> Termination:
    """As many score rows as fit; the message says how many are left out. All stand in summary.json."""
    rows: list[ScoreRow] = list(message.scores)
    while rows:
        left = len(message.scores) - len(rows)
        told = f"{message.message}; {left} score rows are in summary.json only" if left else message.message
        shorter = message.model_copy(update={"scores": rows, "message": told})
        if len(shorter.encode(1 << 20)) <= limit:
            return shorter
        rows = rows[:-1]
    return message


if __name__ == "__main__":
    sys.exit(main())
