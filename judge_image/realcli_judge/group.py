"""A group's trials as the plan has them, their sealed evidence opened once, and the task's own side of the story."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from realcli.api.faults import first_fault
from realcli.api.outcomes import BY_REASON, Effect, Phase
from realcli.api.plan import TaskLock
from realcli.benchmark.bundles import unpacked
from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.models import Oracle, Script
from realcli.benchmark.publish import bundle_key
from realcli.benchmark.run_files import canary_values
from realcli.benchmark.script import ORACLE, SCRIPT
from realcli.checks import Evidence, Instance, instances_of
from realcli.judging.run import Run, generic_instances
from realcli.ledger.events import HardCheck
from realcli.ledger.seals import RunJson, TrialIdentity, VerifySeal
from realcli.scoring.records import GroupInput, GroupMember
from realcli.scoring.sources import own_member
from realcli.storage.paths import AttemptPaths
from realcli_judge.evidence import (
    SealedAttempt,
    SealedBlobs,
    SealedSnapshots,
    checked,
    read_attempt,
    read_verify_seal,
    recorded_checks,
    verified,
)
from realcli_judge.inputs import Inputs, Refused

TRAPS = "interaction/traps/"
MAX_LOG = 4 << 20  # bytes of the verifier's log that are read


@dataclass(frozen=True)
class TaskSide:
    """What a task says of itself: its lock, script, oracle contract, and the paths of its static plants."""

    lock: TaskLock
    script: Script
    oracle: Oracle
    traps: tuple[str, ...] = ()

    @cached_property
    def instances(self) -> tuple[Instance, ...]:
        """Of its script. `Refused` for a scenario that this version's catalogue lacks."""
        try:
            return tuple(instances_of(self.script, load_catalogue()))
        except KeyError as error:
            raise Refused("CheckRefused", f"task {self.lock.name}: {error.args[0]}") from error


@dataclass(frozen=True)
class Opened:
    """A sealed trial of the group, its evidence checked against its anchors."""

    member: GroupMember
    attempt: SealedAttempt
    work_seal: str
    verify: VerifySeal | None
    recorded: tuple[HardCheck, ...]

    def run(self, task: TaskSide) -> Run:
        """What of it is judged (a COLLAB run)."""
        oracle = task.oracle
        run = RunJson.model_validate_json(self.attempt.read("run.json")) if oracle.canaries else None
        evidence = Evidence(
            SealedSnapshots(self.attempt),
            SealedBlobs(self.attempt),
            recorded=self.recorded,
            oracle=oracle,
            canaries=canary_values(oracle, run) if run is not None else {},
            workdir=task.lock.workdir,
            watch=tuple(task.lock.watch) or None,  # without any the ledger says that no file was recorded
            artifacts=tuple(task.lock.artifacts),
            actions=tuple(task.script.actions),
        )
        return Run(self.attempt.trajectory, evidence, task.instances, self.work_seal, generic_instances())


def open_member(inputs: Inputs, member: GroupMember) -> Opened | None:
    """The evidence of a sealed trial; None for one that has none to read. `Refused` names what is wrong."""
    if member.phase is not Phase.SEALED or member.work_seal is None:
        return None
    attempt = attempt_of(inputs, member, member.work_seal)
    verify: VerifySeal | None = None
    recorded: tuple[HardCheck, ...] = ()
    if member.seal is not None and member.verify_attempt is not None:
        paths = verified_at(inputs, member)
        verify = read_verify_seal(inputs.store, paths, member.verify_attempt, member.seal, member.work_seal)
        recorded = recorded_checks(inputs.store, paths.verify(member.verify_attempt), verify)
    return Opened(member, attempt, member.work_seal, verify, recorded)


def verifier_log(inputs: Inputs, opened: Opened) -> str:
    """What the tests printed; empty where the verify seal covers no log."""
    member, verify = opened.member, opened.verify
    if verify is None or member.verify_attempt is None:
        return ""
    key = verified_at(inputs, member).verify(member.verify_attempt).logs
    return (verified(inputs.store, key, verify) or b"")[-MAX_LOG:].decode("utf-8", "replace")


