"""How work can end other than by completing, each with the reason of the table and what verify makes of it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from realcli.api.termination import Result
from realcli.ledger.events import EpisodeEnd, Event, Limit, ProbeUntriggered, Quiesce
from realcli.ledger.reader import StoreReader
from realcli.ledger.verify import verify_attempt
from realcli_cli.local.pods import Ended
from realcli_cli.local.provider import ScriptedProvider
from tests.integration.session.harness import Pod, Sweep, terminate
from tests.integration.session.states import read_archive

Plan = Callable[..., Sweep]
Mini = Callable[..., Path]
TASK = "site-settings"
WRITER = "while :; do echo x >> /app/out; sleep 0.02; done"
STUBBORN = f"(trap '' TERM HUP INT; setsid sh -c \"trap '' TERM HUP INT; {WRITER}\" >/dev/null 2>&1 &) ; sleep 300"


def ended_as(ended: Ended, result: Result, reason: str, code: int = 0) -> None:
    assert ended.termination is not None, ended.stderr
    assert (ended.termination.result, ended.termination.reason) == (result, reason), ended.stderr
    assert ended.code == code


def intact(sweep: Sweep, ordinal: int) -> None:
    root = sweep.attempt(ordinal).root
    report = verify_attempt(StoreReader(sweep.store, root), root)
    assert report.ok, report.findings


def last(events: list[Event]) -> EpisodeEnd:
    end = events[-1].typed()
    assert isinstance(end, EpisodeEnd)
    return end


@pytest.mark.slow  # the end-to-end tests have one like it
def test_deadline_with_a_background_writer_that_ignores_signals(plan: Plan, mini: Mini) -> None:
    sweep = plan(suite=mini("echo 0 > /logs/verifier/reward.txt", STUBBORN), exec={"deadline": "4s"}, wallFactor="20")
    ordinal = sweep.ordinal("mini", "EXEC")
    with sweep.pod(ordinal, "work", "--attempt", "1") as pod:
        ended = pod.ended()
        ended_as(ended, Result.WORK_SEALED, "Deadline")
        left = pod.chroot.path("/app/out").read_bytes()
    state = read_archive(sweep.store.get(sweep.attempt(ordinal).state))
    assert state["app/out"] == left, "no write after quiesce"
    assert len(left) > 0
    events = [event.typed() for event in sweep.events(ordinal)]
    (limit,) = [e for e in events if isinstance(e, Limit)]
    assert (limit.limit, limit.allowed) == ("deadline", "4s")
    (quiesce,) = [e for e in events if isinstance(e, Quiesce)]
    assert any("echo x >> /app/out" in argv for argv in quiesce.stopped)
    assert quiesce.survivors == []
    seal = sweep.work_seal(ordinal)
    assert (seal.valid, seal.limit) == (True, "deadline")
    assert float(seal.working_seconds) >= 4
    intact(sweep, ordinal)
    verified = sweep.verify(ordinal)
    ended_as(verified, Result.VERDICT, "Deadline")
    assert verified.termination is not None
    assert (verified.termination.reward, verified.termination.limit) == ("0", "deadline")


def test_turn_limit(plan: Plan, provider: ScriptedProvider) -> None:
    sweep = plan(turns=2)
    ordinal = sweep.ordinal(TASK, "COLLAB")
    ended_as(sweep.work(ordinal), Result.WORK_SEALED, "TurnLimit")
    seal = sweep.work_seal(ordinal)
    assert (seal.turns, seal.limit, seal.valid) == (2, "turns", True)
    assert provider.seen()["counts"] == {"/v1/messages 200": 3}, "the plan's test request and two turns"
    assert [(e.probe, e.reason) for e in (x.typed() for x in sweep.events(ordinal)) if isinstance(e, ProbeUntriggered)] == [
        ("touched", "not_reached")
    ]
    intact(sweep, ordinal)
    verified = sweep.verify(ordinal)
    ended_as(verified, Result.VERDICT, "TurnLimit")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "result", "reason"),
    [(401, Result.WORK_INVALID, "ProviderUnavailable"), (400, Result.WORK_SEALED, "AgentCrashed")],
    ids=["a plain request is refused too", "only the agent's request is refused"],
)
def test_provider_errors(plan: Plan, provider: ScriptedProvider, status: int, result: Result, reason: str) -> None:
    sweep = plan()
    ordinal = sweep.ordinal(TASK, "EXEC")
    provider.set_control(status=status)
    ended_as(sweep.work(ordinal), result, reason)
    assert sweep.work_seal(ordinal).valid == (result is Result.WORK_SEALED)
    intact(sweep, ordinal)


@pytest.mark.slow
def test_the_agent_exits(plan: Plan, mini: Mini) -> None:
    sweep = plan(suite=mini("echo 1 > /logs/verifier/reward.txt", "echo done > /app/out; kill -9 $PPID; sleep 60"))
    ordinal = sweep.ordinal("mini", "EXEC")
    ended_as(sweep.work(ordinal), Result.WORK_SEALED, "AgentCrashed")
    assert "signal 9" in last(sweep.events(ordinal)).detail
    verified = sweep.verify(ordinal)
    ended_as(verified, Result.VERDICT, "AgentCrashed")
    assert verified.termination is not None
    assert verified.termination.reward == "1", "the state survived and is judged"


def test_the_runner_is_killed(plan: Plan, mini: Mini) -> None:
    sweep = plan(suite=mini("echo 1 > /logs/verifier/reward.txt", "touch /app/out; sleep 300"))
    ordinal = sweep.ordinal("mini", "EXEC")
    with sweep.pod(ordinal, "work", "--attempt", "1") as pod:
        pod.until(pod.chroot.path("/app/out").exists)
        assert pod.container.process is not None
        pod.container.process.kill()  # and with it, as with a container, everything in its pid namespace
        ended_as(pod.ended(), Result.WORK_SEALED, "RunnerLost")
    seal = sweep.work_seal(ordinal)
    assert (seal.valid, seal.state) == (True, None)
    intact(sweep, ordinal)
    with sweep.pod(ordinal, "verify", "--attempt", "1", "--verify", "1", runner=False) as pod:
        verified = pod.ended()
    ended_as(verified, Result.VERDICT, "RunnerLost")
    assert verified.termination is not None
    assert verified.termination.reward == "0"


def test_no_runner_comes(plan: Plan) -> None:
    sweep = plan(setup="1s")
    ordinal = sweep.ordinal(TASK, "EXEC")
    with sweep.pod(ordinal, "work", "--attempt", "1", runner=False) as pod:
        ended_as(pod.ended(), Result.WORK_INVALID, "SetupTimeout")
    assert not sweep.work_seal(ordinal).valid
    intact(sweep, ordinal)


def test_sigterm_while_working(plan: Plan, mini: Mini) -> None:
    sweep = plan(suite=mini("echo 1 > /logs/verifier/reward.txt", "touch /app/out; sleep 300"))
    ordinal = sweep.ordinal("mini", "EXEC")
    with sweep.pod(ordinal, "work", "--attempt", "1") as pod:
        pod.until(pod.chroot.path("/app/out").exists)
        terminate(pod.session)
        ended_as(pod.ended(), Result.WORK_INVALID, "SessionLost", code=1)
    assert not sweep.work_seal(ordinal).valid
    intact(sweep, ordinal)
    ended_as(sweep.verify(ordinal), Result.WORK_INVALID, "SessionLost")


@pytest.mark.slow
def test_an_image_without_the_accounts_of_the_task_is_a_configuration_error(plan: Plan, mini: Mini) -> None:
    suite = mini("true", "true")
    toml = suite / "tasks/mini/task.toml"
    toml.write_text(toml.read_text() + '[agent]\nuser = "nobody-here"\n')
    sweep = plan(suite=suite)
    ordinal = sweep.ordinal("mini", "EXEC")
    ended = sweep.work(ordinal)
    ended_as(ended, Result.WORK_INVALID, "ConfigurationError")
    assert ended.termination is not None
    assert "agent.user 'nobody-here'" in str(ended.termination.message)


def blocked(sweep: Sweep, ordinal: int) -> None:
    """Something else lies where the attempt's files have to go."""
    sweep.store.put_once(sweep.attempt(ordinal).root, b"in the way")


