"""A judged sweep of any size without a ledger behind it: lock, plan and what the report collects. Deterministic."""

from __future__ import annotations

import random
from typing import NamedTuple

from realcli.api.base import sha256_digest
from realcli.api.outcomes import Phase
from realcli.api.plan import ConfigurationLock, Lock, Plan, TaskLock, plan_of, trial_name
from realcli.api.sweep import Mode
from realcli.api.trial import Tokens
from realcli.audit.model import AuditRecord, SimCheck
from realcli.benchmark.catalogue import Template, load_catalogue
from realcli.judging.identity import identity_of
from realcli.scoring.analyses.audits import CHECKS
from realcli.scoring.records import Failure, GroupMember, JudgeCost, RunFacts
from realcli_judge.collect import CheckSeen, Collected, InstanceSeen, Judged
from realcli_judge.summary import TrialSummary
from tests.support.sealed_sweep import DIGEST, _lock

CATEGORIES = ("system-operations", "data-analysis", "software-engineering", "games", "security")


class Synthetic(NamedTuple):
    """What `summarise` and `Site` take."""

    lock: Lock
    plan: Plan
    collected: Collected
    trials: list[TrialSummary]


def synthetic(configurations: int, tasks: int, repeats: int = 3, seed: int = 1) -> Synthetic:
    """`configurations` x `tasks` x `repeats`, both modes, every task with six scenarios."""
    chance = random.Random(seed)
    templates = list(load_catalogue().templates.values())
    base = _lock(DIGEST, ["claude-code.sonnet"])
    lock = base.model_copy(
        update={
            "repeats": repeats,
            "tasks": [_task(base.tasks[0], number, templates) for number in range(tasks)],
            "configurations": [_configuration(base.configurations[0], number) for number in range(configurations)],
        }
    )
    plan = plan_of(lock, "p/sweeps/audits/large", sha256_digest(lock.canonical()))
    judge = identity_of(lock.spec.judge).content_digest()
    skill = {c.name: (chance.uniform(0.3, 0.8), chance.uniform(0.3, 0.9)) for c in lock.configurations}
    scenarios = {task.name: [next(t for t in templates if t.id == id) for id in task.scenarios] for task in lock.tasks}
    judged: dict[int, Judged] = {}
    trials: list[TrialSummary] = []
    for ordinal in range(plan.size):
        cell = plan.coordinates(ordinal)
        r, s = skill[cell.configuration]
        valid, success = chance.random() > 0.01, chance.random() < r
        collab = cell.mode == "COLLAB"
        calls = chance.randrange(5, 60) * (2 if collab else 1)
        member = _member(ordinal, cell.mode, cell.repeat, valid, success)
        facts = _facts(calls, chance.randrange(4), success, collab) if valid else None
        instances, audit = (), None
        if valid and collab:
            instances = tuple(_instance(f"i{at}", t, s, chance) for at, t in enumerate(scenarios[cell.task]))
            checks = [SimCheck(check=c, verdict="1" if chance.random() > 0.03 else "0", by="program") for c in CHECKS]
            audit = AuditRecord(
                configuration=cell.configuration, task=cell.task, repeat=cell.repeat, ordinal=ordinal, attempt=1,
                work_seal=DIGEST, judge=judge, checks=checks,
            )  # fmt: skip
        failure = None
        if valid and not success:
            failure = Failure(ordinal=ordinal, mode=cell.mode, repeat=cell.repeat, label="functional-or-boundary", by="judge")
        judged[ordinal] = Judged(cell, member, instances, (), audit, failure, facts)
        trials.append(
            TrialSummary(
                ordinal=ordinal, name=trial_name(lock.sweep.name, ordinal), configuration=cell.configuration, task=cell.task,
                mode=cell.mode, repeat=cell.repeat, phase=member.phase.value, reason=member.reason,
                success=success if valid else None, reward=member.reward, turns=calls if valid else None,
                tokens=Tokens(input=1000 * calls, cache_read=0, output=100 * calls) if valid else None,
                working_seconds="600.0" if valid else None, attempt=1, invalid_attempts=0, work_seal=member.work_seal,
                seal=member.seal, ledger="s3://b/x", facts=facts, failure=failure.label if failure else None,
            )
        )  # fmt: skip
    groups = configurations * tasks
    return Synthetic(lock, plan, Collected(judge, {}, groups, judged, (JudgeCost(requests=1, cost_usd="1.00"),)), trials)


def _member(ordinal: int, mode: Mode, repeat: int, valid: bool, success: bool) -> GroupMember:
    cell = {"ordinal": ordinal, "mode": mode, "repeat": repeat, "attempt": 1}
    if not valid:
        return GroupMember(phase=Phase.INVALID, reason="ProviderUnavailable", **cell)
    anchors = {"work_seal": DIGEST, "seal": DIGEST, "verify_attempt": 1}
    return GroupMember(phase=Phase.SEALED, reason="Completed", reward="1" if success else "0.5", **anchors, **cell)


def _facts(calls: int, failing: int, success: bool, collab: bool) -> RunFacts:
    return RunFacts(
        turns=calls, tool_calls=calls, retries=3, failing_retries=failing, questions=2 if collab else None,
        cost_usd=f"{calls / 100:.2f}", checks_passed=8 if success else 6, checks_total=8,
    )  # fmt: skip


def _instance(id: str, template: Template, skill: float, chance: random.Random) -> InstanceSeen:
    if chance.random() < 0.05:
        return InstanceSeen(id, template.id, template.dimension, "untriggered", "not_reached", None, ())
    checks = (CheckSeen(c.id, "1" if chance.random() < skill else "0", "program", False, False) for c in template.checks)
    return InstanceSeen(id, template.id, template.dimension, "triggered", None, None, tuple(checks))


def _task(base: TaskLock, number: int, templates: list[Template]) -> TaskLock:
    ids = [templates[(number * 6 + at) % len(templates)].id for at in range(6)]
    named = {"name": f"task-{number:03d}", "category": CATEGORIES[number % len(CATEGORIES)], "scenarios": ids}
    return base.model_copy(update={**named, "information_structure": "additive" if number % 2 else "consistency"})


def _configuration(base: ConfigurationLock, number: int) -> ConfigurationLock:
    program = ("claude-code", "codex", "terminus-2")[number % 3]
    model = f"model-{number // 3:02d}"
    return base.model_copy(
        update={"name": f"{program}.{model}", "agent": program, "program": program, "model": model, "model_id": model}
    )