def check_members(inputs: Inputs, configuration: str, task: str, members: list[GroupMember]) -> None:
    """The members are the group's trials of the plan, each once, as their ordinals say; else `Refused`."""
    plan = inputs.plan
    wanted = plan.ordinals_of_group(group_number(inputs, configuration, task))
    found = sorted(member.ordinal for member in members)
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


def group_number(inputs: Inputs, configuration: str, task: str) -> int:
    """Number of a group in the plan; `Refused`."""
    tasks = [item.name for item in inputs.plan.tasks]
    configurations = [item.name for item in inputs.plan.configurations]
    if task not in tasks or configuration not in configurations:
        raise Refused("GroupRefused", f"the plan has no group of configuration {configuration} and task {task}")
    return configurations.index(configuration) * len(tasks) + tasks.index(task)


def with_members(inputs: Inputs, asked: GroupInput) -> GroupInput:
    """The group with its trials: those the operator gave, or, where another sweep's are only judged again, that sweep's."""
    if asked.members:
        return asked
    if not inputs.plan.judged_only:
        raise Refused("ConfigurationError", "the group has no members; the operator and this image must match")
    sources = inputs.sources(group_number(inputs, asked.configuration, asked.task))
    return asked.model_copy(update={"members": [own_member(source, ordinal) for ordinal, source in sources.items()]})


def worked_at(inputs: Inputs, member: GroupMember) -> AttemptPaths:
    """Where the ledger and the work seal of a member lie."""
    source = inputs.source(member.ordinal)
    return inputs.paths.attempt(member.ordinal, member.attempt) if source is None else source.work


def verified_at(inputs: Inputs, member: GroupMember) -> AttemptPaths:
    """Below which attempt's folder the verify of a member lies that counts."""
    source = inputs.source(member.ordinal) if inputs.plan.judged_only else None
    return inputs.paths.attempt(member.ordinal, member.attempt) if source is None else source.verifies


def trial_of(inputs: Inputs, member: GroupMember) -> TrialIdentity:
    """Which attempt a member is, as its seal has to say."""
    source = inputs.source(member.ordinal)
    if source is not None:
        return source.trial
    cell = inputs.plan.coordinates(member.ordinal)
    sweep = inputs.lock.sweep
    return TrialIdentity(
        sweep_uid=sweep.uid, sweep=sweep.name, namespace=sweep.namespace, ordinal=member.ordinal, attempt=member.attempt,
        configuration=cell.configuration, task=cell.task, mode=cell.mode, repeat=cell.repeat,
        lock_digest=inputs.plan.lock_digest,
    )  # fmt: skip


def attempt_of(inputs: Inputs, member: GroupMember, work_seal: str) -> SealedAttempt:
    """The sealed attempt of a member."""
    return read_attempt(inputs.store, worked_at(inputs, member), trial_of(inputs, member), work_seal)


def task_side(inputs: Inputs, task: str) -> TaskSide:
    """Script, oracle contract and plants of a task, from its private bundle."""
    locked = next(item for item in inputs.lock.tasks if item.name == task)
    store, prefix = inputs.benchmark()
    key = bundle_key(prefix, locked.private_bundle)
    try:
        files = {file.path: file.content for file in unpacked(checked(store, key, locked.private_bundle))}
        script, oracle = Script.model_validate_json(files[SCRIPT]), Oracle.model_validate_json(files[ORACLE])
    except KeyError as error:
        raise Refused("BenchmarkNotFound", f"task {task}: {key} holds no {error.args[0]}; publish the benchmark again") from None
    except ValueError as error:  # damaged bundle, or a script of another version
        raise Refused("BenchmarkNotFound", f"task {task}: {key}: {first_fault(error)}") from error
    traps = tuple("/" + path.removeprefix(TRAPS) for path in sorted(files) if path.startswith(TRAPS))
    return TaskSide(locked, script, oracle, traps)
