"""What the adapter does with a program that misbehaves. The programs are small scripts in the place of Claude Code."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from realcli.ledger.events import Event
from realcli.ledger.writer import LedgerWriter
from realcli.wire.protocol import ErrorCode
from realcli_session.agents import program
from realcli_session.agents.claude_code import ClaudeCode
from realcli_session.agents.port import (
    AgentEvent,
    AgentSpec,
    AgentUnresponsive,
    Error,
    Exit,
    NotWorking,
    PermissionRequest,
    Question,
    Text,
    Yield,
)
from realcli_session.gateway.dialects.base import Called
from realcli_session.gateway.witness import Witness
from realcli_session.runner.errors import RunnerError, RunnerLost, SpawnFailed
from tests.integration.conformance.bench import start_runner

PRELUDE = f"""#!{sys.executable} -u
import json, os, signal, sys, time
def say(**line): print(json.dumps(line), flush=True)
def hear():
    line = sys.stdin.readline()
    if not line: sys.exit(0)
    return json.loads(line)
def ready():
    asked = hear()
    say(type="control_response", response=dict(subtype="success", request_id=asked["request_id"]))
def result(): say(type="result", is_error=False, terminal_reason="completed")
"""
Begin = Callable[..., Awaitable["Rough"]]


class Rough:
    """One script behind the adapter."""

    def __init__(self, adapter: ClaudeCode, spec: AgentSpec, events: list[Event]) -> None:
        self.adapter, self.spec, self.ledger = adapter, spec, events

    async def all(self) -> list[AgentEvent]:
        async with asyncio.timeout(30):
            return [event async for event in self.adapter.events()]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event.data for event in self.ledger if event.kind == kind]


@pytest.fixture
async def rough(tmp_path: Path) -> AsyncIterator[Begin]:
    """rough(script, witness=None) -> Rough, not started; EXEC, in COLLAB with permissions Ask where there is a witness"""
    cleanup = contextlib.AsyncExitStack()

    async def begin(script: str, witness: Witness | None = None) -> Rough:
        (tmp_path / "claude").write_text(PRELUDE + script)
        (tmp_path / "claude").chmod(0o755)
        events: list[Event] = []
        ledger = LedgerWriter(tmp_path / "spool", on_event=events.append)
        cleanup.callback(ledger.close)
        runner = await start_runner(cleanup, tmp_path)
        adapter = ClaudeCode(runner, ledger)
        cleanup.push_async_callback(adapter.stop, grace=0.2)
        spec = AgentSpec(
            mode="EXEC" if witness is None else "COLLAB",
            permissions="Bypass" if witness is None else "Ask",
            witness=witness,
            version="2.1.140",
            model="m",
            base_url="http://127.0.0.1:1",
            token="t",
            workdir=str(tmp_path),
            environ={},
            home=str(tmp_path),
            program_dir=str(tmp_path),
        )
        return Rough(adapter, spec, events)

    try:
        yield begin
    finally:
        await cleanup.aclose()


async def test_output_that_is_no_protocol_is_survived(rough: Begin) -> None:
    run = await rough("""
print("hello there")
ready()
sys.stdout.buffer.write(b"\\xff\\xfe\\n[1]\\n\\n" + b"x" * (17 << 20) + b"\\n"); sys.stdout.flush()
say(type="user", isReplay=True, uuid=hear()["uuid"])
result()
print("the end", end="")
""")
    await run.adapter.start(run.spec)
    await run.adapter.send("go")
    heard = await run.all()
    errors = [event.message for event in heard if isinstance(event, Error)]
    assert errors == [
        "a line of its output is no JSON: hello there",
        "a line of its output is no JSON: \ufffd\ufffd",
        "a line of its output is JSON but no object",
        f"a line of its output is {17 << 20} bytes long and was skipped",
        "a line of its output is no JSON: the end",
    ]
    assert [type(event) for event in heard if not isinstance(event, Error)] == [Yield, Exit]


async def test_flood_of_events_is_bounded_and_hides_no_yield(rough: Begin) -> None:
    run = await rough("""
