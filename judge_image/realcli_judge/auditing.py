"""Part B of the judge Job: the simulated user of every sealed COLLAB run, audited blind to Part A and to the reward."""

from __future__ import annotations

from collections.abc import Sequence

from realcli.audit.model import AuditRecord
from realcli.audit.repeat import Whose
from realcli.audit.repeat import audit_repeat as record_of
from realcli.audit.view import view_of
from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.problems import BenchmarkError
from realcli.checks import CheckError
from realcli.checks.digest import digest8
from realcli.scoring.records import GroupInput
from realcli_judge.asking import Asking
from realcli_judge.evidence import SealedBlobs
from realcli_judge.group import Opened, TaskSide
from realcli_judge.inputs import Inputs, Refused


def audit_repeats(
    inputs: Inputs, asked: GroupInput, opened: Sequence[Opened], task: TaskSide, judge: str, by: Asking | None
) -> dict[str, str]:
    """Audit and store; repeat -> name of its file."""
    names: dict[str, str] = {}
    for one in opened:
        member = one.member
        key = inputs.paths.audit(digest8(judge), asked.configuration, asked.task, member.repeat, digest8(one.work_seal))
        inputs.store.put_once(key, audit_repeat(asked, one, task, judge, by).canonical())
        names[str(member.repeat)] = key.rsplit("/", 1)[-1]
    return names


def audit_repeat(asked: GroupInput, one: Opened, task: TaskSide, judge: str, by: Asking | None) -> AuditRecord:
    """The audit of one run."""
    member = one.member
    whose = Whose(asked.configuration, asked.task, member.repeat, member.ordinal, member.attempt, one.work_seal, judge)
    blobs = SealedBlobs(one.attempt)
    try:
        view = view_of(one.attempt.trajectory, task.script, task.oracle, load_catalogue(), task.instances, blobs, task.traps)
        return record_of(view, whose) if by is None else record_of(view, whose, by.settings.model, by.backend, by.purse, by.pool)
    except (BenchmarkError, CheckError) as error:
        raise Refused("CheckRefused", f"task {asked.task}: {error}") from error
