"""What the report is made of: the group files of a sweep, with the judgements, audits and failure labels they name.

Everything is read once and kept slim; a trial's whole judgement is read again when its page is written, so that no more than one
is held.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from pydantic import ValidationError

from realcli.api.base import Frozen, canonical_json, sha256_digest
from realcli.api.faults import first_fault
from realcli.api.outcomes import Phase
from realcli.api.plan import Coordinates
from realcli.audit.model import AuditRecord
from realcli.checks.digest import digest8
from realcli.judging.identity import identity_of
from realcli.scoring.records import (
    Failure,
    Failures,
    Group,
    GroupMember,
    InstanceRecord,
    JudgeCost,
    RepeatJudgement,
    RunFacts,
    Verdict,
    Withdrawals,
    WithdrawnTask,
)
from realcli.storage.paths import join
from realcli.storage.port import NotFound
from realcli_judge.inputs import Inputs, Refused
from realcli_judge.judging import check_members

_GROUP = re.compile(r"/group-([1-9][0-9]{0,8})\.json")
_Record = TypeVar("_Record", bound=Frozen)


class CheckSeen(NamedTuple):
    """One verdict."""

    check: str
    verdict: Verdict
    by: str
    conflict: bool
    trusted: bool


class InstanceSeen(NamedTuple):
    """One scenario instance as the judge left it; `contaminated` is the audit's word, or the program's."""

    id: str
    scenario: str
    dimension: str
    state: str
    reason: str | None
    contaminated: str | None
    checks: tuple[CheckSeen, ...]


@dataclass(frozen=True)
class Judged:
    """One trial of a judged group."""

    cell: Coordinates
    member: GroupMember
    instances: tuple[InstanceSeen, ...] = ()
    generic: tuple[InstanceSeen, ...] = ()
    audit: AuditRecord | None = None  # its deviations are left out
    failure: Failure | None = None
    facts: RunFacts | None = None
    judgement: str | None = None  # key of its judgement
    audited: str | None = None  # key of its audit

    @property
    def valid(self) -> bool:
        """It counts."""
        return self.member.phase is Phase.SEALED


@dataclass(frozen=True)
class Collected:
    """The judged part of a sweep."""

    judge: str
    objects: dict[str, str] = field(default_factory=dict)  # key of every object read -> its digest
    groups: int = 0  # judged ones
    trials: dict[int, Judged] = field(default_factory=dict)  # by ordinal; those of groups that are not judged are missing
    costs: tuple[JudgeCost, ...] = ()
    withdrawn: tuple[WithdrawnTask, ...] = ()  # tasks of which nothing was read

    @property
    def digest(self) -> str:
        """Names the report: of the sorted list of (key, digest) of all it counts from."""
        return sha256_digest(canonical_json(sorted([key, digest] for key, digest in self.objects.items())))


def collect(inputs: Inputs, withdrawn: Sequence[WithdrawnTask] = ()) -> Collected:
    """Read all groups of the plan but those of withdrawn tasks, whose list is written down. A group that is not there is left
    out; one that does not fit its plan is `Refused`."""
    judge = identity_of(inputs.lock.spec.judge).content_digest()
    objects: dict[str, str] = {}
    trials: dict[int, Judged] = {}
    costs: list[JudgeCost] = []
    groups = 0
    gone = _withdrawn(inputs, judge, withdrawn, objects)
    for number in range(inputs.plan.groups):
        cell = inputs.plan.coordinates(inputs.plan.ordinals_of_group(number)[0])
        if cell.task in gone:
            continue
        folder = inputs.paths.judgements(digest8(judge), cell.configuration, cell.task)
        key = latest_group(inputs, folder)
        if key is None:
            continue
        group = _group(inputs, key, folder, cell, judge, objects)
        groups += 1
        costs += [group.cost] if group.cost is not None else []
        failures = _failures(inputs, folder, group, objects)
        for member in group.members:
            trials[member.ordinal] = _trial(inputs, folder, group, member, failures.get(member.ordinal), objects)
    return Collected(judge, objects, groups, trials, tuple(costs), tuple(withdrawn))


def _withdrawn(inputs: Inputs, judge: str, tasks: Sequence[WithdrawnTask], objects: dict[str, str]) -> set[str]:
    """Names of the withdrawn tasks; what only the operator knows is written down, so that the report can be counted again."""
    names = {one.task for one in tasks}
    unknown = names.difference(task.name for task in inputs.lock.tasks)
    if unknown:
        raise Refused("ConfigurationError", f"withdrawn are {', '.join(sorted(unknown))}, which the sweep does not have")
    if tasks:
        ordered = sorted(tasks, key=lambda one: one.task)
        record = Withdrawals(sweep_uid=inputs.lock.sweep.uid, lock_digest=inputs.plan.lock_digest, tasks=ordered)
        data = record.canonical()
        key = inputs.paths.withdrawn(digest8(judge), digest8(sha256_digest(data)))
        inputs.store.put_once(key, data)
        objects[key] = sha256_digest(data)
    return names


def judgement_of(inputs: Inputs, trial: Judged) -> RepeatJudgement | None:
    """The whole judgement of a trial; None where there is none."""
    return None if trial.judgement is None else read_record(inputs, trial.judgement, RepeatJudgement)


def audit_of(inputs: Inputs, trial: Judged) -> AuditRecord | None:
    """The whole audit of a trial; None where there is none."""
    return None if trial.audited is None else read_record(inputs, trial.audited, AuditRecord)


def read_record(inputs: Inputs, key: str, model: type[_Record], objects: dict[str, str] | None = None) -> _Record:
    """An object as its model; `Refused` if it is gone or of another form. Its digest goes into `objects`."""
    try:
        data = inputs.store.get(key)
    except NotFound:
        raise Refused("EvidenceMissing", f"{key} does not exist in {inputs.store.describe()}") from None
    if objects is not None:
        objects[key] = sha256_digest(data)
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        raise Refused("EvidenceChanged", f"{key} is no {model.__name__} of this version: {first_fault(error)}") from error


def latest_group(inputs: Inputs, folder: str) -> str | None:
    """The group file with the highest number; none: the group is not judged."""
    found = (_GROUP.fullmatch(item.key.removeprefix(folder)) for item in inputs.store.list(folder + "/group-"))
    numbers = [int(match[1]) for match in found if match]
    return join(folder, f"group-{max(numbers)}.json") if numbers else None


def _group(inputs: Inputs, key: str, folder: str, cell: Coordinates, judge: str, objects: dict[str, str]) -> Group:
    group = read_record(inputs, key, Group, objects)
    expected = (inputs.lock.sweep.uid, inputs.plan.lock_digest, judge)
    if (group.sweep_uid, group.lock_digest, group.judge) != expected:
        raise Refused("EvidenceSwapped", f"{key} is of another sweep, lock or judge than {', '.join(expected)}")
    if join(folder, f"group-{group.n}.json") != key or (group.configuration, group.task) != (cell.configuration, cell.task):
        raise Refused("EvidenceSwapped", f"{key} is group-{group.n} of {group.configuration}, {group.task}")
    check_members(inputs, group.configuration, group.task, group.members)
    return group


def _failures(inputs: Inputs, folder: str, group: Group, objects: dict[str, str]) -> dict[int, Failure]:
    if group.failures is None:
        return {}
    key = join(folder, group.failures)
    found = read_record(inputs, key, Failures, objects)
    said = (found.judge, found.configuration, found.task, found.n)
    if said != (group.judge, group.configuration, group.task, group.n):
        raise Refused("EvidenceSwapped", f"{key} labels another group or is by another judge than its group")
    return {failure.ordinal: failure for failure in found.failures}


def _trial(
    inputs: Inputs, folder: str, group: Group, member: GroupMember, failure: Failure | None, objects: dict[str, str]
) -> Judged:
    cell = inputs.plan.coordinates(member.ordinal)
    facts = group.facts.get(str(member.ordinal))
    if member.mode != "COLLAB" or member.phase is not Phase.SEALED or member.work_seal is None:
        return Judged(cell, member, failure=failure, facts=facts)
    name = group.judgements.get(str(member.repeat))
    if name is None:
        raise Refused("EvidenceMissing", f"{folder}: no judgement of trial {member.ordinal}, although it is sealed")
    key = join(folder, name)
    judgement = read_record(inputs, key, RepeatJudgement, objects)
    _same_run(key, judgement, group, member)
    name = group.audits.get(str(member.repeat))
    audited = join(folder, name) if name is not None else None
    audit = read_record(inputs, audited, AuditRecord, objects) if audited is not None else None
    if audit is not None and audited is not None:
        _same_run(audited, audit, group, member)
    contaminated = audit.contaminated if audit is not None else {}
    return Judged(
        cell,
        member,
        instances=tuple(seen(instance, contaminated) for instance in judgement.instances),
        generic=tuple(seen(instance, contaminated) for instance in judgement.generic),
        audit=None if audit is None else _audit(audit),
        failure=failure,
        facts=facts,
        judgement=key,
        audited=audited,
    )


def _same_run(key: str, record: RepeatJudgement | AuditRecord, group: Group, member: GroupMember) -> None:
    said = (record.ordinal, record.attempt, record.work_seal, record.judge, record.repeat)
    where = (record.configuration, record.task)
    if said != (member.ordinal, member.attempt, member.work_seal, group.judge, member.repeat) or where != (
        group.configuration,
        group.task,
    ):
        raise Refused("EvidenceSwapped", f"{key} judged another attempt or is by another judge than its group")


def seen(instance: InstanceRecord, contaminated: dict[str, str]) -> InstanceSeen:
    """The instance with what the audit says of it; its verdicts stay what they were."""
    why = contaminated.get(instance.probe)
    if why is None and instance.state == "contaminated":
        why = instance.reason or "by the instrument"
    checks = tuple(CheckSeen(c.check, c.verdict, c.by, c.conflict, c.trusted) for c in instance.checks)
    return InstanceSeen(instance.probe, instance.scenario, instance.dimension, instance.state, instance.reason, why, checks)


def _audit(record: AuditRecord) -> AuditRecord:
    return record.model_copy(update={"checks": [c.model_copy(update={"deviations": [], "reason": ""}) for c in record.checks]})