ready()
say(type="user", isReplay=True, uuid=hear()["uuid"])
for _ in range(30_000): say(type="assistant", parent_tool_use_id=None, message=dict(content=[dict(type="text", text="x")]))
for _ in range(1_000): print("noise")
result()
""")
    await run.adapter.start(run.spec)
    await run.adapter.send("go")
    assert await run.adapter.stop(grace=20) is not None
    heard = await run.all()
    assert len(heard) <= 10_200
    assert [type(event) for event in heard[-2:]] == [Yield, Exit]


async def test_program_that_changes_its_own_file_is_recorded_once_per_change(rough: Begin) -> None:
    run = await rough("""
ready()
for edit in ("# one", "", "# two"):
    say(type="user", isReplay=True, uuid=hear()["uuid"])
    with open(sys.argv[0], "a") as own: own.write(edit)
    result()
hear()
""")
    await run.adapter.start(run.spec)
    (started,) = run.of("agent_start")
    for changes in (1, 1, 2):
        await run.adapter.send("go")
        async with asyncio.timeout(30):
            await anext(event async for event in run.adapter.events() if isinstance(event, Yield))
        assert len(run.of("harness")) == changes
    first, second = run.of("harness")
    assert first["sha256Before"] == started["binarySha256"]
    assert first["sha256After"] == second["sha256Before"] != second["sha256After"]


async def test_response_of_its_own_is_no_hand_over(rough: Begin) -> None:
    run = await rough("""
ready()
say(type="user", isReplay=True, uuid=hear()["uuid"])
result()
say(type="assistant", parent_tool_use_id=None, message=dict(content=[dict(type="text", text="I woke up.")]))
result()
say(type="user", isReplay=True, uuid=hear()["uuid"])
result()
""")
    await run.adapter.start(run.spec)
    await run.adapter.send("one")
    events = run.adapter.events()
    async with asyncio.timeout(30):
        assert isinstance(await anext(events), Yield)
        await run.adapter.send("two")
        rest = [type(event) async for event in events]
    assert rest.count(Yield) == 1


async def test_permission_prompt_gets_the_fixed_policy_and_is_recorded(rough: Begin) -> None:
    run = await rough("""
ready()
for tool in ("ExitPlanMode", "AskUserQuestion"):
    request = dict(subtype="can_use_tool", tool_name=tool, input={"plan": "p"})
    say(type="control_request", request_id="r-" + tool, request=request)
    answer = hear()["response"]
    say(type="assistant", message=dict(content=[dict(type="text", text=json.dumps(answer))]))
""")
    await run.adapter.start(run.spec)
    heard = await run.all()
    asked = [(event.tool, event.answered) for event in heard if isinstance(event, PermissionRequest)]
    assert asked == [("ExitPlanMode", "allow"), ("AskUserQuestion", "deny")]
    assert [entry["tool"] for entry in run.of("permission_request")] == ["ExitPlanMode", "AskUserQuestion"]
    answers = [(entry["decision"], entry["by"]) for entry in run.of("permission_answer")]
    assert answers == [("allow", "policy"), ("deny", "policy")]
    texts = [event.text for event in heard if hasattr(event, "text")]
    assert '"updatedInput": {"plan": "p"}' in texts[0]
    assert '"behavior": "deny"' in texts[1]


async def test_program_that_ends_at_once_says_why(rough: Begin) -> None:
    run = await rough("print('no licence', file=sys.stderr); sys.exit(3)")
    with pytest.raises(AgentUnresponsive, match=r"ended with code 3: no licence"):
        await run.adapter.start(run.spec)
    assert await run.all() == [Exit(3, None)]
    assert run.of("agent_exit") == [{"code": 3, "stderrTail": "no licence\n"}]


async def test_program_that_is_not_there(rough: Begin) -> None:
    run = await rough("")
    (Path(run.spec.program_dir) / "claude").unlink()
    with pytest.raises(SpawnFailed):
        await run.adapter.start(run.spec)
    assert run.ledger == []
    assert await run.adapter.stop() is None


async def test_stop_kills_what_does_not_listen_and_what_it_started(rough: Begin) -> None:
    run = await rough("""