@pytest.mark.slow
def test_storage_that_does_not_take_the_evidence(plan: Plan) -> None:
    sweep = plan()
    ordinal = sweep.ordinal(TASK, "EXEC")
    blocked(sweep, ordinal)
    ended_as(sweep.work(ordinal), Result.WORK_INVALID, "StorageUnavailable")


@pytest.fixture
def full_storage() -> Iterator[Callable[[Sweep, int], Path]]:
    """`full_storage(sweep, ordinal)`: the attempt's files lie on a file system that is full at once; its mount point."""
    mounted: list[Path] = []

    def mount(sweep: Sweep, ordinal: int) -> Path:
        place = sweep.store_dir / sweep.attempt(ordinal).root
        place.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(place)], check=True)
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", str(place)], check=True)


def test_an_outage_of_storage_is_sat_out(plan: Plan, full_storage: Callable[[Sweep, int], Path]) -> None:
    sweep = plan(spoolHold="2m")
    ordinal = sweep.ordinal(TASK, "EXEC")
    place = full_storage(sweep, ordinal)
    with sweep.pod(ordinal, "work", "--attempt", "1") as pod:
        runner = pod.container.process
        assert runner is not None
        pod.until(lambda: runner.poll() is not None)  # the runner goes when the session seals
        pod.until((pod.folder / "spool" / "spool.json").exists)  # its container is not ready now
        assert not sweep.store.exists(sweep.attempt(ordinal).work_seal)
        subprocess.run(["mount", "-o", "remount,size=50m", str(place)], check=True)
        ended_as(pod.ended(), Result.WORK_SEALED, "Completed")
    intact(sweep, ordinal)


