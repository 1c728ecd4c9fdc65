"""Sealed trials as a job directory of Harbor (the release pinned in hack/): what its models, viewer and trace tools load. Pure.

    <job>/config.json result.json                what was asked for; counts over the trials below
    <job>/<task>__<ordinal>/config.json result.json agent/trajectory.json verifier/…   one trial

The job was not run by Harbor and cannot be by these files: `environment.import_path` is a mark, no module. EXEC and COLLAB are
two data sets, because Harbor pools all trials of an agent, a model and a data set.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID, uuid5

from pydantic import JsonValue

from realcli.api.outcomes import BY_REASON, Effect, Phase
from realcli.api.plan import ConfigurationLock, Lock, TaskLock
from realcli.ledger.events import EpisodeEnd, PhaseChange
from realcli.ledger.seals import Verdict, VerifySeal, WorkSeal
from realcli.ledger.show import printable_json
from realcli.scoring.records import GroupMember
from realcli.trajectory.atif_document import AtifDocument, AtifTotals, Extra
from realcli.trajectory.model import Trajectory

NAMESPACE = UUID("6b0f3a52-6c1e-5d0e-9a43-6a7d1f1b9c57")
"""Of the ids that Harbor wants: made from seals and locks, so the same evidence has the same id."""
ELSEWHERE = "realcli.pod:NotHarbor"
UNVERIFIED = "Unverified"
"""Of a sound run whose verdict does not lie beside it: the verify pod is still to come, or ended without one."""
NAME_LENGTH = 32  # characters of a task's name in a trial's, as Harbor cuts it


class Outcome(NamedTuple):
    """What a trial came to."""

    reason: str
    valid: bool
    reward: str | None  # None: there is none


@dataclass(frozen=True)
class SealedRun:
    """One trial and everything sealed about it."""

    seal: WorkSeal
    digest: str  # of the work seal
    uri: str  # where the evidence lies
    trajectory: Trajectory
    document: AtifDocument
    verify: VerifySeal | None = None
    verdict: Verdict | None = None
    ctrf: bytes | None = None
    logs: bytes | None = None
    member: GroupMember | None = None  # as the operator saw it end, where its group is judged

    @property
    def name(self) -> str:
        """`<task>__<ordinal>`."""
        task = re.sub(r"[^A-Za-z0-9.-]", "_", self.seal.trial.task)[:NAME_LENGTH].strip("._-")
        return f"{task or 'task'}__{self.seal.trial.ordinal:05d}"

    @property
    def outcome(self) -> Outcome:
        """The operator's word before the seals', because some ends only it can decide."""
        return outcome_of(self.seal, self.verify, self.member)


def outcome_of(seal: WorkSeal, verify: VerifySeal | None, member: GroupMember | None = None) -> Outcome:
    """Reason, validity and reward; a reward that nobody gave is None."""
    if member is not None:
        valid = member.phase is Phase.SEALED
        return Outcome(member.reason, valid, member.reward if valid else None)
    if not seal.valid:
        return Outcome(seal.reason, False, None)
    return Outcome(seal.reason, True, None) if verify is None else Outcome(verify.reason, True, verify.reward)


class Counted(NamedTuple):
    """What of a trial the job's own files are made of."""

    name: str
    configuration: str
    task: str
    data_set: str
    attempt: int
    rewards: Extra | None
    failed: str | None  # type of its exception
    started_at: str
    ended_at: str
    totals: AtifTotals
    cost_usd: str | None


def counted_of(lock: Lock, run: SealedRun) -> Counted:
    """The line of one trial."""
    trial, failed = run.seal.trial, _exception(run)
    return Counted(
        name=run.name,
        configuration=trial.configuration,
        task=trial.task,
        data_set=_data_set(lock, run),
        attempt=trial.attempt,
        rewards=_rewards(run),
        failed=None if failed is None else str(failed["exception_type"]),
        started_at=run.seal.started_at,
        ended_at=run.seal.ended_at,
        totals=run.document.final_metrics,
        cost_usd=run.seal.cost_usd,
    )


def job_files(name: str, lock: Lock, trials: Sequence[Counted], total: int) -> dict[str, bytes]:
    """The job's own files. `total`: trials of the sweep, those that are not here too."""
    return {
        "config.json": _file(_job_config(name, lock, trials)),
        "result.json": _file(_job_result(lock, trials, total)),
    }


