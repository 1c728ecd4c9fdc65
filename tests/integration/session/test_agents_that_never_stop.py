"""Agents that never hand over, print without end, or keep their disk full: valid ends, sealed, by the limit that fired."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from realcli.api.termination import Result
from realcli.ledger.events import Limit, ProbeUntriggered, SliceReleased
from realcli_cli.local import pods
from realcli_cli.local.programs import agent_folder
from realcli_cli.local.provider import scripted_provider
from tests.integration.session.harness import KEY, REPOSITORY, Sweep, container, plan_sweep
from tests.integration.session.states import read_archive
from tests.integration.session.test_ends import ended_as, intact
from tests.support.terminus import words_folder

STARTER = REPOSITORY / "benchmark" / "starter"
Plan = Callable[..., Sweep]
Mini = Callable[..., Path]
SCORED = "echo 1 > /logs/verifier/reward.txt"
WORKS_ON = 'rules: [{then: {run: "date >> /app/log.txt"}}]'
NEVER = {
    "turns": ({"turns": 6}, "TurnLimit", "turns"),
    "deadline": ({"collab": {"deadline": "8s"}, "wallFactor": "20"}, "Deadline", "deadline"),
}
QUICK = {("claude-code", "turns")}


@pytest.mark.parametrize(
    ("program", "limit"),
    [
        pytest.param(program, limit, marks=[] if (program, limit) in QUICK else [pytest.mark.slow])
        for program in ("claude-code", "codex", "terminus-2")
        for limit in NEVER
    ],
)
def test_in_collab_an_agent_that_never_hands_over_runs_to_its_limit(
    tmp_path: Path, toolkit: Path, program: str, limit: str
) -> None:
    limits, reason, name = NEVER[limit]
    script = tmp_path / "script.yaml"
    script.write_text(WORKS_ON)
    words = {"REALCLI_TERMINUS_TEMPLATES": str(words_folder())} if program == "terminus-2" else {}
    folder = agent_folder(program, None)
    with scripted_provider(script, key=KEY) as provider:
        sweep = plan_sweep(
            tmp_path / "store", STARTER, provider.url, toolkit, folder, program=program, environment=words, limits=limits
        )
        ordinal = sweep.ordinal("site-settings", "COLLAB")
        ended_as(sweep.work(ordinal), Result.WORK_SEALED, reason)
    events = [event.typed() for event in sweep.events(ordinal)]
    assert [event.limit for event in events if isinstance(event, Limit)] == [name]
    assert [(event.probe, event.reason) for event in events if isinstance(event, ProbeUntriggered)] == [
        ("touched", "not_reached")
    ]
    assert [event.slice for event in events if isinstance(event, SliceReleased)] == [], "nothing but the opener was said"
    seal = sweep.work_seal(ordinal)
    assert (seal.valid, seal.limit, seal.state is None) == (True, name, False)
    intact(sweep, ordinal)
    verified = sweep.verify(ordinal)
    ended_as(verified, Result.VERDICT, reason)
    assert verified.termination is not None
    assert verified.termination.reward == "0"


FLOOD = """#!/usr/bin/python3 -u
import json, os, sys, time, urllib.error, urllib.request
def say(**line): print(json.dumps(line), flush=True)
def hear():
    line = sys.stdin.readline()
    if not line: sys.exit(0)
    return json.loads(line)
asked = hear()
say(type="control_response", response=dict(subtype="success", request_id=asked["request_id"]))
say(type="user", isReplay=True, uuid=hear()["uuid"])
open("/app/out", "w").write("done before the flood\\n")
for start in range(0, 10**9, 5000):
    messages = [dict(role=("user", "assistant")[n % 2], content=f"text {n}") for n in range(start, start + 5001)]
    body = dict(model="claude-sonnet-4-5", max_tokens=5, messages=messages)
    headers = {"content-type": "application/json", "x-api-key": os.environ["ANTHROPIC_API_KEY"]}
    url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    try: urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)).read()
    except urllib.error.HTTPError as error: time.sleep(0.1)
"""


@pytest.mark.slow
def test_a_flood_of_texts_ends_the_work_and_the_state_is_judged(plan: Plan, mini: Mini, tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    program = tmp_path / "agent" / "claude"
    program.write_text(FLOOD)
    program.chmod(0o755)
    sweep = plan(suite=mini(SCORED, "true"), exec={"deadline": "1h"})
    sweep.agent = program.parent
    ordinal = sweep.ordinal("mini", "EXEC")
    with sweep.pod(ordinal, "work", "--attempt", "1") as pod:
        ended_as(pod.ended(600), Result.WORK_SEALED, "AgentFloodedOutput")
    (limit,) = [event for event in (e.typed() for e in sweep.events(ordinal)) if isinstance(event, Limit)]
    assert (limit.limit, limit.allowed) == ("output", "100000 blobs")
    seal = sweep.work_seal(ordinal)
    assert (seal.valid, seal.limit) == (True, "output")
    assert read_archive(sweep.store.get(sweep.attempt(ordinal).state))["app/out"] == b"done before the flood\n"
    intact(sweep, ordinal)
    ended_as(sweep.verify(ordinal), Result.VERDICT, "AgentFloodedOutput")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """48 MiB, in memory; what is made with tempfile meanwhile lies there where the test says so."""
    place = Path(tempfile.mkdtemp(prefix="d-", dir="/tmp"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "none", str(place)], check=True)
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)
    place.rmdir()


FILLING = (
    "echo done > /app/out; "
    "(setsid sh -c \"trap '' TERM HUP INT; while :; do cat /dev/zero >> /fill; sleep 0.02; done\" >/dev/null 2>&1 &); "
    "until test $(df --output=avail / | tail -n 1) = 0; do sleep 0.05; done"
)


@pytest.mark.parametrize("program", ["claude-code", pytest.param("codex", marks=pytest.mark.slow)])
def test_a_container_whose_disk_is_kept_full_is_quiesced_and_its_state_taken(
    tmp_path: Path, toolkit: Path, mini: Mini, small_disk: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """Nothing that ends a run may need room where the agent writes."""
    with scripted_provider(key=KEY) as provider:
        suite = mini(SCORED, FILLING)
        sweep = plan_sweep(tmp_path / "store", suite, provider.url, toolkit, agent_folder(program, None), program=program)
        ordinal = sweep.ordinal("mini", "EXEC")
        keys: dict[str, Any] = {"anthropic": KEY, "responses": KEY}
        with monkeypatch.context() as patched:
            patched.setattr(tempfile, "tempdir", str(small_disk))
            made = container(sweep.image("mini"), sweep.toolkit, sweep.agent)
            place = made.__enter__()
        try:
            with pods.pod(sweep, ordinal, ["work", "--attempt", "1"], place, keys) as pod:
                ended = pod.ended(180)
        finally:
            made.__exit__(None, None, None)
    ended_as(ended, Result.WORK_SEALED, "Completed")
    assert read_archive(sweep.store.get(sweep.attempt(ordinal).state))["app/out"] == b"done\n"
    intact(sweep, ordinal)
    verified = sweep.verify(ordinal)
    ended_as(verified, Result.VERDICT, "Completed")
    assert verified.termination is not None
    assert verified.termination.reward == "1"