@pytest.mark.slow
def test_storage_that_does_not_come_back(plan: Plan, full_storage: Callable[[Sweep, int], Path]) -> None:
    sweep = plan(spoolHold="2s")
    ordinal = sweep.ordinal(TASK, "EXEC")
    full_storage(sweep, ordinal)
    ended = sweep.work(ordinal)
    ended_as(ended, Result.WORK_INVALID, "StorageUnavailable")
    assert ended.termination is not None
    assert "did not come back within limits.spoolHold (2s)" in str(ended.termination.message)
    assert ended.termination.seal is None


def test_the_wrong_storage(plan: Plan, tmp_path: Path) -> None:
    sweep = plan()
    elsewhere = '{"directory": "%s"}' % (tmp_path / "elsewhere")
    ended = sweep.work(0, REALCLI_STORAGE=elsewhere)
    ended_as(ended, Result.WORK_INVALID, "ConfigurationError")
    assert ended.termination is not None
    assert "sweep.json does not exist in directory" in str(ended.termination.message)


@pytest.mark.slow
def test_a_changed_lock_is_not_run(plan: Plan) -> None:
    sweep = plan()
    path = sweep.store_dir / sweep.plan.root / "sweep.json"
    path.write_bytes(path.read_bytes().replace(b'"repeats":1', b'"repeats":2', 1))
    ended = sweep.work(0)
    ended_as(ended, Result.WORK_INVALID, "ConfigurationError")


def test_segments_are_in_storage_before_the_work_ends(plan: Plan, mini: Mini) -> None:
    sweep = plan(suite=mini("true", "touch /app/out; sleep 300"))
    ordinal = sweep.ordinal("mini", "EXEC")
    with sweep.pod(ordinal, "work", "--attempt", "1") as pod:
        pod.until(lambda: sweep.store.exists(sweep.attempt(ordinal).segment(1)))
        kill(pod)
    events = sweep.events(ordinal)
    assert events[0].kind == "ledger_open"
    assert not sweep.store.exists(sweep.attempt(ordinal).work_seal)
    ended_as_no_seal = sweep.verify(ordinal)
    assert ended_as_no_seal.termination is not None
    assert ended_as_no_seal.termination.result is Result.NO_WORK_SEAL


def kill(pod: Pod) -> None:
    pod.session.kill()
    pod.session.wait()
