"""One trial as its page shows it: the row of the summary, the three score sheets, and the conversation. Reads the evidence."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from realcli.api.plan import trial_name
from realcli.audit.model import AuditRecord
from realcli.ledger.ctrf import FailedTest, failed_tests
from realcli.ledger.seals import VerifySeal, WorkSeal
from realcli.scoring.records import Failure, GroupMember, RepeatJudgement
from realcli.scoring.runs import succeeded
from realcli.trajectory import Trajectory, conversation
from realcli_judge.collect import Judged, audit_of, judgement_of
from realcli_judge.evidence import read_verify_seal, verified
from realcli_judge.group import verified_at, worked_at
from realcli_judge.inputs import Inputs, Refused
from realcli_judge.judging import attempt_of
from realcli_judge.shown import ShownSection, room_for, shown
from realcli_judge.summary import TrialSummary


@dataclass(frozen=True)
class Detail:
    """A trial, whole. `sections`: its conversation, None where there is no sealed attempt that is sound."""

    summary: TrialSummary
    sections: list[ShownSection] | None = None
    trajectory: Trajectory | None = None
    judgement: RepeatJudgement | None = None
    audit: AuditRecord | None = None
    failure: Failure | None = None
    failed_tests: list[FailedTest] = field(default_factory=list)
    fitted: bool = False  # texts of the conversation are shorter than usual: its page has no room for more


def inspect(inputs: Inputs, trial: Judged) -> Detail:
    """What the report says of a trial, and what its page shows. Evidence that is not what was anchored is said, not shown."""
    cell, member = trial.cell, trial.member
    paths = worked_at(inputs, member)
    seal: WorkSeal | None = None
    verify: VerifySeal | None = None
    sections: list[ShownSection] | None = None
    fitted = False
    trajectory: Trajectory | None = None
    trouble: str | None = None
    failed: list[FailedTest] = []
    if trial.valid:
        try:
            verify = _verify(inputs, member)
            failed = _failed(inputs, member, verify)
            if member.work_seal is not None:
                attempt = attempt_of(inputs, member, member.work_seal)
                sections, fitted = shown(conversation(attempt.trajectory), attempt.text, room_for(inputs.plan.size))
                seal, trajectory = attempt.seal, attempt.trajectory
        except Refused as refused:
            verify, trouble, failed = None, str(refused), []
    summary = TrialSummary(
        ordinal=member.ordinal,
        name=trial_name(inputs.lock.sweep.name, member.ordinal),
        configuration=cell.configuration,
        task=cell.task,
        mode=member.mode,
        repeat=member.repeat,
        phase=member.phase.value,
        reason=member.reason,
        success=succeeded(member.reward) if trial.valid else None,
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
        facts=trial.facts,
        failure=trial.failure.label if trial.failure is not None else None,
        outcome_flag=trial.audit.outcome_flag if trial.audit is not None else None,
        control=member.control,
        trouble=trouble,
    )
    judgement, audit = judgement_of(inputs, trial), audit_of(inputs, trial)
    return Detail(summary, sections, trajectory, judgement, audit, trial.failure, failed, fitted)


def _failed(inputs: Inputs, member: GroupMember, verify: VerifySeal | None) -> list[FailedTest]:
    """What the tests say of those that failed: a text of the agent's side, shown and never scored."""
    if verify is None or member.verify_attempt is None:
        return []
    key = verified_at(inputs, member).verify(member.verify_attempt).ctrf
    return failed_tests(verified(inputs.store, key, verify) or b"")


def _verify(inputs: Inputs, member: GroupMember) -> VerifySeal | None:
    if member.seal is None or member.verify_attempt is None or member.work_seal is None:
        if member.reward is not None and Fraction(member.reward) != 0:
            raise Refused("EvidenceMissing", f"trial {member.ordinal} has the reward {member.reward}, but no verify seal says so")
        return None
    paths = verified_at(inputs, member)
    seal = read_verify_seal(inputs.store, paths, member.verify_attempt, member.seal, member.work_seal)
    if member.reward is None or Fraction(seal.reward) != Fraction(member.reward):
        raise Refused("EvidenceChanged", f"{paths.root}: the seal says reward {seal.reward}, the group file {member.reward}")
    return seal
