"""Runs in Harbor's own environment: loads a job directory with its models, validator and viewer, prints what they say as JSON.

    python load_job.py JOB_DIRECTORY

Nothing of this repository is imported. Any refusal is an exception, and so a failure.
"""

import json
import sys
from pathlib import Path

from fastapi.testclient import TestClient
from harbor.models.job.config import JobConfig
from harbor.models.job.result import JobResult, JobStats
from harbor.models.trajectories import Trajectory
from harbor.models.trial.config import TrialConfig
from harbor.models.trial.result import TrialResult
from harbor.utils.trajectory_utils import compute_model_usage
from harbor.utils.trajectory_validator import TrajectoryValidator
from harbor.viewer.scanner import JobScanner
from harbor.viewer.server import create_app

COUNTED = ("n_completed_trials", "n_errored_trials", "n_pending_trials", "evals")


def trial(folder: Path) -> dict:
    """One trial's files, each by the model it is written for."""
    TrialConfig.model_validate_json((folder / "config.json").read_bytes())
    result = TrialResult.model_validate_json((folder / "result.json").read_bytes())
    path = folder / "agent" / "trajectory.json"
    validator = TrajectoryValidator()
    assert validator.validate(path), validator.errors
    trajectory = Trajectory.model_validate_json(path.read_bytes())
    usage = compute_model_usage(trajectory)
    failed = result.exception_info
    return {
        "trial": result.trial_name,
        "source": result.source,
        "agent": [result.agent_info.name, result.agent_info.version],
        "rewards": result.verifier_result and result.verifier_result.rewards,
        "reward_valid": result.reward_valid,
        "failed": failed and [failed.exception_type, failed.policy.should_retry, failed.policy.has_valid_reward],
        "totals": result.compute_token_cost_totals(),
        "usage": {name: [one.n_input_tokens, one.n_cache_tokens, one.n_output_tokens] for name, one in usage.items()},
        "steps": [step.source for step in trajectory.steps],
        "calls": sum(len(step.tool_calls or []) for step in trajectory.steps),
        "files": sorted(item.relative_to(folder).as_posix() for item in folder.rglob("*") if item.is_file()),
        "fields": sorted({name for step in trajectory.steps for name in step.model_fields_set}),
    }


def seen(job: Path, trials: list[str]) -> dict:
    """What the viewer's own server answers for it."""
    client = TestClient(create_app(job.parent))
    found = {}
    for path in (
        "",
        "/trials",
        *(f"/trials/{name}{part}" for name in trials for part in ("", "/trajectory", "/verifier-output")),
    ):
        answer = client.get(f"/api/jobs/{job.name}{path}")
        assert answer.status_code == 200, (path, answer.text)
        found[path] = answer.json()
    return found


def main() -> None:
    """See above."""
    job = Path(sys.argv[1])
    JobConfig.model_validate_json((job / "config.json").read_bytes())
    result = JobResult.model_validate_json((job / "result.json").read_bytes())
    names = JobScanner(job.parent).list_trials(job.name)
    results = [TrialResult.model_validate_json((job / name / "result.json").read_bytes()) for name in names]
    recounted = JobStats.from_trial_results(results, n_total_trials=result.n_total_trials).model_dump()
    told = result.stats.model_dump()
    shown = seen(job, names)
    print(
        json.dumps(
            {
                "trials": [trial(job / name) for name in names],
                "total": result.n_total_trials,
                "miscounted": [[name, told[name], recounted[name]] for name in COUNTED if told[name] != recounted[name]],
                "shown": {item["name"]: item["reward"] for item in shown["/trials"]["items"]},
                "outputs": {name: shown[f"/trials/{name}/verifier-output"] for name in names},
            }
        )
    )


if __name__ == "__main__":
    main()
