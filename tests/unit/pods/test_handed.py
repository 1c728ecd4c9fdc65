"""What Jobs are told in their environment reaches their programs as it was meant, whatever its length and characters."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from realcli.api.handed import PART, whole
from realcli.api.outcomes import Phase
from realcli.api.sweep import SweepSpec
from realcli.api.sweepstatus import ControlEnd
from realcli.scoring.records import GroupInput, GroupMember, WithdrawnTask
from realcli_operator.pods.jobs import sweep_job
from realcli_operator.reconcile.plans import JobIntent, Task
from realcli_session.plan.lock import PlanRequest

SEAL = "sha256:" + "5" * 64


def handed(job: Any) -> dict[str, str]:
    """The environment of its program: the kubelet reads `$$` as `$` and `$(NAME)` as what a variable before it holds."""
    known: dict[str, str] = {}
    for variable in job["spec"]["template"]["spec"]["containers"][0]["env"]:
        if "value" in variable:
            known[variable["name"]] = re.sub(
                r"\$(\$|\((?P<name>[^)]*)\))",
                lambda match: "$" if match[1] == "$" else known.get(match["name"], match[0]),
                variable["value"],
            )
        assert len(known.get(variable["name"], "").encode()) <= PART
    return known


@pytest.mark.parametrize("text", ["echo $$ $(REALCLI_SWEEP) $(HOME) $5 é", "x" * 900])
def test_a_plan_job_is_asked_what_the_spec_says(make: Any, text: str) -> None:
    servers = [{"name": f"server-{n}", "command": [text] * 64} for n in range(16)]
    spec = SweepSpec.model_validate(make.context().spec.dump() | {"agents": [{"name": "claude-code", "mcpServers": servers}]})
    job = sweep_job(replace(make.context(), spec=spec), JobIntent(Task.PLAN))
    assert PlanRequest.model_validate_json(whole(handed(job), "REALCLI_SWEEP")).spec == spec


def test_a_judge_job_is_told_of_two_hundred_members(make: Any) -> None:
    end = ControlEnd(result="Passed", ordinal=99999, attempt=9, number=9, seal=SEAL, detail="$$" * 100)
    members = [
        GroupMember(
            ordinal=n, mode="EXEC", repeat=1, phase=Phase.SEALED, reason="VerifierTimeout", attempt=9, reward="0",
            verify_attempt=3, work_seal=SEAL, seal=SEAL, control=end,
        )
        for n in range(200)
    ]  # fmt: skip
    asked = GroupInput(configuration="claude-code.sonnet", task="log-triage", members=members)
    job = sweep_job(make.context(), JobIntent(Task.JUDGE, 1, 0, asked))
    assert GroupInput.model_validate_json(whole(handed(job), "REALCLI_GROUP")) == asked


def test_a_report_job_is_told_of_a_thousand_withdrawn_tasks(make: Any) -> None:
    end = ControlEnd(result="Failed", ordinal=7, attempt=1, number=1, seal=SEAL, detail="d" * 200)
    names = [f"claude-code-{n:03d}.sonnet" for n in range(10)]
    gone = tuple(
        WithdrawnTask(task=f"task-{n:04d}", reason="VerifierFault", configurations=names, control=end) for n in range(1000)
    )
    job = sweep_job(make.context(), JobIntent(Task.REPORT, withdrawn=gone))
    text = whole(handed(job), "REALCLI_WITHDRAWN")
    assert len(text) > 4 * PART
    assert text.count('"task":"task-') == 1000