signal.signal(signal.SIGTERM, signal.SIG_IGN)
ready()
if os.fork() == 0: time.sleep(1000)
while True: time.sleep(1000)
""")
    await run.adapter.start(run.spec)
    status = await run.adapter.stop(grace=0.2)
    assert status is not None
    assert status.signal == 9
    assert await run.all() == [Exit(None, 9)]


async def test_control_request_after_the_end(rough: Begin) -> None:
    run = await rough("ready()")
    await run.adapter.start(run.spec)
    assert await run.all() == [Exit(0, None)]
    with pytest.raises(NotWorking, match="handed over"):
        await run.adapter.interrupt()
    run.adapter._talk.owed = True
    with pytest.raises(AgentUnresponsive, match="has ended"):
        await run.adapter.interrupt()


async def test_runner_that_goes_ends_the_events(rough: Begin) -> None:
    run = await rough("ready()\ntime.sleep(1000)")
    await run.adapter.start(run.spec)
    await run.adapter._runner.close()
    with pytest.raises(RunnerLost):
        await run.all()
    assert await run.adapter.stop() is None


async def test_answer_to_nothing(rough: Begin) -> None:
    run = await rough("ready()\nhear()")
    await run.adapter.start(run.spec)
    with pytest.raises(LookupError, match="r1"):
        await run.adapter.answer("r1", "allow", "yes")


# What a process of the agent writes into the program's output


def acting(*calls: Called) -> Witness:
    """The newest answer has asked for these calls."""
    witness = Witness()
    witness.asked("r1", main=True)
    witness.said("r1", calls)
    witness.ended("r1", complete=True)
    return witness


def errors(heard: list[AgentEvent]) -> list[str]:
    return [event.message for event in heard if isinstance(event, Error)]


async def test_a_line_of_many_small_values_is_not_read(rough: Begin) -> None:
    """It would be 800 MB of objects: more than the session has."""
    run = await rough("""
ready()
sys.stdout.write("[" + "[]," * 5_000_000 + "[]]\\n"); sys.stdout.flush()
""")
    await run.adapter.start(run.spec)
    assert errors(await run.all()) == ["a line of its output holds more than 100000 values and was skipped"]


async def test_texts_that_nobody_takes_are_bounded_in_bytes(rough: Begin) -> None:
    run = await rough("""
ready()
say(type="user", isReplay=True, uuid=hear()["uuid"])
text = "x" * (4 << 20)
for _ in range(20): say(type="assistant", parent_tool_use_id=None, message=dict(content=[dict(type="text", text=text)]))
for _ in range(90): say(type="system", subtype="api_retry", error_status=text)
result()
""")
    await run.adapter.start(run.spec)
    await run.adapter.send("go")
    assert await run.adapter.stop(grace=20) is not None
    heard = await run.all()
    assert sum(len(event.text) for event in heard if isinstance(event, Text)) <= program.MAX_QUEUED_BYTES
    assert max(map(len, errors(heard))) <= program.MAX_ERROR
    assert [type(event) for event in heard[-2:]] == [Yield, Exit]
    assert run.adapter._queued == 0


async def test_prompts_that_no_answer_of_the_model_bears_out_are_not_asked(rough: Begin) -> None:
    run = await rough(
        """
ready()
say(type="user", isReplay=True, uuid=hear()["uuid"])
def ask(name, tool, **more):
    request = dict(subtype="can_use_tool", tool_name=tool, input={}, **more)
    say(type="control_request", request_id=name, request=request)
