"""The judge Job: one group (configuration, task), all repeats of both modes terminal. By program alone.

Writes one judgement per sealed COLLAB repeat, then the group file: the list aggregation counts from. Everything is created
once and depends on nothing but its inputs, so a Job that runs again finds its own bytes and succeeds.
"""

from __future__ import annotations

from realcli.api.base import sha256_digest
from realcli.api.outcomes import BY_REASON, Effect, Phase
from realcli.benchmark.bundles import unpacked
from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.models import Oracle, Script
from realcli.benchmark.publish import bundle_key
from realcli.benchmark.run_files import canary_values
from realcli.benchmark.script import ORACLE, SCRIPT
from realcli.checks import CheckError, Evidence, instances_of, judge_instance
from realcli.checks.digest import digest8, judge_digest
from realcli.ledger.events import HardCheck
from realcli.ledger.seals import RunJson, TrialIdentity
from realcli.scoring.records import Group, GroupInput, GroupMember, RepeatJudgement
from realcli_judge.evidence import (
    SealedAttempt,
    SealedBlobs,
    SealedSnapshots,
    checked,
    read_attempt,
    read_verify_seal,
    recorded_checks,
)
from realcli_judge.inputs import Inputs, Refused


def judge_group(inputs: Inputs, asked: GroupInput) -> tuple[Group, str]:
    """Judge and store a group; (group, digest of its file). `Refused` names the object and what is wrong with it."""
    check_members(inputs, asked.configuration, asked.task, asked.members)
    judge = judge_digest(load_catalogue().digest)
    names: dict[str, str] = {}
    task: tuple[Script, Oracle] | None = None
    for member in sorted(asked.members, key=lambda m: m.ordinal):
        if member.mode != "COLLAB" or member.phase is not Phase.SEALED or member.work_seal is None:
            continue
        task = task or interaction_of(inputs, asked.task)
        judgement = judge_repeat(inputs, asked, member, member.work_seal, *task, judge)
        key = inputs.paths.repeat(digest8(judge), asked.configuration, asked.task, member.repeat, digest8(member.work_seal))
        inputs.store.put_once(key, judgement.canonical())
        names[str(member.repeat)] = key.rsplit("/", 1)[-1]
    group = Group(
        sweep_uid=inputs.lock.sweep.uid,
        lock_digest=inputs.plan.lock_digest,
        judge=judge,
        configuration=asked.configuration,
        task=asked.task,
        n=asked.n,
        members=sorted(asked.members, key=lambda m: m.ordinal),
        judgements=names,
    )
    data = group.canonical()
    inputs.store.put_once(inputs.paths.group(digest8(judge), asked.configuration, asked.task, asked.n), data)
    return group, sha256_digest(data)


def judge_repeat(
    inputs: Inputs, asked: GroupInput, member: GroupMember, work_seal: str, script: Script, oracle: Oracle, judge: str
) -> RepeatJudgement:
    """The judgement of one sealed COLLAB run."""
    attempt = attempt_of(inputs, member, work_seal)
    catalogue = load_catalogue()
    locked = next(item for item in inputs.lock.tasks if item.name == asked.task)
    evidence = Evidence(
        SealedSnapshots(attempt),
        SealedBlobs(attempt),
        recorded=_recorded(inputs, member, work_seal),
        oracle=oracle,
        canaries=canary_values(oracle, RunJson.model_validate_json(attempt.read("run.json"))) if oracle.canaries else {},
        workdir=locked.workdir,
        watch=tuple(locked.watch) or None,  # without any the ledger says that no file was recorded
    )
    try:
        instances = [judge_instance(instance, attempt.trajectory, evidence) for instance in instances_of(script, catalogue)]
    except CheckError as error:
        raise Refused("CheckRefused", f"task {asked.task}: {error}") from error
    except KeyError as error:
        raise Refused("CheckRefused", f"task {asked.task}: {error.args[0]}") from error
    return RepeatJudgement(
        configuration=asked.configuration,
        task=asked.task,
        repeat=member.repeat,
        ordinal=member.ordinal,
        attempt=member.attempt,
        work_seal=work_seal,
        judge=judge,
        instances=instances,
    )


