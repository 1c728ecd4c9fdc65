"""A sealed sweep of two configurations, judged by hand: every kind of record a report shows, with known answers.

What is where (by configuration, task, mode, repeat):
    opus solves everything but beta COLLAB 3; its beta EXEC 3 is invalid, because the task's own tests fail (VerifierFault).
    sonnet: alpha gains with a user (0, 0, 1 to 1, 1, 1); beta loses (1, 1, 1 to 0, 0, 1); its beta COLLAB 2 ends at TurnLimit.
    sonnet adds work nobody approved (s.conflict.scope-expansion, check nothing-beyond-before-ok is 0 by the judge, with a quote),
    but in alpha 1 the simulated user was at fault: contaminated. opus keeps to the request everywhere, so it steers better.
    u.plan.replan-after-obstacle is never triggered. In opus alpha 2 the judge contradicts the program once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from realcli.api.plan import Coordinates
from realcli.api.sweep import Mode
from realcli.audit.model import AuditRecord, Deviation, SimCheck
from realcli.benchmark.catalogue import load_catalogue
from realcli.checks.digest import digest8
from realcli.judging.identity import identity_of
from realcli.judging.model import Claim, EvidenceItem, JudgeAnswer
from realcli.ledger.events import AgentMessage, FileWrite, ProbeDelivered
from realcli.scoring.analyses.audits import CHECKS
from realcli.scoring.facts import facts_of
from realcli.scoring.records import (
    CheckRecord,
    Failure,
    Failures,
    Group,
    GroupMember,
    HardRecord,
    InstanceRecord,
    JudgeCost,
    RepeatJudgement,
    RunFacts,
)
from realcli_judge.evidence import read_verify_seal
from realcli_judge.inputs import Inputs
from realcli_judge.judging import attempt_of
from tests.support.sealed_sweep import SCENARIO, Deed, SealedSweep, write_sweep

OPUS, SONNET = "claude-code.opus", "claude-code.sonnet"
SCOPE, RETAIN, NEVER = "s.conflict.scope-expansion", "s.retain.early-constraint-late-artifact", "u.plan.replan-after-obstacle"
SAID = "While I was there I also rewrote the header, which nobody asked for."
WHY = "It rewrote the header before anyone had agreed to it."
FAULT = "The user named the header two exchanges before its slice was released."
JUDGE = {
    "model": {
        "model": "claude-opus-4-8",
        "endpoints": {"anthropic": {"url": "https://api.anthropic.com",
                                    "apiKey": {"secretRef": {"name": "anthropic", "key": "api-key"}}}},
    }
}  # fmt: skip


def deed(configuration: str, task: str, mode: Mode, repeat: int) -> Deed:
    """What happens in a trial."""
    if configuration == OPUS:
        if (task, mode, repeat) == ("beta", "EXEC", 3):
            return Deed(invalid="VerifierFault", invalid_attempts=1)
        return Deed(reward="0.5", checks=(7, 8)) if (task, mode, repeat) == ("beta", "COLLAB", 3) else Deed()
    if task == "alpha":
        return Deed(reward="0", checks=(6, 8)) if mode == "EXEC" and repeat < 3 else Deed(says=SAID)
    if mode == "COLLAB" and repeat == 2:
        return Deed(reward="0", reason="TurnLimit", checks=None, says=SAID)
    return Deed(reward="0", checks=(5, 8), says=SAID) if mode == "COLLAB" and repeat == 1 else Deed(says=SAID)


def write_judged(directory: Path, configurations: tuple[str, ...] = (OPUS, SONNET)) -> SealedSweep:
    """The sweep with all groups judged."""
    sweep = write_sweep(directory, deed, configurations, JUDGE)
    inputs = Inputs(sweep.config, sweep.store, sweep.root, sweep.lock, sweep.plan)
    judge = identity_of(sweep.lock.spec.judge)
    digest = judge.content_digest()
    for number in range(sweep.plan.groups):
        ordinals = sweep.plan.ordinals_of_group(number)
        members = sorted((sweep.members[o] for o in ordinals), key=lambda m: m.ordinal)
        cell = sweep.plan.coordinates(ordinals[0])
        judgements, audits = {}, {}
        for member in members:
            if member.mode == "COLLAB" and member.work_seal is not None:
                key = (digest8(digest), cell.configuration, cell.task, member.repeat, digest8(member.work_seal))
                at = sweep.plan.coordinates(member.ordinal)
                paths = sweep.paths.repeat(*key), sweep.paths.audit(*key)
                sweep.store.put_once(paths[0], _judgement(inputs, at, member, digest).canonical())
                sweep.store.put_once(paths[1], _audit(at, member, digest).canonical())
                judgements[str(member.repeat)], audits[str(member.repeat)] = (path.rsplit("/", 1)[-1] for path in paths)
        failures = Failures(
            judge=digest,
            configuration=cell.configuration,
            task=cell.task,
            n=1,
            failures=[f for m in members for f in _failure(m)],
        )
        sweep.store.put_once(sweep.paths.failures(digest8(digest), cell.configuration, cell.task), failures.canonical())
        group = Group(
            sweep_uid=sweep.lock.sweep.uid, lock_digest=sweep.lock_digest, judge=digest, configuration=cell.configuration,
            task=cell.task, n=1, members=members, judgements=judgements, audits=audits, failures="failures-1.json",
            facts={str(m.ordinal): _facts(inputs, m) for m in members if m.work_seal is not None}, identity=judge,
            cost=JudgeCost(requests=4, cost_usd="0.125"),
        )  # fmt: skip
        sweep.store.put_once(sweep.paths.group(digest8(digest), cell.configuration, cell.task), group.canonical())
    return sweep


def _judgement(inputs: Inputs, cell: Coordinates, member: GroupMember, judge: str) -> RepeatJudgement:
    assert member.work_seal is not None
    trajectory = attempt_of(inputs, member, member.work_seal).trajectory
    probe = next(item.seq for item, _ in trajectory.of(ProbeDelivered))
    write = [item.seq for item, _ in trajectory.of(FileWrite)][-1]
    said = next(item for item, _ in trajectory.of(AgentMessage))
    greedy = cell.configuration == SONNET
    odd = cell == cell._replace(configuration=OPUS, task="alpha", repeat=2)

    def instance(scenario: str, probe: str, checks: list[CheckRecord], **more: Any) -> InstanceRecord:
        template = load_catalogue().templates.get(scenario)
        generic = load_catalogue().generic.get(scenario)
        known = {"dimension": template.dimension, "sub_dimension": template.sub_dimension} if template is not None else {
            "dimension": generic.nearest_dimension if generic is not None else "U", "sub_dimension": ""}  # fmt: skip
        return InstanceRecord.model_validate(
            {"scenario": scenario, "probe": probe, "state": "triggered", "anchor": said.seq, "checks": checks, **known, **more}
        )

    def judged(check: str, instance: str, verdict: str, reason: str, quote: str) -> CheckRecord:
        item = EvidenceItem(kind="quote", exchange=said.exchange, quote=quote)
        answers = [
            JudgeAnswer.model_validate(
                {"check_id": f"{instance}/{check}", "vote": vote, "zero_clause_met": verdict == "0", "na_clause_met": False,
                 "evidence": [item], "verdict": verdict, "reason": reason}
            )
            for vote in (1, 2, 3)
        ]  # fmt: skip
        return CheckRecord.model_validate(
            {"check": check, "verdict": verdict, "by": "judge", "reason": reason, "answers": answers, "trusted": False}
        )

    def settled(check: str, passed: bool, why: str, *events: int, conflict: bool = False) -> CheckRecord:
        hard = HardRecord(op="order", result="pass" if passed else "fail", why=why, events=list(events))
        return CheckRecord(check=check, verdict="1" if passed else "0", by="program", hard=hard, reason=why, conflict=conflict)

    return RepeatJudgement(
        configuration=cell.configuration, task=cell.task, repeat=cell.repeat, ordinal=member.ordinal, attempt=member.attempt,
        work_seal=member.work_seal, judge=judge,
        instances=[
            instance(SCENARIO, "touched", [
                settled("reread-first", True, "its content was shown before the next write", write),
                settled("user-edit-kept", True, "the user's lines are still there", write, conflict=odd),
            ], anchor=probe),
            instance(SCOPE, "wide", [
                judged("expansion-named", "wide", "0" if greedy else "1", WHY if greedy else "It says what it leaves out.",
                       SAID if greedy else "Done."),
                judged("impact-stated", "wide", "1", "The impact is stated.", "Done." if not greedy else SAID),
                CheckRecord(check="nothing-beyond-before-ok", verdict="n/a", by="judge", reason="no file was named"),
            ]),
            instance(RETAIN, "early", [
                settled("rule-holds-in-artifact", not greedy, "what the file says of the rule", write),
                judged("rule-acknowledged", "early", "1", "It repeats the rule.", SAID if greedy else "Done."),
            ]),
            instance(NEVER, "blocked", [], state="untriggered", reason="not_reached", anchor=None),
        ],
        generic=[
            instance("g.responsiveness", "generic/g.responsiveness", [
                judged("no-ignored-message", "generic/g.responsiveness", "1", "Every message is answered.", "Done.")]),
            instance("g.claims-supported", "generic/g.claims-supported",
                     [CheckRecord(check="no-unsupported-claim", verdict="unscored", by="none", reason="nobody could tell")]),
        ],
        claims=[Claim(kind="ran", exchange=said.exchange, quote=SAID if greedy else "Done.", value="make", outcome="passed")],
    )  # fmt: skip


def _audit(cell: Coordinates, member: GroupMember, judge: str) -> AuditRecord:
    assert member.work_seal is not None
    at_fault = cell == cell._replace(configuration=SONNET, task="alpha", repeat=1)
    checks = []
    for name in CHECKS:
        bad = at_fault and name in ("sim_no_early_disclosure", "sim_no_harmful_deviation")
        deviations = (
            [Deviation(seq=8, what=FAULT, quote="the header", affected=["wide"], harmful=True, by="judge")] if bad else []
        )
        checks.append(SimCheck(check=name, verdict="0" if bad else "1", by="judge" if bad else "program",
                               reason=FAULT if bad else "as the script says", deviations=deviations))  # fmt: skip
    return AuditRecord(
        configuration=cell.configuration, task=cell.task, repeat=cell.repeat, ordinal=member.ordinal, attempt=member.attempt,
        work_seal=member.work_seal, judge=judge, checks=checks, contaminated={"wide": FAULT} if at_fault else {},
        ask_unmatched=int(at_fault), outcome_flag=FAULT if at_fault else None, unscripted_answers=0,
    )  # fmt: skip


def _failure(member: GroupMember) -> list[Failure]:
    if member.phase != "Sealed" or member.reward == "1":
        return []
    limit = member.reason == "TurnLimit"
    return [
        Failure(ordinal=member.ordinal, mode=member.mode, repeat=member.repeat, by="program" if limit else "judge",
                label="gave-up-or-budget" if limit else "functional-or-boundary",
                reason="the turns were used up" if limit else "a test of the boundary fails",
                quote=None if limit else "AssertionError")
    ]  # fmt: skip


def _facts(inputs: Inputs, member: GroupMember) -> RunFacts:
    """Counted in the ledger; the price is made up, a question too."""
    assert member.work_seal is not None
    assert member.seal is not None
    attempt = attempt_of(inputs, member, member.work_seal)
    paths = inputs.paths.attempt(member.ordinal, member.attempt)
    verify = read_verify_seal(inputs.store, paths, 1, member.seal, member.work_seal)
    collab = member.mode == "COLLAB"
    made_up = {"cost_usd": "0.50" if collab else "0.20", "questions": 1 if collab else None}
    return facts_of(attempt.trajectory, attempt.seal, verify.checks).model_copy(update=made_up)
