"""Whatever breaks, and whenever: a seal with a reason is written, and every step of the session is one of the table.

Runner, agent program and session are hit at moments that a seed chooses, with the real processes.
"""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from realcli.api.outcomes import is_valid
from realcli.ledger.reader import StoreReader
from realcli.ledger.verify import verify_attempt
from realcli_cli.local.provider import ScriptedProvider, scripted_provider
from realcli_session.phases.table import Cause, Stage, transition
from tests.integration.session.conftest import STARTER
from tests.integration.session.harness import KEY, Pod, plan_sweep
from tests.integration.session.moments import Moments

EVENTS = 42  # events of the whole run, about
SCRIPT = """
rules: [{policy: "realcli_provider.policies.site_settings:work"}]
faults: [{when: {side: null}, fault: {slow: 0.01}}]
"""


@pytest.fixture
def slow_provider(tmp_path: Path) -> Iterator[ScriptedProvider]:
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    with scripted_provider(script, key=KEY) as made:
        yield made


def kill_runner(pod: Pod) -> None:
    process = pod.container.process
    assert process is not None
    process.kill()


def terminate_session(pod: Pod) -> None:
    pod.session.send_signal(signal.SIGTERM)


def kill_agent(pod: Pod) -> None:
    for pid in agents_below(pod):
        os.kill(pid, signal.SIGKILL)


def stop_runner(pod: Pod) -> None:
    """It is there and does nothing for a second; then it is killed, as the kubelet would."""
    process = pod.container.process
    assert process is not None
    for pid in descendants(process.pid)[:1]:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(1)
    process.kill()


def agents_below(pod: Pod) -> list[int]:
    process = pod.container.process
    return [] if process is None else [pid for pid in descendants(process.pid) if "/agent/claude" in words(pid)]


def words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def descendants(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(task.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            child = int(task.parent.name)
            found += [child, *descendants(child)]
    return found


BREAKS: dict[str, tuple[Callable[[Pod], None], set[str]]] = {
    "runner killed": (kill_runner, {"SetupTimeout", "RunnerLost", "Completed"}),
    "runner stopped, then killed": (stop_runner, {"SetupTimeout", "RunnerLost", "Completed"}),
    "session told to end": (terminate_session, {"SessionLost", "Completed"}),
    "agent killed": (kill_agent, {"AgentCrashed", "Completed"}),
}
QUICK = {("runner killed", 3), ("session told to end", 2), ("agent killed", 5)}
SEEDS = range(1, 9)


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        (name, seed) if (name, seed) in QUICK else pytest.param(name, seed, marks=pytest.mark.slow)
        for name in BREAKS
        for seed in SEEDS
    ],
)
def test_a_seal_with_a_reason_is_written(
    tmp_path: Path, slow_provider: ScriptedProvider, toolkit: Path, agent: Path, name: str, seed: int
) -> None:
    sweep = plan_sweep(tmp_path / "store", STARTER, slow_provider.url, toolkit, agent, limits={"setup": "60s"})
    ordinal = sweep.ordinal("site-settings", "EXEC")
    strike, reasons = BREAKS[name]
    moment = random.Random(f"{name} {seed}").randint(3, EVENTS)
    with sweep.pod(ordinal, "work", "--attempt", "1") as pod:
        Moments(pod).wait(moment)
        strike(pod)
        ended = pod.ended()
    assert ended.termination is not None, ended.stderr
    seal = sweep.work_seal(ordinal)
    assert seal.reason in reasons, f"at event {moment}:\n{ended.stderr}"
    assert (ended.termination.reason, seal.valid) == (seal.reason, is_valid(seal.reason))
    every_step_is_of_the_table(ended.stderr)
    root = sweep.attempt(ordinal).root
    assert verify_attempt(StoreReader(sweep.store, root), root).ok
    assert [event.data["reason"] for event in sweep.events(ordinal) if event.kind == "episode_end"] == [seal.reason]


def every_step_is_of_the_table(said: str) -> None:
    """The session tells its steps: `work -> quiesce: completed`."""
    steps = re.findall(r"^(\w+) -> (\w+): ([\w-]+)", said, re.MULTILINE)
    assert steps[-1][1] == Stage.ENDED
    for before, after, cause in steps:
        assert transition(Stage(before), Cause(cause)).to == Stage(after), (before, cause)