def _recorded(inputs: Inputs, member: GroupMember, work_seal: str) -> tuple[HardCheck, ...]:
    """What the verify pod's checker scripts found; nothing where there was no verify, or no script to run."""
    if member.seal is None or member.verify_attempt is None:
        return ()
    attempt = inputs.paths.attempt(member.ordinal, member.attempt)
    seal = read_verify_seal(inputs.store, attempt, member.verify_attempt, member.seal, work_seal)
    return recorded_checks(inputs.store, attempt.verify(member.verify_attempt), seal)


def check_members(inputs: Inputs, configuration: str, task: str, members: list[GroupMember]) -> None:
    """The members are the group's trials of the plan, each once, as their ordinals say; else `Refused`."""
    plan = inputs.plan
    numbers = [
        group for group in range(plan.groups)
        if plan.coordinates(plan.ordinals_of_group(group)[0])[1:4:2] == (task, configuration)
    ]  # fmt: skip
    if not numbers:
        raise Refused("GroupRefused", f"the plan has no group of configuration {configuration} and task {task}")
    wanted, found = plan.ordinals_of_group(numbers[0]), sorted(member.ordinal for member in members)
    if found != sorted(wanted):
        raise Refused("GroupRefused", f"group {configuration}, {task} has the trials {sorted(wanted)}, but {found} were given")
    for member in members:
        cell = plan.coordinates(member.ordinal)
        if (cell.mode, cell.repeat) != (member.mode, member.repeat):
            raise Refused(
                "GroupRefused",
                f"trial {member.ordinal} is {cell.mode}, repeat {cell.repeat}; given was {member.mode}, {member.repeat}",
            )
        if not member.phase.terminal:
            raise Refused(
                "GroupRefused", f"trial {member.ordinal} is {member.phase.value}; a group is judged when all are terminal"
            )
        row = BY_REASON.get(member.reason)
        if row is None or (member.phase is Phase.SEALED) != (row.effect in (Effect.VERIFIED, Effect.AGENT)):
            raise Refused(
                "GroupRefused",
                f"trial {member.ordinal} is {member.phase.value} for {member.reason!r}: no such end is in the table",
            )


def identity_of(inputs: Inputs, member: GroupMember) -> TrialIdentity:
    """Which attempt a member is, as its seal has to say."""
    cell = inputs.plan.coordinates(member.ordinal)
    sweep = inputs.lock.sweep
    return TrialIdentity(
        sweep_uid=sweep.uid, sweep=sweep.name, namespace=sweep.namespace, ordinal=member.ordinal, attempt=member.attempt,
        configuration=cell.configuration, task=cell.task, mode=cell.mode, repeat=cell.repeat,
        lock_digest=inputs.plan.lock_digest,
    )  # fmt: skip


def attempt_of(inputs: Inputs, member: GroupMember, work_seal: str) -> SealedAttempt:
    """The sealed attempt of a member."""
    paths = inputs.paths.attempt(member.ordinal, member.attempt)
    return read_attempt(inputs.store, paths, identity_of(inputs, member), work_seal)


def interaction_of(inputs: Inputs, task: str) -> tuple[Script, Oracle]:
    """Script and oracle contract of a task, from its private bundle."""
    locked = next(item for item in inputs.lock.tasks if item.name == task)
    store, prefix = inputs.benchmark()
    key = bundle_key(prefix, locked.private_bundle)
    try:
        files = {file.path: file.content for file in unpacked(checked(store, key, locked.private_bundle))}
        return Script.model_validate_json(files[SCRIPT]), Oracle.model_validate_json(files[ORACLE])
    except KeyError as error:
        raise Refused("BenchmarkNotFound", f"task {task}: {key} holds no {error.args[0]}; publish the benchmark again") from None
    except ValueError as error:  # damaged bundle, or a script of another version
        raise Refused("BenchmarkNotFound", f"task {task}: {key}: {error}") from error
