"""Three scripts and described agents in real runs of the agent programs: it goes as an interpreter of the page expects."""

from __future__ import annotations

import shutil
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml

from realcli.api.termination import Result
from realcli_cli.local.programs import agent_folder
from realcli_cli.local.provider import scripted_provider
from tests.integration.session.harness import KEY, Sweep, plan_sweep
from tests.support.audited import audit_events
from tests.support.scripts.behaviours import (
    TASKS,
    behaviours,
    conversation,
    described,
    provider_script,
    responses_in,
    script_of,
)
from tests.support.scripts.interpreter import expected
from tests.support.terminus import words_folder

QUICK = {("claude-code", "price-list", "asks"), ("codex", "log-archive", "silent"), ("terminus-2", "night-jobs", "asks")}
PROGRAMS = ("claude-code", "codex", "terminus-2")
BEHAVIOURS = ("asks", "silent", "claims", "mean")
REWARDED = ("asks", "silent")
CASES = [
    pytest.param(*case, marks=[] if case in QUICK else [pytest.mark.slow])
    for case in [
        *(
            (program, task, name)
            for program in PROGRAMS
            for task in behaviours()
            for name in ("asks", "silent", "claims", "mean")
        ),
        *((program, "price-list", "typed") for program in PROGRAMS),
    ]
]


@pytest.fixture(scope="session")
def catalogue() -> Any:
    return yaml.safe_load(resources.files("realcli.benchmark").joinpath("data/scenarios.yaml").read_bytes())


def planned(tmp_path: Path, task: str, program: str, toolkit: Path, url: str) -> Sweep:
    suite = tmp_path / "suite"
    shutil.copytree(TASKS / task, suite / "tasks" / task)
    (suite / "benchmark.toml").write_text('name = "scripts"\nversion = "1.0.0"\n')
    words = {"REALCLI_TERMINUS_TEMPLATES": str(words_folder())} if program == "terminus-2" else {}
    folder = agent_folder(program, None)
    return plan_sweep(tmp_path / "store", suite, url, toolkit, folder, program=program, environment=words)


@pytest.mark.parametrize(("program", "task", "name"), CASES)
def test_a_real_run_goes_as_the_page_says(
    tmp_path: Path, toolkit: Path, catalogue: Any, program: str, task: str, name: str
) -> None:
    responses = behaviours()[task][name]
    path = tmp_path / "provider.yaml"
    path.write_text(yaml.safe_dump(provider_script(responses, program)))
    with scripted_provider(path, key=KEY) as provider:
        sweep = planned(tmp_path, task, program, toolkit, provider.url)
        ordinal = sweep.ordinal(task, "COLLAB")
        ended = sweep.work(ordinal)
    assert ended.termination is not None, ended.stderr
    reason = (ended.termination.result, ended.termination.reason)
    assert reason == (Result.WORK_SEALED, "Completed"), ended.stderr
    events = sweep.events(ordinal)
    said = conversation((event.seq, event.typed()) for event in events)
    assert said == expected(script_of(task), catalogue, responses_in(events))
    verdicts, found = audit_events(events, TASKS / task)
    assert (found, set(verdicts.values())) == ([], {"1"}), "its audit finds that the user kept to the script"
    if name != "typed":
        wanted = expected(script_of(task), catalogue, [described(one) for one in responses])
        assert _messages(said) == _messages(wanted), "the agent did what is described"
    if name in REWARDED:
        verified = sweep.verify(ordinal)
        assert verified.termination is not None, verified.stderr
        assert (verified.termination.result, verified.termination.reward) == (Result.VERDICT, "1"), verified.stderr


def _messages(told: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [one for one in told if one[0] in ("user_message", "probe_untriggered", "final_claim")]
