"""The judge Job: one group (configuration, task), all repeats of both modes terminal.

Writes one judgement and one audit per sealed COLLAB repeat, labels of failed runs, then the group file: the list aggregation
counts from. Everything is created once. What is asked of a model is stored before it counts, so a Job that was killed and runs
again finds the same answers, writes the same bytes and goes on where the other stopped.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from realcli.api.base import sha256_digest
from realcli.api.outcomes import Phase
from realcli.audit.model import AuditRecord
from realcli.checks import CheckError
from realcli.checks.digest import digest8
from realcli.judging import failures as labels
from realcli.judging.conversing import hold
from realcli.judging.reading import Reading
from realcli.judging.run import Judged, judge_runs
from realcli.judging.session import Ask, Done
from realcli.judging.state_files import SnapshotFiles
from realcli.scoring.facts import facts_of
from realcli.scoring.records import Failure, Failures, Group, GroupInput, GroupMember, RepeatJudgement, RunFacts
from realcli.scoring.runs import succeeded
from realcli_judge.asking import Asking, asking
from realcli_judge.auditing import audit_repeats
from realcli_judge.earlier import charge, earlier_group, kept, kept_labels
from realcli_judge.evidence import SealedBlobs, SealedSnapshots
from realcli_judge.group import Opened, TaskSide, attempt_of, check_members, open_member, task_side, verifier_log, with_members
from realcli_judge.inputs import Inputs, Refused

__all__ = ["attempt_of", "check_members", "judge_group"]


def judge_group(inputs: Inputs, asked: GroupInput, environ: Mapping[str, str] = os.environ) -> tuple[Group, str]:
    """Judge and store a group; (group, digest of its file). `Refused` names the object and what is wrong with it."""
    asked = with_members(inputs, asked)
    check_members(inputs, asked.configuration, asked.task, asked.members)
    identity = inputs.judge
    judge = identity.content_digest()
    members = sorted(asked.members, key=lambda member: member.ordinal)
    by = asking(inputs, asked.configuration, asked.task, digest8(judge), environ)
    opened = {member.ordinal: one for member in members if (one := open_member(inputs, member)) is not None}
    collab = [one for one in opened.values() if one.member.mode == "COLLAB"]
    task = task_side(inputs, asked.task) if collab else None
    names: dict[str, str] = {}
    audits: dict[str, str] = {}
    labelled: dict[int, Failure] = {}
    before = earlier_group(inputs, asked, judge)
    if before is not None:
        folder = inputs.paths.group(digest8(judge), asked.configuration, asked.task, asked.n).rpartition("/")[0]
        names = kept(inputs, RepeatJudgement, folder, before.judgements, collab, judge)
        audits = kept(inputs, AuditRecord, folder, before.audits, collab, judge)
        labelled = kept_labels(inputs, folder, before, members)
        if by is not None:
            charge(by.purse, before)
    if task is not None:
        names |= _judgements(inputs, asked, _without(collab, names), task, judge, by)
        audits |= audit_repeats(inputs, asked, _without(collab, audits), task, judge, by)
    failed = _failures(inputs, members, opened, labelled, by)
    group = Group(
        sweep_uid=inputs.lock.sweep.uid,
        lock_digest=inputs.plan.lock_digest,
        judge=judge,
        configuration=asked.configuration,
        task=asked.task,
        n=asked.n,
        members=members,
        judgements=names,
        audits=audits,
        failures=_store_failures(inputs, asked, judge, failed),
        facts={str(ordinal): _facts(one) for ordinal, one in opened.items()},
        identity=identity,
        cost=by.purse.cost() if by is not None else None,
    )
    data = group.canonical()
    inputs.store.put_once(inputs.paths.group(digest8(judge), asked.configuration, asked.task, asked.n), data)
    return group, sha256_digest(data)


def _without(opened: Sequence[Opened], names: Mapping[str, str]) -> list[Opened]:
    return [one for one in opened if str(one.member.repeat) not in names]


def _judgements(
    inputs: Inputs, asked: GroupInput, opened: Sequence[Opened], task: TaskSide, judge: str, by: Asking | None
) -> dict[str, str]:
    """Part A of every sealed COLLAB run; repeat -> name of its file."""
    runs = [one.run(task) for one in opened]
    try:
        found = judge_runs(runs, None, None) if by is None else judge_runs(runs, by.settings, by.backend, by.purse, by.pool)
    except CheckError as error:
        raise Refused("CheckRefused", f"task {asked.task}: {error}") from error
    names: dict[str, str] = {}
    for one, judged in zip(opened, found, strict=True):
        member = one.member
        key = inputs.paths.repeat(digest8(judge), asked.configuration, asked.task, member.repeat, digest8(one.work_seal))
        inputs.store.put_once(key, _record(asked, one, judged, judge).canonical())
        names[str(member.repeat)] = key.rsplit("/", 1)[-1]
    return names


def _record(asked: GroupInput, one: Opened, judged: Judged, judge: str) -> RepeatJudgement:
    return RepeatJudgement(
        configuration=asked.configuration,
        task=asked.task,
        repeat=one.member.repeat,
        ordinal=one.member.ordinal,
        attempt=one.member.attempt,
        work_seal=one.work_seal,
        judge=judge,
        instances=list(judged.instances),
        generic=list(judged.generic),
        claims=list(judged.claims),
    )


def failed(member: GroupMember) -> bool:
    """A valid run that scores count as a failure: its reward is not 1, or nobody knows it."""
    return member.phase is Phase.SEALED and not succeeded(member.reward)


def _failures(
    inputs: Inputs,
    members: Sequence[GroupMember],
    opened: Mapping[int, Opened],
    labelled: Mapping[int, Failure],
    by: Asking | None,
) -> list[Failure]:
    """One record per failed valid run of either mode; those in `labelled` stay. Why a run failed is asked where its reward is
    known: without one there is no failure to explain."""
    found = {m.ordinal: labelled.get(m.ordinal) or labels.by_program(m) for m in members if failed(m)}
    rewards = {member.ordinal: member.reward for member in members}
    due = [
        ordinal
        for ordinal, failure in found.items()
        if failure.label is None and ordinal in opened and ordinal not in labelled and rewards[ordinal] is not None
    ]
    if by is None or not due:
        return list(found.values())
    sessions: list[Ask[labels.GivenFailure] | Done[labels.GivenFailure]] = []
    for ordinal in due:
        one = opened[ordinal]
        reading = Reading.of(one.attempt.trajectory, one.work_seal, SealedBlobs(one.attempt), "failure")
        files = SnapshotFiles(one.attempt.trajectory, SealedSnapshots(one.attempt))
        checks = one.verify.checks if one.verify is not None else None
        log = verifier_log(inputs, one)
        sessions.append(labels.failure_session(reading, files, one.member, checks, log, by.settings.model))
    for ordinal, done in zip(due, hold(sessions, by.backend, by.purse, by.pool), strict=True):
        found[ordinal] = labels.judged(opened[ordinal].member, done)
    return list(found.values())


def _store_failures(inputs: Inputs, asked: GroupInput, judge: str, failures: list[Failure]) -> str:
    key = inputs.paths.failures(digest8(judge), asked.configuration, asked.task, asked.n)
    record = Failures(judge=judge, configuration=asked.configuration, task=asked.task, n=asked.n, failures=failures)
    inputs.store.put_once(key, record.canonical())
    return key.rsplit("/", 1)[-1]


def _facts(one: Opened) -> RunFacts:
    return facts_of(one.attempt.trajectory, one.attempt.seal, one.verify.checks if one.verify is not None else None)