def trial_files(job: str, lock: Lock, run: SealedRun) -> dict[str, bytes]:
    """Every file of a trial's folder by its path in it."""
    files = {
        "config.json": _file(_trial_config(job, lock, run)),
        "result.json": _file(_trial_result(job, lock, run)),
        "agent/trajectory.json": run.document.file(),
    }
    rewards = _rewards(run)
    if rewards is not None:
        files["verifier/reward.json"] = _file(rewards)
    for path, content in (("verifier/ctrf.json", run.ctrf), ("verifier/test-stdout.txt", run.logs)):
        files |= {path: content} if content is not None else {}
    failed = _exception(run)
    if failed is not None:
        files["exception.txt"] = f"{failed['exception_type']}: {failed['exception_message']}\n".encode()
    return files


def _trial_result(job: str, lock: Lock, run: SealedRun) -> Extra:
    seal, trial, outcome = run.seal, run.seal.trial, run.outcome
    configuration = _configuration(lock, trial.configuration)
    rewards = _rewards(run)
    totals = run.document.final_metrics
    return {
        "schema_version": 1,
        "id": str(uuid5(NAMESPACE, run.digest)),
        "task_name": trial.task,
        "trial_name": run.name,
        "trial_uri": run.uri,
        "task_id": {"path": trial.task},
        "source": _data_set(lock, run),
        "task_checksum": _task(lock, trial.task).digest.removeprefix("sha256:"),
        "config": _trial_config(job, lock, run),
        "agent_info": {
            "name": configuration.agent,
            "version": configuration.agent_version,
            "model_info": {"name": configuration.model_id, "provider": None},
        },
        "agent_result": {
            "n_input_tokens": totals.total_prompt_tokens,
            "n_cache_tokens": totals.total_cached_tokens,
            "n_output_tokens": totals.total_completion_tokens,
            "cost_usd": None if seal.cost_usd is None else float(Decimal(seal.cost_usd)),
            "metadata": {
                "realcli": {
                    **{key: value for key, value in trial.dump().items() if key != "task"},
                    "reason": outcome.reason,
                    "valid": outcome.valid,
                    "reward": outcome.reward,
                    "workEnd": seal.reason,
                    "workSeal": run.digest,
                    "turns": seal.turns,
                    "workingSeconds": seal.working_seconds,
                    "countedTokens": seal.tokens.dump(),
                    "egress": seal.egress,
                }
            },
        },
        "verifier_result": None if rewards is None else {"rewards": rewards},
        "verifier_environment_mode": "separate",
        "exception_info": _exception(run),
        "started_at": seal.started_at,
        "finished_at": seal.ended_at,
        **_phases(run.trajectory),
    }


def _phases(trajectory: Trajectory) -> Extra:
    """Harbor's `environment_setup` and `agent_execution`."""
    began = {data.phase: event.t for event, data in trajectory.of(PhaseChange)}
    ended = next((event.t for event, _ in trajectory.of(EpisodeEnd)), None)
    setup, work = began.get("setup"), began.get("work")
    return {
        "environment_setup": None if setup is None else {"started_at": setup, "finished_at": work or ended},
        "agent_execution": None if work is None else {"started_at": work, "finished_at": began.get("quiesce", ended)},
    }


def _rewards(run: SealedRun) -> Extra | None:
    """All named rewards; None where the trial has none, which is not 0."""
    reward = run.outcome.reward
    if reward is None:
        return None
    named = {} if run.verdict is None or run.verdict.reward != reward else run.verdict.rewards
    return {name: _number(value) for name, value in {**named, "reward": reward}.items()}


def _number(decimal: str) -> JsonValue:
    value = Decimal(decimal)
    return int(value) if value == value.to_integral_value() else float(value)


def _exception(run: SealedRun) -> Extra | None:
    """Any end but `Completed`, under its own name. Whether its reward counts is said, because Harbor does not know the names."""
    reason, valid, reward = run.outcome
    if reason == "Completed" and reward is not None:
        return None
    known = BY_REASON.get(reason)
    kind, message = reason, known.happened if known is not None else ""
    if valid and reward is None:
        kind, message = UNVERIFIED, f"the work ended as {reason}; no verdict lies beside it"
    return {
        "exception_type": kind,
        "exception_message": message,
        "exception_traceback": "",
        "occurred_at": run.seal.ended_at,
        "policy_override": {
            "should_retry": not valid and known is not None and known.effect is Effect.RETRY,
            "should_grade": valid,
            "has_valid_reward": valid and reward is not None,
        },
    }


def _trial_config(job: str, lock: Lock, run: SealedRun) -> Extra:
    configuration = _configuration(lock, run.seal.trial.configuration)
    return {
        "schema_version": 1,
        "task": {"path": run.seal.trial.task, "source": _data_set(lock, run)},
        "trial_name": run.name,
        "trials_dir": job,
        "agent": _agent(configuration),
        "environment": {"import_path": ELSEWHERE},
        "verifier": {"override_timeout_sec": _task(lock, run.seal.trial.task).verifier_seconds},
        "artifacts": list[JsonValue](_task(lock, run.seal.trial.task).artifacts),
        "job_id": _job_id(lock),
    }


