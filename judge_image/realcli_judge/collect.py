"""What the report is made of: the group files of a sweep, their judgements, and the sealed evidence of their trials.

First all groups (small; they name the report), then one trial after the other, so that no more than one ledger is held.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from pydantic import ValidationError

from realcli.api.base import canonical_json, sha256_digest
from realcli.api.outcomes import Phase
from realcli.api.plan import Coordinates, trial_name
from realcli.benchmark.catalogue import load_catalogue
from realcli.checks.digest import digest8, judge_digest
from realcli.ledger.seals import VerifySeal, WorkSeal
from realcli.scoring.records import Group, GroupMember, InstanceRecord, RepeatJudgement
from realcli.scoring.runs import Observation, Run, conjunction
from realcli.storage.paths import join
from realcli.storage.port import NotFound
from realcli.trajectory import conversation
from realcli_judge.evidence import read_verify_seal
from realcli_judge.inputs import Inputs, Refused
from realcli_judge.judging import attempt_of, check_members
from realcli_judge.shown import ShownSection, shown
from realcli_judge.summary import TrialSummary

_GROUP = re.compile(r"/group-([1-9][0-9]{0,8})\.json")


@dataclass(frozen=True)
class Judged:
    """One trial of a judged group."""

    cell: Coordinates
    member: GroupMember
    instances: tuple[InstanceRecord, ...] = ()

    @property
    def valid(self) -> bool:
        """It counts."""
        return self.member.phase is Phase.SEALED


@dataclass(frozen=True)
class Collected:
    """The judged part of a sweep."""

    judge: str
    groups: dict[str, str] = field(default_factory=dict)  # key of a group file -> its digest
    trials: dict[int, Judged] = field(default_factory=dict)  # by ordinal; those of groups that are not judged are missing

    @property
    def digest(self) -> str:
        """Names the report: of the sorted list of (key, digest) of the group files it counts from."""
        return sha256_digest(canonical_json(sorted([key, digest] for key, digest in self.groups.items())))


def collect(inputs: Inputs) -> Collected:
    """Read all groups of the plan. A group that is not there is left out; one that does not fit its plan is `Refused`."""
    judge = judge_digest(load_catalogue().digest)
    found = Collected(judge)
    for number in range(inputs.plan.groups):
        cell = inputs.plan.coordinates(inputs.plan.ordinals_of_group(number)[0])
        folder = inputs.paths.judgements(digest8(judge), cell.configuration, cell.task)
        key = _latest(inputs, folder)
        if key is None:
            continue
        data = inputs.store.get(key)
        group = _group(inputs, key, data, judge)
        if join(folder, f"group-{group.n}.json") != key or (group.configuration, group.task) != (cell.configuration, cell.task):
            raise Refused("EvidenceSwapped", f"{key} is group-{group.n} of {group.configuration}, {group.task}")
        check_members(inputs, group.configuration, group.task, group.members)
        found.groups[key] = sha256_digest(data)
        for member in group.members:
            found.trials[member.ordinal] = Judged(
                inputs.plan.coordinates(member.ordinal), member, _instances(inputs, folder, group, member)
            )
    return found


def inspect(inputs: Inputs, trial: Judged) -> tuple[TrialSummary, list[ShownSection] | None]:
    """What the report says of a trial, and its conversation where there is a sealed attempt that is sound."""
    cell, member = trial.cell, trial.member
    paths = inputs.paths.attempt(member.ordinal, member.attempt)
    seal: WorkSeal | None = None
    verify: VerifySeal | None = None
    sections: list[ShownSection] | None = None
    trouble: str | None = None
    if trial.valid:
        try:
            verify = _verify(inputs, member)
            if member.work_seal is not None:
                attempt = attempt_of(inputs, member, member.work_seal)
                sections = shown(conversation(attempt.trajectory), attempt.text)
                seal = attempt.seal
        except Refused as refused:
            verify, trouble = None, str(refused)
    summary = TrialSummary(
        ordinal=member.ordinal,
        name=trial_name(inputs.lock.sweep.name, member.ordinal),
        configuration=cell.configuration,
        task=cell.task,
        mode=member.mode,
        repeat=member.repeat,
        phase=member.phase.value,
        reason=member.reason,
        success=(member.reward is not None and Fraction(member.reward) == 1) if trial.valid else None,
        reward=member.reward if trial.valid else None,
        checks=verify.checks if verify is not None else None,
        turns=seal.turns if seal is not None else None,
        tokens=seal.tokens if seal is not None else None,
        working_seconds=seal.working_seconds if seal is not None else None,
        limit=seal.limit if seal is not None else None,
        attempt=member.attempt,
        invalid_attempts=member.invalid_attempts,
        work_seal=member.work_seal,
        seal=member.seal,
        ledger=inputs.config.uri(paths.root),
        instances=list(trial.instances),
        trouble=trouble,
    )
    return summary, sections


def run_of(trial: Judged, scenarios: Sequence[str]) -> Run:
    """The trial as scoring counts it. `scenarios`: those bound in its task.

    A valid COLLAB run whose attempt left no seal (its session went with the pod) has no evidence to judge: its scenarios are
    unscored, which widens the bounds of S and is never a 0.
    """
    member = trial.member
    seen: dict[str, Observation] = {}
    if trial.valid and member.mode == "COLLAB":
        if member.work_seal is None:
            seen = {name: Observation(("unscored",), reason="the attempt left no seal") for name in scenarios}
        else:
            names = dict.fromkeys(instance.scenario for instance in trial.instances)
            seen = {name: conjunction(_observation(i) for i in trial.instances if i.scenario == name) for name in names}
    return Run(
        configuration=trial.cell.configuration,
        task=trial.cell.task,
        mode=member.mode,
        repeat=member.repeat,
        valid=trial.valid,
        reward=None if member.reward is None or not trial.valid else Fraction(member.reward),
        scenarios=seen,
    )


def _observation(instance: InstanceRecord) -> Observation:
    return Observation(tuple(c.verdict for c in instance.checks), instance.state == "contaminated", instance.reason)


def _latest(inputs: Inputs, folder: str) -> str | None:
    """The group file with the highest number; none: the group is not judged."""
    found = (_GROUP.fullmatch(item.key.removeprefix(folder)) for item in inputs.store.list(folder + "/group-"))
    numbers = [int(match[1]) for match in found if match]
    return join(folder, f"group-{max(numbers)}.json") if numbers else None


def _group(inputs: Inputs, key: str, data: bytes, judge: str) -> Group:
    try:
        group = Group.model_validate_json(data)
    except ValidationError as error:
        raise Refused("EvidenceChanged", f"{key} is no group file of this version: {error}") from error
    expected = (inputs.lock.sweep.uid, inputs.plan.lock_digest, judge)
    if (group.sweep_uid, group.lock_digest, group.judge) != expected:
        raise Refused("EvidenceSwapped", f"{key} is of another sweep, lock or judge than {', '.join(expected)}")
    return group


def _verify(inputs: Inputs, member: GroupMember) -> VerifySeal | None:
    if member.seal is None or member.verify_attempt is None or member.work_seal is None:
        if member.reward is not None and Fraction(member.reward) != 0:
            raise Refused("EvidenceMissing", f"trial {member.ordinal} has the reward {member.reward}, but no verify seal says so")
        return None
    paths = inputs.paths.attempt(member.ordinal, member.attempt)
    seal = read_verify_seal(inputs.store, paths, member.verify_attempt, member.seal, member.work_seal)
    if member.reward is None or Fraction(seal.reward) != Fraction(member.reward):
        raise Refused("EvidenceChanged", f"{paths.root}: the seal says reward {seal.reward}, the group file {member.reward}")
    return seal


def _instances(inputs: Inputs, folder: str, group: Group, member: GroupMember) -> tuple[InstanceRecord, ...]:
    if member.mode != "COLLAB" or member.phase is not Phase.SEALED or member.work_seal is None:
        return ()
    name = group.judgements.get(str(member.repeat))
    if name is None:
        raise Refused("EvidenceMissing", f"{folder}: no judgement of trial {member.ordinal}, although it is sealed")
    key = join(folder, name)
    try:
        data = inputs.store.get(key)
    except NotFound:
        raise Refused("EvidenceMissing", f"{key} does not exist in {inputs.store.describe()}") from None
    try:
        judgement = RepeatJudgement.model_validate_json(data)
    except ValidationError as error:
        raise Refused("EvidenceChanged", f"{key} is no judgement of this version: {error}") from error
    said = (judgement.ordinal, judgement.attempt, judgement.work_seal, judgement.judge, judgement.repeat)
    where = (judgement.configuration, judgement.task)
    if said != (member.ordinal, member.attempt, member.work_seal, group.judge, member.repeat) or where != (
        group.configuration,
        group.task,
    ):
        raise Refused("EvidenceSwapped", f"{key} judged another attempt or is by another judge than its group")
    return tuple(judgement.instances)