ask("no call", "Bash")
ask("another call", "Bash", tool_use_id="toolu_9")
ask("a question about a command", "AskUserQuestion", tool_use_id="toolu_1")
ask("a", "Bash", tool_use_id="toolu_1")
ask("a", "Write", tool_use_id="toolu_1")
ask("q", "AskUserQuestion", tool_use_id="toolu_2")
for n in range(40): ask(f"more {n}", "Bash", tool_use_id="toolu_1")
ask("long", "Bash", tool_use_id="toolu_1", blocked_path="x" * (1 << 20))
""",
        witness=acting(Called("toolu_1", "Bash", {}), Called("toolu_2", "AskUserQuestion", {})),
    )
    await run.adapter.start(run.spec)
    await run.adapter.send("go")
    heard = await run.all()
    asked = [event for event in heard if isinstance(event, PermissionRequest | Question)]
    assert [event.request_id for event in asked] == ["a", "q", *(f"more {n}" for n in range(program.MAX_OPEN - 2))]
    assert asked[0] == PermissionRequest("a", "Bash", {}, answered=None)
    told = errors(heard)
    assert told[:4] == [
        "it asks about a call '' that no answer of the model has asked for",
        "it asks about a call 'toolu_9' that no answer of the model has asked for",
        "it asks about a call 'toolu_1' that no answer of the model has asked for",
        "it asks a second time as 'a', which is not answered yet",
    ]
    assert all(text.startswith("it asks more than can be answered") for text in told[4:])


async def test_an_interrupted_end_that_nobody_interrupted_is_doubted(rough: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "DOUBT_SECONDS", 0.2)
    witness = acting(Called("toolu_1", "Bash", {}))
    run = await rough(
        """
ready()
say(type="user", isReplay=True, uuid=hear()["uuid"])
say(type="result", is_error=False, terminal_reason="aborted_tools")
hear()
""",
        witness=witness,
    )
    await run.adapter.start(run.spec)
    await run.adapter.send("go")
    events = run.adapter.events()
    async with asyncio.timeout(30):
        assert await anext(events) == Error("it says that it hands over, but the gateway waits for the agent")
        assert await anext(events) == Error("the doubted hand-over holds: no request came")
        assert await anext(events) == Yield("interrupted", "aborted_tools")


async def test_an_interrupted_end_after_an_interrupt_is_not(rough: Begin) -> None:
    run = await rough(
        """
ready()
say(type="user", isReplay=True, uuid=hear()["uuid"])
asked = hear()
say(type="control_response", response=dict(subtype="success", request_id=asked["request_id"]))
say(type="result", is_error=False, terminal_reason="aborted_tools")
""",
        witness=acting(Called("toolu_1", "Bash", {})),
    )
    await run.adapter.start(run.spec)
    await run.adapter.send("go")
    await run.adapter.interrupt()
    assert await run.all() == [Yield("interrupted", "aborted_tools"), Exit(0, None)]


async def test_a_message_ends_a_doubt(rough: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the end of before the message would be handed over in the middle of the response to it."""
    monkeypatch.setattr(program, "DOUBT_SECONDS", 0.3)
    run = await rough(
        """
ready()
say(type="user", isReplay=True, uuid=hear()["uuid"])
result()
say(type="user", isReplay=True, uuid=hear()["uuid"])
time.sleep(1)
""",
        witness=acting(Called("toolu_1", "Bash", {})),
    )
    await run.adapter.start(run.spec)
    await run.adapter.send("go")
    events = run.adapter.events()
    async with asyncio.timeout(30):
        assert isinstance(await anext(events), Error)
        await run.adapter.send("and this", mid_turn=True)
        assert [event async for event in events] == [Exit(0, None)]


async def test_a_doubt_that_fails_is_told(rough: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "DOUBT_SECONDS", 0.1)
    run = await rough(
        """
ready()
say(type="user", isReplay=True, uuid=hear()["uuid"])
result()
hear()
""",
        witness=acting(Called("toolu_1", "Bash", {})),
    )
    await run.adapter.start(run.spec)
    await run.adapter.send("go")

    async def fails() -> None:
        raise RunnerError(ErrorCode.INTERNAL, "the file cannot be read")

    monkeypatch.setattr(run.adapter, "_check_binary", fails)
    with pytest.raises(RunnerError, match="cannot be read"):
        await run.all()