def _agent(configuration: ConfigurationLock) -> Extra:
    effort: Extra = {} if configuration.effort is None else {"reasoning_effort": configuration.effort}
    about: Extra = {"realcli_configuration": configuration.name, "realcli_key": configuration.key}
    return {"name": configuration.program, "model_name": configuration.model_id, "kwargs": {**effort, **about}}


def _job_config(name: str, lock: Lock, trials: Sequence[Counted]) -> Extra:
    return {
        "schema_version": 1,
        "job_name": name,
        "jobs_dir": ".",
        "n_attempts": lock.repeats,
        "environment": {"import_path": ELSEWHERE},
        "agents": [_agent(_configuration(lock, one)) for one in sorted({trial.configuration for trial in trials})],
        "tasks": [{"path": task, "source": source} for task, source in sorted({(one.task, one.data_set) for one in trials})],
    }


def _job_result(lock: Lock, trials: Sequence[Counted], total: int) -> Extra:
    ended = max(trial.ended_at for trial in trials)
    evaluations: dict[str, list[Counted]] = {}
    for trial in trials:
        configuration = _configuration(lock, trial.configuration)
        evaluations.setdefault(f"{configuration.agent}__{configuration.model_id}__{trial.data_set}", []).append(trial)
    return {
        "schema_version": 1,
        "id": _job_id(lock),
        "started_at": min(trial.started_at for trial in trials),
        "updated_at": ended,
        "finished_at": ended if total == len(trials) else None,
        "n_total_trials": total,
        "stats": {
            "n_completed_trials": len(trials),
            "n_errored_trials": sum(trial.failed is not None for trial in trials),
            "n_pending_trials": total - len(trials),
            "n_retries": sum(trial.attempt - 1 for trial in trials),
            "evals": {key: _evaluation(group) for key, group in sorted(evaluations.items())},
            "n_input_tokens": _sum([trial.totals.total_prompt_tokens for trial in trials]),
            "n_cache_tokens": _sum([trial.totals.total_cached_tokens for trial in trials]),
            "n_output_tokens": _sum([trial.totals.total_completion_tokens for trial in trials]),
            "cost_usd": _cost([trial.cost_usd for trial in trials]),
        },
    }


def _evaluation(trials: Sequence[Counted]) -> JsonValue:
    """Rewards and ends by trial. Scores are not Harbor's to compute, so there is no metric."""
    rewards: dict[str, dict[str, list[JsonValue]]] = {}
    ends: dict[str, list[JsonValue]] = {}
    for trial in trials:
        for name, value in (trial.rewards or {}).items():
            rewards.setdefault(name, {}).setdefault(str(value), []).append(trial.name)
        if trial.failed is not None:
            ends.setdefault(trial.failed, []).append(trial.name)
    return {
        "n_trials": sum(trial.rewards is not None for trial in trials),
        "n_errors": sum(len(names) for names in ends.values()),
        "reward_stats": {name: dict[str, JsonValue](values) for name, values in rewards.items()},
        "exception_stats": dict[str, JsonValue](ends),
    }


def _sum(numbers: Sequence[int | None]) -> int | None:
    """None where one of them is not known."""
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _cost(costs: Sequence[str | None]) -> float | None:
    known = [Decimal(cost) for cost in costs if cost is not None]
    return float(sum(known, Decimal(0))) if len(known) == len(costs) else None


def _data_set(lock: Lock, run: SealedRun) -> str:
    return f"{lock.benchmark.name}-{lock.benchmark.version}-{run.seal.trial.mode.lower()}"


def _job_id(lock: Lock) -> str:
    return str(uuid5(NAMESPACE, f"{lock.sweep.namespace}/{lock.sweep.name}/{lock.sweep.uid}"))


def _configuration(lock: Lock, name: str) -> ConfigurationLock:
    found = next((one for one in lock.configurations if one.name == name), None)
    if found is None:
        raise ValueError(f"sweep.json holds no configuration {name}, which a seal names; it is not the lock of this trial")
    return found


def _task(lock: Lock, name: str) -> TaskLock:
    found = next((one for one in lock.tasks if one.name == name), None)
    if found is None:
        raise ValueError(f"sweep.json holds no task {name}, which a seal names; it is not the lock of this trial")
    return found


def _file(value: Extra) -> bytes:
    return printable_json(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)).encode() + b"\n"
